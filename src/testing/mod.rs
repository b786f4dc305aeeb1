//! What `tests/` and `fuzz/` may use of the private rooms.
//!
//! There is one check for each parser, and for arithmetic on numbers from outside. A check takes any
//! bytes. It panics where a promise is broken: a refusal has no place in the text, a text is not
//! written as it was read, a number is outside its range. `fuzz/` searches inputs for the checks;
//! `tests/corpus.rs` tries the kept ones in every test run.
//!
//! The program itself uses nothing of this room.

mod card;
mod classic;
mod crash;
mod engine;
mod import;
mod input;
mod kept;
mod kills;
mod lab;
mod others;
#[cfg(feature = "postgresql")]
mod postgresql;
mod record;
mod stats;
mod study;
mod system;
mod trace;
mod web;
mod words;

pub use card::card;
pub use classic::{bonnie, fio, postmark, sysbench};
pub use crash::broken_promises;
pub use engine::{archive, content, files, recorder, schedule, shape};
pub use import::{import, printed};
pub use kills::{Kill, kill_changes, kill_standing, kills};
pub use lab::{GuestsOverSsh, POWER, over_ssh, two_nodes, with_power};
#[cfg(feature = "postgresql")]
pub use postgresql::{KilledDatabase, killed_database};
pub use record::{histogram, log, report};
pub use stats::stats;
pub use study::{compare, study};
pub use system::{afp, command, guest, journal, mountinfo, observe, shell_answer, stack, wire};
pub use trace::{small_trace, trace};
pub use web::request;
pub use words::{arguments, is_entry, is_understood, unit};

/// A test of this machine: its name, and the function, which returns what the machine lacks for it.
pub type OnMachine = (String, Box<dyn Fn() -> Result<(), String> + Send>);

/// Every test that uses the real tools of this machine, for `tests/machine.rs`.
pub fn on_machine() -> impl Iterator<Item = OnMachine> {
    let of_many = stackrace_layers::stack::ON_MACHINE
        .iter()
        .map(|(name, test)| {
            let test: Box<dyn Fn() -> Result<(), String> + Send> = Box::new(*test);
            (format!("stack::{name}"), test)
        });
    let of_layers = stackrace_layers::stack::ALL.iter().flat_map(|kind| {
        kind.tried.real.iter().map(move |real| {
            let test: Box<dyn Fn() -> Result<(), String> + Send> =
                Box::new(|| stackrace_layers::stack::set_up_for_real(*real));
            (format!("stack::{}::{}", kind.name, real.name), test)
        })
    });
    let of_disks = stackrace_layers::stack::guarded_cases();
    let of_disks = of_disks.map(|(name, test)| (format!("stack::{name}"), test));
    of_many.chain(of_layers).chain(of_disks)
}

/// One check: the name of its fuzz target and its corpus, and its function.
pub type Check = (&'static str, fn(&[u8]));

/// Every check, alphabetical.
pub const ALL: &[Check] = &[
    ("afp", afp),
    ("archive", archive),
    ("arguments", arguments),
    ("bonnie", bonnie),
    ("card", card),
    ("command", command),
    ("compare", compare),
    ("content", content),
    ("files", files),
    ("fio", fio),
    ("guest", guest),
    ("histogram", histogram),
    ("import", import),
    ("journal", journal),
    ("log", log),
    ("mountinfo", mountinfo),
    ("observe", observe),
    ("postmark", postmark),
    ("printed", printed),
    ("recorder", recorder),
    ("report", report),
    ("request", request),
    ("schedule", schedule),
    ("shape", shape),
    ("shell-answer", shell_answer),
    ("stack", stack),
    ("stats", stats),
    ("study", study),
    ("sysbench", sysbench),
    ("trace", trace),
    ("unit", unit),
    ("wire", wire),
];
