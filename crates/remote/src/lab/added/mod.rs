//! Systems that the user brought as images of disks: kept beside the images that the recipe makes.
//!
//! Each has a directory of its own below `added` in the cache: `disk`, the file that the user brought, and
//! `about.json`, which says what it is, and appears last. The image is never written to: a guest writes to a
//! file over it ([`super::added_guest`]), which goes with the guest.

mod kept;
mod looked;

pub use kept::Keeping;
pub use looked::LookedImage;

pub use super::added_error::AddedError;
use super::added_error::{HASH_LEN, NAME_MAX};
use super::error::LabError;
use super::system;
use serde::{Deserialize, Serialize};
use stackrace_base::owned::OwnDir;
use std::path::{Path, PathBuf};

/// Directory of them in the cache.
const DIRECTORY: &str = "added";

/// The file that says what one is.
const ABOUT: &str = "about.json";

/// The image itself.
const DISK: &str = "disk";

/// What is known of a system that was added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AboutAdded {
    /// Name that `--system` takes.
    pub name: String,
    /// BLAKE3 of the file that the user brought.
    pub blake3: String,
    /// Length of that file.
    pub bytes: u64,
    /// Format of that file, as QEMU names it.
    pub format: String,
    /// User who logs in there.
    pub login: String,
    /// The ssh command, with the options that let this user in.
    pub ssh: Vec<String>,
    /// Name of its kernel, as `uname -s` says it.
    pub kernel: String,
    /// The same with its release and its processor.
    pub described: String,
}

/// A system that was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedSystem {
    dir: PathBuf,
    /// What is known of it.
    pub about: AboutAdded,
}

impl AddedSystem {
    /// One whose image lies in a directory; it has no name in the cache yet.
    pub fn at(dir: &Path, about: AboutAdded) -> Self {
        Self {
            dir: dir.to_owned(),
            about,
        }
    }

    /// Directory of its files.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Path of the file that the user brought, as it is kept.
    pub fn disk(&self) -> PathBuf {
        self.dir.join(DISK)
    }

    /// `freebsd-14-57ab01c9f3d2`: its name and what its image holds.
    pub fn image_name(&self) -> String {
        let hash = self.about.blake3.get(..HASH_LEN).unwrap_or_default();
        format!("{}-{hash}", self.about.name)
    }

    /// Reads its image again.
    ///
    /// # Errors
    /// It is not what was added.
    pub fn verify(&self) -> Result<(), LabError> {
        match hashed(&self.disk()) {
            Ok(hash) if hash == self.about.blake3 => Ok(()),
            _ => Err(AddedError::Damaged(self.about.name.clone()).into()),
        }
    }

    fn open(dir: &Path, name: &str) -> Result<Self, LabError> {
        // Root starts what is in it: nothing of it may be another user's.
        let own = OwnDir::open(dir)?;
        let damaged = || AddedError::Damaged(name.to_owned());
        let about = own.read_all(ABOUT).map_err(|_| damaged())?;
        let about: AboutAdded = serde_json::from_slice(&about).map_err(|_| damaged())?;
        // By its length alone: hashing gigabytes before each run would take long.
        let whole =
            own.read(DISK).is_ok() && own.state(DISK).map(|it| it.bytes) == Some(about.bytes);
        match whole && about.name == name {
            true => Ok(Self::at(dir, about)),
            false => Err(damaged().into()),
        }
    }
}

/// The hash of a file's content.
fn hashed(path: &Path) -> std::io::Result<String> {
    let mut hash = blake3::Hasher::new();
    hash.update_reader(std::fs::File::open(path)?)?;
    Ok(hash.finalize().to_hex().to_string())
}

/// The directory of a system, added or not.
pub fn dir_of(cache: &Path, name: &str) -> PathBuf {
    cache.join(DIRECTORY).join(name)
}

/// Names of the systems that were added, those with a damaged file included.
pub fn names(cache: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(cache.join(DIRECTORY));
    let entries = entries.into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| check_name(name).is_ok()).collect();
    names.sort_unstable();
    names
}

/// The system of a name; `None` if none was added under it.
///
/// # Errors
/// A file of it is missing, or is not the user's own.
pub fn find(cache: &Path, name: &str) -> Result<Option<AddedSystem>, LabError> {
    match names(cache).iter().any(|known| known == name) {
        true => AddedSystem::open(&dir_of(cache, name), name).map(Some),
        false => Ok(None),
    }
}

/// Refuses a name that cannot be one.
///
/// # Errors
/// Why not.
pub fn check_name(name: &str) -> Result<(), AddedError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    if !begins || !name.chars().all(plain) || name.len() > NAME_MAX {
        return Err(AddedError::Name(name.to_owned()));
    }
    match system::named(name) {
        Some(system) => Err(AddedError::OfTheLab(system)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
