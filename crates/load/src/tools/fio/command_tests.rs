//! Jobs run, and what is printed of them read again.

use stackrace_base::printed::PrintedFigure;
use stackrace_engine::Control;

use std::path::Path;
use std::sync::Arc;

use super::command::failed;
use super::import::IMPORTER;
use super::job::{self, FioJob};
use super::language::Sections;
use super::print_json::json;
use super::print_normal::{announced, normal};
use super::report::{FioReport, JobReport, Moved};
use super::run::{self, JobStage, Ran};
use super::{measured, plan};
use stackrace_base::event::MetricHead;

/// Runs the jobs of a file in a directory, and reports them.
fn ran(text: &str, directory: &Path) -> (Vec<FioJob>, FioReport) {
    let text = format!("[global]\ndirectory={}\n{text}", directory.display());
    let mut sections = Sections::default();
    sections.file("a.fio", &text, &|_| None);
    let jobs = job::jobs(&sections).unwrap_or_else(|refused| panic!("{refused:?}"));
    let planned = plan::plan(&jobs, 1).unwrap_or_else(|refusal| panic!("{refusal}"));
    let mut ran = Vec::new();
    for stage in 0..=jobs.last().unwrap().stage {
        let members: Vec<&plan::Planned> = planned
            .iter()
            .filter(|it| jobs[it.job].stage == stage)
            .collect();
        ran.extend(run_together(&jobs, &members));
    }
    assert_eq!(failed(&jobs, &ran), Vec::<String>::new());
    let report = FioReport {
        unix_ms: 1_795_287_985_627,
        date: "Sat Nov 21 19:06:25 2026".to_owned(),
        pid: 7,
        jobs: measured::reports(&jobs, &ran),
    };
    (jobs, report)
}

/// Runs clones that run at the same time.
fn run_together(jobs: &[FioJob], members: &[&plan::Planned]) -> Vec<Ran> {
    let controls: Vec<Arc<Control>> = members.iter().map(|_| Arc::default()).collect();
    let stage = JobStage::new(members.len());
    run::stage(jobs, members, &controls, &stage, &|_| ()).unwrap()
}

/// Imports a text: the name of each figure, and the figure.
fn imported(text: &str) -> Vec<(String, String, f64)> {
    let importer = IMPORTER;
    assert!((importer.recognises)(text));
    let results = (importer.read)(text).unwrap_or_else(|misread| panic!("{misread:?}\n{text}"));
    let mut all = Vec::new();
    for result in results {
        let figures = result.metrics.iter().zip(&result.values);
        let figure = |(head, value): (&MetricHead, &Option<PrintedFigure>)| {
            Some((result.workload.clone(), head.name.clone(), (*value)?.value))
        };
        all.extend(figures.filter_map(figure));
    }
    all
}

const JOBS: &str = "size=256k\n[plain]\nrw=randrw\nnumjobs=2\ngroup_reporting\nfsync=8\ndescription=both\n\
    [queue]\nstonewall\nrw=randwrite\nioengine=libaio\niodepth=4\nverify=crc32c\n\
    [paced]\nstonewall\nrw=randread\nrate_iops=2000\nlat_percentiles=1\n";

/// Both layouts say the same, as far as the digits of the one go, and our own importer reads both.
#[test]
fn both_layouts_are_imported_with_the_same_figures() {
    let base = tempfile::tempdir_in("/var/tmp").unwrap();
    let (jobs, report) = ran(JOBS, base.path());
    let normal = announced(&jobs) + &normal(&report);
    let (normal, json) = (imported(&normal), imported(&json(&report, false)));
    assert!(normal.len() > 25, "{normal:?}");
    let names = |all: &[(String, String, f64)]| -> Vec<(String, String)> {
        all.iter().map(|it| (it.0.clone(), it.1.clone())).collect()
    };
    assert_eq!(names(&normal), names(&json));
    for (one, other) in normal.iter().zip(&json) {
        // Four digits, and times in whole units: half of the unit may be lost.
        let lost = match one.2 {
            ns if ns % 1e6 == 0.0 => 0.5e6,
            ns if ns % 1e3 == 0.0 => 0.5e3,
            _ => 1.0,
        };
        let near = (one.2 - other.2).abs() <= 0.006 * one.2.max(other.2) + lost;
        assert!(near, "{one:?} {other:?}");
    }
}

/// Figures are reported as they were measured: the engine's own counts, in one job or in several as
/// one.
#[test]
fn clones_are_reported_apart_unless_asked_for() {
    let base = tempfile::tempdir_in("/var/tmp").unwrap();
    let (_, report) = ran(JOBS, base.path());
    let [plain, queue, paced] = report.jobs.as_slice() else {
        panic!("{report:?}");
    };
    assert_eq!(
        (plain.jobs, plain.group, queue.group, paced.group),
        (2, 0, 1, 2)
    );
    let operations = |job: &JobReport| {
        let count = |moved: &Option<Moved>| moved.as_ref().map_or(0, |it| it.operations);
        (count(&job.read), count(&job.written))
    };
    assert_eq!(operations(plain), (64, 64));
    assert_eq!(operations(queue), (64, 64), "written and read back");
    assert_eq!(operations(paced), (64, 0));
    assert_eq!(plain.synced.as_ref().unwrap().count, 8);
    // Both clones of the one are in its report, so that the processor's time is theirs.
    assert!(plain.cpu.is_some() && queue.cpu.is_some());
    assert_eq!(queue.own.verified_bytes, 256 << 10);
    assert_eq!(plain.classes.iter().sum::<u64>(), 128);
    let read = paced.read.as_ref().unwrap();
    let response = read.response.as_ref().unwrap();
    assert_eq!((read.latency.count, response.count), (64, 64));
    assert!(response.mean >= read.latency.mean);
}

/// `json+` has all that `json` has, and the bins, whose counts are all operations.
#[test]
fn json_plus_adds_the_bins() {
    let base = tempfile::tempdir_in("/var/tmp").unwrap();
    let (_, report) = ran("[x]\nrw=randread\nsize=256k\n", base.path());
    let read = |bins| -> serde_json::Value {
        let document: serde_json::Value = serde_json::from_str(&json(&report, bins)).unwrap();
        document["jobs"][0]["read"]["clat_ns"].clone()
    };
    let (mut plus, plain) = (read(true), read(false));
    let bins = plus.as_object_mut().unwrap().remove("bins").unwrap();
    let counts = bins.as_object().unwrap().values();
    let all: u64 = counts.map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(all, 64);
    assert_eq!(plus, plain);
}

/// A phase that fails is reported with what the system said, and the others go on.
#[test]
fn a_failed_job_is_reported_with_its_error() {
    let base = tempfile::tempdir_in("/var/tmp").unwrap();
    let text = format!(
        "[bad]\ndirectory={}\nrw=read\nsize=64k\ninvalidate=0\n",
        base.path().display()
    );
    let mut sections = Sections::default();
    sections.file("a.fio", &text, &|_| None);
    let jobs = job::jobs(&sections).unwrap();
    std::fs::write(base.path().join("bad.0.0"), vec![1; 64 << 10]).unwrap();
    let planned = plan::plan(&jobs, 1).unwrap();
    // Gone between the look and the phase, as on a medium that was pulled out.
    std::fs::File::create(base.path().join("bad.0.0")).unwrap();
    let members: Vec<&plan::Planned> = planned.iter().collect();
    let ran = run_together(&jobs, &members);
    assert_eq!(failed(&jobs, &ran).len(), 1);
    let reports = measured::reports(&jobs, &ran);
    assert_ne!(reports[0].error, 0);
    assert!(reports[0].read.is_none());
}
