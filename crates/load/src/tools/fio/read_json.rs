//! fio's JSON. A field that is there twice is refused, and rates must follow from amounts and times.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::read_normal as normal;
use super::results::{
    Direction, JobResult, Reported, ResultLatency, Shown, is_known, sound, ticked,
};
use super::spelling;
use stackrace_base::printed::text::{self, agree};
use stackrace_base::printed::{ImportError, PrintedFigure};

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "fio version")]
    version: String,
    /// Time it was printed: s since 1970, and ms where it says so.
    #[serde(default)]
    timestamp: f64,
    timestamp_ms: Option<f64>,
    #[serde(rename = "global options", default)]
    global: BTreeMap<String, String>,
    #[serde(default)]
    jobs: Vec<Told>,
    /// Jobs with `--client`, in place of `jobs`: those of each machine, then their sum.
    #[serde(default)]
    client_stats: Vec<Told>,
}

/// Name fio gives the sum over all machines.
const SUM: &str = "All clients";

#[derive(Deserialize)]
struct Told {
    jobname: String,
    #[serde(default)]
    hostname: String,
    groupid: u64,
    error: i64,
    #[serde(rename = "job options", default)]
    options: BTreeMap<String, String>,
    read: Option<Moved>,
    write: Option<Moved>,
    trim: Option<Moved>,
    /// Sum of all directions (`unified_rw_reporting`); beside them it is only their sum.
    mixed: Option<Moved>,
    sync: Option<Synced>,
}

#[derive(Deserialize)]
struct Moved {
    io_bytes: u64,
    /// Missing before 3.2, which has whole KiB/s instead.
    bw_bytes: Option<f64>,
    bw: Option<f64>,
    iops: f64,
    /// Time it took, ms.
    runtime: f64,
    total_ios: u64,
    /// Missing where submission and completion are not measured apart.
    #[serde(default)]
    clat_ns: Times,
    #[serde(default)]
    lat_ns: Times,
}

#[derive(Deserialize)]
struct Synced {
    lat_ns: Times,
}

#[derive(Deserialize, Default)]
struct Times {
    max: f64,
    mean: f64,
    /// Missing before 3.2.
    #[serde(rename = "N")]
    count: Option<u64>,
    #[serde(default)]
    percentile: BTreeMap<String, f64>,
}

impl Times {
    /// Returns true if there are any: fio prints zeros of what it did not measure.
    fn is_told(&self) -> bool {
        self.count.map_or(self.max > 0.0, |count| count > 0)
    }
}

/// The version and every job.
pub(super) fn read(whole: &str) -> Result<(String, Vec<JobResult>), ImportError> {
    let (mut version, mut jobs) = (None, Vec::new());
    let (mut place, mut runs) = (0, 0);
    while let Some(begin) = next_object(whole, place) {
        // serde_json counts lines from where it began, users from the beginning of the file.
        let line = whole[..begin].matches('\n').count();
        // A stream, because other output may follow a document: another one, or the same run's
        // normal report.
        let mut stream =
            serde_json::Deserializer::from_str(&whole[begin..]).into_iter::<Document>();
        let document = match stream.next() {
            Some(Ok(document)) => document,
            Some(Err(error)) => {
                return Err(ImportError::at(
                    line + error.line().saturating_sub(1),
                    format!("this is not the JSON of fio 3: {}", text::cause(&error)),
                    "give it what fio --output-format=json wrote, whole and unchanged",
                ));
            }
            None => return Err(text::end(whole, "the end of the JSON")),
        };
        place = begin + stream.byte_offset();
        if !is_known(&document.version) {
            let what = format!("the JSON is of {}", text::cut(&document.version));
            return Err(ImportError::at(
                line,
                what,
                "fio 3 is read; its fields have other units",
            ));
        }
        if *version.get_or_insert_with(|| document.version.clone()) != document.version {
            let what = "the text is of more than one version of fio";
            return Err(ImportError::at(
                line,
                what,
                "import them as files of their own",
            ));
        }
        jobs.extend(document.jobs(line, runs)?);
        runs += 1;
    }
    let same = normal::jobs_named(whole);
    if same > 0 && same != jobs.len() {
        let what = format!("{} job(s) in JSON and {same} in normal output", jobs.len());
        return Err(ImportError::at(
            0,
            what,
            "import different runs as files of their own",
        ));
    }
    let version = version.ok_or_else(|| text::end(whole, "the JSON"))?;
    Ok((version, jobs))
}

impl Document {
    /// Every job of it, as those of a run of the text.
    fn jobs(self, line: usize, run: usize) -> Result<Vec<JobResult>, ImportError> {
        let seen = Reported {
            run,
            at_s: Some(self.timestamp_ms.map_or(self.timestamp, |ms| ms / 1e3)),
            ..Reported::default()
        };
        let told = self.jobs.into_iter().chain(self.client_stats);
        let mut told: Vec<Told> = told.filter(|told| told.jobname != SUM).collect();
        if told.is_empty() {
            let what = "there is no job in this JSON of fio";
            return Err(ImportError::at(line, what, "give it a report of a run"));
        }
        // One machine alone needs no name.
        if told.iter().any(|one| one.hostname != told[0].hostname) {
            for one in &mut told {
                one.jobname = format!("{} on {}", one.jobname, one.hostname);
            }
        }
        let jobs = told.into_iter();
        jobs.map(|one| job(line, &self.global, one, &seen))
            .collect()
    }
}

/// Finds the next line that is `{` alone, as fio begins a document.
fn next_object(whole: &str, place: usize) -> Option<usize> {
    let mut at = place;
    for line in whole[place..].split_inclusive('\n') {
        if line.starts_with('{') {
            return Some(at);
        }
        at += line.len();
    }
    None
}

fn job(
    line: usize,
    global: &BTreeMap<String, String>,
    told: Told,
    seen: &Reported,
) -> Result<JobResult, ImportError> {
    sound(line, &told.jobname, told.error)?;
    let mut options = spelling::plain(global.clone());
    // A job's own options are behind [global], so they replace what is there.
    options.extend(spelling::plain(told.options.clone()));
    let option = |name: &str| options.get(name).map(String::as_str);
    let whole = |name: &str| {
        let word = option(name).unwrap_or("1");
        word.parse::<u64>().map_err(|_| {
            let what = format!(
                "{name} of {} is \"{}\"",
                text::cut(&told.jobname),
                text::cut(word)
            );
            ImportError::at(line, what, "a whole number is expected")
        })
    };
    let directions = told.directions(line)?;
    let ran_s = told.ran_s();
    let grouped = options.contains_key("group_reporting");
    let sync = told.sync.filter(|sync| sync.lat_ns.is_told());
    Ok(JobResult {
        line,
        group: told.groupid,
        mode: option("rw").unwrap_or("read").to_owned(),
        block: option("bs").unwrap_or("4k").to_owned(),
        depth: whole("iodepth")?,
        // Without group_reporting every clone is a job of its own in the report, and each says
        // numjobs.
        jobs: if grouped { whole("numjobs")? } else { 1 },
        directions,
        sync: sync.map(|sync| latency(&sync.lat_ns, &sync.lat_ns)),
        settings: spelling::facts(&options),
        reported: Reported {
            host: told.hostname,
            ran_s,
            ..seen.clone()
        },
        name: told.jobname,
    })
}

impl Told {
    /// Returns what was moved, for each direction that was done.
    fn directions(&self, line: usize) -> Result<Vec<Direction>, ImportError> {
        let apart = [
            ("read", &self.read),
            ("write", &self.write),
            ("trim", &self.trim),
        ];
        // fio prints all three directions, with zeros for those that were not done.
        let done = |moved: &&Moved| moved.io_bytes > 0;
        let mut directions = Vec::new();
        for (name, moved) in apart {
            if let Some(moved) = moved.as_ref().filter(done) {
                directions.push(direction(line, &self.jobname, name, moved)?);
            }
        }
        if let (true, Some(mixed)) = (directions.is_empty(), self.mixed.as_ref().filter(done)) {
            directions.push(direction(line, &self.jobname, "mixed", mixed)?);
        }
        if directions.is_empty() {
            let what = format!("the job {} moved nothing", text::cut(&self.jobname));
            return Err(ImportError::at(
                line,
                what,
                "leave this job out: there is no figure in it",
            ));
        }
        Ok(directions)
    }

    /// Returns how long it ran, s.
    fn ran_s(&self) -> f64 {
        let all = [&self.read, &self.write, &self.trim, &self.mixed];
        let times = all.into_iter().flatten().map(|moved| moved.runtime / 1e3);
        times.fold(0.0, f64::max)
    }
}

fn direction(line: usize, job: &str, name: &str, moved: &Moved) -> Result<Direction, ImportError> {
    let seconds = moved.runtime / 1e3;
    let throughput = match (moved.bw_bytes, moved.bw) {
        (Some(bytes), _) => PrintedFigure::exact(bytes),
        // Whole KiB/s of an old version; amount over time has all digits.
        (None, Some(kib))
            if seconds > 0.0 && agree(kib * 1024.0, moved.io_bytes as f64 / seconds) =>
        {
            PrintedFigure::exact(moved.io_bytes as f64 / seconds)
        }
        (None, Some(kib)) => PrintedFigure::in_full(kib) * 1024.0,
        (None, None) => return Err(missing(line, job, name, "bw")),
    };
    let follows = |rate: f64, amount: u64| {
        // Under a millisecond fio's runtime is 0, and no rate follows from it.
        rate >= 0.0 && (seconds <= 0.0 || agree(rate, amount as f64 / seconds))
    };
    for (what, holds) in [
        ("bw_bytes", follows(throughput.value, moved.io_bytes)),
        ("iops", follows(moved.iops, moved.total_ios)),
    ] {
        if !holds {
            return Err(ImportError::at(
                line,
                format!(
                    "{what} of {}, {name}, is not what its amount and runtime give",
                    text::cut(job)
                ),
                "give it what fio wrote, unchanged",
            ));
        }
    }
    let times = [&moved.clat_ns, &moved.lat_ns];
    let sound = times
        .iter()
        // A thousandth for rounding: the mean has decimals, the maximum has none.
        .all(|times| times.mean >= 0.0 && times.mean <= times.max * 1.001)
        && times.iter().all(|times| rising(times));
    if !sound {
        return Err(ImportError::at(
            line,
            format!(
                "the latencies of {}, {name}, contradict each other",
                text::cut(job)
            ),
            "give it what fio wrote, unchanged",
        ));
    }
    Ok(Direction {
        name: name.to_owned(),
        throughput: ticked(throughput, moved.runtime),
        operations: ticked(PrintedFigure::exact(moved.iops), moved.runtime),
        latency: latency(&moved.lat_ns, &moved.clat_ns),
        notes: Vec::new(),
        shown: Shown::default(),
    })
}

fn missing(line: usize, job: &str, name: &str, what: &str) -> ImportError {
    ImportError::at(
        line,
        format!("{} of {}, {name}, is missing", what, text::cut(job)),
        "give it what fio wrote, unchanged",
    )
}

fn percentiles(times: &Times) -> Vec<(f64, f64)> {
    let read = |(at, ns): (&String, &f64)| Some((PrintedFigure::read(at)?.value, *ns));
    let mut all: Vec<(f64, f64)> = times.percentile.iter().filter_map(read).collect();
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    all
}

fn rising(times: &Times) -> bool {
    let all = percentiles(times);
    all.iter().all(|(_, ns)| *ns >= 0.0) && all.is_sorted_by(|one, other| one.1 <= other.1)
}

fn latency(whole: &Times, completion: &Times) -> ResultLatency {
    // fio prints percentiles of clat unless a job asks for `lat_percentiles`.
    let (of, source) = if whole.percentile.is_empty() {
        ("the completion latency (clat)", completion)
    } else {
        ("the whole latency (lat)", whole)
    };
    let told = |ns: f64, step: f64| PrintedFigure::exact(ns).no_finer_than(step);
    ResultLatency {
        mean: whole.is_told().then(|| told(whole.mean, 1e-6)),
        max: whole.is_told().then(|| told(whole.max, 1.0)),
        percentiles: percentiles(source),
        percentile_step: 1.0,
        of,
    }
}
