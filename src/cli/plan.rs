//! `stackrace plan`: what a study would do. Touches nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Setting;
use super::args::Plan;
use super::execute;
use super::failure::{self, Failure};
use crate::host::plan::{PlanHost, Step};
use crate::host::{Host, local::LocalHost};
use crate::journal::Journal;
use crate::plan::Machine;
use crate::stack::Site;
use crate::study::{Study, Treatment};
use crate::unit;

pub(super) fn exec(setting: &Setting, verb: Plan) -> Result<u8, Failure> {
    let (name, text) = execute::read_study(&verb.study)?;
    let study = execute::parse(&name, &text)?;
    let host = LocalHost::new(Arc::new(|_| ()));
    let scratch = setting.store.join("runs").join("RUN").join("mnt");
    let plan = crate::plan::Plan::of(
        &study,
        &Machine {
            commands: &|index, treatment| commands(&scratch, index, treatment),
            missing: &|treatment| {
                let missing = treatment.stack.missing(&host);
                missing
                    .iter()
                    .map(|need| format!("{need}; {}", need.next()))
                    .collect()
            },
            free_bytes: &|path| {
                // The scratch directory of a run that is only planned does not exist yet.
                let there = path.ancestors().find(|path| host.is_dir(path))?;
                host.free_bytes(there).ok()
            },
            write_rate: None,
            memory_bytes: crate::observe::memory_bytes(),
            scratch: &scratch,
        },
    );
    super::print(&if verb.json {
        format!("{:#}\n", serde_json::to_value(&plan).unwrap_or_default())
    } else {
        plan.render()
    });
    Ok(0)
}

/// The steps that raise one treatment, imagined by the host of plans.
fn commands(scratch: &Path, index: usize, treatment: &Treatment) -> Result<Vec<String>, String> {
    let host = PlanHost::new();
    let journal = Journal::nowhere();
    let site = Site {
        host: &host,
        journal: &journal,
        scratch: scratch.to_owned(),
        tag: format!("r1-t{index}"),
        seed: 0,
    };
    match treatment.stack.raise(&site) {
        Ok(_) => {
            // The store itself is part of every run and says nothing of the stack.
            let of_stack = |step: &&Step| {
                !step
                    .argv
                    .last()
                    .is_some_and(|path| scratch.starts_with(path))
            };
            let steps = host.steps();
            Ok(steps.iter().filter(of_stack).map(Step::shown).collect())
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Refuses a study this machine cannot carry out, before anything is created.
pub(super) fn check_machine(setting: &Setting, study: &Study) -> Result<(), Failure> {
    let host = LocalHost::new(Arc::new(|_| ()));
    let mut missing: Vec<String> = Vec::new();
    let mut needed: Vec<(PathBuf, u64)> = Vec::new();
    for treatment in &study.treatments {
        for need in treatment.stack.missing(&host) {
            let text = format!("{need}\n  next: {}", need.next());
            if !missing.contains(&text) {
                missing.push(text);
            }
        }
        for (dir, bytes) in treatment.stack.disk_needed() {
            let dir = if dir.as_os_str().is_empty() {
                // The run's own directory, which comes to lie in the store; the store itself may
                // be missing too.
                let there = setting.store.ancestors().find(|path| host.is_dir(path));
                there.unwrap_or(&setting.store).to_owned()
            } else {
                dir
            };
            match needed.iter_mut().find(|(known, _)| *known == dir) {
                Some((_, most)) => *most = (*most).max(bytes),
                None => needed.push((dir, bytes)),
            }
        }
    }
    if !missing.is_empty() {
        return Err(Failure::new(failure::CANNOT, missing.join("\n")));
    }
    for (dir, bytes) in needed {
        let free = host
            .free_bytes(&dir)
            .map_err(|error| Failure::refused(error.to_string()).next(error.next()))?;
        if bytes > free {
            return Err(Failure::refused(format!(
                "{} has {} free; a stack of this study needs {}",
                dir.display(),
                unit::bytes(free),
                unit::bytes(bytes)
            ))
            .next("free space there, or make the study's devices smaller"));
        }
    }
    Ok(())
}
