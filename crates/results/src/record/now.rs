//! What a run is doing at this moment, for programs that watch it from outside.
//!
//! `now.json` beside the log (`docs/formats/now.md`) is for watching only: no verdict uses it, it
//! may be missing, and it is removed when the run ends. It is overwritten in place, so an update
//! costs the disk only a page that is written back once in a while. A reader takes a shared lock;
//! the writer skips a turn rather than wait for it.
//!
//! Units: nanoseconds, seconds, operations, bytes.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use stackrace_base::owned::OwnDir;

/// Name of the file in its run's directory.
const NOW: &str = "now.json";
/// Version of the file's format.
const FORMAT: u32 = 2;
/// Most bytes that are read: a file of this name need not be ours.
const BYTES_MAX: u64 = 64 << 10;

/// Number of attempts at the lock of a reader.
const LOCK_TRIES: u32 = 100;

/// The present work of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Now {
    /// Version of the format.
    pub format: u32,
    /// The process that runs it.
    pub pid: u32,
    /// Time of this news, RFC 3339.
    pub at: String,
    /// Round, from 1.
    pub round: u32,
    /// Configuration by index.
    pub configuration: usize,
    /// Workload by index; `None` while a stack is set up.
    pub workload: Option<usize>,
    /// `set up`, `prepare`, `settle`, or the name of the phase.
    pub part: String,
    /// Time since the part began, ns.
    pub elapsed_ns: u64,
    /// Operations of the part so far.
    pub ops: u64,
    /// Bytes it moved so far.
    pub bytes: u64,
    /// Operations per second since the last time this was written.
    pub ops_per_s: f64,
    /// Bytes per second since then.
    pub bytes_per_s: f64,
    /// Unit of `recent`: `B/s`, or `op/s` where the part moves no bytes.
    pub unit: String,
    /// The last rates of the part, oldest first.
    pub recent: Vec<f64>,
    /// The run takes at most so much longer, s; `None` if it cannot be told yet.
    pub left_s: Option<f64>,
}

/// The file while its run goes on; removed when dropped.
#[derive(Debug)]
pub struct NowFile {
    file: File,
    dir: OwnDir,
    length: usize,
}

impl NowFile {
    /// Makes the file in a run's directory. Returns `None` where the system refuses, for a run goes
    /// on without watchers.
    pub(super) fn create(dir: OwnDir) -> Option<Self> {
        // A killed run leaves one behind, and a reader may still have it open: do not write over it.
        let _ = dir.remove_file(NOW);
        let file = dir.create_to_overwrite(NOW).ok()?;
        Some(Self {
            file,
            dir,
            length: 0,
        })
    }

    /// Writes the news over those before, unless a reader has them open just then.
    pub fn write(&mut self, now: &Now) {
        let now = Now {
            format: FORMAT,
            ..now.clone()
        };
        let Ok(mut text) = serde_json::to_vec(&now) else {
            return;
        };
        // Blanks over the rest of a longer text: cutting the file would be work for the disk.
        let padded = self.length.max(text.len() + 1) - 1;
        text.resize(padded, b' ');
        text.push(b'\n');
        if flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return;
        }
        if self.file.write_all_at(&text, 0).is_ok() {
            self.length = text.len();
        }
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

impl Drop for NowFile {
    fn drop(&mut self) {
        let _ = self.dir.remove_file(NOW);
    }
}

/// The news in a run's directory; `None` if there are none, or they cannot be read.
pub(super) fn read(dir: &OwnDir) -> Option<Now> {
    let file = dir.read(NOW).ok()?;
    // The writer holds its lock for the time of one write. Another process may hold one for ever.
    let locked = |_: &u32| flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
    (0..LOCK_TRIES).find(|tried| {
        if *tried > 0 {
            std::thread::yield_now();
        }
        locked(tried)
    })?;
    let mut text = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut text).ok()?;
    let now: Now = serde_json::from_slice(&text).ok()?;
    // Another version may mean something else by the same words; news are not worth a guess.
    (now.format == FORMAT).then_some(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(dir: &tempfile::TempDir) -> OwnDir {
        OwnDir::open(dir.path()).unwrap()
    }

    fn news(part: &str) -> Now {
        Now {
            pid: 7,
            part: part.to_owned(),
            recent: vec![1.5, 2.5],
            ..Now::default()
        }
    }

    #[test]
    fn the_last_news_are_read_whatever_was_there_before() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(&own(&dir)), None);
        std::fs::write(dir.path().join(NOW), "left by a killed run").unwrap();
        let mut file = NowFile::create(own(&dir)).unwrap();
        for part in ["a part with a long name", "short", "prepare"] {
            file.write(&news(part));
            let read = read(&own(&dir)).unwrap();
            assert_eq!((read.part.as_str(), read.format), (part, FORMAT));
            assert_eq!(read.recent, [1.5, 2.5]);
        }
        drop(file);
        assert_eq!(read(&own(&dir)), None);
        assert!(!dir.path().join(NOW).exists());
    }

    #[test]
    fn news_of_another_version_are_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let old = Now {
            format: 1,
            ..news("prepare")
        };
        std::fs::write(dir.path().join(NOW), serde_json::to_vec(&old).unwrap()).unwrap();
        assert_eq!(read(&own(&dir)), None);
    }

    #[test]
    fn a_reader_never_sees_half_of_the_news() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = NowFile::create(own(&dir)).unwrap();
        file.write(&news("before"));
        let reader = File::open(dir.path().join(NOW)).unwrap();
        flock(&reader, FlockOperation::LockShared).unwrap();
        file.write(&news("during a read"));
        drop(reader);
        assert_eq!(read(&own(&dir)).unwrap().part, "before");
        file.write(&news("after"));
        assert_eq!(read(&own(&dir)).unwrap().part, "after");
    }
}
