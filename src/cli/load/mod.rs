//! `stackrace load`: one workload on one place, once, now; no verdict, nothing kept.

mod json;
mod table;
mod words;

use stackrace_base::event::LeftBehind;
use stackrace_base::unit::ShownPath;
use std::sync::Arc;

use super::args::Load;
use super::failure::{self, Failure};
use super::interrupt::catch_interrupt;
use super::progress::Preparing;
use super::setting::Setting;
use super::terminal::{print_data, say};
use super::words::unknown;
use crate::commands::load::{self, LoadRequest, Loaded};
use crate::commands::load_target::LoadTarget;
use stackrace_base::interrupt::Interrupt;
use stackrace_engine::clock::Calibration;
use stackrace_judge::audit;
use stackrace_load::programs;
use stackrace_load::programs::fio::FIO;
use stackrace_machine::observe;
use stackrace_run::prepare::observer::Preparation;
pub(super) use table::formats;
use words::free_in;
pub(super) use words::{find_rate, replayed, workload};

/// Carries out `stackrace load`; gives its exit code.
pub(super) fn exec(setting: &Setting, verb: Load) -> Result<u8, Failure> {
    let Some(kind) = programs::workloads()
        .iter()
        .find(|kind| kind.name == verb.workload)
    else {
        let names: Vec<&str> = programs::workloads().iter().map(|kind| kind.name).collect();
        return Err(unknown("workload", &verb.workload, &names));
    };
    // The clock becomes precise while all else is found out.
    Calibration::ahead();
    let target = LoadTarget::look(&verb.place)?;
    let free = match &target {
        LoadTarget::Directory(directory) => free_in(std::slice::from_ref(directory)),
        LoadTarget::Existing { .. } => u64::MAX,
    };
    let settings = words::read(kind, &verb.words, (&target, free))?;
    let request = LoadRequest {
        kind,
        workload: (kind.parse)(&settings).map_err(|refusal| words::refused(&[refusal]))?,
        settings,
        // A file of others is left as it was found, in memory or not, unless asked.
        cold: verb.cold || (!verb.warm && matches!(target, LoadTarget::Directory(_))),
        target,
        seed: verb.seed,
    };
    if kind.name == FIO && !request.workload.commands().is_empty() {
        // They were not typed: they stand in a file, which may come from anywhere.
        return Err(Failure::refused("the job gives commands, which would run with your rights").next("leave exec_prerun and exec_postrun out, or put the job into a study: run asks for permission"));
    }
    let interrupt = Arc::new(Interrupt::default());
    catch_interrupt(&interrupt, "what was measured follows", LeftBehind::FILES)?;
    let doing = Preparing::drawn(setting.quiet);
    doing.now(kind.name, &verb.place.shown().to_string());
    let loaded = load::run(&setting.session, &request, &interrupt)?;
    drop(doing);
    let audit = loaded.trial.as_ref().and_then(|trial| {
        let of = audit::AuditedTrial {
            whose: kind.operations,
            level: kind.level,
            environment: &observe::limiting_facts(),
            in_virtual_time: false,
        };
        audit::trial_audit(&of, trial)
    });
    if verb.json {
        print_data(json::render(&request, &loaded, audit.as_ref()).as_bytes());
    } else if loaded.trouble.is_none() || !loaded.phases.is_empty() {
        let width = setting.screen.columns();
        say(&table::render(&request, &loaded, audit.as_ref(), width));
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
        // After the table: what was measured until then was asked for.
        Some(trouble) => Err(Failure::trial(trouble.clone()).next(loaded.advice.clone())),
        None if failed => Ok(failure::TRIAL_FAILED),
        None => Ok(0),
    }
}
