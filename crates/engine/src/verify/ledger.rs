//! Which generation every unit of every file must hold, and which units are in use.
//!
//! One 32-bit word per unit: bit 31 says that an operation under way has the unit, bit 30 that its
//! generation is not sure, the rest is the generation. Generation 0 was never written and is not
//! checked. After 2^30 - 1 writes of one unit the count starts again at 1.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use super::sector::{HEADER_BYTES, Stamp};
use crate::content::SECTOR;
use crate::error::StartError;
use crate::spec::{Content, IoTarget, Spec};

// One word for each unit: whether it is taken, whether it is unsure, and its generation.
const IN_USE: u32 = 1 << 31;
const UNSURE: u32 = 1 << 30;
const GENERATION_MAX: u32 = UNSURE - 1;
/// A header in each sector is not compressed away.
const RATIO_MAX: f64 = (SECTOR / HEADER_BYTES) as f64;

/// The content that some files must have: shared by all workers of a phase, and by all phases that
/// work on these files.
///
/// Takes 4 bytes of memory per unit: 1 MiB for each GiB of files in units of 4 KiB.
#[derive(Debug)]
pub struct ContentLedger {
    targets: Vec<IoTarget>,
    unit_bytes: u32,
    content: Content,
    stamp: Stamp,
    /// Marks of the sectors of each file.
    marks: Vec<u64>,
    /// Number of the first unit of each file, then the number of all units.
    starts: Vec<usize>,
    units: Vec<AtomicU32>,
    /// The oldest generation each unsure unit may hold. Few, and touched only where a write failed.
    oldest: Mutex<HashMap<usize, u32>>,
}

/// The generations a unit may hold: exactly one, unless a write to it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) oldest: u32,
    pub(super) newest: u32,
}

impl Expected {
    /// Returns true if the content is known: nothing is known of a unit no write to which ever succeeded.
    pub(super) fn is_known(self) -> bool {
        self.oldest != 0
    }

    /// Returns true if the unit may hold this generation.
    pub(super) fn allows(self, generation: u32) -> bool {
        // After the largest number comes 1, so ages count back from the newest.
        let age = |generation: u32| self.newest.wrapping_sub(generation) & GENERATION_MAX;
        (1..=GENERATION_MAX).contains(&generation) && age(generation) <= age(self.oldest)
    }
}

/// The greatest common divisor of everything the blocks of a phase are multiples of, bytes: the
/// unit of a [`ContentLedger`] for it.
pub fn unit_bytes(spec: &Spec) -> u32 {
    let sizes = spec.block_sizes.iter().map(|(size, _)| *size);
    let align = spec.align.map(std::num::NonZeroU32::get);
    sizes.chain(align).fold(0, divisor)
}

fn divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { divisor(b, a % b) }
}

fn refuse<T>(what: String, next: &'static str) -> Result<T, StartError> {
    Err(StartError::Spec { what, next })
}

/// Bytes of each sector that are to be random.
fn kept(content: Content) -> Result<usize, StartError> {
    match content {
        Content::Random => Ok(SECTOR),
        Content::Zero => refuse(
            "zeros cannot be verified: every block would look like every other".to_owned(),
            "write random or compressible data, or leave verification out",
        ),
        Content::Shaped { duplicates, .. } if duplicates > 0.0 => refuse(
            format!(
                "{} % duplicates cannot be verified: every block has to be its own",
                duplicates * 100.0
            ),
            "set the share of duplicates to 0, or leave verification out",
        ),
        Content::Shaped { ratio, .. } if ratio > RATIO_MAX => refuse(
            format!(
                "data that compresses {ratio} times cannot be verified: {HEADER_BYTES} of each \
                 {SECTOR} bytes say what it is"
            ),
            "lower the ratio to 16 or less, or leave verification out",
        ),
        Content::Shaped { ratio, .. } => Ok((SECTOR as f64 / ratio.max(1.0)).round() as usize),
    }
}

impl ContentLedger {
    /// A ledger of these files in which nothing is written yet. `unit_bytes` divides the size and
    /// the offset of every operation there will be (see [`unit_bytes`]); what is left at the end of
    /// a file, smaller than a unit, is not touched. `seed` decides the content, and the content
    /// alone: it may be that of the phase or not.
    ///
    /// # Errors
    /// [`StartError::Spec`] for content in which blocks could not be told apart, for units that
    /// are not whole sectors of 512 bytes, and if the memory cannot be had.
    pub fn new(
        targets: &[IoTarget],
        unit_bytes: u32,
        content: Content,
        seed: u64,
    ) -> Result<ContentLedger, StartError> {
        let keep = kept(content)?;
        if unit_bytes == 0 || !(unit_bytes as usize).is_multiple_of(SECTOR) {
            return refuse(
                format!(
                    "units of {unit_bytes} bytes cannot be verified: each {SECTOR} bytes carry a checksum"
                ),
                "give block sizes and an alignment that are multiples of 512",
            );
        }
        let mut starts = Vec::with_capacity(targets.len() + 1);
        starts.push(0);
        let mut count = 0;
        for target in targets {
            count += (target.bytes / u64::from(unit_bytes)) as usize;
            starts.push(count);
        }
        let mut units = Vec::new();
        if units.try_reserve_exact(count).is_err() {
            return refuse(
                format!("no memory for the ledger of {count} units of {unit_bytes} bytes"),
                "give larger blocks or smaller files, or leave verification out",
            );
        }
        // Generation 0: nothing was written there.
        units.resize_with(count, AtomicU32::default);
        let stamp = Stamp::new(seed, keep);
        let marks = (0..).zip(targets).map(|(file, _)| stamp.mark(file));
        Ok(ContentLedger {
            targets: targets.to_vec(),
            unit_bytes,
            content,
            marks: marks.collect(),
            stamp,
            starts,
            units,
            oldest: Mutex::default(),
        })
    }

    /// Refuses a phase this ledger does not fit.
    pub(crate) fn check(&self, spec: &Spec) -> Result<(), StartError> {
        if spec.engine == crate::spec::IoEngine::Null {
            return refuse(
                "the null engine moves no data to verify".to_owned(),
                "use another engine, or leave verification out",
            );
        }
        if spec.engine == crate::spec::IoEngine::Update {
            return refuse(
                "the update engine changes what it reads, which cannot be verified".to_owned(),
                "use another engine, or leave verification out",
            );
        }
        if spec.targets != self.targets {
            return refuse(
                "the phase works on other files than the ledger of what they must hold".to_owned(),
                "give the same files and sizes as when they were laid out",
            );
        }
        // A phase that only reads brings no content of its own.
        if spec.read_share < 1.0 && spec.content != self.content {
            return refuse(
                format!(
                    "the phase is to write {:?}, but its files are verified as {:?}",
                    spec.content, self.content
                ),
                "give the same content as when they were laid out",
            );
        }
        let unit = unit_bytes(spec);
        if !unit.is_multiple_of(self.unit_bytes) {
            return refuse(
                format!(
                    "blocks at multiples of {unit} bytes, in files verified in units of {}",
                    self.unit_bytes
                ),
                "give block sizes and an alignment that are multiples of the unit",
            );
        }
        Ok(())
    }

    /// The files whose content is kept track of.
    pub(super) fn targets(&self) -> &[IoTarget] {
        &self.targets
    }

    pub(super) fn unit_bytes(&self) -> usize {
        self.unit_bytes as usize
    }

    pub(super) fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    pub(super) fn mark(&self, file: u32) -> u64 {
        self.marks[file as usize]
    }

    /// The file with this mark.
    pub(super) fn marked(&self, mark: u64) -> Option<&IoTarget> {
        let file = self.marks.iter().position(|known| *known == mark)?;
        Some(&self.targets[file])
    }

    /// The units of a file.
    pub(super) fn units_of(&self, file: u32) -> Range<usize> {
        self.starts[file as usize]..self.starts[file as usize + 1]
    }

    /// Takes a unit, unless another operation has it.
    #[inline]
    pub(super) fn take(&self, unit: usize) -> bool {
        // Acquire pairs with the release below: the new owner sees all changes of the previous one.
        self.units[unit].fetch_or(IN_USE, Ordering::Acquire) & IN_USE == 0
    }

    /// Gives a unit back as it was.
    #[inline]
    pub(super) fn give_back(&self, unit: usize) {
        // Release pairs with `take` of the next owner.
        self.units[unit].fetch_and(!IN_USE, Ordering::Release);
    }

    /// The generation the next write gives a unit.
    #[inline]
    pub(super) fn next(&self, unit: usize) -> u32 {
        // The caller has taken the unit, so no other thread changes its word.
        let newest = self.units[unit].load(Ordering::Relaxed) & GENERATION_MAX;
        newest % GENERATION_MAX + 1
    }

    /// The generations that a unit may hold.
    #[inline]
    pub(super) fn expected(&self, unit: usize) -> Expected {
        let word = self.units[unit].load(Ordering::Relaxed);
        let newest = word & GENERATION_MAX;
        let oldest = if word & UNSURE == 0 {
            newest
        } else {
            self.oldest_of(unit)
        };
        Expected { oldest, newest }
    }

    /// Books a complete write of a unit its writer has, and gives it back.
    #[inline]
    pub(super) fn written(&self, unit: usize) {
        let next = self.next(unit);
        if self.units[unit].load(Ordering::Relaxed) & UNSURE != 0 {
            self.sure(unit);
        }
        // One store: the new generation, given back and sure.
        self.units[unit].store(next, Ordering::Release);
    }

    /// Records a write that may or may not have reached this unit, and gives the unit back: from
    /// now on any of its sectors may be old or new.
    #[cold]
    pub(super) fn half_written(&self, unit: usize) {
        // What was unsure before stays so, back to its oldest generation.
        let Expected { oldest, .. } = self.expected(unit);
        let next = self.next(unit);
        // Before the word says that the unit is unsure: `expected` then finds the entry.
        self.unsure().insert(unit, oldest);
        self.units[unit].store(next | UNSURE, Ordering::Release);
    }

    #[cold]
    fn oldest_of(&self, unit: usize) -> u32 {
        self.unsure().get(&unit).copied().unwrap_or(0)
    }

    #[cold]
    fn sure(&self, unit: usize) {
        self.unsure().remove(&unit);
    }

    fn unsure(&self) -> std::sync::MutexGuard<'_, HashMap<usize, u32>> {
        self.oldest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(sizes: &[u64], unit: u32) -> ContentLedger {
        let targets: Vec<IoTarget> = (0..)
            .zip(sizes)
            .map(|(file, bytes)| IoTarget {
                path: format!("/data/{file}").into(),
                bytes: *bytes,
            })
            .collect();
        ContentLedger::new(&targets, unit, Content::Random, 1).unwrap()
    }

    #[test]
    fn a_unit_has_one_user() {
        let ledger = ledger(&[4096, 1000, 8192], 4096);
        assert_eq!(ledger.units_of(0), 0..1);
        assert_eq!(ledger.units_of(1), 1..1);
        assert_eq!(ledger.units_of(2), 1..3);
        assert!(ledger.take(1));
        assert!(!ledger.take(1));
        assert!(ledger.take(2));
        ledger.give_back(1);
        assert!(ledger.take(1));
    }

    #[test]
    fn a_write_counts_one_generation() {
        let ledger = ledger(&[4096], 4096);
        assert!(!ledger.expected(0).is_known());
        for generation in 1..4 {
            assert!(ledger.take(0));
            assert_eq!(ledger.next(0), generation);
            ledger.written(0);
            let expected = ledger.expected(0);
            assert_eq!((expected.oldest, expected.newest), (generation, generation));
            assert!(expected.allows(generation) && !expected.allows(generation - 1));
            assert!(!expected.allows(generation + 1));
        }
    }

    /// However many writes fail in a row, the unit may hold what any of them wrote, or what was
    /// there before the first; the next one that succeeds settles it.
    #[test]
    fn failed_writes_leave_old_or_new() {
        let ledger = ledger(&[4096], 4096);
        ledger.written(0);
        ledger.written(0);
        ledger.half_written(0);
        ledger.half_written(0);
        let expected = ledger.expected(0);
        assert_eq!((expected.oldest, expected.newest), (2, 4));
        let allowed: Vec<u32> = (0..8).filter(|g| expected.allows(*g)).collect();
        assert_eq!(allowed, [2, 3, 4]);
        ledger.written(0);
        let expected = ledger.expected(0);
        assert_eq!((expected.oldest, expected.newest), (5, 5));
        assert!(ledger.unsure().is_empty());
    }

    #[test]
    fn a_first_write_that_fails_leaves_nothing_to_check() {
        let ledger = ledger(&[4096], 4096);
        ledger.half_written(0);
        assert!(!ledger.expected(0).is_known());
        ledger.half_written(0);
        assert!(!ledger.expected(0).is_known());
        ledger.written(0);
        assert!(ledger.expected(0).is_known());
    }

    #[test]
    fn generations_start_again_at_one() {
        let ledger = ledger(&[4096], 4096);
        ledger.units[0].store(GENERATION_MAX - 1, Ordering::Relaxed);
        ledger.written(0);
        assert_eq!(ledger.expected(0).newest, GENERATION_MAX);
        ledger.half_written(0);
        let expected = ledger.expected(0);
        assert_eq!((expected.oldest, expected.newest), (GENERATION_MAX, 1));
        assert!(expected.allows(GENERATION_MAX) && expected.allows(1));
        assert!(!expected.allows(0) && !expected.allows(2));
        assert!(!expected.allows(GENERATION_MAX - 1));
    }

    #[test]
    fn content_that_cannot_be_told_apart_is_refused() {
        let targets = [IoTarget {
            path: "/data".into(),
            bytes: 4096,
        }];
        let shaped = |ratio, duplicates| Content::Shaped { ratio, duplicates };
        let new = |unit, content| ContentLedger::new(&targets, unit, content, 1);
        for (unit, content, word) in [
            (4096, Content::Zero, "zeros"),
            (4096, shaped(2.0, 0.1), "10 % duplicates"),
            (4096, shaped(17.0, 0.0), "compresses 17 times"),
            (1000, Content::Random, "units of 1000 bytes"),
            (0, Content::Random, "units of 0 bytes"),
        ] {
            let error = new(unit, content).unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        }
        assert!(new(512, shaped(16.0, 0.0)).is_ok());
        assert!(new(512, shaped(1.0, 0.0)).is_ok());
    }
}
