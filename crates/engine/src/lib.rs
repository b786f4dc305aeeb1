//! The load generator: the one place where I/O happens.
//!
//! A phase is described by a [`spec::Spec`] (block I/O) or one of the plans in [`bonnie`],
//! [`files`], [`postmark`], [`promises`], [`replay`], [`sysbench`] and [`tree`], watched through a [`Control`], and comes
//! back as an [`PhaseOutcome`].
mod alternation;
mod block_report;
mod block_worker;
pub mod bonnie;
mod calls;
mod choose;
pub mod clock;
pub mod content;
mod control;
mod descriptors;
mod error;
pub mod files;
mod gate;
mod io;
mod lane;
mod layout;
mod outcome;
mod pace;
pub mod pacing;
mod phase;
pub mod postmark;
mod progress;
pub mod promises;
pub mod recorder;
pub mod replay;
pub mod residency;
mod ring;
pub mod shape;
pub mod spec;
pub mod sysbench;
mod target;
pub mod tree;
pub mod verify;
pub mod waits;
mod watch;
mod worker_pool;

// The fixtures name the crate as the integration tests do, which compile them, too.
#[cfg(test)]
extern crate self as stackrace_engine;
#[cfg(test)]
#[path = "../tests/fixtures/trees.rs"]
mod fixtures;

pub use alternation::{AlternatedPart, Alternation, AlternationSeat, PartMoment, PartObserver};
pub use choose::WORKERS_MAX;
pub use control::{Control, START_IS_TOLD};
pub use error::StartError;
pub use layout::lay_out;
pub use outcome::{
    LATENCY_DIGITS, LATENCY_NS_MAX, LATENCY_NS_MIN, Op, OpError, OpOutcome, PhaseEnd, PhaseOutcome,
    ProgramWork, Slice, Stretch, ThreadOutcome, Timing,
};
pub use phase::{least_self_cost, run, run_verified, self_cost};
pub use verify::{ContentLedger, lay_out_verified};

/// Checks that the kernel lets this process use io_uring.
///
/// # Errors
/// [`StartError::Ring`] with what it said; [`StartError::next`] says what to do.
pub fn io_uring_allowed() -> Result<(), StartError> {
    io::uring::allowed()
}
