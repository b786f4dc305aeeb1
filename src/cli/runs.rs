//! `stackrace runs`: what is on record, listed, tagged or removed.

use super::args::{Runs, RunsVerb};
use super::failure::Failure;
use super::setting::Setting;
use super::terminal::{print_data, say};
use super::words::not_read;
use crate::commands::remove;
use stackrace_base::event::{again, is_store_named};
use stackrace_base::unit::{self, ShownPath};
use stackrace_results::record::{RunSummary, Store};
use stackrace_show::report::on_one_line;

/// Carries out `stackrace runs`; gives its exit code.
pub(super) fn exec(setting: &Setting, verb: &Runs) -> Result<u8, Failure> {
    let store = setting.session.look_into_store()?;
    match &verb.verb {
        None => list(&store, verb.json),
        Some(RunsVerb::Tag { run, tags, remove }) => {
            let run = store.find(run).map_err(not_read)?;
            let tags = store.tag(&run, tags, remove).map_err(not_read)?;
            let tags: Vec<String> = tags.into_iter().collect();
            say(&format!("{run}{}\n", shown(&tags)));
            Ok(0)
        }
        Some(RunsVerb::Rm { runs }) => {
            let ids: Result<Vec<String>, _> = runs.iter().map(|run| store.find(run)).collect();
            // All of them are found before the first is removed: a typo must not cost half a list.
            let mut ids = ids.map_err(not_read)?;
            ids.sort_unstable();
            ids.dedup();
            remove_all(&store, &ids)
        }
        Some(RunsVerb::Prune { keep, yes }) => {
            let ids = store.all_but_newest(*keep).map_err(not_read)?;
            if ids.is_empty() {
                say("nothing to remove\n");
                return Ok(0);
            }
            if *yes {
                return remove_all(&store, &ids);
            }
            for run in &ids {
                say(&format!(
                    "would remove {run}  {}\n",
                    on_one_line(&store.summary(run).title)
                ));
            }
            say(&format!(
                "to remove them: {}\n",
                again(&["runs", "prune", "--keep", &keep.to_string(), "--yes"])
            ));
            Ok(0)
        }
    }
}

fn remove_all(store: &Store, ids: &[String]) -> Result<u8, Failure> {
    for run in ids {
        remove::run(store, run)?;
        say(&format!("removed {run}\n"));
    }
    Ok(0)
}

/// Prints each run, the oldest first.
fn list(store: &Store, json: bool) -> Result<u8, Failure> {
    let runs = store.runs().map_err(not_read)?;
    // What a program reads is not wrapped, and an empty store is an empty list.
    if json {
        let runs: Vec<&RunSummary> = runs.iter().map(AsRef::as_ref).collect();
        let text = serde_json::to_string_pretty(&runs);
        let text = text.map_err(|error| Failure::internal(format!("the list of runs: {error}")))?;
        print_data(format!("{text}\n").as_bytes());
        return Ok(0);
    }
    let mut text = String::new();
    for run in &runs {
        let ended = run.ended.as_ref().map(|reason| format!("ended: {reason}"));
        // It may be running, or its program died: this list locks nothing to find out.
        let state = run.unreadable.clone().or(ended);
        let state = on_one_line(state.as_deref().unwrap_or("not ended"));
        text.push_str(&format!(
            "{}{}  {}, {state}  {}\n",
            run.run,
            shown(&run.tags),
            unit::counted(run.rounds, "round"),
            on_one_line(&run.title)
        ));
        if let Some(sentence) = &run.sentence {
            text.push_str(&format!("    {}\n", on_one_line(sentence)));
        }
    }
    if runs.is_empty() {
        // A name with a typo looks like a store that has nothing yet.
        let place = match store.is_there() || !is_store_named() {
            true => String::new(),
            false => format!(": there is no store in {}", store.dir().shown()),
        };
        text.push_str(&format!("no runs on record{place}\n"));
    }
    say(&text);
    Ok(0)
}

/// Tags behind an id: `  [before-upgrade]`; nothing where there are none.
fn shown(tags: &[String]) -> String {
    tags.iter().map(|tag| format!("  [{tag}]")).collect()
}
