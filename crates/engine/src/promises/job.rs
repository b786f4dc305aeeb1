//! One thread of promised operations.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, fsync, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::content::PromisedContent;
use super::lay::{ACTIVE, FILES, Handles, document, write_at};
use super::plan::{DRAWS, Idiom, PromisesPlan};
use crate::calls::close;
use crate::clock::monotonic_ns;
use crate::draw::Draw;
use crate::outcome::{Op, PromiseRecord};
use crate::system::fdatasync;
use crate::worker_pool::{Halt, Worker, fault};

const MAKE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::CLOEXEC);

/// What one thread does, and where it notes it.
pub(super) struct PromisedWork<'a> {
    plan: &'a PromisesPlan,
    handles: &'a Handles,
    content: &'a PromisedContent,
    thread: u32,
    ledger: &'a mut Vec<PromiseRecord>,
    draw: Draw,
    buffer: Vec<u8>,
    /// Generation of each block or document of this thread.
    generations: Vec<u32>,
    /// Operations begun by this thread.
    begun: u64,
    /// Messages that wait in the mail queue, oldest first.
    queue: VecDeque<String>,
}

/// The operation that a thread does next, and to what.
struct NextOperation {
    op: Op,
    object: String,
    offset: u64,
    generation: u32,
}

impl<'a> PromisedWork<'a> {
    pub(super) fn new(
        plan: &'a PromisesPlan,
        handles: &'a Handles,
        content: &'a PromisedContent,
        thread: u32,
        ledger: &'a mut Vec<PromiseRecord>,
    ) -> PromisedWork<'a> {
        PromisedWork {
            plan,
            handles,
            content,
            thread,
            ledger,
            draw: Draw::new(plan.seed, DRAWS | u64::from(thread)),
            buffer: vec![0; plan.bytes as usize],
            // Laid out with generation 1.
            generations: vec![1; plan.objects as usize],
            begun: 0,
            queue: VecDeque::new(),
        }
    }

    /// All operations of this thread.
    pub(super) fn run(&mut self, worker: &mut Worker<'_>) -> Result<(), Halt> {
        for _ in 0..self.plan.share(self.thread) {
            worker.proceed()?;
            crate::pacing::sleep_ns(self.plan.think_time_ns);
            let next = self.next();
            let bytes = u64::from(self.plan.bytes);
            self.content
                .fill(&mut self.buffer, &next.object, next.offset, next.generation);
            let name = next.object.clone();
            let (plan, handles, thread) = (self.plan, self.handles, self.thread);
            let buffer = std::mem::take(&mut self.buffer);
            let done = self.noted(next, bytes, worker, |next| {
                operate(plan.idiom, handles, thread, next, &buffer)
            });
            self.buffer = buffer;
            done?;
            if self.plan.idiom == Idiom::MailQueue {
                self.queue.push_back(name);
                self.deliver(worker)?;
            }
        }
        Ok(())
    }

    /// Draws the next operation.
    fn next(&mut self) -> NextOperation {
        let (op, number) = (self.plan.idiom.op(), self.begun);
        let thread = self.thread;
        self.begun += 1;
        let mut chosen = || {
            let object = self.draw.below(u64::from(self.plan.objects)) as usize;
            self.generations[object] += 1;
            (object as u32, self.generations[object])
        };
        let (object, offset, generation) = match self.plan.idiom {
            Idiom::OverwriteFsync | Idiom::OverwriteDsync => {
                let (block, generation) = chosen();
                let offset = u64::from(block) * u64::from(self.plan.bytes);
                (format!("data-{thread}"), offset, generation)
            }
            Idiom::AppendFdatasync | Idiom::AppendPlain => {
                let offset = number * u64::from(self.plan.bytes);
                (format!("log-{thread}"), offset, 1)
            }
            Idiom::Replace | Idiom::ReplaceNoDirectorySync => {
                let (number, generation) = chosen();
                (document(thread, number), 0, generation)
            }
            Idiom::Create | Idiom::CreateNoDirectorySync => {
                (format!("{FILES}/{thread}-{number}"), 0, 1)
            }
            // A database is refused before threads are started; it never comes here.
            Idiom::MailQueue | Idiom::Database => (format!("{ACTIVE}/{thread}-{number}"), 0, 1),
        };
        NextOperation {
            op,
            object,
            offset,
            generation,
        }
    }

    /// Does one operation, and notes it with its instants, whatever comes of it.
    fn noted(
        &mut self,
        next: NextOperation,
        bytes: u64,
        worker: &mut Worker<'_>,
        work: impl FnOnce(&NextOperation) -> Result<(), Errno>,
    ) -> Result<(), Halt> {
        let begun_ns = monotonic_ns();
        let done = worker.time(next.op, || work(&next).map(|()| bytes));
        // Read after the last call returned: what is acknowledged here was promised before.
        let acknowledged_ns = done.is_ok().then(monotonic_ns);
        let path = self.plan.root.join(&next.object);
        self.ledger.push(PromiseRecord {
            worker: self.thread,
            op: next.op,
            object: next.object,
            offset: next.offset,
            bytes,
            generation: next.generation,
            begun_ns,
            acknowledged_ns,
        });
        done.map(drop)
            .map_err(|errno| fault(next.op, &path, errno).into())
    }

    /// Removes the oldest message of a full queue.
    fn deliver(&mut self, worker: &mut Worker<'_>) -> Result<(), Halt> {
        if self.queue.len() <= self.plan.objects as usize {
            return Ok(());
        }
        let Some(object) = self.queue.pop_front() else {
            return Ok(());
        };
        let next = NextOperation {
            op: Op::Unlink,
            object,
            offset: 0,
            generation: 2,
        };
        let active = self.handles.directory(1);
        self.noted(next, 0, worker, |next| {
            unlinkat(active, below(&next.object), AtFlags::empty())
        })
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
