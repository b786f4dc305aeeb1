//! A card of a real drive, measured by reading it, and by writing over it where that is allowed.
//!
//! The drive is a [`Probe`]: reads with the instants at which they began and ended, and pauses between
//! them. So a model can stand in for it ([`Modelled`]), and what is found can be held against the card
//! of that model.
//!
//! What is used throughout: the instant at which a small read ends tells where the platter stands
//! (Worthington, Ganger and Patt, *On-line Extraction of SCSI Disk Drive Parameters*, 1995), and reads
//! that go down by a track each show the skews (Talagala, Arpaci-Dusseau and Patterson,
//! *Microbenchmark-based Extraction of Local and Global Disk Characteristics*, 1999).

mod arm;
mod buffer;
mod card;
mod check;
mod modelled;
mod near;
mod probe;
mod several;
mod solid;
mod survey;
#[cfg(test)]
mod tests;
mod tracks;
mod turn;
mod writing;
mod written;
mod zones;

pub use check::{mixed, sample};
pub use modelled::{Modelled, Noise};
pub use probe::{Part, Probe, Span, WriteProbe, Writes};

use crate::Nanos;
use crate::cards::Card;
use card::FoundDisk;
use probe::Bench;
use several::Several;
use survey::Survey;
use turn::Turn;
use written::WriteFindings;

/// Smallest drive that can be measured, bytes: its places must lie farther apart than a read.
pub const SMALLEST: u64 = 1 << 30;

/// The findings of reads of a drive.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    sectors: u64,
    survey: Survey,
    kind: FoundKind,
}

#[derive(Debug, Clone, PartialEq)]
enum FoundKind {
    Turns(Box<FoundDisk>),
    /// Nothing turns: an SSD, or a volume; what writing showed, where it was allowed.
    Solid(Several, Option<Box<WriteFindings>>),
}

/// Measures a drive by reading it.
///
/// # Errors
/// The first error of a read.
pub fn measure<P: Probe>(probe: &mut P) -> Result<Found, P::Error> {
    measured(probe, |bench| {
        bench.probe.begins(Part::Several);
        Ok((several::several(bench)?, None))
    })
}

/// Measures a drive by reading it, and by writing over all of it if nothing in it turns.
///
/// # Errors
/// The first error of a read, a write or a flush.
pub fn measure_by_writing<P: WriteProbe>(probe: &mut P) -> Result<Found, P::Error> {
    measured(probe, |bench| {
        let (several, written) = written::written(bench)?;
        Ok((several, Some(Box::new(written))))
    })
}

/// Measures a drive; `solid` measures one in which nothing turns.
fn measured<P: Probe>(
    probe: &mut P,
    solid: impl Fn(&mut Bench<'_, P>) -> Result<(Several, Option<Box<WriteFindings>>), P::Error>,
) -> Result<Found, P::Error> {
    let sectors = probe.sectors();
    let mut bench = Bench {
        probe,
        sectors,
        drawn: 0,
    };
    bench.probe.begins(Part::Survey);
    let survey = survey::survey(&mut bench)?;
    let disk = if survey.may_turn() {
        bench.probe.begins(Part::Turn);
        match turn::turn(&mut bench)? {
            Some(turn) => disk(&mut bench, turn, &survey)?,
            None => None,
        }
    } else {
        None
    };
    let kind = match disk {
        Some(disk) => FoundKind::Turns(Box::new(disk)),
        None => {
            let (several, written) = solid(&mut bench)?;
            FoundKind::Solid(several, written)
        }
    };
    Ok(Found {
        sectors,
        survey,
        kind,
    })
}

fn disk<P: Probe>(
    bench: &mut Bench<'_, P>,
    turn: Turn,
    survey: &Survey,
) -> Result<Option<FoundDisk>, P::Error> {
    bench.probe.begins(Part::Zones);
    let bands = zones::bands(bench, &turn)?;
    // Angles that grow nowhere are none: something else takes that time.
    if bands.is_empty() {
        return Ok(None);
    }
    bench.probe.begins(Part::Skews);
    let zones = tracks::tracks(bench, &turn, bands)?;
    bench.probe.begins(Part::Buffer);
    let buffer = buffer::buffer(bench, &turn, &zones, survey)?;
    bench.probe.begins(Part::Arm);
    let arm = arm::arm(bench, &turn, &zones, &buffer)?;
    Ok((!arm.seeks.is_empty()).then_some(FoundDisk {
        turn,
        zones,
        buffer,
        arm,
    }))
}

impl Found {
    fn disk(&self) -> Option<&FoundDisk> {
        match &self.kind {
            FoundKind::Turns(disk) => Some(disk),
            FoundKind::Solid(..) => None,
        }
    }

    /// Returns true if reads wait for a platter.
    #[must_use]
    pub fn turns(&self) -> bool {
        self.disk().is_some()
    }

    /// Share of the reads that took longer than moving the arm and a whole turn can: the drive, or its
    /// machine, was busy with something else.
    #[must_use]
    pub fn disturbed(&self) -> f64 {
        self.disk().map_or(0.0, |disk| disk.arm.disturbed)
    }

    /// Returns true if reads differ as much as those of a disk, and no turn explains it.
    #[must_use]
    pub fn unexplained(&self) -> bool {
        !self.turns() && self.survey.may_turn()
    }

    /// Time that the first read of all took: a drive that stood still takes seconds.
    #[must_use]
    pub fn first_read(&self) -> Nanos {
        self.survey.first_read
    }

    /// How far the model of a card is from the reads of a drive in which nothing turns, as a share; 0 of a disk, which is
    /// held against other reads ([`sample`]).
    #[must_use]
    pub fn missed(&self, card: &Card) -> f64 {
        match &self.kind {
            FoundKind::Turns(_) => 0.0,
            FoundKind::Solid(several, _) => solid::missed(several, card),
        }
    }

    /// How far the model of a card is from the writes of a drive in which nothing turns, as a share; 0 where nothing was
    /// written.
    #[must_use]
    pub fn missed_writing(&self, card: &Card) -> f64 {
        match &self.kind {
            FoundKind::Solid(_, Some(written)) => solid::missed_writing(written, card),
            _ => 0.0,
        }
    }

    /// Returns true if the drive was written over.
    #[must_use]
    pub fn was_written(&self) -> bool {
        matches!(self.kind, FoundKind::Solid(_, Some(_)))
    }

    /// The card: of a hard disk, or of a volume or an SSD where nothing turns.
    #[must_use]
    pub fn card(&self, model: &str) -> Card {
        match &self.kind {
            FoundKind::Turns(disk) => Card::Disk(Box::new(card::disk(self.sectors, disk, model))),
            FoundKind::Solid(several, written) => {
                let turns = self.survey.may_turn();
                solid::card(self.sectors, several, written.as_deref(), turns, model)
            }
        }
    }
}
