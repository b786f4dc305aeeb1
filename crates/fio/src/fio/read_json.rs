//! fio's JSON. A field that is there twice is refused, and rates must follow from amounts and times.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::latencies::{PercentilesOf, Spread, contradicted};
use super::read_normal as normal;
use super::results::{
    Direction, JobResult, Reported, ResultLatency, Shown, UNSTEADY, incomplete, is_known,
    other_blocks, sound, ticked,
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
    /// Errors that the job went on after.
    #[serde(default)]
    total_err: u64,
    steadystate: Option<Steadiness>,
}

#[derive(Deserialize)]
struct Steadiness {
    attained: Option<u64>,
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
    #[serde(default)]
    short_ios: u64,
    #[serde(default)]
    drop_ios: u64,
    #[serde(default)]
    slat_ns: Times,
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
    #[serde(default)]
    min: f64,
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

    /// The extremes and the mean, if there are any.
    fn spread(&self) -> Option<Spread> {
        let told = |ns: f64, step: f64| PrintedFigure::exact(ns).no_finer_than(step);
        self.is_told().then(|| Spread {
            least: told(self.min, 1.0),
            mean: told(self.mean, 1e-6),
            largest: told(self.max, 1.0),
        })
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
    let depth = whole("iodepth")?;
    let mut directions = told.directions(line, depth)?;
    // What gives blocks other sizes may be said in several ways.
    let other = [
        "bssplit",
        "bsrange",
        "bs_unaligned",
        "read_iolog",
        "num_range",
    ];
    let grouped = options.contains_key("group_reporting");
    let one_size = !grouped && !other.iter().any(|name| options.contains_key(*name));
    let block = option("bs").filter(|_| one_size).unwrap_or_default();
    for direction in &mut directions {
        let shown = &direction.shown;
        let blocks = other_blocks(shown.count, block, shown.moved.value);
        direction.notes.extend(blocks);
        direction.notes.extend(told.notes());
    }
    let ran_s = told.ran_s();
    let sync = told.sync.filter(|sync| sync.lat_ns.is_told());
    let sync = sync.map(|sync| latency(&Times::default(), &Times::default(), &sync.lat_ns));
    if sync.as_ref().is_some_and(|sync| !is_sound(sync, depth)) {
        return Err(contradicting(line, &told.jobname, "sync"));
    }
    Ok(JobResult {
        line,
        group: told.groupid,
        mode: option("rw").unwrap_or("read").to_owned(),
        block: block_asked(option).to_owned(),
        depth,
        // Without group_reporting every clone is a job of its own in the report, and each says
        // numjobs.
        jobs: if grouped { whole("numjobs")? } else { 1 },
        directions,
        sync,
        settings: spelling::facts(&options),
        reported: Reported {
            host: told.hostname,
            ran_s,
            ..seen.clone()
        },
        name: told.jobname,
    })
}

/// The size of a block: a range or a mix of sizes goes before the one size.
fn block_asked<'a>(option: impl Fn(&'a str) -> Option<&'a str>) -> &'a str {
    let named = ["bssplit", "bsrange", "bs"];
    named.into_iter().find_map(option).unwrap_or("4k")
}

impl Told {
    /// Returns what was moved, for each direction that was done.
    fn directions(&self, line: usize, depth: u64) -> Result<Vec<Direction>, ImportError> {
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
                directions.push(direction(line, &self.jobname, name, moved, depth)?);
            }
        }
        if let (true, Some(mixed)) = (directions.is_empty(), self.mixed.as_ref().filter(done)) {
            directions.push(direction(line, &self.jobname, "mixed", mixed, depth)?);
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

    /// Notes on all of the job.
    fn notes(&self) -> Vec<String> {
        let steady = self.steadystate.as_ref().and_then(|it| it.attained);
        let unsteady = (steady == Some(0)).then(|| UNSTEADY.to_owned());
        let errors = (self.total_err > 0)
            .then(|| format!("fio says that it went on after {} error(s)", self.total_err));
        unsteady.into_iter().chain(errors).collect()
    }

    /// Returns how long it ran, s.
    fn ran_s(&self) -> f64 {
        let all = [&self.read, &self.write, &self.trim, &self.mixed];
        let times = all.into_iter().flatten().map(|moved| moved.runtime / 1e3);
        times.fold(0.0, f64::max)
    }
}

fn direction(
    line: usize,
    job: &str,
    name: &str,
    moved: &Moved,
    depth: u64,
) -> Result<Direction, ImportError> {
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
        // Under a millisecond fio's runtime is 0, and it makes no rate.
        match seconds > 0.0 {
            true => rate >= 0.0 && agree(rate, amount as f64 / seconds),
            false => seconds >= 0.0 && rate == 0.0,
        }
    };
    // The same rate in whole KiB/s.
    let again = moved.bw.is_none_or(|kib| {
        let off = (kib * 1024.0 - throughput.value).abs();
        off <= 1024.0 + 0.001 * throughput.value || moved.bw_bytes.is_none()
    });
    for (what, holds) in [
        (
            "bw_bytes",
            again && follows(throughput.value, moved.io_bytes),
        ),
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
    let latency = latency(&moved.slat_ns, &moved.clat_ns, &moved.lat_ns);
    if !is_sound(&latency, depth) {
        return Err(contradicting(line, job, name));
    }
    let incomplete = [
        incomplete("short", name, moved.short_ios),
        incomplete("dropped", name, moved.drop_ios),
    ];
    Ok(Direction {
        name: name.to_owned(),
        throughput: ticked(throughput, moved.runtime),
        operations: ticked(PrintedFigure::exact(moved.iops), moved.runtime),
        latency,
        notes: incomplete.into_iter().flatten().collect(),
        shown: Shown {
            moved: PrintedFigure::exact(moved.io_bytes as f64),
            count: moved.total_ios as f64,
            ..Shown::default()
        },
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

fn contradicting(line: usize, job: &str, name: &str) -> ImportError {
    ImportError::at(
        line,
        format!(
            "the latencies of {}, {name}, contradict each other",
            text::cut(job)
        ),
        "give it what fio wrote, unchanged",
    )
}

/// Returns true if the latencies can be true together.
fn is_sound(latency: &ResultLatency, depth: u64) -> bool {
    let (submission, completion) = (latency.submission, latency.completion);
    let spreads = [latency.whole, submission, completion];
    let fit = |whole| contradicted(whole, submission, completion, depth).is_none();
    let of = match latency.of {
        PercentilesOf::Whole => latency.whole,
        PercentilesOf::Completion => completion,
    };
    let mut all = latency.percentiles.iter();
    spreads.into_iter().flatten().all(Spread::is_sound)
        && latency.whole.is_none_or(fit)
        && latency
            .percentiles
            .is_sorted_by(|one, other| one.1 <= other.1)
        && all.all(|(_, ns)| *ns >= 0.0 && of.is_none_or(|of| of.has(*ns, 1.0)))
}

fn latency(submission: &Times, completion: &Times, whole: &Times) -> ResultLatency {
    // fio prints percentiles of clat unless a job asks for `lat_percentiles`.
    let (of, source) = match whole.percentile.is_empty() {
        true => (PercentilesOf::Completion, completion),
        false => (PercentilesOf::Whole, whole),
    };
    ResultLatency {
        whole: whole.spread(),
        submission: submission.spread(),
        completion: completion.spread(),
        percentiles: percentiles(source),
        percentile_step: 1.0,
        of,
    }
}
