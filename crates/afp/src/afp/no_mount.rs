//! Stands for the mount where the program was built without FUSE.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;

/// A mount of a program built without AFP: no value of it exists.
pub struct AfpMount(Infallible);

impl AfpMount {
    /// Always fails: this program was built without AFP.
    ///
    /// # Errors
    /// Always.
    pub fn new(_: SocketAddr, _: &str, _: &Path) -> Result<Self, String> {
        Err("built without the AFP client (cargo install --path . --features full)".to_owned())
    }

    /// Cannot be called.
    ///
    /// # Errors
    /// Never.
    pub fn serve(self) -> Result<(), String> {
        match self.0 {}
    }
}
