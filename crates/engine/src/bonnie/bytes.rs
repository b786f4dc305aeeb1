//! The phases that read or write the data from beginning to end.

use std::hint::black_box;

use super::data_files::DataFiles;
use super::{BonniePlan, BonnieRun, BonnieVersion};
use crate::content::{ContentPool, POOL_BYTES};
use crate::error::StartError;
use crate::outcome::{Op, OpError, PhaseOutcome};
use crate::spec::Content;
use crate::worker_pool::{Halt, Worker, no_memory};
use stackrace_system::memory::AlignedMemory;

/// The stream buffer of 1.03: the C library's size on file systems with 4 KiB blocks.
const STREAM_BYTES: usize = 4096;
/// Streams of content of the two writing phases.
const CHARACTERS: u32 = 0;
const BLOCKS: u32 = 1;

/// The source of the chunks that are written.
enum ChunkSource {
    /// One buffer, nearly all zero: a byte of it, the next one each time, is incremented.
    Changing { memory: AlignedMemory, index: usize },
    /// Content that is asked for instead.
    Pool(ContentPool),
}

impl ChunkSource {
    fn new(plan: &BonniePlan, stream: u32) -> Result<ChunkSource, OpError> {
        let made = if plan.content == Content::Zero {
            AlignedMemory::new(plan.chunk)
                .map(|memory| ChunkSource::Changing { memory, index: 0 })
                .map_err(StartError::from)
        } else {
            let blocks = plan.chunk..=plan.chunk;
            ContentPool::new(plan.content, plan.seed, stream, 1, blocks, POOL_BYTES)
                .map(ChunkSource::Pool)
        };
        made.map_err(|error| no_memory(Op::Write, &plan.directory, error))
    }

    /// The next chunk.
    #[inline]
    fn next(&mut self, bytes: usize) -> &[u8] {
        match self {
            ChunkSource::Changing { memory, index } => {
                change(&mut memory.bytes_mut()[..bytes], index);
                &memory.bytes()[..bytes]
            }
            ChunkSource::Pool(pool) => {
                let position = pool.place(0, bytes);
                pool.bytes(position, bytes)
            }
        }
    }
}

/// Increments the next byte.
fn change(chunk: &mut [u8], index: &mut usize) {
    chunk[*index] = chunk[*index].wrapping_add(1);
    *index = (*index + 1) % chunk.len();
}

impl BonnieRun<'_> {
    /// Room for one chunk, aligned for direct I/O.
    fn room(&self, bytes: usize) -> Result<AlignedMemory, OpError> {
        AlignedMemory::new(bytes).map_err(|error| no_memory(Op::Read, &self.plan.directory, error))
    }

    /// One character after the other; what is measured as one operation is a chunk of them.
    pub(super) fn write_characters(self) -> Result<PhaseOutcome, OpError> {
        let plan = self.plan;
        let mut pool = match plan.content {
            Content::Zero => None,
            _ => Some(ChunkSource::new(plan, CHARACTERS)?),
        };
        let mut stream = CharacterStream::new(self.room(STREAM_BYTES)?);
        // The characters that the originals write.
        let counting: Vec<u8> = (0..plan.chunk).map(|i| (i & 0x7f) as u8).collect();
        let mut data = DataFiles::create(plan)?;
        let why = match plan.version {
            BonnieVersion::V1_03 => "characters go through a buffer of 4096 bytes, each by itself",
            BonnieVersion::V2_00 => "each character is a system call",
        };
        Ok(self.alone(&[Op::Write, Op::Fsync], why, |worker| {
            for _ in 0..plan.character_bytes() / plan.chunk as u64 {
                worker.proceed()?;
                let chunk = match &mut pool {
                    Some(pool) => pool.next(plan.chunk),
                    None => &counting,
                };
                worker.time(Op::Write, || {
                    match plan.version {
                        BonnieVersion::V1_03 => stream.put(chunk, &mut data)?,
                        BonnieVersion::V2_00 => put(chunk, &data)?,
                    }
                    Ok::<u64, Halt>(chunk.len() as u64)
                })?;
                stream.pass(&mut data)?;
            }
            stream.flush(&mut data)?;
            data.close(plan.close_flushes(), worker)
        }))
    }

    pub(super) fn write_blocks(self) -> Result<PhaseOutcome, OpError> {
        let plan = self.plan;
        let mut source = ChunkSource::new(plan, BLOCKS)?;
        let mut data = DataFiles::create(plan)?;
        let why = "blocks are written by plain calls, one after the other";
        Ok(self.alone(&[Op::Write, Op::Fsync], why, |worker| {
            for _ in 0..plan.chunks() {
                worker.proceed()?;
                worker.time(Op::Write, || {
                    data.write(source.next(plan.chunk))?;
                    Ok::<u64, Halt>(plan.chunk as u64)
                })?;
                // After the clock: what begins the next file belongs to no block.
                data.advance().map_err(|e| data.fault(Op::Write, e))?;
            }
            data.close(plan.close_flushes(), worker)
        }))
    }

    pub(super) fn rewrite(self) -> Result<PhaseOutcome, OpError> {
        let plan = self.plan;
        let (mut room, mut index) = (self.room(plan.chunk)?, 0);
        let mut data = DataFiles::reopen(plan)?;
        let why = "each block is read, changed and written back by plain calls";
        Ok(self.alone(&[Op::Write, Op::Fsync], why, |worker| {
            for _ in 0..plan.chunks() {
                worker.proceed()?;
                let chunk = &mut room.bytes_mut()[..plan.chunk];
                let mut got = 0;
                worker.time(Op::Write, || {
                    got = data.read(chunk).map_err(|e| data.fault(Op::Read, e))?;
                    change(chunk, &mut index);
                    // By what was read: the last block may be short.
                    data.step_back(got).map_err(|e| data.fault(Op::Write, e))?;
                    data.write(chunk)?;
                    Ok::<u64, Halt>(plan.chunk as u64)
                })?;
                count_short(worker, got, plan.chunk);
                data.advance().map_err(|e| data.fault(Op::Write, e))?;
            }
            data.close(plan.close_flushes(), worker)
        }))
    }

    pub(super) fn read_characters(self) -> Result<PhaseOutcome, OpError> {
        let plan = self.plan;
        let mut stream = CharacterStream::new(self.room(STREAM_BYTES)?);
        let mut data = DataFiles::reopen(plan)?;
        let mut seen = [0u64; 256];
        let why = match plan.version {
            BonnieVersion::V1_03 => "characters come from a buffer of 4096 bytes, each by itself",
            BonnieVersion::V2_00 => "each character is a system call",
        };
        let outcome = self.alone(&[Op::Read, Op::Fsync], why, |worker| {
            for _ in 0..plan.character_bytes() / plan.chunk as u64 {
                worker.proceed()?;
                let mut got = 0;
                worker.time(Op::Read, || {
                    got = match plan.version {
                        BonnieVersion::V1_03 => stream.get(plan.chunk, &mut data, &mut seen)?,
                        BonnieVersion::V2_00 => get(plan.chunk, &data, &mut seen)?,
                    };
                    Ok::<u64, Halt>(got as u64)
                })?;
                count_short(worker, got, plan.chunk);
                stream.pass(&mut data)?;
            }
            data.close(plan.close_flushes(), worker)
        });
        // Or the optimizer would drop the counting, and with it the reads of the buffer.
        black_box(seen);
        Ok(outcome)
    }

    pub(super) fn read_blocks(self) -> Result<PhaseOutcome, OpError> {
        let plan = self.plan;
        let mut room = self.room(plan.chunk)?;
        let mut data = DataFiles::reopen(plan)?;
        let why = "blocks are read by plain calls, one after the other";
        Ok(self.alone(&[Op::Read, Op::Fsync], why, |worker| {
            for _ in 0..plan.chunks() {
                worker.proceed()?;
                let chunk = &mut room.bytes_mut()[..plan.chunk];
                let got = worker.time(Op::Read, || {
                    let got = data.read(chunk).map_err(|e| data.fault(Op::Read, e))?;
                    Ok::<u64, Halt>(got as u64)
                })?;
                count_short(worker, got as usize, plan.chunk);
                data.advance().map_err(|e| data.fault(Op::Read, e))?;
            }
            data.close(plan.close_flushes(), worker)
        }))
    }
}

/// The originals report a short block and go on.
fn count_short(worker: &mut Worker<'_>, got: usize, chunk: usize) {
    if got < chunk {
        worker.count_short();
    }
}

/// Writes each character of a chunk by a call of its own.
fn put(chunk: &[u8], data: &DataFiles) -> Result<(), Halt> {
    // Looked up once: the division costs a tenth of such a call.
    let file = data.file();
    for character in chunk.chunks_exact(1) {
        let wrote = rustix::io::write(file, character).map_err(|e| data.fault(Op::Write, e))?;
        if wrote == 0 {
            return Err(data.cut_short(wrote, 1));
        }
    }
    Ok(())
}

/// Reads so many characters, each by a call of its own; returns how many there were.
fn get(chunk: usize, data: &DataFiles, seen: &mut [u64; 256]) -> Result<usize, Halt> {
    let file = data.file();
    let (mut got, mut character) = (0, [0u8]);
    for _ in 0..chunk {
        got += rustix::io::read(file, &mut character).map_err(|e| data.fault(Op::Read, e))?;
        seen[usize::from(character[0])] += 1;
    }
    Ok(got)
}

/// A buffered stream of characters, as a C library makes it.
struct CharacterStream {
    room: AlignedMemory,
    /// Characters in the buffer; when reading, those that were taken out of it.
    taken: usize,
    /// Characters the last read brought.
    held: usize,
}

impl CharacterStream {
    fn new(room: AlignedMemory) -> CharacterStream {
        CharacterStream {
            room,
            taken: 0,
            held: 0,
        }
    }

    /// Puts the characters of a chunk in, one by one, and writes the buffer whenever it is full.
    fn put(&mut self, chunk: &[u8], data: &mut DataFiles) -> Result<(), Halt> {
        for character in chunk {
            // One character at a time, as `putc` does: `black_box` keeps the compiler from copying
            // the chunk at once.
            self.room.bytes_mut()[self.taken] = black_box(*character);
            self.taken += 1;
            if self.taken == STREAM_BYTES {
                self.flush(data)?;
            }
        }
        Ok(())
    }

    /// Writes what is in the buffer.
    fn flush(&mut self, data: &mut DataFiles) -> Result<(), Halt> {
        let rest = std::mem::take(&mut self.taken);
        if rest == 0 {
            return Ok(());
        }
        data.write(&self.room.bytes()[..rest])
    }

    /// Takes so many characters out, one by one; returns how many there were.
    fn get(
        &mut self,
        chunk: usize,
        data: &mut DataFiles,
        seen: &mut [u64; 256],
    ) -> Result<usize, Halt> {
        for got in 0..chunk {
            if self.taken == self.held {
                let room = &mut self.room.bytes_mut()[..STREAM_BYTES];
                self.held = data.read(room).map_err(|e| data.fault(Op::Read, e))?;
                self.taken = 0;
                if self.held == 0 {
                    return Ok(got);
                }
            }
            seen[usize::from(black_box(self.room.bytes()[self.taken]))] += 1;
            self.taken += 1;
        }
        Ok(chunk)
    }

    /// Ends a chunk. Files hold whole buffers, so the buffer is empty where a file ends.
    fn pass(&mut self, data: &mut DataFiles) -> Result<(), Halt> {
        data.advance().map_err(|e| data.fault(Op::Write, e))
    }
}
