//! Servers on the imagined machine: their ports, and the variable each was started with.

use super::{World, said, word};
use crate::host::Output;
use std::ffi::OsString;

impl World {
    /// Starts a server that listens at ports.
    pub fn start(&mut self, program: &str, ports: &'static [u16]) -> Output {
        self.processes.insert(program.to_string(), ports);
        said("")
    }

    /// `env VARIABLE COMMAND`: the variable stays with what the command starts.
    pub(super) fn run_with(&mut self, words: &[OsString]) -> Output {
        let before: Vec<String> = self.processes.keys().cloned().collect();
        let output = self.exec(words.get(2..).unwrap_or_default());
        let started = self.processes.keys().filter(|name| !before.contains(name));
        let started: Vec<String> = started.cloned().collect();
        for program in started {
            self.started_with.insert(program, word(words, 1));
        }
        output
    }

    /// Ends a server if it was started with a variable.
    pub(in crate::host) fn end_started_with(&mut self, program: &str, variable: &str) {
        if self
            .started_with
            .get(program)
            .is_some_and(|with| with == variable)
        {
            self.started_with.remove(program);
            self.end(program);
        }
    }

    /// Ends a server with what it held; one that does not run is no error.
    pub fn end(&mut self, program: &str) -> Output {
        self.processes.remove(program);
        let held = self.assemblies.iter();
        let held = held.filter(|(_, assembly)| assembly.tool == program);
        let held: Vec<String> = held.map(|(name, _)| name.clone()).collect();
        for name in held {
            // What is in use stays: that is a leak, which a test has to see.
            self.disassemble(&name);
        }
        said("")
    }

    pub(in crate::host) fn runs(&self, program: &str) -> bool {
        self.processes.contains_key(program)
    }

    pub(in crate::host) fn listener(&self, port: u16) -> Option<&String> {
        let mut running = self.processes.iter();
        running
            .find(|(_, ports)| ports.contains(&port))
            .map(|(program, _)| program)
    }
}
