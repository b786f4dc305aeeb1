//! The queue of a served device: requests in, the model asked, completions out.

use super::abi::{self, DESCRIPTOR_BYTES, Descriptor};
use super::content::StoredContent;
use super::device::{Counters, Dialect, PAGE, ServeError};
use super::log::{SharedLog, Unreadable};
use super::room::ContentRoom;
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use rustix::time::{ClockId, clock_gettime};
use stackrace_drives::{Drive, Nanos, Operation, Request};
use stackrace_system::mapping::Mapping;
use stackrace_system::memory::AlignedMemory;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A ring whose entries have room for a command.
pub(super) type CommandRing = IoUring<squeue::Entry128, cqueue::Entry>;

/// Requests that the kernel may have outstanding.
pub(super) const DEPTH: u16 = 64;

/// Bytes of the largest request.
pub(super) const BUFFER_BYTES: u32 = 512 << 10;

/// Bytes that the kernel maps for the descriptions of requests.
const MAPPED_BYTES: usize = (DEPTH as usize * DESCRIPTOR_BYTES).next_multiple_of(4096);

/// Bytes of a sector as the kernel counts.
const SECTOR: u64 = 512;

/// The parts that a queue serves, and serves with.
pub(super) struct QueueParts {
    pub(super) content: StoredContent,
    pub(super) unreadable: Unreadable,
    pub(super) lead: Nanos,
    pub(super) dialect: Dialect,
    pub(super) log: Option<SharedLog>,
    /// Room that the log takes memory of.
    pub(super) room: ContentRoom,
}

/// A queue under way.
pub(super) struct Queue {
    file: File,
    ring: CommandRing,
    /// Holds the device: while it is there, the kernel does not let the device go.
    descriptors: Mapping,
    buffers: AlignedMemory,
    parts: QueueParts,
    drive: Box<dyn Drive>,
    /// The latest instant that the model was told.
    clock: Nanos,
    /// Error of the request in each slot, if it failed.
    failed: Vec<Option<Errno>>,
    counters: Arc<Counters>,
}

/// The clock that the model is told, ns.
fn now() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    // It begins at 0: neither part is negative.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl Queue {
    /// Opens the device's queue and waits for requests in all of its slots.
    pub(super) fn open(
        number: u32,
        drive: Box<dyn Drive>,
        parts: QueueParts,
        counters: Arc<Counters>,
    ) -> Result<Self, ServeError> {
        let failed = |error: std::io::Error| ServeError::new("open the queue of", error);
        urgent().map_err(|errno| failed(errno.into()))?;
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        counters.thread.store(thread, Ordering::Relaxed);
        let path = format!("/dev/ublkc{number}");
        let file = File::options().read(true).write(true).open(path);
        let file = file.map_err(failed)?;
        let shared = MapFlags::SHARED | MapFlags::POPULATE;
        let descriptors = Mapping::of_file(&file, 0, MAPPED_BYTES, ProtFlags::READ, shared);
        let buffers = AlignedMemory::new(usize::from(DEPTH) * BUFFER_BYTES as usize);
        let mut queue = Self {
            // What arrives is handed over by this thread itself, when it asks: no signal interrupts it.
            ring: CommandRing::builder()
                .setup_single_issuer()
                .setup_defer_taskrun()
                .build(u32::from(DEPTH))
                .map_err(failed)?,
            file,
            descriptors: descriptors.map_err(|errno| failed(errno.into()))?,
            buffers: buffers.map_err(|error| ServeError::new("get buffers for", error))?,
            parts,
            drive,
            clock: 0,
            failed: vec![None; usize::from(DEPTH)],
            counters,
        };
        for tag in 0..DEPTH {
            queue.push(abi::FETCH, tag, 0).map_err(failed)?;
        }
        queue.ring.submit().map_err(failed)?;
        Ok(queue)
    }

    /// Serves until the device is gone.
    pub(super) fn serve(&mut self) -> std::io::Result<()> {
        loop {
            self.answer()?;
            self.wait()?;
            while let Some(done) = self.arrived() {
                if done.result() < 0 {
                    return Err(std::io::Error::from_raw_os_error(-done.result()));
                }
                self.take(done.user_data() as u16);
            }
        }
    }

    /// Completes what the model has done by now.
    fn answer(&mut self) -> std::io::Result<()> {
        let until = now() + self.parts.lead;
        self.clock = self.clock.max(until);
        while let Some(done) = self.drive.complete(self.clock) {
            let tag = done.id as u16;
            let request = self.descriptor(tag);
            let length = (u64::from(request.sectors) * SECTOR) as usize;
            // A drive with faults says which of its completions is a failure.
            let broken = self.drive.take_error(done.id).map(|_| Errno::IO);
            let failed = self.failed[usize::from(tag)].take().or(broken);
            let result = match failed {
                Some(errno) => -errno.raw_os_error(),
                None if matches!(request.operation, abi::READ | abi::WRITE) => length as i32,
                None => 0,
            };
            if request.operation == abi::READ {
                let from = request.first * SECTOR;
                let place = self.place(tag, length);
                self.parts
                    .content
                    .read(from, &mut self.buffers.bytes_mut()[place]);
            }
            if let Some(log) = &self.parts.log
                && failed.is_none()
            {
                // Not earlier than the kernel can know of it.
                log.complete(done.id, now());
            }
            self.push(abi::COMMIT_AND_FETCH, tag, result)?;
            self.counters.requests.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Hands over what was completed, and waits for a request or for the model's next instant.
    fn wait(&mut self) -> std::io::Result<()> {
        let waited = match self.drive.next_event() {
            None => self.ring.submit_and_wait(1),
            Some(at) => {
                let left = at.saturating_sub(self.parts.lead);
                let left = left.saturating_sub(now());
                let limit = Timespec::new()
                    .sec(left / 1_000_000_000)
                    .nsec((left % 1_000_000_000) as u32);
                let limit = SubmitArgs::new().timespec(&limit);
                self.ring.submitter().submit_with_args(1, &limit)
            }
        };
        match waited {
            Ok(_) => Ok(()),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::TIME | Errno::INTR | Errno::AGAIN | Errno::BUSY) => Ok(()),
                _ => Err(error),
            },
        }
    }

    fn arrived(&mut self) -> Option<cqueue::Entry> {
        self.ring.completion().next()
    }

    /// Takes a request: its data move now, and the model says when it is done.
    fn take(&mut self, tag: u16) {
        let Descriptor {
            operation,
            durable,
            sectors,
            first,
        } = self.descriptor(tag);
        let length = u64::from(sectors) * SECTOR;
        let place = self.place(tag, length as usize);
        let (asked, changes) = match operation {
            abi::WRITE => (Operation::Write { durable }, true),
            abi::FLUSH => (Operation::Flush, true),
            abi::DISCARD | abi::WRITE_ZEROES => (Operation::Discard, true),
            _ => (Operation::Read, false),
        };
        let request = Request {
            id: u64::from(tag),
            operation: asked,
            first,
            sectors,
        };
        self.clock = self.clock.max(now());
        let mut failed = self.parts.unreadable.error(&request);
        if changes && !self.note(&request, place.clone()) {
            failed = Some(Errno::NOSPC);
        }
        match asked {
            Operation::Write { .. } => {
                let bytes = &self.buffers.bytes()[place];
                if !self.parts.content.write(first * SECTOR, bytes) {
                    failed = Some(Errno::NOSPC);
                }
            }
            Operation::Discard => self.parts.content.clear(first * SECTOR, length),
            Operation::Flush | Operation::Read => {}
        }
        self.failed[usize::from(tag)] = failed;
        self.drive.submit(request, self.clock);
    }

    /// Writes a request into the log, if one is kept; false: there is no memory left for it.
    fn note(&self, request: &Request, place: std::ops::Range<usize>) -> bool {
        let Some(log) = &self.parts.log else {
            return true;
        };
        let (data, operation) = match request.operation {
            Operation::Write { .. } => (&self.buffers.bytes()[place], request.operation),
            // To a reader a discard is a write of zeros that may be lost.
            Operation::Discard => (&[][..], Operation::Write { durable: false }),
            _ => (&[][..], request.operation),
        };
        if !(0..data.len().div_ceil(PAGE as usize)).all(|_| self.parts.room.take()) {
            return false;
        }
        let request = Request {
            operation,
            ..*request
        };
        log.submit(request, self.clock, data);
        true
    }

    fn descriptor(&self, tag: u16) -> Descriptor {
        let at = usize::from(tag % DEPTH) * DESCRIPTOR_BYTES;
        let mut bytes = [0; DESCRIPTOR_BYTES];
        // The kernel wrote it before it handed the request over, and does not write it again before
        // the request is completed.
        self.descriptors.read(at, &mut bytes);
        Descriptor::of(bytes)
    }

    /// Range of the first bytes of a slot's buffer.
    fn place(&self, tag: u16, length: usize) -> std::ops::Range<usize> {
        let start = usize::from(tag) * BUFFER_BYTES as usize;
        start..start + length.min(BUFFER_BYTES as usize)
    }

    fn push(&mut self, command: u32, tag: u16, result: i32) -> std::io::Result<()> {
        let buffer = self.place(tag, 0).start;
        let buffer = self
            .buffers
            .as_ptr()
            .wrapping_add(buffer)
            .expose_provenance();
        let command = self.parts.dialect.word(command);
        let entry = opcode::UringCmd80::new(Fd(self.file.as_raw_fd()), command)
            .cmd(abi::slot(tag, result, buffer as u64))
            .build()
            .user_data(u64::from(tag));
        // SAFETY: the kernel uses the slot's buffer until it hands the next request over; the
        // buffers live as long as the queue, and no other slot uses the same.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.map_err(std::io::Error::other)
    }
}

/// Has the calling thread run before all others, at its timers' very instants: a drive does not wait
/// for a processor.
fn urgent() -> Result<(), Errno> {
    // The kernel's `struct sched_param`: its one field, the priority.
    let first: libc::c_int = 1;
    // SAFETY: it changes nothing but when the timers of the calling thread fire.
    let late = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) } != 0;
    // The kernel is asked itself: the function of that name in musl always refuses.
    let call = libc::SYS_sched_setscheduler;
    // SAFETY: it changes nothing but how the calling thread is scheduled, and `first` lives until
    // it returns.
    let first = || unsafe { libc::syscall(call, 0, libc::SCHED_FIFO, &raw const first) } == 0;
    match late || !first() {
        true => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::PERM)),
        false => Ok(()),
    }
}
