//! In which order a job visits its blocks: direction, gaps, zones, distributions.

use stackrace_engine::spec::{ZONES_MAX, Zones};

use super::super::language::shown;
use super::super::place::JobError;
use super::super::value;
use super::files::Blocks;
use super::read::Reader;
use super::resolved::{Access, StridedZones};

/// Parameters of the distributions unless given.
const ZIPF: f64 = 1.1;
const PARETO: f64 = 0.2;
/// Bytes of which offsets and gaps are multiples, as blocks are.
const SECTOR: u64 = 512;

/// Direction and order of a job, as its option `rw` says them.
pub(super) struct Mode {
    pub(super) word: &'static str,
    pub(super) random: bool,
    /// Share of reads; `None` if they are not mixed.
    pub(super) share: Option<f64>,
    /// Bytes left out after each block, or back.
    pub(super) gap: i64,
}

impl Mode {
    /// Returns true if blocks are given back in place of being written.
    pub(super) fn trims(&self) -> bool {
        self.word.ends_with("trim")
    }
}

/// Reads the option `rw`; the default only reads.
pub(super) fn mode(reader: &Reader<'_>, notes: &mut Vec<String>) -> Result<Mode, JobError> {
    let said = reader.text("rw").unwrap_or("read");
    let (word, behind) = match said.split_once(':') {
        Some((word, behind)) => (word, Some(behind)),
        None => (said, None),
    };
    let trims = reader.text("ioengine") == Some("falloc");
    let refuse = |next: &str| {
        let what = format!("rw={} is not supported", shown(said));
        Err(reader.refuse("rw", what, next))
    };
    let (word, random, share) = match word {
        "read" => ("read", false, Some(1.0)),
        "write" => ("write", false, Some(0.0)),
        "rw" | "readwrite" => {
            let what = "rw=rw is one stream of blocks, each read or written";
            notes.push(format!("{what}; fio has a stream for each"));
            ("rw", false, None)
        }
        "randread" => ("randread", true, Some(1.0)),
        "randwrite" => ("randwrite", true, Some(0.0)),
        "randrw" => ("randrw", true, None),
        "trim" if trims => ("trim", false, Some(0.0)),
        "randtrim" if trims => ("randtrim", true, Some(0.0)),
        word if word.contains("trim") => {
            return refuse(
                "only ioengine=falloc trims, with rw=trim or rw=randtrim: it gives blocks of a file back",
            );
        }
        _ => return refuse("choose among: read, write, rw, randread, randwrite, randrw"),
    };
    let gap = match behind {
        None => 0,
        Some(_) if random || share.is_none() => {
            return refuse(
                "leave out what follows the colon: only reads alone and writes alone leave gaps",
            );
        }
        Some(behind) => gap(reader, behind)?,
    };
    Ok(Mode {
        word,
        random,
        share,
        gap,
    })
}

/// Reads `8k`, `-8k`: bytes left out after each block, or back.
fn gap(reader: &Reader<'_>, word: &str) -> Result<i64, JobError> {
    let (back, digits) = match word.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, word),
    };
    let bytes = reader.size("rw", digits)?;
    let whole = bytes > 0 && bytes.is_multiple_of(SECTOR);
    match i64::try_from(bytes) {
        Ok(bytes) if whole => Ok(if back { -bytes } else { bytes }),
        _ => Err(reader.refuse(
            "rw",
            format!("a gap of {} is not supported", shown(word)),
            "write a multiple of 512: rw=read:8k",
        )),
    }
}

/// The share of reads; of a mixed job what was said last of reads or of writes.
pub(super) fn share(reader: &Reader<'_>, mode: &Mode) -> Result<f64, JobError> {
    if let Some(share) = mode.share {
        return Ok(share);
    }
    let last = reader.last_of(&["rwmixread", "rwmixwrite"]);
    let Some(name) = last else { return Ok(0.5) };
    let percent = reader.percent(name)?.unwrap_or(50);
    Ok(match name {
        "rwmixread" => percent as f64 / 100.0,
        _ => (100 - percent) as f64 / 100.0,
    })
}

/// The order in which blocks are visited, of one file or of all together.
pub(super) fn access(
    reader: &Reader<'_>,
    mode: &Mode,
    blocks: &Blocks,
) -> Result<Access, JobError> {
    let zones = zones(reader)?;
    if !mode.random {
        return sequential(reader, mode, blocks, zones);
    }
    if zones.is_some() {
        let what = "zonemode=strided is for sequential jobs here";
        return Err(reader.refuse("zonemode", what, "write rw=read or rw=write"));
    }
    let word = reader.text("random_distribution").unwrap_or("random");
    let (kind, parameter) = match word.split_once(':') {
        Some((kind, parameter)) => (kind, Some(parameter)),
        None => (word, None),
    };
    let number = |default: Option<f64>, most: f64| {
        let number = match parameter {
            Some(word) => word.parse::<f64>().ok(),
            None => default,
        };
        number.filter(|it| *it > 0.0 && *it < most).ok_or_else(|| {
            let what = format!("random_distribution={} is not understood", shown(word));
            let next = "write zipf:1.1, pareto:0.2 or normal:10, with one number";
            reader.refuse("random_distribution", what, next)
        })
    };
    Ok(match kind {
        "random" if reader.flag("norandommap")?.unwrap_or(false) => Access::Uniform,
        "random" if blocks.sizes.len() > 1 => Access::Covering,
        "random" => Access::Once,
        "zipf" => Access::Zipf(number(Some(ZIPF), 100.0)?),
        "pareto" => Access::Pareto(number(Some(PARETO), 1.0)?),
        // fio gives percent, the engine takes a share of the range. There is no default.
        "normal" => Access::Normal(number(None, 100.0)? / 100.0),
        "zoned" => Access::Zoned(distribution(reader, mode, parameter.unwrap_or_default())?),
        _ => {
            let what = format!("random_distribution={} is not supported", shown(word));
            let next = "choose among: random, zipf:1.1, pareto:0.2, normal:10, zoned:60/10:40/90";
            return Err(reader.refuse("random_distribution", what, next));
        }
    })
}

fn sequential(
    reader: &Reader<'_>,
    mode: &Mode,
    blocks: &Blocks,
    zones: Option<StridedZones>,
) -> Result<Access, JobError> {
    let (name, access) = match (mode.gap, zones) {
        (0, None) => return Ok(Access::Sequential),
        (gap, None) => ("rw", Access::Gap(gap)),
        (0, Some(zones)) => ("zonemode", Access::Strided(zones)),
        _ => {
            let what = "gaps and zones exclude each other";
            return Err(reader.refuse("zonemode", what, "leave out one of them"));
        }
    };
    let [(size, _)] = blocks.sizes.as_slice() else {
        let what = "gaps and zones with blocks of several sizes are not supported";
        return Err(reader.refuse(name, what, "write one block size: bs=4k"));
    };
    let size = u64::from(*size);
    match access {
        Access::Strided(zones) if zones.used.next_multiple_of(size) > zones.every => {
            let what = "the last block of a zone would reach into the next one";
            Err(reader.refuse(name, what, "write a zonesize that is a multiple of bs"))
        }
        _ if mode.share.is_none() => {
            let what = "zones are for jobs that only read or only write";
            Err(reader.refuse(name, what, "write rw=read or rw=write"))
        }
        access => Ok(access),
    }
}

/// The zones of which a sequential job visits the beginning; `None` if there are no zones.
fn zones(reader: &Reader<'_>) -> Result<Option<StridedZones>, JobError> {
    let used = reader.bytes("zonesize")?.unwrap_or(0);
    let range = reader.bytes("zonerange")?.unwrap_or(used);
    let skipped = reader.bytes("zoneskip")?.unwrap_or(0);
    match reader.text("zonemode") {
        None | Some("none") if used + range + skipped == 0 => return Ok(None),
        None | Some("none") => {
            let next = "write zonemode=strided as well, as fio asks for it";
            let name = reader.last_of(&["zonesize", "zonerange", "zoneskip"]);
            let what = "zones without zonemode=strided";
            return Err(reader.refuse(name.unwrap_or("zonesize"), what, next));
        }
        Some("strided") => {}
        Some(word) => {
            let what = format!("zonemode={} is not supported", shown(word));
            let next = "choose among: none, strided; zoned devices are not driven";
            return Err(reader.refuse("zonemode", what, next));
        }
    }
    let whole = [used, range, skipped]
        .iter()
        .all(|bytes| bytes.is_multiple_of(SECTOR));
    match range.checked_add(skipped) {
        Some(every) if used > 0 && range >= used && whole => Ok(Some(StridedZones { used, every })),
        _ => {
            let what = "the zones do not fit: zonesize is above 0, and zonerange no less";
            Err(reader.refuse(
                "zonemode",
                what,
                "write zonesize=1m zoneskip=9m, multiples of 512",
            ))
        }
    }
}

/// Reads `50/5:30/15:20/80`: of each zone the percentage of operations and of the range; what has no
/// number has an even part of the rest.
fn distribution(reader: &Reader<'_>, mode: &Mode, text: &str) -> Result<Zones, JobError> {
    let refuse = |what: &str| {
        let what = format!("random_distribution=zoned:{}: {what}", shown(text));
        reader.refuse(
            "random_distribution",
            what,
            "write it like zoned:60/10:40/90, in percent",
        )
    };
    let (reads, writes) = value::pair(text);
    let word = match mode.share {
        Some(0.0) => writes,
        Some(_) => reads,
        None if reads == writes => reads,
        None => return Err(refuse("reads and writes have different zones")),
    };
    let zones: Vec<&str> = word.unwrap_or_default().split(':').collect();
    if zones.len() > ZONES_MAX {
        return Err(refuse("there are too many zones"));
    }
    let column = |of: fn(&str) -> &str| {
        let numbers: Option<Vec<Option<u64>>> = zones
            .iter()
            .map(|zone| match of(zone).trim() {
                "" => Some(None),
                number => value::count(number).map(Some),
            })
            .collect();
        numbers
            .and_then(|numbers| filled(&numbers))
            .ok_or_else(|| refuse("it does not make 100 percent"))
    };
    let operations = column(|zone| zone.split('/').next().unwrap_or_default())?;
    let bytes = column(|zone| zone.split_once('/').map_or("", |(_, bytes)| bytes))?;
    let mut all = [(0, 0); ZONES_MAX];
    for (zone, share) in all.iter_mut().zip(operations.into_iter().zip(bytes)) {
        *zone = share;
    }
    Ok(Zones(all))
}

/// Percentages that make 100, where an even part of the rest stands for each that was left out.
fn filled(numbers: &[Option<u64>]) -> Option<Vec<u8>> {
    let said: u64 = numbers.iter().flatten().sum();
    let open = numbers.iter().filter(|number| number.is_none()).count() as u64;
    let rest = 100_u64.checked_sub(said)?;
    let even = rest.checked_div(open).unwrap_or(0);
    // What is not even is refused: of which zone it was would be a guess.
    if even * open != rest {
        return None;
    }
    numbers
        .iter()
        .map(|number| u8::try_from(number.unwrap_or(even)).ok())
        .collect()
}
