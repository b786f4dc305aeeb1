//! Random seeks: several threads take tickets from one pipe.
//!
//! A ticket says which chunk to read and whether to change it and write it back. In 1.03 it says
//! neither: each seeker draws its own chunks, and updates its first one and every tenth after it.
//! In 2.00 the ticket is a random number, negative if it is divisible by ten; the chunk is what is
//! left when it is divided by the number of chunks. As that number is even, only even chunks are
//! ever updated.

use stackrace_system::limit::InWords;
use std::io::Write;
use std::os::fd::OwnedFd;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::data_files::DataFiles;
use super::{BonniePlan, BonnieRun, BonnieVersion, FILE_BYTES, UPDATE_EVERY};
use crate::outcome::{Op, OpError, PhaseOutcome};
use crate::worker_pool::{Halt, Worker, WorkerPool, errno_of, fault, no_memory, refusal};
use stackrace_system::draw::{Draw, derive};
use stackrace_system::memory::AlignedMemory;

/// Purposes of the seed for the tickets, and for the seekers of 1.03.
const TICKETS: u64 = 0x7469_636b_6574_0000;
const SEEKERS: u64 = 0x7365_656b_6572_0000;
/// A ticket that ends a seeker, in 2.00.
const END: i32 = i32::MIN;

/// The whole queue: what tells a seeker what to do, and one end for each seeker.
fn tickets(plan: &BonniePlan) -> Vec<u8> {
    let (seeks, seekers) = (plan.seeks as usize, plan.seekers as usize);
    match plan.version {
        BonnieVersion::V1_03 => {
            let mut queue = vec![1; seeks];
            queue.resize(seeks + seekers, 0);
            queue
        }
        BonnieVersion::V2_00 => {
            let mut draw = Draw::new(derive(plan.seed, TICKETS), 0);
            let mut queue = Vec::with_capacity((seeks + seekers) * 4);
            for _ in 0..seeks {
                queue.extend(ticket(draw.bits()).to_ne_bytes());
            }
            queue.extend(END.to_ne_bytes().repeat(seekers));
            queue
        }
    }
}

/// A ticket of 2.00 from 64 random bits.
fn ticket(bits: u64) -> i32 {
    let number = (bits >> 33) as i32;
    if number % UPDATE_EVERY as i32 == 0 {
        -number
    } else {
        number
    }
}

/// One seeker: its own open files, its buffer, its random numbers.
struct Seeker<'a> {
    plan: &'a BonniePlan,
    files: &'a [OwnedFd],
    room: AlignedMemory,
    draw: Draw,
    done: u64,
}

/// The request of a ticket.
struct Seek {
    chunk: u64,
    /// The byte to decrement before the chunk is written back; `None` if it is only read.
    update: Option<usize>,
}

impl Seeker<'_> {
    /// Takes the next ticket. `None` means that it was the last.
    fn take(&mut self, queue: &OwnedFd) -> Result<Option<Seek>, Errno> {
        let chunks = self.plan.chunks();
        let mut bytes = [0u8; 4];
        let wanted = match self.plan.version {
            BonnieVersion::V1_03 => 1,
            BonnieVersion::V2_00 => 4,
        };
        if rustix::io::read(queue, &mut bytes[..wanted])? < wanted {
            return Ok(None);
        }
        let number = i32::from_ne_bytes(bytes);
        let seek = match self.plan.version {
            BonnieVersion::V1_03 if bytes[0] == 0 => None,
            BonnieVersion::V1_03 => Some(Seek {
                chunk: self.draw.below(chunks),
                update: self
                    .done
                    .is_multiple_of(UPDATE_EVERY)
                    .then(|| self.draw.below(self.plan.chunk as u64) as usize),
            }),
            BonnieVersion::V2_00 if number == END => None,
            BonnieVersion::V2_00 => {
                let chunk = u64::from(number.unsigned_abs()) % chunks;
                let byte = (chunk % self.plan.chunk as u64) as usize;
                let update = (number < 0).then_some(byte);
                Some(Seek { chunk, update })
            }
        };
        self.done += 1;
        Ok(seek)
    }

    /// Returns the one of its files that holds a chunk, and the place in it.
    fn locate(&self, chunk: u64) -> (usize, u64) {
        let position = chunk * self.plan.chunk as u64;
        match self.plan.version {
            BonnieVersion::V1_03 => ((position / FILE_BYTES) as usize, position % FILE_BYTES),
            BonnieVersion::V2_00 => (0, position),
        }
    }

    /// Goes to the chunk and reads it; changes and writes it back if that is asked for. Returns how
    /// much of the chunk there was.
    fn seek(&mut self, seek: &Seek) -> Result<u64, Errno> {
        let (file, offset) = self.locate(seek.chunk);
        let file = &self.files[file];
        let chunk = &mut self.room.bytes_mut()[..self.plan.chunk];
        rustix::fs::seek(file, SeekFrom::Start(offset))?;
        let got = rustix::io::read(file, &mut *chunk)?;
        if let Some(byte) = seek.update {
            chunk[byte] = chunk[byte].wrapping_sub(1);
            rustix::fs::seek(file, SeekFrom::Start(offset))?;
            if rustix::io::write(file, &*chunk)? < chunk.len() {
                return Err(Errno::NOSPC);
            }
            if self.plan.fsync {
                rustix::fs::fsync(file)?;
            }
        }
        Ok(got as u64)
    }

    /// Works until the tickets are used up, then flushes its files if closing them would.
    fn work(mut self, queue: &OwnedFd, worker: &mut Worker<'_>) -> Result<(), Halt> {
        let plan = self.plan;
        let paths = plan.data_files();
        loop {
            worker.proceed()?;
            let next = self.take(queue);
            let Some(seek) = next.map_err(|errno| fault(Op::Read, &plan.directory, errno))? else {
                break;
            };
            let op = seek.update.map_or(Op::Read, |_| Op::Write);
            let done = worker.time(op, || self.seek(&seek));
            let got = done.map_err(|errno| {
                let (file, offset) = self.locate(seek.chunk);
                let mut error = fault(op, &paths[file], errno);
                error.offset = Some(offset);
                error
            })?;
            if got < plan.chunk as u64 {
                worker.count_short();
            }
        }
        if plan.close_flushes() {
            for (file, path) in self.files.iter().zip(&paths) {
                worker
                    .time(Op::Fsync, || rustix::fs::fsync(file).map(|()| 0))
                    .map_err(|errno| fault(Op::Fsync, path, errno))?;
            }
        }
        Ok(())
    }
}

impl BonnieRun<'_> {
    pub(super) fn seeks(self) -> Result<PhaseOutcome, OpError> {
        let plan = self.plan;
        let pipe_fault = |error: &std::io::Error| {
            let detail = format!("a pipe for the tickets: {error}", error = error.in_words());
            refusal(Op::Open, &plan.directory, errno_of(error), detail)
        };
        let (reader, mut writer) = std::io::pipe().map_err(|error| pipe_fault(&error))?;
        let queue = tickets(plan);
        let mut keep = Vec::new();
        for _ in 0..plan.seekers {
            keep.extend(DataFiles::reopen(plan)?.into_files());
        }
        // Last, so that `seek_together` can split it off.
        keep.push(OwnedFd::from(reader));
        let outcome = std::thread::scope(|scope| {
            // The pipe holds 64 KiB: more tickets follow as others are taken.
            let feeder = move || {
                // Seekers that stopped early leave tickets: the write then fails with EPIPE.
                let _ = writer.write_all(&queue);
            };
            std::thread::Builder::new()
                .spawn_scoped(scope, feeder)
                .map_err(|error| pipe_fault(&error))?;
            let outcome = self.seek_together(&keep);
            // Without a reader, a feeder that still has tickets ends.
            drop(keep);
            outcome
        })?;
        Ok(outcome)
    }

    /// All seekers at once. The last descriptor is the queue, those before it belong to the seekers
    /// in turn.
    fn seek_together(self, keep: &[OwnedFd]) -> Result<PhaseOutcome, OpError> {
        let plan = self.plan;
        let Some((queue, files)) = keep.split_last() else {
            return Err(fault(Op::Open, &plan.directory, Errno::BADF));
        };
        let each = files.len() / plan.seekers as usize;
        let mut parts = Vec::new();
        for (number, files) in files.chunks(each).enumerate() {
            let room = AlignedMemory::new(plan.chunk)
                .map_err(|error| no_memory(Op::Read, &plan.directory, error))?;
            parts.push(Seeker {
                plan,
                files,
                room,
                draw: Draw::new(derive(plan.seed, SEEKERS), number as u64),
                done: 0,
            });
        }
        let ops = [Op::Read, Op::Write, Op::Fsync];
        let workers = WorkerPool {
            watch: self.watch(&ops),
            why: format!("{} threads take tickets from a pipe", plan.seekers),
            root: &plan.directory,
            keep: Some(keep),
        };
        let work = |seeker: Seeker<'_>, worker: &mut Worker<'_>| seeker.work(queue, worker);
        // SAFETY: a seeker uses its data file and the queue, and `keep` has them all.
        unsafe { workers.together(parts, work, None) }
    }
}
