//! Prepares and removes the files, and defines the content of a validated block.

use std::path::Path;

use rustix::fs::{Mode as Permissions, OFlags, SeekFrom};
use rustix::io::Errno;

use super::plan::{SEAL_BYTES, SysbenchPlan, SysbenchVersion, at, wrong};
use crate::clock::FastClock;
use crate::content::{ContentPool, POOL_BYTES};
use crate::control::Control;
use crate::outcome::{Op, OpError};
use crate::worker_pool::fault;
use stackrace_system::draw::Draw;
use stackrace_system::memory::AlignedMemory;

const BLOCKS: u64 = 0x626c_6f63_6b73_0000;

/// The step that was taken for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilePreparation {
    /// The file was made, as there was none.
    Created,
    /// The file was extended, as it was shorter.
    Extended,
    /// The file was as large as needed.
    Reused,
}

/// The cost of making the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preparation {
    /// Bytes written.
    pub bytes: u64,
    /// Time, ns.
    pub elapsed_ns: u64,
    /// The caller asked to stop: not all files are there.
    pub stopped: bool,
}

impl SysbenchPlan {
    /// Makes the files. Version 1.0 keeps what is there and adds what is missing; version 0.4
    /// begins anew. `told` is called for each file before it is written.
    ///
    /// # Errors
    /// A file could not be made, written or synced.
    pub fn prepare(
        &self,
        control: &Control,
        told: &mut dyn FnMut(FilePreparation, u32),
    ) -> Result<Preparation, OpError> {
        let refused = |error: &dyn std::fmt::Display| {
            wrong(Op::Create, &self.directory, 0, error.to_string())
        };
        self.check().map_err(|error| refused(&error))?;
        // A stream of its own, so that preparation and run never write the same content.
        let mut filler = Filler::new(self, u32::MAX).map_err(|error| refused(&error))?;
        let clock = FastClock::calibrated();
        let mut bytes = 0;
        for file in 0..self.files {
            bytes += self.prepare_one(file, &mut filler, control, told)?;
        }
        Ok(Preparation {
            bytes,
            elapsed_ns: clock.now_ns(),
            stopped: control.stopped(),
        })
    }

    fn prepare_one(
        &self,
        file: u32,
        filler: &mut Filler,
        control: &Control,
        told: &mut dyn FnMut(FilePreparation, u32),
    ) -> Result<u64, OpError> {
        if control.stopped() {
            return Ok(0);
        }
        let path = self.path(file);
        let failed = |errno| fault(Op::Create, &path, errno);
        let mut flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        if self.version == SysbenchVersion::V0_4 {
            remove(&path).map_err(failed)?;
        } else {
            flags |= self.flags();
        }
        let permissions = Permissions::from_raw_mode(0o600);
        let fd = rustix::fs::open(&path, flags, permissions).map_err(failed)?;
        // Only the length decides: what is in the file is kept, whatever it is.
        let found = rustix::fs::seek(&fd, SeekFrom::End(0)).map_err(failed)?;
        let needed = self.file_bytes();
        told(
            match found {
                _ if found >= needed => FilePreparation::Reused,
                0 => FilePreparation::Created,
                _ => FilePreparation::Extended,
            },
            file,
        );
        let mut offset = found;
        while offset < needed && !control.stopped() {
            let block = filler.block(offset, self.block_size as usize);
            let written = rustix::io::pwrite(&fd, block, offset)
                .map_err(|errno| at(Op::Write, &path, offset, errno))?;
            if written < block.len() {
                let detail = format!("{written} of {} bytes were written", block.len());
                return Err(wrong(Op::Write, &path, offset, detail));
            }
            offset += written as u64;
        }
        // What is still in memory would be written while others are measured.
        rustix::fs::fsync(&fd).map_err(|errno| fault(Op::Fsync, &path, errno))?;
        Ok(offset - found)
    }

    /// Removes every file; those that do not exist are gone already.
    ///
    /// # Errors
    /// One could not be removed.
    pub fn clean_up(&self) -> Result<(), OpError> {
        (0..self.files).try_for_each(|file| {
            let path = self.path(file);
            remove(&path).map_err(|errno| fault(Op::Unlink, &path, errno))
        })
    }
}

fn remove(path: &Path) -> Result<(), Errno> {
    match rustix::fs::unlink(path) {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

/// A source of what is written, one per thread.
pub(super) enum Filler {
    /// Content that is never checked.
    Pool(Box<ContentPool>),
    /// Random blocks with a checksum and their offset.
    Sealed(AlignedMemory, Draw),
}

impl Filler {
    pub(super) fn new(
        plan: &SysbenchPlan,
        stream: u32,
    ) -> Result<Filler, crate::error::StartError> {
        let largest = plan.request_bytes() as usize;
        if plan.validate {
            let draw = Draw::new(plan.seed, BLOCKS | u64::from(stream));
            return Ok(Filler::Sealed(AlignedMemory::new(largest)?, draw));
        }
        // Streams have 20 bits; the files are laid out by the last.
        let stream = stream & 0xf_ffff;
        let blocks = plan.block_size as usize..=largest;
        let pool = ContentPool::new(plan.content, plan.seed, stream, 1, blocks, POOL_BYTES)?;
        Ok(Filler::Pool(Box::new(pool)))
    }

    /// The next `bytes` bytes to be written, at `offset` of a file.
    #[inline]
    pub(super) fn block(&mut self, offset: u64, bytes: usize) -> &[u8] {
        match self {
            Filler::Pool(pool) => {
                let position = pool.place(0, bytes);
                pool.bytes(position, bytes)
            }
            Filler::Sealed(memory, draw) => {
                let block = &mut memory.bytes_mut()[..bytes];
                for word in block.chunks_mut(8) {
                    word.copy_from_slice(&draw.bits().to_le_bytes()[..word.len()]);
                }
                seal(block, offset);
                block
            }
        }
    }
}

/// Writes checksum and offset to the end of a block. A block too short for them, at the end of a
/// file, gets none.
fn seal(block: &mut [u8], offset: u64) {
    let Some(at) = block.len().checked_sub(SEAL_BYTES) else {
        return;
    };
    let checksum = crc32fast::hash(&block[..at]);
    block[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
    block[at + 4..].copy_from_slice(&offset.to_le_bytes());
}

/// The fault of a block that was read at `offset`, if it has one.
pub(super) fn flaw(block: &[u8], offset: u64) -> Option<String> {
    let at = block.len().checked_sub(SEAL_BYTES)?;
    // Little endian, four bytes of checksum or eight of offset.
    let number = |part: &[u8]| {
        part.iter()
            .rev()
            .fold(0, |sum, &byte| sum << 8 | u64::from(byte))
    };
    let (found, stored) = (
        u64::from(crc32fast::hash(&block[..at])),
        number(&block[at..at + 4]),
    );
    if found != stored {
        return Some(format!(
            "the block's checksum is {found:#x}, and {stored:#x} is stored in it"
        ));
    }
    let place = number(&block[at + 4..]);
    (place != offset).then(|| format!("the block was written for offset {place}"))
}
