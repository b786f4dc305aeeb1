//! The load generator: the one place where I/O happens.
//!
//! A phase is described by a [`spec::Spec`] (block I/O) or one of the plans in [`files`] and
//! [`tree`] (whole files), watched through a [`Control`], and comes back as an [`Outcome`].
mod calls;
mod control;
mod crew;
pub mod files;
mod filling;
mod meter;
mod outcome;
pub mod residency;
pub mod spec;
pub mod tree;

pub use control::Control;
pub use outcome::{
    Ended, LATENCY_DIGITS, LATENCY_NS_MAX, LATENCY_NS_MIN, Op, OpError, OpOutcome, Outcome, Slice,
};
