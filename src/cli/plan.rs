//! `stackrace plan`: what a study would do. Touches nothing.

use super::args::PlanArgs;
use super::drive_card;
use super::failure::Failure;
use super::images;
use super::setting::Setting;
use super::terminal::{print_data, say};
use super::variable::variable;
use crate::session::asked_place::{AskedPlace, given};
use crate::session::virtual_run::{self, LabDrives};
use crate::session::{clients, machines, permission, preflight, study_file, virtual_plan};
use crate::session::{lab_needs, lab_run};
use stackrace_study::study::Study;

/// Carries out `stackrace plan`; gives its exit code.
pub(super) fn exec(setting: &Setting, verb: PlanArgs) -> Result<u8, Failure> {
    let study = study_file::read(&verb.study, verb.full, &variable)?;
    verb.there.options().check_agent(verb.lab)?;
    let place = AskedPlace::of(&study, &verb.there.options(), verb.lab.then_some(false));
    place.check(&given(&verb.there.placed()))?;
    // What `run` refuses is no number here either.
    lab_run::memory(&verb.memory)?;
    let study = study_file::at_places(study, &verb.systems, &verb.there.on)?;
    let study = study_file::on_drives(study, &drive_card::asked(&verb.drives)?)?;
    if let Some(manifest) = clients::manifest(&study, verb.there.clients.options()) {
        say(&format!(
            "# Before the run: kubectl apply -f - with this Job\n{manifest}\n"
        ));
        return show(setting, &study, &verb);
    }
    if let Some(asked) = clients::asked_for(&study, &verb.there.options())? {
        let answer = clients::plan(&study, &asked, setting)?;
        match verb.json {
            true => print_data(format!("{:#}\n", answer.json).as_bytes()),
            false => say(&answer.text),
        }
        return Ok(0);
    }
    let Some(there) = machines::asked_for(&study, &verb.there.options())? else {
        return show(setting, &study, &verb);
    };
    machines::plan(&setting.session, &study, &there, setting, |name, answer| {
        if verb.json {
            return print_data(format!("{:#}\n", answer.json).as_bytes());
        }
        if !setting.quiet {
            say(&format!("on {name}\n\n"));
        }
        say(&answer.text);
    })?;
    Ok(0)
}

fn show(setting: &Setting, study: &Study, verb: &PlanArgs) -> Result<u8, Failure> {
    // What this machine lacks does not matter to a study that runs elsewhere.
    let here = !verb.lab && study.places().is_none();
    let virtual_time = verb.lab && virtual_run::disks(study) == LabDrives::Modelled;
    if virtual_time {
        // What such a run refuses, before its costs.
        virtual_run::check(study)?;
    }
    let mut plan = match virtual_time {
        true => virtual_plan::plan(&setting.session, study, &verb.memory, None)?,
        false => preflight::plan(&setting.session, study, here)?,
    };
    if verb.lab {
        let guests = lab_run::guests(study, verb.systems.first().map(String::as_str))?;
        let missing = lab_needs::missing(&setting.session, study, &guests, &images::of);
        missing.into_iter().for_each(|text| plan.add_problem(text));
    }
    if verb.json {
        let json = serde_json::to_value(&plan).unwrap_or_default();
        print_data(format!("{json:#}\n").as_bytes());
    } else {
        say(&format!(
            "{}{}{}",
            plan.render(),
            permission::text(study),
            preflight::dangers_text(study)
        ));
    }
    Ok(0)
}
