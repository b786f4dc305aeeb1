//! Phases that do something to each file's name and leave its data alone: stat, rename, link,
//! unlink.

use rustix::fs::{AtFlags, linkat, renameat, unlinkat};
use rustix::io::Errno;

use super::name::{NameBuffer, NameKind};
use super::{EntryPath, FileSet, Pass};
use crate::outcome::{Op, OpError, PhaseOutcome};
use crate::worker_pool::fault;
use stackrace_system::{StatxFlags, statx};

impl FileSet {
    /// Asks for the attributes of every file, one [`Op::Stat`] each.
    ///
    /// # Errors
    /// As [`FileSet::create`].
    pub fn stat(&self, pass: Pass<'_>) -> Result<PhaseOutcome, OpError> {
        self.each(Op::Stat, pass, |entry| {
            let (flags, mask) = (AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS);
            let found = statx(entry.directory, entry.name, flags, mask)?;
            std::hint::black_box(found.stx_size);
            Ok(())
        })
    }

    /// Gives every file another name, as [`super::CurrentNames::rename_to`] says, one [`Op::Rename`]
    /// each. Files that were renamed get back the names they were made with.
    ///
    /// # Errors
    /// As [`FileSet::create`].
    pub fn rename(&self, pass: Pass<'_>) -> Result<PhaseOutcome, OpError> {
        let other = match self.present() {
            NameKind::Made => NameKind::Renamed,
            _ => NameKind::Made,
        };
        self.between(Op::Rename, other, pass, |from, to| {
            renameat(from.directory, from.name, to.directory, to.name)
        })
    }

    /// Gives every file a second name in the directory it was made in, one [`Op::Link`] each.
    ///
    /// # Errors
    /// As [`FileSet::create`].
    pub fn link(&self, pass: Pass<'_>) -> Result<PhaseOutcome, OpError> {
        self.between(Op::Link, NameKind::Linked, pass, |from, to| {
            let flags = AtFlags::empty();
            linkat(from.directory, from.name, to.directory, to.name, flags)
        })
    }

    /// Removes every name of every file, one [`Op::Unlink`] each. The directories stay: see
    /// [`FileSet::rmdir`].
    ///
    /// # Errors
    /// As [`FileSet::create`].
    pub fn unlink(&self, pass: Pass<'_>) -> Result<PhaseOutcome, OpError> {
        let both = [self.present(), NameKind::Linked];
        let names = if self.names.linked {
            &both[..]
        } else {
            &both[..1]
        };
        self.each_of(Op::Unlink, names, pass, |entry| {
            unlinkat(entry.directory, entry.name, AtFlags::empty())
        })
    }

    /// Does one thing to the name each file goes by.
    pub(super) fn each(
        &self,
        op: Op,
        pass: Pass<'_>,
        call: impl Fn(EntryPath<'_>) -> Result<(), Errno> + Sync,
    ) -> Result<PhaseOutcome, OpError> {
        self.each_of(op, &[self.present()], pass, call)
    }

    /// Does one thing to these names of each file.
    fn each_of(
        &self,
        op: Op,
        names: &[NameKind],
        pass: Pass<'_>,
        call: impl Fn(EntryPath<'_>) -> Result<(), Errno> + Sync,
    ) -> Result<PhaseOutcome, OpError> {
        let (handles, make) = (self.open_each(op)?, || Ok(NameBuffer::new()));
        self.pass(
            (op, self.files),
            &handles,
            pass,
            make,
            |index, room, worker| {
                for which in names {
                    let entry = handles.entry(self, index, *which, room);
                    worker
                        .time(op, || call(entry).map(|()| 0))
                        .map_err(|errno| fault(op, &self.path(index, *which), errno))?;
                }
                Ok(())
            },
        )
    }

    /// Does one thing to the name each file goes by and a new one, which a failure is about.
    pub(super) fn between(
        &self,
        op: Op,
        new: NameKind,
        pass: Pass<'_>,
        call: impl Fn(EntryPath<'_>, EntryPath<'_>) -> Result<(), Errno> + Sync,
    ) -> Result<PhaseOutcome, OpError> {
        let (handles, old) = (self.open_each(op)?, self.present());
        let make = || Ok((NameBuffer::new(), NameBuffer::new()));
        self.pass(
            (op, self.files),
            &handles,
            pass,
            make,
            |index, rooms, worker| {
                let from = handles.entry(self, index, old, &mut rooms.0);
                let to = handles.entry(self, index, new, &mut rooms.1);
                let done = worker.time(op, || call(from, to).map(|()| 0));
                done.map(drop).map_err(|errno| {
                    // ENOENT concerns the old name, every other error the new one.
                    let which = if errno == Errno::NOENT { old } else { new };
                    fault(op, &self.path(index, which), errno).into()
                })
            },
        )
    }
}
