//! `stackrace run` and `stackrace resume`: a study from its first command to its verdict.

use super::answer;
use super::args::{self, Deciding, HowLong, LabClock, OutputArgs, Resume, Run};
use super::drive_card;
use super::failure::Failure;
use super::images;
use super::output;
use super::setting::Setting;
use super::variable::variable;
use super::words::{confidence, share};
use stackrace_base::event::Precision;
use stackrace_base::unit;
use stackrace_base::unit::InWords;
use stackrace_places::place::asked;
use stackrace_places::place::asked::{PlaceOptions, ResumeOptions};
use stackrace_places::place::lab_guests;
use stackrace_places::place::lab_options::LabOptions;
use stackrace_places::place::virtual_lab::{self, LabDrives};
use stackrace_run::execute::resume::Longer;
use stackrace_run::execute::resume::Stopped;
use stackrace_run::execute::virtual_clock;
use stackrace_run::prepare::permission;
use stackrace_run::prepare::study_file::{self, Overrides};
use stackrace_study::study::Study;

/// Carries out `stackrace run`; gives its exit code.
pub(super) fn exec(setting: &Setting, verb: Run) -> Result<u8, Failure> {
    output::check_before_run(verb.output.html.as_deref())?;
    setting.events.name(verb.output.events.as_deref())?;
    let (mut study, place) = asked(setting, &verb)?;
    let finished = asked::run(
        &setting.session,
        &mut study,
        place,
        setting,
        images::LabSystems::now().images(),
    )?;
    answer::finish(setting, finished, &verb.output, verb.deciding.decide)
}

/// The study as it will be measured, and where.
pub(super) fn asked<'a>(
    setting: &'a Setting,
    verb: &'a Run,
) -> Result<(Study, PlaceOptions<'a>), Failure> {
    let mut study = study_file::read(&verb.study, verb.full, &variable)?;
    study = study_file::at_places(study, &verb.systems, &verb.there.on)?;
    study = study_file::on_drives(study, &drive_card::asked(&verb.drives)?)?;
    let overrides = Overrides {
        time_max_ns: time("--time", verb.time.as_ref())?,
        ..overrides(&verb.deciding, &verb.how_long, verb.quick)?
    };
    overrides.apply(&mut study);
    study_file::check_question(&study, verb.how_long.until_decided)?;
    let virtual_time = in_virtual_time(verb, &study)?;
    if virtual_time {
        virtual_lab::in_turns(&mut study);
    }
    let lab = verb.lab.then_some(LabOptions {
        system: verb.systems.first().map(String::as_str),
        memory_bytes: lab_guests::memory(&verb.memory)?,
        virtual_time,
        jobs: verb.clock.jobs,
    });
    let place = PlaceOptions {
        typed: &setting.typed,
        lab,
        machines: args::machines(&verb.there),
        wipe: &verb.permitted.wipe,
        allow_commands: verb.permitted.allow_commands,
        anyway: verb.permitted.anyway,
        power: args::power(&verb.power)?,
    };
    Ok((study, place))
}

/// Returns true if a run is made in virtual time: where every drive is modelled, unless the command line says
/// which clock.
fn in_virtual_time(verb: &Run, study: &Study) -> Result<bool, Failure> {
    // A mixture is refused by the run itself, which says what is missing.
    let modelled = virtual_lab::disks(study) != LabDrives::Emulated;
    let clock = match verb.clock.clock {
        // The default is the clock that gives the same figures everywhere.
        None if modelled => LabClock::Virtual,
        None => LabClock::Real,
        Some(LabClock::Real) if modelled => {
            return Err(
                Failure::refused("modelled drives are served in virtual time only")
                    .next("leave --clock real out, or declare the disks by size, rate and latency"),
            );
        }
        Some(clock) => clock,
    };
    Ok(verb.lab && clock == LabClock::Virtual)
}

/// Settings of the decision on the command line, which replace those of the study.
pub(super) fn overrides(
    asked: &Deciding,
    how_long: &HowLong,
    quick: bool,
) -> Result<Overrides, Failure> {
    Ok(Overrides {
        margin: share("--margin", asked.margin.as_ref(), 0.0..1.0)?,
        confidence: confidence(asked.confidence.as_ref())?,
        seed: asked.seed,
        time_max_ns: None,
        rounds_max: how_long.rounds,
        until_decided: how_long.until_decided,
        precision: precision(asked.within.as_ref(), quick)?,
        each: asked.each,
    })
}

/// How well the size of a difference is to be known, if it was said.
fn precision(within: Option<&String>, quick: bool) -> Result<Option<Precision>, Failure> {
    let within = share("--within", within, 0.0..1.0)?;
    Ok(match quick {
        // clap refuses --quick together with --within.
        true => Some(Precision::Direction),
        false => within.map(Precision::Within),
    })
}

pub(super) fn time(option: &str, text: Option<&String>) -> Result<Option<u64>, Failure> {
    let time = text.map(|text| unit::parse_lasting_ns(text)).transpose();
    let time = time.map_err(|why| Failure::usage(format!("{option}: {why}")))?;
    match (time, text) {
        (Some(ns), Some(text)) if ns < TIME_LEAST_NS => {
            let told = format!("{option} {text} is shorter than any round");
            Err(Failure::usage(told).next(format!("write {option} 1s or more")))
        }
        _ => Ok(time),
    }
}

/// Shortest limit of a run, ns.
const TIME_LEAST_NS: u64 = 1_000_000_000;

/// Carries out `stackrace resume`; gives its exit code.
pub(super) fn resume(setting: &Setting, verb: Resume) -> Result<u8, Failure> {
    output::check_before_run(verb.output.html.as_deref())?;
    setting.events.name(verb.output.events.as_deref())?;
    let session = &setting.session;
    let store = session.look_into_store()?;
    let (stopped, mut study) = Stopped::open(&store, &verb.run)?;
    study_file::check_wipe(&study, &verb.permitted.wipe)?;
    // The study is in the log, and a log is data: the permission was given to another command line.
    permission::check(&study, verb.permitted.allow_commands)?;
    let more = Longer {
        time_ns: time("--more-time", verb.more_time.as_ref())?,
        rounds: verb.rounds,
        until_decided: verb.until_decided,
        precision: precision(verb.within.as_ref(), verb.quick)?,
    };
    more.apply(&stopped.record, &mut study);
    study_file::check_question(&study, verb.until_decided)?;
    let html = verb.output.html.clone().map(std::path::absolute);
    // Before the directory is changed to the one the run was begun in.
    let html = html
        .transpose()
        .map_err(|error| Failure::usage(format!("--html: {error}", error = error.in_words())))?;
    if virtual_clock::made(&stopped.record) {
        virtual_lab::in_turns(&mut study);
    }
    let of = (&mut study, &store);
    let reach = &args::ssh(&verb.reach);
    let reach = ResumeOptions {
        typed: &setting.typed,
        ssh: reach,
        allocation: verb.allocation.nodes(),
        wipe: &verb.permitted.wipe,
        anyway: verb.permitted.anyway,
        power: args::power(&verb.power)?,
    };
    let finished = asked::resume(
        session,
        of,
        stopped,
        reach,
        setting,
        images::LabSystems::now().images(),
    )?;
    let output = OutputArgs {
        html,
        events: None,
        json: verb.output.json,
    };
    answer::finish(setting, finished, &output, false)
}
