//! States of a stack that have to last while it is measured: a replica that loses its peer writes half as much, and
//! looks faster.

use crate::stack::error::LayerError;
use stackrace_machine::host::{Host, HostError};
use std::ffi::OsString;

/// One state, and the command that tells it.
#[derive(Debug)]
pub(crate) struct LastingState {
    /// Its name, which begins a sentence: `the connection of DRBD`.
    what: &'static str,
    /// The machine that is asked, by its number.
    pub(crate) node: usize,
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
    pub(crate) fn now(
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
    pub(crate) fn said_other(&self, end: &str) -> Option<&str> {
        (!self.said.ends_with(end)).then_some(&*self.said)
    }

    /// The state as it has to be. What failed while the stack was set up shows before the first trial.
    pub(crate) fn asked(
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
    pub(crate) fn changed(&self, host: Result<&dyn Host, HostError>) -> Option<String> {
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
pub(crate) fn whole(answer: &str) -> String {
    answer.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use crate::stack::testing::{site, stack};
    use stackrace_machine::host::plan::Fault;
    use stackrace_machine::host::{Host, argv};
    use stackrace_machine::journal::Journal;

    #[test]
    fn a_replica_that_lost_its_peer_is_another_storage() {
        let scratch = tempfile::tempdir().unwrap();
        let host = crate::stack::imagined(Fault::Never);
        let journal = Journal::nowhere();
        let site = site(&host, &journal, scratch.path());
        let shape = stack(&["loop = { size = \"1 GiB\" }", "drbd = {}", "ext4 = {}"]);
        let standing = shape.set_up(&site).unwrap();
        assert_eq!(standing.changed(&host), None);
        let up = host.steps().into_iter().map(|step| step.argv);
        let mut asked = up.filter(|words| words.iter().any(|word| word == "cstate"));
        let mut lost = asked.next_back().unwrap();
        let word = lost.iter().position(|word| word == "cstate").unwrap();
        lost.splice(word..=word, argv(["disconnect"]));
        host.must(&lost).unwrap();
        let why = standing.changed(&host).unwrap();
        assert!(why.starts_with("the connection of DRBD was "), "{why}");
        assert!(why.contains("is now StandAlone"), "{why}");
        standing.tear_down(&site).unwrap();
    }
}
