//! One thread of promised operations.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, fsync, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::content::PromisedContent;
use super::lay::{Handles, write_at};
use super::plan::{Idiom, PromisesPlan};
use super::sequence::{NextOperation, Sequence};
use super::told::Acknowledged;
use crate::calls::close;
use crate::outcome::{Op, PromiseRecord};
use crate::worker_pool::{Halt, Worker, fault};
use stackrace_system::fdatasync;
use stackrace_system::monotonic_ns;

const MAKE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::CLOEXEC);

/// The work of one thread, and the ledger it notes it in.
pub(super) struct PromisedWork<'a> {
    pub(super) plan: &'a PromisesPlan,
    pub(super) handles: &'a Handles,
    pub(super) content: &'a PromisedContent,
    pub(super) thread: u32,
    pub(super) ledger: &'a mut Vec<PromiseRecord>,
    /// Listener to each operation. `None` means that the ledger alone is kept.
    pub(super) told: Option<&'a dyn Acknowledged>,
}

impl PromisedWork<'_> {
    /// All operations of this thread.
    pub(super) fn run(&mut self, worker: &mut Worker<'_>) -> Result<(), Halt> {
        let plan = self.plan;
        let mut buffer = vec![0; plan.bytes as usize];
        for next in Sequence::new(plan, self.thread) {
            // A removal follows at once: it is part of taking in the message before.
            if next.op != Op::Unlink {
                worker.proceed()?;
                stackrace_system::sleep_ns(plan.think_time_ns);
                let place = (next.object.as_str(), next.offset);
                self.content
                    .fill(&mut buffer, place.0, place.1, next.generation);
            }
            if let Some(told) = self.told {
                told.begins(self.thread);
            }
            self.noted(next, &buffer, worker)?;
        }
        Ok(())
    }

    /// Does one operation, and notes it with its instants, whatever comes of it.
    fn noted(
        &mut self,
        next: NextOperation,
        buffer: &[u8],
        worker: &mut Worker<'_>,
    ) -> Result<(), Halt> {
        let (plan, handles, thread) = (self.plan, self.handles, self.thread);
        let begun_ns = monotonic_ns();
        let done = worker.time(next.op, || {
            operate(plan.idiom, handles, thread, &next, buffer).map(|()| next.bytes)
        });
        // Read after the last call returned: what is acknowledged here was promised before.
        let acknowledged_ns = done.is_ok().then(monotonic_ns);
        let path = plan.root.join(&next.object);
        let op = next.op;
        let record = PromiseRecord {
            worker: thread,
            op,
            object: next.object,
            offset: next.offset,
            bytes: next.bytes,
            generation: next.generation,
            begun_ns,
            acknowledged_ns,
        };
        if let Some(told) = self.told {
            told.ended(&record);
        }
        self.ledger.push(record);
        done.map(drop)
            .map_err(|errno| fault(op, &path, errno).into())
    }
}

/// The calls of one operation, in the order in which careful programs make them.
fn operate(
    idiom: Idiom,
    handles: &Handles,
    thread: u32,
    next: &NextOperation,
    bytes: &[u8],
) -> Result<(), Errno> {
    if next.op == Op::Unlink {
        return unlinkat(handles.directory(1), below(&next.object), AtFlags::empty());
    }
    match idiom {
        Idiom::OverwriteFsync => {
            let file = handles.file(thread);
            write_at(file.as_fd(), bytes, next.offset)?;
            fsync(file)
        }
        Idiom::AppendFdatasync => {
            let file = handles.file(thread);
            write_at(file.as_fd(), bytes, next.offset)?;
            fdatasync(file)
        }
        Idiom::OverwriteDsync | Idiom::AppendPlain => {
            write_at(handles.file(thread).as_fd(), bytes, next.offset)
        }
        Idiom::Replace | Idiom::ReplaceNoDirectorySync => {
            let (directory, name) = (handles.directory(0), below(&next.object));
            let new = format!("{name}.new");
            made(directory, &new, bytes)?;
            renameat(directory, &new, directory, name)?;
            match idiom {
                Idiom::Replace => fsync(directory),
                _ => Ok(()),
            }
        }
        Idiom::Create => {
            made(handles.directory(0), below(&next.object), bytes)?;
            fsync(handles.directory(0))
        }
        Idiom::CreateNoDirectorySync => made(handles.directory(0), below(&next.object), bytes),
        Idiom::MailQueue => {
            let (incoming, active) = (handles.directory(0), handles.directory(1));
            let name = below(&next.object);
            made(incoming, name, bytes)?;
            renameat(incoming, name, active, name)?;
            // Where it is now, first: in between, two names are better than none.
            fsync(active)?;
            fsync(incoming)
        }
        Idiom::Database => Err(Errno::INVAL),
    }
}

/// Makes a new file whose content is durable.
fn made(directory: &OwnedFd, name: &str, bytes: &[u8]) -> Result<(), Errno> {
    let fd = openat(directory, name, MAKE, Mode::from_raw_mode(0o644))?;
    write_at(fd.as_fd(), bytes, 0)?;
    fsync(&fd)?;
    close(fd)
}

/// The name of an object within its directory.
fn below(object: &str) -> &str {
    object.rsplit('/').next().unwrap_or(object)
}
