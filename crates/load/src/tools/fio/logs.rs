//! Logs over time: what each operation was like, or those of each stretch of time.
//!
//! A line holds, with commas between: milliseconds since the job began, the value, 0 for a read, 1 for a
//! write or 2 for a trim, bytes of the block (0 for a stretch), the offset if that is asked for, and the priority,
//! which is always 0 here. Bandwidths are in KiB a second, latencies in nanoseconds.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use stackrace_engine::{KeptOps, Op};

use super::job::{Engine, FioJob, LogKind};
use super::run::Ran;

/// One second, ns.
const S: f64 = 1e9;

/// Writes the content of each log, by its name.
pub(super) fn texts(jobs: &[FioJob], ran: &[Ran]) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    for one in ran {
        let job = &jobs[one.job];
        for (kind, base) in &job.logs.files {
            for name in names(job, *kind) {
                let number = match job.logs.each_job {
                    true => format!(".{}", one.number),
                    false => String::new(),
                };
                let path = PathBuf::from(format!("{base}_{name}{number}.log"));
                let text: &mut String = all.entry(path).or_default();
                lines(job, one, *kind, text);
            }
        }
    }
    all
}

/// Writes all logs, into the working directory unless their names say otherwise.
///
/// # Errors
/// The first that cannot be written; the others are all the same.
pub(super) fn write(jobs: &[FioJob], ran: &[Ran]) -> Result<(), String> {
    let mut failed = Ok(());
    for (path, text) in texts(jobs, ran) {
        if let Err(error) = std::fs::write(&path, text) {
            failed = failed.and(Err(format!("cannot write {}: {error}", path.display())));
        }
    }
    failed
}

/// Names of a log's files behind the name that the job gives it.
fn names(job: &FioJob, kind: LogKind) -> &'static [&'static str] {
    match kind {
        LogKind::Bandwidth => &["bw"],
        LogKind::Operations => &["iops"],
        // In a ring, submission and completion are not told apart.
        LogKind::Latency if job.engine == Engine::Ring => &["lat"],
        LogKind::Latency => &["lat", "clat"],
    }
}

fn lines(job: &FioJob, ran: &Ran, kind: LogKind, text: &mut String) {
    let mut before_ns = 0;
    for outcome in std::iter::once(&ran.measured).chain(&ran.back).flatten() {
        for kept in &outcome.history {
            // The last stretch ends with the phase.
            let at_ns = kept.at_ns.min(outcome.elapsed_ns);
            let begun_ns = kept.at_ns.saturating_sub(job.logs.every_ns);
            let value = value(job, kind, kept, at_ns.saturating_sub(begun_ns));
            let direction = match (kept.op, job.engine) {
                (Op::Write, Engine::Punch) => 2,
                (Op::Write, _) => 1,
                _ => 0,
            };
            let size = if job.logs.every_ns > 0 { 0 } else { kept.bytes };
            let offset = match (job.logs.offsets, job.logs.every_ns) {
                (false, _) => String::new(),
                (true, 0) => format!("{}, ", kept.offset),
                (true, _) => "0, ".to_owned(),
            };
            let priority = if job.logs.priorities { "0x0000" } else { "0" };
            let ms = (before_ns + at_ns) / 1_000_000;
            // Text in memory takes every line.
            let _ = writeln!(
                text,
                "{ms}, {value}, {direction}, {size}, {offset}{priority}"
            );
        }
        // What is read back comes behind what was written.
        before_ns += outcome.elapsed_ns;
    }
}

/// The value of a line, for operations that ended in a stretch of so many ns.
fn value(job: &FioJob, kind: LogKind, kept: &KeptOps, stretch_ns: u64) -> u64 {
    let each = job.logs.every_ns == 0;
    let stretch_ns = if each { kept.latency_ns } else { stretch_ns };
    let per_second = |amount: f64| amount * S / stretch_ns.max(1) as f64;
    let value = match kind {
        LogKind::Bandwidth => per_second(kept.bytes as f64 / 1024.0),
        LogKind::Operations if each => 1.0,
        LogKind::Operations => per_second(kept.count as f64),
        LogKind::Latency if job.logs.largest => kept.longest_ns as f64,
        LogKind::Latency => kept.latency_ns as f64 / kept.count.max(1) as f64,
    };
    value.round() as u64
}
