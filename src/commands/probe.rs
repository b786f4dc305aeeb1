//! A workload or command that is tried once, before a comparison with it begins.

use std::sync::Arc;

use crate::commands::compare::ComparedPath;
use stackrace_base::event::Ended;
use stackrace_base::failure::Failure;
use stackrace_base::interrupt::Interrupt;
use stackrace_base::owned::held::with_real_names;
use stackrace_machine::host::local::LocalHost;
use stackrace_run::prepare::context::Context;
use stackrace_run::prepare::temporary;
use stackrace_run::run::SingleTrial;
use stackrace_study::study::Study;

/// Findings of the first try.
pub(super) struct Probed {
    /// What the program printed.
    pub(super) printed: [String; 2],
    /// Time of all phases, ns.
    pub(super) elapsed_ns: u64,
}

/// Tries the command once in a private directory of one side.
pub(super) fn probe(
    context: &Context,
    host: &LocalHost,
    study: &Study,
    side: &ComparedPath,
    (interrupt, remedy): (&Arc<Interrupt>, String),
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
        let tried = trial.run(&mut ());
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
        Ok(Probed {
            elapsed_ns: outcomes.iter().map(|outcome| outcome.elapsed_ns).sum(),
            printed: outcomes
                .into_iter()
                .next()
                .map_or_else(Default::default, |outcome| outcome.printed),
        })
    })
}
