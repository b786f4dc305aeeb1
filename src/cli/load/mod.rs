//! `stackrace load`: one workload on one place, once, now; no verdict, nothing kept.
//!
//! The way to a first operation is short: a file or device needs neither store nor journal. A
//! directory gets a private subdirectory, which is in a journal before it is made.

mod json;
mod place;
mod table;
mod words;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustix::fs::Access;
use stackrace_engine::{Control, Ended, Ledger, Outcome, residency};

use self::place::Target;
use super::args::Load;
use super::failure::{self, Failure};
use super::interrupt::catch_interrupt;
use super::setting::Setting;
use crate::event::MetricHead;
use crate::host::{Host, local::LocalHost};
use crate::journal::{Journal, Undo};
use crate::run::Interrupt;
use crate::session::temporary;
use crate::setting::Settings;
use crate::unit;
use crate::workload::{self, Place, Workload, WorkloadKind};

/// So many files of the data are looked at to tell a cold start from a warm one.
const RESIDENCY_FILES_MAX: usize = 512;

/// What is asked for, checked.
struct Asked<'a> {
    kind: &'a WorkloadKind,
    workload: Box<dyn Workload>,
    /// Operations outstanding at once over all threads.
    depth: u64,
    target: Target,
    cold: bool,
    seed: u64,
    /// Of the data of this load, if they are verified.
    ledger: OnceLock<Ledger>,
}

/// One phase as it went.
struct Measured {
    name: &'static str,
    /// Bytes of the data in the page cache before it, and bytes in all; none: not looked at.
    resident: Option<(u64, u64)>,
}

/// What came of it.
#[derive(Default)]
struct Loaded {
    phases: Vec<Measured>,
    /// One for each phase; apart, because workloads evaluate them all together.
    outcomes: Vec<Outcome>,
    metrics: Vec<(MetricHead, Option<f64>)>,
    /// What kept a phase from beginning; none: all began, or it was interrupted.
    trouble: Option<String>,
    interrupted: bool,
}

pub(super) fn exec(setting: &Setting, verb: Load) -> Result<u8, Failure> {
    let Some(kind) = workload::ALL.iter().find(|kind| kind.name == verb.workload) else {
        let names: Vec<&str> = workload::ALL.iter().map(|kind| kind.name).collect();
        return Err(super::words::unknown("workload", &verb.workload, &names));
    };
    let target = Target::look(&verb.place)?;
    let settings = words::read(kind, &verb.words, &target)?;
    let asked = Asked {
        kind,
        workload: (kind.parse)(&settings).map_err(|refusal| words::refused(&[refusal]))?,
        depth: depth(&settings),
        cold: verb.cold || (!verb.warm && matches!(target, Target::Directory(_))),
        target,
        seed: verb.seed,
        ledger: OnceLock::new(),
    };
    let interrupt = Arc::new(Interrupt::default());
    let loaded = match &asked.target {
        Target::Existing { path, bytes } => {
            check_existing(&asked, &settings, path, *bytes)?;
            catch(&interrupt)?;
            asked.measure(Path::new(""), Some(path), &interrupt)
        }
        Target::Directory(directory) => {
            let host = LocalHost::new(Arc::new(|_| ()));
            check_directory(&asked, &host, directory)?;
            catch(&interrupt)?;
            temporary::work(&setting.session, &host, |journal, id| {
                let private = private(&host, journal, directory, id)?;
                Ok(asked.lay_out_and_measure(&private, &interrupt))
            })?
        }
    };
    if verb.json {
        super::terminal::print(&json::render(&asked, &loaded));
    } else if loaded.trouble.is_none() || !loaded.phases.is_empty() {
        super::terminal::print(&table::render(&asked, &loaded));
    }
    finish(&loaded)
}

/// The exit code; a phase that could not begin is told on standard error as well.
fn finish(loaded: &Loaded) -> Result<u8, Failure> {
    let failed = loaded
        .outcomes
        .iter()
        .any(|outcome| outcome.error.is_some());
    match &loaded.trouble {
        _ if loaded.interrupted => Ok(failure::INTERRUPTED),
        Some(trouble) => Err(Failure::trial(trouble.clone())),
        None if failed => Ok(failure::TRIAL_FAILED),
        None => Ok(0),
    }
}

/// Operations outstanding at once, as asked for.
fn depth(settings: &Settings) -> u64 {
    // A workload that offers neither does one thing at a time.
    let count = |name| settings.count(name).unwrap_or(1);
    count("threads") * count("queue-depth")
}

fn catch(interrupt: &Arc<Interrupt>) -> Result<(), Failure> {
    let left = "`stackrace clean` removes what is left";
    catch_interrupt(interrupt, "what was measured follows", left)
}

/// Refuses a workload that would do more than read, or read more than there is.
fn check_existing(
    asked: &Asked<'_>,
    settings: &Settings,
    path: &Path,
    bytes: u64,
) -> Result<(), Failure> {
    asked.workload.on_existing().map_err(|why| {
        Failure::refused(format!(
            "{} is a file or device, and {} cannot use it: {why}",
            path.display(),
            asked.kind.name
        ))
        .next("name a directory, or only read: random mode=read, sequential mode=read")
    })?;
    let size = settings.optional_bytes("size").ok().flatten().unwrap_or(0);
    if size > bytes {
        return Err(Failure::refused(format!(
            "{} holds {}, and {} are to be read",
            path.display(),
            unit::bytes(bytes),
            unit::bytes(size)
        ))
        .next("leave size out: all of it"));
    }
    Ok(())
}

/// Refuses a directory that cannot take the data.
fn check_directory(asked: &Asked<'_>, host: &dyn Host, directory: &Path) -> Result<(), Failure> {
    let refused = |why: &dyn std::fmt::Display| {
        Failure::refused(format!("{} cannot be used: {why}", directory.display()))
            .next("name a directory you may write to")
    };
    rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|errno| refused(&std::io::Error::from(errno)))?;
    let free = host
        .free_bytes(directory)
        .map_err(|error| refused(&error))?;
    let needed = asked.workload.cost().disk_bytes;
    if needed > free {
        return Err(Failure::refused(format!(
            "{} has {} free; this needs {}",
            directory.display(),
            unit::bytes(free),
            unit::bytes(needed)
        ))
        .next("free space there, or give less data"));
    }
    Ok(())
}

/// A subdirectory of our own, in the journal before it is made.
fn private(
    host: &dyn Host,
    journal: &Journal,
    directory: &Path,
    id: &str,
) -> Result<std::path::PathBuf, Failure> {
    let private = directory.join(format!(".stackrace-load-{id}"));
    journal
        .will("load", Undo::RemoveTree(private.clone()))
        .map_err(|error| Failure::internal(error.to_string()).next(error.next()))?;
    host.create_dir(&private)
        .map_err(|error| Failure::refused(error.to_string()).next(error.next()))?;
    Ok(private)
}

impl Asked<'_> {
    fn lay_out_and_measure(&self, private: &Path, interrupt: &Interrupt) -> Loaded {
        let control = interrupt.control();
        let prepared = self.workload.prepare(&self.place(private, None, &control));
        let mut loaded = Loaded {
            interrupted: control.stopped(),
            ..Loaded::default()
        };
        match prepared {
            _ if control.stopped() => {}
            Err(trouble) => loaded.trouble = Some(trouble.0),
            Ok(()) => loaded = self.measure(private, None, interrupt),
        }
        loaded
    }

    fn place<'b>(
        &'b self,
        directory: &'b Path,
        existing: Option<&'b Path>,
        control: &'b Control,
    ) -> Place<'b> {
        Place {
            directory,
            bare: None,
            existing,
            ledger: &self.ledger,
            seed: self.seed,
            control,
        }
    }

    /// Runs all phases, until one fails or is interrupted.
    fn measure(&self, directory: &Path, existing: Option<&Path>, interrupt: &Interrupt) -> Loaded {
        let mut loaded = Loaded::default();
        for (phase, name) in self.workload.phases().into_iter().enumerate() {
            let settled = self.workload.settles(phase);
            let resident = settled.then(|| self.settle(directory, existing)).flatten();
            let control = interrupt.control();
            let place = self.place(directory, existing, &control);
            let outcome = self.workload.measure(phase, &place);
            loaded.interrupted = control.stopped();
            match outcome {
                Ok(outcome) => loaded.outcomes.push(outcome),
                Err(_) if loaded.interrupted => break,
                Err(trouble) => {
                    loaded.trouble = Some(trouble.0);
                    break;
                }
            }
            loaded.phases.push(Measured { name, resident });
            if loaded.outcomes[phase].ended != Ended::Complete {
                break;
            }
        }
        let heads = self.workload.metrics();
        let values = if loaded.outcomes.len() == self.workload.phases().len() {
            self.workload.evaluate(&loaded.outcomes)
        } else {
            vec![None; heads.len()]
        };
        loaded.metrics = heads.into_iter().zip(values).collect();
        loaded
    }

    /// Empties the page cache of the data if asked to, and looks what is left in it. What cannot be
    /// looked at is not known to be cold, and not said to be.
    fn settle(&self, directory: &Path, existing: Option<&Path>) -> Option<(u64, u64)> {
        if !self.cold {
            return None;
        }
        match existing {
            Some(path) => {
                residency::evict(path).ok()?;
                residency::resident_bytes(path).ok()
            }
            None => {
                residency::evict_tree(directory).ok()?;
                residency::resident_bytes_below(directory, RESIDENCY_FILES_MAX).ok()
            }
        }
    }
}
