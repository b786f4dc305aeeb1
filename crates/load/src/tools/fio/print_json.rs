//! The layout for programs. A field of fio that is not measured here is left out.

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::report::{
    CLASSES, FioLatency, FioReport, JobReport, Moved, Own, Samples, VERSION, milliseconds,
};

/// Pairs that become an object in their order.
#[derive(Default)]
// A list and no map: ranks and classes are text, whose order is not that of their numbers.
struct Pairs<T>(Vec<(String, T)>);

impl<T: Serialize> Serialize for Pairs<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "fio version")]
    version: &'a str,
    timestamp: u64,
    timestamp_ms: u64,
    time: &'a str,
    #[serde(rename = "global options")]
    global: BTreeMap<&'a str, &'a str>,
    jobs: Vec<FioJob<'a>>,
}

#[derive(Serialize)]
struct FioJob<'a> {
    jobname: &'a str,
    groupid: u64,
    error: i32,
    #[serde(rename = "job options")]
    options: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    desc: Option<&'a str>,
    read: Direction,
    write: Direction,
    trim: Direction,
    #[serde(skip_serializing_if = "Option::is_none")]
    sync: Option<Synced>,
    job_runtime: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    usr_cpu: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sys_cpu: Option<f64>,
    latency_ns: Pairs<f64>,
    latency_us: Pairs<f64>,
    latency_ms: Pairs<f64>,
    latency_depth: u32,
    stackrace: Additional<'a>,
}

/// A number without decimals where it has none: fio prints whole milliseconds, and parsers expect them.
struct Number(f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.fract() == 0.0 {
            serializer.serialize_u64(self.0 as u64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

#[derive(Serialize)]
struct Direction {
    io_bytes: u64,
    io_kbytes: u64,
    bw_bytes: u64,
    bw: u64,
    iops: f64,
    runtime: Number,
    total_ios: u64,
    short_ios: u64,
    drop_ios: u64,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    samples: Option<Rates>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clat_ns: Option<Times>,
    lat_ns: Times,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_ns: Option<Times>,
}

/// Rates over time, as fio names them: KiB and operations a second.
#[derive(Serialize)]
struct Rates {
    bw_min: u64,
    bw_max: u64,
    bw_mean: f64,
    bw_dev: f64,
    bw_samples: u64,
    iops_min: u64,
    iops_max: u64,
    iops_mean: f64,
    iops_stddev: f64,
    iops_samples: u64,
}

impl Rates {
    fn of(samples: &Samples) -> Self {
        let (bytes, operations) = (samples.bytes, samples.operations);
        Self {
            bw_min: (bytes.min / 1024.0).round() as u64,
            bw_max: (bytes.max / 1024.0).round() as u64,
            bw_mean: bytes.mean / 1024.0,
            bw_dev: bytes.deviation / 1024.0,
            bw_samples: samples.count,
            iops_min: operations.min.round() as u64,
            iops_max: operations.max.round() as u64,
            iops_mean: operations.mean,
            iops_stddev: operations.deviation,
            iops_samples: samples.count,
        }
    }
}

#[derive(Serialize)]
struct Synced {
    total_ios: u64,
    lat_ns: Times,
}

#[derive(Serialize)]
struct Times {
    min: u64,
    max: u64,
    mean: f64,
    stddev: f64,
    #[serde(rename = "N")]
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    percentile: Option<Pairs<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bins: Option<Pairs<u64>>,
}

/// Facts that fio has no field for.
#[derive(Serialize)]
struct Additional<'a> {
    engine: &'a str,
    engine_why: &'a str,
    queue_depth_achieved: f64,
    verified_bytes: u64,
}

impl Times {
    const NONE: Times = Times {
        min: 0,
        max: 0,
        mean: 0.0,
        stddev: 0.0,
        count: 0,
        percentile: None,
        bins: None,
    };

    /// `bins`: whether the layout has them; they stand where the percentiles stand, as with fio.
    fn of(latency: &FioLatency, percentiles: bool, bins: bool) -> Times {
        let pair = |(at, ns): &(f64, u64)| (format!("{at:.6}"), *ns);
        let all = || Pairs(latency.percentiles.iter().map(pair).collect());
        Times {
            min: latency.min,
            max: latency.max,
            mean: latency.mean,
            stddev: latency.deviation,
            count: latency.count,
            percentile: percentiles.then(all),
            bins: (percentiles && bins).then(|| {
                let bin = |(from, count): &(u64, u64)| (from.to_string(), *count);
                Pairs(latency.bins.iter().map(bin).collect())
            }),
        }
    }
}

/// The report, with a line break at its end; with `bins` in the layout that fio calls `json+`.
pub(super) fn json(report: &FioReport, bins: bool) -> String {
    let global = report.jobs.first().map(|job| &job.options[0]);
    let shared = global.map_or(0, Vec::len);
    let document = Document {
        version: VERSION,
        timestamp: report.unix_ms / 1000,
        timestamp_ms: report.unix_ms,
        time: &report.date,
        global: global.map(last).unwrap_or_default(),
        jobs: report.jobs.iter().map(|it| job(it, shared, bins)).collect(),
    };
    // Maps with keys of text and finite numbers: nothing can fail.
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

/// Keeps the last of what was said twice.
fn last<'a>(options: impl IntoIterator<Item = &'a (String, String)>) -> BTreeMap<&'a str, &'a str> {
    options
        .into_iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

/// `shared`: so many of the options that were given for all jobs hold for the first of them, too.
fn job(job: &JobReport, shared: usize, bins: bool) -> FioJob<'_> {
    let Own {
        engine,
        engine_why,
        depth_achieved,
        verified_bytes,
    } = &job.own;
    let shares = job.shares();
    let class = |range: std::ops::Range<usize>, scale: u64| {
        let name = |at: usize| match CLASSES.get(at) {
            Some(end) => (end / scale).to_string(),
            None => format!(">={}", CLASSES[30] / scale),
        };
        Pairs(range.map(|at| (name(at), shares[at])).collect())
    };
    FioJob {
        jobname: &job.name,
        groupid: job.group,
        error: job.error,
        options: last(job.options[0].iter().skip(shared).chain(&job.options[1])),
        desc: job.description.as_deref(),
        read: direction(job, job.read.as_ref(), bins),
        write: direction(job, job.written.as_ref(), bins),
        trim: direction(job, job.trimmed.as_ref(), bins),
        sync: job.synced.as_ref().map(|synced| Synced {
            total_ios: synced.count,
            lat_ns: Times::of(synced, true, bins),
        }),
        job_runtime: Number(milliseconds(job.elapsed_ns)),
        usr_cpu: job.cpu.map(|(user, _)| user * 100.0),
        sys_cpu: job.cpu.map(|(_, system)| system * 100.0),
        // Ten classes end at 1 us or below, ten at 1 ms, the rest above it.
        latency_ns: class(0..10, 1),
        latency_us: class(10..20, 1_000),
        latency_ms: class(20..32, 1_000_000),
        latency_depth: job.queue_depth,
        stackrace: Additional {
            engine,
            engine_why,
            queue_depth_achieved: *depth_achieved,
            verified_bytes: *verified_bytes,
        },
    }
}

fn direction(job: &JobReport, moved: Option<&Moved>, bins: bool) -> Direction {
    // Without clat the percentiles can only be those of lat.
    let whole = job.whole_percentiles || !job.plain;
    let Some(moved) = moved else {
        return Direction {
            io_bytes: 0,
            io_kbytes: 0,
            bw_bytes: 0,
            bw: 0,
            iops: 0.0,
            runtime: Number(0.0),
            total_ios: 0,
            short_ios: 0,
            drop_ios: 0,
            samples: None,
            clat_ns: job.plain.then_some(Times::NONE),
            lat_ns: Times::NONE,
            response_ns: None,
        };
    };
    let rate = moved.per_second(moved.bytes);
    Direction {
        io_bytes: moved.bytes,
        io_kbytes: moved.bytes >> 10,
        bw_bytes: rate.round() as u64,
        // fio's `bw` is KiB/s; `bw_bytes` beside it has the digits.
        bw: (rate / 1024.0).round() as u64,
        iops: moved.per_second(moved.operations),
        runtime: Number(milliseconds(moved.elapsed_ns)),
        total_ios: moved.operations,
        short_ios: moved.short,
        drop_ios: 0,
        samples: moved.samples.as_ref().map(Rates::of),
        clat_ns: job.plain.then(|| Times::of(&moved.latency, !whole, bins)),
        lat_ns: Times::of(&moved.latency, whole, bins),
        response_ns: moved.response.as_ref().map(|it| Times::of(it, true, bins)),
    }
}
