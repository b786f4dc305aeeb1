//! What layers share: reading `/sys`, the guard of disks, formatting, options, shares, the line between machines.

pub(crate) mod block;
pub(crate) mod filesystem;
pub(crate) mod guard;
pub(crate) mod line;
pub(crate) mod one_kernel;
pub(crate) mod options;
pub(crate) mod place;
pub(crate) mod plain;
pub(crate) mod share;
pub(crate) mod words;
