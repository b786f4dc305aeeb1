//! The words of a verdict, each written in one place.
//!
//! Files for programs and the classes of a page have the name, people read the label. A test holds
//! the names against what `serde` writes into the JSON report.

use super::gate::GateOutcome;
use super::statement::{State, VerdictWord};

impl VerdictWord {
    /// Name in tables for programs and the classes of a page.
    pub fn name(self) -> &'static str {
        match self {
            Self::Better { .. } => "better",
            Self::Worse { .. } => "worse",
            Self::NoDifference { .. } => "no-difference",
            Self::Probably { .. } => "probably",
            Self::Undecided => "undecided",
            Self::TooFew => "too-few",
            Self::Unpaired { .. } => "unpaired",
        }
    }

    /// Returns true if it answers the question, one way or the other.
    pub fn decides(self) -> bool {
        matches!(
            self,
            Self::Better { .. } | Self::Worse { .. } | Self::NoDifference { .. }
        )
    }

    /// Returns true if it rules out that B is the best: it is worse than A, or no better than A.
    pub(super) fn settles_rank(self) -> bool {
        matches!(self, Self::Worse { .. } | Self::NoDifference { .. })
    }

    /// Returns true if it says that there is no difference that matters.
    pub fn is_tie(self) -> bool {
        matches!(self, Self::NoDifference { .. })
    }
}

impl State {
    /// Name in tables for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Decided => "decided",
            Self::Undecided => "undecided",
            Self::TooFew => "too-few",
            Self::Unpaired => "unpaired",
        }
    }

    /// Label of the word, as tables show it.
    pub fn label(self) -> &'static str {
        match self {
            Self::TooFew => "too few rounds",
            Self::Unpaired => "imported",
            Self::Decided | Self::Undecided => self.name(),
        }
    }
}

impl GateOutcome {
    /// Name for people and programs; a page shows it in capitals.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Undecided => "undecided",
            Self::Worse => "worse",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_the_one_in_the_json_report() {
        let span = (0.1, 0.2);
        let words = [
            VerdictWord::Better {
                at_least: span.0,
                at_most: span.1,
            },
            VerdictWord::Worse {
                at_least: span.0,
                at_most: span.1,
            },
            VerdictWord::NoDifference { larger_than: 0.1 },
            VerdictWord::Undecided,
            VerdictWord::TooFew,
            VerdictWord::Unpaired {
                runs: (1, 1),
                differs: false,
            },
        ];
        for word in words {
            assert_eq!(serde_json::to_value(word).unwrap()["word"], word.name());
        }
        for state in [
            State::Decided,
            State::Undecided,
            State::TooFew,
            State::Unpaired,
        ] {
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        }
        for outcome in [
            GateOutcome::Passed,
            GateOutcome::Undecided,
            GateOutcome::Worse,
        ] {
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.name());
        }
    }
}
