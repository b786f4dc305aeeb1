//! A drive that is read, and the reads that all measurements have in common.

use crate::{Nanos, scattered};

/// Sectors of a small read or write: 4 KiB.
pub(super) const SMALL: u32 = 8;
/// The same, for sums of places.
pub(super) const STEP: u64 = SMALL as u64;

/// Instants at which a read began and ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// It was handed to the drive.
    pub begin: Nanos,
    /// Its data had arrived.
    pub end: Nanos,
}

impl Span {
    /// Time that it took.
    #[must_use]
    pub fn took(&self) -> Nanos {
        self.end.saturating_sub(self.begin)
    }

    pub(super) fn ns(&self) -> f64 {
        self.took() as f64
    }
}

/// What is measured at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Rates, and the time of a command.
    Survey,
    /// The turn of the platter.
    Turn,
    /// Zones and their tracks.
    Zones,
    /// Skews and surfaces.
    Skews,
    /// What the buffer keeps and reads ahead.
    Buffer,
    /// Movements of the arm.
    Arm,
    /// Several reads at once.
    Several,
    /// Small writes, and flushes behind them.
    Flushes,
    /// One stream of writes over the whole drive.
    Filling,
    /// Bursts of writes after a rest.
    Bursts,
    /// Reads while something is written.
    Beside,
    /// Small writes anywhere, until blocks must be freed for them.
    Overwriting,
}

impl Part {
    /// All of a drive that is read only, in the order in which they are measured.
    pub const READ: [Self; 7] = [
        Self::Survey,
        Self::Turn,
        Self::Zones,
        Self::Skews,
        Self::Buffer,
        Self::Arm,
        Self::Several,
    ];

    /// All of a drive that may be written over, and in which nothing turns.
    pub const WRITTEN: [Self; 8] = [
        Self::Survey,
        Self::Turn,
        Self::Flushes,
        Self::Filling,
        Self::Several,
        Self::Bursts,
        Self::Beside,
        Self::Overwriting,
    ];

    /// The part in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Survey => "rates and the time of a command",
            Self::Turn => "the turn of the platter",
            Self::Zones => "zones and their tracks",
            Self::Skews => "skews and surfaces",
            Self::Buffer => "what the buffer keeps and reads ahead",
            Self::Arm => "movements of the arm",
            Self::Several => "several reads at once",
            Self::Flushes => "small writes and flushes",
            Self::Filling => "a stream of writes over the whole drive",
            Self::Bursts => "bursts of writes",
            Self::Beside => "reads beside writes",
            Self::Overwriting => "small writes anywhere",
        }
    }
}

/// A drive that can be read.
pub trait Probe {
    /// The reason for which a read failed.
    type Error;

    /// Sectors of 512 bytes.
    fn sectors(&self) -> u64;

    /// Reads so many sectors from one on; both are multiples of 8.
    ///
    /// # Errors
    /// When the drive cannot read them.
    fn read(&mut self, first: u64, sectors: u32) -> Result<Span, Self::Error>;

    /// Reads so many sectors from each of these places on, `depth` of them at once; the time until the last has
    /// arrived.
    ///
    /// # Errors
    /// When the drive cannot read them.
    fn at_once(&mut self, depth: u32, places: &[u64], sectors: u32) -> Result<Nanos, Self::Error>;

    /// Leaves the drive alone for so long.
    fn pause(&mut self, time: Nanos);

    /// This part is measured from now on.
    fn begins(&mut self, part: Part);
}

/// A drive that may be written over.
pub trait WriteProbe: Probe {
    /// Writes so many sectors from one on; both are multiples of 8.
    ///
    /// # Errors
    /// When the drive cannot write them.
    fn write(&mut self, first: u64, sectors: u32) -> Result<Span, Self::Error>;

    /// Has the drive keep what was written.
    ///
    /// # Errors
    /// When the drive cannot flush.
    fn flush(&mut self) -> Result<Span, Self::Error>;

    /// Writes so many sectors from each of these places on, `depth` of them at once; the time until the last was
    /// acknowledged.
    ///
    /// # Errors
    /// When the drive cannot write them.
    fn write_at_once(
        &mut self,
        depth: u32,
        places: &[u64],
        sectors: u32,
    ) -> Result<Nanos, Self::Error>;

    /// So much of the part is done, as a share.
    fn goes_on(&mut self, share: f64);

    /// Reads 4 KiB of each of the first places, one at a time, while so many sectors are written from the
    /// others on, `depth` at once; the times of the reads that had writes beside them.
    ///
    /// # Errors
    /// When the drive cannot read or write them.
    fn read_beside(
        &mut self,
        reads: &[u64],
        writes: &Writes<'_>,
    ) -> Result<Vec<Nanos>, Self::Error>;
}

/// Writes that go on beside reads.
#[derive(Debug, Clone, Copy)]
pub struct Writes<'a> {
    /// Number of them that are under way.
    pub depth: u32,
    /// Sectors at which they begin.
    pub places: &'a [u64],
    /// Sectors of each.
    pub sectors: u32,
}

/// A drive with what is known of it, and a source of places that were not read yet.
pub(super) struct Bench<'a, P: Probe> {
    pub(super) probe: &'a mut P,
    pub(super) sectors: u64,
    pub(super) drawn: u64,
}

impl<P: Probe> Bench<'_, P> {
    pub(super) fn small(&mut self, first: u64) -> Result<Span, P::Error> {
        self.read(first, SMALL)
    }

    pub(super) fn read(&mut self, first: u64, sectors: u32) -> Result<Span, P::Error> {
        let last = self.sectors - u64::from(sectors);
        self.probe.read(aligned(first.min(last)), sectors)
    }

    /// Reads of so many sectors anywhere, `depth` at once; the time until the last has arrived.
    pub(super) fn anywhere(
        &mut self,
        depth: u32,
        count: u64,
        sectors: u32,
    ) -> Result<Nanos, P::Error> {
        let room = self.sectors - u64::from(sectors);
        let places: Vec<u64> = (0..count).map(|_| aligned(self.draw(room))).collect();
        self.probe.at_once(depth, &places, sectors)
    }

    /// A number below `most`, another one each time.
    pub(super) fn draw(&mut self, most: u64) -> u64 {
        self.drawn += 1;
        scattered(self.drawn ^ 0x6d65_6173) % most.max(1)
    }
}

/// A value of a card, to three digits behind the point.
pub(super) fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

pub(super) fn aligned(sector: u64) -> u64 {
    sector / STEP * STEP
}

/// The value in the middle; 0 of none.
pub(super) fn middle(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
