//! States of a stack that have to last while it is measured: a replica that loses its peer writes half as much, and
//! looks faster.

use crate::foundation::error::LayerError;
use stackrace_machine::host::{Host, HostError};
use std::ffi::OsString;

/// One state, and the command that tells it.
#[derive(Debug)]
pub struct LastingState {
    /// Its name, which begins a sentence: `the connection of DRBD`.
    what: &'static str,
    /// The machine that is asked, by its number.
    pub node: usize,
    command: Vec<OsString>,
    /// What counts of the answer.
    read: fn(&str) -> String,
    /// The answer when the stack was set up.
    said: String,
}

impl LastingState {
    /// The state as a command tells it now, on a machine with its number; `read` takes from its answer what counts.
    ///
    /// # Errors
    /// The command fails.
    pub fn now(
        what: &'static str,
        (node, host): (usize, &dyn Host),
        command: Vec<OsString>,
        read: fn(&str) -> String,
    ) -> Result<Self, LayerError> {
        let said = read(&host.must(&command)?.stdout);
        Ok(Self {
            what,
            node,
            command,
            read,
            said,
        })
    }

    /// The answer when the stack was set up, if it does not end like this.
    pub fn said_other(&self, end: &str) -> Option<&str> {
        (!self.said.ends_with(end)).then_some(&*self.said)
    }

    /// The state as it has to be. What failed while the stack was set up shows before the first trial.
    pub fn asked(
        what: &'static str,
        node: usize,
        command: Vec<OsString>,
        (read, said): (fn(&str) -> String, String),
    ) -> Self {
        Self {
            what,
            node,
            command,
            read,
            said,
        }
    }

    /// Tells that it is another one by now on its machine; `None` if it is the same.
    pub fn changed(&self, host: Result<&dyn Host, HostError>) -> Option<String> {
        let asked = host.and_then(|host| host.must(&self.command));
        // A state that cannot be told any more has not lasted.
        let now = asked.map_or_else(
            |error| error.to_string(),
            |output| (self.read)(&output.stdout),
        );
        let (what, said) = (self.what, &self.said);
        (now != *said).then(|| {
            format!("{what} was {said} when the stack was set up, and is now {now}: it is another storage")
        })
    }
}

/// An answer of one word, of which all counts.
pub fn whole(answer: &str) -> String {
    answer.trim().to_owned()
}
