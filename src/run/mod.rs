//! A study in execution: rounds, trials, checks of the results, and when to stop.
//!
//! Everything that happens becomes an event in the ledger, and nothing else leaves this room. The
//! [`Coordinator`] draws the order of each round, checks the results and says when to stop. It hands
//! each turn, the trials of one configuration in one round, to an [`Executor`]: this machine
//! ([`LocalExecutor`]) or workers on others ([`RemoteExecutor`]). One trial is: set up the stack,
//! prepare, settle, measure, observe, tear down. A failure is recorded with what was measured until
//! then. A configuration that failed is not tried again: a comparison in which one side sometimes
//! does not finish has no fair result.

pub(crate) mod clients;
mod coordinator;
pub(crate) mod crash;
mod exchanged;
mod executor;
mod held_ground;
mod ledger;
mod local_executor;
mod local_turn;
mod observation;
pub(crate) mod phases;
mod precondition;
mod remote_executor;
mod single;
mod sliced;
mod sliced_turn;
mod standing_data;
#[cfg(test)]
mod tests;
mod trial;
mod trial_kind;
mod trial_promises;
pub(crate) mod turns;

pub(crate) use coordinator::{Coordinator, Reason};
pub(crate) use executor::{Broken, Executor, TrialStart, Turned, Watcher};
pub(crate) use held_ground::KnownGrounds;
pub(crate) use ledger::{Ledger, SharedLedger};
pub(crate) use local_executor::{ClientsReached, LocalExecutor};
pub(crate) use observation::phase_observation;
pub(crate) use remote_executor::{RemoteExecutor, RemoteWorker};
pub(crate) use single::{AroundPhase, SingleEnd, SingleTrial};
pub(crate) use stackrace_base::interrupt::Interrupt;
