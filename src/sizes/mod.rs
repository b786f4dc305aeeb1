//! Sizes of the trials that a command found by itself, and what it remembers of them.

pub(crate) mod memory;
pub(crate) mod room;
pub(crate) mod shape;
pub(crate) mod sizing;
