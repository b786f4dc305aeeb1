//! Replies of the machines that measure a trial beside the first one, or in its place.

use std::time::Duration;

use stackrace_base::event::ExchangedStorage;
use stackrace_load::workload::{WorkloadError, trouble};
use stackrace_remote::agent::connection::Conversation;
use stackrace_remote::agent::message::{PhaseReply, WorkerReply};

/// Reason why a trial cannot go on because of one of them, said with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MachineTrouble {
    /// It is gone: no trial can go on without it.
    Lost(String),
    /// Its part of the trial failed, or was called off.
    Failed(WorkloadError),
    /// The storage that it sees is another one; with what failed because of that.
    Exchanged(Box<ExchangedStorage>, Option<String>),
}

/// Returns the reply of a machine of this name, if there is one within so much time.
///
/// # Errors
/// It is lost, or does not go on.
pub(super) fn replied(
    conversation: &Conversation,
    name: &str,
    within: Duration,
) -> Result<Option<PhaseReply>, MachineTrouble> {
    let failed = |what: &dyn std::fmt::Display| {
        let why = format!("{name}: {what}");
        Err(MachineTrouble::Failed(trouble(why)))
    };
    let lost = |why: &dyn std::fmt::Display| {
        let why = format!("{name}: {why}");
        Err(MachineTrouble::Lost(why))
    };
    match conversation.receive_within(within) {
        Ok(None) => Ok(None),
        Ok(Some(WorkerReply::Phase(PhaseReply::Failed { said, cause }))) => {
            let said = format!("{name}: {said}");
            Err(MachineTrouble::Failed(WorkloadError {
                cause,
                ..trouble(said)
            }))
        }
        Ok(Some(WorkerReply::Phase(PhaseReply::Exchanged { storage, effect }))) => {
            let storage = Box::new(storage.seen_by(Some(name)));
            Err(MachineTrouble::Exchanged(storage, effect))
        }
        Ok(Some(WorkerReply::Phase(PhaseReply::Ended))) => failed(&"it stopped"),
        Ok(Some(WorkerReply::Phase(reply))) => Ok(Some(reply)),
        Ok(Some(WorkerReply::Undelivered { why, .. })) => lost(&why),
        Ok(Some(WorkerReply::Refused { text, .. })) => failed(&text),
        Ok(Some(other)) => failed(&format!("an unexpected answer: {other:?}")),
        Err(error) => lost(&error),
    }
}
