//! Turns taken as somebody else orders them, and what is said of them on the way: one JSON object a
//! line in each direction.
//!
//! Who is told neither draws the order of a round, nor looks, nor decides: he takes the turn he is
//! given and says everything that happens, until there is nothing more to do.

use serde::{Deserialize, Serialize};

use super::{Broken, TrialStart, Turn, Turned, Venue, Watcher};
use crate::event::{Event, Fact};
use crate::verdict::Verdict;

/// What a place is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case")]
pub(crate) enum Order {
    /// Take this turn: ends with [`Said::Turned`].
    Take(Turn),
    /// Lower what stands, and end.
    End,
}

/// What a place says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "kebab-case")]
pub(crate) enum Said {
    /// Everything is there for the study, and nothing has been touched.
    Ready {
        /// The machine.
        environment: Vec<Fact>,
    },
    /// A part of a trial begins: see [`TrialStart`].
    Begins {
        /// From 1.
        round: u32,
        /// Configuration by index.
        configuration: usize,
        /// Workload by index.
        workload: Option<usize>,
        /// Which part.
        part: String,
    },
    /// The one who watches should know.
    Remarked {
        /// One sentence.
        text: String,
    },
    /// Belongs in the record.
    Happened {
        /// What.
        event: Box<Event>,
    },
    /// The turn is over.
    Turned {
        /// Its trials were done, well or not; else it was stopped.
        done: bool,
    },
}

/// How something is said; the one who listens may have gone.
pub(crate) type Say<'a> = dyn Fn(&Said) -> Result<(), Broken> + Send + Sync + 'a;

/// Takes turns as they are ordered; whatever happens, what stands is lowered.
///
/// # Errors
/// Nobody listens any more.
pub(crate) fn in_step(
    place: &mut dyn Venue,
    orders: impl Iterator<Item = Order>,
    say: &Say<'_>,
) -> Result<(), Broken> {
    let taken = take_all(place, orders, say);
    taken.and(place.end())
}

fn take_all(
    place: &mut dyn Venue,
    orders: impl Iterator<Item = Order>,
    say: &Say<'_>,
) -> Result<(), Broken> {
    for order in orders {
        let Order::Take(turn) = order else { break };
        let done = place.take(&turn)? == Turned::Done;
        say(&Said::Turned { done })?;
    }
    Ok(())
}

/// Watches by saying what is to be seen.
pub(crate) struct Teller<'a>(pub(crate) &'a Say<'a>);

impl Teller<'_> {
    fn say(&self, said: &Said) {
        // The next event finds out that nobody listens, and must: this is not in the record.
        let _ = (self.0)(said);
    }
}

impl Watcher for Teller<'_> {
    fn begins(&self, start: &TrialStart<'_>) {
        self.say(&Said::Begins {
            round: start.round,
            configuration: start.configuration,
            workload: start.workload,
            part: start.part.to_owned(),
        });
    }

    /// Who is told does not look.
    fn looked(&self, _verdict: &Verdict) {}

    fn warned(&self, text: &str) {
        let text = text.to_owned();
        self.say(&Said::Remarked { text });
    }
}
