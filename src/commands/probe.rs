//! A workload or command that is tried once, before a comparison with it begins.

use std::path::Path;
use std::sync::Arc;

use crate::commands::compare::ComparedPath;
use crate::sizes::sizing::settle;
use stackrace_base::event::{Counted, Ended};
use stackrace_base::failure::Failure;
use stackrace_base::interrupt::Interrupt;
use stackrace_base::owned::held::with_real_names;
use stackrace_engine::PhaseOutcome;
use stackrace_layers::stack;
use stackrace_load::workload::replay::Fidelity;
use stackrace_machine::host::local::LocalHost;
use stackrace_run::prepare::context::Context;
use stackrace_run::prepare::temporary;
use stackrace_run::run::{AroundPhase, Observed, SingleTrial};
use stackrace_study::study::Study;

/// The data of a try are as cold as in the trials of the run.
struct Cold<'a> {
    host: &'a LocalHost,
    interrupt: &'a Interrupt,
    directory: &'a Path,
    cold: bool,
    devices: Vec<String>,
    counted: Option<Counted>,
}

impl AroundPhase for Cold<'_> {
    fn before(&mut self, _phase: usize) {
        // Laying out leaves all data in memory.
        if self.cold {
            settle(self.host, self.directory, true, self.interrupt);
        }
    }

    fn observed(&self) -> Observed<'_> {
        Observed::Counters(&self.devices)
    }

    fn after(&mut self, phase: usize, _outcome: &PhaseOutcome, counted: &Counted) {
        // Commands and replays have one phase.
        if phase == 0 {
            self.counted = Some(counted.clone());
        }
    }
}

/// Findings of the first try.
pub(super) struct Probed {
    /// What the program printed.
    pub(super) printed: [String; 2],
    /// Time of all phases, ns.
    pub(super) elapsed_ns: u64,
    /// How like its recording it was; `None` if it repeats none.
    pub(super) fidelity: Option<Fidelity>,
}

/// Tries the command once in a private directory of one side.
pub(super) fn probe(
    context: &Context,
    host: &LocalHost,
    study: &Study,
    side: &ComparedPath,
    (interrupt, remedy): (&Arc<Interrupt>, String),
    cold: bool,
) -> Result<Probed, Failure> {
    let workload = &*study.configurations[0].workloads[0];
    temporary::work(context, host, |journal, id| {
        let private = temporary::private(host, journal, &side.path, "probe", id, &side.text)?;
        let trial = SingleTrial {
            workload,
            directory: private.path(),
            existing: None,
            cold: false,
            seed: 1,
            interrupt,
        };
        let mut around = Cold {
            host,
            interrupt,
            directory: private.path(),
            cold,
            devices: stack::devices_under(host, private.path()),
            counted: None,
        };
        let tried = trial.run(&mut around);
        let refused = |error: &str| {
            Failure::refused(format!(
                "tried once in {}: {}",
                side.text,
                with_real_names(error)
            ))
            .next(match &*tried.advice {
                "" => remedy.as_str(),
                known => known,
            })
        };
        match (&tried.ended, &tried.left) {
            (Ended::Interrupted, _) => return Err(temporary::interrupted(context)),
            (Ended::Failed { error: why }, _) | (Ended::Complete, Some(why)) => {
                return Err(refused(why));
            }
            (Ended::Complete, None) => {}
        }
        // Commands and replays have one phase, and it is the first that prints.
        let outcomes = tried.outcomes;
        let fidelity = outcomes.first().and_then(|first| workload.fidelity(first));
        Ok(Probed {
            elapsed_ns: outcomes.iter().map(|outcome| outcome.elapsed_ns).sum(),
            fidelity: fidelity.map(|mut found| {
                if let Some(counted) = &around.counted {
                    found.counted(counted);
                }
                found
            }),
            printed: outcomes
                .into_iter()
                .next()
                .map_or_else(Default::default, |outcome| outcome.printed),
        })
    })
}
