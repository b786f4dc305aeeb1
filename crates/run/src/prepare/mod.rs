//! Everything between the words of a command line and the first trial: the study is read, rights and tools are
//! checked, the store is opened. Nothing is touched and nothing is printed; what happens is told to an [`Observer`].

pub mod clean;
pub mod context;
pub mod first_round;
pub mod job_file;
pub mod observer;
pub mod permission;
pub mod preflight;
pub mod study_file;
pub mod temporary;
mod undoing;

pub use context::{Context, entropy};
pub use observer::{Observer, Preparation, WatchedRun};
