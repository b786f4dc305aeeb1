//! What a trace holds, counted: classes of calls, coverage, and the bound.

use std::collections::BTreeMap;
use std::io::Read;

use super::bound::{Bound, Path};
use super::call::{Class, Code};
use super::error::TraceError;
use super::facts::{Ending, EntryKind, TraceOrigin, share};
use super::joined::{Joined, SharedSyncs};
use super::operation::Operation;
use super::reader::{Part, TraceReader};

/// Longest mapping whose pages a replay reads, all at once; of longer ones it is not known which were touched.
pub const MAPPED_MAX: u64 = 64 << 20;

/// Most operations of a trace that is replayed: all of them are in memory then.
pub const REPLAYED_MAX: u64 = 8 << 20;

/// All calls of a class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClassTotal {
    /// How many there were.
    pub calls: u64,
    /// Calls that ended with an error.
    pub failed: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Time in them, of all threads together, ns.
    pub time: u64,
    /// The longest one, ns.
    pub longest: u64,
}

/// What a trace holds.
#[derive(Debug)]
pub struct Summary {
    /// Where it was recorded.
    pub origin: TraceOrigin,
    /// How the recording ended.
    pub ending: Ending,
    /// Files of the tree before the recording, and their bytes.
    pub files: u64,
    /// Their sizes together.
    pub file_bytes: u64,
    /// Links that lead out of the directory: what is named through them is not recorded.
    pub links_out: u64,
    /// Bytes of them that were in memory before.
    pub resident_bytes: u64,
    /// Calls by class.
    pub classes: BTreeMap<Class, ClassTotal>,
    /// Processes and threads that were forked.
    pub forks: u64,
    /// Time asleep outside of calls, of all threads together, ns.
    pub pages: u64,
    /// Mappings longer than a replay reads.
    pub long_mappings: u64,
    /// Files that were mapped so that writing to memory writes to them: such writes are not seen.
    pub written_mappings: u64,
    /// Syncs, and how many of them several threads shared.
    pub shared: SharedSyncs,
    /// The critical path.
    pub bound: Bound,
}

/// A summary while the parts of its trace go by, for who reads them for something else, too.
#[derive(Debug)]
pub struct Summing {
    found: Summary,
    path: Path,
    joined: Joined,
}

impl Summing {
    /// Begins with nothing but the origin.
    pub fn of(origin: TraceOrigin) -> Self {
        Self {
            found: Summary {
                origin,
                ending: Ending::default(),
                files: 0,
                file_bytes: 0,
                links_out: 0,
                resident_bytes: 0,
                classes: BTreeMap::new(),
                forks: 0,
                pages: 0,
                long_mappings: 0,
                written_mappings: 0,
                shared: SharedSyncs::default(),
                bound: Path::default().bound(),
            },
            path: Path::default(),
            joined: Joined::default(),
        }
    }

    /// Counts the next part.
    pub fn take(&mut self, part: &Part) {
        let found = &mut self.found;
        match part {
            Part::Tree(entries) => {
                let links = entries
                    .iter()
                    .filter(|entry| entry.kind == EntryKind::Link && entry.target == 0);
                found.links_out += links.count() as u64;
                let files = entries.iter().filter(|entry| entry.kind == EntryKind::File);
                for file in files {
                    found.files += 1;
                    found.file_bytes = found.file_bytes.saturating_add(file.size);
                }
            }
            Part::Resident(ranges) => {
                let bytes = ranges.iter().map(|range| range.length);
                found.resident_bytes = bytes.fold(found.resident_bytes, u64::saturating_add);
            }
            Part::Operations(operations) => {
                for operation in operations {
                    found.count(operation);
                    self.path.take(operation);
                    self.joined.take(operation);
                }
            }
            Part::Ending(ending) => found.ending = ending.clone(),
        }
    }

    /// The summary of the parts that went by.
    pub fn end(self) -> Summary {
        Summary {
            bound: self.path.bound(),
            shared: self.joined.found(),
            ..self.found
        }
    }
}

impl Summary {
    /// Reads a whole trace.
    ///
    /// # Errors
    /// The trace is refused.
    pub fn of<R: Read>(mut reader: TraceReader<R>) -> Result<Self, TraceError> {
        let mut summing = Summing::of(reader.origin().clone());
        while let Some(part) = reader.next_part()? {
            summing.take(&part);
        }
        Ok(summing.end())
    }

    fn count(&mut self, operation: &Operation) {
        // Wakes and forks stand inside a call, which names the same gap again.
        if !matches!(operation.code, Code::Wake | Code::Fork) {
            self.pages = self.pages.saturating_add(operation.gap_blocked);
        }
        if operation.code == Code::Map && operation.length > MAPPED_MAX {
            self.long_mappings += 1;
        }
        match operation.code {
            Code::Fork => self.forks += 1,
            Code::Map if operation.maps_for_writing() => self.written_mappings += 1,
            _ => {}
        }
        // What orders threads is no call.
        if operation.code.class() == Class::Order {
            return;
        }
        let total = self.classes.entry(operation.code.class()).or_default();
        total.calls += 1;
        total.failed += u64::from(operation.result < 0);
        total.bytes = total.bytes.saturating_add(operation.moved());
        total.time = total.time.saturating_add(operation.duration);
        total.longest = total.longest.max(operation.duration);
    }

    /// Share of the time on storage that calls make up which a replay can repeat. Waits for pages count as storage only
    /// where mappings are too long to be read as a whole: else they are those of programs, or are repeated with the mapping.
    pub fn coverage(&self) -> f64 {
        let mut covered = 0_u64;
        for class in Class::STORAGE {
            let time = self.classes.get(&class).map_or(0, |total| total.time);
            match class {
                // It is seen, and cannot be replayed.
                Class::Uncovered => {}
                _ => covered = covered.saturating_add(time),
            }
        }
        let uncovered = self.classes.get(&Class::Uncovered);
        let uncovered = uncovered.map_or(0, |total| total.time);
        let pages = match self.long_mappings {
            0 => 0,
            _ => self.pages,
        };
        let all = covered.saturating_add(uncovered).saturating_add(pages);
        match all {
            0 => 1.0,
            all => share(covered, all),
        }
    }
}
