//! Where a sector lies on a disk: zones, tracks, skew, and the angle at which it passes the head.

use crate::{Nanos, SECTOR};

/// A band of cylinders whose tracks hold equally many sectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Zone {
    /// Number of cylinders.
    pub cylinders: u32,
    /// Sectors of [`crate::SECTOR`] bytes on each track.
    pub sectors_per_track: u32,
    /// Sectors in this zone that hold data, spares and defects left out; `None` means all of them.
    pub data_sectors: Option<u64>,
    /// Sectors the first sector of a track lies behind that of the track before, on the next
    /// surface of the same cylinder: time for switching heads.
    pub track_skew: u32,
    /// The same from the last track of a cylinder to the first of the next.
    pub cylinder_skew: u32,
}

/// A disk's zones, outermost first, and how fast it turns.
#[derive(Debug, Clone, PartialEq)]
pub struct Geometry {
    zones: Vec<Band>,
    heads: u32,
    revolution: Nanos,
    sectors: u64,
    cylinders: u32,
}

/// A zone with its place on the disk.
#[derive(Debug, Clone, PartialEq)]
struct Band {
    zone: Zone,
    /// First sector, and the number that hold data.
    first: u64,
    sectors: u64,
    /// First cylinder.
    cylinder: u32,
    /// Data sectors for each track, spares spread evenly.
    per_track: f64,
}

/// The reason for which a geometry is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GeometryError {
    /// The geometry has no zone, no surface, or no rotation.
    Empty,
    /// The zone of this number (counted from 0) has no cylinder or no sector, or more data sectors
    /// than its tracks hold.
    Zone(usize),
}

/// The place of one sector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Place {
    /// Its number; of one beyond the last, that of the last.
    pub(super) sector: u64,
    /// Sectors of its track before it.
    pub(super) before_on_track: u32,
    /// Cylinder, counted from the outer edge.
    pub(super) cylinder: u32,
    /// Surface.
    pub(super) head: u32,
    /// Share of a revolution at which its first bit passes the head, 0 to 1.
    pub(super) angle: f64,
    /// Sectors from this one to the end of its track, itself included.
    pub(super) left_on_track: u32,
    /// Time that one sector takes to pass.
    pub(super) sector_time: f64,
}

impl Place {
    /// Its cylinder and surface.
    pub(super) fn over(&self) -> (u32, u32) {
        (self.cylinder, self.head)
    }
}

impl Geometry {
    /// A disk of these zones on `heads` surfaces, turning `rpm` times a minute.
    ///
    /// # Errors
    /// When nothing could be stored on it, or a zone contradicts itself.
    pub fn new(zones: Vec<Zone>, heads: u32, rpm: f64) -> Result<Self, GeometryError> {
        if zones.is_empty() || heads == 0 || !(rpm.is_finite() && rpm > 0.0) {
            return Err(GeometryError::Empty);
        }
        let (mut bands, mut first, mut cylinder) = (Vec::with_capacity(zones.len()), 0, 0_u32);
        for (at, zone) in zones.into_iter().enumerate() {
            let tracks = u64::from(zone.cylinders) * u64::from(heads);
            let room = tracks * u64::from(zone.sectors_per_track);
            let sectors = zone.data_sectors.unwrap_or(room);
            let Some(end) = cylinder.checked_add(zone.cylinders) else {
                return Err(GeometryError::Zone(at));
            };
            if sectors == 0 || sectors > room {
                return Err(GeometryError::Zone(at));
            }
            bands.push(Band {
                first,
                sectors,
                cylinder,
                per_track: sectors as f64 / tracks as f64,
                zone,
            });
            first += sectors;
            cylinder = end;
        }
        Ok(Self {
            zones: bands,
            heads,
            revolution: (60e9 / rpm).round() as Nanos,
            sectors: first,
            cylinders: cylinder,
        })
    }

    /// Sectors of [`crate::SECTOR`] bytes that hold data.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Cylinders of all zones.
    #[must_use]
    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }

    /// Time of one revolution.
    #[must_use]
    pub fn revolution(&self) -> Nanos {
        self.revolution
    }

    /// Rates of long sequential requests in the outermost and the innermost zone, MB/s: switches to
    /// the next track cost what they are skewed by.
    #[must_use]
    pub fn edge_rates(&self) -> [f64; 2] {
        [0, self.zones.len() - 1].map(|at| {
            let (zone, heads) = (&self.zones[at].zone, f64::from(self.heads));
            let skew = f64::from(zone.track_skew) * (heads - 1.0) + f64::from(zone.cylinder_skew);
            let track = f64::from(zone.sectors_per_track);
            let time = self.revolution as f64 * (1.0 + skew / heads / track);
            self.zones[at].per_track * SECTOR as f64 * 1e3 / time
        })
    }

    /// The zone of a sector.
    fn band(&self, sector: u64) -> &Band {
        // Zones hold about the same number of sectors, so the guess is hardly ever off by more than two.
        let share = sector as f64 / self.sectors as f64;
        let mut at = (share * self.zones.len() as f64) as usize;
        at = at.min(self.zones.len() - 1);
        while self.zones[at].first > sector {
            at -= 1;
        }
        while self
            .zones
            .get(at + 1)
            .is_some_and(|next| next.first <= sector)
        {
            at += 1;
        }
        &self.zones[at]
    }

    /// The sector behind the last of the track that a sector lies on.
    pub(super) fn track_end(&self, sector: u64) -> u64 {
        sector + u64::from(self.place(sector).left_on_track)
    }

    /// The sector behind the last of the cylinder that a sector lies on.
    pub(super) fn cylinder_end(&self, sector: u64) -> u64 {
        let place = self.place(sector);
        (place.head..self.heads).fold(sector, |at, _| self.track_end(at))
    }

    /// The place of a sector; one beyond the last lies where the last does.
    pub(super) fn place(&self, sector: u64) -> Place {
        let sector = sector.min(self.sectors - 1);
        let band = self.band(sector);
        let inside = sector - band.first;
        // Spares are spread evenly: track k begins with data sector ⌈k × per_track⌉.
        let (heads, per_track) = (u64::from(self.heads), band.zone.sectors_per_track);
        let (track, begin, end) = band.track(inside);
        let (on_track, left) = ((inside - begin) as u32, (end - inside) as u32);
        let (cylinder, head) = (track / heads, track % heads);
        let skewed = cylinder * (heads - 1) * u64::from(band.zone.track_skew)
            + cylinder * u64::from(band.zone.cylinder_skew)
            + head * u64::from(band.zone.track_skew);
        let slot = (skewed + u64::from(on_track)) % u64::from(per_track);
        Place {
            sector,
            before_on_track: on_track,
            cylinder: band.cylinder + cylinder as u32,
            head: head as u32,
            angle: slot as f64 / f64::from(per_track),
            left_on_track: left,
            sector_time: self.revolution as f64 / f64::from(per_track),
        }
    }
}

impl Band {
    /// The track that a data sector of the zone lies on, its first data sector and that behind its
    /// last.
    fn track(&self, inside: u64) -> (u64, u64, u64) {
        let full = u64::from(self.zone.sectors_per_track);
        if self.zone.data_sectors.is_none() {
            // Without spares whole numbers do, and this is asked for every request.
            let track = inside / full;
            return (track, track * full, (track + 1) * full);
        }
        let mut track = (inside as f64 / self.per_track) as u64;
        // Rounding may be off by one track.
        while self.begin(track + 1) <= inside {
            track += 1;
        }
        while track > 0 && self.begin(track) > inside {
            track -= 1;
        }
        let end = self.begin(track + 1).min(self.sectors);
        (track, self.begin(track), end)
    }

    /// The first data sector of a track, counted within the zone.
    fn begin(&self, track: u64) -> u64 {
        (track as f64 * self.per_track).ceil() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn two_zones() -> Geometry {
        let zone = |cylinders, sectors_per_track| Zone {
            cylinders,
            sectors_per_track,
            data_sectors: None,
            track_skew: 2,
            cylinder_skew: 3,
        };
        Geometry::new(vec![zone(2, 10), zone(3, 8)], 2, 6000.0).expect("a sound geometry")
    }

    #[test]
    fn sectors_are_counted_over_surfaces_then_cylinders_then_zones() {
        let disk = two_zones();
        assert_eq!((disk.sectors(), disk.cylinders()), (88, 5));
        let at = |sector| {
            let place = disk.place(sector);
            (place.cylinder, place.head, place.left_on_track)
        };
        assert_eq!(at(0), (0, 0, 10));
        assert_eq!(at(9), (0, 0, 1));
        assert_eq!(at(10), (0, 1, 10));
        assert_eq!(at(20), (1, 0, 10));
        assert_eq!(at(40), (2, 0, 8));
        assert_eq!(at(87), (4, 1, 1));
        // Beyond the end: the last sector.
        assert_eq!(at(1000), (4, 1, 1));
    }

    #[test]
    fn each_track_begins_behind_the_one_before_by_its_skew() {
        let disk = two_zones();
        let angle = |sector| disk.place(sector).angle;
        assert_eq!(angle(0), 0.0);
        assert_eq!(angle(10), 0.2);
        assert_eq!(angle(20), 0.5);
        assert_eq!(angle(30), 0.7);
    }

    #[test]
    fn a_geometry_that_holds_nothing_is_refused() {
        assert_eq!(Geometry::new(vec![], 1, 7200.0), Err(GeometryError::Empty));
        let zone = Zone {
            cylinders: 1,
            sectors_per_track: 10,
            data_sectors: Some(11),
            track_skew: 0,
            cylinder_skew: 0,
        };
        let refused = Geometry::new(vec![zone.clone()], 1, 7200.0);
        assert_eq!(refused, Err(GeometryError::Zone(0)));
        assert_eq!(
            Geometry::new(vec![zone], 1, f64::NAN),
            Err(GeometryError::Empty)
        );
    }

    proptest! {
        #[test]
        fn every_sector_lies_on_a_track_of_the_disk(
            zones in prop::collection::vec((1_u32..50, 1_u32..300, 0.3_f64..1.0), 1..6),
            heads in 1_u32..9,
            share in 0.0_f64..1.0,
        ) {
            let zones: Vec<Zone> = zones
                .into_iter()
                .map(|(cylinders, sectors_per_track, filled)| {
                    let room = u64::from(cylinders * heads * sectors_per_track);
                    Zone {
                        cylinders,
                        sectors_per_track,
                        data_sectors: Some(((room as f64 * filled) as u64).max(1)),
                        track_skew: 1,
                        cylinder_skew: 2,
                    }
                })
                .collect();
            let disk = Geometry::new(zones, heads, 7200.0)
                .map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
            let sector = (disk.sectors() as f64 * share) as u64;
            let place = disk.place(sector);
            prop_assert!(place.cylinder < disk.cylinders() && place.head < heads);
            prop_assert!((0.0..1.0).contains(&place.angle));
            prop_assert!(place.left_on_track >= 1);
            // The next sector lies farther on the same track, or at the start of another.
            if sector + 1 < disk.sectors() && place.left_on_track > 1 {
                let next = disk.place(sector + 1);
                prop_assert_eq!((next.cylinder, next.head), (place.cylinder, place.head));
                prop_assert_eq!(next.left_on_track, place.left_on_track - 1);
            }
        }
    }
}
