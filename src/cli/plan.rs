//! `stackrace plan`: what a study would do. Touches nothing.

use super::args::{self, PlanArgs};
use super::drive_card;
use super::failure::{self, Failure};
use super::images;
use super::run::time;
use super::setting::Setting;
use super::terminal::{print_data, say};
use super::variable::variable;
use stackrace_places::place::clients::{self, JobManifest, claimed};
use stackrace_places::place::lab_guests;
use stackrace_places::place::lab_guests::Images;
use stackrace_places::place::lab_guests::added::{self, AddedGuests, AskedGuests};
use stackrace_places::place::lab_guests::needs;
use stackrace_places::place::options::AskedPlace;
use stackrace_places::place::ssh::machines;
use stackrace_places::place::virtual_lab::plan;
use stackrace_places::place::virtual_lab::{self, LabDrives};
use stackrace_run::prepare::permission;
use stackrace_run::prepare::preflight;
use stackrace_run::prepare::preflight::ElsewhereFacts;
use stackrace_run::prepare::study_file::{self, Overrides};
use stackrace_study::study::Study;

/// Carries out `stackrace plan`; gives its exit code.
pub(super) fn exec(setting: &Setting, verb: PlanArgs) -> Result<u8, Failure> {
    let (mut study, place, memory_bytes) = asked(setting, &verb)?;
    let manifest = clients::manifest(&mut study, args::clients(&verb.there.clients))?;
    if manifest.is_some() {
        return show(setting, &study, &verb, (place, memory_bytes), manifest);
    }
    if let Some(asked) = clients::asked_for(&study, &args::machines(&verb.there))? {
        let answer = clients::plan(&study, &asked, setting)?;
        match verb.json {
            true => print_data(format!("{:#}\n", answer.json).as_bytes()),
            false => say(&answer.text),
        }
        return Ok(exit_code(answer.refused));
    }
    let Some(there) = machines::asked_for(&study, &args::machines(&verb.there))? else {
        return show(setting, &study, &verb, (place, memory_bytes), None);
    };
    let mut refused = false;
    machines::plan(&setting.session, &study, &there, setting, |name, answer| {
        refused |= answer.refused;
        if verb.json {
            return print_data(format!("{:#}\n", answer.json).as_bytes());
        }
        if !setting.quiet {
            say(&format!("on {name}\n\n"));
        }
        say(&answer.text);
    })?;
    Ok(exit_code(refused))
}

/// The exit code: a script asks `plan` whether a study can run.
fn exit_code(refused: bool) -> u8 {
    match refused {
        true => failure::REFUSED,
        false => 0,
    }
}

/// The study as it is planned, where, and the memory of a guest, bytes.
pub(super) fn asked(
    setting: &Setting,
    verb: &PlanArgs,
) -> Result<(Study, AskedPlace, u64), Failure> {
    let study = study_file::read(&verb.study, verb.full, &variable)?;
    // What `run` refuses is no number here either.
    let memory_bytes = lab_guests::memory(&verb.memory)?;
    let study = study_file::at_places(study, &verb.systems, &verb.there.on)?;
    let mut study = study_file::on_drives(study, &drive_card::asked(&verb.drives)?)?;
    let limits = Overrides {
        time_max_ns: time("--time", verb.time.as_ref())?,
        rounds_max: verb.how_long.rounds,
        until_decided: verb.how_long.until_decided,
        ..Overrides::default()
    };
    limits.apply(&mut study);
    study_file::check_question(&study, verb.how_long.until_decided)?;
    let clock = virtual_lab::disks(&study) == LabDrives::Modelled;
    let lab = verb.lab.then_some(clock);
    let place = AskedPlace::of(&study, &args::machines(&verb.there), lab, false);
    setting.typed.check(place)?;
    claimed::check(&study, args::clients(&verb.there.clients).started)?;
    Ok((study, place, memory_bytes))
}

/// The guests of a study in the lab; `None` outside of it.
fn asked_guests(
    study: &Study,
    verb: &PlanArgs,
    images: Images<'_>,
) -> Result<Option<AskedGuests>, Failure> {
    if !verb.lab {
        return Ok(None);
    }
    let system = verb.systems.first().map(String::as_str);
    let guests = lab_guests::guests(study, system, images.added_names)?;
    let virtual_time = virtual_lab::disks(study) == LabDrives::Modelled;
    added::asked(guests, virtual_time, images).map(Some)
}

/// Shows the plan for systems that the user added.
fn show_added(
    setting: &Setting,
    study: &Study,
    verb: &PlanArgs,
    guests: &AddedGuests,
) -> Result<u8, Failure> {
    let mut refused = false;
    for (name, plan) in guests.plans(study)? {
        refused |= plan.problems().next().is_some();
        if verb.json {
            let json = serde_json::to_value(&plan).unwrap_or_default();
            print_data(format!("{json:#}\n").as_bytes());
            continue;
        }
        say(&format!(
            "on {name}\n\n{}",
            plan.render(setting.screen.columns())
        ));
    }
    if !verb.json {
        say(&permission::text(study));
    }
    Ok(exit_code(refused))
}

/// Shows the plan for a place where guests have so many bytes of memory; before it, the manifest of the Job in which
/// clients will run.
fn show(
    setting: &Setting,
    study: &Study,
    verb: &PlanArgs,
    (place, memory_bytes): (AskedPlace, u64),
    manifest: Option<JobManifest>,
) -> Result<u8, Failure> {
    let session = &setting.session;
    let systems = images::LabSystems::now();
    let images = systems.images();
    let guests = asked_guests(study, verb, images)?;
    if let Some(AskedGuests::Added(guests)) = &guests {
        return show_added(setting, study, verb, guests);
    }
    let mut plan = match place {
        AskedPlace::Virtual => {
            // What such a run refuses, before its costs.
            virtual_lab::check(study)?;
            plan::plan(session, study, lab_guests::memory(&verb.memory)?, None)?
        }
        AskedPlace::Lab => {
            let guest = ElsewhereFacts {
                memory_bytes: Some(memory_bytes),
                ..ElsewhereFacts::default()
            };
            preflight::plan_elsewhere(session, study, guest)?
        }
        // What this machine lacks does not matter to a study that runs elsewhere.
        _ => preflight::plan(session, study, study.places().is_none())?,
    };
    if let Some(AskedGuests::Made(guests)) = &guests {
        let missing = needs::missing(&setting.session, study, guests, images);
        missing.into_iter().for_each(|text| plan.add_problem(text));
    }
    if verb.json {
        let mut json = serde_json::to_value(&plan).unwrap_or_default();
        // One document: what reads it sees the manifest as a value.
        if let Some(manifest) = manifest {
            json["kubernetes_manifest"] = manifest.text.into();
        }
        print_data(format!("{json:#}\n").as_bytes());
    } else {
        if let Some(manifest) = manifest {
            let head = match manifest.made_by_run {
                true => {
                    "# The run makes this Job and deletes it. To change it, kubectl apply -f your own before"
                }
                false => "# Before the run: kubectl apply -f - with this Job",
            };
            say(&format!("{head}\n{}\n", manifest.text));
        }
        say(&format!(
            "{}{}{}",
            plan.render(setting.screen.columns()),
            permission::text(study),
            preflight::dangers_text(study)
        ));
    }
    Ok(exit_code(plan.problems().next().is_some()))
}
