//! Cards: the parameters of one drive as a TOML file, each value with where it comes from.

use crate::cards::Claim;
use crate::disk::{BufferRules, Cache, Disk, DiskParameters, Geometry, Overheads, SeekCurve, Zone};
pub use crate::origin::Origin;
use crate::{Nanos, SECTOR, Smr, SmrParameters};
use serde::{Deserialize, Serialize};

/// A value with where it comes from.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Stated<T> {
    /// The value, in the unit its name says.
    pub value: T,
    /// Kind of its source.
    pub from: Origin,
    /// The source, in words a reader can follow.
    pub source: String,
}

/// A card of a hard disk. Times are milliseconds, rates MB/s (10⁶ bytes), sizes of memory KiB.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DiskCard {
    /// The word a study names it by.
    pub model: String,
    /// Maker and product, in words.
    pub name: String,
    /// Revolutions a minute.
    pub rpm: Stated<f64>,
    /// Surfaces that hold data.
    pub surfaces: Stated<u32>,
    /// Zones and their tracks.
    pub layout: Stated<Layout>,
    /// Arm movement.
    pub seek: Stated<Seek>,
    /// Time to switch to another surface, ms.
    pub head_switch: Stated<f64>,
    /// Time added to a movement before a write, ms.
    pub write_settle: Stated<f64>,
    /// Time that a command takes to settle on the track on which the arm stands already, ms; `None` means no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle_again: Option<Stated<f64>>,
    /// Time of the controller for a command, ms.
    pub overheads: Stated<CardOverheads>,
    /// Time added when the data of a read and of a write have passed the head, ms; `None` means no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<Stated<[f64; 2]>>,
    /// Rates of the interface for reading and for writing, MB/s.
    pub bus: Stated<[f64; 2]>,
    /// Number of read segments, and KiB in each.
    pub segments: Stated<(usize, f64)>,
    /// Data read ahead of a request, KiB.
    pub read_ahead: Stated<f64>,
    /// What the firmware reads ahead, keeps and gives up; `None` means [`BufferRules::default`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Stated<BufferRules>>,
    /// Volatile write cache, KiB; 0 means no cache.
    pub write_cache: Stated<f64>,
    /// Idle time before dirty data are destaged, ms.
    pub destage_after: Stated<f64>,
    /// Commands queued in the drive (NCQ); 1 means no queue.
    pub queue_depth: Stated<usize>,
    /// Bytes of a physical sector: 512 or 4096.
    pub physical_sector: Stated<u64>,
    /// Bands and media cache of a drive-managed SMR disk; `None` if it is no such disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shingled: Option<Stated<Shingled>>,
    /// Figures of the whole drive, to test the card with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
}

/// Overlapping tracks in bands behind a media cache.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Shingled {
    /// MiB of a band.
    pub band: u64,
    /// MiB of the media cache.
    pub media_cache: u64,
    /// Pieces the map of the media cache holds.
    pub pieces: usize,
    /// Idle time before a band is cleaned, ms.
    pub clean_after: f64,
}

/// The layout of the sectors on the platters.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(untagged, rename_all = "kebab-case")]
pub enum Layout {
    /// Zones as extracted from a drive: cylinders, sectors of a track, data sectors (0: all), track
    /// skew, cylinder skew.
    Zones(Vec<(u32, u32, u64, u32, u32)>),
    /// Figures from a data sheet.
    #[serde(rename_all = "kebab-case")]
    Rates {
        /// Bytes of the whole drive.
        capacity: u64,
        /// Sustained rate at the outer edge, MB/s.
        outer: f64,
        /// Sustained rate at the inner edge, MB/s.
        inner: f64,
    },
}

/// The movement of the arm.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(untagged, rename_all = "kebab-case")]
pub enum Seek {
    /// Distance in cylinders and ms.
    Points(Vec<(u32, f64)>),
    /// Times from a data sheet, ms.
    #[serde(rename_all = "kebab-case")]
    DataSheet {
        /// Time of a seek onto the neighbouring track.
        next_track: f64,
        /// Mean time of seeks over random distances.
        average: f64,
        /// Time of a seek from edge to edge.
        full_stroke: f64,
    },
}

/// Controller times, ms: one for all, or each after a read and after a write.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(untagged, rename_all = "kebab-case")]
pub enum CardOverheads {
    /// The same for every command.
    All(f64),
    /// Times by command and by the command before, `[after a read, after a write]`.
    #[serde(rename_all = "kebab-case")]
    Each {
        /// A read the cache answers.
        read_hit: [f64; 2],
        /// A read that needs the platter.
        read_miss: [f64; 2],
        /// A write that continues what is in the write cache.
        write_hit: [f64; 2],
        /// Any other write.
        write_miss: [f64; 2],
    },
}

/// The reason for which a card is refused: the value, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CardError {
    /// The text is no card.
    #[error("{0}")]
    Text(#[from] toml::de::Error),
    /// A value contradicts itself or another.
    #[error("{name}: {problem}")]
    Value {
        /// The word of the card.
        name: &'static str,
        /// The fault of the value.
        problem: String,
    },
    /// The change that is asked for is no assignment.
    #[error("{change}: {problem}")]
    Change {
        /// Text of the change as it was written.
        change: String,
        /// The fault of the change.
        problem: String,
    },
    /// The card has no such value.
    #[error("there is no value \"{name}\": {}", known.join(", "))]
    Unknown {
        /// The name as it was written.
        name: String,
        /// The values it has.
        known: Vec<String>,
    },
}

impl CardError {
    pub(crate) fn at(name: &'static str, problem: impl Into<String>) -> Self {
        Self::Value {
            name,
            problem: problem.into(),
        }
    }
}

/// A value as a data sheet would state it.
fn sheet<T>(value: T) -> Stated<T> {
    let source = "as a data sheet would state it".to_owned();
    Stated {
        value,
        from: Origin::DataSheet,
        source,
    }
}

/// Zones that a data sheet's two rates are spread over.
const ZONES: u32 = 16;

impl DiskCard {
    /// Reads a card.
    ///
    /// # Errors
    /// When a value is missing, unknown or of the wrong kind.
    pub fn parse(text: &str) -> Result<Self, CardError> {
        Ok(toml::from_str(text)?)
    }

    /// Refuses numbers that no drive has.
    fn check_numbers(&self) -> Result<(), CardError> {
        // From one turn in a second to ten times the fastest drive.
        if !(60.0..=150_000.0).contains(&self.rpm.value) {
            return Err(CardError::at("rpm", "60 to 150000 is expected"));
        }
        if self.surfaces.value == 0 {
            return Err(CardError::at("surfaces", "1 or more is expected"));
        }
        for (name, value) in [
            ("head-switch", self.head_switch.value),
            ("read-ahead", self.read_ahead.value),
            ("write-cache", self.write_cache.value),
            ("destage-after", self.destage_after.value),
            (
                "settle-again",
                self.settle_again.as_ref().map_or(0.0, |time| time.value),
            ),
        ] {
            if !(value.is_finite() && value >= 0.0) {
                return Err(CardError::at(name, "0 or more is expected"));
            }
        }
        Ok(())
    }

    /// The disk of this card, its platter turned by `phase` ns at instant 0.
    ///
    /// # Errors
    /// When values contradict each other.
    pub fn disk(&self, phase: Nanos) -> Result<Disk, CardError> {
        self.check_numbers()?;
        let geometry = self.geometry()?;
        let seek = self.seek_curve(&geometry)?;
        let sectors = |kib: f64| (kib * 1024.0 / SECTOR as f64) as u64;
        let physical = self.physical_sector.value;
        if physical == 0 || !physical.is_multiple_of(SECTOR) {
            return Err(CardError::at("physical-sector", "512 or 4096 is expected"));
        }
        if !self
            .bus
            .value
            .iter()
            .all(|rate| rate.is_finite() && *rate > 0.0)
        {
            return Err(CardError::at("bus", "a rate above 0 is expected"));
        }
        let (segments, segment) = self.segments.value;
        Ok(Disk::new(DiskParameters {
            geometry,
            seek,
            head_switch: ns(self.head_switch.value),
            write_settle: (self.write_settle.value * 1e6).round() as i64,
            settle_again: self.settle_again.as_ref().map_or(0, |time| ns(time.value)),
            overheads: self.overheads.value.times(),
            completion: self
                .completion
                .as_ref()
                .map_or([0; 2], |times| times.value.map(ns)),
            bus_sector: self
                .bus
                .value
                .map(|rate| (SECTOR as f64 * 1e3 / rate).round() as Nanos),
            cache: Cache {
                segments,
                segment_sectors: sectors(segment),
                read_ahead: sectors(self.read_ahead.value),
                rules: self
                    .buffer
                    .as_ref()
                    .map_or_else(BufferRules::default, |rules| rules.value),
                write_sectors: sectors(self.write_cache.value),
                destage_after: ns(self.destage_after.value),
            },
            queue_depth: self.queue_depth.value,
            physical_sectors: (physical / SECTOR) as u32,
            phase,
        }))
    }

    /// The SMR disk of this card; `None` if it is no such disk.
    ///
    /// # Errors
    /// When values contradict each other.
    pub fn smr(&self, phase: Nanos) -> Result<Option<Smr>, CardError> {
        let Some(Stated { value, .. }) = &self.shingled else {
            return Ok(None);
        };
        let sectors = |mib: u64| (mib << 20) / SECTOR;
        let parameters = SmrParameters {
            band: sectors(value.band),
            media_cache: sectors(value.media_cache),
            pieces: value.pieces,
            clean_after: ns(value.clean_after),
        };
        let smr = Smr::new(self.disk(phase)?, parameters);
        smr.map(Some)
            .map_err(|error| CardError::at("shingled", error.to_string()))
    }

    fn geometry(&self) -> Result<Geometry, CardError> {
        let (rpm, heads) = (self.rpm.value, self.surfaces.value);
        let zones = match &self.layout.value {
            Layout::Zones(zones) => zones
                .iter()
                .map(
                    |&(cylinders, per_track, data, track_skew, cylinder_skew)| Zone {
                        cylinders,
                        sectors_per_track: per_track,
                        data_sectors: (data > 0).then_some(data),
                        track_skew,
                        cylinder_skew,
                    },
                )
                .collect(),
            Layout::Rates {
                capacity,
                outer,
                inner,
            } => self.zones(*capacity, *outer, *inner)?,
        };
        Geometry::new(zones, heads, rpm)
            .map_err(|error| CardError::at("layout", format!("{error:?}")))
    }

    /// Zones of equally many cylinders whose rates fall evenly from the outer to the inner edge. A
    /// sustained rate includes the time for switching heads, so tracks hold more than it says. Tracks are
    /// skewed for writing, which settles longer: else each track of a written stream would cost a
    /// revolution, and data sheets give one rate for both.
    fn zones(&self, capacity: u64, outer: f64, inner: f64) -> Result<Vec<Zone>, CardError> {
        if !(outer >= inner && inner > 0.0 && capacity > 0) {
            return Err(CardError::at("layout", "outer >= inner > 0 is expected"));
        }
        let revolution = 60.0 / self.rpm.value;
        let settle = self.write_settle.value.max(0.0) / 1e3;
        let (head, next) = (
            self.head_switch.value / 1e3 + settle,
            self.next_track() / 1e3 + settle,
        );
        let heads = f64::from(self.surfaces.value);
        // A cylinder of n tracks costs n revolutions and its switches.
        let switches = (head * (heads - 1.0) + next) / heads;
        let per_track = |zone: u32| {
            let share = (f64::from(zone) + 0.5) / f64::from(ZONES);
            let rate = (outer - (outer - inner) * share) * 1e6;
            (rate * (revolution + switches) / SECTOR as f64)
                .round()
                .max(1.0)
        };
        let cylinder: f64 = (0..ZONES).map(|zone| per_track(zone) * heads).sum();
        let cylinders = (capacity as f64 / SECTOR as f64 / cylinder).ceil().max(1.0);
        // The skew is what a switch takes, and a sector to spare.
        let skew = |time: f64, per_track: f64| (time / revolution * per_track).ceil() as u32 + 1;
        Ok((0..ZONES)
            .map(|zone| Zone {
                cylinders: cylinders as u32,
                sectors_per_track: per_track(zone) as u32,
                data_sectors: None,
                track_skew: skew(head, per_track(zone)),
                cylinder_skew: skew(next, per_track(zone)),
            })
            .collect())
    }

    fn next_track(&self) -> f64 {
        match &self.seek.value {
            Seek::Points(points) => points.first().map_or(0.0, |point| point.1),
            Seek::DataSheet { next_track, .. } => *next_track,
        }
    }

    fn seek_curve(&self, geometry: &Geometry) -> Result<SeekCurve, CardError> {
        let curve = match &self.seek.value {
            Seek::Points(points) => {
                SeekCurve::through(points.iter().map(|(at, time)| (*at, ns(*time))).collect())
            }
            Seek::DataSheet {
                next_track,
                average,
                full_stroke,
            } => SeekCurve::from_data_sheet(
                geometry.cylinders(),
                ns(*next_track),
                ns(*average),
                ns(*full_stroke),
            ),
        };
        curve.map_err(|error| CardError::at("seek", format!("{error:?}")))
    }
}

impl CardOverheads {
    /// The time of a command that needs the platter, the same for all: what manuals state.
    fn mean(&self) -> f64 {
        match self {
            Self::All(time) => *time,
            Self::Each {
                read_miss,
                write_miss,
                ..
            } => read_miss.iter().chain(write_miss).sum::<f64>() / 4.0,
        }
    }

    fn times(&self) -> Overheads {
        match self {
            Self::All(time) => Overheads::all(ns(*time)),
            Self::Each {
                read_hit,
                read_miss,
                write_hit,
                write_miss,
            } => Overheads {
                read_hit: read_hit.map(ns),
                read_miss: read_miss.map(ns),
                write_hit: write_hit.map(ns),
                write_miss: write_miss.map(ns),
            },
        }
    }
}

fn ns(milliseconds: f64) -> Nanos {
    (milliseconds * 1e6).round() as Nanos
}

impl DiskCard {
    /// The same drive known from no more than a data sheet and its manual: capacity, rates at both
    /// edges, three seek times, one time for a command, rotation, and how the buffer is used.
    /// Zones, skews, the seek curve between its points, and times by kind of command are left out.
    /// The rate of the bus stays: it belongs to the machine a drive was measured in.
    ///
    /// # Errors
    /// When values contradict each other.
    pub fn as_data_sheet(&self) -> Result<Self, CardError> {
        let geometry = self.geometry()?;
        let curve = self.seek_curve(&geometry)?;
        let ms = |time: Nanos| time as f64 / 1e6;
        let [outer, inner] = geometry.edge_rates();
        let next_track = ms(curve.time(1));
        Ok(Self {
            layout: sheet(Layout::Rates {
                capacity: geometry.sectors() * SECTOR,
                outer,
                inner,
            }),
            seek: sheet(Seek::DataSheet {
                next_track,
                average: ms(curve.average(geometry.cylinders())),
                full_stroke: ms(curve.time(geometry.cylinders() - 1)),
            }),
            // Sheets do not state it; about what the arm needs to find a track again.
            head_switch: Stated {
                from: Origin::Assumed,
                ..sheet(next_track)
            },
            overheads: sheet(CardOverheads::All(self.overheads.value.mean())),
            completion: None,
            read_ahead: sheet(self.segments.value.1),
            ..self.clone()
        })
    }
}
