//! Writes a trace, block by block.

use std::io::Write;

use super::columns::{
    BLOCK, ENDING, MAGIC, OPERATIONS, ORIGIN, RESIDENT, TREE, put, put_operations, write_frame,
};
use super::error::TraceError;
use super::facts::{Ending, EntryKind, KeptEntry, ResidentRange, TraceOrigin, VERSION};
use super::names::Names;
use super::operation::Operation;

/// A trace that is written.
#[derive(Debug)]
pub struct TraceWriter<W: Write> {
    out: W,
    chain: blake3::Hasher,
    pending: Vec<Operation>,
    /// Names that were written: numbers below it.
    named: u32,
    operations: u64,
    bytes: u64,
}

impl<W: Write> TraceWriter<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// The system cannot write.
    pub fn new(mut out: W, origin: &TraceOrigin) -> Result<Self, TraceError> {
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        let mut writer = Self {
            out,
            chain: blake3::Hasher::new(),
            pending: Vec::new(),
            named: Names::default().count(),
            operations: 0,
            bytes: MAGIC.len() as u64 + 4,
        };
        let text = serde_json::to_vec(origin).map_err(std::io::Error::from)?;
        // First, so that a reader knows at once whether it can use the rest.
        writer.frame(ORIGIN, &text)?;
        Ok(writer)
    }

    fn frame(&mut self, kind: u8, body: &[u8]) -> Result<(), TraceError> {
        let (sum, bytes) = write_frame(&mut self.out, kind, body)?;
        self.chain.update(sum.as_bytes());
        self.bytes += bytes;
        Ok(())
    }

    /// New names below a number, as each frame with names begins. A directory's number is below those of what it holds.
    fn new_names(&mut self, names: &Names, end: u32) -> Vec<u8> {
        let mut body = Vec::new();
        let end = end.max(self.named);
        names.put(self.named..end, &mut body);
        self.named = end;
        body
    }

    /// Writes the tree as it was before.
    ///
    /// # Errors
    /// The system cannot write.
    pub fn tree(&mut self, names: &Names, entries: &[KeptEntry]) -> Result<(), TraceError> {
        for chunk in entries.chunks(BLOCK) {
            // No more than it uses: all names of a large tree are longer than a part may be.
            let used = chunk.iter().map(|entry| entry.path.max(entry.target));
            let end = used.max().map_or(0, |largest| largest.saturating_add(1));
            let mut body = self.new_names(names, end);
            put(&mut body, chunk.len() as u64);
            for entry in chunk {
                let kind = match entry.kind {
                    EntryKind::Directory => 0,
                    EntryKind::File => 1,
                    EntryKind::Link => 2,
                    EntryKind::Other => 3,
                };
                let [path, target] = [entry.path, entry.target].map(u64::from);
                for number in [path, kind, entry.size, entry.stored, target] {
                    put(&mut body, number);
                }
            }
            self.frame(TREE, &body)?;
        }
        // From here on a recorder that is killed leaves a trace that says so.
        self.out.flush()?;
        Ok(())
    }

    /// Writes which parts of the tree's files were in memory before.
    ///
    /// # Errors
    /// The system cannot write.
    pub fn resident(&mut self, ranges: &[ResidentRange]) -> Result<(), TraceError> {
        for chunk in ranges.chunks(BLOCK) {
            let mut body = Vec::new();
            put(&mut body, chunk.len() as u64);
            for range in chunk {
                for number in [u64::from(range.path), range.offset, range.length] {
                    put(&mut body, number);
                }
            }
            self.frame(RESIDENT, &body)?;
        }
        Ok(())
    }

    /// Adds an operation; `names` has those that it uses.
    ///
    /// # Errors
    /// The system cannot write.
    pub fn push(&mut self, names: &Names, operation: Operation) -> Result<(), TraceError> {
        self.pending.push(operation);
        self.operations += 1;
        match self.pending.len() < BLOCK {
            true => Ok(()),
            false => self.block(names),
        }
    }

    fn block(&mut self, names: &Names) -> Result<(), TraceError> {
        let mut body = self.new_names(names, names.count());
        put_operations(&mut body, &self.pending);
        self.pending.clear();
        self.frame(OPERATIONS, &body)
    }

    /// Bytes that were written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many operations were added so far.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Ends the trace, and gives back what it was written to.
    ///
    /// # Errors
    /// The system cannot write.
    pub fn finish(mut self, names: &Names, ending: &Ending) -> Result<W, TraceError> {
        if !self.pending.is_empty() {
            self.block(names)?;
        }
        // The parts before it, so that none can be taken out.
        let mut body = self.chain.finalize().as_bytes().to_vec();
        body.extend(serde_json::to_vec(ending).map_err(std::io::Error::from)?);
        self.frame(ENDING, &body)?;
        self.out.flush()?;
        Ok(self.out)
    }
}
