//! What layers share: reading `/sys`, the guard of disks, formatting, options, shares, the line between machines.

pub mod block;
pub mod filesystem;
pub mod guard;
pub mod line;
pub mod one_kernel;
pub mod options;
pub mod place;
pub mod plain;
pub mod share;
pub mod words;
