//! `stackrace push`: runs entered into the database of a team.

use stackrace_base::event::again;
use std::sync::Arc;

use super::args::Push;
use super::failure::Failure;
use super::setting::Setting;
use super::terminal::{error, say};
use super::variable::variable;
use super::words::not_read;
use stackrace_base::time::SystemClock;
use stackrace_base::unit::counted;
use stackrace_results::record::{RunSource, Store};
use stackrace_show::team::{PushedRun, Pushing, TeamAddress, TeamRuns, TeamWriter};

pub(super) fn exec(setting: &Setting, verb: &Push) -> Result<u8, Failure> {
    // Refused before anything is connected: an address that gives its password away, a run that is not
    // there.
    let address = TeamAddress::understand(&verb.database, &variable)?;
    let store = setting.session.look_into_store()?;
    let ids = ids(&store, verb)?;
    let mut team = TeamWriter::open(address)?;
    let mut left_out = 0;
    for run in &ids {
        let (record, log) = match store.read_with_lines(run) {
            Ok(read) => read,
            // One damaged log must not keep the others out.
            Err(why) if verb.all => {
                error(&format!("not pushed: {run}: {why}\n"));
                left_out += 1;
                continue;
            }
            Err(why) => return Err(not_read(why)),
        };
        let summary = store.summary_of(&record);
        let done = team.push(&PushedRun {
            log: &log,
            record: &record,
            summary: &summary,
        })?;
        say(&format!("{run}  {}\n", told(done)));
    }
    if ids.is_empty() {
        say("no runs to push\n");
    }
    if left_out > 0 {
        let runs = counted(left_out, "run");
        return Err(
            Failure::unable(format!("{runs} cannot be read and were not pushed"))
                .next(format!("see why: {}", again(&["runs"]))),
        );
    }
    Ok(0)
}

/// The runs of a team, for pages, and whose they are, for people.
pub(super) fn runs_of(database: &str) -> Result<(Arc<dyn RunSource>, String), Failure> {
    let address = TeamAddress::understand(database, &variable)?;
    let team = TeamRuns::open(address, Arc::new(SystemClock))?;
    let whose = team.shown().to_owned();
    Ok((Arc::new(team), whose))
}

/// Whole ids, each once.
fn ids(store: &Store, verb: &Push) -> Result<Vec<String>, Failure> {
    if verb.all {
        return store.ids().map_err(not_read);
    }
    let found: Result<Vec<String>, _> = verb.runs.iter().map(|run| store.find(run)).collect();
    let mut ids = found.map_err(not_read)?;
    // "last" and an id may be the same run.
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// Result of pushing a run, in words.
fn told(done: Pushing) -> String {
    match done {
        Pushing::Entered(lines) => format!("entered, {}", counted(lines, "line")),
        Pushing::Added(lines) => format!("{} added", counted(lines, "line")),
        Pushing::Tags => "its tags entered".to_owned(),
        Pushing::Nothing => "nothing new".to_owned(),
    }
}
