//! A study in execution: rounds, trials, checks of the results, and when to stop.
//!
//! Everything that happens becomes an event in the ledger, and nothing else leaves this room. The
//! [`Coordinator`] draws the order of each round, checks the results and says when to stop. It hands
//! each turn, the trials of one configuration in one round, to an [`Executor`]: this machine
//! ([`LocalExecutor`]) or workers on others ([`RemoteExecutor`]). One trial is: set up the stack,
//! prepare, settle, measure, observe, tear down. A failure is recorded with what was measured until
//! then. A configuration that failed is not tried again: a comparison in which one side sometimes
//! does not finish has no fair result.

mod beside;
mod clients;
mod coordinator;
pub mod crash;
mod exchanged;
mod executor;
mod fits;
mod held_ground;
mod ledger;
mod local_executor;
mod local_turn;
mod observation;
mod phases;
mod precondition;
mod remote_executor;
mod replied;
mod runner;
mod single;
mod sliced;
mod sliced_turn;
mod stack_trial;
mod standing_data;
#[cfg(test)]
mod tests;
mod time_left;
mod together;
mod trial;
mod trial_kind;
mod trial_promises;
pub mod turns;

pub use beside::serve;
pub use coordinator::{Coordinator, Reason};
pub use executor::{Broken, Executor, TrialStart, Turned, Watcher};
pub use fits::TurnAsked;
pub use held_ground::KnownGrounds;
pub use ledger::{Ledger, SharedLedger};
pub use local_executor::{ClientsReached, LocalExecutor};
pub use observation::note_phase;
pub use remote_executor::{RemoteExecutor, RemoteWorker};
pub use runner::Observed;
pub use single::{AroundPhase, SingleOutcome, SingleTrial};
pub use stackrace_base::interrupt::Interrupt;
