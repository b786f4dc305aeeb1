//! `stackrace clean`: what dead runs left behind is removed, here or on other machines.

use super::args::{self, Clean};
use super::failure::{self, Failure};
use super::interrupt;
use super::setting::Setting;
use super::terminal::say;
use crate::commands::leftovers;
use stackrace_places::place::options::AskedPlace;
use stackrace_run::prepare::clean::{self, Cleaned, Cleaning};

/// Carries out `stackrace clean`; gives its exit code.
pub(super) fn exec(setting: &Setting, verb: Clean) -> Result<u8, Failure> {
    // Storage and machines of a dead run may have died with it.
    interrupt::name_waits("Ctrl-C: stop; what is left stays on record");
    let options = args::machines(&verb.there);
    let place = AskedPlace::of_machines(&options, false);
    setting.typed.check(place)?;
    if place != AskedPlace::Here {
        // The worker over there has its own store, and answers in lines.
        let answer = leftovers::clean(&setting.session, &options, verb.list, verb.allow_commands)?;
        return Ok(show(&answer.lines, answer.left));
    }
    let cleaning = Cleaning {
        list: verb.list,
        allow_commands: verb.allow_commands,
    };
    let cleaned = clean::clean(&setting.session, cleaning)?;
    let mut lines: Vec<String> = cleaned.iter().map(ToString::to_string).collect();
    let elsewhere = leftovers::on_shells(&setting.session)?;
    let left = cleaned.iter().any(Cleaned::is_left) || !elsewhere.is_empty();
    lines.extend(elsewhere);
    // Whether they left anything there is not known here: it is said, and is no finding.
    lines.extend(leftovers::on_others(&setting.session)?);
    Ok(show(&lines, left))
}

fn show(lines: &[String], left: bool) -> u8 {
    match lines {
        [] => say("nothing to clean\n"),
        // What was left alone is listed, too, with its reason.
        lines => say(&(lines.join("\n") + "\n")),
    }
    // A script that cleans up must hear that something still stands.
    if left { failure::UNABLE } else { 0 }
}
