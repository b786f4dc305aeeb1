//! What layers share: reading `/sys`, the guard of disks, formatting, options, shares, the line between machines.

pub(super) mod assembled;
pub(super) mod block;
pub(super) mod cached;
pub(super) mod config_tree;
pub(super) mod filesystem;
pub(super) mod guard;
pub(super) mod lasting;
pub(super) mod lent;
pub(super) mod line;
pub(super) mod one_kernel;
pub(super) mod options;
pub(super) mod parameter;
pub(super) mod place;
pub(super) mod plain;
pub(super) mod share;
pub(super) mod words;
