//! fio's JSON. A field that is there twice is refused, and rates must follow from amounts and times.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::read_normal as normal;
use super::results::{Direction, JobResult, ResultLatency, is_known, sound};
use stackrace_base::event::Fact;
use stackrace_base::printed::ImportError;
use stackrace_base::printed::text::{self, agree};

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "fio version")]
    version: String,
    #[serde(rename = "global options", default)]
    global: BTreeMap<String, String>,
    jobs: Vec<Reported>,
}

#[derive(Deserialize)]
struct Reported {
    jobname: String,
    groupid: u64,
    error: i64,
    #[serde(rename = "job options", default)]
    options: BTreeMap<String, String>,
    read: Moved,
    write: Moved,
    trim: Moved,
    sync: Option<Synced>,
}

#[derive(Deserialize)]
struct Moved {
    io_bytes: u64,
    bw_bytes: f64,
    iops: f64,
    /// How long it took, ms.
    runtime: f64,
    total_ios: u64,
    /// Missing where submission and completion are not measured apart.
    #[serde(default)]
    clat_ns: Times,
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
    #[serde(rename = "N", default)]
    count: u64,
    #[serde(default)]
    percentile: BTreeMap<String, f64>,
}

/// The version and every job.
pub(super) fn read(whole: &str) -> Result<(String, Vec<JobResult>), ImportError> {
    let (mut version, mut jobs) = (None, Vec::new());
    let mut place = 0;
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
        for reported in document.jobs {
            jobs.push(job(line, &document.global, reported)?);
        }
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

/// Where the next line is that is `{` alone, as fio begins a document.
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
    reported: Reported,
) -> Result<JobResult, ImportError> {
    sound(line, &reported.jobname, reported.error)?;
    let mut options = global.clone();
    // A job's own options are behind [global], so they replace what is there.
    options.extend(reported.options);
    let option = |name: &str| options.get(name).map(String::as_str);
    let whole = |name: &str| {
        let word = option(name).unwrap_or("1");
        word.parse::<u64>().map_err(|_| {
            let what = format!(
                "{name} of {} is \"{}\"",
                text::cut(&reported.jobname),
                text::cut(word)
            );
            ImportError::at(line, what, "a whole number is expected")
        })
    };
    let mut directions = Vec::new();
    for (name, moved) in [
        ("read", &reported.read),
        ("write", &reported.write),
        ("trim", &reported.trim),
    ] {
        // fio prints all three directions, with zeros for those that were not done.
        if moved.io_bytes > 0 {
            directions.push(direction(line, &reported.jobname, name, moved)?);
        }
    }
    if directions.is_empty() {
        let what = format!("the job {} moved nothing", text::cut(&reported.jobname));
        return Err(ImportError::at(
            line,
            what,
            "leave this job out: there is no figure in it",
        ));
    }
    let grouped = options.contains_key("group_reporting");
    let sync = reported.sync.filter(|sync| sync.lat_ns.count > 0);
    Ok(JobResult {
        line,
        group: reported.groupid,
        mode: option("rw")
            .or(option("readwrite"))
            .unwrap_or("read")
            .to_owned(),
        block: block(option("bs").or(option("blocksize")).unwrap_or("4k")),
        depth: whole("iodepth")?,
        // Without group_reporting every clone is a job of its own in the report, and each says
        // numjobs.
        jobs: if grouped { whole("numjobs")? } else { 1 },
        directions,
        sync: sync.map(|sync| latency(&sync.lat_ns, &sync.lat_ns)),
        settings: options
            .iter()
            .map(|(name, value)| Fact::new(name, value))
            .collect(),
        name: reported.jobname,
    })
}

/// A block size as the normal output would let it be called: `4096` and `4K` are `4k`.
fn block(option: &str) -> String {
    let one = |word: &str| {
        let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let factor = match word[digits.len()..].to_ascii_lowercase().as_str() {
            "" => 1,
            "k" | "kb" | "kib" => 1 << 10,
            "m" | "mb" | "mib" => 1 << 20,
            "g" | "gb" | "gib" => 1 << 30,
            _ => return None,
        };
        digits
            .parse::<u64>()
            .ok()?
            .checked_mul(factor)
            .map(text::size)
    };
    one(option).unwrap_or_else(|| option.to_owned())
}

fn direction(line: usize, job: &str, name: &str, moved: &Moved) -> Result<Direction, ImportError> {
    let seconds = moved.runtime / 1e3;
    let follows = |rate: f64, amount: u64| {
        // Under a millisecond fio's runtime is 0, and no rate follows from it.
        rate >= 0.0 && (seconds <= 0.0 || agree(rate, amount as f64 / seconds))
    };
    for (what, holds) in [
        ("bw_bytes", follows(moved.bw_bytes, moved.io_bytes)),
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
        throughput: moved.bw_bytes,
        operations: moved.iops,
        latency: latency(&moved.lat_ns, &moved.clat_ns),
    })
}

fn percentiles(times: &Times) -> Vec<(f64, f64)> {
    let read = |(at, ns): (&String, &f64)| Some((text::number(at)?, *ns));
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
    ResultLatency {
        mean: (whole.count > 0).then_some(whole.mean),
        max: (whole.count > 0).then_some(whole.max),
        percentiles: percentiles(source),
        of,
    }
}
