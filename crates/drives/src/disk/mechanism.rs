//! Arm, heads and platter: how long it takes until sectors have passed the head.

use super::geometry::{Geometry, Place};
use super::seek::SeekCurve;
use crate::Nanos;

/// The moving parts of a disk.
#[derive(Debug, Clone)]
pub(super) struct Mechanism {
    pub(super) geometry: Geometry,
    pub(super) seek: SeekCurve,
    /// Time to switch to another surface of the same cylinder.
    pub(super) head_switch: Nanos,
    /// Time added to a seek or head switch before a write: the arm must be nearer to the middle of
    /// the track than for a read. Negative where the drive was measured so.
    pub(super) write_settle: i64,
    /// Turn of the platter at instant 0.
    pub(super) phase: Nanos,
    /// Cylinder of the arm.
    pub(super) cylinder: u32,
    pub(super) head: u32,
}

/// The instants at which sectors pass the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pass {
    /// The first sector has been read or written.
    pub(super) first: Nanos,
    /// All of them have.
    pub(super) end: Nanos,
    /// The cylinder and surface of the last.
    pub(super) over: (u32, u32),
}

impl Mechanism {
    /// The cylinder and surface where the arm stands.
    pub(super) fn stands(&self) -> (u32, u32) {
        (self.cylinder, self.head)
    }

    /// The pass of `sectors` from the one at `first` on under the head, beginning at `now` from
    /// this cylinder and surface.
    pub(super) fn pass_from(
        &self,
        from: (u32, u32),
        first: &Place,
        sectors: u32,
        write: bool,
        now: Nanos,
    ) -> Pass {
        let mut place = *first;
        let mut at = now + self.between(from, &place, write, now);
        let first_passed = at + place.sector_time as Nanos;
        let (mut sector, mut left) = (first.sector, sectors.max(1));
        loop {
            let here = left.min(place.left_on_track);
            at += (f64::from(here) * place.sector_time).round() as Nanos;
            left -= here;
            sector += u64::from(here);
            // A request beyond the last sector ends at the last.
            if left == 0 || sector >= self.geometry.sectors() {
                return Pass {
                    first: first_passed.min(at),
                    end: at,
                    over: place.over(),
                };
            }
            let next = self.geometry.place(sector);
            at += self.between(place.over(), &next, write, at);
            place = next;
        }
    }

    /// Time from `now` until the sector at `place` is under the head.
    pub(super) fn position(&self, place: &Place, write: bool, now: Nanos) -> Nanos {
        self.between(self.stands(), place, write, now)
    }

    /// Time of the arm and of the switch to another surface.
    fn moved(&self, from: (u32, u32), to: &Place) -> Nanos {
        if from.0 != to.cylinder {
            self.seek.time(from.0.abs_diff(to.cylinder))
        } else if from.1 != to.head {
            self.head_switch
        } else {
            0
        }
    }

    fn between(&self, from: (u32, u32), to: &Place, write: bool, now: Nanos) -> Nanos {
        let moved = self.moved(from, to);
        let settled = if moved > 0 && write {
            moved.saturating_add_signed(self.write_settle)
        } else {
            moved
        };
        settled + self.rotation(to.angle, now + settled)
    }

    /// Sectors of the track before the one at `place` that pass the head from `now` on until that does.
    pub(super) fn passing(&self, from: (u32, u32), place: &Place, now: Nanos) -> u64 {
        let arrived = now + self.moved(from, place);
        let waited = self.rotation(place.angle, arrived);
        let passed = (waited as f64 / place.sector_time) as u32;
        u64::from(passed.min(place.before_on_track))
    }

    /// Time from `now` until `angle` is under the head.
    fn rotation(&self, angle: f64, now: Nanos) -> Nanos {
        let revolution = self.geometry.revolution();
        let target = (angle * revolution as f64) as Nanos;
        let turned = (now + self.phase) % revolution;
        let wait = (target + revolution - turned) % revolution;
        // Angles and times are rounded: a sector that is just arriving must not cost a revolution.
        if revolution - wait <= revolution / 50_000 {
            0
        } else {
            wait
        }
    }

    /// The sector that sequential reading which stood before `sector` at `since` has come to at
    /// `now`, at most `limit`, and the instant since which it has stood there.
    pub(super) fn read_on(
        &self,
        mut sector: u64,
        limit: u64,
        mut since: Nanos,
        now: Nanos,
    ) -> (u64, Nanos) {
        let limit = limit.min(self.geometry.sectors());
        // Most often it stopped long ago, or was asked at this very instant.
        if sector >= limit || since >= now {
            return (sector, since);
        }
        let mut place = self.geometry.place(sector);
        let mut from = match place.before_on_track {
            0 => self.over(sector.saturating_sub(1)),
            _ => place.over(),
        };
        loop {
            let begin = since + self.between(from, &place, false, since);
            if begin >= now {
                break;
            }
            let passed = ((now - begin) as f64 / place.sector_time) as u64;
            let here = passed
                .min(u64::from(place.left_on_track))
                .min(limit - sector);
            sector += here;
            since = begin + (here as f64 * place.sector_time) as Nanos;
            if here == passed || sector >= limit {
                break;
            }
            from = place.over();
            place = self.geometry.place(sector);
        }
        (sector, since)
    }

    /// Puts the arm over a sector.
    pub(super) fn move_to(&mut self, sector: u64) {
        self.stand(self.over(sector));
    }

    /// Puts the arm over a cylinder and surface.
    pub(super) fn stand(&mut self, over: (u32, u32)) {
        (self.cylinder, self.head) = over;
    }

    /// The cylinder and surface of a sector.
    pub(super) fn over(&self, sector: u64) -> (u32, u32) {
        self.geometry.place(sector).over()
    }
}
