//! A file of JSON lines that is only ever added to, and survives a kill, a power cut and a full disk.
//!
//! A line is either whole or not there. The last line may be torn by a kill or a power cut, so it
//! counts only with its line break; the next writer cuts such a rest off. The log of a run and the
//! journal both rest on this.

use crate::unit::{InWords, ShownPath};
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::owned::{OwnDir, OwnError};
use stackrace_system::retry::again;

/// Durability of a line: on the disk before the program goes on, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durable {
    /// Durable when [`AppendLog::append`] returns.
    Yes,
    /// Durable with the next durable line.
    No,
}

/// Errors of opening or writing a file of lines.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Another process writes it.
    #[error("another process is writing it")]
    Locked,
    /// An earlier write or sync failed in a way that leaves the end of the file unknown.
    #[error("an earlier write failed, so its end is unknown")]
    Broken,
    /// The file was removed while it was written; what was added is lost.
    #[error("it was removed while it was written")]
    Removed,
    /// Another program changed its length; lines are lost, or are not ours.
    #[error(
        "another program changed it while it was written: {expected} bytes were added, and it has {found}"
    )]
    Changed {
        /// Bytes that it should have.
        expected: u64,
        /// Bytes that it has.
        found: u64,
    },
    /// The file is not at its path any more, and holds all that was added.
    #[error("it was moved while it was written, and is at {} now", now.shown())]
    Moved {
        /// Path where it is; its own path if something is mounted over it.
        now: PathBuf,
    },
    /// The file cannot be opened, or is not the user's own.
    #[error(transparent)]
    NotOpened(#[from] OwnError),
    /// The system refused something.
    #[error("cannot {tried}: {}", source.in_words())]
    System {
        /// Operation that was tried, as a verb: `write`.
        tried: &'static str,
        /// Error of the system.
        source: io::Error,
    },
}

/// Makes an error of the system into ours, with what was tried.
fn while_trying(tried: &'static str) -> impl Fn(io::Error) -> AppendError {
    move |source| AppendError::System { tried, source }
}

/// A file of lines, open for writing; no second writer is admitted while it lives.
#[derive(Debug)]
pub struct AppendLog {
    tail: Tail<File>,
    path: PathBuf,
}

/// A file of lines that was there already.
#[derive(Debug)]
pub struct Reopened {
    /// The file; a torn rest is still in it.
    pub log: AppendLog,
    /// Its whole lines.
    pub whole: Vec<u8>,
    /// Bytes a kill or a power cut left behind them.
    pub torn: Vec<u8>,
}

impl AppendLog {
    /// Makes the file, which must not exist. [`OwnDir::sync`] makes its name durable.
    ///
    /// # Errors
    /// It exists, or the system refuses.
    pub fn create(dir: &OwnDir, name: &str) -> Result<Self, AppendError> {
        let file = dir.create(name)?;
        lock(&file)?;
        Ok(Self {
            tail: Tail::new(file, 0),
            path: dir.path().join(name),
        })
    }

    /// Opens a file to go on with it. Call [`Self::cut_torn`] before the first line is added.
    ///
    /// # Errors
    /// Another process writes it, it is not the user's own, or the system refuses.
    pub fn open(dir: &OwnDir, name: &str) -> Result<Reopened, AppendError> {
        let mut file = dir.append(name, false)?;
        // Before reading: what another writer is adding would look torn.
        lock(&file)?;
        let (whole, torn) = read(&mut file)?;
        Ok(Reopened {
            log: Self {
                tail: Tail::new(file, whole.len() as u64),
                path: dir.path().join(name),
            },
            whole,
            torn,
        })
    }

    /// Cuts off whatever follows the last whole line.
    ///
    /// # Errors
    /// The system refuses.
    pub fn cut_torn(&mut self) -> Result<(), AppendError> {
        self.tail
            .medium
            .set_len(self.tail.length)
            .and_then(|()| self.tail.medium.sync_all())
            .map_err(while_trying("cut the torn line off"))
    }

    /// Adds a line; it ends with its line break.
    ///
    /// # Errors
    /// The line is then not in the file, and the file is as it was before; after
    /// [`AppendError::Broken`] its end is unknown and it takes no more.
    pub fn append(&mut self, line: &[u8], durable: Durable) -> Result<(), AppendError> {
        self.tail.append(line, durable)
    }

    /// Checks that it still is at the path that it was made or opened at.
    ///
    /// # Errors
    /// [`AppendError::Moved`], [`AppendError::Removed`], [`AppendError::Changed`]
    pub fn in_place(&self) -> Result<(), AppendError> {
        let own = self.tail.medium.metadata();
        let own = own.map_err(while_trying("look at"))?;
        if own.nlink() > 0 {
            same_length(self.tail.length, own.len())?;
        }
        let same = |there: std::fs::Metadata| (there.dev(), there.ino()) == (own.dev(), own.ino());
        if std::fs::symlink_metadata(&self.path).is_ok_and(same) {
            return Ok(());
        }
        if own.nlink() == 0 {
            return Err(AppendError::Removed);
        }
        // The kernel knows the name of what is open; elsewhere no path follows a descriptor.
        let link = format!("/proc/self/fd/{}", self.tail.medium.as_raw_fd());
        let now = rustix::fs::readlink(link, Vec::new()).map(CString::into_bytes);
        let now = now.map_or_else(
            |_| self.path.clone(),
            |now| PathBuf::from(OsString::from_vec(now)),
        );
        Err(AppendError::Moved { now })
    }
}

impl Drop for AppendLog {
    fn drop(&mut self) {
        // By hand: a command that is just being started holds a copy of the file until its program
        // is loaded, and closing ours would leave the lock to it for that moment.
        let _ = flock(&self.tail.medium, FlockOperation::Unlock);
    }
}

fn lock(file: &File) -> Result<(), AppendError> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(AppendError::Locked),
        Err(errno) => Err(while_trying("lock")(errno.into())),
    }
}

/// Reads a file that is open: its whole lines, and what follows them.
fn read(file: &mut File) -> Result<(Vec<u8>, Vec<u8>), AppendError> {
    let mut whole = Vec::new();
    file.read_to_end(&mut whole).map_err(while_trying("read"))?;
    let torn = whole.split_off(split_torn(&whole).0.len());
    Ok((whole, torn))
}

/// Reads a file that is to be obeyed and changes nothing: its whole lines, and what follows them.
///
/// # Errors
/// As [`AppendLog::open`].
pub fn look(dir: &OwnDir, name: &str) -> Result<(Vec<u8>, Vec<u8>), AppendError> {
    let mut file = dir.read_to_obey(name)?;
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => Err(AppendError::Locked),
        _ => read(&mut file),
    }
}

/// Returns true if a process writes the file right now. Only ask of a file that has its first line:
/// a writer that is about to begin would find this question's lock in its way.
pub fn is_being_written(dir: &OwnDir, name: &str) -> bool {
    let Ok(file) = dir.read(name) else {
        return false;
    };
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

/// Splits a file into its whole lines and what a kill or a power cut left behind them.
///
/// Behind the last line break nothing counts, even where it happens to be valid: its writer was
/// never told that it is kept. A whole last line that is no JSON is a rest too: some file systems
/// lengthen a file before its data arrive, and after a power cut the end reads as zeros.
pub fn split_torn(bytes: &[u8]) -> (&[u8], &[u8]) {
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

/// Position after the last line break in the first `end` bytes; 0 if there is none.
fn line_break_before(bytes: &[u8], end: usize) -> usize {
    bytes[..end]
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |at| at + 1)
}

/// Destination of lines: a file, or a disk that fills up in a test.
trait Medium {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    fn cut(&mut self, length: u64) -> io::Result<()>;
    fn sync(&mut self) -> io::Result<()>;
    /// Returns true if it has no name any more: what is added goes when it is closed.
    fn is_removed(&self) -> bool;
    /// Bytes that it has.
    fn length(&self) -> io::Result<u64>;
}

/// Refuses a file that has not the length that was written to it.
fn same_length(expected: u64, found: u64) -> Result<(), AppendError> {
    match expected == found {
        true => Ok(()),
        false => Err(AppendError::Changed { expected, found }),
    }
}

impl Medium for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(again(|| rustix::io::write(&*self, bytes))?)
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn is_removed(&self) -> bool {
        rustix::fs::fstat(self).is_ok_and(|about| about.st_nlink == 0)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

/// The end of a file that stays a sequence of whole lines whatever fails.
#[derive(Debug)]
struct Tail<M> {
    medium: M,
    /// Bytes of whole lines.
    length: u64,
    /// The end is unknown: nothing more is taken.
    broken: bool,
}

impl<M: Medium> Tail<M> {
    fn new(medium: M, length: u64) -> Self {
        Self {
            medium,
            length,
            broken: false,
        }
    }

    fn append(&mut self, line: &[u8], durable: Durable) -> Result<(), AppendError> {
        if self.broken {
            return Err(AppendError::Broken);
        }
        // A file that was cut would get this line behind a hole or behind other lines, and read as whole.
        let found = self.medium.length().map_err(while_trying("look at"))?;
        self.broken = found != self.length;
        same_length(self.length, found)?;
        if let Err(source) = self.write_all(line) {
            // Half a line must not swallow the next one.
            self.broken = self.medium.cut(self.length).is_err();
            return Err(while_trying("write")(source));
        }
        if durable == Durable::Yes
            && let Err(source) = self.medium.sync()
        {
            // After a failed sync nothing tells which pages reached the disk, and a second sync
            // would report success (the kernel forgets the error): cut this line off, take no more.
            let _ = self.medium.cut(self.length);
            self.broken = true;
            return Err(while_trying("write")(source));
        }
        self.length += line.len() as u64;
        if durable == Durable::Yes && self.medium.is_removed() {
            self.broken = true;
            return Err(AppendError::Removed);
        }
        Ok(())
    }

    fn write_all(&mut self, mut rest: &[u8]) -> io::Result<()> {
        while !rest.is_empty() {
            match self.medium.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => rest = &rest[written..],
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

        fn is_removed(&self) -> bool {
            false
        }

        fn length(&self) -> io::Result<u64> {
            Ok(self.bytes.len() as u64)
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
                if tail.append(line, Durable::Yes).is_ok() {
                    expected.extend_from_slice(line);
                }
                assert_eq!(tail.medium.bytes, expected, "room {room}");
            }
            assert_eq!(expected.len() == all, room == all);
            tail.medium.room = 10 * all;
            assert!(tail.append(lines[1], Durable::Yes).is_ok());
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
        let first = tail.append(b"{}\n", Durable::Yes);
        assert!(matches!(first, Err(AppendError::System { .. })));
        tail.medium.sync_fails = false;
        let second = tail.append(b"{}\n", Durable::Yes);
        assert!(matches!(second, Err(AppendError::Broken)));
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

    #[test]
    fn a_second_writer_is_refused_until_the_first_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let dir = OwnDir::open(dir.path()).unwrap();
        let first = AppendLog::create(&dir, "lines").unwrap();
        let again = AppendLog::open(&dir, "lines");
        assert!(matches!(again, Err(AppendError::Locked)));
        assert!(is_being_written(&dir, "lines"));
        drop(first);
        assert!(!is_being_written(&dir, "lines"));
        assert!(AppendLog::open(&dir, "lines").is_ok());
    }

    #[test]
    fn a_file_that_another_program_changed_takes_no_more_lines() {
        let base = tempfile::tempdir().unwrap();
        let dir = OwnDir::open(base.path()).unwrap();
        for (name, length) in [("cut", 4), ("emptied", 0), ("longer", 99)] {
            let mut log = AppendLog::create(&dir, name).unwrap();
            log.append(b"{}\n", Durable::Yes).unwrap();
            log.append(b"{}\n", Durable::No).unwrap();
            log.in_place().unwrap();
            let other = File::options().write(true).open(base.path().join(name));
            other.unwrap().set_len(length).unwrap();
            let noticed = log.in_place();
            assert!(matches!(
                noticed,
                Err(AppendError::Changed { expected: 6, .. })
            ));
            let refused = log.append(b"{}\n", Durable::No);
            assert!(matches!(
                refused,
                Err(AppendError::Changed { expected: 6, .. })
            ));
            assert_eq!(base.path().join(name).metadata().unwrap().len(), length);
        }
    }

    #[test]
    fn a_durable_line_in_a_file_that_was_removed_is_an_error() {
        let base = tempfile::tempdir().unwrap();
        let dir = OwnDir::open(base.path()).unwrap();
        let mut log = AppendLog::create(&dir, "lines").unwrap();
        log.append(b"{}\n", Durable::Yes).unwrap();
        std::fs::remove_file(base.path().join("lines")).unwrap();
        let removed = log.append(b"{}\n", Durable::Yes);
        assert!(matches!(removed, Err(AppendError::Removed)));
    }
}
