//! What all workloads that read and write blocks share: their settings, and the engine's spec.
//!
//! A workload of this kind is a choice of mode, access and defaults; everything else means the same
//! in each of them and is documented, checked and resolved here.

mod parse;
mod phase;
#[cfg(test)]
mod tests;
pub mod words;

pub use parse::{access, at_least_one, content, read_share, size};
pub use phase::*;
