//! A job of fio as text, read before fio is given it.
//!
//! Only what must be known before the start is read: the places that options name and the commands that they
//! give ([`super::harmless`]), the jobs that the report will have, and the room that they say they need.
//! Whatever else stands in a job is fio's: fio refuses what it does not know.

use super::harmless;
use super::value;

/// Jobs of one report, at most: each of them has some ten figures.
const REPORTED_MAX: usize = 256;
/// Sections whose name begins so hold for all jobs after them.
const GLOBAL: &str = "global";

/// A job file, as far as must be known before fio runs it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FioJob {
    /// The jobs of its report, in the order of the report.
    pub(super) reported: Vec<ReportedJob>,
    /// Commands that it has fio run, as fio gives them to a shell.
    pub commands: Vec<String>,
    /// Bytes of its files, as far as the sizes in it say.
    pub bytes: u64,
}

/// One job of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ReportedJob {
    /// As the report calls it.
    pub(super) name: String,
    /// What fio calls `rw`.
    pub(super) mode: String,
    /// What may be moved, in the order of the report.
    pub(super) directions: Vec<&'static str>,
    /// Whether syncs may be reported.
    pub(super) syncs: bool,
    group: usize,
    grouped: bool,
}

/// Why a job is not given to fio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFault {
    /// Number of the line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub what: String,
    /// What to write instead.
    pub next: String,
}

impl JobFault {
    pub(super) fn at(line: usize, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            line,
            what: what.into(),
            next: next.into(),
        }
    }
}

/// One option, as it is written.
#[derive(Debug, Clone)]
pub(super) struct JobOption<'a> {
    /// Number of its line, from 1.
    pub(super) line: usize,
    /// Its name, in lower case, by the name that fio's manual has first.
    pub(super) name: String,
    /// As fio reads it: without the comment behind it.
    pub(super) value: &'a str,
    /// All that stands behind the sign of equality.
    pub(super) whole: &'a str,
}

/// What stands below one name in brackets.
#[derive(Debug, Clone, Default)]
pub(super) struct JobSection<'a> {
    pub(super) line: usize,
    pub(super) name: &'a str,
    /// Its own options.
    pub(super) own: Vec<JobOption<'a>>,
    /// Those of `[global]` before it.
    inherited: Vec<JobOption<'a>>,
}

impl FioJob {
    /// Reads a job.
    ///
    /// # Errors
    /// Everything for which it is not given to fio.
    pub fn read(text: &str) -> Result<Self, Vec<JobFault>> {
        let mut faults = Vec::new();
        let sections = sections(text, &mut faults);
        let mut job = Self::default();
        for section in &sections {
            job.commands.extend(harmless::check(section, &mut faults));
        }
        let jobs = sections.iter().filter(|one| !is_global(one.name));
        let jobs: Vec<&JobSection<'_>> = jobs.collect();
        if jobs.is_empty() && faults.is_empty() {
            let what = "there is no job in it";
            faults.push(JobFault::at(
                1,
                what,
                "write [x], and the options of x below it",
            ));
        }
        job.bytes = jobs.iter().fold(0, |sum: u64, one| {
            sum.saturating_add(one.bytes().unwrap_or(0))
        });
        job.reported = reported(&jobs, &mut faults);
        match faults.is_empty() {
            true => Ok(job),
            false => Err(faults),
        }
    }

    /// The names of its jobs, each once.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let all = self.reported.iter().enumerate();
        let new = all.filter(|(at, job)| self.reported[..*at].iter().all(|it| it.name != job.name));
        new.map(|(_, job)| job.name.as_str())
    }
}

fn is_global(name: &str) -> bool {
    // As fio compares it: [globals] holds for all jobs, too.
    name.starts_with(GLOBAL)
}

/// The sections of a job, in their order.
fn sections<'a>(text: &'a str, faults: &mut Vec<JobFault>) -> Vec<JobSection<'a>> {
    let mut sections: Vec<JobSection<'a>> = Vec::new();
    let mut global: Vec<JobOption<'a>> = Vec::new();
    for (index, text) in text.lines().enumerate() {
        let (line, text) = (index + 1, text.trim());
        if text.is_empty() || text.starts_with([';', '#']) {
            continue;
        }
        if let Some(name) = text.strip_prefix('[') {
            let name = name.rsplit_once(']').map_or(name, |(name, _)| name);
            if let Some(before) = sections.last().filter(|one| is_global(one.name)) {
                global.extend(before.own.iter().cloned());
            }
            sections.push(JobSection {
                line,
                name,
                own: Vec::new(),
                inherited: global.clone(),
            });
            continue;
        }
        if text.contains("${") {
            faults.push(JobFault::at(
                line,
                "the environment of stackrace does not have this variable",
                "set it, or write its value into the job",
            ));
        }
        if text.starts_with("include") {
            let what = "include reads another file, which would not be kept with the study";
            faults.push(JobFault::at(
                line,
                what,
                "write the lines of that file in its place",
            ));
            continue;
        }
        match sections.last_mut() {
            Some(section) => section.own.push(option(line, text)),
            None => {
                let what = "this option stands before the first name in brackets";
                faults.push(JobFault::at(line, what, "write [global] above it"));
            }
        }
    }
    sections
}

fn option(line: usize, text: &str) -> JobOption<'_> {
    let (name, whole) = text.split_once('=').unwrap_or((text, ""));
    let end = |text: &str| text.find([';', '#']).unwrap_or(text.len());
    // Dashes are those of a command line: fio refuses them, and what is checked must not depend on that.
    let name = name[..end(name)]
        .trim()
        .trim_start_matches('-')
        .to_ascii_lowercase();
    let name = match name.as_str() {
        "readwrite" => "rw".to_owned(),
        "iomem" => "mem".to_owned(),
        "nr_files" => "nrfiles".to_owned(),
        "wait_for_previous" => "stonewall".to_owned(),
        _ => name,
    };
    JobOption {
        line,
        name,
        value: whole[..end(whole)].trim(),
        whole: whole.trim(),
    }
}

impl JobSection<'_> {
    /// The last value of an option: that of the section, or that of `[global]`.
    fn value(&self, name: &str) -> Option<&str> {
        let mut all = self.own.iter().rev().chain(self.inherited.iter().rev());
        all.find(|one| one.name == name).map(|one| one.value)
    }

    /// Whether an option is on: without a value it is.
    fn is_on(&self, name: &str) -> bool {
        self.value(name).is_some_and(|value| value != "0")
    }

    /// What is moved by its word for `rw`; where it verifies, what it wrote is read, too.
    fn directions(&self) -> Vec<&'static str> {
        let mode = self.value("rw").unwrap_or("read");
        let mode = mode.split([':', ',']).next().unwrap_or_default();
        let unified = self.value("unified_rw_reporting").unwrap_or("none");
        if matches!(unified, "1" | "" | "mixed") {
            return vec!["mixed"];
        }
        match mode {
            "write" | "randwrite" if self.is_on("verify") => vec!["read", "write"],
            "write" | "randwrite" => vec!["write"],
            "trim" | "randtrim" => vec!["trim"],
            "rw" | "randrw" | "readwrite" => vec!["read", "write"],
            "trimwrite" | "randtrimwrite" => vec!["write", "trim"],
            _ => vec!["read"],
        }
    }

    /// Bytes of its files; none: not said in numbers.
    fn bytes(&self) -> Option<u64> {
        let base = match self.value("kb_base") {
            Some("1000") => 1000,
            _ => 1024,
        };
        let size = value::bytes(self.value("size")?, base)?;
        let clones = self
            .value("numjobs")
            .map_or(Some(1), |it| it.parse().ok())?;
        // Clones share files that have a name.
        match self.value("filename") {
            Some(_) => Some(size),
            None => size.checked_mul(clones),
        }
    }
}

/// The jobs of the report: clones apart, unless they are reported as one.
fn reported(jobs: &[&JobSection<'_>], faults: &mut Vec<JobFault>) -> Vec<ReportedJob> {
    let mut all: Vec<ReportedJob> = Vec::new();
    let mut group = 0;
    for (index, job) in jobs.iter().enumerate() {
        if index > 0 && (job.is_on("stonewall") || job.is_on("new_group")) {
            group += 1;
        }
        if job.value("stats") == Some("0") {
            continue;
        }
        let one = ReportedJob {
            name: job.value("name").unwrap_or(job.name).to_owned(),
            mode: job.value("rw").unwrap_or("read").to_owned(),
            directions: job.directions(),
            syncs: ["fsync", "fdatasync", "sync_file_range"]
                .iter()
                .any(|name| job.is_on(name)),
            group,
            grouped: job.is_on("group_reporting"),
        };
        let beside = all.last_mut().filter(|last| last.group == group);
        match beside {
            Some(last) if last.grouped && one.grouped => {
                last.join(one);
                continue;
            }
            // fio 3.33 prints a job without a name then.
            Some(last) if last.grouped != one.grouped => faults.push(JobFault::at(
                job.line,
                "group_reporting holds for some jobs of this group only, and fio's report of that cannot be read",
                "write group_reporting into [global], or leave it out",
            )),
            _ => {}
        }
        let clones = match (one.grouped, job.value("numjobs")) {
            (true, _) | (_, None) => Some(1),
            (false, Some(word)) => word.parse::<usize>().ok(),
        };
        match clones {
            Some(clones) if all.len().saturating_add(clones) <= REPORTED_MAX => {
                all.extend(std::iter::repeat_n(one, clones));
            }
            _ => faults.push(JobFault::at(
                job.line,
                format!(
                    "numjobs={} would be reported job by job",
                    job.value("numjobs").unwrap_or_default()
                ),
                "write group_reporting into [global], so that all clones are one job of the report",
            )),
        }
    }
    all
}

impl ReportedJob {
    /// A further job that is reported with this one.
    fn join(&mut self, other: Self) {
        self.syncs |= other.syncs;
        // In the order in which fio reports them.
        let mut order = vec!["read", "write", "trim", "mixed"];
        order.retain(|one| self.directions.contains(one) || other.directions.contains(one));
        self.directions = order;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and directions of the jobs that the report of a job has.
    fn reported(text: &str) -> Vec<(String, Vec<&'static str>)> {
        let job = FioJob::read(text).unwrap_or_else(|faults| panic!("{text}: {faults:?}"));
        let jobs = job.reported.into_iter();
        jobs.map(|one| (one.name, one.directions)).collect()
    }

    #[test]
    fn the_jobs_of_a_report_are_known_before_fio_runs() {
        let text = "; a comment\n[global]\nsize=1m\nrw=randread # inherited\n[one]\nnumjobs=2\n[two]\nname = called\nstonewall\nreadwrite=randrw:2\n";
        let one = || ("one".to_owned(), vec!["read"]);
        assert_eq!(
            reported(text),
            [one(), one(), ("called".to_owned(), vec!["read", "write"])]
        );
        let grouped = "[global]\ngroup_reporting\nnumjobs=$ncpus\n[a]\nrw=write\n[b]\nrw=read\n[c]\nnew_group\n";
        assert_eq!(
            reported(grouped),
            [
                ("a".to_owned(), vec!["read", "write"]),
                ("c".to_owned(), vec!["read"])
            ]
        );
        // A later [global] adds to the earlier one, and [globals] is one.
        let later = "[global]\nrw=write\n[a]\n[globals]\nverify=md5\n[b]\n[c]\nstats=0\n";
        assert_eq!(
            reported(later),
            [
                ("a".to_owned(), vec!["write"]),
                ("b".to_owned(), vec!["read", "write"])
            ]
        );
    }

    #[test]
    fn the_room_of_a_job_is_what_its_sizes_say() {
        let bytes = |text: &str| FioJob::read(text).unwrap().bytes;
        assert_eq!(
            bytes("[a]\nsize=1m\nnumjobs=4\n[b]\nsize=4k\n"),
            (4 << 20) + 4096
        );
        assert_eq!(bytes("[a]\nsize=1m\nnumjobs=4\nfilename=one\n"), 1 << 20);
        assert_eq!(bytes("[a]\nsize=50%\n"), 0);
    }
}
