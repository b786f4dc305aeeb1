//! `stackrace plan`: what a study would do. Touches nothing.

use std::path::PathBuf;
use std::sync::Arc;

use super::args::Plan;
use super::execute;
use super::failure::{self, Failure};
use crate::host::{Host, local::LocalHost};
use crate::study::Study;
use crate::unit;

pub(super) fn exec(verb: Plan) -> Result<u8, Failure> {
    let (name, text) = execute::read_study(&verb.study)?;
    let study = execute::parse(&name, &text)?;
    let host = LocalHost::new(Arc::new(|_| ()));
    let plan = crate::plan::Plan::of(&study, &host);
    super::print(&if verb.json {
        format!("{:#}\n", serde_json::to_value(&plan).unwrap_or_default())
    } else {
        plan.render()
    });
    Ok(0)
}

/// Refuses a study this machine cannot carry out, before anything is created.
pub(super) fn check_machine(study: &Study) -> Result<(), Failure> {
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
