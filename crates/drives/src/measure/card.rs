//! The card of what was found: what was measured with its spread, the rest assumed and marked so.

use super::arm::Arm;
use super::buffer::Buffer;
use super::probe::SMALL;
use super::turn::Turn;
use super::zones::Zones;
use crate::card::{CardOverheads, Layout, Seek};
use crate::disk::{Fetched, ReadAheadAfter, ReadAheadUntil};
use crate::{DiskCard, Origin, SECTOR, Stated};

/// What of a skew a switch may take: the rest is for rounding.
const OF_A_SKEW: f64 = 0.97;
/// Usual time that writing settles longer, ms.
const WRITE_SETTLE: f64 = 0.5;
const KIB: f64 = 1024.0;

/// The findings about a drive that turns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FoundDisk {
    pub(super) turn: Turn,
    pub(super) zones: Zones,
    pub(super) buffer: Buffer,
    pub(super) arm: Arm,
}

pub(super) fn measured<T>(value: T, source: String) -> Stated<T> {
    Stated {
        value,
        from: Origin::Measured,
        source,
    }
}

pub(super) fn assumed<T>(value: T) -> Stated<T> {
    let source = "not measured: usual for drives of this kind".to_owned();
    Stated {
        value,
        from: Origin::Assumed,
        source,
    }
}

/// Milliseconds of nanoseconds, to 0.1 us.
fn ms(ns: f64) -> f64 {
    (ns.max(0.0) / 100.0).round() / 1e4
}

fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// The time of a command, told from that of the arm. Reads show only both together, so the command
/// takes as long as one that the buffer answers; but switches that the skews hide stay hidden.
fn command(found: &FoundDisk) -> f64 {
    let FoundDisk {
        turn,
        zones,
        buffer,
        arm,
    } = found;
    let next = arm.seeks.first().map_or(0.0, |seek| seek.1);
    let mut least = 0.0_f64;
    for [track, cylinder] in &zones.skews {
        let hidden = |skew: f64| skew * turn.time * OF_A_SKEW;
        least = least.max(next - hidden(*cylinder));
        least = least.max(arm.switch.map_or(0.0, |switch| switch - hidden(*track)));
    }
    let others = [arm.switch, arm.again.map(|again| again[1])];
    let others = others.into_iter().flatten();
    let most = others.fold(next, f64::min).max(0.0);
    buffer.hit.max(least).min(most)
}

/// Time by which writing may settle longer and still be hidden by the skews, ms.
fn write_settle(turn: &Turn, zones: &Zones, switch: f64, next: f64) -> f64 {
    let room = zones.skews.iter().map(|skews| {
        let [track, cylinder] = skews.map(|skew| skew * turn.time * OF_A_SKEW);
        (cylinder - next).min(match zones.heads > 1 {
            true => track - switch,
            false => f64::MAX,
        })
    });
    let room = room.fold(f64::MAX, f64::min);
    (room / 1e6).clamp(0.0, WRITE_SETTLE)
}

/// Time to settle again where the arm stands already; `None` if a command without it explains the reads.
fn settle_again(arm: &Arm, command: f64) -> Option<Stated<f64>> {
    let [least, most] = arm.again.filter(|again| command < again[0])?;
    Some(measured(
        ms((least + most) / 2.0 - command),
        format!(
            "reads of places before the last on its track: {:.3} to {:.3} ms with the time of the command",
            least / 1e6,
            most / 1e6
        ),
    ))
}

pub(super) fn disk(sectors: u64, found: &FoundDisk, model: &str) -> DiskCard {
    let FoundDisk {
        turn,
        zones,
        buffer,
        arm,
    } = found;
    let command = command(found);
    let next = arm.seeks.first().map_or(0.0, |seek| seek.1) - command;
    let switch = arm.switch.map_or(next, |switch| switch - command);
    let unseen = "not measured: the drive was only read; usual for drives of this kind";
    let written = |value: f64| Stated {
        source: unseen.to_owned(),
        ..assumed(value)
    };
    DiskCard {
        model: model.to_owned(),
        name: format!("{model}, measured by reading"),
        rpm: measured((60e13 / turn.time).round() / 1e4, turn_words(turn)),
        surfaces: surfaces(zones),
        layout: measured(Layout::Zones(rows(sectors, zones)), layout_words(zones)),
        seek: seek(arm, command),
        head_switch: match arm.switch {
            Some(_) => measured(
                ms(switch),
                "reads of other tracks of the cylinder, told by their angles: shortest and longest"
                    .to_owned(),
            ),
            None => assumed(ms(next)),
        },
        write_settle: written(round(write_settle(turn, zones, switch, next))),
        settle_again: settle_again(arm, command),
        overheads: overheads(buffer, command),
        completion: (buffer.completion > 0.0).then(|| {
            measured(
                [ms(buffer.completion), 0.0],
                "streams end so much sooner than their sectors pass; not measured for writes"
                    .to_owned(),
            )
        }),
        bus: bus(found),
        segments: segments(buffer),
        read_ahead: measured(
            kib(buffer.ahead),
            "the farthest that was there 0.4 s later, at two of eight places".to_owned(),
        ),
        buffer: Some(measured(buffer.rules, rules_words(found))),
        write_cache: written(16_384.0),
        destage_after: written(100.0),
        queue_depth: assumed(32),
        physical_sector: assumed(4096),
        shingled: None,
        claims: Vec::new(),
    }
}

fn kib(sectors: u64) -> f64 {
    sectors as f64 * SECTOR as f64 / KIB
}

fn seek(arm: &Arm, command: f64) -> Stated<Seek> {
    let points = arm.seeks.iter();
    let points = points.map(|(distance, time)| (*distance, ms(time - command)));
    measured(
        Seek::Points(points.collect()),
        format!(
            "96 reads over each of {} distances; shortest and longest agree to {:.3} ms for half of them; {:.1} % of the reads took longer than a turn allows",
            arm.seeks.len(),
            arm.within / 1e6,
            arm.disturbed * 100.0
        ),
    )
}

fn overheads(buffer: &Buffer, command: f64) -> Stated<CardOverheads> {
    let (hit, miss) = (round(ms(buffer.hit)), round(ms(command)));
    measured(
        CardOverheads::Each {
            read_hit: [hit; 2],
            read_miss: [miss; 2],
            write_hit: [hit; 2],
            write_miss: [miss; 2],
        },
        format!(
            "reads from the buffer, half between {:.3} and {:.3} ms; a read of the platter shows this time together with the arm's, writes are assumed to take as long",
            buffer.hits[0] / 1e6,
            buffer.hits[1] / 1e6
        ),
    )
}

fn segments(buffer: &Buffer) -> Stated<(usize, f64)> {
    match buffer.segments {
        0 => measured((0, 0.0), "no read came from a buffer".to_owned()),
        many => measured(
            (many, kib(buffer.segment)),
            format!(
                "{} other places could be read before the first was forgotten, at two of eight places",
                many - 1
            ),
        ),
    }
}

fn bus(found: &FoundDisk) -> Stated<[f64; 2]> {
    let rate = round(SECTOR as f64 * 1e3 / found.buffer.bus);
    match found.buffer.bus_by {
        0 => assumed([rate; 2]),
        most => measured(
            [rate; 2],
            format!(
                "reads from the buffer of {SMALL} to {most} sectors, middle of 12 each; writes are assumed to pass as fast"
            ),
        ),
    }
}

fn turn_words(turn: &Turn) -> String {
    format!(
        "a turn of {:.6} ms, over {:.0} turns; half of the reads of one sector end within {:.3} ms of the same angle",
        turn.time / 1e6,
        turn.turns,
        turn.within / 1e6
    )
}

fn surfaces(zones: &Zones) -> Stated<u32> {
    match zones.heads_seen {
        true => measured(
            zones.heads,
            "tracks between two larger skews, the number found most often".to_owned(),
        ),
        false => Stated {
            source: "not seen: all tracks follow each other alike, so each is taken for a cylinder"
                .to_owned(),
            ..assumed(1)
        },
    }
}

/// Zones as a card has them. Spare sectors show as a larger skew.
fn rows(sectors: u64, zones: &Zones) -> Vec<(u32, u32, u64, u32, u32)> {
    let all = zones.bands.iter().zip(&zones.skews).zip(&zones.cylinders);
    let rows = all.map(|((band, [track, cylinder]), cylinders)| {
        let end = band.end.min(sectors);
        let skew = |share: f64| (share * f64::from(band.per_track)).round() as u32;
        (
            *cylinders,
            band.per_track,
            end - band.first,
            skew(*track),
            skew(*cylinder),
        )
    });
    rows.collect()
}

fn layout_words(zones: &Zones) -> String {
    let spread = zones
        .bands
        .iter()
        .map(|band| (band.between[1] - band.between[0]) / f64::from(band.per_track))
        .fold(0.0, f64::max);
    format!(
        "angles of small reads at 128 places and more where they change: {} zones; sectors of a track agree to {:.2} % within each; spares count as skew",
        zones.bands.len(),
        spread * 100.0
    )
}

fn rules_words(found: &FoundDisk) -> String {
    let buffer = &found.buffer;
    let share = |share: f64| format!("{:.0} %", share * 100.0);
    let after = match buffer.rules.after {
        ReadAheadAfter::Any => "reads ahead of any read",
        ReadAheadAfter::Sequence => "reads ahead of a sequence",
    };
    let until = match buffer.rules.until {
        ReadAheadUntil::Full => "until its room is full",
        ReadAheadUntil::Track => "to the end of the track",
        ReadAheadUntil::Cylinder => "to the end of the cylinder",
    };
    let fetched = match buffer.rules.fetched {
        Fetched::Dropped => "gives up what was fetched",
        Fetched::Kept => "keeps what was fetched",
        Fetched::Overwritten => "overwrites what was fetched",
    };
    format!(
        "{after} ({} of single reads had more behind them), {until}, {fetched}; {} found the sectors before; what becomes of written data is assumed",
        share(buffer.after_one),
        share(buffer.before)
    )
}
