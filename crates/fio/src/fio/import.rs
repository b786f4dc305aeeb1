//! fio 3.x: its JSON (also JSON+) and its normal output, the normal output of 2.x, and those of `stackrace fio`. A text with both is one run printed twice.
//!
//! One result per job and direction. The rate is fio's own average over the job; percentiles are
//! those fio prints, of the completion latency unless the job asked for others. The normal output has
//! whole or three digits of the rates (0 where it was 0.97 a second), and the count and the milliseconds
//! that they were made from: these count.

use super::asked;
use super::results::{Direction, JobResult};
use super::runs::{Last, last_reports};
use super::{read_json as json, read_normal as normal};
use stackrace_base::printed::text::Figures;
use stackrace_base::printed::{ImportError, Imported, Importer};

/// Reads what fio printed.
pub const IMPORTER: Importer = Importer {
    name: "fio",
    summary: "the JSON, JSON+ or normal output of fio 3, or the normal output of fio 2",
    recognises: |text| {
        text.contains("\"fio version\"") || normal::recognises(text) || terse(text).is_some()
    },
    read,
};

fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    // JSON first: a text may hold both outputs of one run, and JSON has all digits.
    let (version, jobs) = if text.contains("\"fio version\"") {
        json::read(text)?
    } else if let (false, Some(line)) = (normal::recognises(text), terse(text)) {
        // Its numbers have no names, and nothing in it says what was read or written, and how.
        return Err(ImportError::at(
            line,
            "this is fio's terse output, which does not say what was done",
            "run fio with --output-format=json, or with the normal output",
        ));
    } else {
        let (version, mut jobs) = normal::read(text)?;
        asked::add(text, &mut jobs)?;
        (version, jobs)
    };
    let Last {
        jobs,
        left_out,
        copies,
    } = last_reports(jobs);
    let mut results = Vec::new();
    for (at, job) in jobs.iter().enumerate() {
        let beside =
            |other: &&JobResult| other.reported.run == job.reported.run && other.group == job.group;
        let others = jobs.iter().filter(beside).count() - 1;
        let name = name(&jobs, at);
        for direction in &job.directions {
            let mut result = imported(&version, job, direction, &name, others);
            if left_out > 0 {
                result.notes.push(format!(
                    "{left_out} report(s) under way were left out: the last one has all of them in it"
                ));
            }
            if copies > 0 {
                result.notes.push(format!(
                    "{copies} report(s) are there twice, with the same process or time and the same figures: a copy is no repetition, and it counts once"
                ));
            }
            results.push(result);
        }
    }
    Ok(results)
}

/// Number of the first line of terse output, from 0: `3;fio-3.33;name;…`.
fn terse(text: &str) -> Option<usize> {
    let mut lines = text.lines().map(str::trim_start);
    lines.position(|line| {
        let mut fields = line.split(';');
        let version = fields.next().is_some_and(|word| word.parse::<u8>().is_ok());
        version && fields.next().is_some_and(|word| word.starts_with("fio-"))
    })
}

/// Names a workload as `fio randread 4k, iodepth 16`; where another job of the text would be called
/// the same, with the job's name, and with its number where that is the same too: they are no
/// repetitions.
fn name(jobs: &[JobResult], at: usize) -> String {
    let plain = |job: &JobResult| {
        let mut name = format!("fio {} {}", job.mode, job.block);
        if job.depth > 1 {
            name.push_str(&format!(", iodepth {}", job.depth));
        }
        if job.jobs > 1 {
            name.push_str(&format!(", {} jobs", job.jobs));
        }
        name
    };
    let job = &jobs[at];
    let own = plain(job);
    // The same in another run is a repetition.
    let same: Vec<usize> = (0..jobs.len())
        .filter(|&i| jobs[i].reported.run == job.reported.run && plain(&jobs[i]) == own)
        .collect();
    if same.len() == 1 {
        return own;
    }
    let twins: Vec<usize> = same
        .into_iter()
        .filter(|&i| jobs[i].name == job.name)
        .collect();
    match twins.iter().position(|&twin| twin == at) {
        Some(place) if twins.len() > 1 => {
            format!("{own} ({}, {} of {})", job.name, place + 1, twins.len())
        }
        _ => format!("{own} ({})", job.name),
    }
}

pub(super) fn imported(
    version: &str,
    job: &JobResult,
    direction: &Direction,
    name: &str,
    others: usize,
) -> Imported {
    let alone = job.directions.len() == 1;
    let mut figures = Figures::default();
    let mut rates = [
        ("operations", "op/s", direction.operations),
        ("throughput", "B/s", direction.throughput),
    ];
    // The first metric is the primary one: of sequential jobs the throughput, of others the
    // operations.
    if matches!(job.mode.as_str(), "read" | "write") {
        rates.reverse();
    }
    for (name, unit, rate) in rates {
        figures.rate(name, unit, Some(rate));
    }
    direction.latency.metrics(&direction.name, &mut figures);
    // fio reports syncs once a job; they belong to its writes.
    if let Some(sync) = job.sync.as_ref().filter(|_| direction.name == "write") {
        sync.metrics("fsync", &mut figures);
    }
    let mut notes = figures.missing("not in the text");
    notes.extend(direction.notes.iter().cloned());
    if !direction.latency.percentiles.is_empty() {
        notes.push(format!(
            "percentiles are of {}, means and maxima of the whole latency (lat)",
            direction.latency.of.words()
        ));
    }
    if others > 0 {
        notes.push(format!(
            "{} ran at the same time as {others} other job(s)",
            job.name
        ));
    }
    Imported {
        version: Some(version.to_owned()),
        // The native workloads of these names are the same operation.
        kind: match (alone && others == 0, job.mode.as_str()) {
            (true, "read" | "write") => "sequential",
            (true, "randread" | "randwrite") => "random",
            _ => "fio",
        }
        .to_owned(),
        settings: job.settings.clone(),
        notes,
        against: direction.notes.clone(),
        ..figures.imported(
            "fio",
            if alone {
                name.to_owned()
            } else {
                format!("{name}: {}", direction.name)
            },
        )
    }
}
