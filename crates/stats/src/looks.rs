//! After which rounds a study may look at its results and stop.
//!
//! Looking after every round and stopping at the first "difference" finds one between two identical
//! treatments in about a quarter of all studies of 20 rounds. So the looks are fixed before the
//! first round, and the probability of error is shared equally among them (Bonferroni): an interval
//! of level `1 - alpha / K` at each of K looks holds at all of them at once with probability `1 -
//! alpha`. Any reason to stop is then harmless (a verdict, the budget, a bored user), as long as
//! what is reported is the last look that was planned.

/// The schedule; the gaps grow because precision grows with the square root of rounds.
const ROUNDS: [u32; 6] = [3, 5, 8, 12, 20, 30];

/// The planned looks of a study, in rounds completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looks {
    rounds: Vec<u32>,
}

impl Looks {
    /// The looks of a study of at most `max_rounds` rounds: 3, 5, 8, 12, 20, 30 as far as they
    /// fit, and a last look at `max_rounds` itself so that no round is paid for in vain.
    ///
    /// Fewer than three rounds allow no look: two differences say nothing of their spread.
    pub fn plan(max_rounds: u32) -> Looks {
        let mut rounds: Vec<u32> = ROUNDS.into_iter().filter(|&n| n <= max_rounds).collect();
        if rounds.last().is_some_and(|&last| last < max_rounds) {
            rounds.push(max_rounds);
        }
        Looks { rounds }
    }

    /// The looks in ascending order.
    pub fn rounds(&self) -> &[u32] {
        &self.rounds
    }

    /// How many looks there are.
    pub fn count(&self) -> usize {
        self.rounds.len()
    }

    /// Whether a look was planned after `n` rounds.
    pub fn is_look(&self, n: u32) -> bool {
        self.rounds.binary_search(&n).is_ok()
    }

    /// The look that a study stopped after `n` rounds must report.
    pub fn last_look_at_or_before(&self, n: u32) -> Option<u32> {
        self.rounds.iter().copied().rfind(|&look| look <= n)
    }

    /// The first look that needs more than `n` rounds.
    pub fn next_after(&self, n: u32) -> Option<u32> {
        self.rounds.iter().copied().find(|&look| look > n)
    }

    /// The probability of error that one look may spend of the `alpha` of the whole study
    /// (all of it where there is no look to spend it on).
    pub fn alpha_per_look(&self, alpha: f64) -> f64 {
        alpha / self.count().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_is_cut_to_the_budget_and_ends_with_it() {
        let cases: [(u32, &[u32]); 9] = [
            (0, &[]),
            (2, &[]),
            (3, &[3]),
            (4, &[3, 4]),
            (8, &[3, 5, 8]),
            (20, &[3, 5, 8, 12, 20]),
            (25, &[3, 5, 8, 12, 20, 25]),
            (30, &[3, 5, 8, 12, 20, 30]),
            (50, &[3, 5, 8, 12, 20, 30, 50]),
        ];
        for (max_rounds, expected) in cases {
            assert_eq!(Looks::plan(max_rounds).rounds(), expected);
            assert_eq!(Looks::plan(max_rounds).count(), expected.len());
        }
    }

    #[test]
    fn between_looks_the_last_one_counts() {
        let looks = Looks::plan(12);
        assert!(looks.is_look(8) && !looks.is_look(9) && !looks.is_look(0));
        assert_eq!(looks.last_look_at_or_before(2), None);
        assert_eq!(looks.last_look_at_or_before(7), Some(5));
        assert_eq!(looks.last_look_at_or_before(8), Some(8));
        assert_eq!(looks.last_look_at_or_before(100), Some(12));
        assert_eq!(looks.next_after(0), Some(3));
        assert_eq!(looks.next_after(8), Some(12));
        assert_eq!(looks.next_after(12), None);
    }

    #[test]
    fn the_looks_spend_alpha_and_no_more() {
        for max_rounds in 0..60 {
            let looks = Looks::plan(max_rounds);
            let spent = looks.alpha_per_look(0.05) * looks.count() as f64;
            assert!(spent <= 0.05 + 1e-15, "{max_rounds} rounds spend {spent}");
        }
        assert_eq!(Looks::plan(20).alpha_per_look(0.05), 0.01);
        assert_eq!(Looks::plan(0).alpha_per_look(0.05), 0.05);
    }
}
