//! Deleting a tree, and nothing but the tree.
//!
//! Each directory is read whole before anything in it is removed. What is not a directory is
//! unlinked by name within its directory's descriptor, so that a symbolic link is removed and
//! never followed; a mount point ends the phase with an error and keeps what is below it.

use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;

use super::walk::{Descent, Walk, WalkStep};
use crate::calls::flush;
use crate::control::Control;
use crate::files::AtEnd;
use crate::outcome::{Op, OpError, PhaseOutcome};
use crate::worker_pool::{Halt, PhaseOptions, Worker, alone, fault, refusal};

/// Deletes the tree at `root`, the root included, children before parents, in the order in which
/// directories list them.
///
/// Records one [`Op::Readdir`] and [`Op::Rmdir`] per directory and one [`Op::Unlink`] per entry
/// that is not one. Flushing, if asked for, flushes the file system of the root's parent.
///
/// # Errors
/// Nothing was deleted: the root is not a directory, is a symbolic link or a mount point, or has
/// no name of its own (`/`, `..`). Whatever fails later, a mount point within the tree included,
/// is found in [`PhaseOutcome::error`]; what was deleted until then is gone.
pub fn delete_tree(
    root: &Path,
    at_end: AtEnd,
    slice_ns: u64,
    control: &Control,
) -> Result<PhaseOutcome, OpError> {
    at_end.check(root)?;
    let mut walk = Walk::open(root, Op::Readdir)?;
    if walk.root_is_mount() {
        let detail = "is a mount point: nothing was deleted";
        return Err(refusal(Op::Rmdir, root, Errno::BUSY, detail));
    }
    // The root is removed by name from its parent, so it must have one.
    let Some(name) = root.file_name() else {
        let detail = "has no name of its own: nothing was deleted";
        return Err(refusal(Op::Rmdir, root, Errno::INVAL, detail));
    };
    let above = match root.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent =
        openat(CWD, above, flags, Mode::empty()).map_err(|errno| fault(Op::Rmdir, above, errno))?;
    let ops = [Op::Fsync, Op::Unlink, Op::Rmdir, Op::Readdir];
    let why = "entries are removed by plain calls relative to their directory's descriptor";
    Ok(alone(
        PhaseOptions {
            slice_ns,
            control,
            ops: &ops,
        },
        why.to_owned(),
        |worker| {
            delete(&mut walk, worker)?;
            worker
                .time(Op::Rmdir, || {
                    unlinkat(&parent, name, AtFlags::REMOVEDIR).map(|()| 0)
                })
                .map_err(|errno| fault(Op::Rmdir, root, errno))?;
            match at_end {
                AtEnd::Return => Ok(()),
                AtEnd::Durable => flush(worker, &parent, above),
            }
        },
    ))
}

/// Deletes everything below the root of `walk`.
fn delete(walk: &mut Walk, worker: &mut Worker<'_>) -> Result<(), Halt> {
    read(walk, worker)?;
    loop {
        worker.proceed()?;
        match walk.next()? {
            WalkStep::Done => return Ok(()),
            WalkStep::Entry(FileType::Directory) => match walk.descend(Op::Readdir)? {
                Descent::Entered => read(walk, worker)?,
                // Never delete across a mount point.
                Descent::Elsewhere(error) => return Err(error.into()),
            },
            WalkStep::Entry(_) => remove(walk, worker, Op::Unlink, AtFlags::empty())?,
            WalkStep::Leave => {
                walk.leave();
                remove(walk, worker, Op::Rmdir, AtFlags::REMOVEDIR)?;
            }
        }
    }
}

fn read(walk: &mut Walk, worker: &mut Worker<'_>) -> Result<(), Halt> {
    let done = worker.time(Op::Readdir, || walk.read());
    done.map(drop)
        .map_err(|errno| walk.here(Op::Readdir, errno).into())
}

fn remove(walk: &Walk, worker: &mut Worker<'_>, op: Op, flags: AtFlags) -> Result<(), Halt> {
    let (parent, name) = walk.current();
    let done = worker.time(op, || unlinkat(parent, name, flags).map(|()| 0));
    done.map(drop)
        .map_err(|errno| walk.at_current(op, errno).into())
}
