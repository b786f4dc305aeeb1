//! One workload on one place, once, now; no verdict, nothing kept.
//!
//! The way to a first operation is short: a file or device needs neither store nor journal. A
//! directory gets a private subdirectory, which is in a journal before it is made.

use stackrace_base::unit::{InWords, ShownPath};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::Access;
use stackrace_engine::{PhaseOutcome, residency};

use crate::commands::load_target::LoadTarget;
use crate::commands::watched::WatchedDirs;
use stackrace_base::event::{Counted, Ended, MetricHead, Observation, Settled, StoredBytes, again};
use stackrace_base::failure::Failure;
use stackrace_base::interrupt::Interrupt;
use stackrace_base::owned::held::with_real_names;
use stackrace_base::setting::Settings;
use stackrace_base::unit;
use stackrace_layers::stack;
use stackrace_load::workload::{Workload, WorkloadKind};
use stackrace_machine::host::{Host, local::LocalHost};
use stackrace_places::place::taken::TakenDirs;
use stackrace_run::prepare::context::Context;
use stackrace_run::prepare::temporary;
use stackrace_run::run::{AroundPhase, Observed, SingleTrial, note_phase};
use stackrace_system::extents;

/// Number of files of the data that are asked how much of them is in memory; more would take longer
/// than the load.
const RESIDENCY_FILES_MAX: usize = 512;

/// Request for a load as the command line makes it.
pub(crate) struct LoadRequest<'a> {
    /// The kind of workload.
    pub(crate) kind: &'a WorkloadKind,
    /// Its settings, checked.
    pub(crate) settings: Settings,
    /// Workload that these settings make.
    pub(crate) workload: Box<dyn Workload>,
    /// Target that it is put on.
    pub(crate) target: LoadTarget,
    /// True if the data are dropped from the page cache before each phase.
    pub(crate) cold: bool,
    /// Seed of everything random.
    pub(crate) seed: u64,
}

impl LoadRequest<'_> {
    /// What is done, in one sentence.
    pub(crate) fn summary(&self) -> String {
        match self.target {
            LoadTarget::Directory(_) => self.workload.summary(),
            LoadTarget::Existing { .. } => self.workload.summary_on_existing(),
        }
    }
}

/// One phase as it went.
pub(crate) struct LoadedPhase {
    /// Name that the workload gives it.
    pub(crate) name: &'static str,
    /// Bytes of the data in the page cache before it, and bytes in all; `None` if they are not known.
    pub(crate) resident: Option<(u64, u64)>,
}

/// Result of a load.
#[derive(Default)]
pub(crate) struct Loaded {
    /// The phases that began.
    pub(crate) phases: Vec<LoadedPhase>,
    /// Outcome of each phase; apart, because workloads evaluate them all together.
    pub(crate) outcomes: Vec<PhaseOutcome>,
    /// Figures; `None` for those that were not measured.
    pub(crate) metrics: Vec<(MetricHead, Option<f64>)>,
    /// Trouble that kept a phase from beginning; `None` if all began, or it was interrupted.
    pub(crate) trouble: Option<String>,
    /// What to do about a failure; empty if nothing failed, or there is nothing to be said.
    pub(crate) advice: String,
    /// True if it was stopped before its end.
    pub(crate) interrupted: bool,
    /// Counters of that time, as a trial of a run has them, for the audit; `None` if no phase ended.
    pub(crate) trial: Option<Box<Observation>>,
}

/// Loads a place until the workload ends or is interrupted.
///
/// # Errors
/// The workload cannot be put on this place; nothing was touched.
pub(crate) fn run(
    context: &Context,
    request: &LoadRequest<'_>,
    interrupt: &Interrupt,
) -> Result<Loaded, Failure> {
    if request.workload.uses_data_before() {
        let what = "there is no workload before it whose data it could use";
        return Err(Failure::refused(what).next("leave out same-data: it is for studies"));
    }
    match &request.target {
        LoadTarget::Existing { path, bytes } => {
            check_existing(request, path, *bytes)?;
            let host = LocalHost::new(Arc::new(|_| ()));
            let watched = WatchedDirs::of_existing(&host, path)?;
            let mut load = Load::new(request, interrupt, Path::new(""), Some(path));
            load.watched = Some(watched);
            Ok(load.run())
        }
        LoadTarget::Directory(directory) => {
            let host = LocalHost::new(Arc::new(|_| ()));
            check_directory(request, &host, directory)?;
            let _taken = TakenDirs::of_load(directory)?;
            let mut trouble = None;
            let done = temporary::work(context, &host, |journal, id| {
                let name = directory.display().to_string();
                let watched = WatchedDirs::of(&host, std::slice::from_ref(directory))?;
                let held = temporary::private(&host, journal, directory, "load", id, &name)?;
                let mut load = Load::new(request, interrupt, held.path(), None);
                load.watched = Some(watched.with_data(held.path()));
                let mut loaded = load.run();
                let mut outcomes = loaded.outcomes.iter_mut();
                if let Some(error) = outcomes.find_map(|outcome| outcome.error.as_mut()) {
                    error.path = with_real_names(&error.path.to_string_lossy()).into();
                }
                trouble.clone_from(&loaded.trouble);
                Ok(loaded)
            });
            // What cannot be removed is most likely an effect of it.
            done.map_err(|left| match trouble {
                Some(trouble) => {
                    let (text, next) = left.into_parts();
                    Failure::unable(format!("{trouble}; {text}")).next(next)
                }
                None => left,
            })
        }
    }
}

/// Refuses a workload that would do more than read, or read more than there is.
fn check_existing(request: &LoadRequest<'_>, path: &Path, bytes: u64) -> Result<(), Failure> {
    request.workload.on_existing().map_err(|why| {
        Failure::refused(format!(
            "{} is a file or device, and {} cannot use it: {why}",
            path.shown(),
            request.kind.name
        ))
        .next("name a directory, or only read: random mode=read, sequential mode=read")
    })?;
    // The data are there already.
    let of_new_data = ["content", "compress-ratio", "duplicates"];
    if let Some(name) = of_new_data.iter().find(|name| request.settings.given(name)) {
        return Err(Failure::refused(format!(
            "{} is only read, and {name} is about data that are written",
            path.shown()
        ))
        .next(format!("leave {name} out, or name a directory")));
    }
    let size = request
        .settings
        .optional_bytes("size")
        .ok()
        .flatten()
        .unwrap_or(0);
    if size > bytes {
        return Err(Failure::refused(format!(
            "{} holds {}, and {} are to be read",
            path.shown(),
            unit::bytes(bytes),
            unit::bytes(size)
        ))
        .next("leave size out: all of it"));
    }
    Ok(())
}

/// Refuses a directory that cannot take the data.
fn check_directory(
    request: &LoadRequest<'_>,
    host: &dyn Host,
    directory: &Path,
) -> Result<(), Failure> {
    let refused = |why: &dyn std::fmt::Display| {
        Failure::refused(format!("{} cannot be used: {why}", directory.shown()))
            .next("name a directory you may write to")
    };
    if request.workload.wants_bare() {
        let what = format!(
            "{} works on bare devices, and a load works in a directory",
            request.kind.name
        );
        let next = again(&["show", "workload", request.kind.name]);
        return Err(Failure::refused(what).next(format!(
            "put it into a study with `bare = {{}}` on disks, as the study rebuild does; its settings: {next}"
        )));
    }
    // What has to be installed is said before data are laid out for it.
    if let Some(missing) = host.missing(&request.workload.needs()).first() {
        return Err(Failure::unable(missing.to_string()).next(missing.next()));
    }
    if let Some(why) = request.workload.refused_on(host) {
        return Err(Failure::refused(why).next("change what the program is given"));
    }
    // Asked before anything is made: the error is then about the directory itself.
    rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|errno| refused(&errno.in_words()))?;
    let free = host
        .free_bytes(directory)
        .map_err(|error| refused(&error))?;
    let needed = request.workload.cost().disk_bytes;
    if needed > free {
        return Err(Failure::refused(format!(
            "{} has {} free; this needs {}",
            directory.shown(),
            unit::bytes(free),
            unit::bytes(needed)
        ))
        .next("free space there, or give less data"));
    }
    Ok(())
}

/// A load under way: the trial of it, and what is counted around each phase.
struct Load<'a> {
    request: &'a LoadRequest<'a>,
    interrupt: &'a Interrupt,
    directory: &'a Path,
    existing: Option<&'a Path>,
    /// The directory that the user named, and what it lay on; `None` of a file or device.
    watched: Option<WatchedDirs<'a>>,
    /// Block devices under it.
    devices: Vec<String>,
    /// Bytes of the data in the page cache before it, and in all; `None` if that is not known.
    resident: Option<(u64, u64)>,
    phases: Vec<LoadedPhase>,
    trial: Observation,
}

impl AroundPhase for Load<'_> {
    fn exchanged(&mut self) -> Option<String> {
        self.watched.as_mut()?.exchanged_since()
    }

    fn before(&mut self, phase: usize) {
        let settles = self.request.workload.settles(phase);
        self.resident = settles.then(|| self.settle()).flatten();
        if settles {
            self.trial.settled = self.settled();
        }
    }

    fn observed(&self) -> Observed<'_> {
        Observed::Counters(&self.devices)
    }

    fn after(&mut self, phase: usize, outcome: &PhaseOutcome, counted: &Counted) {
        note_phase(
            &mut self.trial,
            &*self.request.workload,
            (phase, outcome),
            counted,
        );
        self.phases.push(LoadedPhase {
            name: self.request.workload.phases()[phase],
            resident: self.resident,
        });
    }
}

impl<'a> Load<'a> {
    fn new(
        request: &'a LoadRequest<'a>,
        interrupt: &'a Interrupt,
        directory: &'a Path,
        existing: Option<&'a Path>,
    ) -> Self {
        let host = LocalHost::new(Arc::new(|_| ()));
        Self {
            request,
            interrupt,
            directory,
            existing,
            devices: stack::devices_under(&host, existing.unwrap_or(directory)),
            watched: None,
            resident: None,
            phases: Vec::new(),
            trial: Observation {
                settled: Settled {
                    caches: "none".to_owned(),
                    ..Settled::default()
                },
                ..Observation::unmeasured(Ended::Complete)
            },
        }
    }

    /// Lays out the data, and runs all phases until one fails or is interrupted.
    fn run(mut self) -> Loaded {
        let workload = &*self.request.workload;
        let trial = SingleTrial {
            workload,
            directory: self.directory,
            existing: self.existing,
            cold: self.request.cold,
            seed: self.request.seed,
            interrupt: self.interrupt,
        };
        let done = trial.run(&mut self);
        let heads = workload.metrics();
        // Figures are made of all phases together.
        // What failed has none.
        let whole = done.outcomes.len() == workload.phases().len()
            && done.outcomes.iter().all(|one| one.error.is_none());
        let values = match whole {
            true => workload.evaluate(&done.outcomes),
            false => vec![None; heads.len()],
        };
        let failed = done.outcomes.iter().find_map(|one| one.error.as_ref());
        let told = failed.map(|error| with_real_names(&error.to_string()));
        let trouble = match &done.ended {
            // An operation that failed is in the outcome of its phase.
            Ended::Failed { error } => Some(error).filter(|error| Some(*error) != told.as_ref()),
            Ended::Complete | Ended::Interrupted => None,
        };
        Loaded {
            phases: self.phases,
            metrics: heads.into_iter().zip(values).collect(),
            trouble: trouble.cloned().or(done.left),
            advice: done.advice,
            interrupted: done.ended == Ended::Interrupted,
            trial: (done.ended == Ended::Complete).then(|| Box::new(self.trial)),
            outcomes: done.outcomes,
        }
    }

    /// Returns what settling found, as a trial has it.
    fn settled(&self) -> Settled {
        Settled {
            caches: if self.request.cold { "advice" } else { "none" }.to_owned(),
            remounted: false,
            resident_bytes: self.resident.map(|(resident, _)| resident),
            prepared_bytes: self.resident.map(|(_, all)| all),
            stored: match self.existing {
                Some(path) => extents::of_file(path).ok(),
                None => residency::stored_below(self.directory, RESIDENCY_FILES_MAX).ok(),
            }
            .map(StoredBytes::from),
            served_by_program: residency::is_served_by_program(
                self.existing.unwrap_or(self.directory),
            ),
        }
    }

    /// Empties the page cache of the data if asked to, and looks what is left in it. What cannot be
    /// looked at is not known to be cold, and not said to be.
    fn settle(&self) -> Option<(u64, u64)> {
        if !self.request.cold {
            return None;
        }
        match self.existing {
            Some(path) => {
                residency::evict(path).ok()?;
                residency::resident_bytes(path).ok()
            }
            None => {
                residency::evict_tree(self.directory, &|| !self.interrupt.raised()).ok()?;
                residency::resident_bytes_below(self.directory, RESIDENCY_FILES_MAX).ok()
            }
        }
    }
}
