//! Writing, rewriting and deleting files by a seed, until a file system is as full and as old as asked.

use crate::stack::aged::profile::Profile;
use rustix::fs::{Mode, OFlags, statvfs};
use stackrace_base::time::{Clock as _, SystemClock};
use stackrace_base::unit;
use stackrace_foundation::foundation::LayerError;
use stackrace_machine::host::HostError;
use stackrace_system::draw::{Draw, derive};
use stackrace_system::syncfs;
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes written between two times that everything is written back: space is given to files when they are
/// written back, and in a file system in use that happens again and again.
const WRITTEN_BACK: u64 = 64 << 20;

/// Blocks of file systems, from and to: the sizes of files are rounded up to one to tell how much room they take.
const BLOCKS: [u64; 2] = [512, 4096];

/// Bytes that are drawn; twice the longest write.
const POOL: usize = 4 << 20;

/// Files in one directory.
const IN_DIRECTORY: u64 = 64;

/// Part of the file system that the largest file may take: an eighth.
const LARGEST: u64 = 8;

/// Of so many changes one rewrites a file in its place; the others delete files and make a new one.
const REWRITES: u64 = 5;

/// How long is worked before it is told how long all takes.
const FIRST_LOOK: Duration = Duration::from_secs(5);

/// A level and an age, as a study asks for them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct AskedAge {
    /// The part of the file system that is full, 0 to 1.
    pub(super) to: f64,
    /// How many times its capacity is written after that.
    pub(super) times: f64,
    /// Which files.
    pub(super) profile: Profile,
    /// Longest time that it may take.
    pub(super) within: Duration,
}

/// Room in a file system, B, as df(1) counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) used: u64,
    /// What users can have, used or not.
    pub(super) all: u64,
    /// Unit in which files take it.
    pub(super) block: u64,
}

impl Room {
    /// Room in the file system of a directory.
    ///
    /// # Errors
    /// It does not tell.
    pub(super) fn of(directory: &Path) -> Result<Self, LayerError> {
        let found = statvfs(directory).map_err(failed("ask the free space of", directory))?;
        let used = found.f_blocks.saturating_sub(found.f_bfree);
        let all = used.saturating_add(found.f_bavail);
        Ok(Self {
            used: used.saturating_mul(found.f_frsize),
            all: all.saturating_mul(found.f_frsize),
            // That of a share may be any number.
            block: found.f_frsize.clamp(BLOCKS[0], BLOCKS[1]),
        })
    }

    /// The part that is used, 0 to 1.
    pub(super) fn full(&self) -> f64 {
        self.used as f64 / self.all.max(1) as f64
    }
}

fn failed<E: Into<std::io::Error>>(
    what: &'static str,
    path: &Path,
) -> impl FnOnce(E) -> LayerError {
    move |error| HostError::path(what, path, error.into()).into()
}

/// One file: its number, and its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AgedFile {
    number: u64,
    pub(super) bytes: u64,
}

/// Everything that was made.
pub(super) struct Aged {
    directory: PathBuf,
    pub(super) files: Vec<AgedFile>,
    /// Bytes that the files take, in whole blocks.
    taken: u64,
    block: u64,
    /// Bytes written in all.
    pub(super) written: u64,
    /// Bytes written since everything was written back.
    dirty: u64,
    numbers: u64,
    /// Digest of all that was done: the same one means the same content.
    done: blake3::Hasher,
    seed: u64,
    /// Random bytes: parts of them are written, because to draw each byte would take longer than writing it.
    pool: Vec<u8>,
}

impl Aged {
    /// Fills and ages the file system of an empty directory.
    ///
    /// # Errors
    /// The system refuses, or it takes longer than it may.
    pub(super) fn made(
        directory: &Path,
        asked: &AskedAge,
        seed: u64,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Self, LayerError> {
        let room = Room::of(directory)?;
        let budget = ((asked.to * room.all as f64) as u64).saturating_sub(room.used);
        let more = (asked.times * room.all as f64) as u64;
        let mut clock = Clock::new(asked.within, budget.saturating_add(more), stopped);
        let mut aged = Self {
            directory: directory.to_path_buf(),
            files: Vec::new(),
            taken: 0,
            block: room.block,
            written: 0,
            dirty: 0,
            numbers: 0,
            done: blake3::Hasher::new(),
            seed,
            pool: pool(seed, POOL),
        };
        let mut draw = Draw::new(seed, 1);
        let largest = (budget / LARGEST).max(1);
        while aged.taken.saturating_add(aged.block) <= budget {
            // The last one is cut to what is left, so that the level is met to a block.
            let size = asked.profile.size(&mut draw, largest);
            aged.make(size.min(budget - aged.taken))?;
            aged.write_back(&mut clock)?;
        }
        // The age counts from there.
        let filled = aged.written;
        while aged.written - filled < more && !aged.files.is_empty() {
            // By the seed, so that each set-up ages in the same way.
            if asked.profile.piece.is_some() || draw.below(REWRITES) == 0 {
                aged.rewrite(&mut draw, asked.profile.piece)?;
            } else {
                let size = asked.profile.size(&mut draw, largest);
                aged.replace(&mut draw, size, budget)?;
            }
            aged.write_back(&mut clock)?;
        }
        aged.sync()?;
        Ok(aged)
    }

    /// The path of a file of it.
    pub(super) fn path(&self, file: &AgedFile) -> PathBuf {
        let folder = format!("d{}", file.number / IN_DIRECTORY);
        self.directory
            .join(folder)
            .join(format!("f{}", file.number))
    }

    /// Digest of all that was done, the first digits.
    pub(super) fn digest(&self) -> String {
        self.done.finalize().to_hex()[..16].to_owned()
    }

    /// Makes a new file.
    fn make(&mut self, bytes: u64) -> Result<(), LayerError> {
        let file = AgedFile {
            number: self.numbers,
            bytes,
        };
        self.numbers += 1;
        let path = self.path(&file);
        let folder = path.parent().unwrap_or(&self.directory);
        if file.number.is_multiple_of(IN_DIRECTORY) {
            std::fs::create_dir(folder).map_err(failed("create directory", folder))?;
        }
        let made = OpenOptions::new().write(true).create_new(true).open(&path);
        let mut made = made.map_err(failed("create", &path))?;
        self.write(&mut made, &path, bytes)?;
        self.note(0, &[file.number, bytes]);
        self.files.push(file);
        self.taken += self.room_of(bytes);
        Ok(())
    }

    /// Deletes files until a new one has room, and makes that.
    fn replace(&mut self, draw: &mut Draw, bytes: u64, budget: u64) -> Result<(), LayerError> {
        // First, so that a file system which is nearly full has room for the new one.
        while self.taken.saturating_add(self.room_of(bytes)) > budget && !self.files.is_empty() {
            let file = self.files.swap_remove(self.drawn(draw));
            let path = self.path(&file);
            std::fs::remove_file(&path).map_err(failed("remove", &path))?;
            self.note(1, &[file.number]);
            self.taken -= self.room_of(file.bytes);
        }
        self.make(bytes)
    }

    /// Rewrites a piece of a file, or a whole one, in its place.
    fn rewrite(&mut self, draw: &mut Draw, piece: Option<u64>) -> Result<(), LayerError> {
        let file = self.files[self.drawn(draw)];
        let path = self.path(&file);
        let (at, bytes) = match piece {
            Some(piece) => {
                let at = draw.below(file.bytes.div_ceil(piece)) * piece;
                (at, piece.min(file.bytes - at))
            }
            None => (0, file.bytes),
        };
        let opened = OpenOptions::new().write(true).open(&path);
        let mut opened = opened.map_err(failed("open", &path))?;
        opened
            .seek(SeekFrom::Start(at))
            .map_err(failed("seek in", &path))?;
        self.write(&mut opened, &path, bytes)?;
        self.note(2, &[file.number, at, bytes]);
        Ok(())
    }

    /// Room that a file of so many bytes takes.
    fn room_of(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.block)
    }

    fn drawn(&self, draw: &mut Draw) -> usize {
        draw.below(self.files.len() as u64) as usize
    }

    /// Writes bytes that nothing compresses; which ones follows from the seed and from what was written before.
    fn write(&mut self, file: &mut File, path: &Path, bytes: u64) -> Result<(), LayerError> {
        let mut draw = Draw::new(derive(self.seed, 2), self.written);
        // From anywhere in the first half, so that no two files begin alike.
        let half = self.pool.len() as u64 / 2;
        let mut left = bytes;
        while left > 0 {
            let now = left.min(half) as usize;
            let from = draw.below(half) as usize;
            file.write_all(&self.pool[from..from + now])
                .map_err(failed("fill", path))?;
            left -= now as u64;
        }
        self.written += bytes;
        self.dirty += bytes;
        Ok(())
    }

    // Numbers and sizes are enough: the bytes follow from them and the seed.
    fn note(&mut self, what: u64, about: &[u64]) {
        for word in std::iter::once(&what).chain(about) {
            self.done.update(&word.to_le_bytes());
        }
    }

    /// Writes back what is due, and looks at the time.
    fn write_back(&mut self, clock: &mut Clock<'_>) -> Result<(), LayerError> {
        if self.dirty >= WRITTEN_BACK {
            self.sync()?;
            clock.check(self.written)?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), LayerError> {
        self.dirty = 0;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&self.directory, flags, Mode::empty());
        let opened = opened.map_err(failed("open", &self.directory))?;
        syncfs(&opened).map_err(failed("write back", &self.directory))
    }
}

/// Random bytes of a seed, a multiple of 8.
fn pool(seed: u64, bytes: usize) -> Vec<u8> {
    let mut draw = Draw::new(seed, 3);
    let words = (0..bytes / 8).flat_map(|_| draw.bits().to_le_bytes());
    words.collect()
}

/// Time that may be taken, and bytes to be written in all.
struct Clock<'a> {
    begun_ns: u64,
    within: Duration,
    bytes: u64,
    /// Says that the user does not want it any more.
    stopped: &'a dyn Fn() -> bool,
}

impl<'a> Clock<'a> {
    fn new(within: Duration, bytes: u64, stopped: &'a dyn Fn() -> bool) -> Self {
        Self {
            begun_ns: SystemClock.now_ns(),
            within,
            bytes,
            stopped,
        }
    }

    /// Refuses what does not end in time, as soon as that can be told.
    fn check(&self, written: u64) -> Result<(), LayerError> {
        if (self.stopped)() {
            return Err(LayerError::refused(
                "stopped while the file system was filled and aged",
                "",
            ));
        }
        too_long(
            Duration::from_nanos(SystemClock.now_ns().saturating_sub(self.begun_ns)),
            self.within,
            written as f64 / self.bytes.max(1) as f64,
        )
    }
}

/// Part of the time foretold that is advised.
const MORE: f64 = 1.2;

/// Refuses what would take longer than it may, after a time in which a part of it was done.
fn too_long(taken: Duration, within: Duration, done: f64) -> Result<(), LayerError> {
    let expected = taken.as_secs_f64() / done.max(f64::MIN_POSITIVE);
    if taken < FIRST_LOOK.min(within) || expected <= within.as_secs_f64() {
        return Ok(());
    }
    // In one unit, as a study takes it; and more than the first seconds foretell, which are the fastest.
    let minutes = (expected * MORE / 60.0).ceil();
    let [expected, within] = [expected, within.as_secs_f64()].map(|s| unit::time_ns(s * 1e9));
    Err(LayerError::refused(
        format!("to fill and age the file system takes about {expected}, and it may take {within}"),
        format!(
            "write within = \"{minutes} min\" or more, a smaller file system, or, of `age`, a smaller `written`"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::aged::profile::PROFILE;
    use std::collections::BTreeMap;

    /// All files of a directory with their content.
    fn content(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut all = BTreeMap::new();
        for folder in std::fs::read_dir(directory).unwrap() {
            for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
                let path = file.unwrap().path();
                let inside = path.strip_prefix(directory).unwrap().to_path_buf();
                all.insert(inside, std::fs::read(&path).unwrap());
            }
        }
        all
    }

    /// Nothing yet, in a directory.
    fn empty(directory: &Path, seed: u64) -> Aged {
        Aged {
            directory: directory.to_path_buf(),
            files: Vec::new(),
            taken: 0,
            block: 4096,
            written: 0,
            dirty: 0,
            numbers: 0,
            done: blake3::Hasher::new(),
            seed,
            pool: pool(seed, 8192),
        }
    }

    /// Works in a directory as if its file system were as small as the files make it.
    fn worked(word: &str, seed: u64) -> (BTreeMap<PathBuf, Vec<u8>>, String) {
        let base = tempfile::tempdir().unwrap();
        let profile = PROFILE.of_word(word).unwrap();
        let mut aged = empty(base.path(), seed);
        let mut draw = Draw::new(seed, 1);
        for _ in 0..40 {
            let size = profile.size(&mut draw, 100_000);
            aged.replace(&mut draw, size, 1 << 20).unwrap();
            aged.rewrite(&mut draw, profile.piece).unwrap();
        }
        aged.sync().unwrap();
        assert!(aged.taken <= 1 << 20);
        (content(base.path()), aged.digest())
    }

    #[test]
    fn the_same_seed_gives_the_same_content_byte_for_byte() {
        for word in ["home", "images", "database"] {
            let (first, digest) = worked(word, 7);
            assert!(first.len() > 5, "{}", first.len());
            assert!((first.clone(), digest.clone()) == worked(word, 7), "{word}");
            assert!(first != worked(word, 8).0 && digest != worked(word, 8).1);
        }
    }

    #[test]
    fn what_is_stopped_writes_no_more() {
        let base = tempfile::tempdir().unwrap();
        let hour = Duration::from_secs(3600);
        let mut aged = empty(base.path(), 7);
        aged.dirty = WRITTEN_BACK;
        let said = aged.write_back(&mut Clock::new(hour, 1, &|| true));
        assert!(said.unwrap_err().to_string().contains("stopped"));
        aged.dirty = WRITTEN_BACK;
        aged.write_back(&mut Clock::new(hour, 1, &|| false))
            .unwrap();
    }

    #[test]
    fn an_age_that_cannot_be_reached_in_time_is_refused_with_how_long_it_takes() {
        let minute = Duration::from_secs(60);
        assert!(
            too_long(Duration::from_secs(4), minute, 0.001).is_ok(),
            "too early to tell"
        );
        assert!(too_long(Duration::from_secs(6), minute, 0.2).is_ok());
        let refused = too_long(Duration::from_secs(6), minute, 0.05).unwrap_err();
        let said = refused.to_string();
        assert!(
            said.contains("about 2 min") && said.contains("may take"),
            "{said}"
        );
        // What is advised can be typed.
        let next = refused.next();
        let advised = next.split('"').nth(1).unwrap();
        let ns = unit::parse_time_ns(advised).unwrap();
        assert!(ns > 120_000_000_000, "{said}");
        let hours = too_long(Duration::from_secs(60), minute, 0.001).unwrap_err();
        assert!(hours.next().contains("\"1200 min\""), "{}", hours.next());
        let over = too_long(Duration::from_secs(61), minute, 0.99);
        assert!(over.is_err(), "it is over");
    }
}
