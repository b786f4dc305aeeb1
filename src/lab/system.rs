//! Operating systems a guest may have. A new one is an entry here, and its files in `recipe/`.

use std::fmt;

/// What is in the image of every system, by file name.
const COMMON: &[(&str, &str)] = &[
    ("image.sh", include_str!("recipe/image.sh")),
    ("kernel.sh", include_str!("recipe/kernel.sh")),
    ("packages", include_str!("recipe/packages")),
];

/// Time of every file in an image, s since 1970: the same packages give the same bytes.
pub(super) const EPOCH: &str = "1700000000";

/// Characters of the recipe's hash in an image's name.
const HASH_LEN: usize = 12;

/// One operating system.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct System {
    /// As `--system` takes it; the names of its images begin with it.
    pub(crate) name: &'static str,
    /// The distribution's name of the release.
    pub(super) suite: &'static str,
    /// Where its packages come from, in APT's format.
    pub(super) sources: &'static str,
    /// Packages that it alone has, one a line.
    packages: &'static str,
    /// Packages that the distribution lacks: address and SHA-256, one a line.
    pinned: &'static str,
}

/// All of them; the first is used where none is named.
pub(crate) const ALL: &[System] = &[
    System {
        name: "debian-13",
        suite: "trixie",
        sources: include_str!("recipe/debian-13/sources.list"),
        packages: include_str!("recipe/debian-13/packages"),
        pinned: include_str!("recipe/debian-13/pinned"),
    },
    System {
        name: "debian-12",
        suite: "bookworm",
        sources: include_str!("recipe/debian-12/sources.list"),
        packages: "",
        pinned: "",
    },
];

/// Name of the one that is used where none is named.
pub(crate) const DEFAULT: &str = ALL[0].name;

/// The system of a name.
pub(crate) fn named(name: &str) -> Option<&'static System> {
    ALL.iter().find(|system| system.name == name)
}

impl System {
    /// Name of the image that this program's recipe gives.
    pub(crate) fn image_name(&self) -> String {
        let mut hash = blake3::Hasher::new();
        let own = self.own();
        let packages = ("packages", self.packages);
        for (name, text) in COMMON.iter().chain(&own).chain([&packages]) {
            hash.update(name.as_bytes()).update(&[0]);
            hash.update(text.as_bytes()).update(&[0]);
        }
        hash.update(self.suite.as_bytes()).update(EPOCH.as_bytes());
        format!("{}-{}", self.name, &hash.finalize().to_hex()[..HASH_LEN])
    }

    /// The command that builds its image.
    pub(crate) fn build(&self) -> String {
        format!("sudo stackrace lab build --system {self}")
    }

    /// All packages of its image, besides the essential ones.
    pub(super) fn packages(&self) -> Vec<&'static str> {
        let common = include_str!("recipe/packages").lines();
        common
            .chain(self.packages.lines())
            .filter(|line| !line.starts_with('#'))
            .collect()
    }

    /// The files its image is built with, by name.
    pub(super) fn files(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let zfs = ("zfs.sh", include_str!("recipe/zfs.sh"));
        COMMON.iter().copied().chain(self.own()).chain([zfs])
    }

    /// Files that it alone has, by name.
    fn own(&self) -> [(&'static str, &'static str); 2] {
        [("sources.list", self.sources), ("pinned", self.pinned)]
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_has_a_recipe_of_its_own() {
        for system in ALL {
            assert_eq!(named(system.name), Some(system));
            assert!(system.image_name().starts_with(system.name));
            assert!(system.sources.contains(system.suite));
            assert!(system.packages().contains(&"e2fsprogs"));
        }
        assert_eq!(named(DEFAULT), Some(&ALL[0]));
        assert_eq!(named("debian"), None);
        assert!(ALL[0].packages().contains(&"netatalk"));
        assert!(!ALL[1].packages().contains(&"netatalk"));
        assert_ne!(ALL[0].image_name()[9..], ALL[1].image_name()[9..]);
    }
}
