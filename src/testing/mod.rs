//! What `tests/` and `fuzz/` need of the private rooms, and nothing else.
//!
//! One check for each parser, and for the arithmetic that works on numbers from outside. A check
//! takes any bytes and panics where a promise is broken: a refusal without a place, a text that
//! does not come back as it was written, a number outside its range. `fuzz/` finds inputs for the
//! checks, `tests/corpus.rs` tries every kept one in an ordinary test run.
//!
//! The product uses nothing of this.

mod classic;
mod engine;
mod import;
mod input;
mod kills;
mod lab;
mod record;
mod stats;
mod study;
mod system;
mod web;
mod words;

pub use classic::{bonnie, fio, postmark, sysbench};
pub use engine::{archive, content, files, recorder, schedule, shape};
pub use import::import;
pub use kills::{Kill, kill_changes, kill_standing, kills};
pub use lab::two_nodes;
pub use record::{histogram, log, report};
pub use stats::stats;
pub use study::{compare, study};
pub use system::{afp, command, journal, mountinfo, observe, stack, wire};
pub use web::request;
pub use words::{arguments, unit};

/// A test of this machine: its name, and the function, which returns what the machine lacks for it.
pub type OnMachine = (String, fn() -> Result<(), String>);

/// Every test that uses the real tools of this machine, for `tests/machine.rs`.
pub fn on_machine() -> impl Iterator<Item = OnMachine> {
    crate::stack::ON_MACHINE
        .iter()
        .map(|(name, test)| (format!("stack::{name}"), *test))
}

/// One check: its name, which is that of its fuzz target and of its corpus, and the function.
pub type Check = (&'static str, fn(&[u8]));

/// Every check, alphabetical.
pub const ALL: &[Check] = &[
    ("afp", afp),
    ("archive", archive),
    ("arguments", arguments),
    ("bonnie", bonnie),
    ("command", command),
    ("compare", compare),
    ("content", content),
    ("files", files),
    ("fio", fio),
    ("histogram", histogram),
    ("import", import),
    ("journal", journal),
    ("log", log),
    ("mountinfo", mountinfo),
    ("observe", observe),
    ("postmark", postmark),
    ("recorder", recorder),
    ("report", report),
    ("request", request),
    ("schedule", schedule),
    ("shape", shape),
    ("stack", stack),
    ("stats", stats),
    ("study", study),
    ("sysbench", sysbench),
    ("unit", unit),
    ("wire", wire),
];
