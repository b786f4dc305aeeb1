//! io_uring: one ring per worker, files and buffers registered, one system call per batch.

use std::os::fd::{AsRawFd, OwnedFd};

use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{CompletionQueue, EnterFlags, IoUring, SubmissionQueue, Submitter, opcode, squeue};
use rustix::io::Errno;

use crate::content::ContentPool;
use crate::error::StartError;
use crate::outcome::Op;
use crate::ring::{Ring, Wait};
use crate::shape::BlockStep;
use crate::verify::Slots;
use stackrace_system::memory::{AlignedMemory, round_up};
use stackrace_system::sleep_ns;

/// Longest pause where the kernel cannot wait with a time limit (before 5.11), ns.
const BLIND_PAUSE_NS: u64 = 50_000;

/// The buffers of all slots. Must outlive the ring that was told of them.
#[derive(Debug)]
pub(crate) struct Buffers {
    read: AlignedMemory,
    /// Bytes of one slot in `read`.
    stride: usize,
    /// Content that is written. `None` means whatever is in the slot's part of `read`.
    pool: Option<ContentPool>,
}

impl Buffers {
    /// `largest`: bytes of the largest read, or write without a pool; 0 if there are none.
    pub(crate) fn new(
        depth: usize,
        largest: usize,
        pool: Option<ContentPool>,
    ) -> Result<Buffers, StartError> {
        let stride = round_up(largest);
        Ok(Buffers {
            read: AlignedMemory::new(stride * depth)?,
            stride,
            pool,
        })
    }

    /// Beginning of the first `bytes` bytes of a slot's part of `read`.
    #[inline(always)]
    fn slot(&self, slot: usize, bytes: usize) -> *mut u8 {
        let start = slot * self.stride;
        // The length alone is asked for: a slice of memory that the kernel writes to must not be made.
        assert!(start + bytes <= self.read.len());
        self.read.as_ptr().wrapping_add(start)
    }
}

/// Checks that this system has rings at all. What its kernel allows shows when one is made.
pub(crate) fn there() -> Result<(), StartError> {
    Ok(())
}

/// Checks that the kernel lets this process have a ring.
pub(crate) fn allowed() -> Result<(), StartError> {
    IoUring::new(2).map(drop).map_err(|error| refused(&error))
}

fn refused(error: &std::io::Error) -> StartError {
    let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    let disabled = disabled.ok().and_then(|text| text.trim().parse().ok());
    StartError::Ring {
        errno: error.raw_os_error().unwrap_or(0),
        disabled,
    }
}

/// A ring for this many outstanding operations, with the cheapest set-up this kernel knows. Only
/// the thread that built it may use it.
pub(crate) fn build(depth: usize) -> Result<IoUring, StartError> {
    let entries = u32::try_from(depth).unwrap_or(u32::MAX);
    let mut builder = IoUring::builder();
    builder
        .setup_coop_taskrun()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_no_sqarray();
    // NO_SQARRAY needs Linux 6.6, DEFER_TASKRUN 6.1, COOP_TASKRUN 5.19.
    let all = builder.build(entries);
    let without_no_sqarray = || {
        let mut builder = IoUring::builder();
        builder
            .setup_coop_taskrun()
            .setup_single_issuer()
            .setup_defer_taskrun();
        builder.build(entries)
    };
    let only_coop = || IoUring::builder().setup_coop_taskrun().build(entries);
    all.or_else(if_unknown(without_no_sqarray))
        .or_else(if_unknown(only_coop))
        .or_else(if_unknown(|| IoUring::new(entries)))
        .map_err(|error| refused(&error))
}

/// Tries again if the kernel did not know a flag; other errors stand.
fn if_unknown<T>(
    again: impl FnOnce() -> std::io::Result<T>,
) -> impl FnOnce(std::io::Error) -> std::io::Result<T> {
    |error| match Errno::from_io_error(&error) {
        Some(Errno::INVAL) => again(),
        _ => Err(error),
    }
}

/// A ring in use.
pub(crate) struct Uring<'a> {
    submitter: Submitter<'a>,
    submission: SubmissionQueue<'a>,
    completion: CompletionQueue<'a>,
    buffers: &'a mut Buffers,
    files: &'a [OwnedFd],
    /// Files are named by their index, not by their descriptor.
    fixed_files: bool,
    fixed_buffers: bool,
    sync_flags: FsyncFlags,
    can_time_out: bool,
}

impl<'a> Uring<'a> {
    /// Registers files and buffers if the kernel allows it (it may not: too many files, too little
    /// lockable memory). Unregistered ones cost more per operation.
    pub(crate) fn new(
        ring: &'a mut IoUring,
        files: &'a [OwnedFd],
        buffers: &'a mut Buffers,
        data_only: bool,
    ) -> Uring<'a> {
        let can_time_out = ring.params().is_feature_ext_arg();
        let (mut submitter, submission, completion) = ring.split();
        let descriptors: Vec<i32> = files.iter().map(AsRawFd::as_raw_fd).collect();
        let fixed_files = submitter.register_files(&descriptors).is_ok();
        let fixed_buffers = register_buffers(&submitter, buffers);
        // Saves the look-up of the ring's own descriptor; kernels before 5.18 do without.
        let _ = submitter.register_ring_fd();
        let sync_flags = if data_only {
            FsyncFlags::DATASYNC
        } else {
            FsyncFlags::empty()
        };
        Uring {
            submitter,
            submission,
            completion,
            buffers,
            files,
            fixed_files,
            fixed_buffers,
            sync_flags,
            can_time_out,
        }
    }

    /// Submits the batch and collects completions without waiting. A time limit of 0 would put the
    /// thread to sleep and wake it up again.
    fn submit_without_waiting(&self) -> std::io::Result<usize> {
        let batch = self.submission.len() as u32;
        // SAFETY: no argument is passed, and the batch is what the submission queue says it holds.
        unsafe {
            self.submitter
                .enter::<u64>(batch, 0, EnterFlags::GETEVENTS.bits(), None)
        }
    }

    #[inline(always)]
    fn entry(&mut self, slot: usize, step: &BlockStep) -> squeue::Entry {
        let index = step.target as usize;
        let file = if self.fixed_files {
            index as i32
        } else {
            self.files[index].as_raw_fd()
        };
        let file = Fd(file);
        let fixed = self.fixed_buffers;
        let entry = match (step.op, &mut self.buffers.pool) {
            (Op::Fsync, _) => opcode::Fsync::new(file).flags(self.sync_flags).build(),
            (Op::Write, Some(pool)) => {
                let size = step.size as usize;
                let position = pool.place(slot, size);
                write(
                    file,
                    pool.bytes(position, size).as_ptr(),
                    step,
                    fixed.then_some(1),
                )
            }
            (Op::Write, None) => {
                let bytes = self.buffers.slot(slot, step.size as usize);
                write(file, bytes, step, fixed.then_some(0))
            }
            _ => {
                let bytes = self.buffers.slot(slot, step.size as usize);
                if fixed {
                    opcode::ReadFixed::new(file, bytes, step.size, 0)
                        .offset(step.offset)
                        .build()
                } else {
                    opcode::Read::new(file, bytes, step.size)
                        .offset(step.offset)
                        .build()
                }
            }
        };
        let entry = entry.user_data(slot as u64);
        if self.fixed_files {
            entry.flags(squeue::Flags::FIXED_FILE)
        } else {
            entry
        }
    }
}

/// A write from memory that lies in this registered buffer, or in none.
#[inline(always)]
fn write(file: Fd, bytes: *const u8, step: &BlockStep, buffer: Option<u16>) -> squeue::Entry {
    let (size, offset) = (step.size, step.offset);
    match buffer {
        Some(buffer) => opcode::WriteFixed::new(file, bytes, size, buffer)
            .offset(offset)
            .build(),
        None => opcode::Write::new(file, bytes, size).offset(offset).build(),
    }
}

impl Slots for Uring<'_> {
    #[inline]
    fn buffer(&mut self, slot: usize, bytes: usize) -> &mut [u8] {
        let start = self.buffers.slot(slot, bytes);
        // SAFETY: `slot` checked that the bytes lie within the mapping, which is initialised and
        // lives as long as `self.buffers`; slots do not overlap, and the caller promises that no
        // operation of this one is under way, so the kernel leaves these bytes alone.
        unsafe { std::slice::from_raw_parts_mut(start, bytes) }
    }
}

/// Buffer 0 is what is read into, buffer 1 what is written from.
fn register_buffers(submitter: &Submitter<'_>, buffers: &Buffers) -> bool {
    let written = buffers.pool.as_ref().map(ContentPool::memory);
    let regions = std::iter::once(&buffers.read).chain(written);
    let vectors = regions.map(|memory| libc::iovec {
        iov_base: memory.as_ptr().cast(),
        iov_len: memory.len(),
    });
    let vectors: Vec<libc::iovec> = vectors.collect();
    // SAFETY: the regions stay mapped until the ring is gone: `Uring` borrows `buffers`, and the
    // owner of both drops the ring first.
    let registered = unsafe { submitter.register_buffers(&vectors) };
    registered.is_ok()
}

impl Ring for Uring<'_> {
    #[inline(always)]
    fn push(&mut self, slot: usize, step: &BlockStep) -> bool {
        let entry = self.entry(slot, step);
        // SAFETY: the entry's buffer belongs to `slot` alone until it is reaped, and lives as long
        // as `buffers`, which the owner keeps until nothing is outstanding (`drive_ring` says so).
        let pushed = unsafe { self.submission.push(&entry) };
        pushed.is_ok()
    }

    #[inline]
    fn submit(&mut self, wait: Wait) -> Result<(), Errno> {
        self.submission.sync();
        let submitted = match wait {
            Wait::One => self.submitter.submit_and_wait(1),
            Wait::AtMost(0) => self.submit_without_waiting(),
            Wait::AtMost(ns) if self.can_time_out => {
                let limit = Timespec::new()
                    .sec(ns / 1_000_000_000)
                    .nsec((ns % 1_000_000_000) as u32);
                self.submitter
                    .submit_with_args(1, &SubmitArgs::new().timespec(&limit))
            }
            Wait::AtMost(ns) => {
                // Without a time limit in the kernel: submit, and sleep blindly.
                let submitted = self.submitter.submit();
                sleep_ns(ns.min(BLIND_PAUSE_NS));
                submitted
            }
        };
        self.submission.sync();
        self.completion.sync();
        match submitted {
            Ok(_) => Ok(()),
            Err(error) => match Errno::from_io_error(&error) {
                // Nothing completed in time, or a signal arrived: the loop tries again.
                Some(Errno::TIME | Errno::INTR) => Ok(()),
                Some(errno) => Err(errno),
                None => Err(Errno::IO),
            },
        }
    }

    #[inline(always)]
    fn reap(&mut self) -> Option<(usize, i32)> {
        let entry = self.completion.next()?;
        Some((entry.user_data() as usize, entry.result()))
    }
}
