//! `stackrace compare`: existing directories compared with each other, without a study file.

use super::answer;
use super::args::Compare;
use super::failure::Failure;
use super::output;
use super::run::overrides;
use super::setting::Setting;
use super::terminal::print;
use super::words::unknown;
use crate::purpose;
use crate::session::compare::{self, CompareRequest};
use crate::unit;

/// `stackrace compare`.
pub(super) fn exec(setting: &Setting, verb: Compare) -> Result<u8, Failure> {
    let Some(purpose) = purpose::find(&verb.purpose) else {
        let names: Vec<&str> = purpose::ALL.iter().map(|purpose| purpose.name).collect();
        return Err(unknown("purpose", &verb.purpose, &names));
    };
    let size = verb.size.as_deref().map(unit::parse_bytes).transpose();
    let request = CompareRequest {
        directories: verb.directories,
        purpose,
        time_ns: unit::parse_time_ns(&verb.time)
            .map_err(|why| Failure::usage(format!("--time: {why}")))?,
        size: size.map_err(|why| Failure::usage(format!("--size: {why}")))?,
        like: verb.like,
        each: verb.each,
        anyway: verb.anyway,
        warm: verb.warm,
        overrides: overrides(&verb.deciding)?,
    };
    output::check_before_run(verb.output.html.as_deref())?;
    let prepared = compare::prepare(&setting.session, &request)?;
    if verb.print_study {
        print(&prepared.text);
        return Ok(0);
    }
    let finished = compare::run(&setting.session, &request, prepared, setting)?;
    answer::finish(setting, finished, &verb.output, verb.deciding.decide)
}
