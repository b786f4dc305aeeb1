//! One storage measured by several clients at once.
//!
//! The first client conducts: it holds a conversation with each process of every client, its own
//! included, through the coordinator. A phase goes like this: caches are emptied, everybody sets the
//! phase up and says so, the clocks are compared, and all begin at one instant. What they measured is
//! merged as if one program had done it: histograms are added, never percentiles averaged.

mod conduct;
mod merge;
mod process;
mod seating;

pub(crate) use conduct::Conductor;
