//! One run's log while it is written.
//!
//! A line is either whole or not there. The last line may be torn by a kill or a power cut, so it
//! counts only with its line break; whoever goes on with the log first moves such a rest aside
//! (`log.torn`) and cuts it off. What must survive a power cut (a trial, the end of a round, a
//! look, the end) is on the disk before [`Log::append`] returns.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};

use super::error::RecordError;
use crate::event::{Event, Line, RunStarted};
use crate::time::Clock;

/// Name of the log in its run's directory.
pub(super) const LOG: &str = "log.jsonl";
/// Where the rest of a torn last line is kept.
const TORN: &str = "log.torn";
/// The study as it was given, for people who look into the directory.
const STUDY: &str = "study.toml";

/// The log of one run, open for writing; no second writer is admitted while it lives.
pub(crate) struct Log {
    tail: Tail<File>,
    path: PathBuf,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("path", &self.path).finish()
    }
}

impl Log {
    /// Makes the run's directory `dir` (which must not exist), its log with the first line, and a
    /// copy of the study; all of it is on the disk when this returns. Where that fails, the
    /// directory is removed again.
    pub(super) fn create(
        dir: &Path,
        head: RunStarted,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, Line), RecordError> {
        std::fs::create_dir(dir).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => RecordError::Exists {
                run: head.run.clone(),
            },
            _ => RecordError::system("create", dir, source),
        })?;
        Self::create_in(dir, head, clock).inspect_err(|_| {
            // Best effort: a directory without a log is ignored by every reader.
            for name in [STUDY, LOG] {
                let _ = std::fs::remove_file(dir.join(name));
            }
            let _ = std::fs::remove_dir(dir);
        })
    }

    fn create_in(
        dir: &Path,
        head: RunStarted,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, Line), RecordError> {
        let study = dir.join(STUDY);
        std::fs::write(&study, &head.study)
            .map_err(|source| RecordError::system("write", &study, source))?;
        let path = dir.join(LOG);
        let file = OpenOptions::new()
            .create_new(true)
            .append(true)
            .open(&path)
            .map_err(|source| RecordError::system("create", &path, source))?;
        lock(&file, &path)?;
        let mut log = Self {
            tail: Tail::new(file, 0),
            path,
            clock,
        };
        let line = log.append(Event::RunStarted(Box::new(head)))?;
        sync_dir(dir)?;
        if let Some(parent) = dir.parent() {
            sync_dir(parent)?;
        }
        Ok((log, line))
    }

    /// Goes on with the log in `dir`. Bytes after the last whole line are moved to `log.torn`;
    /// the number of them is returned.
    pub(super) fn reopen(dir: &Path, clock: Arc<dyn Clock>) -> Result<(Self, u64), RecordError> {
        let path = dir.join(LOG);
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(&path)
            .map_err(|source| RecordError::system("open", &path, source))?;
        lock(&file, &path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(|source| RecordError::system("read", &path, source))?;
        let (whole, torn) = split_torn(&bytes);
        if whole.is_empty() {
            return Err(RecordError::NoHead {
                path,
                why: "its first line is not complete".to_owned(),
            });
        }
        let length = whole.len() as u64;
        if !torn.is_empty() {
            save_torn(dir, torn)?;
            file.set_len(length)
                .and_then(|()| file.sync_all())
                .map_err(|source| RecordError::system("cut the torn line off", &path, source))?;
        }
        let log = Self {
            tail: Tail::new(file, length),
            path,
            clock,
        };
        Ok((log, torn.len() as u64))
    }

    /// Writes one event, with the time of day, and gives back the line as it was written.
    ///
    /// A trial, the end of a round, a look and the beginning and end of a run are on the disk when
    /// this returns; anything else gets there with the next of those.
    ///
    /// # Errors
    /// The event is then not in the log, and the log is as it was before; only after
    /// [`RecordError::Broken`] its end is unknown and it takes no more.
    pub(crate) fn append(&mut self, event: Event) -> Result<Line, RecordError> {
        let line = Line {
            at: self.clock.today(),
            event,
        };
        let mut text = serde_json::to_string(&line).map_err(|error| RecordError::Unreadable {
            why: error.to_string(),
        })?;
        // A figure that is not a number would be written as null: better to hear of it now than
        // to find a line that nobody can read when the run is over.
        serde_json::from_str::<Line>(&text).map_err(|error| RecordError::Unreadable {
            why: error.to_string(),
        })?;
        text.push('\n');
        self.tail
            .append(text.as_bytes(), durable(&line.event))
            .map_err(|failure| match failure {
                Failure::System(source) => RecordError::system("write", &self.path, source),
                Failure::Broken => RecordError::Broken {
                    path: self.path.clone(),
                },
            })?;
        Ok(line)
    }
}

/// Whether an event must have reached the disk before the run goes on.
fn durable(event: &Event) -> bool {
    match event {
        Event::RunStarted(_)
        | Event::Trial(_)
        | Event::RoundFinished { .. }
        | Event::Looked { .. }
        | Event::RunEnded { .. } => true,
        Event::Imported(_)
        | Event::RunResumed { .. }
        | Event::RoundStarted { .. }
        | Event::StackRaised { .. }
        | Event::StackLowered { .. }
        | Event::Command(_)
        | Event::Warned { .. } => false,
    }
}

fn lock(file: &File, path: &Path) -> Result<(), RecordError> {
    flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| {
        if errno == rustix::io::Errno::WOULDBLOCK {
            RecordError::Locked {
                path: path.to_path_buf(),
            }
        } else {
            RecordError::system("lock", path, errno.into())
        }
    })
}

/// Whether somebody writes the log in `dir` right now. Only a log that has its first line may be
/// asked: a writer that is about to begin would find the question in its way.
pub(super) fn written(dir: &Path) -> bool {
    let Ok(file) = File::open(dir.join(LOG)) else {
        return false;
    };
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
}

fn sync_dir(dir: &Path) -> Result<(), RecordError> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(|source| RecordError::system("make durable", dir, source))
}

fn save_torn(dir: &Path, torn: &[u8]) -> Result<(), RecordError> {
    let path = dir.join(TORN);
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| {
            file.write_all(torn)?;
            file.write_all(b"\n")?;
            file.sync_all()
        })
        .map_err(|source| RecordError::system("write", &path, source))?;
    sync_dir(dir)
}

/// Splits a log into its whole lines and what a kill or a power cut left behind them.
///
/// Behind the last line break nothing counts, even where it happens to be valid: its writer was
/// never told that it is kept. A whole last line that is no JSON is a rest too: some file systems
/// lengthen a file before its data arrive, and after a power cut the end reads as zeros.
pub(super) fn split_torn(bytes: &[u8]) -> (&[u8], &[u8]) {
    let mut end = line_break_before(bytes, bytes.len());
    while end > 0 {
        let begin = line_break_before(bytes, end - 1);
        if serde_json::from_slice::<serde::de::IgnoredAny>(&bytes[begin..end]).is_ok() {
            break;
        }
        end = begin;
    }
    bytes.split_at(end)
}

/// Position after the last line break in the first `end` bytes; 0: there is none.
fn line_break_before(bytes: &[u8], end: usize) -> usize {
    bytes[..end]
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |at| at + 1)
}

/// What a log is written to: a file, or a disk that fills up in a test.
trait Medium {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    fn cut(&mut self, length: u64) -> io::Result<()>;
    fn sync(&mut self) -> io::Result<()>;
}

impl Medium for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(self, bytes)
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// The end of a log that stays well-formed whatever fails.
struct Tail<M> {
    medium: M,
    /// Bytes of whole lines.
    length: u64,
    /// The end is unknown: nothing more is taken.
    broken: bool,
}

enum Failure {
    System(io::Error),
    Broken,
}

impl<M: Medium> Tail<M> {
    fn new(medium: M, length: u64) -> Self {
        Self {
            medium,
            length,
            broken: false,
        }
    }

    fn append(&mut self, line: &[u8], durable: bool) -> Result<(), Failure> {
        if self.broken {
            return Err(Failure::Broken);
        }
        if let Err(source) = self.write_all(line) {
            self.broken = self.medium.cut(self.length).is_err();
            return Err(Failure::System(source));
        }
        if durable && let Err(source) = self.medium.sync() {
            // After a failed sync nobody knows which pages reached the disk, and a second sync
            // would report success (the kernel forgets the error): cut this line off, take no more.
            let _ = self.medium.cut(self.length);
            self.broken = true;
            return Err(Failure::System(source));
        }
        self.length += line.len() as u64;
        Ok(())
    }

    fn write_all(&mut self, mut rest: &[u8]) -> io::Result<()> {
        while !rest.is_empty() {
            match self.medium.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with room for so many bytes; what does not fit is written in part first.
    struct Disk {
        bytes: Vec<u8>,
        room: usize,
        sync_fails: bool,
    }

    impl Medium for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let fits = bytes.len().min(self.room - self.bytes.len());
            if fits == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.bytes.extend_from_slice(&bytes[..fits]);
            Ok(fits)
        }

        fn cut(&mut self, length: u64) -> io::Result<()> {
            self.bytes.truncate(usize::try_from(length).unwrap());
            Ok(())
        }

        fn sync(&mut self) -> io::Result<()> {
            if self.sync_fails {
                return Err(io::ErrorKind::StorageFull.into());
            }
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_leaves_whole_lines_and_takes_more_when_there_is_room() {
        let lines: [&[u8]; 3] = [b"{\"a\":1}\n", b"{\"bb\":22}\n", b"{\"c\":3}\n"];
        let all: usize = lines.iter().map(|line| line.len()).sum();
        for room in 0..=all {
            let disk = Disk {
                bytes: Vec::new(),
                room,
                sync_fails: false,
            };
            let mut tail = Tail::new(disk, 0);
            let mut expected = Vec::new();
            for line in lines {
                if tail.append(line, true).is_ok() {
                    expected.extend_from_slice(line);
                }
                assert_eq!(tail.medium.bytes, expected, "room {room}");
            }
            assert_eq!(expected.len() == all, room == all);
            tail.medium.room = 10 * all;
            assert!(tail.append(lines[1], true).is_ok());
        }
    }

    #[test]
    fn after_a_failed_sync_nothing_more_is_taken() {
        let disk = Disk {
            bytes: Vec::new(),
            room: 100,
            sync_fails: true,
        };
        let mut tail = Tail::new(disk, 0);
        assert!(matches!(
            tail.append(b"{}\n", true),
            Err(Failure::System(_))
        ));
        tail.medium.sync_fails = false;
        assert!(matches!(tail.append(b"{}\n", true), Err(Failure::Broken)));
        assert!(tail.medium.bytes.is_empty());
    }

    #[test]
    fn what_follows_the_last_whole_line_is_torn() {
        let cases: [(&[u8], usize); 7] = [
            (b"", 0),
            (b"{}", 0),
            (b"{}\n", 3),
            (b"{}\n{\"a\":", 3),
            (b"{}\n{\"a\":1}", 3),
            (b"{}\n\0\0\0\n\0", 3),
            (b"{}\nnot\n{}\n", 10),
        ];
        for (bytes, whole) in cases {
            assert_eq!(split_torn(bytes).0.len(), whole, "{bytes:?}");
        }
    }
}
