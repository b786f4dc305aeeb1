//! `stackrace plan`: what a study would do. Touches nothing.

use super::args::Plan;
use super::failure::Failure;
use super::on;
use super::setting::Setting;
use super::terminal::print;
use crate::session::{preflight, study_file};
use crate::stack::Danger;
use crate::study::Study;

/// `stackrace plan`.
pub(super) fn exec(setting: &Setting, verb: Plan) -> Result<u8, Failure> {
    let study = study_file::read(&verb.study, verb.full)?;
    let study = study_file::at_places(study, &verb.systems, &verb.there.on)?;
    let place = verb.place.as_deref();
    if place.is_some() {
        return show(setting, &study_file::part(&study, place)?, &verb);
    }
    match on::hosts(&study, &verb.there)? {
        Some(hosts) => on::plan(setting, &study, &verb, &hosts),
        None => show(setting, &study, &verb),
    }
}

fn show(setting: &Setting, study: &Study, verb: &Plan) -> Result<u8, Failure> {
    // Asked for the part of one place, this machine is the place.
    let here = verb.place.is_some() || (!verb.lab && study.places().is_none());
    let plan = preflight::plan(&setting.session, study, here)?;
    print(&if verb.json {
        format!("{:#}\n", serde_json::to_value(&plan).unwrap_or_default())
    } else {
        format!("{}{}", plan.render(), dangers(study))
    });
    Ok(0)
}

/// What is on the disks a study names, and what speaks against writing over them; empty where
/// nothing does.
fn dangers(study: &Study) -> String {
    let dangers = preflight::dangers(study, &[]);
    let lines = dangers.iter().map(|danger| match danger {
        Danger::Lost(what) => format!("would be lost {what}\n"),
        Danger::Refused(error) => format!("refused: {error}\n  next: {}\n", error.next()),
    });
    match dangers.is_empty() {
        true => String::new(),
        false => format!("\nDisks that are named\n{}", lines.collect::<String>()),
    }
}
