//! `stackrace import`: what other tools printed, read into a run of its own.

use super::answer;
use super::args::Import;
use super::failure::Failure;
use super::output;
use super::setting::Setting;
use super::words::unknown;
use crate::commands::import;
use stackrace_judge::verdict::Placed;
use stackrace_load::tools::importers;

/// Carries out `stackrace import`; gives its exit code.
pub(super) fn exec(setting: &Setting, verb: Import) -> Result<u8, Failure> {
    // Before anything is read: a report with no place to go would be found out after all the work.
    output::check_before_run(verb.output.html.as_deref())?;
    setting.events.name(verb.output.events.as_deref())?;
    if let Some(tool) = &verb.tool {
        let names: Vec<&str> = importers().iter().map(|importer| importer.name).collect();
        if !names.contains(&tool.as_str()) {
            return Err(unknown("importer", tool, &names));
        }
    }
    let run = import::run(
        &setting.session,
        &verb.files,
        verb.tool.as_deref(),
        verb.title,
    )?;
    setting.events.begin(&mut run.ledger.lock());
    answer::show(setting, &run, &verb.output, (None, &Placed::default()))?;
    Ok(0)
}
