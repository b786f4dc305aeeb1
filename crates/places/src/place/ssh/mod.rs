//! Machines that are reached over SSH, and the peers of one of their stacks.

pub mod machines;
pub mod peers;
