//! A real disk as a study names it: an id that stays, its size and its model.

use std::path::PathBuf;

/// A disk as a study names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Where links with stable names are: `/dev/disk/by-id`.
    pub(crate) directory: PathBuf,
    /// The name of the link.
    pub(crate) id: String,
    /// Bytes.
    pub(crate) size: u64,
    /// As the kernel gives it, without blanks around it.
    pub(crate) model: String,
}

impl Identity {
    /// The link by which it is used.
    pub(crate) fn link(&self) -> PathBuf {
        self.directory.join(&self.id)
    }
}
