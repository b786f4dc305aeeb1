//! Phases over a set's directories: mkdir, readdir, rmdir.

use std::mem::MaybeUninit;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use super::name::{NameBuffer, directory_name};
use super::{EntryPath, FileSet, Pass, RenameTo};
use crate::calls::close;
use crate::outcome::{Op, OpError, PhaseOutcome};
use crate::worker_pool::{fault, refusal};
use stackrace_system::RawDir;

/// Bytes of directory entries asked for at once, as glibc does.
const ROOM_BYTES: usize = 32 << 10;

impl FileSet {
    /// Makes every directory, one [`Op::Mkdir`] each; it must not exist. Instead of
    /// [`FileSet::prepare`], where this is to be measured.
    ///
    /// # Errors
    /// As [`FileSet::create`].
    pub fn mkdir(&self, pass: Pass<'_>) -> Result<PhaseOutcome, OpError> {
        self.each_directory(Op::Mkdir, pass, |entry| {
            mkdirat(entry.directory, entry.name, Mode::from_raw_mode(0o755))
        })
    }

    /// Removes every directory, one [`Op::Rmdir`] each; it must be empty.
    ///
    /// # Errors
    /// As [`FileSet::create`].
    pub fn rmdir(&self, pass: Pass<'_>) -> Result<PhaseOutcome, OpError> {
        self.each_directory(Op::Rmdir, pass, |entry| {
            unlinkat(entry.directory, entry.name, AtFlags::REMOVEDIR)
        })
    }

    /// Applies one call to each directory's name. No directory is held open: the file system would
    /// not free it before it is closed.
    fn each_directory(
        &self,
        op: Op,
        pass: Pass<'_>,
        call: impl Fn(EntryPath<'_>) -> Result<(), Errno> + Sync,
    ) -> Result<PhaseOutcome, OpError> {
        let (handles, make) = (self.open(op)?, || Ok(NameBuffer::new()));
        let count = u64::from(self.directories);
        self.pass((op, count), &handles, pass, make, |index, room, worker| {
            let entry = EntryPath {
                directory: handles.root().as_fd(),
                name: room.write_directory(index as u32),
            };
            let done = worker.time(op, || call(entry).map(|()| 0));
            done.map(drop).map_err(|errno| {
                fault(op, &self.root.join(directory_name(index as u32)), errno).into()
            })
        })
    }

    /// Opens every directory, reads all its entries and closes it: one [`Op::Readdir`] each. A
    /// directory with more or fewer entries than files' names is a failure.
    ///
    /// # Errors
    /// As [`FileSet::create`].
    pub fn readdir(&self, pass: Pass<'_>) -> Result<PhaseOutcome, OpError> {
        let handles = self.open_each(Op::Readdir)?;
        let make = || Ok((NameBuffer::new(), vec![MaybeUninit::uninit(); ROOM_BYTES]));
        let count = u64::from(self.directories);
        self.pass(
            (Op::Readdir, count),
            &handles,
            pass,
            make,
            |index, own, worker| {
                let (name, room) = own;
                let directory = index as u32;
                let entry = match handles.directory(directory) {
                    Some(own) => EntryPath {
                        directory: own,
                        name: c".",
                    },
                    None => EntryPath {
                        directory: handles.root().as_fd(),
                        name: name.write_directory(directory),
                    },
                };
                let mut found = 0;
                let done = worker.time(Op::Readdir, || {
                    found = list(&entry, room)?;
                    Ok(0)
                });
                let path = || self.root.join(directory_name(directory));
                done.map_err(|errno| fault(Op::Readdir, &path(), errno))?;
                let expected = self.names_in(directory);
                if found != expected {
                    let detail = format!("lists {found} entries where {expected} files' names are");
                    return Err(refusal(Op::Readdir, &path(), Errno::IO, detail).into());
                }
                Ok(())
            },
        )
    }

    /// Number of names of files in a directory.
    pub(super) fn names_in(&self, directory: u32) -> u64 {
        let made = |directory: u32| self.first_in(directory + 1) - self.first_in(directory);
        let own = match self.names.rename_to {
            RenameTo::NextDirectory if self.names.renamed => {
                // Each file moved to the next directory, those of the last one to the first.
                made(directory.checked_sub(1).unwrap_or(self.directories - 1))
            }
            _ => made(directory),
        };
        own + if self.names.linked {
            made(directory)
        } else {
            0
        }
    }

    /// Number of the first file made in a directory: the least with
    /// `number * directories / files >= directory`.
    fn first_in(&self, directory: u32) -> u64 {
        let before = u128::from(directory) * u128::from(self.files);
        before.div_ceil(u128::from(self.directories)) as u64
    }
}

/// Counts the entries of a directory, itself and its parent left out.
fn list(entry: &EntryPath<'_>, room: &mut [MaybeUninit<u8>]) -> Result<u64, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = openat(entry.directory, entry.name, flags, Mode::empty())?;
    let (mut entries, mut count) = (RawDir::new(&fd, room), 0);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        // Every directory lists these two.
        count += u64::from(entry.file_name() != c"." && entry.file_name() != c"..");
    }
    close(fd)?;
    Ok(count)
}
