//! What is wrong with a block, in words. Nothing here runs as long as nothing is wrong.

use std::fmt::Write as _;
use std::os::fd::OwnedFd;

use rustix::fs::FileType;

use super::ledger::{ContentLedger, Expected};
use super::sector::{Label, Sector, sectors};
use crate::content::SECTOR;
use crate::shape::BlockStep;
use stackrace_system::shown::ShownPath;

/// Most wrong bits that are reported as damage even if they hit the sector's header. More cannot be
/// told from a sector of another program.
const DAMAGE_BITS_MAX: u32 = 64;

/// A read that did not hold what it must.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContentMismatch {
    /// Offset of the first wrong sector, bytes from the beginning of the file.
    pub(crate) offset: u64,
    /// The expected and the found content, in words.
    pub(crate) detail: String,
}

/// A unit under suspicion.
struct Suspect<'a> {
    ledger: &'a ContentLedger,
    file: u32,
    /// Beginning of the unit in the file, bytes.
    begin: u64,
    sectors: &'a [Sector],
    expected: Expected,
}

/// Looks closely at a unit in which not every sector is of the newest generation.
///
/// # Errors
/// What is wrong with it. `Ok`: nothing, for every sector is of a generation it may be of.
#[cold]
#[inline(never)]
pub(super) fn judge(
    ledger: &ContentLedger,
    file: u32,
    begin: u64,
    bytes: &[u8],
    expected: Expected,
) -> Result<(), ContentMismatch> {
    let suspect = Suspect {
        ledger,
        file,
        begin,
        sectors: sectors(bytes),
        expected,
    };
    let count = suspect.sectors.len();
    let Some(first) = (0..count).find(|index| !suspect.is_right(*index)) else {
        return Ok(());
    };
    Err(ContentMismatch {
        offset: suspect.offset(first),
        detail: suspect.describe(first),
    })
}

impl Suspect<'_> {
    fn offset(&self, index: usize) -> u64 {
        self.begin + (index * SECTOR) as u64
    }

    /// The label of a sector of this generation.
    fn label(&self, index: usize, generation: u32) -> Label {
        Label {
            mark: self.ledger.mark(self.file),
            offset: self.offset(index),
            generation,
        }
    }

    /// The generation of an undamaged sector in its place.
    fn generation(&self, index: usize) -> Option<u32> {
        let label = Label::read(&self.sectors[index])?;
        // Its own checksum held; now it must also belong to this file and this place.
        (label == self.label(index, label.generation)).then_some(label.generation)
    }

    fn is_right(&self, index: usize) -> bool {
        let generation = self.generation(index);
        generation.is_some_and(|generation| self.expected.allows(generation))
    }

    /// Describes the fault that begins at this sector.
    fn describe(&self, first: usize) -> String {
        let sector = &self.sectors[first];
        // The most telling first: ours and in its place, ours from elsewhere, zeros, damage.
        if let Some(generation) = self.generation(first) {
            return self.of_other_generation(generation);
        }
        if let Some(label) = Label::read(sector) {
            return self.misplaced(label);
        }
        if sector.iter().all(|byte| *byte == 0) {
            let zeros = self.sectors[first..].iter();
            let count = zeros.take_while(|sector| sector.iter().all(|byte| *byte == 0));
            // How many follow tells a lost write (all of it) from a torn one.
            let bytes = count.count() * SECTOR;
            return format!(
                "zeros: {bytes} bytes of them where {} was written",
                self.wanted()
            );
        }
        self.damaged(first)
    }

    /// The content that the unit must hold, in words.
    fn wanted(&self) -> String {
        let Expected { oldest, newest } = self.expected;
        if oldest == newest {
            format!("generation {newest}")
        } else {
            format!("generation {newest} (or, since a write failed, {oldest} or later)")
        }
    }

    /// Undamaged and in its place, but not what was written last.
    fn of_other_generation(&self, found: u32) -> String {
        let runs = self.runs();
        if runs
            .iter()
            .any(|(_, generation)| *generation != Some(found))
        {
            let mut detail = format!(
                "torn: of the {} bytes at {}, ",
                self.sectors.len() * SECTOR,
                self.begin
            );
            for (number, (sectors, generation)) in runs.iter().enumerate() {
                let (from, to) = (sectors.start, sectors.end - 1);
                let separator = if number == 0 { "" } else { ", " };
                let _ = match generation {
                    Some(generation) => write!(
                        detail,
                        "{separator}sectors {from}-{to} are of generation {generation}"
                    ),
                    None => write!(detail, "{separator}sectors {from}-{to} are damaged"),
                };
            }
            let _ = write!(detail, ", where {} was written", self.wanted());
            return detail;
        }
        // Half of the numbers lie behind, as the count starts again at the end.
        let ahead = found.wrapping_sub(self.expected.newest) & (u32::MAX >> 2);
        if ahead < 1 << 29 {
            return format!(
                "generation {found} where {} was written last: another program writes here, or the \
                 ledger belongs to another file",
                self.wanted()
            );
        }
        format!(
            "stale: generation {found} where {} was written",
            self.wanted()
        )
    }

    /// Neighbouring sectors of the same generation; `None` if neither undamaged nor in place.
    fn runs(&self) -> Vec<(std::ops::Range<usize>, Option<u32>)> {
        let mut runs: Vec<(std::ops::Range<usize>, Option<u32>)> = Vec::new();
        for index in 0..self.sectors.len() {
            let generation = self.generation(index);
            match runs.last_mut() {
                // Ranges instead of sectors: a torn megabyte is one sentence.
                Some((sectors, same)) if *same == generation => sectors.end = index + 1,
                _ => runs.push((index..index + 1, generation)),
            }
        }
        runs
    }

    /// A whole sector of ours from elsewhere.
    fn misplaced(&self, label: Label) -> String {
        let wanted = self.wanted();
        match self.ledger.marked(label.mark) {
            // A mark that no file of this run has: left over from before, or from a neighbour.
            None => format!(
                "not written by this run: {wanted} was, but found is a sector of another run, of \
                 generation {} for offset {}",
                label.generation, label.offset
            ),
            Some(_) if label.mark == self.ledger.mark(self.file) => format!(
                "misplaced: holds what belongs to offset {} (generation {}) where {wanted} was \
                 written",
                label.offset, label.generation
            ),
            Some(other) => format!(
                "misplaced: holds what belongs to offset {} of {} (generation {}) where {wanted} \
                 was written",
                label.offset,
                other.path.shown(),
                label.generation
            ),
        }
    }

    /// Neither zeros nor an intact sector.
    fn damaged(&self, index: usize) -> String {
        let found = &self.sectors[index];
        let newest = self.expected.newest;
        let expected = self.ledger.stamp().sector(self.label(index, newest));
        if let Some(torn) = self.torn_inside(index, &expected) {
            return torn;
        }
        let pairs = expected.iter().zip(found);
        // One bit is a fault of memory or cable; hundreds are other content.
        let bits: u32 = pairs.map(|(a, b)| (a ^ b).count_ones()).sum();
        let at = same_bytes(&expected, found);
        let difference = format!(
            "{} at byte {at} of the sector: expected {:#04x}, found {:#04x}",
            if bits == 1 {
                "1 bit differs,"
            } else {
                "the first of them"
            },
            expected.get(at).copied().unwrap_or(0),
            found.get(at).copied().unwrap_or(0)
        );
        let own =
            Label::claimed(found).is_some_and(|label| label.mark == self.ledger.mark(self.file));
        match bits {
            1 => difference,
            _ if own || bits <= DAMAGE_BITS_MAX => format!("{bits} bits differ, {difference}"),
            _ => format!(
                "not written by this run: {bits} of {} bits differ from {}, {difference}",
                SECTOR * 8,
                self.wanted()
            ),
        }
    }

    /// A sector that is new to some byte, and old from there on; or the other way round.
    fn torn_inside(&self, index: usize, new: &Sector) -> Option<String> {
        let newest = self.expected.newest;
        let previous = newest.checked_sub(1).filter(|previous| *previous > 0)?;
        let old = self.ledger.stamp().sector(self.label(index, previous));
        let found = &self.sectors[index];
        let (begin_new, begin_old) = (same_bytes(new, found), same_bytes(&old, found));
        // Whichever generation lasts longer from the beginning came first.
        let (at, first, second, rest) = if begin_new >= begin_old {
            (begin_new, newest, previous, &old)
        } else {
            (begin_old, previous, newest, new)
        };
        (found[at..] == rest[at..]).then(|| {
            format!(
                "torn: bytes 0-{} of the sector are of generation {first}, the rest of generation \
                 {second}, where {} was written",
                at.saturating_sub(1),
                self.wanted()
            )
        })
    }
}

/// Number of bytes at the beginning that are equal.
fn same_bytes(a: &Sector, b: &Sector) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// A read that ended early: whether the file is shorter than what was written to it.
///
/// # Errors
/// How long it must be, and is. `Ok`: it is long enough, and the rest of the read was not looked
/// at; or nothing was written there; or it is a device, whose end is no file's.
#[cold]
#[inline(never)]
pub(super) fn truncated(
    ledger: &ContentLedger,
    file: &OwnedFd,
    step: &BlockStep,
    moved: u32,
) -> Result<(), ContentMismatch> {
    let units = ledger.units_of(step.target);
    let unit_bytes = ledger.unit_bytes() as u64;
    let first = units.start;
    // Beyond the last unit that was written a file may end anywhere.
    let last = units.rev().find(|unit| ledger.expected(*unit).is_known());
    let expected = last.map_or(0, |unit| (unit - first + 1) as u64 * unit_bytes);
    // Without its size nothing can be said against the file.
    let Ok(stat) = rustix::fs::fstat(file) else {
        return Ok(());
    };
    let found = stat.st_size.cast_unsigned();
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    let end = step.offset + u64::from(moved);
    if !is_file || found >= expected || end < found {
        return Ok(());
    }
    Err(ContentMismatch {
        offset: end - end % SECTOR as u64,
        detail: format!("truncated: the file must hold {expected} bytes, and holds {found}"),
    })
}
