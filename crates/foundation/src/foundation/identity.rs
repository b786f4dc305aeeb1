//! A real disk as a study names it: an id that stays, its size and its model.

use std::path::PathBuf;

/// A disk as a study names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Directory of links with stable names: `/dev/disk/by-id`.
    pub directory: PathBuf,
    /// The name of the link.
    pub id: String,
    /// Bytes.
    pub size: u64,
    /// The model as the kernel gives it, without blanks around it.
    pub model: String,
}

impl Identity {
    /// The link by which it is used.
    pub fn link(&self) -> PathBuf {
        self.directory.join(&self.id)
    }
}
