//! Phases that open each file of a set: create, open, read.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

use super::name::{NameBuffer, NameKind};
use super::{EntryPath, FileSet, Pass};
use crate::calls::{BUFFER_BYTES, close, source, write_content};
use crate::content::FileContent;
use crate::outcome::{Op, OpError, PhaseOutcome};
use crate::spec::Content;
use crate::worker_pool::{fault, refusal};

const MAKE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::CLOEXEC);
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

impl FileSet {
    /// Creates every file: open (it must not exist), write, fsync if asked for, close. One
    /// [`Op::Create`] each, bytes being its size.
    ///
    /// # Errors
    /// Nothing was measured: the set makes no sense, a directory is missing, no thread could be
    /// started. A failing operation is found in [`PhaseOutcome::error`] instead.
    pub fn create(&self, pass: Pass<'_>) -> Result<PhaseOutcome, OpError> {
        let handles = self.open_each(Op::Create)?;
        // Empty files need no content, and none is made for them.
        let content = if self.size_max == 0 {
            Content::Zero
        } else {
            self.content
        };
        let make = || Ok((NameBuffer::new(), source(content, self.seed, &self.root)?));
        self.pass(
            (Op::Create, self.files),
            &handles,
            pass,
            make,
            |index, own, worker| {
                let (name, content) = own;
                let size = self.size(index);
                let entry = handles.entry(self, index, NameKind::Made, name);
                let mut short = 0;
                let done = worker.time(Op::Create, || {
                    self.create_one(&entry, index, size, content, &mut short)
                });
                (0..short).for_each(|_| worker.count_short());
                done.map(drop).map_err(|errno| {
                    fault(Op::Create, &self.path(index, NameKind::Made), errno).into()
                })
            },
        )
    }

    #[inline]
    fn create_one(
        &self,
        entry: &EntryPath<'_>,
        index: u64,
        size: u64,
        content: &mut FileContent,
        short: &mut u64,
    ) -> Result<u64, Errno> {
        let fd = openat(
            entry.directory,
            entry.name,
            MAKE,
            Mode::from_raw_mode(0o644),
        )?;
        let write = |part: &[u8]| rustix::io::write(&fd, part);
        write_content(write, index, size, content, short)?;
        if self.fsync_each {
            rustix::fs::fsync(&fd)?;
        }
        close(fd)?;
        Ok(size)
    }

    /// Opens every file for reading and closes it without, one [`Op::Open`] each.
    ///
    /// # Errors
    /// As [`FileSet::create`].
    pub fn open_close(&self, pass: Pass<'_>) -> Result<PhaseOutcome, OpError> {
        self.each(Op::Open, pass, |entry| close(open(&entry)?))
    }

    /// Opens every file, reads it whole and closes it: one [`Op::Open`] each, bytes being what was
    /// read. A file that is not as long as it was made is a failure. Access times are kept as the
    /// mount asks for.
    ///
    /// # Errors
    /// As [`FileSet::create`].
    pub fn read(&self, pass: Pass<'_>) -> Result<PhaseOutcome, OpError> {
        let (handles, which) = (self.open_each(Op::Open)?, self.present());
        let make = || Ok((NameBuffer::new(), vec![0u8; BUFFER_BYTES]));
        self.pass(
            (Op::Open, self.files),
            &handles,
            pass,
            make,
            |index, own, worker| {
                let (name, buffer) = own;
                let entry = handles.entry(self, index, which, name);
                let found = worker.time(Op::Open, || read_whole(&entry, buffer));
                let path = || self.path(index, which);
                let found = found.map_err(|errno| fault(Op::Open, &path(), errno))?;
                let made = self.size(index);
                // Not part of the latency, but a short file would make the phase look fast.
                if found != made {
                    let detail = format!("holds {found} bytes where {made} were written");
                    return Err(refusal(Op::Open, &path(), Errno::IO, detail).into());
                }
                Ok(())
            },
        )
    }
}

fn open(entry: &EntryPath<'_>) -> Result<OwnedFd, Errno> {
    openat(entry.directory, entry.name, READ, Mode::empty())
}

fn read_whole(entry: &EntryPath<'_>, buffer: &mut [u8]) -> Result<u64, Errno> {
    let fd = open(entry)?;
    let mut total = 0;
    loop {
        match rustix::io::read(&fd, &mut *buffer)? {
            0 => break,
            got => total += got as u64,
        }
    }
    close(fd)?;
    Ok(total)
}
