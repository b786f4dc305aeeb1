//! A machine that is looked at before anything is made there.

use stackrace_machine::host::{Host, argv};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// One machine, looked at for all stacks of a study.
pub struct Inspection<'a> {
    /// The machine.
    pub host: &'a dyn Host,
    /// Ids of devices that may be wiped although they carry something.
    pub wipe: &'a [String],
    /// What it printed, by the command.
    told: RefCell<BTreeMap<String, String>>,
}

impl<'a> Inspection<'a> {
    /// Begins to look at a machine.
    pub fn new(host: &'a dyn Host, wipe: &'a [String]) -> Self {
        Self {
            host,
            wipe,
            told: RefCell::default(),
        }
    }

    /// All that a command prints that changes nothing, whatever its status; empty if it cannot be started. Many
    /// configurations ask the same: it runs once.
    pub fn told(&self, words: &[&str]) -> String {
        let asked = words.join(" ");
        let mut told = self.told.borrow_mut();
        let answer = told.entry(asked).or_insert_with(|| {
            let output = self.host.exec(&argv(words.iter().copied()));
            output.map_or(String::new(), |output| {
                format!("{}\n{}", output.stdout, output.stderr)
            })
        });
        answer.clone()
    }
}
