//! The trials outside of a run, of `load`, of sizes that are found and of a program that is tried once: failed and
//! interrupted at every stage, they leave nothing behind and give no figure.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use stackrace_engine::{PhaseEnd, PhaseOutcome};

use crate::commands::compare;
use crate::commands::load::{self, LoadRequest};
use crate::commands::load_target::LoadTarget;
use crate::commands::probe::probe;
use crate::sizes::room::TrialRoom;
use crate::sizes::sizing::Sizing;
use stackrace_base::event::{Better, MetricHead};
use stackrace_base::failure::Failure;
use stackrace_base::interrupt::Interrupt;
use stackrace_base::setting::Settings;
use stackrace_load::workload::{self, Cost, Place, Workload, WorkloadError, trouble};
use stackrace_machine::host::local::LocalHost;
use stackrace_run::prepare::context::Context;
use stackrace_run::prepare::observer::Preparation;
use stackrace_run::prepare::study_file;
use stackrace_study::purpose::{self, SizedBy};
use stackrace_study::study::Study;

/// Stages of a trial, by what is done at them.
const STAGES: [&str; 5] = [
    "prepare",
    "first phase",
    "between phases",
    "second phase",
    "finish",
];

/// The fate of a trial, and what is open of it.
struct Case {
    stage: &'static str,
    fails: bool,
    interrupt: Arc<Interrupt>,
    /// Trials that were prepared and not finished.
    open: AtomicI64,
}

impl Case {
    fn comes_to(&self, stage: &str) -> Result<(), WorkloadError> {
        match self.stage == stage {
            true if self.fails => Err(trouble(format!("{stage}: told to fail"))),
            true => {
                self.interrupt.raise();
                Ok(())
            }
            false => Ok(()),
        }
    }
}

/// A workload to which it happens; it leaves files.
struct Stopped(Arc<Case>);

impl Workload for Stopped {
    fn summary(&self) -> String {
        String::new()
    }

    fn metrics(&self) -> Vec<MetricHead> {
        vec![MetricHead {
            name: "phases".to_owned(),
            unit: "1".to_owned(),
            better: Better::Higher,
        }]
    }

    fn cost(&self) -> Cost {
        Cost::default()
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["first phase", "second phase"]
    }

    fn prepare(&self, place: &Place<'_>) -> Result<(), WorkloadError> {
        self.0.open.fetch_add(1, Ordering::SeqCst);
        std::fs::write(place.directory.join("data"), "data").unwrap();
        self.0.comes_to("prepare")
    }

    fn measure(&self, phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        assert!(
            !place.control.stopped(),
            "a phase begins after the interrupt"
        );
        self.0.comes_to(self.phases()[phase])?;
        let mut outcome = PhaseOutcome::of_program("none", String::new(), 60_000_000_000, 1);
        if place.control.stopped() {
            outcome.ended = PhaseEnd::Stopped;
        }
        if phase == 0 {
            self.0.comes_to("between phases")?;
        }
        Ok(outcome)
    }

    fn finish(&self, _place: &Place<'_>) -> Result<(), WorkloadError> {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
        self.0.comes_to("finish")
    }

    fn evaluate(&self, outcomes: &[PhaseOutcome]) -> Vec<Option<f64>> {
        vec![Some(outcomes.len() as f64)]
    }
}

/// Shows nothing.
struct Unseen;

impl Preparation for Unseen {
    fn now(&self, _: &str, _: &str) {}
    fn note(&self, _: &str) {}
}

/// A study of one directory with this workload.
fn study(directory: &Path, case: &Arc<Case>) -> Result<Study, Failure> {
    let text = format!(
        "[[stack]]\ndir = {{ path = \"{}\" }}\n[[workload]]\nfiles = {{ count = 1 }}\n",
        directory.display()
    );
    let mut study = study_file::parse("stopped", text.as_bytes())?;
    study.configurations[0].workloads[0] = Box::new(Stopped(Arc::clone(case)));
    Ok(study)
}

/// The reason why nothing of a trial counts; `None` if it counts.
type Tried = fn(&Context, &Path, &Arc<Case>) -> Option<String>;

fn load(context: &Context, directory: &Path, case: &Arc<Case>) -> Option<String> {
    let kind = workload::ALL.first().unwrap();
    let request = LoadRequest {
        kind,
        settings: Settings {
            owner: kind.name.to_owned(),
            span: 0..0,
            settings: Vec::new(),
            docs: kind.settings,
        },
        workload: Box::new(Stopped(Arc::clone(case))),
        target: LoadTarget::Directory(directory.to_path_buf()),
        cold: true,
        seed: 1,
    };
    let loaded = load::run(context, &request, &case.interrupt).unwrap();
    // It shows what was measured until then, and judges nothing of it.
    assert!(loaded.trial.is_none() || case.stage == "finish");
    match loaded.interrupted {
        true => Some("interrupted".to_owned()),
        false => loaded.trouble,
    }
}

fn sizing(context: &Context, directory: &Path, case: &Arc<Case>) -> Option<String> {
    let parts = purpose::find("files").unwrap().parts;
    let sized = parts
        .iter()
        .position(|part| part.sized_by == SizedBy::Files);
    let make = |_: &_, _: &_| -> Result<Box<dyn Workload>, Failure> {
        Ok(Box::new(Stopped(Arc::clone(case))))
    };
    let sizing = Sizing {
        directories: vec![("the directory", directory)],
        parts,
        seconds: 1.0,
        room: TrialRoom::of(3 << 20, 1),
        bytes: None,
        cold: true,
        interrupt: &case.interrupt,
        doing: &Unseen,
        make: &make,
    };
    let host = LocalHost::new(Arc::new(|_| ()));
    let found = sizing.find(context, &host, &[sized.unwrap()]);
    found.err().map(|failure| failure.render())
}

fn own_program(context: &Context, directory: &Path, case: &Arc<Case>) -> Option<String> {
    let host = LocalHost::new(Arc::new(|_| ()));
    let sides = compare::sides_of(&[directory.to_path_buf()]);
    let study = study(directory, case).unwrap();
    let tried = probe(
        context,
        &host,
        &study,
        &sides[0],
        (&case.interrupt, String::new()),
    );
    tried.err().map(|failure| failure.render())
}

fn names_in(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_trial_outside_of_a_run_that_is_stopped_at_any_stage_leaves_nothing_and_gives_no_figure() {
    let kinds: [(&str, Tried); 3] = [("load", load), ("sizing", sizing), ("own", own_program)];
    for (kind, tried) in kinds {
        for stage in STAGES {
            for fails in [true, false] {
                let case = Arc::new(Case {
                    stage,
                    fails,
                    interrupt: Arc::default(),
                    open: AtomicI64::new(0),
                });
                let [store, directory] = [(); 2].map(|()| tempfile::tempdir().unwrap());
                let context = Context {
                    store: Some(store.path().to_path_buf()),
                    command: Vec::new(),
                    peers: Vec::new(),
                    named_by: Vec::new(),
                    one_kernel: false,
                };
                let why = tried(&context, directory.path(), &case);
                let told = match fails {
                    true => format!("{stage}: told to fail"),
                    false => "interrupted".to_owned(),
                };
                let name = format!("{kind}, {stage}, fails: {fails}");
                assert!(
                    why.as_ref().is_some_and(|why| why.contains(&told)),
                    "{name}: {why:?}"
                );
                assert_eq!(case.open.load(Ordering::SeqCst), 0, "{name}: not finished");
                assert_eq!(
                    names_in(directory.path()),
                    [""; 0].map(PathBuf::from),
                    "{name}"
                );
                assert_eq!(
                    names_in(&store.path().join("probes")),
                    [""; 0].map(PathBuf::from),
                    "{name}"
                );
            }
        }
    }
}
