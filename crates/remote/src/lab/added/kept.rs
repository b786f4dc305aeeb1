//! An image copied into the cache: with its holes, hashed as it is read, and under its name when it is whole.

use super::super::error::LabError;
use super::{ABOUT, AboutAdded, AddedError, AddedSystem, DIRECTORY, DISK, LookedImage, dir_of};
use stackrace_base::owned::OwnDir;
use stackrace_machine::host::{Host, HostError};
use stackrace_machine::journal::{Journal, Undo};
use std::fs::File;
use std::io::{Read, Result, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Bytes that are copied at a time.
const BLOCK: usize = 1 << 20;

/// Place where an image is copied to, and the means.
pub struct Keeping<'a> {
    /// This machine.
    pub host: &'a dyn Host,
    /// Journal that is told first of what is created.
    pub journal: &'a Journal,
    /// Place of all images.
    pub cache: &'a Path,
    /// Unique: names what is made meanwhile.
    pub mark: &'a str,
    /// Returns true if the user asks to stop.
    pub stopped: &'a dyn Fn() -> bool,
}

impl Keeping<'_> {
    /// Makes the directory in which an image is kept until it is known to be of use.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn begin(&self) -> std::result::Result<PathBuf, LabError> {
        // Root would put what it later starts where another user can change it.
        OwnDir::open_or_make(&self.cache.join(DIRECTORY))?;
        // In the cache itself, so that it can be renamed. No name begins with a point.
        let work = self
            .cache
            .join(DIRECTORY)
            .join(format!(".stackrace-{}-added", self.mark));
        self.journal
            .will("lab add", Undo::RemoveTree(work.clone()))?;
        self.host.create_dir(&work)?;
        Ok(work)
    }

    /// Copies an image there; returns what it is, as far as its file says.
    ///
    /// # Errors
    /// There is no room, it cannot be read or written, or the user stops it.
    pub fn copy(&self, image: &LookedImage, work: &Path) -> std::result::Result<String, LabError> {
        let free = self.host.free_bytes(work)?;
        if free < image.held_bytes {
            return Err(AddedError::NoRoom {
                path: image.path.clone(),
                bytes: image.held_bytes,
                dir: self.cache.to_owned(),
                free,
            }
            .into());
        }
        let to = work.join(DISK);
        let failed = |error| HostError::path("copy the image to", &to, error);
        let mut from =
            File::open(&image.path).map_err(|error| HostError::path("read", &image.path, error))?;
        let mut file = File::create(&to).map_err(failed)?;
        let hash = copied(&mut from, &mut file, self.stopped).map_err(failed)?;
        hash.ok_or(LabError::Interrupted)
    }

    /// Gives what is in `work` its name.
    ///
    /// # Errors
    /// There is one of this name by now, or it cannot be written.
    pub fn name(
        &self,
        work: &Path,
        about: AboutAdded,
    ) -> std::result::Result<AddedSystem, LabError> {
        let dir = dir_of(self.cache, &about.name);
        let path = work.join(ABOUT);
        let text = serde_json::to_vec_pretty(&about).unwrap_or_default();
        let kept = File::create(&path).and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()
        });
        kept.map_err(|error| HostError::path("write", &path, error))?;
        // A directory with files in it is not replaced: of two that add the same name, one is refused.
        std::fs::rename(work, &dir).map_err(|error| HostError::path("name", &dir, error))?;
        Ok(AddedSystem { dir, about })
    }
}

/// Copies a file, leaving out what is zero; its BLAKE3, or `None` if it was stopped.
fn copied(from: &mut File, to: &mut File, stopped: &dyn Fn() -> bool) -> Result<Option<String>> {
    let mut hash = blake3::Hasher::new();
    let mut block = vec![0; BLOCK];
    loop {
        if stopped() {
            return Ok(None);
        }
        let read = from.read(&mut block)?;
        if read == 0 {
            break;
        }
        hash.update(&block[..read]);
        match block[..read].iter().all(|&byte| byte == 0) {
            true => drop(to.seek(SeekFrom::Current(read as i64))?),
            false => to.write_all(&block[..read])?,
        }
    }
    let bytes = to.stream_position()?;
    to.set_len(bytes)?;
    to.sync_all()?;
    Ok(Some(hash.finalize().to_hex().to_string()))
}

#[cfg(test)]
mod tests {
    use super::super::hashed;
    use super::*;
    use stackrace_machine::host::local::LocalHost;
    use std::os::unix::fs::MetadataExt;
    use std::sync::Arc;

    #[test]
    fn a_copy_has_the_same_bytes_and_keeps_the_holes() {
        let dir = tempfile::tempdir().unwrap();
        let [image, copy] = ["image", "copy"].map(|name| dir.path().join(name));
        let mut file = File::create(&image).unwrap();
        file.write_all(b"begins").unwrap();
        file.seek(SeekFrom::Start(40 << 20)).unwrap();
        file.write_all(b"ends").unwrap();
        // It ends with a hole.
        file.set_len((64 << 20) + 7).unwrap();
        let mut to = File::create(&copy).unwrap();
        let copied = |to: &mut File, stop: bool| {
            copied(&mut File::open(&image).unwrap(), to, &|| stop).unwrap()
        };
        let hash = copied(&mut to, false).unwrap();
        assert_eq!(hash, hashed(&image).unwrap());
        assert_eq!(hash, hashed(&copy).unwrap());
        assert_eq!(copy.metadata().unwrap().len(), (64 << 20) + 7);
        // `stat` counts blocks of 512 bytes.
        assert!(copy.metadata().unwrap().blocks() * 512 < 8 << 20);
        assert_eq!(copied(&mut to, true), None);
    }

    /// Calls with the means to keep images in a directory of the test's own.
    fn keeping<T>(dir: &Path, work: impl FnOnce(&Keeping<'_>) -> T) -> T {
        let journal = Journal::create(&dir.join("journal.jsonl")).unwrap();
        work(&Keeping {
            host: &LocalHost::new(Arc::new(|_| ())),
            journal: &journal,
            cache: dir,
            mark: "0123456789abcdef",
            stopped: &|| false,
        })
    }

    #[test]
    fn an_image_for_which_there_is_no_room_is_refused_before_it_is_copied() {
        let dir = tempfile::tempdir().unwrap();
        let image = LookedImage {
            path: dir.path().join("image"),
            bytes: u64::MAX,
            held_bytes: u64::MAX,
            format: "raw".to_owned(),
        };
        // Nothing is there to be copied: that it is refused for its size shows that it was not tried.
        let refused = keeping(dir.path(), |it| it.copy(&image, dir.path())).unwrap_err();
        assert!(refused.to_string().contains("free"), "{refused}");
        assert!(
            refused.next().contains("XDG_CACHE_HOME"),
            "{}",
            refused.next()
        );
        assert!(!dir.path().join(DISK).exists());
    }

    #[test]
    fn of_two_that_add_one_name_at_the_same_time_one_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let about = |blake3: &str| AboutAdded {
            name: "a".to_owned(),
            blake3: blake3.to_owned(),
            bytes: 0,
            format: "raw".to_owned(),
            login: "root".to_owned(),
            ssh: Vec::new(),
            kernel: String::new(),
            described: String::new(),
        };
        let works = ["first", "second"].map(|name| dir.path().join(DIRECTORY).join(name));
        works
            .iter()
            .for_each(|work| std::fs::create_dir_all(work).unwrap());
        keeping(dir.path(), |it| {
            assert_eq!(it.name(&works[0], about("1")).unwrap().about, about("1"));
            assert!(it.name(&works[1], about("2")).is_err());
        });
        let kept = std::fs::read_to_string(dir_of(dir.path(), "a").join(ABOUT)).unwrap();
        let kept: AboutAdded = serde_json::from_str(&kept).unwrap();
        assert_eq!(kept, about("1"));
    }
}
