//! fio's normal output. Every line inside a job's part is one that fio is known to print, and a
//! part counts only with its last line and the summary after it.

use super::group;
use super::latencies::{PercentilesOf, contradicted};
use super::rates::{Digits, amount, counted, rates};
use super::read_times::{percentile_head, percentile_row, times, unit_ns};
use super::results::{
    DIRECTIONS, Direction, JobResult, Reported, ResultLatency, UNSTEADY, incomplete, is_known,
    is_version_2, other_blocks, share_of_reads, sound,
};
use super::version2;
use stackrace_base::event::Fact;
use stackrace_base::printed::ImportError;
use stackrace_base::printed::text::{TextLine, cut, end, lines, size};

/// Beginnings of the lines of a job's part that say nothing which becomes a figure.
const PASSED: [&str; 17] = [
    "Description  : [",
    "errors  ",
    "steadystate  ",
    "clat prio ",
    "lat prio ",
    "high prio ",
    "low prio ",
    "response (",
    "slat (",
    "bw (",
    "iops  ",
    "cpu  ",
    "IO depths",
    "submit  ",
    "complete  ",
    "latency  ",
    "fsync/fdatasync",
];

/// Beginnings of such lines that stand behind the last one of a part as well.
const BEHIND: [&str; 3] = ["errors  ", "steadystate  ", "latency  "];

/// The lines about a job before the run.
struct Announced {
    name: String,
    group: u64,
    mode: String,
    block: String,
    engine: String,
    depth: u64,
}

/// Returns true if a text has the line that begins a job's part.
pub(super) fn recognises(text: &str) -> bool {
    text.contains(": (groupid=") && text.contains("pid=")
}

/// Counts the parts of jobs in a text.
pub(super) fn jobs_named(text: &str) -> usize {
    text.lines()
        // The sum over several machines is no job.
        .filter(|line| line.contains(": (groupid=") && !line.starts_with("All clients"))
        .count()
}

/// The version and every job.
pub(super) fn read(text: &str) -> Result<(String, Vec<JobResult>), ImportError> {
    let mut reader = Reader::default();
    for line in lines(text) {
        reader.take(line)?;
    }
    if reader.open || !reader.is_summed() {
        return Err(end(text, "\"Run status group\""));
    }
    if let Some(job) = reader.jobs.iter().find(|job| job.directions.is_empty()) {
        let what = format!("the job {} moved nothing", cut(&job.name));
        return Err(ImportError::at(
            job.line,
            what,
            "leave this job out: there is no figure in it",
        ));
    }
    let version = reader
        .version
        .ok_or_else(|| end(text, "the version of fio"))?;
    Ok((version, reader.jobs))
}

/// State of the reader after the lines so far.
#[derive(Default)]
struct Reader {
    version: Option<String>,
    asked: Vec<Announced>,
    jobs: Vec<JobResult>,
    /// Groups of this run whose summary was seen.
    summed: Vec<u64>,
    /// The group whose summary this is, and the directions it told of.
    sums: Option<(u64, Vec<&'static str>)>,
    /// For each group, the number of jobs when its last summary was seen: later ones are of another report.
    before: Vec<(u64, usize)>,
    /// Number of the run and of the first job of the report whose summary this is.
    of_report: (usize, usize),
    /// The digits that this version prints.
    digits: Digits,
    /// Set while a job's part is open, with how far its first line is indented.
    open: bool,
    indented: usize,
    /// Number of the run in the text.
    run: usize,
    /// Set inside the sum over all machines (`--client`), which is none of a job.
    sum: bool,
}

impl Reader {
    /// Returns true if every group of this run has its summary.
    fn is_summed(&self) -> bool {
        let mut jobs = self.jobs.iter().filter(|job| job.reported.run == self.run);
        jobs.all(|job| self.summed.contains(&job.group))
    }

    fn take(&mut self, whole: TextLine<'_>) -> Result<(), ImportError> {
        let line = without_host(whole);
        let indented = line.text.len() - line.text.trim_start().len();
        let text = line.text.trim();
        // The lines of a summary follow each other.
        let sums = match text.is_empty() {
            true => None,
            false => self.sums.take(),
        };
        if self.sum {
            self.sum = issued(text).is_none();
        } else if text.starts_with("fio-") || text.starts_with("stackrace-") {
            self.is_of(line, text)?;
        } else if let Some((_, rest)) = text.split_once(", fio=fio-") {
            // What a machine says of itself before its jobs (`--client`).
            let version = rest.split(',').next().unwrap_or_default();
            self.is_of(line, &format!("fio-{version}"))?;
        } else if text.contains(": (g=") {
            self.announce(line)?;
        } else if text.starts_with("All clients: (groupid=") {
            self.sum = true;
        } else if text.contains(": (groupid=") {
            if self.open {
                return Err(line.refuse("\"issued rwts\" of the job before it"));
            }
            let mut job = part(line, &self.asked)?;
            job.reported.run = self.run;
            self.jobs.push(job);
            (self.open, self.indented) = (true, indented);
        } else if let Some(group) = line.after("Run status group ") {
            let group = group.split(' ').next().unwrap_or_default();
            let group = line.whole(group)?;
            self.summed.push(group);
            self.sums = Some((group, Vec::new()));
        } else if let Some((name, rest)) = group::of(text) {
            let sums = sums.ok_or_else(|| line.refuse("\"Run status group\" before it"))?;
            self.sums = Some(self.of_group(line, sums, name, rest)?);
        } else if let (true, Some(job)) = (text.contains("attained=no"), self.jobs.last_mut()) {
            for direction in &mut job.directions {
                direction.notes.push(UNSTEADY.to_owned());
            }
        } else if let (true, Some(job)) = (self.open, self.jobs.last_mut()) {
            // A text may be indented as a whole: what belongs to a job is so by its first line.
            if indented > self.indented {
                self.open = inside(line, job, self.digits)?;
            } else if !text.is_empty() {
                return Err(line.refuse("a line of the job's part"));
            }
        } else if is_of_part(text) {
            return Err(line.refuse("the line of a job before it: name: (groupid=…"));
        }
        Ok(())
    }

    /// Takes what a group moved in one direction; returns the summary with it.
    fn of_group(
        &mut self,
        line: TextLine<'_>,
        (group, mut told): (u64, Vec<&'static str>),
        name: &'static str,
        rest: &str,
    ) -> Result<(u64, Vec<&'static str>), ImportError> {
        if told.contains(&name) {
            return Err(line.refuse("each direction once"));
        }
        if told.is_empty() {
            let known = self.before.iter().position(|(known, _)| *known == group);
            let before = known.map_or(0, |at| self.before.swap_remove(at).1);
            self.of_report = (self.run, before);
            self.before.push((group, self.jobs.len()));
        }
        let (run, before) = self.of_report;
        let jobs = self.jobs.iter().skip(before);
        let jobs = jobs.filter(|job| job.reported.run == run && job.group == group);
        let moved = jobs.flat_map(|job| job.directions.iter().filter(|it| it.name == name));
        let moved: Vec<&Direction> = moved.collect();
        if moved.is_empty() && name != "mixed" {
            return Err(line.contradicts("the jobs of the group"));
        }
        match rest.contains(", aggrb=") {
            true => version2::check_group(line, rest, &moved)?,
            false => group::check(line, rest, self.digits, &moved)?,
        }
        told.push(name);
        Ok((group, told))
    }

    /// Takes the version, which all of a text has to be of.
    fn is_of(&mut self, line: TextLine<'_>, found: &str) -> Result<(), ImportError> {
        if !is_known(found) && !is_version_2(found) {
            return Err(line.refuse("fio-3.x or fio-2.x"));
        }
        self.digits = Digits::of(found);
        if *self.version.get_or_insert_with(|| found.to_owned()) != found {
            return Err(line.refuse("one version of fio: import other runs as other files"));
        }
        Ok(())
    }

    /// Takes what is said of a job before the run.
    fn announce(&mut self, line: TextLine<'_>) -> Result<(), ImportError> {
        // Only another run announces jobs after a summary.
        if !self.summed.is_empty() {
            if self.open || !self.is_summed() {
                return Err(line.refuse("\"Run status group\" of the run before it"));
            }
            self.run += 1;
            self.summed.clear();
            self.before.clear();
            self.asked.clear();
        }
        self.asked.push(question(line)?);
        Ok(())
    }
}

/// A line without the machine that fio puts before it with `--client`: `<nas> a: (g=0): rw=…`.
fn without_host(line: TextLine<'_>) -> TextLine<'_> {
    let inner = line
        .text
        .strip_prefix('<')
        .and_then(|rest| rest.split_once("> "));
    match inner {
        Some((host, text)) if !host.contains(['<', ' ']) => TextLine { text, ..line },
        _ => line,
    }
}

/// Reads `name: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) …, (T) …, ioengine=psync, iodepth=1`.
fn question(line: TextLine<'_>) -> Result<Announced, ImportError> {
    let refuse = || line.refuse("name: (g=0): rw=…, bs=…, ioengine=…, iodepth=…");
    let (name, rest) = line.text.trim().split_once(": (g=").ok_or_else(refuse)?;
    let (group, rest) = rest.split_once("): ").ok_or_else(refuse)?;
    let field = |name: &str| {
        let (_, value) = rest.split_once(&format!("{name}="))?;
        Some(
            value
                .split(',')
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned(),
        )
    };
    let mode = field("rw").ok_or_else(refuse)?;
    let mode = if mode == "readwrite" {
        "rw".to_owned()
    } else {
        mode
    };
    // Each kind of operation has a size of its own; one that is not done says nothing.
    let letters: &[&str] = match mode.as_str() {
        "trimwrite" => &["(W) "],
        mode if mode.contains("trim") && !mode.contains("write") => &["(T) "],
        mode if mode.contains("write") => &["(W) "],
        mode if mode.contains("rw") => &["(R) ", "(W) "],
        _ => &["(R) "],
    };
    let mut blocks = Vec::new();
    for letter in letters {
        let block = match rest.contains(letter) {
            true => announced_block(rest, letter),
            false => version2::announced_block(rest, letter),
        };
        blocks.push(block.ok_or_else(refuse)?);
    }
    // Reads and writes of one size have one, as fio takes it.
    blocks.dedup();
    Ok(Announced {
        name: name.to_owned(),
        group: line.whole(group)?,
        mode,
        block: blocks.join(","),
        engine: field("ioengine").ok_or_else(refuse)?,
        depth: line.whole(&field("iodepth").ok_or_else(refuse)?)?,
    })
}

/// Reads the size behind `(R) `: `4096B-4096B`, or a range.
fn announced_block(rest: &str, letter: &str) -> Option<String> {
    let (_, sizes) = rest.split_once(letter)?;
    let sizes = sizes.split(',').next()?;
    let (low, high) = sizes.trim().split_once('-')?;
    let bytes = |word: &str| {
        let bytes = amount(word, Digits::Shown)?;
        Some(size(bytes.value.round() as u64))
    };
    let (low, high) = (bytes(low)?, bytes(high)?);
    Some(if low == high {
        low
    } else {
        format!("{low}-{high}")
    })
}

/// Reads `name: (groupid=0, jobs=1): err= 0: pid=2933: Sat Nov 21 11:30:41 2026`.
fn part(line: TextLine<'_>, asked: &[Announced]) -> Result<JobResult, ImportError> {
    let refuse = || line.refuse("name: (groupid=0, jobs=1): err= 0: pid=…: date");
    let (name, rest) = line
        .text
        .trim()
        .split_once(": (groupid=")
        .ok_or_else(refuse)?;
    let (group, rest) = rest.split_once(", jobs=").ok_or_else(refuse)?;
    let (jobs, rest) = rest.split_once("): err=").ok_or_else(refuse)?;
    let (error, process) = rest.split_once(": pid=").ok_or_else(refuse)?;
    let pid = process
        .split(':')
        .next()
        .and_then(|pid| pid.trim().parse().ok());
    // What follows the number in parentheses explains it: "22 (Invalid argument)".
    let error = error.split('(').next().unwrap_or_default().trim();
    sound(line.index, name, error.parse().map_err(|_| refuse())?)?;
    let group = line.whole(group)?;
    let asked = asked
        .iter()
        .find(|asked| asked.name == name && asked.group == group);
    let asked = asked.ok_or_else(|| {
        line.refuse(format!(
            "the line \"{}: (g={group}): rw=…\" before it",
            cut(name)
        ))
    })?;
    Ok(JobResult {
        line: line.index,
        name: name.to_owned(),
        group,
        mode: asked.mode.clone(),
        block: asked.block.clone(),
        depth: asked.depth,
        jobs: line.whole(jobs)?,
        directions: Vec::new(),
        sync: None,
        settings: vec![
            Fact::new("rw", &asked.mode),
            Fact::new("bs", &asked.block),
            Fact::new("ioengine", &asked.engine),
            Fact::new("iodepth", asked.depth.to_string()),
        ],
        reported: Reported {
            pid,
            ..Reported::default()
        },
    })
}

/// Returns true if a line stands in a job's part alone.
fn is_of_part(text: &str) -> bool {
    let passed = |begin: &&str| text.starts_with(*begin) && !BEHIND.contains(begin);
    // Keys of its JSON are of a report that was not pasted whole.
    let times = ["lat (", "clat (", "sync (", "\"iops", "\"bw"];
    // Lines of version 2 are of another run.
    text.contains("IOPS=") && text.contains("BW=")
        || text.starts_with("| ") && text.contains("th=[")
        || text.contains(", aggrb=")
        || text.contains(", runt=")
        || PASSED.iter().any(passed)
        || times.iter().any(|begin| text.starts_with(begin))
        || percentile_head(text).is_some()
        || issued(text).is_some()
}

/// Takes the line that begins a direction: `write: IOPS=…`.
fn begin(
    line: TextLine<'_>,
    job: &mut JobResult,
    name: &str,
    rest: &str,
    digits: Digits,
) -> Result<(), ImportError> {
    if job.directions.iter().any(|known| known.name == name) {
        return Err(line.refuse("each direction once"));
    }
    // Beside the directions it is their sum, which fio 3.33 prints as 0.
    let sum = name == "mixed" && !job.directions.is_empty();
    let direction = match sum {
        true => Direction {
            name: name.to_owned(),
            ..Direction::default()
        },
        false if rest.starts_with("io=") => version2::rates(line, name, rest)?,
        false => rates(line, name, rest, digits)?,
    };
    let ran_s = direction.shown.milliseconds / 1e3;
    job.reported.ran_s = job.reported.ran_s.max(ran_s);
    job.directions.push(direction);
    Ok(())
}

/// Reads one line of a job's part; returns whether the part goes on.
fn inside(line: TextLine<'_>, job: &mut JobResult, digits: Digits) -> Result<bool, ImportError> {
    let text = line.text.trim_start();
    for name in ["read", "write", "trim", "mixed"] {
        // Version 2 aligns its colons: "read :".
        if let Some(rest) = text
            .strip_prefix(name)
            .and_then(|rest| rest.trim_start().strip_prefix(": "))
        {
            begin(line, job, name, rest, digits)?;
            return Ok(true);
        }
    }
    let spread = || times(line, text, digits);
    if text.starts_with("lat (") && text.contains("min=") {
        let (whole, depth) = (spread()?, job.depth);
        let latency = latency_of(line, job)?;
        if let Some(what) = contradicted(whole, latency.submission, latency.completion, depth) {
            return Err(line.contradicts(what));
        }
        latency.whole = Some(whole);
    } else if text.starts_with("clat (") && text.contains("min=") {
        // Without the whole latency (gtod_cpu and its like) this is all there is.
        latency_of(line, job)?.completion = Some(spread()?);
    } else if text.starts_with("slat (") && text.contains("min=") {
        latency_of(line, job)?.submission = Some(spread()?);
    } else if text.starts_with("sync (") && text.contains("min=") {
        job.sync.get_or_insert_default().whole = Some(spread()?);
    } else if percentile_head(text).is_some_and(|(what, _)| what.contains("prio")) {
        // Those of one priority: the rows below it are no figures of the whole, which ends here.
        let latency = latency_of(line, job)?;
        latency.percentiles.retain(|(at, _)| !at.is_nan());
    } else if let Some((what, unit)) = percentile_head(text) {
        let unit = unit_ns(unit).ok_or_else(|| line.refuse("nsec, usec, msec or sec"))?;
        let latency = match what {
            "sync" => job.sync.get_or_insert_default(),
            _ => latency_of(line, job)?,
        };
        latency.of = match what {
            "lat" | "sync" => PercentilesOf::Whole,
            "slat" => return Ok(true),
            _ => PercentilesOf::Completion,
        };
        // The rows follow; their unit is kept in front of them until then.
        latency.percentiles = vec![(f64::NAN, unit)];
        latency.percentile_step = unit;
    } else if let Some(row) = text.strip_prefix("| ") {
        percentile_row(line, job, row)?;
    } else if let Some(counts) = issued(text) {
        finish(line, job, counts)?;
        return Ok(false);
    } else if !(PASSED.iter().any(|known| text.starts_with(known)) || histogram(text))
        || has_another(text)
    {
        return Err(line.refuse("a line of the job's part as fio 3 prints them"));
    }
    Ok(true)
}

/// Returns true if a line that is passed over has another one in it: lines that were put together wrongly.
fn has_another(text: &str) -> bool {
    text.matches("min=").count() > 1 || text.contains(" percentiles (") || text.contains("th=[")
}

/// Returns what follows the words before the counts: fio 3.0 to 3.2 count no syncs there.
fn issued(text: &str) -> Option<&str> {
    let begins = ["issued rwts: total=", "issued rwt: total="];
    let version_2 = || {
        let (name, counts) = text.split_once(": total=")?;
        (name.trim_end() == "issued").then_some(counts)
    };
    begins
        .iter()
        .find_map(|begin| text.strip_prefix(begin))
        .or_else(version_2)
}

/// Returns true for `lat (usec)   : 750=97.27%, 1000=0.88%`.
fn histogram(text: &str) -> bool {
    text.starts_with("lat (") && text.contains(" : ") && text.trim_end().ends_with('%')
}

fn latency_of<'a>(
    line: TextLine<'_>,
    job: &'a mut JobResult,
) -> Result<&'a mut ResultLatency, ImportError> {
    let last = job
        .directions
        .last_mut()
        .map(|direction| &mut direction.latency);
    last.ok_or_else(|| line.refuse("read:, write: or trim: before it"))
}

/// Counts of each direction.
type Counts = [u64; 3];

/// Reads `183996,79019,0,0 short=0,0,0,0 …`, of version 2 `r=183996/w=79019/d=0, short=r=0/w=0/d=0 …`: the total, and
/// the others by their names.
fn counted_in<'a>(line: TextLine<'_>, text: &'a str) -> Option<(Counts, Vec<(&'a str, Counts)>)> {
    let of_three = |list: &str| -> Option<Counts> {
        let list = list.trim_end_matches(',');
        if list.contains('/') {
            return version2::counts(line, list);
        }
        let mut counts = list.split(',');
        let mut next = || line.whole(counts.next()?).ok();
        Some([next()?, next()?, next()?])
    };
    let mut lists = text.split(' ').filter(|list| !list.is_empty());
    let total = of_three(lists.next()?)?;
    let others = lists.map(|list| {
        let (what, list) = list.split_once('=')?;
        Some((what, of_three(list)?))
    });
    Some((total, others.collect::<Option<Vec<_>>>()?))
}

/// Reads `183996,79019,0,0 short=…`: what was counted gives the operations per second.
fn finish(line: TextLine<'_>, job: &mut JobResult, counts: &str) -> Result<(), ImportError> {
    let (total, others) = counted_in(line, counts).ok_or_else(|| {
        line.refuse("issued rwts: total=reads,writes,trims,syncs short=… dropped=…")
    })?;
    let reads = share_of_reads(&job.mode, total).map(|share| Fact::new("reads", share));
    job.settings.extend(reads);
    for (what, counts) in others {
        for (name, count) in DIRECTIONS.into_iter().zip(counts) {
            let own = |it: &&mut Direction| it.name == name || it.name == "mixed";
            for direction in job.directions.iter_mut().filter(own) {
                direction.notes.extend(incomplete(what, name, count));
            }
        }
    }
    if let Some(sum) = job.directions.iter().position(|it| it.name == "mixed")
        && job.directions.len() > 1
    {
        job.directions.remove(sum);
    }
    for (name, count) in DIRECTIONS.into_iter().zip(total) {
        // All directions as one are counted as the first.
        if job.directions.iter().all(|it| it.name == "mixed") {
            continue;
        }
        let shown = job
            .directions
            .iter()
            .any(|direction| direction.name == name);
        if shown != (count > 0) {
            return Err(line.contradicts(format!("what the job says of {name}")));
        }
        let directions = job.directions.iter_mut();
        for direction in directions.filter(|direction| direction.name == name) {
            counted(line, direction, &job.block, count)?;
            // Jobs that are reported as one may have blocks of their own.
            if job.jobs == 1 {
                let moved = direction.shown.moved.value;
                let other = other_blocks(count as f64, &job.block, moved);
                direction.notes.extend(other);
            }
        }
    }
    let latencies = job
        .directions
        .iter_mut()
        .map(|direction| &mut direction.latency);
    for latency in latencies.chain(&mut job.sync) {
        latency.percentiles.retain(|(at, _)| !at.is_nan());
    }
    Ok(())
}
