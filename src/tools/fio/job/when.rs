//! When a job's operations start, when it ends, and when its data is made durable.

use super::super::language::shown;
use super::super::place::JobError;
use super::super::value;
use super::read::Reader;
use super::resolved::{JobPace, SyncPolicy};

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

/// How long after the others of its group a job begins, ns.
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

/// Operations a second; none: as fast as they come.
fn rate(
    reader: &Reader<'_>,
    name: &str,
    read_share: f64,
    sizes: &[(u32, u32)],
) -> Result<Option<f64>, JobError> {
    if read_share > 0.0 && read_share < 1.0 {
        let what = format!("{name} is a rate of reads and one of writes in a mixed job");
        return Err(reader.refuse(
            name,
            what,
            "write two jobs, one that reads and one that writes",
        ));
    }
    let (reads, writes) = value::pair(reader.text(name).unwrap_or_default());
    let Some(word) = (if read_share > 0.0 { reads } else { writes }) else {
        return Ok(None);
    };
    let amount = reader.size(name, word)? as f64;
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
