//! Which I/O engine runs a phase, and why.

use std::os::fd::OwnedFd;

use crate::error::StartError;
use crate::spec::{Engine, Spec};

/// Most workers (threads, or threads times queue depth) of a phase.
pub const WORKERS_MAX: u32 = 4096;
/// Most operations outstanding per thread.
pub const QUEUE_DEPTH_MAX: u32 = 4096;

/// How the workers of a phase do their I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Plain calls; one worker per outstanding operation.
    Sync,
    /// A ring per thread.
    Uring,
    /// No I/O; one worker per outstanding operation.
    Null,
}

impl Way {
    /// The name in [`crate::Outcome::engine`].
    pub(crate) fn name(self) -> &'static str {
        match self {
            Way::Sync => "sync",
            Way::Uring => "io_uring",
            Way::Null => "null",
        }
    }
}

/// A decision and its reason.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub(crate) way: Way,
    /// Threads the phase runs on.
    pub(crate) workers: u32,
    pub(crate) why: String,
}

/// Decides by what was asked for, and what the file and the kernel allow.
pub(crate) fn choose(spec: &Spec, _files: &[OwnedFd]) -> Result<Choice, StartError> {
    let depth = spec.queue_depth;
    let (way, mut why) = match spec.engine {
        Engine::Null => (Way::Null, "asked for".to_owned()),
        Engine::Sync => (Way::Sync, "asked for".to_owned()),
        Engine::Uring => return Err(StartError::Ring { errno: 38, disabled: None }),
        Engine::Auto if depth == 1 => (
            Way::Sync,
            "queue depth 1: a plain call costs less than a ring".to_owned(),
        ),
        Engine::Auto => (Way::Sync, "not decided yet".to_owned()),
    };
    let workers = match way {
        Way::Uring => spec.threads,
        Way::Sync | Way::Null => spec.threads.saturating_mul(depth),
    };
    if way == Way::Sync && depth > 1 {
        why = format!(
            "{why}; queue depth {depth} became {depth} threads with one operation each, for every \
             thread asked for"
        );
    }
    if workers > WORKERS_MAX || depth > QUEUE_DEPTH_MAX {
        return Err(StartError::Spec {
            what: format!("{} threads with queue depth {depth}", spec.threads),
            next: "lower the threads or the queue depth: their product may be 4096 at most",
        });
    }
    Ok(Choice { way, workers, why })
}
