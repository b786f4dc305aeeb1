//! `stackrace clean --on HOST`, `--peer HOST`: what runs from elsewhere left on machines over SSH.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{OURSELVES, collected, failed, program, unreachable, way};
use crate::agent::ssh::Remote;
use crate::agent::{Agent, AgentError, serve};
use crate::cli::args::Clean;
use crate::cli::failure::{self, Failure};
use crate::cli::peers::{self, Peer};
use crate::cli::setting::Setting;
use crate::host::verb::Verb;
use crate::host::{Output, argv};
use crate::session::entropy;

/// What the program says where there is nothing to be done.
const NOTHING: &str = "nothing to clean";

/// What is to be said, and how many things are left.
#[derive(Default)]
struct Tally {
    text: String,
    left: usize,
}

/// `stackrace clean --on --peer`: for each machine with these peers, or for this one with them.
pub(in crate::cli) fn clean(setting: &Setting, verb: &Clean) -> Result<u8, Failure> {
    let peers = peers::asked(&verb.there.peers, &verb.there.reach)?;
    let mut tally = Tally::default();
    let id = format!("{:016x}", entropy());
    if verb.there.on.is_empty() {
        let first = serve::here().map_err(|error| Failure::internal(error.to_string()))?;
        let first = Arc::new(first);
        let peers = Peer::connect(&peers, &first, &id)?;
        let (path, store) = (PathBuf::from(OURSELVES), setting.session.store_dir()?);
        let output = cleaned(&first, &path, &store, &peers, verb.list);
        let output = output.map_err(|error| Failure::internal(error.to_string()))?;
        tally.said(&output);
        tally.forget(&peers, verb.list)?;
    }
    for on in &verb.there.on {
        let remote = Remote::connect(&way("--on", on, &verb.there.reach)?).map_err(unreachable)?;
        let peers = Peer::connect(&peers, remote.agent(), &id)?;
        let mut one = Tally::default();
        one.of_first(&remote, &peers, verb.list)
            .map_err(|error| failed(&remote, error))?;
        one.forget(&peers, verb.list)?;
        tally.text.push_str(&one.text);
        tally.left += one.left;
    }
    crate::cli::terminal::print(match &*tally.text {
        "" => "nothing to clean\n",
        text => text,
    });
    Ok(if tally.left > 0 { failure::UNABLE } else { 0 })
}

/// What `clean` of the program on a first machine came to.
fn cleaned(
    first: &Arc<Agent>,
    path: &Path,
    store: &Path,
    peers: &[Arc<Peer>],
    list: bool,
) -> Result<Output, AgentError> {
    let mut command = program(path, store, peers, &["clean".as_ref()]);
    if list {
        command.extend(argv(["--list"]));
    }
    collected(first, peers, &command)
}

impl Tally {
    /// Adds what a program said; whether nothing is left where it was.
    fn said(&mut self, output: &Output) -> bool {
        for line in output.stdout.lines().filter(|line| *line != NOTHING) {
            self.text.push_str(&format!("{line}\n"));
        }
        let done = output.status == Some(0) && !output.stdout.contains("left alone: ");
        if !done {
            self.text.push_str(&output.stderr);
            self.left += 1;
        }
        done
    }

    /// What runs left on a machine that was the only one, or the first of several.
    fn of_first(
        &mut self,
        remote: &Remote,
        peers: &[Arc<Peer>],
        list: bool,
    ) -> Result<(), AgentError> {
        let mut stores = remote.stores()?;
        stores.retain(|store| !of_peer(store));
        for store in stores {
            let output = cleaned(remote.agent(), remote.program(), &store, peers, list)?;
            if !self.said(&output) {
                continue;
            }
            let path = store.clone();
            let holders: Vec<String> = remote.does(Verb::Holders { path })?;
            if let Some(holder) = holders.first() {
                let path = store.display();
                self.left(format!("left alone: {path} is in use by {holder}"));
                continue;
            }
            self.remove(remote, "", store, list)?;
        }
        // What was just removed may have been the last that one of them was kept for.
        let mut stores = remote.stores()?;
        stores.retain(|store| of_peer(store));
        self.others(remote, &stores);
        self.copies(remote, list)
    }

    /// What nobody needs on peers any more when nothing is left there.
    fn forget(&mut self, peers: &[Arc<Peer>], list: bool) -> Result<(), Failure> {
        for peer in peers {
            let remote = peer.remote();
            let forgotten = remote.stores().and_then(|stores| {
                self.others(remote, &stores);
                self.copies(remote, list)
            });
            forgotten.map_err(|error| failed(remote, error))?;
        }
        Ok(())
    }

    /// Directories of runs that are cleaned from elsewhere: a peer's files are told of by the first
    /// machine alone.
    fn others(&mut self, remote: &Remote, stores: &[PathBuf]) {
        let to = remote.to();
        for store in stores {
            let path = store.display();
            self.left(match of_peer(store) {
                true => format!(
                    "left alone: {path} on {to} belongs to a run whose first machine is another: stackrace clean [--on FIRST] --peer {to}"
                ),
                false => format!("left alone: {path} on {to}: stackrace clean --on {to}"),
            });
        }
    }

    fn left(&mut self, text: String) {
        self.text.push_str(&text);
        self.text.push('\n');
        self.left += 1;
    }

    /// Removes the copies of this program there, unless something is left that may need it.
    fn copies(&mut self, remote: &Remote, list: bool) -> Result<(), AgentError> {
        if self.left > 0 {
            return Ok(());
        }
        for copy in remote.copies()? {
            self.remove(remote, "the program's copy ", copy, list)?;
        }
        Ok(())
    }

    fn remove(
        &mut self,
        remote: &Remote,
        what: &str,
        path: PathBuf,
        list: bool,
    ) -> Result<(), AgentError> {
        let shown = path.display().to_string();
        let done = match list {
            true => "would remove",
            false => "removed",
        };
        if !list {
            remote.does::<()>(Verb::RemoveTree { path })?;
        }
        self.text.push_str(&format!("{done}: {what}{shown}\n"));
        Ok(())
    }
}

/// Whether a directory is that of a run on its peer.
fn of_peer(store: &Path) -> bool {
    let name = store.file_name().unwrap_or_default().to_string_lossy();
    name.contains(peers::DIRECTORY)
}
