//! Operating systems a guest may have. A new one is an entry here, and its files in `recipe/`.

use stackrace_base::event::sudo;
use stackrace_machine::host::Package;
use std::fmt;

/// Files in the image of every system, by file name.
const COMMON: &[(&str, &str)] = &[
    ("image.sh", include_str!("recipe/image.sh")),
    ("kernel.sh", include_str!("recipe/kernel.sh")),
    ("packages", include_str!("recipe/packages")),
];

/// A guest's first program, run by the BusyBox of its image.
pub(super) const INIT: &str = include_str!("recipe/init");

/// Script that packs PostgreSQL for guests.
const POSTGRESQL: &str = include_str!("recipe/postgresql.sh");

/// Time of every file in an image, s since 1970: the same packages give the same bytes.
pub(super) const EPOCH: &str = "1700000000";

/// Characters of the recipe's hash in an image's name.
const HASH_LEN: usize = 12;

/// An operating system that guests can run.
#[derive(Debug, PartialEq, Eq)]
pub struct System {
    /// Name as `--system` takes it; the names of its images begin with it.
    pub name: &'static str,
    /// The distribution's name of the release.
    pub(super) suite: &'static str,
    /// Sources of its packages, in APT's format.
    pub(super) sources: &'static str,
    /// The system with the same programs and the distribution's usual kernel: itself, or another one.
    pub(super) release: &'static str,
    /// The package that depends on the newest kernel of its kind.
    pub(super) kernel: &'static str,
    /// The package of the hypervisor that starts first, with the kernel as its first guest; `None` if the kernel starts
    /// alone.
    pub(super) hypervisor: Option<&'static str>,
    /// True if the driver by which a guest serves modelled drives to itself (ublk) has to be built for its kernel:
    /// Debian does so since Linux 6.3.
    pub(super) builds_ublk: bool,
}

/// The kernel that the recipe takes where nothing else is said.
const KERNEL: &str = "linux-image-amd64";

/// All of them; the first is used where none is named.
pub const ALL: &[System] = &[
    System {
        name: "debian-13",
        suite: "trixie",
        sources: include_str!("recipe/debian-13/sources.list"),
        release: "debian-13",
        kernel: KERNEL,
        hypervisor: None,
        builds_ublk: false,
    },
    System {
        name: "debian-13-cloud",
        suite: "trixie",
        sources: include_str!("recipe/debian-13/sources.list"),
        release: "debian-13",
        kernel: "linux-image-cloud-amd64",
        hypervisor: None,
        builds_ublk: false,
    },
    System {
        name: "debian-13-rt",
        suite: "trixie",
        sources: include_str!("recipe/debian-13/sources.list"),
        release: "debian-13",
        kernel: "linux-image-rt-amd64",
        hypervisor: None,
        builds_ublk: false,
    },
    System {
        name: "debian-13-xen",
        suite: "trixie",
        sources: include_str!("recipe/debian-13/sources.list"),
        release: "debian-13",
        kernel: KERNEL,
        hypervisor: Some("xen-hypervisor-4.20-amd64"),
        builds_ublk: false,
    },
    System {
        name: "debian-12",
        suite: "bookworm",
        sources: include_str!("recipe/debian-12/sources.list"),
        release: "debian-12",
        kernel: KERNEL,
        hypervisor: None,
        builds_ublk: true,
    },
];

/// Name of the one that is used where none is named.
pub const DEFAULT: &str = ALL[0].name;

/// The system of a name.
pub fn named(name: &str) -> Option<&'static System> {
    ALL.iter().find(|system| system.name == name)
}

impl System {
    /// Name of the image that this program's recipe gives, with the packages that layers need.
    pub fn image_name(&self, of_layers: &[Package]) -> String {
        let mut hash = blake3::Hasher::new();
        let packages = ("packages of layers", self.packages(of_layers).join(" "));
        for (name, text) in self.recipe(of_layers).chain([packages]) {
            hash.update(name.as_bytes()).update(&[0]);
            hash.update(text.as_bytes()).update(&[0]);
        }
        hash.update(self.suite.as_bytes()).update(EPOCH.as_bytes());
        format!("{}-{}", self.name, &hash.finalize().to_hex()[..HASH_LEN])
    }

    /// Name of the layer of PostgreSQL for its image, after its own recipe too.
    pub fn postgresql_name(&self, of_layers: &[Package]) -> String {
        let hash = blake3::hash(POSTGRESQL.as_bytes()).to_hex();
        format!(
            "postgresql-{}-{}",
            &hash[..HASH_LEN / 2],
            self.image_name(of_layers)
        )
    }

    /// Returns true if its distribution has a package that not every one has.
    pub fn has(&self, package: &Package) -> bool {
        package.only_on.is_none_or(|only| only == self.release)
    }

    /// The command that builds its image.
    pub fn build(&self) -> String {
        format!("{} lab build --system {self}", sudo())
    }

    /// All packages of its image, besides the essential ones: what every guest needs, then what layers
    /// need.
    pub(super) fn packages(&self, of_layers: &[Package]) -> Vec<&'static str> {
        let common = include_str!("recipe/packages").lines();
        let of_layers = self.its(of_layers).into_iter();
        let of_layers = of_layers.filter(|package| package.pinned.is_none());
        common
            .filter(|line| !line.starts_with('#'))
            .chain(of_layers.map(|package| package.name))
            .collect()
    }

    /// The files its image and what is added to it are built with, by name.
    pub(super) fn files(
        &self,
        of_layers: &[Package],
    ) -> impl Iterator<Item = (&'static str, String)> + use<> {
        let zfs = ("zfs.sh", include_str!("recipe/zfs.sh").to_string());
        let postgresql = ("postgresql.sh", POSTGRESQL.to_string());
        self.recipe(of_layers).chain([zfs, postgresql])
    }

    /// Inputs that the image follows from.
    fn recipe(
        &self,
        of_layers: &[Package],
    ) -> impl Iterator<Item = (&'static str, String)> + use<> {
        let kernel = self.kernel;
        let common = COMMON
            .iter()
            .map(move |(name, text)| (*name, text.replace(KERNEL, kernel)));
        let own = [
            ("sources.list", self.sources.to_string()),
            ("pinned", self.pinned(of_layers)),
        ];
        // Of those with a hypervisor alone: it is no part of the other images, nor of their names.
        let hypervisor = self.hypervisor.map(|package| {
            let text = include_str!("recipe/hypervisor.sh");
            [
                ("hypervisor.sh", text.to_string()),
                ("hypervisor", package.to_string()),
            ]
        });
        let driver = self.builds_ublk.then(|| {
            let text = include_str!("recipe/ublk.sh");
            ("ublk.sh", text.to_string())
        });
        let hypervisor = hypervisor.into_iter().flatten();
        common.chain(own).chain(hypervisor).chain(driver)
    }

    /// Those of some packages that a guest with this system gets, each once, by name.
    fn its(&self, packages: &[Package]) -> Vec<Package> {
        let mut its: Vec<Package> = packages.to_vec();
        its.retain(|package| self.has(package));
        its.sort_unstable_by_key(|package| package.name);
        its.dedup();
        its
    }

    /// Packages of layers that the distribution lacks: address and SHA-256, one a line.
    fn pinned(&self, of_layers: &[Package]) -> String {
        let packages = self.its(of_layers).into_iter();
        let lines = packages.filter_map(|package| package.pinned);
        lines.map(|pinned| pinned.join(" ") + "\n").collect()
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

    const OF_LAYERS: &[Package] = &[
        Package {
            only_on: Some("debian-13"),
            ..Package::new("netatalk", &["afpd"])
        },
        Package::new("e2fsprogs", &["mkfs.ext4"]),
        Package::new("e2fsprogs", &["mkfs.ext4"]),
    ];

    #[test]
    fn every_system_has_a_recipe_of_its_own() {
        for system in ALL {
            assert_eq!(named(system.name), Some(system));
            assert!(system.image_name(OF_LAYERS).starts_with(system.name));
            assert!(system.sources.contains(system.suite));
            let packages = system.packages(OF_LAYERS);
            let once = packages.iter().filter(|name| **name == "e2fsprogs");
            assert_eq!(once.count(), 1);
        }
        assert_eq!(named(DEFAULT), Some(&ALL[0]));
        assert_eq!(named("debian"), None);
        assert!(ALL[0].packages(OF_LAYERS).contains(&"netatalk"));
        let older = named("debian-12").unwrap();
        assert!(!older.packages(OF_LAYERS).contains(&"netatalk"));
        let names = ALL.iter().map(|system| system.image_name(OF_LAYERS));
        let mut hashes: Vec<String> = names.collect();
        hashes
            .iter_mut()
            .for_each(|name| *name = name.rsplit('-').next().unwrap().to_owned());
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), ALL.len(), "two recipes are one");
    }
}
