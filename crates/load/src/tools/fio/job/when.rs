//! When a job's operations start, when it ends, and when its data is made durable.

use super::super::language::shown;
use super::super::place::JobError;
use super::super::value;
use super::read::Reader;
use super::resolved::{ExitScope, Flow, JobPace, LeastRate, SyncPolicy, Ties};

const US: u64 = 1_000;
const S: u64 = 1_000_000_000;
/// Operations a second at most, and at least.
const RATES: std::ops::RangeInclusive<f64> = 0.001..=1e9;

/// Longest time, ns, and whether all of it is used.
pub(super) fn time(reader: &Reader<'_>) -> Result<(Option<u64>, bool), JobError> {
    // 0 is fio's default: no limit.
    let time = reader.time_ns("runtime", S)?.filter(|time| *time > 0);
    let based = reader.flag("time_based")?.unwrap_or(false);
    if based && time.is_none() {
        return Err(reader.refuse(
            "time_based",
            "time_based without runtime",
            "write runtime=10",
        ));
    }
    Ok((time, based))
}

/// Reads the time at the beginning that counts for nothing, ns.
pub(super) fn ramp(reader: &Reader<'_>) -> Result<u64, JobError> {
    Ok(reader.time_ns("ramp_time", S)?.unwrap_or(0))
}

/// Passes over the data.
pub(super) fn loops(reader: &Reader<'_>) -> Result<u64, JobError> {
    let loops = reader.count_in("loops", 1..=u64::from(u32::MAX))?;
    Ok(loops.unwrap_or(1))
}

/// Most operations; `None` if there is no limit, as for 0.
pub(super) fn operations(reader: &Reader<'_>) -> Result<Option<u64>, JobError> {
    let number = reader.count_in("number_ios", 0..=u64::MAX)?;
    Ok(number.filter(|number| *number > 0))
}

/// Reads the job's ties to others.
pub(super) fn ties(
    reader: &Reader<'_>,
    read_share: f64,
    sizes: &[(u32, u32)],
) -> Result<Ties, JobError> {
    Ok(Ties {
        waits_for: reader.text("wait_for").map(str::to_owned),
        ends: ends(reader)?,
        least: least(reader, read_share, sizes)?,
        flow: flow(reader)?,
    })
}

/// The job's share of a flow.
fn flow(reader: &Reader<'_>) -> Result<Option<Flow>, JobError> {
    let id = reader.count_in("flow_id", 0..=u64::MAX)?.unwrap_or(0);
    let pause_us = reader
        .count_in("flow_sleep", 0..=3_600_000_000)?
        .unwrap_or(0);
    let parts = reader.count_in("flow", 0..=1_000_000)?.unwrap_or(0) as u32;
    Ok((parts > 0).then_some(Flow {
        id,
        parts,
        pause_ns: pause_us * US,
    }))
}

/// Reads which jobs end when this one does.
fn ends(reader: &Reader<'_>) -> Result<Option<ExitScope>, JobError> {
    let what = match reader.text("exit_what") {
        None | Some("group") => ExitScope::Group,
        Some("stonewall") => ExitScope::Stage,
        Some("all") => ExitScope::All,
        Some(word) => {
            let what = format!("exit_what={} is not understood", shown(word));
            return Err(reader.refuse("exit_what", what, "choose among: group, stonewall, all"));
        }
    };
    Ok(reader.flag("exitall")?.unwrap_or(false).then_some(what))
}

/// The rate below which a job fails.
fn least(
    reader: &Reader<'_>,
    read_share: f64,
    sizes: &[(u32, u32)],
) -> Result<Option<LeastRate>, JobError> {
    let cycle_ms = reader
        .count_in("rate_cycle", 1..=3_600_000)?
        .unwrap_or(1000);
    let Some(name) = reader.last_of(&["rate_min", "rate_iops_min"]) else {
        return Ok(None);
    };
    if read_share > 0.0 && read_share < 1.0 {
        let what = format!("{name} of a mixed job is not supported");
        return Err(reader.refuse(name, what, "leave it out"));
    }
    let own = |name: &str| {
        let (reads, writes) = value::pair(reader.text(name).unwrap_or_default());
        let word = if read_share > 0.0 { reads } else { writes };
        word.map(|word| reader.size(name, word)).transpose()
    };
    let Some(amount) = own(name)?.filter(|amount| *amount > 0) else {
        return Ok(None);
    };
    let bytes = match (name, sizes) {
        ("rate_iops_min", [(size, _)]) => amount.saturating_mul(u64::from(*size)),
        ("rate_min", _) => amount,
        _ => {
            let what = "rate_iops_min with blocks of several sizes is not supported";
            return Err(reader.refuse(name, what, "write rate_min"));
        }
    };
    let most = own(if name == "rate_min" {
        "rate"
    } else {
        "rate_iops"
    })?;
    if most.is_some_and(|most| most > 0 && most < amount) {
        let what = format!("{name} is above the rate itself");
        return Err(reader.refuse(name, what, "write a smaller one"));
    }
    let every_ns = cycle_ms * 1_000_000;
    Ok(Some(LeastRate { bytes, every_ns }))
}

/// Reads how long after the others of its group a job begins, ns.
pub(super) fn start_delay(reader: &Reader<'_>) -> Result<u64, JobError> {
    let word = reader.text("startdelay").unwrap_or_default();
    if word.contains('-') {
        let what = format!(
            "startdelay={}: a delay that is drawn is not supported",
            shown(word)
        );
        return Err(reader.refuse("startdelay", what, "write one time: startdelay=5"));
    }
    Ok(reader.time_ns("startdelay", S)?.unwrap_or(0))
}

pub(super) fn pace(
    reader: &Reader<'_>,
    read_share: f64,
    sizes: &[(u32, u32)],
    queue_depth: u32,
) -> Result<JobPace, JobError> {
    let think_ns = reader.time_ns("thinktime", US)?.unwrap_or(0);
    let blocks = reader.count_in("thinktime_blocks", 1..=u64::MAX)?;
    let poisson = match reader.text("rate_process") {
        None | Some("linear") => false,
        Some("poisson") => true,
        Some(word) => {
            let what = format!("rate_process={} is not supported", shown(word));
            return Err(reader.refuse("rate_process", what, "choose among: linear, poisson"));
        }
    };
    let name = match reader.last_of(&["rate", "rate_iops"]) {
        Some(name) => name,
        None if blocks.is_some_and(|blocks| blocks > 1) => {
            let what = "thinktime_blocks above 1 is not supported";
            return Err(reader.refuse(
                "thinktime_blocks",
                what,
                "leave it out: there is a pause after each block",
            ));
        }
        None if think_ns > 0 && queue_depth > 1 => {
            let what =
                "thinktime with iodepth above 1 is not supported: fio pauses the whole queue";
            return Err(reader.refuse(
                "thinktime",
                what,
                "write iodepth=1, or leave thinktime out",
            ));
        }
        None => return Ok(JobPace::Think(think_ns)),
    };
    if think_ns > 0 {
        let what =
            "rate and thinktime exclude each other: with a rate the clock starts each operation";
        return Err(reader.refuse("thinktime", what, "leave out thinktime or the rate"));
    }
    let rate = rate(reader, name, read_share, sizes)?;
    Ok(match rate {
        None => JobPace::Think(0),
        Some(rate) if poisson => JobPace::Poisson(rate),
        Some(rate) => JobPace::Even(rate),
    })
}

/// Operations a second; `None` means as fast as they come.
fn rate(
    reader: &Reader<'_>,
    name: &str,
    read_share: f64,
    sizes: &[(u32, u32)],
) -> Result<Option<f64>, JobError> {
    let (reads, writes) = value::pair(reader.text(name).unwrap_or_default());
    let Some(word) = (if read_share > 0.0 { reads } else { writes }) else {
        return Ok(None);
    };
    let amount = reader.size(name, word)? as f64;
    // A mixed job has a rate of each direction: one clock drives both if they are as the shares.
    let amount = if read_share > 0.0 && read_share < 1.0 {
        let other = writes.map(|word| reader.size(name, word)).transpose()?;
        let (both, other) = (amount / read_share, other.unwrap_or(0) as f64);
        if (both * (1.0 - read_share) - other).abs() > other.max(amount) / 1000.0 {
            let what = format!("{name} of reads and of writes that are not as their shares");
            let next = "write rates in the proportion of rwmixread, or one job for each direction";
            return Err(reader.refuse(name, what, next));
        }
        both
    } else {
        amount
    };
    let rate = match (name, sizes) {
        ("rate_iops", _) => amount,
        // `rate` counts bytes, the schedule operations.
        (_, [(size, _)]) => amount / f64::from(*size),
        _ => {
            let what = "rate with blocks of several sizes is not supported";
            return Err(reader.refuse(name, what, "write rate_iops"));
        }
    };
    if amount == 0.0 {
        return Ok(None);
    }
    if !RATES.contains(&rate) {
        let what = format!("{name}={} cannot be kept", shown(word));
        return Err(reader.refuse(
            name,
            what,
            "write a rate from 0.001 to 1000000000 operations a second",
        ));
    }
    Ok(Some(rate))
}

pub(super) fn durable(reader: &Reader<'_>, read_share: f64) -> Result<SyncPolicy, JobError> {
    let fsync = reader.count_in("fsync", 0..=u64::MAX)?.unwrap_or(0);
    let data = reader.count_in("fdatasync", 0..=u64::MAX)?.unwrap_or(0);
    let end = reader.flag("end_fsync")?.unwrap_or(false);
    let close = reader.flag("fsync_on_close")?.unwrap_or(false);
    let (open_sync, open_dsync) = match reader.text("sync") {
        None | Some("none" | "0") => (false, false),
        Some("sync" | "1") => (true, false),
        Some("dsync") => (false, true),
        Some(word) => {
            let what = format!("sync={} is not supported", shown(word));
            return Err(reader.refuse("sync", what, "choose among: none, sync, dsync"));
        }
    };
    if fsync > 0 && data > 0 {
        let what = "fsync and fdatasync exclude each other";
        return Err(reader.refuse("fdatasync", what, "leave one of them out"));
    }
    // The engine has one switch for both: fdatasync or fsync.
    if data > 0 && (end || close) && read_share < 1.0 {
        let what = "fdatasync and a sync at the end are not supported together";
        return Err(reader.refuse(
            "fdatasync",
            what,
            "write fsync, or leave out the one at the end",
        ));
    }
    Ok(SyncPolicy {
        // One of them is 0: both together were refused above.
        every: fsync.max(data),
        data_only: data > 0,
        // Every file is synced in the job's time by either; closing adds nothing.
        at_end: end || close,
        open_sync,
        open_dsync,
    })
}
