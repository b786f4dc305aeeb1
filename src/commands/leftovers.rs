//! `stackrace clean --on HOST`, `--peer HOST`, `--clients CLIENTS`: what runs left on other machines.

use stackrace_base::event::{Event, again};
use stackrace_base::unit::ShownPath;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stackrace_base::failure::Failure;
use stackrace_machine::host::{Host, HostError};
use stackrace_places::place::clients;
use stackrace_places::place::clients::claimed::LeftJob;
use stackrace_places::place::machine_options::{MachineOptions, unable};
use stackrace_places::place::shell::store;
use stackrace_places::place::ssh::machines;
use stackrace_places::place::ssh::peers::{self, ConnectedPeer};
use stackrace_places::place::worker_store::cleaned;
use stackrace_remote::agent::message::{CleanAnswer, PeerAddress};
use stackrace_remote::agent::remote_host::RemoteHost;
use stackrace_remote::agent::router::Router;
use stackrace_remote::agent::ssh::{Remote, StopAsked};
use stackrace_run::prepare::context::{Context, entropy, unrecorded};

/// Cleans each machine with its peers, or this one with them, or only lists what is left there; tells what was done.
///
/// # Errors
/// A machine is not reached, or the connection to it is lost.
pub(crate) fn clean(
    context: &Context,
    options: &MachineOptions<'_>,
    list: bool,
    allow_commands: bool,
) -> Result<CleanAnswer, Failure> {
    if options.agentless {
        return shells(context, options, list, allow_commands);
    }
    if let Some(job) = LeftJob::of(options.clients, &options.ssh)? {
        return of_job(&job, list);
    }
    let firsts = match clients::ways(options.clients, &options.ssh)? {
        Some(clients) => clients,
        None => {
            let on = options.on.iter().map(|on| options.ssh.way("--on", on));
            on.collect::<Result<_, Failure>>()?
        }
    };
    let ways = peers::ways(options.peers, &options.ssh)?;
    let mut tally = Tally::default();
    let id = format!("{:016x}", entropy());
    if firsts.is_empty() {
        let router = Router::new(Duration::ZERO);
        let connection = machines::here(&router)?;
        let first = RemoteHost::direct("here", &connection);
        let peers = ConnectedPeer::connect(&ways, &first, &router, (&id, &StopAsked::default()))?;
        let answer = cleaned(&first, &context.store_dir()?, addresses(&peers), list);
        tally.add(answer.map_err(unable)?);
        tally.forget(&peers, list).map_err(unable)?;
    }
    for way in &firsts {
        let router = Router::new(Duration::ZERO);
        let remote = Remote::connect(way, &router, 1)
            .map_err(|error| Failure::unable(error.to_string()).next(error.next()))?;
        let peers =
            ConnectedPeer::connect(&ways, &remote.host(), &router, (&id, &StopAsked::default()))?;
        let mut one = Tally::default();
        one.of_first(&remote, &peers, list).map_err(unable)?;
        one.forget(&peers, list).map_err(unable)?;
        tally.add(of_many(firsts.len(), &remote.to(), one.0));
    }
    Ok(tally.0)
}

/// Deletes the Job that a run made in a cluster, unless that run goes on.
fn of_job(job: &LeftJob, list: bool) -> Result<CleanAnswer, Failure> {
    let mut tally = Tally::default();
    // What a dead run left in its pod goes with the pod: only a run that goes on keeps it.
    let asked = if list { &[][..] } else { &job.ways };
    for way in asked {
        let router = Router::new(Duration::ZERO);
        let remote = Remote::connect(way, &router, 1)
            .map_err(|error| Failure::unable(error.to_string()).next(error.next()))?;
        tally.of_first(&remote, &[], false).map_err(unable)?;
    }
    match tally.0.left {
        true => tally.left(job.in_use()),
        false => tally.0.lines.extend(job.clean(list)?),
    }
    Ok(tally.0)
}

/// Tells of machines that have nothing but a shell, and on which runs from here left something.
///
/// # Errors
/// The store cannot be read.
pub(crate) fn on_shells(context: &Context) -> Result<Vec<String>, Failure> {
    let hosts = store::hosts(context)?.into_iter();
    let told = hosts.map(|host| {
        let clean = again(&["clean", "--on", host.as_str(), "--agent", "none"]);
        format!("left alone: a run on {host}: {clean}")
    });
    Ok(told.collect())
}

/// Names the runs from here that did not end, and may have left something on machines that this command does not look
/// at, each with the command that does.
///
/// # Errors
/// The store cannot be read.
pub(crate) fn on_others(context: &Context) -> Result<Vec<String>, Failure> {
    let store = context.look_into_store()?;
    let mut told = Vec::new();
    for run in store.ids().map_err(unrecorded)? {
        // What was made here alone is told by its journal.
        let Ok(Event::RunStarted(head)) = store.first_line(&run).map(|line| line.event) else {
            continue;
        };
        let Some(clean) = head.clean_command() else {
            continue;
        };
        if !store.goes_on(&run) && store.summary(&run).ended.is_none() {
            told.push(format!(
                "not looked at: the other machines of {run}, which did not end: {clean}"
            ));
        }
    }
    Ok(told)
}

/// Does the same on machines that have nothing but a shell.
fn shells(
    context: &Context,
    options: &MachineOptions<'_>,
    list: bool,
    allow_commands: bool,
) -> Result<CleanAnswer, Failure> {
    if options.on.is_empty() {
        return Err(
            Failure::usage("--agent none cleans machines that --on names")
                .next("stackrace clean --on HOST --agent none"),
        );
    }
    let mut tally = Tally::default();
    for on in options.on {
        let host = machines::shell(&options.ssh.way("--on", on)?)?;
        let answer = store::clean(context, &host, list, allow_commands)?;
        tally.add(of_many(options.on.len(), on, answer));
    }
    Ok(tally.0)
}

/// What a machine answered; of several each line says of which one.
fn of_many(all: usize, on: &str, answer: CleanAnswer) -> CleanAnswer {
    let named = |line: String| match all {
        1 => line,
        // Their paths are often the same.
        _ => format!("{on}: {line}"),
    };
    CleanAnswer {
        lines: answer.lines.into_iter().map(named).collect(),
        left: answer.left,
    }
}

fn addresses(peers: &[ConnectedPeer]) -> Vec<PeerAddress> {
    peers.iter().map(|peer| peer.address.clone()).collect()
}

/// Lines to be said, and whether something is left.
#[derive(Default)]
struct Tally(CleanAnswer);

impl Tally {
    /// Adds what a worker said; whether nothing is left where it was.
    fn add(&mut self, answer: CleanAnswer) -> bool {
        self.0.lines.extend(answer.lines);
        self.0.left |= answer.left;
        !answer.left
    }

    /// Cleans or lists what runs left on a machine that was the only one, or the first of several.
    fn of_first(
        &mut self,
        remote: &Remote,
        peers: &[ConnectedPeer],
        list: bool,
    ) -> Result<(), HostError> {
        let mut stores = remote.stores()?;
        stores.retain(|store| !of_peer(store));
        for store in stores {
            let answer = cleaned(&remote.host(), &store, addresses(peers), list)?;
            if !self.add(answer) {
                continue;
            }
            // A process that has it open belongs to a run that goes on.
            let holders = remote.host().holders(&store);
            if let Some(holder) = holders.first() {
                let path = store.shown();
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

    /// Removes or lists what peers do not need any more when nothing is left there.
    fn forget(&mut self, peers: &[ConnectedPeer], list: bool) -> Result<(), HostError> {
        for peer in peers {
            let stores = peer.remote.stores()?;
            self.others(&peer.remote, &stores);
            self.copies(&peer.remote, list)?;
        }
        Ok(())
    }

    /// Directories of runs that are cleaned from elsewhere: a peer's files are told of by the first
    /// machine alone.
    fn others(&mut self, remote: &Remote, stores: &[PathBuf]) {
        let to = remote.to();
        for store in stores {
            let path = store.shown();
            self.left(match of_peer(store) {
                true => format!(
                    "left alone: {path} on {to} belongs to a run whose first machine is another: stackrace clean [--on FIRST] --peer {to}"
                ),
                false => format!("left alone: {path} on {to}: {}", remote.host().cleaned_by()),
            });
        }
    }

    fn left(&mut self, text: String) {
        self.0.lines.push(text);
        self.0.left = true;
    }

    /// Removes the copies of this program there, unless something is left that may need it.
    fn copies(&mut self, remote: &Remote, list: bool) -> Result<(), HostError> {
        if self.0.left {
            return Ok(());
        }
        for copy in remote.copies()? {
            // One that this very command brought is no leftover, and goes without a word.
            if remote.brought() == Some(&copy) {
                remote.host().remove_tree(&copy)?;
                continue;
            }
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
    ) -> Result<(), HostError> {
        let shown = path.shown().to_string();
        let done = match list {
            true => "would remove",
            false => "removed",
        };
        if !list {
            remote.host().remove_tree(&path)?;
        }
        self.0.lines.push(format!("{done}: {what}{shown}"));
        Ok(())
    }
}

/// Returns true if a directory is that of a run on its peer.
fn of_peer(store: &Path) -> bool {
    let name = store.file_name().unwrap_or_default().to_string_lossy();
    name.contains(peers::DIRECTORY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_machine::host::HostError;
    use stackrace_machine::journal::{Journal, Param, Undo, UndoKind, undo_all};
    use stackrace_remote::agent::connection::{Closing, ConnectionError};
    use stackrace_remote::agent::router::Router;
    use std::ffi::OsString;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    /// Undoes a thing as the layers' own: where a file of ours is gone, the machine was started again.
    fn undo_if_there(host: &dyn Host, of: &[OsString]) -> Result<(), HostError> {
        let file = Path::new("/run").join(&of[0]);
        match host.exists(&file) {
            true => host.remove_file(&file),
            false => Ok(()),
        }
    }

    #[test]
    fn what_stands_on_a_lost_machine_stays_in_the_journal() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let reader = ours.try_clone().unwrap();
        let router = Router::new(Duration::ZERO);
        let why = |_: Option<&str>| ConnectionError::new("the line is gone");
        let connection = router.connect(1, reader, Closing(ours), Box::new(why));
        drop(theirs);
        let host = RemoteHost::direct("node2", &connection);
        let kind = UndoKind::new("line", "clear", &[Param::OurName], undo_if_there);
        let journal = Journal::nowhere();
        journal.draw("0123456789abcdef").unwrap();
        let name = OsString::from("stackrace-r1-t0-0123456789abcdef-line");
        let undo = Undo::from(kind.of([name]));
        journal.will("", undo.clone()).unwrap();
        let report = undo_all(&host, &journal, &[&kind]).unwrap();
        assert_eq!(report.undone, []);
        let (left, why) = &report.failed[0];
        assert_eq!(left, &undo);
        assert!(why.contains("the line is gone"), "{why}");
        assert_eq!(journal.pending().len(), 1);
    }
}
