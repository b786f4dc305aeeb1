//! `stackrace lab add`: a system that the user brings.

use super::args::LabAdd;
use super::failure::{Failure, INTERRUPTED};
use super::images;
use super::interrupt::catch_interrupt;
use super::setting::Setting;
use super::terminal::{error, print};
use stackrace_base::event::{LeftBehind, again};
use stackrace_base::interrupt::Interrupt;
use stackrace_places::place::lab_guests::added::{self, AskedSystem};
use stackrace_places::place::lab_guests::memory;
use stackrace_remote::agent::ssh::StopAsked;
use stackrace_run::prepare::observer::Observer;
use std::sync::Arc;

/// Carries out `stackrace lab add`; gives its exit code.
pub(super) fn exec(setting: &Setting, verb: &LabAdd) -> Result<u8, Failure> {
    // No shell reads this: quotes would be part of a word.
    let ssh: Vec<String> = verb
        .ssh
        .words()
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    if ssh.is_empty() {
        return Err(Failure::usage("--ssh names no command").next("--ssh \"ssh -i KEY\""));
    }
    let asked = AskedSystem {
        name: &verb.name,
        image: &verb.image,
        login: &verb.login,
        ssh,
        memory_bytes: memory(&verb.memory)?,
    };
    let cache = images::own_dir()?;
    let interrupt = Arc::new(Interrupt::default());
    catch_interrupt(&interrupt, "nothing is kept", LeftBehind::FILES)?;
    let raised = Arc::clone(&interrupt);
    let stop = StopAsked::when(move || raised.raised());
    match added::add(&setting.session, &cache, asked, &stop, setting) {
        Ok(system) => {
            print(&images::added_line(&system));
            let name = &verb.name;
            setting.remark(&format!(
                "measure in it: {}",
                again(&["run", "STUDY", "--lab", "--system", name])
            ));
            Ok(0)
        }
        Err(failure) if interrupt.raised() => {
            error(&failure.render());
            Ok(INTERRUPTED)
        }
        Err(failure) => Err(failure),
    }
}
