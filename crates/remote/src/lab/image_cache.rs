//! The place of images, and which of them fit this program.

use super::system::System;
use stackrace_machine::host::Package;
use std::path::PathBuf;

/// Images on this machine, and what decides which of them fit this program.
#[derive(Debug)]
pub struct ImageCache {
    /// The directory that they are kept in.
    pub dir: PathBuf,
    /// Packages that layers need; an image of a system has those that it knows.
    pub of_layers: Vec<Package>,
}

impl ImageCache {
    /// The directory of a system's image, built or not.
    pub fn dir_of(&self, system: &System) -> PathBuf {
        self.dir.join(system.image_name(&self.of_layers))
    }

    /// Images in a directory, where no layer needs a package.
    #[cfg(test)]
    pub(super) fn in_dir(dir: &std::path::Path) -> Self {
        Self {
            dir: dir.to_owned(),
            of_layers: Vec::new(),
        }
    }
}
