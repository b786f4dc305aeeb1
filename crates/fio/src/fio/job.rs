//! A job of fio as text, read before fio is given it.
//!
//! Only what must be known before the start is read: the places that options name and the commands that they
//! give ([`super::harmless`]), the jobs that the report will have, and the room that they say they need.
//! Whatever else stands in a job is fio's: fio refuses what it does not know.

use super::harmless;
use super::language::{JobFault, JobSection, is_global, sections};

/// Jobs of one report, at most: each of them has some ten figures.
const REPORTED_MAX: usize = 256;

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
        if !job.commands.is_empty() {
            jobs.iter()
                .for_each(|one| harmless::check_name(one, &mut faults));
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
