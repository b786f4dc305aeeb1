//! Unpacking a tar archive the way GNU `tar -x` does, and nothing outside of its destination.
//!
//! The archive is read in records of 10,240 bytes, and what of a record belongs to a file is one
//! write. Files come into being with mode 0600 and get time, owner (as root) and mode before they
//! are closed; directories come into being with 0700 and get theirs when all else is done.
//!
//! The destination is made for the archive, and each entry must lie in a directory the archive
//! itself made there: no absolute name, no `..`, no way through a symbolic link. Entries that tar
//! would skip or warn about are errors: skipping them would make the extraction look faster.

use stackrace_system::limit::InWords;
use std::cell::Cell;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, chmodat, chownat,
    fchmod, fchown, futimens, linkat, mkdirat, openat, symlinkat, unlinkat, utimensat,
};
use rustix::io::{Errno, write};
use tar::{Archive, Entry, EntryType};

use crate::calls::{close, flush};
use crate::control::Control;
use crate::files::AtEnd;
use crate::outcome::{Op, OpError, PhaseOutcome};
use crate::worker_pool::{Halt, PhaseOptions, Worker, alone, errno_of, fault, refusal};
use stackrace_system::permissions;

/// Bytes of one record: tar's blocking factor of 20 times 512.
pub const RECORD_BYTES: usize = 10_240;
/// Most bytes that may describe one entry (long names, extended headers).
const HEADER_BYTES_MAX: u64 = 1 << 20;
/// Bytes every header and every file begins at multiples of.
const BLOCK_BYTES: u64 = 512;

/// Unpacks `archive`, a tar archive that is not compressed, to `to`, which must not exist.
///
/// Records per directory one [`Op::Mkdir`], per file one [`Op::Create`] (its data read from the
/// archive, written, time, owner, mode, close; its bytes), per symbolic link one [`Op::Create`] of
/// no bytes, per hard link one [`Op::Link`]. Headers are read, and directories get their times and
/// modes, between operations, inside the elapsed time. Flushing, if asked for, flushes the file
/// system of `to`. An entry that comes again replaces the one before, as tar does it.
///
/// # Errors
/// Nothing was measured: `archive` cannot be opened, or `to` exists or cannot be made. Whatever
/// fails later is found in [`PhaseOutcome::error`], with the offset in the archive and the entry where
/// the archive is at fault: it is damaged or cut short, it names something outside of `to`, or it
/// holds what is neither file, directory nor link. What was unpacked until then stays.
pub fn extract_tar(
    archive: &Path,
    to: &Path,
    at_end: AtEnd,
    slice_ns: u64,
    control: &Control,
) -> Result<PhaseOutcome, OpError> {
    at_end.check(to)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let source =
        openat(CWD, archive, flags, Mode::empty()).map_err(|e| fault(Op::Open, archive, e))?;
    let made = |errno| fault(Op::Mkdir, to, errno);
    mkdirat(CWD, to, Mode::from_raw_mode(0o755)).map_err(made)?;
    // Between the two calls, another process could put a link in its place.
    let flags = flags | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let root = openat(CWD, to, flags, Mode::empty()).map_err(made)?;
    let mut extractor = Extractor {
        archive,
        to,
        root,
        control,
        directories: HashSet::from([PathBuf::new()]),
        directory_metadata: Vec::new(),
        owners: rustix::process::geteuid().is_root(),
        room: vec![0; RECORD_BYTES],
        short: 0,
    };
    let told = ArchivePosition::default();
    let tape = ArchiveReader::new(source, &told);
    let why = "read in records of 10,240 bytes, each part of a file written by one call";
    let watch = PhaseOptions {
        slice_ns,
        control,
        ops: &[Op::Create, Op::Mkdir, Op::Link, Op::Fsync],
    };
    Ok(alone(watch, why.to_owned(), |worker| {
        let done = extractor.all(tape, &told, worker);
        (0..extractor.short).for_each(|_| worker.count_short());
        done?;
        match at_end {
            AtEnd::Return => Ok(()),
            AtEnd::Durable => flush(worker, &extractor.root, to),
        }
    }))
}

/// The position in the archive, shared with the tar reader that owns the input.
#[derive(Default)]
struct ArchivePosition {
    /// Bytes of the archive given out.
    offset: Cell<u64>,
    /// Its end was come to.
    ended: Cell<bool>,
    /// Bytes that may be read before the limit is raised.
    left: Cell<u64>,
}

/// The archive, a record at a time.
struct ArchiveReader<'a> {
    source: OwnedFd,
    record: Vec<u8>,
    given: usize,
    held: usize,
    told: &'a ArchivePosition,
}

impl<'a> ArchiveReader<'a> {
    fn new(source: OwnedFd, told: &'a ArchivePosition) -> ArchiveReader<'a> {
        let record = vec![0; RECORD_BYTES];
        ArchiveReader {
            source,
            record,
            given: 0,
            held: 0,
            told,
        }
    }

    /// The next record, whole but for the last.
    fn turn(&mut self) -> io::Result<()> {
        (self.given, self.held) = (0, 0);
        // A pipe may give less than was asked for.
        while self.held < RECORD_BYTES {
            match rustix::io::read(&self.source, &mut self.record[self.held..])? {
                0 => break,
                got => self.held += got,
            }
        }
        self.told.ended.set(self.held == 0);
        Ok(())
    }
}

impl Read for ArchiveReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.given == self.held {
            self.turn()?;
        }
        let bytes = into.len().min(self.held - self.given);
        let Some(left) = self.told.left.get().checked_sub(bytes as u64) else {
            return Err(io::Error::other(
                "has a header of more than 1 MiB for one entry",
            ));
        };
        into[..bytes].copy_from_slice(&self.record[self.given..self.given + bytes]);
        self.given += bytes;
        self.told.left.set(left);
        self.told.offset.set(self.told.offset.get() + bytes as u64);
        Ok(bytes)
    }
}

/// The metadata an entry gets when its content is complete.
#[derive(Clone)]
struct EntryMetadata {
    times: Timestamps,
    mode: Mode,
    owner: (Uid, Gid),
}

/// The error of unpacking an entry.
enum ExtractError {
    /// The archive cannot be read.
    Archive(io::Error),
    /// The archive asks for what it must not.
    Refused(String),
    /// The system refuses something at the destination.
    Target(Op, Errno),
    Stopped,
}

impl From<io::Error> for ExtractError {
    fn from(error: io::Error) -> ExtractError {
        ExtractError::Archive(error)
    }
}

struct Extractor<'a> {
    archive: &'a Path,
    to: &'a Path,
    root: OwnedFd,
    control: &'a Control,
    /// The directories made so far, the root being the empty path. None of them is ever replaced.
    directories: HashSet<PathBuf>,
    /// Directories, and what they are given in the end.
    directory_metadata: Vec<(PathBuf, EntryMetadata)>,
    /// Set if owners are set: as root.
    owners: bool,
    room: Vec<u8>,
    short: u64,
}

type Member<'e, 't> = Entry<'e, ArchiveReader<'t>>;

impl Extractor<'_> {
    fn all(
        &mut self,
        tape: ArchiveReader<'_>,
        told: &ArchivePosition,
        worker: &mut Worker<'_>,
    ) -> Result<(), Halt> {
        let mut archive = Archive::new(tape);
        told.left.set(HEADER_BYTES_MAX);
        let damaged = |error| self.damaged("", told.offset.get(), &error);
        let mut entries = archive.entries().map_err(damaged)?;
        loop {
            worker.proceed()?;
            told.left.set(HEADER_BYTES_MAX);
            // Entries begin at whole blocks; the reader may stand behind the data of the last one.
            let begun = told.offset.get().next_multiple_of(BLOCK_BYTES);
            let Some(entry) = entries.next() else { break };
            let mut entry = entry.map_err(|error| self.damaged("", begun, &error))?;
            // Data of files are not limited as headers are.
            told.left.set(u64::MAX);
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            self.entry(&mut entry, worker)
                .map_err(|trouble| match trouble {
                    ExtractError::Archive(error) => self.damaged(&name, told.offset.get(), &error),
                    ExtractError::Refused(what) => {
                        let header = Some(entry.raw_header_position());
                        let detail = format!("entry {name:?} {what}: refused");
                        let error = refusal(Op::Read, self.archive, Errno::INVAL, detail);
                        OpError {
                            offset: header,
                            ..error
                        }
                        .into()
                    }
                    ExtractError::Target(op, errno) => {
                        fault(op, &self.to.join(&name), errno).into()
                    }
                    ExtractError::Stopped => Halt::Stopped,
                })?;
        }
        // The end is marked by two blocks of zeros, of which one has been seen, if any: a single one
        // is damage that would end the archive early.
        let mut block = [0; BLOCK_BYTES as usize];
        let marked = archive.into_inner().read_exact(&mut block).is_ok() && block == [0; 512];
        // GNU tar also warns here: the archive may have been cut.
        if told.ended.get() || !marked {
            let cut = io::Error::other("there is no end mark");
            return Err(self.damaged("", told.offset.get(), &cut));
        }
        self.apply_directory_metadata()
    }

    /// The error of the archive's reader, or of the system, about the archive.
    fn damaged(&self, name: &str, offset: u64, error: &io::Error) -> Halt {
        let offset = Some(offset);
        let error = if error.raw_os_error().is_some() {
            fault(Op::Read, self.archive, errno_of(error))
        } else {
            let within = match name {
                "" => String::new(),
                name => format!(" within entry {name:?}"),
            };
            let detail = format!(
                "{error}{within}; the archive is damaged, or it is compressed or no tar archive",
                error = error.in_words()
            );
            refusal(Op::Read, self.archive, Errno::INVAL, detail)
        };
        OpError { offset, ..error }.into()
    }

    fn entry(
        &mut self,
        entry: &mut Member<'_, '_>,
        worker: &mut Worker<'_>,
    ) -> Result<(), ExtractError> {
        let kind = entry.header().entry_type();
        // Global headers hold for all that follow, and nothing they can say is needed here.
        if kind.is_pax_global_extensions() {
            io::copy(entry, &mut io::sink())?;
            return Ok(());
        }
        let seal = seal(entry)?;
        let bytes = entry.path_bytes().into_owned();
        let path = inside(&bytes).map_err(|what| ExtractError::Refused(what.to_owned()))?;
        // In old archives a directory is a file whose name ends in a slash.
        let directory = kind.is_dir() || (kind.is_file() && bytes.ends_with(b"/"));
        if directory {
            self.directory(&path, worker)?;
            self.directory_metadata.push((path, seal));
            return Ok(());
        }
        let Some(parent) = path.parent() else {
            return Err(ExtractError::Refused(
                "is the destination itself".to_owned(),
            ));
        };
        self.directory(parent, worker)?;
        match kind {
            EntryType::Regular | EntryType::Continuous => {
                worker.time(Op::Create, || self.file(entry, &path, seal))
            }
            EntryType::Symlink => {
                let target = link_target(entry)?;
                worker.time(Op::Create, || self.symlink(&target, &path, seal))
            }
            EntryType::Link => {
                let target = link_target(entry)?;
                worker.time(Op::Link, || self.link(&target, &path))
            }
            other => {
                let what = format!("is neither file, directory nor link (type {other:?})");
                return Err(ExtractError::Refused(what));
            }
        }
        .map(drop)
    }

    /// Makes a directory and those above it, where the archive did not make them before.
    fn directory(&mut self, path: &Path, worker: &mut Worker<'_>) -> Result<(), ExtractError> {
        if self.directories.contains(path) {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            self.directory(parent, worker)?;
        }
        let make = || mkdirat(&self.root, path, Mode::from_raw_mode(0o700)).map(|()| 0);
        match worker.time(Op::Mkdir, make) {
            Ok(_) => {}
            Err(Errno::EXIST) => {
                let what = "needs a directory where the archive put something else";
                return Err(ExtractError::Refused(what.to_owned()));
            }
            Err(errno) => return Err(ExtractError::Target(Op::Mkdir, errno)),
        }
        self.directories.insert(path.to_path_buf());
        Ok(())
    }

    fn file(
        &mut self,
        entry: &mut Member<'_, '_>,
        path: &Path,
        seal: EntryMetadata,
    ) -> Result<u64, ExtractError> {
        let target = |errno| ExtractError::Target(Op::Create, errno);
        let flags = OFlags::WRONLY
            | OFlags::CREATE
            | OFlags::EXCL
            | OFlags::NOCTTY
            | OFlags::NONBLOCK
            | OFlags::CLOEXEC;
        let make = || openat(&self.root, path, flags, Mode::from_raw_mode(0o600));
        let made = self.instead(path, make).map_err(target)?;
        let size = entry.size();
        let mut total = 0;
        while total < size {
            let got = entry.read(&mut self.room)?;
            if got == 0 {
                let cut = format!("{total} of {size} bytes are there");
                return Err(ExtractError::Archive(io::Error::other(cut)));
            }
            let mut rest = &self.room[..got];
            while !rest.is_empty() {
                let put = write(&made, rest).map_err(target)?;
                // Counted here and reported at the end: the recorder is busy with this operation.
                self.short += u64::from(put < rest.len());
                rest = &rest[put..];
            }
            total += got as u64;
            // A large file must not delay the stop.
            if self.control.stopped() {
                return Err(ExtractError::Stopped);
            }
        }
        futimens(&made, &seal.times).map_err(target)?;
        // Before the mode: chown(2) clears the set-user-ID bit.
        if self.owners {
            let (user, group) = seal.owner;
            fchown(&made, Some(user), Some(group)).map_err(target)?;
        }
        fchmod(&made, seal.mode).map_err(target)?;
        close(made).map_err(target)?;
        Ok(size)
    }

    fn symlink(&self, says: &[u8], path: &Path, seal: EntryMetadata) -> Result<u64, ExtractError> {
        let target = |errno| ExtractError::Target(Op::Create, errno);
        let make = || symlinkat(says, &self.root, path);
        self.instead(path, make).map_err(target)?;
        let nofollow = AtFlags::SYMLINK_NOFOLLOW;
        utimensat(&self.root, path, &seal.times, nofollow).map_err(target)?;
        if self.owners {
            let (user, group) = seal.owner;
            chownat(&self.root, path, Some(user), Some(group), nofollow).map_err(target)?;
        }
        Ok(0)
    }

    fn link(&self, other: &[u8], path: &Path) -> Result<u64, ExtractError> {
        let refuse = |what: &str| ExtractError::Refused(format!("links to a name that {what}"));
        let other = inside(other).map_err(refuse)?;
        // This archive made the directory, so it is no link that leads elsewhere.
        let known = |parent| self.directories.contains(parent);
        if !other.parent().is_some_and(known) {
            return Err(refuse("the archive has not unpacked"));
        }
        let make = || linkat(&self.root, &other, &self.root, path, AtFlags::empty());
        self.instead(path, make)
            .map_err(|errno| ExtractError::Target(Op::Link, errno))?;
        Ok(0)
    }

    /// Makes something, in place of what an earlier entry of the same name left. A directory stays
    /// and is the system's error.
    fn instead<T>(&self, path: &Path, make: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
        match make() {
            Err(Errno::EXIST) => {
                unlinkat(&self.root, path, AtFlags::empty())?;
                make()
            }
            made => made,
        }
    }

    /// Gives directories their times, owners and modes, those below before those above.
    fn apply_directory_metadata(&mut self) -> Result<(), Halt> {
        // Stable: of a directory that came twice, the last word counts.
        self.directory_metadata.sort_by(|a, b| b.0.cmp(&a.0));
        for (path, seal) in &self.directory_metadata {
            let at = if path.as_os_str().is_empty() {
                Path::new(".")
            } else {
                path
            };
            let nofollow = AtFlags::SYMLINK_NOFOLLOW;
            let done = utimensat(&self.root, at, &seal.times, nofollow)
                .and_then(|()| match (self.owners, seal.owner) {
                    (true, (user, group)) => {
                        chownat(&self.root, at, Some(user), Some(group), nofollow)
                    }
                    (false, _) => Ok(()),
                })
                .and_then(|()| chmodat(&self.root, at, seal.mode, AtFlags::empty()));
            done.map_err(|errno| fault(Op::Mkdir, &self.to.join(path), errno))?;
        }
        Ok(())
    }
}

/// A name as a path below the destination, or what is wrong with it.
fn inside(name: &[u8]) -> Result<PathBuf, &'static str> {
    let mut path = PathBuf::new();
    if name.is_empty() {
        return Err("is empty");
    }
    for part in Path::new(OsStr::from_bytes(name)).components() {
        match part {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            Component::ParentDir => return Err("leads upwards by .."),
            Component::RootDir | Component::Prefix(_) => return Err("is absolute"),
        }
    }
    Ok(path)
}

fn link_target(entry: &Member<'_, '_>) -> Result<Vec<u8>, ExtractError> {
    match entry.link_name_bytes() {
        Some(name) => Ok(name.into_owned()),
        None => Err(ExtractError::Refused("is a link to nothing".to_owned())),
    }
}

/// Time, mode and owner, the time to the nanosecond where the archive has it.
fn seal(entry: &mut Member<'_, '_>) -> Result<EntryMetadata, ExtractError> {
    let mut modified = Timespec {
        tv_sec: i64::try_from(entry.header().mtime()?).unwrap_or(i64::MAX),
        tv_nsec: 0,
    };
    for extension in entry.pax_extensions()?.into_iter().flatten() {
        let extension = extension?;
        let key = extension.key_bytes();
        if key.starts_with(b"GNU.sparse.") {
            return Err(ExtractError::Refused("has holes".to_owned()));
        }
        if key == b"mtime" {
            let time = std::str::from_utf8(extension.value_bytes()).ok();
            modified = time.and_then(seconds).ok_or_else(|| {
                ExtractError::Refused("has a time that is not a number of seconds".to_owned())
            })?;
        }
    }
    let header = entry.header();
    let id = |id: u64| match u32::try_from(id) {
        // To chown(2), the largest number means "do not change".
        Ok(id) if id != u32::MAX => Ok(id),
        _ => Err(ExtractError::Refused(format!("has the owner {id}"))),
    };
    Ok(EntryMetadata {
        times: Timestamps {
            last_access: Timespec {
                tv_sec: 0,
                tv_nsec: UTIME_OMIT,
            },
            last_modification: modified,
        },
        mode: permissions(header.mode()?),
        owner: (
            Uid::from_raw(id(header.uid()?)?),
            Gid::from_raw(id(header.gid()?)?),
        ),
    })
}

/// `1363799461.123456789`, `-3.5`; digits beyond nanoseconds are cut.
fn seconds(text: &str) -> Option<Timespec> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits: String = part.chars().chain("000000000".chars()).take(9).collect();
    let tv_nsec: i64 = digits.parse().ok()?;
    let tv_sec: i64 = whole.parse().ok()?;
    // Before 1970 the fraction counts backwards as well.
    if whole.starts_with('-') && tv_nsec > 0 {
        let (tv_sec, tv_nsec) = (tv_sec.checked_sub(1)?, 1_000_000_000 - tv_nsec);
        return Some(Timespec { tv_sec, tv_nsec });
    }
    Some(Timespec { tv_sec, tv_nsec })
}

#[cfg(test)]
#[path = "extract_tests.rs"]
mod tests;
