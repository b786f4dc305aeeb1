//! Which logs over time a job writes.

use super::super::place::JobError;
use super::read::Reader;
use super::resolved::{LogKind, Logs};

/// Nanoseconds of a millisecond.
const MS: u64 = 1_000_000;
/// Options and what they log.
const KINDS: [(&str, LogKind); 3] = [
    ("write_bw_log", LogKind::Bandwidth),
    ("write_iops_log", LogKind::Operations),
    ("write_lat_log", LogKind::Latency),
];

/// Reads which logs are written, and how; `name`: that of the job, which they have unless told
/// otherwise.
pub(super) fn logs(reader: &Reader<'_>, name: &str) -> Result<Logs, JobError> {
    let every_ms = reader
        .count_in("log_avg_msec", 0..=u64::MAX / MS)?
        .unwrap_or(0);
    let offsets = reader.flag("log_offset")?.unwrap_or(false);
    let logs = Logs {
        files: KINDS
            .iter()
            .filter_map(|(option, kind)| {
                let said = reader.text(option)?;
                let name = if said.is_empty() { name } else { said };
                Some((*kind, name.to_owned()))
            })
            .collect(),
        every_ns: every_ms * MS,
        largest: reader.flag("log_max_value")?.unwrap_or(false),
        offsets,
        priorities: reader.flag("log_prio")?.unwrap_or(false),
        each_job: reader.flag("per_job_logs")?.unwrap_or(true),
    };
    if logs.largest && logs.every_ns > 0 && logs.files.iter().any(|it| it.0 != LogKind::Latency) {
        let what = "log_max_value of bandwidth and operations is not supported: an average is what they are";
        return Err(reader.refuse(
            "log_max_value",
            what,
            "leave it out, or write write_lat_log alone",
        ));
    }
    if reader.count_in("log_hist_msec", 0..=u64::MAX)?.unwrap_or(0) > 0 {
        let next = "leave it out: --output-format=json+ has the bins of all latencies";
        return Err(reader.refuse("log_hist_msec", "log_hist_msec is not supported", next));
    }
    Ok(logs)
}
