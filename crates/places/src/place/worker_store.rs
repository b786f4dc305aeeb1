//! The store of a worker on another machine: where its journals are, found again wherever it is by then.

use stackrace_base::unit::ShownPath;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use stackrace_machine::host::{Host, HostError, MadeThing, Whereabouts};
use stackrace_machine::journal;
use stackrace_remote::agent::message::{CleanAnswer, ExecRequest, PeerAddress};
use stackrace_remote::agent::remote_host::{RemoteHost, clean_command};
use stackrace_run::prepare::observer::Observer;

/// Name of this machine among hosts.
pub const HERE: &str = "here";

/// Undoes what dead runs left in a store on a machine, and on its peers.
pub fn cleaned(
    host: &RemoteHost,
    store: &Path,
    peers: Vec<PeerAddress>,
    list: bool,
) -> Result<CleanAnswer, HostError> {
    host.value(ExecRequest::Clean {
        store: store.to_path_buf(),
        peers,
        list,
        named_by: host.named_by().to_vec(),
    })
}

/// A directory there in which nothing is but what the worker keeps while a run goes on.
pub struct WorkerStore {
    path: PathBuf,
    /// The directory as it was when the worker had made it; `None` if it has not, or the machine does not say.
    made: OnceLock<MadeThing>,
}

/// Something stays on the other machine.
pub struct LeftThere {
    /// The reason, one clause or a line for each thing.
    pub why: String,
    /// Work that has to be done there before it is cleaned; empty if there is none.
    pub first: String,
}

impl LeftThere {
    fn of(error: &HostError) -> Self {
        Self {
            why: error.to_string(),
            first: error.next(),
        }
    }
}

impl LeftThere {
    /// Tells it, with the command that cleans it; `peers` are its options for further machines.
    pub fn tell(
        &self,
        observer: &dyn Observer,
        store: &WorkerStore,
        host: &RemoteHost,
        peers: &[&str],
    ) {
        let path = store.path.shown();
        let what = format!("{path} is left on {}: {}", host.name(), self.why);
        let next = match self.first.is_empty() {
            true => clean_command(host.named_by(), peers),
            false => self.first.clone(),
        };
        observer.warn(&what, &next);
    }
}

impl WorkerStore {
    /// Names the store at the path where a worker will make it.
    pub fn at(path: PathBuf) -> Self {
        Self {
            path,
            made: OnceLock::new(),
        }
    }

    /// Its path as it was made.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Looks at it right after the worker has made it.
    pub fn note(&self, host: &RemoteHost) {
        if let Some(made) = host.thing_at(&self.path) {
            // A worker that is asked a second time has the same one.
            let _ = self.made.set(made);
        }
    }

    /// Finds out where it is now.
    ///
    /// # Errors
    /// It is hidden, or it cannot be found.
    fn whereabouts(&self, host: &RemoteHost) -> Result<PathBuf, HostError> {
        let Some(made) = self.made.get() else {
            return Ok(self.path.clone());
        };
        if host.thing_at(&self.path).is_some_and(|now| made.is(&now)) {
            return Ok(self.path.clone());
        }
        match host.find_thing(made, &self.path) {
            // Its journals know their own new place.
            Whereabouts::MovedTo(to) => Ok(to),
            _ => journal::is_here_or_gone(host, &self.path, made).map(|()| self.path.clone()),
        }
    }

    /// Undoes what its journals name, and removes it.
    ///
    /// # Errors
    /// Something is left.
    pub fn put_away(&self, host: &RemoteHost, peers: Vec<PeerAddress>) -> Result<(), LeftThere> {
        let left = |error: HostError| LeftThere::of(&error);
        let now = self.whereabouts(host).map_err(left)?;
        let answer = cleaned(host, &now, peers, false).map_err(left)?;
        // The directory holds the journal: removed with something left, that would never be found again.
        if answer.left {
            return Err(LeftThere {
                why: answer.lines.join("\n"),
                first: String::new(),
            });
        }
        host.remove_tree(&now).map_err(left)
    }
}
