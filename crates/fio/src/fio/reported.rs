//! The figures of a job that fio has run, by the names that are known before.
//!
//! There is one reader of fio's reports, that of `import`: figures, units and how finely each is known are its.

use super::import::imported;
use super::job::{FioJob, ReportedJob};
use super::read_json;
use super::results::{Direction, JobResult, ResultLatency};
use stackrace_base::event::MetricHead;
use stackrace_base::printed::{ImportError, Imported, PrintedFigure};

/// What one run of fio reported.
#[derive(Debug, Clone, PartialEq)]
pub struct FioFigures {
    /// As fio calls itself: `fio-3.33`.
    pub version: String,
    /// In the order of [`heads`]; `None` if fio has no figure of that.
    pub values: Vec<Option<PrintedFigure>>,
    /// What fio says against them.
    pub told: Vec<String>,
    /// What each job did, as it says.
    pub done: Vec<Imported>,
}

/// The figures that a report of this job will have, the primary one first.
pub fn heads(job: &FioJob) -> Vec<MetricHead> {
    let jobs = job.reported.iter().zip(names(&job.reported));
    let mut heads = Vec::new();
    for (one, name) in jobs {
        for direction in &one.directions {
            // The same figures as of a real report, whose values are not known yet.
            let result = figures_of(&one.nothing_yet(direction));
            let several = one.directions.len() > 1;
            heads.extend(result.metrics.into_iter().map(|head| {
                // A latency says of what it is.
                let apart = several && !head.name.contains("latency");
                let own = match apart {
                    true => format!("{direction} {}", head.name),
                    false => head.name.clone(),
                };
                let name = match job.reported.len() {
                    1 => own,
                    _ => format!("{name}: {own}"),
                };
                MetricHead { name, ..head }
            }));
        }
    }
    heads
}

/// The figures of a report of this job.
///
/// # Errors
/// It is no whole report of it, or a job ended in an error; a clause.
pub fn figures(job: &FioJob, report: &str) -> Result<FioFigures, String> {
    let misread = |error: ImportError| format!("fio's report: {}; {}", error.what, error.next);
    let (version, results) = read_json::read(report).map_err(misread)?;
    if results.len() != job.reported.len() {
        return Err(format!(
            "fio reported {} job(s), and the job file has {}",
            results.len(),
            job.reported.len()
        ));
    }
    let (mut values, mut told) = (Vec::new(), Vec::new());
    let first = |result: &JobResult| {
        let direction = result.directions.first()?;
        Some(imported("", result, direction, "", 0))
    };
    let done = results.iter().filter_map(first).collect();
    for (one, result) in job.reported.iter().zip(&results) {
        for note in result.directions.iter().flat_map(|it| &it.notes) {
            let note = format!("{}: {note}", one.name);
            if !told.contains(&note) {
                told.push(note);
            }
        }
        for name in &one.directions {
            let known = figures_of(&one.nothing_yet(name)).metrics;
            let found = result.directions.iter().find(|it| it.name == *name);
            let found = found.map(|direction| imported("", result, direction, "", 0));
            let of = |head: &MetricHead| {
                let found = found.as_ref()?;
                let at = found.metrics.iter().position(|it| it.name == head.name)?;
                // Of zero there is no ratio.
                found.values[at].filter(|figure| figure.value > 0.0)
            };
            values.extend(known.iter().map(of));
        }
    }
    match values.first() {
        Some(Some(_)) => Ok(FioFigures {
            version,
            values,
            told,
            done,
        }),
        _ => Err("fio moved nothing in its first job, whose figure is the primary one".to_owned()),
    }
}

fn figures_of(result: &JobResult) -> Imported {
    imported("", result, &result.directions[0], "", 0)
}

/// The names of the jobs, each with its place among its like.
fn names(jobs: &[ReportedJob]) -> Vec<String> {
    let like = |name: &str, until: usize| jobs[..until].iter().filter(|it| it.name == name).count();
    let named = jobs.iter().enumerate().map(|(at, job)| {
        let (before, all) = (like(&job.name, at), like(&job.name, jobs.len()));
        match all {
            1 => job.name.clone(),
            _ => format!("{} ({} of {all})", job.name, before + 1),
        }
    });
    named.collect()
}

impl ReportedJob {
    /// A result of it in which nothing was measured.
    fn nothing_yet(&self, direction: &str) -> JobResult {
        JobResult {
            line: 0,
            name: self.name.clone(),
            group: 0,
            mode: self.mode.clone(),
            block: String::new(),
            depth: 1,
            jobs: 1,
            directions: vec![Direction {
                name: direction.to_owned(),
                throughput: PrintedFigure::default(),
                operations: PrintedFigure::default(),
                ..Direction::default()
            }],
            sync: self.syncs.then(ResultLatency::default),
            settings: Vec::new(),
            reported: Default::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Vec<String> {
        let job = FioJob::read(text).unwrap_or_else(|faults| panic!("{faults:?}"));
        heads(&job).into_iter().map(|head| head.name).collect()
    }

    #[test]
    fn the_primary_figure_is_that_of_the_importer() {
        let first = |mode: &str| named(&format!("[x]\nrw={mode}\n")).swap_remove(0);
        assert_eq!(first("read"), "throughput");
        assert_eq!(first("randwrite"), "operations");
        assert_eq!(first("randrw"), "read operations");
    }

    #[test]
    fn every_job_and_clone_has_names_of_its_own() {
        let names = named("[a]\nrw=randwrite\nfsync=1\nnumjobs=2\n[b]\nrw=read\n");
        assert_eq!(names[0], "a (1 of 2): operations");
        assert!(names.contains(&"a (2 of 2): fsync latency p99".to_owned()));
        assert!(names.contains(&"b: read latency p99.9".to_owned()));
        let mut each = names.clone();
        each.sort_unstable();
        each.dedup();
        assert_eq!(each.len(), names.len());
    }

    /// The job of the report in tests/golden.
    const JOB: &str = "[global]\nioengine=psync\nsize=256k\n\n[random]\nrw=randrw\nbs=4k\nfsync=16\nnumjobs=2\n\n[whole]\nstonewall\nrw=read\nbs=64k\n";
    const REPORT: &str = include_str!("../../../../tests/golden/fio/fio-3.33_job_jsonplus.json");

    /// Every figure is the one that `import` finds in the same report.
    #[test]
    fn a_report_has_the_figures_that_were_named_before() {
        let job = FioJob::read(JOB).unwrap();
        let found = figures(&job, REPORT).unwrap();
        let heads = heads(&job);
        assert_eq!(found.version, "fio-3.33");
        assert_eq!(found.values.len(), heads.len());
        let imported = (crate::fio::IMPORTER.read)(REPORT).unwrap();
        let imported = imported.iter().flat_map(|one| &one.values);
        assert_eq!(found.values, imported.copied().collect::<Vec<_>>());
        let of = |name: &str| {
            let at = heads.iter().position(|head| head.name == name);
            found.values[at.unwrap_or_else(|| panic!("there is no {name}"))]
        };
        assert!(of("random (2 of 2): write operations").is_some());
        assert!(of("random (1 of 2): fsync latency p99").is_some());
        assert!(of("whole: throughput").is_some());
    }

    #[test]
    fn what_is_no_report_of_the_job_is_refused() {
        let job = FioJob::read(JOB).unwrap();
        let refused = |report: &str| figures(&job, report).unwrap_err();
        assert!(refused("").contains("fio's report"));
        assert!(refused("fio: cannot open x\n").contains("the JSON"));
        let short = REPORT.replacen("\"short_ios\" : 0", "\"short_ios\" : 3", 1);
        let told = figures(&job, &short).unwrap().told;
        assert_eq!(
            told,
            ["random: fio says that 3 read operation(s) moved less than was asked for (short)"]
        );
        let failed = REPORT.replacen("\"error\" : 0", "\"error\" : 5", 1);
        assert!(refused(&failed).contains("error 5"));
        let other = FioJob::read("[x]\nrw=read\n").unwrap();
        let said = figures(&other, REPORT).unwrap_err();
        assert_eq!(said, "fio reported 3 job(s), and the job file has 1");
    }
}
