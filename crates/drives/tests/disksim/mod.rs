//! Cards from parameters in DiskSim's text form, as extracted from drives. Only the parameters are
//! read; none of DiskSim's code is used.
//!
//! The same rules hold for every drive. What a rule needs and the files do not have is assumed, and
//! named in [`Import::missing`].

mod text;

use stackrace_drives::{
    BufferRules, CardError, CardOverheads, DiskCard, Fetched, Layout, Origin, ReadAheadAfter,
    ReadAheadUntil, SECTOR, Seek, Stated, Written,
};
use text::{Block, Value, parse};

/// Cylinders, sectors of a track, data sectors, track skew, cylinder skew: as in [`Layout::Zones`].
type ZoneRow = (u32, u32, u64, u32, u32);

/// A card made of parameters, and what the parameters did not say.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Import {
    /// The drive, as far as the parameters describe it.
    pub(crate) card: DiskCard,
    /// The missing parameters, and what was taken instead, a sentence each.
    pub(crate) missing: Vec<String>,
    /// True for the fourth kind of reading ahead, which waits for a sequence by the file alone.
    pub(crate) waits: bool,
}

/// A value of the card that the parameters do not give.
fn wrong_at(name: &'static str, problem: impl Into<String>) -> CardError {
    CardError::Value {
        name,
        problem: problem.into(),
    }
}

/// Makes the card of a drive from its parameters.
///
/// `specification` is the text of its `disksim_disk` block, `topology` that of the file that holds
/// the bus (empty: none). `open` returns the text of a file that these name.
///
/// # Errors
/// When the drive's zones, surfaces, speed of rotation or seek times are missing, or `open` fails.
pub(crate) fn import(
    model: &str,
    specification: &str,
    topology: &str,
    open: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Import, CardError> {
    let root = parse(specification);
    let device = root
        .find("disksim_disk")
        .ok_or_else(|| wrong_at("model", "there is no block disksim_disk"))?
        .clone();
    let mechanics = match device.get("Model") {
        Some(Value::Block(block)) => block.clone(),
        Some(Value::Word(word)) => {
            let file = word.strip_prefix("source").unwrap_or(word).trim();
            parse(&open(file).map_err(|error| wrong_at("layout", error))?)
        }
        _ => root.clone(),
    };
    Parameters {
        device,
        mechanics,
        topology: parse(topology),
        missing: Vec::new(),
    }
    .card(model, open)
}

struct Parameters {
    device: Block,
    mechanics: Block,
    topology: Block,
    missing: Vec<String>,
}

/// A value as the files state it.
fn stated<T>(value: T) -> Stated<T> {
    let source = "extracted from the drive, in DiskSim's text form".to_owned();
    Stated {
        value,
        from: Origin::Measured,
        source,
    }
}

impl Parameters {
    fn card(
        mut self,
        model: &str,
        open: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Import, CardError> {
        let disk = self.part("dm_disk", "layout")?;
        let arm = self.part("dm_mech_g1", "seek")?;
        let surfaces = needed(&disk, "Number of data surfaces", "surfaces")?;
        let kib = |sectors: f64| sectors * SECTOR as f64 / 1024.0;
        let segment = self.or("Segment size (in blks)", 0.0);
        let caching = self.or("Enable caching in buffer", 0.0) > 0.0;
        let segments = if caching {
            self.or("Number of buffer segments", 0.0)
        } else {
            0.0
        };
        let follows = self.or("Buffer continuous read", 0.0);
        let ahead = if caching && follows > 0.0 {
            self.or("Maximum read-ahead (blks)", segment)
        } else {
            0.0
        };
        let write_cache = if self.or("Fast write level", 0.0) > 0.0 {
            segment
        } else {
            0.0
        };
        let rules = self.buffer(follows);
        let seek = seek(&arm, &disk, open)?;
        // Extracted curves of seeks hold the settling; of a command without a seek nothing is stated.
        let again = seek.first().map_or(0.0, |(_, next)| next * SETTLES_AGAIN);
        let card = DiskCard {
            model: model.to_owned(),
            name: format!("{model}, from its parameters"),
            rpm: stated(needed(&arm, "Rotation speed (in rpms)", "rpm")?),
            surfaces: stated(surfaces as u32),
            layout: stated(Layout::Zones(zones(&disk, surfaces)?)),
            seek: stated(Seek::Points(seek)),
            settle_again: Some(Stated {
                value: again,
                from: Origin::Assumed,
                source: "half of the shortest seek".to_owned(),
            }),
            head_switch: stated(self.at(&arm, "Head switch time", 0.0)),
            write_settle: stated(self.at(&arm, "Add. write settling delay", 0.0)),
            overheads: stated(self.overheads()),
            completion: Some(stated(self.completion())),
            bus: stated(self.bus()),
            segments: stated((segments as usize, kib(segment))),
            read_ahead: stated(kib(ahead)),
            buffer: Some(stated(rules)),
            write_cache: stated(kib(write_cache)),
            destage_after: stated(0.0),
            queue_depth: stated(1),
            physical_sector: stated(SECTOR),
            shingled: None,
            claims: Vec::new(),
        };
        Ok(Import {
            card,
            missing: self.missing,
            waits: follows >= 4.0,
        })
    }

    /// What the firmware does with its buffer; `follows`: the kind of reading ahead.
    fn buffer(&mut self, follows: f64) -> BufferRules {
        let mut is = |key: &str| self.or(key, 0.0) > 0.0;
        let drops = is("Read-ahead over requested");
        BufferRules {
            // The fourth kind waits for a sequence; but a buffer that drops what was fetched would hold nothing
            // then, so that it reads ahead at once.
            after: match follows >= 4.0 && !drops {
                true => ReadAheadAfter::Sequence,
                false => ReadAheadAfter::Any,
            },
            until: match follows as u32 {
                1 => ReadAheadUntil::Track,
                2 => ReadAheadUntil::Cylinder,
                _ => ReadAheadUntil::Full,
            },
            fetched: match drops {
                true => Fetched::Dropped,
                false => Fetched::Kept,
            },
            passing: is("Read any free blocks"),
            written: match is("Allow read hits on write data") {
                true => Written::Kept,
                false => Written::NotRead,
            },
        }
    }

    fn part(&self, kind: &str, word: &'static str) -> Result<Block, CardError> {
        let found = self.mechanics.find(kind).cloned();
        found.ok_or_else(|| wrong_at(word, format!("there is no block {kind}")))
    }

    fn or(&mut self, key: &str, otherwise: f64) -> f64 {
        let block = std::mem::take(&mut self.device);
        let value = self.at(&block, key, otherwise);
        self.device = block;
        value
    }

    fn at(&mut self, block: &Block, key: &str, otherwise: f64) -> f64 {
        block.number(key).unwrap_or_else(|| {
            self.missing
                .push(format!("{key}: not stated, {otherwise} is taken"));
            otherwise
        })
    }

    fn overheads(&mut self) -> CardOverheads {
        let all = self
            .device
            .number("Per-request overhead time")
            .unwrap_or(0.0);
        let mut pair = |what: &str| {
            ["read", "write"]
                .map(|before| all + self.or(&format!("{what} over. after {before}"), 0.5))
        };
        let (read_hit, read_miss) = (pair("Read hit"), pair("Read miss"));
        let (write_hit, write_miss) = (pair("Write hit"), pair("Write miss"));
        // At level 1 only a write that continues cached data is taken as a hit, at level 2 any.
        let any = self.device.number("Fast write level").unwrap_or(0.0) >= 2.0;
        let write_miss = if any { write_hit } else { write_miss };
        CardOverheads::Each {
            read_hit,
            read_miss,
            write_hit,
            write_miss,
        }
    }

    /// Cost of a command after its data have passed the head: the drive takes the bus again and reports.
    fn completion(&mut self) -> [f64; 2] {
        ["Read completion overhead", "Write completion overhead"].map(|key| self.or(key, 0.0))
    }

    /// MB/s: from the drive's own time for a sector, or else from that of the bus it was measured
    /// at.
    fn bus(&mut self) -> [f64; 2] {
        let own = self
            .device
            .number("Bulk sector transfer time")
            .filter(|time| *time > 0.0);
        let buses = || {
            self.topology
                .blocks()
                .filter(|block| block.kind == "disksim_bus")
        };
        let times = ["Read block transfer time", "Write block transfer time"].map(|key| {
            let slowest = buses()
                .filter_map(|bus| bus.number(key))
                .fold(0.0, f64::max);
            own.unwrap_or(slowest)
        });
        if times.iter().any(|time| *time <= 0.0) {
            self.missing.push(format!(
                "time of the bus for a sector: not stated, {BUS} MB/s are taken"
            ));
        }
        times.map(|time| {
            if time > 0.0 {
                SECTOR as f64 / 1e3 / time
            } else {
                BUS
            }
        })
    }
}

/// Share of the shortest seek that settling again on the same track takes: the one for which drives that were
/// measured differ least from their models (`bench/drives --mechanisms`).
pub(crate) const SETTLES_AGAIN: f64 = 0.5;

/// MB/s of Fast SCSI.
const BUS: f64 = 10.0;

fn needed(block: &Block, key: &str, word: &'static str) -> Result<f64, CardError> {
    let value = block.number(key).filter(|value| *value > 0.0);
    value.ok_or_else(|| wrong_at(word, format!("\"{key}\" is not stated")))
}

/// Zones with their share of the drive's sectors. Where spares and defects lie differs from drive to
/// drive and is not followed: they are spread evenly.
fn zones(disk: &Block, surfaces: f64) -> Result<Vec<ZoneRow>, CardError> {
    let layout = disk.get("Layout Model");
    let zones = match layout {
        Some(Value::Block(layout)) => layout.get("Zones"),
        _ => None,
    };
    let Some(Value::List(zones)) = zones else {
        return Err(wrong_at(
            "layout",
            "there is no list of zones (dm_layout_g1)",
        ));
    };
    let mut tracks = Vec::with_capacity(zones.len());
    for zone in zones {
        let Value::Block(zone) = zone else {
            return Err(wrong_at("layout", "a zone is no block"));
        };
        let get = |key| {
            zone.number(key)
                .ok_or_else(|| wrong_at("layout", format!("a zone does not state \"{key}\"")))
        };
        let cylinders = get("Last cylinder number")? - get("First cylinder number")? + 1.0;
        let skew = |key| zone.number(key).unwrap_or(0.0).max(0.0).round() as u32;
        tracks.push((
            cylinders,
            get("Blocks per track")?,
            skew("Skew for track switch"),
            skew("Skew for cylinder switch"),
        ));
    }
    let room: f64 = tracks.iter().map(|zone| zone.0 * zone.1 * surfaces).sum();
    let count = disk
        .number("Block count")
        .filter(|count| *count > 0.0 && *count <= room);
    let share = count.unwrap_or(room) / room;
    Ok(tracks
        .into_iter()
        .map(|(cylinders, per_track, track, cylinder)| {
            let data = (cylinders * per_track * surfaces * share).floor();
            (
                cylinders as u32,
                per_track as u32,
                data as u64,
                track,
                cylinder,
            )
        })
        .collect())
}

/// Points of the seek curve: distance in cylinders and ms.
fn seek(
    arm: &Block,
    disk: &Block,
    open: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Vec<(u32, f64)>, CardError> {
    let wrong = |problem: &str| wrong_at("seek", problem);
    if let Some(Value::Word(file)) = arm.get("Full seek curve") {
        let text = open(file.trim_matches('"')).map_err(|error| wrong_at("seek", error))?;
        let points = text.lines().filter_map(|line| {
            let (distance, time) = line.split_once(',')?;
            Some((distance.trim().parse().ok()?, time.trim().parse().ok()?))
        });
        return Ok(points.collect());
    }
    let list = |key| arm.get(key).and_then(Value::numbers);
    let full = disk.number("Number of cylinders").unwrap_or(2.0) as u32 - 1;
    if let Some([limit, near, root, far, slope, ..]) = list("HPL seek equation values").as_deref() {
        // The first ten are measured each, the others follow from an equation in two parts.
        let first = list("First ten seek times").unwrap_or_default();
        let time = |distance: u32| {
            let cylinders = f64::from(distance);
            let measured = first.get(distance as usize - 1).copied();
            measured.unwrap_or(if cylinders < *limit {
                near + root * cylinders.sqrt()
            } else {
                far + slope * cylinders
            })
        };
        let mut distances: Vec<u32> = (1..=10).collect();
        distances.extend([12, 15, 20, 30, 40, 60, 80, 100, 150, 200, 250]);
        distances.extend([(*limit as u32).saturating_sub(1), *limit as u32, full]);
        distances.retain(|distance| (1..=full).contains(distance));
        distances.sort_unstable();
        distances.dedup();
        return Ok(distances.into_iter().map(|at| (at, time(at))).collect());
    }
    let [next, average, last] = [
        "Single cylinder seek time",
        "Average seek time",
        "Full strobe seek time",
    ]
    .map(|key| arm.number(key));
    match (next, average, last) {
        (Some(next), Some(average), Some(last)) if full > 3 => {
            Ok(vec![(1, next), (full / 3 + 1, average), (full, last)])
        }
        _ => Err(wrong(
            "neither a curve, nor an equation, nor three times are stated",
        )),
    }
}
