//! PostgreSQL for guests: a layer over the root file system of an image, for studies that need it.
//!
//! It is no part of the image: other guests need neither its memory nor its time to start.

use super::error::LabError;
use super::image::{Builder, Image};
use super::image_cache::ImageCache;
use super::system::System;
use stackrace_machine::host::{HostError, Needs, Package};

/// The layer's only file, also in what the kernel unpacks first.
pub(super) const FILE: &str = "postgresql.squashfs";

/// Word that tells the first program of a guest of it.
pub(super) const TOLD: &str = " lab.postgresql";

/// The distribution's package, which depends on that of its current version.
const PACKAGE: &str = "postgresql";

/// Returns true if what a workload needs is in the layer.
pub fn wanted(needs: &Needs) -> bool {
    needs.packages.iter().any(|package| package.name == PACKAGE)
}

/// Returns true if a package is in the layer.
pub fn has(package: &Package) -> bool {
    package.name == PACKAGE
}

/// The layer for a system's image; `None` if it was not built.
///
/// # Errors
/// When a file is missing.
pub fn find(cache: &ImageCache, system: &System) -> Result<Option<Image>, LabError> {
    let dir = cache.dir.join(system.postgresql_name(&cache.of_layers));
    dir.is_dir().then(|| Image::open(&dir)).transpose()
}

impl Builder<'_> {
    /// Builds the layer for the image of a system, or finds it.
    ///
    /// # Errors
    /// As [`Builder::image`].
    pub fn postgresql(&self, system: &'static System, image: &Image) -> Result<Image, LabError> {
        if let Some(found) = find(self.cache, system)? {
            return Ok(found);
        }
        let name = system.postgresql_name(&self.cache.of_layers);
        self.build(system, &name, |work| {
            // What the image has is not packed once more.
            let (from, to) = (image.file("packages"), work.join("image-packages"));
            std::fs::copy(&from, &to).map_err(|error| HostError::path("copy", &from, error))?;
            self.bootstrap(system, work, PACKAGE, "postgresql.sh")?;
            let version = self.host.read_text(&work.join("postgresql"))?;
            Ok((image.kernel().to_owned(), version, vec![FILE.to_owned()]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::system::ALL;
    use super::*;
    use stackrace_machine::host::Package;

    #[test]
    fn only_a_workload_that_needs_postgresql_asks_for_it() {
        const PACKAGES: &[Package] = &[Package::new("postgresql", &["initdb"])];
        assert!(!wanted(&Needs::default()));
        assert!(wanted(&Needs {
            packages: PACKAGES,
            ..Needs::default()
        }));
    }

    #[test]
    fn a_layer_fits_one_image_alone() {
        let dir = tempfile::tempdir().unwrap();
        let cache = ImageCache::in_dir(dir.path());
        let names = ALL.iter().map(|system| system.postgresql_name(&[]));
        let mut names: Vec<String> = names.collect();
        for (system, name) in ALL.iter().zip(&names) {
            assert!(name.ends_with(&system.image_name(&[])), "{name}");
            assert!(find(&cache, system).unwrap().is_none());
        }
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
