//! `stackrace check`: whether one directory is enough.

use super::answer;
use super::args::Check;
use super::failure::Failure;
use super::output;
use super::run::time;
use super::setting::Setting;
use super::terminal::print;
use super::words::{no_such, unknown};
use crate::commands::compare::{self, CompareRequest};
use crate::commands::required::{self, RequiredBound};
use stackrace_base::event::split;
use stackrace_base::unit;
use stackrace_places::place::options::AskedPlace;
use stackrace_run::prepare::study_file::Overrides;
use stackrace_study::purpose::{self, Purpose};

/// Carries out `stackrace check`; gives its exit code.
pub(super) fn exec(setting: &Setting, verb: Check) -> Result<u8, Failure> {
    let purpose = purpose_named(&verb.purpose)?;
    let size = verb.size.as_deref().map(unit::parse_bytes).transpose();
    let time_asked = time("--time", verb.time.as_ref())?;
    let required = required(purpose, &verb.require)?;
    let request = CompareRequest {
        directories: vec![verb.directory],
        purpose,
        time_ns: time_asked.unwrap_or(compare::TIME_NS),
        quick: false,
        size: size.map_err(|why| Failure::usage(format!("--size: {why}")))?,
        like: None,
        each: false,
        anyway: verb.anyway,
        warm: verb.warm,
        clients: None,
        required,
        overrides: Overrides {
            time_max_ns: time_asked,
            rounds_max: verb.how_long.rounds,
            until_decided: verb.how_long.until_decided,
            ..Overrides::default()
        },
    };
    setting.typed.check(AskedPlace::Here)?;
    output::check_before_run(verb.output.html.as_deref())?;
    setting.events.name(verb.output.events.as_deref())?;
    let prepared = compare::prepare(&setting.session, &request, setting)?;
    if verb.print_study {
        print(&prepared.printed(&request.overrides));
        return Ok(0);
    }
    let finished = compare::run(&setting.session, &request, prepared, setting)?;
    answer::finish(setting, finished, &verb.output, false)
}

/// What is required: the bounds that were typed, or else what was published for the purpose.
///
/// # Errors
/// A bound has no sign, or no metric before it.
pub(super) fn required(purpose: &Purpose, typed: &[String]) -> Result<Vec<RequiredBound>, Failure> {
    if typed.is_empty() {
        return Ok(required::published(purpose));
    }
    let bound = |text: &String| {
        let (metric, bound) =
            split(text).map_err(|why| Failure::usage(format!("--require: {why}")))?;
        Ok(RequiredBound {
            metric: metric.to_owned(),
            bound: bound.to_owned(),
            source: None,
        })
    };
    typed.iter().map(bound).collect()
}

/// Finds a purpose by its name.
///
/// # Errors
/// There is none of that name; the nearest is named.
pub(super) fn purpose_named(name: &str) -> Result<&'static Purpose, Failure> {
    purpose::find(name).ok_or_else(|| {
        let names: Vec<&str> = purpose::ALL.iter().map(|purpose| purpose.name).collect();
        match purpose::meant(name) {
            Some(meant) => no_such("purpose", name, Some(meant), &names),
            None => unknown("purpose", name, &names),
        }
    })
}
