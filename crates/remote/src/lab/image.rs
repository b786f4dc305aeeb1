//! Images: what guests are made of, built from the distribution's packages by a recipe that ships
//! with the program, and cached by the recipe's hash.
//!
//! An image is a directory: `vmlinux` (the kernel, unpacked), `root.squashfs` (the root file system),
//! `boot/` (what the first program needs), `packages` (names and versions), `manifest.json` (size and
//! BLAKE3 of each file). The ZFS modules, which the distribution gives as source only, are a layer of
//! their own, built once for a kernel and a version of ZFS. Both appear under their names when they
//! are whole, never before.

use super::build_tool;
use super::driver;
use super::error::LabError;
use super::image_cache::ImageCache;
use super::system::{self, EPOCH, System};
use super::vmlinux;
use serde::{Deserialize, Serialize};
use stackrace_base::owned::{OwnDir, OwnError};
use stackrace_machine::host::{Host, HostError, Needs, argv};
use stackrace_machine::journal::{Journal, Undo};
use std::path::{Path, PathBuf};

/// Needs of building.
pub const NEEDS: Needs = Needs {
    file_system: None,
    drivers: &[],
    daemons: &[],
    lab: false,
    part: None,
    ..Needs::as_root(&["mmdebstrap", "mksquashfs", "xz"], &[])
};

/// Name of the list of an image's files.
const MANIFEST: &str = "manifest.json";

/// Name of the hypervisor's file.
const HYPERVISOR: &str = "hypervisor";

/// Beginning of the names of ZFS modules.
const ZFS: &str = "zfs-";

/// One file of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    name: String,
    bytes: u64,
    blake3: String,
}

/// Description of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    /// Release of its kernel.
    kernel: String,
    /// Its other name: of the image the recipe's hash, of ZFS modules the version.
    version: String,
    parts: Vec<Part>,
}

/// An image, or a layer of ZFS modules, that is whole.
#[derive(Debug, Clone)]
pub struct Image {
    dir: PathBuf,
    manifest: Manifest,
}

impl Image {
    /// Directory of its files.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// `debian-13-…` or `zfs-…`.
    pub fn name(&self) -> String {
        let name = self.dir.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Release of the kernel.
    pub fn kernel(&self) -> &str {
        &self.manifest.kernel
    }

    /// Hash of its files' contents, as 16 digits: two builds of one recipe can differ.
    pub fn content(&self) -> String {
        let mut hash = blake3::Hasher::new();
        for part in &self.manifest.parts {
            // The 0 keeps words apart: two that border elsewhere are others.
            hash.update(part.name.as_bytes()).update(&[0]);
            hash.update(part.blake3.as_bytes()).update(&[0]);
        }
        hash.finalize().to_hex()[..16].to_owned()
    }

    /// All its files, bytes.
    pub fn bytes(&self) -> u64 {
        self.manifest.parts.iter().map(|part| part.bytes).sum()
    }

    /// The path of one of the image's files.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The hypervisor that starts before the kernel; `None` if the kernel starts alone.
    pub fn hypervisor(&self) -> Option<PathBuf> {
        let mut parts = self.manifest.parts.iter();
        let found = parts.any(|part| part.name == HYPERVISOR);
        found.then(|| self.file(HYPERVISOR))
    }

    /// Version of one of its packages.
    pub fn package(&self, name: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.file("packages")).ok()?;
        text.lines().find_map(|line| {
            let (package, version) = line.split_once(' ')?;
            (package == name).then(|| version.to_string())
        })
    }

    /// Reads every file again.
    ///
    /// # Errors
    /// The first that is not what was built.
    pub fn verify(&self) -> Result<(), LabError> {
        for part in &self.manifest.parts {
            let found = described(&self.dir, &part.name)?;
            if found != *part {
                return Err(LabError::Damaged(self.file(&part.name)));
            }
        }
        Ok(())
    }

    pub(super) fn open(dir: &Path) -> Result<Self, LabError> {
        // Root runs what is in it: nothing of it, nor the way to it, may be another user's.
        let own = OwnDir::open(dir)?;
        let path = dir.join(MANIFEST);
        let bytes = own.read_all(MANIFEST)?;
        let manifest: Manifest =
            serde_json::from_slice(&bytes).map_err(|_| LabError::Damaged(path))?;
        for part in &manifest.parts {
            // By size alone: hashing hundreds of megabytes before each run would take seconds.
            match length(&own, &part.name) {
                Err(refused @ (OwnError::Foreign { .. } | OwnError::Writable { .. })) => {
                    return Err(refused.into());
                }
                Ok(bytes) if bytes == part.bytes => {}
                _ => return Err(LabError::Damaged(dir.join(&part.name))),
            }
        }
        Ok(Self {
            dir: dir.to_path_buf(),
            manifest,
        })
    }
}

/// Length of a file of an image, bytes. Its name may have directories in it.
fn length(own: &OwnDir, name: &str) -> Result<u64, OwnError> {
    if let Some((dir, name)) = name.split_once('/') {
        return length(&own.dir(dir)?, name);
    }
    // Opened, so that whose it is is looked at.
    own.read(name)?;
    let missing = || OwnError::NoFile {
        path: own.path().join(name),
    };
    own.state(name).map(|state| state.bytes).ok_or_else(missing)
}

/// A system's image of this program's recipe, its files looked at by size alone.
///
/// # Errors
/// When it was not built, or a file is missing.
pub fn find(cache: &ImageCache, system: &'static System) -> Result<Image, LabError> {
    let dir = cache.dir_of(system);
    if dir.is_dir() {
        Image::open(&dir)
    } else {
        Err(LabError::NoImage(system))
    }
}

/// Returns true if what a layer needs is in the ZFS modules.
pub fn wants_zfs(needs: &Needs) -> bool {
    needs
        .tools
        .iter()
        .any(|tool| ["zfs", "zpool"].contains(tool))
}

/// The ZFS modules that fit an image; `None` if they were not built.
///
/// # Errors
/// When a file is missing.
pub fn find_zfs(cache: &ImageCache, image: &Image) -> Result<Option<Image>, LabError> {
    let dir = cache.dir.join(zfs_name(image)?);
    dir.is_dir().then(|| Image::open(&dir)).transpose()
}

/// `zfs-2.1.11-1+deb12u1-6.1.0-56-amd64`: the tools in the image say which version it has to be.
fn zfs_name(image: &Image) -> Result<String, LabError> {
    let version = image
        .package("zfsutils-linux")
        .ok_or_else(|| LabError::Damaged(image.file("packages")))?;
    Ok(format!("{ZFS}{version}-{}", image.kernel()))
}

/// Use that this program has for something in the cache.
#[derive(Debug)]
pub enum Stocked {
    /// The image of a system, or what is added to it.
    Used(&'static System, Image),
    /// ZFS modules that no image here fits, while a system has none yet: that one may.
    Spare(Image),
    /// An image of another recipe than this program's, or of a version that no image has.
    Unneeded(Image),
    /// A file is missing, or is not what was built.
    Damaged(PathBuf),
}

impl Stocked {
    /// The directory it is in.
    pub fn dir(&self) -> &Path {
        match self {
            Self::Used(_, image) | Self::Spare(image) | Self::Unneeded(image) => image.dir(),
            Self::Damaged(dir) => dir,
        }
    }
}

/// Everything in the cache, by name; every file is read.
pub fn stock(cache: &ImageCache) -> Vec<Stocked> {
    let mut used: Vec<(&System, String)> = Vec::new();
    let mut all_built = true;
    for system in system::ALL {
        used.push((system, system.image_name(&cache.of_layers)));
        used.push((system, system.postgresql_name(&cache.of_layers)));
        match find(cache, system).and_then(|image| zfs_name(&image)) {
            Ok(zfs) => used.push((system, zfs)),
            // Its kernel and its version of ZFS are not known yet.
            Err(_) => all_built = false,
        }
    }
    let entries = std::fs::read_dir(&cache.dir)
        .into_iter()
        .flatten()
        .flatten();
    let mut stock: Vec<Stocked> = entries
        .map(|entry| entry.path())
        .filter(|dir| dir.join(MANIFEST).is_file())
        .map(|dir| {
            let whole = Image::open(&dir).and_then(|image| image.verify().map(|()| image));
            let Ok(image) = whole else {
                return Stocked::Damaged(dir);
            };
            match used.iter().find(|(_, name)| *name == image.name()) {
                Some((system, _)) => Stocked::Used(system, image),
                None if !all_built && image.name().starts_with(ZFS) => Stocked::Spare(image),
                None => Stocked::Unneeded(image),
            }
        })
        .collect();
    stock.sort_by(|a, b| a.dir().cmp(b.dir()));
    stock
}

/// Place where an image is built, and the means.
pub struct Builder<'a> {
    /// This machine.
    pub host: &'a dyn Host,
    /// Journal that is told first of what is created.
    pub journal: &'a Journal,
    /// Place of the images.
    pub cache: &'a ImageCache,
    /// Unique: names what is made meanwhile.
    pub mark: &'a str,
    /// Returns true if the user asks to stop: the tools end with this program.
    pub stopped: &'a dyn Fn() -> bool,
}

impl Builder<'_> {
    /// Builds the image of a system after this program's recipe, or finds it.
    ///
    /// # Errors
    /// When a package cannot be had, a tool is missing or fails, or the image's shell refuses the
    /// guest's first program.
    pub fn image(&self, system: &'static System) -> Result<Image, LabError> {
        let image = match find(self.cache, system) {
            Err(LabError::NoImage(_)) => self.new_image(system)?,
            found => found?,
        };
        check_init(self.host, &image, system::INIT)?;
        Ok(image)
    }

    fn new_image(&self, system: &'static System) -> Result<Image, LabError> {
        let of_layers = &self.cache.of_layers;
        let image = system.image_name(of_layers);
        self.build(system, &image, |work| {
            if system.builds_ublk {
                self.bootstrap(system, work, driver::PACKAGES, driver::SCRIPT)?;
            }
            let packages = system.packages(of_layers).join(",");
            self.bootstrap(system, work, &packages, "image.sh")?;
            vmlinux::unpack(self.host, work)?;
            let mut names = vec!["packages".to_string(), "root.squashfs".to_string()];
            names.push("vmlinux".to_string());
            names.extend(system.hypervisor.map(|_| HYPERVISOR.to_string()));
            for name in self.host.list(&work.join("boot"))? {
                names.push(format!("boot/{}", name.to_string_lossy()));
            }
            let kernel = self.host.read_text(&work.join("release"))?;
            if system.builds_ublk {
                driver::check(self.host, work, kernel.trim())?;
            }
            Ok((kernel.trim().to_string(), image.clone(), names))
        })
    }

    /// Builds the ZFS modules for the image of a system, or finds them.
    ///
    /// # Errors
    /// As [`Builder::image`]; also when the distribution has moved on to another kernel or another
    /// version of ZFS than the image has.
    pub fn zfs(&self, system: &'static System, image: &Image) -> Result<Image, LabError> {
        if let Some(found) = find_zfs(self.cache, image)? {
            return Ok(found);
        }
        let name = zfs_name(image)?;
        self.build(system, &name, |work| {
            self.bootstrap(system, work, "kmod,zfs-dkms", "zfs.sh")?;
            let text = self.host.read_text(&work.join("zfs"))?;
            let mut lines = text.lines();
            let [kernel, version] = [lines.next(), lines.next()].map(Option::unwrap_or_default);
            // Modules of another kernel or version would be built, and then not load.
            if format!("{ZFS}{version}-{kernel}") != name {
                return Err(LabError::MovedOn {
                    system,
                    now: format!("ZFS {version} for {kernel}"),
                });
            }
            let names = vec!["zfs.squashfs".to_string()];
            Ok((kernel.to_string(), version.to_string(), names))
        })
    }

    /// Makes a directory of the cache from what `make` leaves in a working directory: kernel,
    /// version and names of the files.
    pub(super) fn build(
        &self,
        system: &System,
        name: &str,
        make: impl FnOnce(&Path) -> Result<(String, String, Vec<String>), LabError>,
    ) -> Result<Image, LabError> {
        let missing = self.host.missing(&NEEDS);
        if !missing.is_empty() {
            return Err(LabError::Lacks(missing));
        }
        // Root would put what it builds, and then trusts, where another user can change it.
        OwnDir::open_or_make(&self.cache.dir)?;
        // In the cache itself, so that what was built can be renamed and need not be copied.
        let work = self
            .cache
            .dir
            .join(format!(".stackrace-{}-build", self.mark));
        let tree = Undo::RemoveTree(work.clone());
        let entry = self.journal.will("lab build", tree)?;
        self.host.create_dir(&work)?;
        for (name, text) in system.files(&self.cache.of_layers) {
            let path = work.join(name);
            std::fs::write(&path, text).map_err(|error| HostError::path("write", &path, error))?;
        }
        let (kernel, version, names) = make(&work)?;
        let kept = self
            .cache
            .dir
            .join(format!(".stackrace-{}-kept", self.mark));
        self.journal
            .will("lab build", Undo::RemoveTree(kept.clone()))?;
        let dir = self.cache.dir.join(name);
        let image = keep(&work, &kept, kernel, version, &names)?;
        // The last step: an image with this name is always complete.
        std::fs::rename(&kept, &dir).map_err(|error| HostError::path("name", &dir, error))?;
        self.host.remove_tree(&work)?;
        self.journal.done(entry)?;
        Ok(Image { dir, ..image })
    }

    /// Installs packages into a tree and runs a part of the recipe on it, which leaves its results in
    /// the working directory; the tree goes again.
    pub(super) fn bootstrap(
        &self,
        system: &System,
        work: &Path,
        packages: &str,
        script: &str,
    ) -> Result<(), LabError> {
        let work = work.to_string_lossy();
        let words = [
            // What is mounted in the tree is gone with the last program that sees it.
            "unshare".to_string(),
            "--mount".to_string(),
            "env".to_string(),
            format!("TMPDIR={work}"),
            // Files get this time at the latest, so that two builds of the same packages are alike.
            format!("SOURCE_DATE_EPOCH={EPOCH}"),
            "DEBIAN_FRONTEND=noninteractive".to_string(),
            "mmdebstrap".to_string(),
            "--quiet".to_string(),
            "--mode=root".to_string(),
            "--variant=apt".to_string(),
            "--format=null".to_string(),
            "--aptopt=APT::Install-Recommends \"false\"".to_string(),
            format!("--include={packages}"),
        ];
        let mut words = words.to_vec();
        let hook = |script: &str, more: &str| {
            format!("--customize-hook=sh '{work}/{script}' \"$1\" '{work}'{more}")
        };
        // Before the image, which forgets the lists of packages.
        let hypervisor = system.hypervisor.map(|package| format!(" {package}"));
        words.extend(hypervisor.map(|package| hook("hypervisor.sh", &package)));
        words.extend(driver::upload(Path::new(&*work)));
        words.extend([
            hook(script, ""),
            system.suite.to_string(),
            "/dev/null".to_string(),
            format!("{work}/sources.list"),
        ]);
        build_tool::run(&argv(words), Path::new(&*work), self.stopped)
    }
}

/// Refuses a first program that the image's own BusyBox cannot read: no guest would start. Each
/// version of it takes other names for functions.
fn check_init(host: &dyn Host, image: &Image, init: &str) -> Result<(), LabError> {
    let mut words = vec![image.file("boot/busybox").into_os_string()];
    // Reads it and runs nothing of it.
    words.extend(argv(["sh", "-n", "-c", init]));
    let output = host.exec(&words)?;
    if output.status == Some(0) {
        return Ok(());
    }
    Err(LabError::Refused(format!(
        "the shell of {} cannot read the guest's first program: {}",
        image.name(),
        output.stderr.trim()
    )))
}

/// Moves the files of an image into a new directory and writes their list.
fn keep(
    work: &Path,
    kept: &Path,
    kernel: String,
    version: String,
    names: &[String],
) -> Result<Image, LabError> {
    let made = |path: &Path| {
        std::fs::create_dir_all(path).map_err(|error| HostError::path("create", path, error))
    };
    made(kept)?;
    for name in names {
        let to = kept.join(name);
        made(to.parent().unwrap_or(kept))?;
        std::fs::rename(work.join(name), &to)
            .map_err(|error| HostError::path("move", &work.join(name), error))?;
    }
    let parts = names.iter().map(|name| described(kept, name));
    let manifest = Manifest {
        kernel,
        version,
        parts: parts.collect::<Result<_, LabError>>()?,
    };
    let path = kept.join(MANIFEST);
    let text = serde_json::to_vec_pretty(&manifest).unwrap_or_default();
    std::fs::write(&path, text).map_err(|error| HostError::path("write", &path, error))?;
    for name in names.iter().map(String::as_str).chain([MANIFEST]) {
        let path = kept.join(name);
        std::fs::File::open(&path)
            // The rename that follows may be on disk before the data otherwise.
            .and_then(|file| file.sync_all())
            .map_err(|error| HostError::path("sync", &path, error))?;
    }
    Ok(Image {
        dir: kept.to_path_buf(),
        manifest,
    })
}

fn described(dir: &Path, name: &str) -> Result<Part, LabError> {
    let path = dir.join(name);
    let failed = |error: std::io::Error| HostError::path("read", &path, error);
    let mut hash = blake3::Hasher::new();
    let file = std::fs::File::open(&path).map_err(failed)?;
    hash.update_reader(&file).map_err(failed)?;
    Ok(Part {
        name: name.to_string(),
        bytes: hash.count(),
        blake3: hash.finalize().to_hex().to_string(),
    })
}

#[cfg(test)]
mod tests;
