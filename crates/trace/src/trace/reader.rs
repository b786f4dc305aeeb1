//! Reads a trace, block by block. Nothing that it says is believed before it is checked.

use std::io::Read;

use super::call::Code;
use super::columns::{
    BLOCK, Bytes, ENDING, FRAME, FRAME_HEAD, MAGIC, OPERATIONS, ORIGIN, RESIDENT, TIME, TREE,
    summed, take_operations, unpack,
};
use super::error::TraceError;
use super::facts::{Ending, EntryKind, KeptEntry, OLDEST, ResidentRange, TraceOrigin, VERSION};
use super::names::Names;
use super::operation::Operation;

/// Most threads of a trace.
pub const THREADS_MAX: u32 = 1 << 20;
/// Most open files, and entries of a tree.
const HANDLES: u32 = 1 << 30;
const ENTRIES: usize = 4 << 20;

/// A part of a trace.
#[derive(Debug)]
pub enum Part {
    /// Entries of the tree.
    Tree(Vec<KeptEntry>),
    /// Parts of its files that were in memory.
    Resident(Vec<ResidentRange>),
    /// A block of calls, in their order.
    Operations(Vec<Operation>),
    /// Its end; nothing follows.
    Ending(Ending),
}

/// A trace that is read.
#[derive(Debug)]
pub struct TraceReader<R> {
    from: R,
    version: u32,
    chain: blake3::Hasher,
    /// Where it was recorded.
    origin: TraceOrigin,
    names: Names,
    part: u64,
    entries: usize,
    threads: u32,
    handles: u32,
    operations: u64,
    ended: bool,
}

impl<R: Read> TraceReader<R> {
    /// Begins to read.
    ///
    /// # Errors
    /// It is no trace, one of another version, cut off or damaged, or the system cannot read.
    pub fn new(mut from: R) -> Result<Self, TraceError> {
        let mut head = [0; MAGIC.len()];
        let mut version = [0; 4];
        let no_trace = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => TraceError::NoTrace,
            _ => TraceError::System(error),
        };
        from.read_exact(&mut head).map_err(no_trace)?;
        from.read_exact(&mut version).map_err(no_trace)?;
        let version = u32::from_le_bytes(version);
        match (&head == MAGIC, version) {
            (false, _) => return Err(TraceError::NoTrace),
            (true, OLDEST..=VERSION) => {}
            (true, found) => {
                let known = VERSION;
                return Err(TraceError::Version { found, known });
            }
        }
        let mut chain = blake3::Hasher::new();
        let (kind, body) = frame(&mut from, &mut chain, 0)?;
        let impossible = |why: String| TraceError::Impossible { part: 0, why };
        if kind != ORIGIN {
            return Err(impossible("a trace begins with its origin".to_owned()));
        }
        let origin = serde_json::from_slice(&body);
        Ok(Self {
            origin: origin.map_err(|error| impossible(error.to_string()))?,
            from,
            version,
            chain,
            names: Names::default(),
            part: 1,
            entries: 0,
            threads: 0,
            handles: 0,
            operations: 0,
            ended: false,
        })
    }

    /// Where it was recorded.
    pub fn origin(&self) -> &TraceOrigin {
        &self.origin
    }

    /// The names of the parts so far.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The next part; none after the end.
    ///
    /// # Errors
    /// It is cut off or damaged, or cannot be, or the system cannot read.
    pub fn next_part(&mut self) -> Result<Option<Part>, TraceError> {
        if self.ended {
            return Ok(None);
        }
        // The ending has the sum of the parts before it, not its own.
        let chain = self.chain.finalize();
        let (kind, body) = frame(&mut self.from, &mut self.chain, self.part)?;
        let part = match kind {
            TREE => self.tree(&body).map(Part::Tree),
            RESIDENT => self.resident(&body).map(Part::Resident),
            OPERATIONS => self.block(&body).map(Part::Operations),
            ENDING => {
                let ending = self.ending(&body, chain).map(Part::Ending);
                let mut more = Vec::new();
                self.from.by_ref().take(1).read_to_end(&mut more)?;
                if ending.is_ok() && !more.is_empty() {
                    return Err(TraceError::GoesOn);
                }
                ending
            }
            other => Err(format!("there is no part of kind {other}")),
        };
        let part = part.map_err(|why| TraceError::Impossible {
            part: self.part,
            why,
        })?;
        self.part += 1;
        Ok(Some(part))
    }

    fn tree(&mut self, body: &[u8]) -> Result<Vec<KeptEntry>, String> {
        let mut bytes = Bytes(body);
        self.names.take(&mut bytes)?;
        let short = || "it ends within its entries".to_owned();
        let count = bytes.at_most(BLOCK as u64).ok_or_else(short)?;
        let mut found = Vec::new();
        for _ in 0..count {
            let path = self.named(&mut bytes)?;
            let kind = match bytes.number().ok_or_else(short)? {
                0 => EntryKind::Directory,
                1 => EntryKind::File,
                2 => EntryKind::Link,
                3 => EntryKind::Other,
                other => return Err(format!("there is no entry of kind {other}")),
            };
            let size = bytes.at_most(i64::MAX as u64).ok_or_else(short)?;
            let stored = bytes.at_most(i64::MAX as u64).ok_or_else(short)?;
            let target = match self.version {
                OLDEST => 0,
                _ => self.named(&mut bytes)?,
            };
            found.push(KeptEntry {
                path,
                kind,
                size,
                stored,
                target,
            });
        }
        self.before_operations(&bytes, found.len())?;
        Ok(found)
    }

    fn resident(&mut self, body: &[u8]) -> Result<Vec<ResidentRange>, String> {
        let mut bytes = Bytes(body);
        let short = || "it ends within its ranges".to_owned();
        let count = bytes.at_most(BLOCK as u64).ok_or_else(short)?;
        let mut found = Vec::new();
        for _ in 0..count {
            let path = self.named(&mut bytes)?;
            let offset = bytes.at_most(i64::MAX as u64).ok_or_else(short)?;
            // No file is longer than its last offset.
            let length = bytes.at_most(i64::MAX as u64 - offset).ok_or_else(short)?;
            found.push(ResidentRange {
                path,
                offset,
                length,
            });
        }
        self.before_operations(&bytes, found.len())?;
        Ok(found)
    }

    /// The number of a name that is there.
    fn named(&self, bytes: &mut Bytes<'_>) -> Result<u32, String> {
        let name = bytes.at_most(u64::from(self.names.count()) - 1);
        Ok(name.ok_or("an entry has no name")? as u32)
    }

    /// Checks a part that tells of the tree: it is that before the first operation.
    fn before_operations(&mut self, left: &Bytes<'_>, entries: usize) -> Result<(), String> {
        self.entries += entries;
        match (left.0.is_empty(), self.entries > ENTRIES) {
            _ if self.operations > 0 => Err("a tree stands behind operations".to_owned()),
            (false, _) => Err("bytes follow its entries".to_owned()),
            (true, true) => Err(format!("its tree has more than {ENTRIES} entries")),
            (true, false) => Ok(()),
        }
    }

    fn block(&mut self, body: &[u8]) -> Result<Vec<Operation>, String> {
        let mut bytes = Bytes(body);
        self.names.take(&mut bytes)?;
        let operations = take_operations(&mut bytes)?;
        if !bytes.0.is_empty() {
            return Err("bytes follow its operations".to_owned());
        }
        for operation in &operations {
            self.check(operation)
                .map_err(|why| format!("operation {}: {why}", self.operations))?;
            self.operations += 1;
        }
        Ok(operations)
    }

    /// Checks that an operation fits what came before it.
    fn check(&mut self, operation: &Operation) -> Result<(), String> {
        // Sums of two must not overflow, wherever they are used.
        let times = [
            operation.start,
            operation.duration,
            operation.gap_queued,
            operation.gap_blocked,
            operation.queued,
            operation.blocked,
        ];
        if times.iter().any(|time| *time > TIME) {
            return Err("a time is longer than 36 years".to_owned());
        }
        let other = match operation.code {
            Code::Wake | Code::Fork => Some(operation.result),
            _ => None,
        };
        let other = other.map(|thread| u32::try_from(thread).unwrap_or(u32::MAX));
        for thread in [Some(operation.thread), other].into_iter().flatten() {
            if thread > self.threads || thread >= THREADS_MAX {
                return Err(format!("thread {thread} is not there yet"));
            }
            self.threads = self.threads.max(thread + 1);
        }
        if operation.handle > self.handles {
            // Only these two bring a new file, and numbers go up one by one: no table has holes.
            let opens = matches!(operation.code, Code::Open | Code::Held);
            if !opens || operation.handle != self.handles + 1 || operation.handle >= HANDLES {
                return Err(format!("file {} is not open yet", operation.handle));
            }
            self.handles = operation.handle;
        }
        let named = operation.path.max(operation.second);
        if named >= self.names.count() {
            return Err(format!("name {named} is not there yet"));
        }
        if u64::from(operation.cause) > self.operations {
            return Err("its cause stands before the trace".to_owned());
        }
        Ok(())
    }

    fn ending(&mut self, body: &[u8], chain: blake3::Hash) -> Result<Ending, String> {
        self.ended = true;
        let (sum, text) = body
            .split_at_checked(blake3::OUT_LEN)
            .ok_or("it has no sum of the parts before it")?;
        if sum != chain.as_bytes() {
            return Err("a part before it is missing".to_owned());
        }
        let ending: Ending = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if ending.operations != self.operations || ending.threads != u64::from(self.threads) {
            return Err(format!(
                "it counts {} operations of {} threads, and there are {} of {}",
                ending.operations, ending.threads, self.operations, self.threads
            ));
        }
        Ok(ending)
    }
}

/// Reads a frame: its kind and its body.
fn frame(
    from: &mut impl Read,
    chain: &mut blake3::Hasher,
    part: u64,
) -> Result<(u8, Vec<u8>), TraceError> {
    let cut_off = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => TraceError::CutOff,
        _ => TraceError::System(error),
    };
    let mut head = [0; FRAME_HEAD];
    from.read_exact(&mut head).map_err(cut_off)?;
    let [kind, a, b, c, d, e, f, g, h, sum @ ..] = head;
    let (packed, length) = (
        u32::from_le_bytes([a, b, c, d]),
        u32::from_le_bytes([e, f, g, h]),
    );
    if packed > FRAME || length > FRAME {
        let why =
            format!("it has {packed} bytes, {length} when unpacked; at most {FRAME} are read");
        return Err(TraceError::Impossible { part, why });
    }
    // Room for what is there, not for what the head says.
    let mut body = Vec::new();
    from.by_ref()
        .take(u64::from(packed))
        .read_to_end(&mut body)?;
    if body.len() < packed as usize {
        return Err(TraceError::CutOff);
    }
    let found = summed(&head[..FRAME_HEAD - sum.len()], &body);
    if found.as_bytes() != &sum {
        return Err(TraceError::Damaged(part));
    }
    chain.update(&sum);
    let unpacked = unpack(&body, length).ok_or(TraceError::Damaged(part))?;
    Ok((kind, unpacked))
}
