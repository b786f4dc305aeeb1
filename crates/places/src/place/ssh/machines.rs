//! `--on HOST`: a study on other machines, over SSH.
//!
//! The worker there executes turns. It has a store of its own, in which nothing is but the journal of
//! what stands: when the connection is lost, the worker tears that down, and `stackrace clean --on
//! HOST` removes whatever is left all the same.

use stackrace_base::unit::InWords;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::place::machine_options::{MachineOptions, SshOptions};
use crate::place::shell::store;
use crate::place::shell::worker::ShellWorker;
use crate::place::ssh::peers::{self, ConnectedPeer, PeerWay};
use crate::place::taken;
use crate::place::worker::StudyWorker;
use crate::place::worker_store::{HERE, WorkerStore};
use crate::place::workers::{self, PlacesRun, ReadyPlace, assignment, not_reached};
use stackrace_base::event::{Fact, LeftBehind, OtherMachines, RunPlace, again};
use stackrace_base::failure::{Failure, FailureKind};
use stackrace_base::setting::Refusal;
use stackrace_machine::host::{Host, HostError};
use stackrace_remote::agent::connection::Connection;
use stackrace_remote::agent::message::{Assignment, ExecRequest, PeerAddress, PlanAnswer, RealCut};
use stackrace_remote::agent::remote_host::RemoteHost;
use stackrace_remote::agent::router::Router;
use stackrace_remote::agent::shell::ShellHost;
use stackrace_remote::agent::ssh::{Destination, Remote, StopAsked, Way};
use stackrace_remote::agent::worker;
use stackrace_results::record::Store;
use stackrace_run::execute::resume::Stopped;
use stackrace_run::execute::{self, FinishedRun};
use stackrace_run::prepare::clean;
use stackrace_run::prepare::context::{Context, entropy};
use stackrace_run::prepare::observer::Observer;
use stackrace_study::study::{HOST, Study};

/// Name of the fact that says on which machine, from this one, a run was made.
const OVER_SSH: &str = "over ssh";

/// Tasks that are left after a second Ctrl-C.
pub const LEFT: LeftBehind = LeftBehind {
    clean: &["clean", "--on", "HOST"],
    told: "removes what is left",
    resumes: true,
};

/// One machine of a run, and how it is reached.
#[derive(Debug)]
pub struct MachineWay {
    /// Its level of the study's factor of hosts; `None` if it is the only one.
    place: Option<String>,
    /// Name that the user gave it; `None` if it is this one.
    on: Option<String>,
    /// The way to it; `None` if it is this one.
    way: Option<Way>,
    /// True if nothing of this program is put there.
    agentless: bool,
    /// Its peers, from number 2 on.
    peers: Vec<PeerWay>,
}

/// Permissions of the user for things that a run would refuse.
#[derive(Debug, Clone, Copy)]
pub struct Permitted<'a> {
    /// Disks that may be wiped although they carry something.
    pub wipe: &'a [String],
    /// True to measure where another run measures.
    pub anyway: bool,
}

/// Returns the machines a study is to be tried on; `None` for this one alone.
///
/// # Errors
/// They make no sense for this study.
pub fn asked_for(
    study: &Study,
    options: &MachineOptions<'_>,
) -> Result<Option<Vec<MachineWay>>, Failure> {
    peers::check(study, options)?;
    if options.agentless {
        check_agentless(study, options)?;
    }
    if let Some(machines) = of_study(study, &options.ssh, options.agentless)? {
        return Ok(Some(machines));
    }
    let on = options.on.first().map(String::as_str);
    if study.places().is_some() || (on.is_none() && options.peers.is_empty()) {
        return Ok(None);
    }
    let agentless = options.agentless;
    Ok(Some(vec![only(
        on,
        options.peers,
        &options.ssh,
        agentless,
    )?]))
}

/// Refuses what cannot be had where nothing of this program is.
fn check_agentless(study: &Study, options: &MachineOptions<'_>) -> Result<(), Failure> {
    let usage = |what: &str, next: &str| Err(Failure::usage(what).next(next));
    let named = study.places().is_some_and(|factor| factor.name == HOST);
    if options.on.is_empty() && !named {
        return usage(
            "--agent none is for other machines",
            "name one: --on HOST --agent none",
        );
    }
    let levels = study.places().into_iter().flat_map(|factor| &factor.levels);
    let mut places = levels.map(|level| level.value.as_words());
    // A program here is timed in another way than one there.
    if options.on.iter().any(|on| on == HERE) || (named && places.any(|place| place == HERE)) {
        return usage(
            "with --agent none \"here\" would be measured in another way than the others",
            "reach this machine over ssh, too: localhost in the place of here",
        );
    }
    Ok(())
}

impl MachineWay {
    /// Returns what the log keeps of it.
    pub fn on_log(&self) -> OtherMachines {
        OtherMachines {
            on: self.on.clone(),
            peers: self.peers.iter().map(|peer| peer.asked.clone()).collect(),
            directory: match self.on {
                Some(_) => None,
                None => execute::begun_in().map(|fact| fact.value),
            },
        }
    }
}

/// The machines that a run was made on.
///
/// # Errors
/// The ssh command makes no sense.
pub fn on_record(
    study: &Study,
    there: &OtherMachines,
    agentless: bool,
    ssh: &SshOptions<'_>,
) -> Result<Vec<MachineWay>, Failure> {
    match of_study(study, ssh, agentless)? {
        Some(machines) => Ok(machines),
        None => Ok(vec![only(
            there.on.as_deref(),
            &there.peers,
            ssh,
            agentless,
        )?]),
    }
}

/// Returns what the log keeps of machines.
pub fn on_log(machines: &[MachineWay]) -> RunPlace {
    let there = match machines {
        // Levels of a factor are in the study.
        [one] if one.place.is_none() => one.on_log(),
        _ => OtherMachines::default(),
    };
    match machines.iter().any(|machine| machine.agentless) {
        true => RunPlace::Shell(there),
        false => RunPlace::Ssh(there),
    }
}

fn only(
    on: Option<&str>,
    peers: &[String],
    ssh: &SshOptions<'_>,
    agentless: bool,
) -> Result<MachineWay, Failure> {
    // `here` among other machines is this one, without SSH.
    let on = on.filter(|on| *on != HERE);
    Ok(MachineWay {
        place: None,
        on: on.map(str::to_owned),
        way: on.map(|on| ssh.way("--on", on)).transpose()?,
        agentless,
        peers: peers::ways(peers, ssh)?,
    })
}

/// The levels of a study's factor of hosts, if it has one.
fn of_study(
    study: &Study,
    ssh: &SshOptions<'_>,
    agentless: bool,
) -> Result<Option<Vec<MachineWay>>, Failure> {
    let Some(factor) = study.places().filter(|factor| factor.name == HOST) else {
        return Ok(None);
    };
    let machines = factor.levels.iter().map(|level| {
        let to = level.value.as_words();
        if let Err(why) = Destination::parse(&to) {
            let help = "write it like \"root@server\", or \"here\" for this machine";
            let error = study.refusal(Refusal::at(&level.span, why, help));
            return Err(Failure::refused(error.render(false)));
        }
        Ok(MachineWay {
            place: Some(level.label.clone()),
            ..only(Some(&to), &[], ssh, agentless)?
        })
    });
    machines.collect::<Result<_, Failure>>().map(Some)
}

/// A machine that is connected, with a directory of its own for a run.
pub struct ConnectedMachine<'a> {
    asked: &'a MachineWay,
    /// Its connection over SSH; `None` if it is this one, or has nothing of this program.
    remote: Option<Remote>,
    /// The machine as one that has nothing but a shell; `None` if this program is there.
    shell: Option<Arc<ShellHost>>,
    connection: Arc<Connection>,
    /// The store of the worker there.
    store: WorkerStore,
    peers: Vec<ConnectedPeer>,
    /// Says that it is not waited for any longer.
    stop: StopAsked,
}

impl<'a> ConnectedMachine<'a> {
    /// Connects to a machine, unless a stop is asked for meanwhile.
    ///
    /// # Errors
    /// It is not reached.
    pub fn connect(
        context: &Context,
        asked: &'a MachineWay,
        stop: &StopAsked,
    ) -> Result<Self, Failure> {
        let id = format!("{:016x}", entropy());
        let router = Router::new(Duration::ZERO);
        if let (Some(way), true) = (&asked.way, asked.agentless) {
            let host = Arc::new(shell(&stopped_by(way, stop))?);
            let worker = ShellWorker {
                host: Arc::clone(&host),
            };
            let connection = worker::here(worker, &router);
            return Ok(Self {
                asked,
                remote: None,
                shell: Some(host),
                connection: connection.map_err(|error| Failure::internal(error.in_words()))?,
                store: WorkerStore::at(context.store_dir()?),
                peers: Vec::new(),
                stop: stop.clone(),
            });
        }
        let (remote, connection, store) = match &asked.way {
            None => (None, here(&router)?, context.store_dir()?),
            Some(way) => {
                let remote = Remote::connect(&stopped_by(way, stop), &router, 1)
                    .map_err(|error| not_reached(&error))?;
                let (connection, store) = (Arc::clone(remote.connection()), remote.store(&id));
                (Some(remote), connection, store)
            }
        };
        let first = RemoteHost::direct(HERE, &connection);
        let peers = ConnectedPeer::connect(&asked.peers, &first, &router, (&id, stop))?;
        Ok(Self {
            asked,
            remote,
            shell: None,
            connection,
            store: WorkerStore::at(store),
            peers,
            stop: stop.clone(),
        })
    }

    /// Returns the host that is asked for commands and files there.
    pub fn host(&self) -> RemoteHost {
        RemoteHost::direct(self.called(), &self.connection).with_named_by(&self.named_by())
    }

    /// The store of the worker there.
    pub fn store(&self) -> &Path {
        self.store.path()
    }

    /// Returns the name that errors give it: as the user did, or `here`.
    pub fn called(&self) -> String {
        match (&self.remote, &self.shell) {
            (Some(remote), _) => remote.to(),
            (None, Some(shell)) => shell.to().to_string(),
            (None, None) => HERE.to_owned(),
        }
    }

    /// Returns the same of another machine; `None` if it is this one.
    fn other(&self) -> Option<String> {
        self.asked.way.as_ref().map(|_| self.called())
    }

    /// Returns the options that name it on the command line; none if it is this one.
    fn named_by(&self) -> Vec<String> {
        let way = self.asked.way.as_ref();
        way.map_or_else(Vec::new, |way| way.named_by.clone())
    }

    /// Returns what was said there, with what can be done from here.
    fn advice(&self, said: String) -> String {
        let Some(way) = &self.asked.way else {
            return said;
        };
        // A machine with nothing but a shell is known by its own name already.
        if self.shell.is_some() {
            return said;
        }
        // The worker cannot know how it was reached; what helps on a terminal there does not help
        // here.
        let root = format!(
            "log in as root: --on {}; or --sudo, where sudo asks no password",
            way.to.as_root()
        );
        said.replace(&HostError::NeedsRoot.next(), &root)
    }

    fn addresses(&self) -> Vec<PeerAddress> {
        self.peers.iter().map(|peer| peer.address.clone()).collect()
    }

    /// Hands the study over and waits until the machine is ready; `cut`: its power is really cut.
    ///
    /// # Errors
    /// What was refused there.
    pub fn place(
        &self,
        study: &Study,
        wipe: &[String],
        cut: Option<RealCut>,
    ) -> Result<ReadyPlace, Failure> {
        let name = self.asked.place.as_deref();
        let assignment = Assignment {
            cut,
            called: self.other(),
            named_by: self.named_by(),
            ..assignment(study, name, self.store(), self.addresses(), wipe)
        };
        let advice = |said| self.advice(said);
        let called = format!("on {}", self.called());
        let mut place =
            ReadyPlace::open(&self.connection, assignment, &called, &advice, &self.stop)?;
        if self.remote.is_some() {
            self.store.note(&self.host());
        }
        match &self.asked.way {
            Some(_) => place.facts.push(Fact::new(OVER_SSH, self.called())),
            // As of any run on this machine.
            None if name.is_none() => place.facts.extend(execute::begun_in()),
            None => {}
        }
        for (node, peer) in (2..).zip(&self.peers) {
            place.facts.extend(peer.facts(node));
        }
        Ok(place)
    }

    /// Asks the worker there for its plan.
    fn plan(&self, study: &Study) -> Result<PlanAnswer, Failure> {
        let place = self.asked.place.as_deref();
        let assignment = Assignment {
            called: self.other(),
            named_by: self.named_by(),
            decide: Some(Box::new(study.decide.clone())),
            ..assignment(study, place, self.store(), self.addresses(), &[])
        };
        let planned = self.host().value(ExecRequest::Plan { assignment });
        planned.map_err(|error| {
            let (text, next) = (error.to_string(), error.next());
            Failure::new(FailureKind::Unable, self.advice(text)).next(self.advice(next))
        })
    }

    /// Tears down what was left standing there, if anything was, and removes what the run had there.
    pub fn put_away(&self, context: &Context, observer: &dyn Observer) {
        let named = self.peers.iter().map(|peer| &*peer.address.name);
        let names: Vec<&str> = named.collect();
        let peers: Vec<&str> = names.iter().flat_map(|name| ["--peer", *name]).collect();
        // Its worker undoes everything by itself, and says so where it cannot.
        if self.shell.is_some() {
            return;
        }
        let Some(remote) = &self.remote else {
            // This machine's own store stays: only what is left on its peers is told. A store that
            // cannot be read was told of before.
            if clean::is_left_on(context, &names).unwrap_or(false) {
                let what = format!("something is left on {}", names.join(" or "));
                observer.warn(&what, &again(&[&["clean"], &*peers].concat()));
            }
            return;
        };
        if let Err(left) = self.store.put_away(&self.host(), self.addresses()) {
            left.tell(observer, &self.store, &remote.host(), &peers);
        }
    }
}

/// Connects to a machine that has nothing but a shell.
pub fn shell(way: &Way) -> Result<ShellHost, Failure> {
    let host = ShellHost::connect(way);
    host.map_err(|error| not_reached(&error))
}

/// The same way, on which a machine is not waited for any longer than this says.
pub fn stopped_by(way: &Way, stop: &StopAsked) -> Way {
    Way {
        stop: stop.clone(),
        ..way.clone()
    }
}

/// Has machines that have nothing but a shell put away what the run left there when it stopped.
fn cleaned_shells(context: &Context, connected: &[ConnectedMachine<'_>]) -> Result<(), Failure> {
    for host in connected.iter().filter_map(|there| there.shell.as_ref()) {
        // `resume` goes on only where the user permits the study's commands.
        let answer = store::clean(context, host, false, true)?;
        if answer.left {
            let text = answer.lines.join("\n");
            return Err(Failure::unable(text).next(host.cleaned_by()));
        }
    }
    Ok(())
}

/// Warns the reader of a run's report where nothing of this program was on a machine.
fn shell_warnings(connected: &[ConnectedMachine<'_>]) -> Vec<String> {
    let shells = connected.iter().filter_map(|there| there.shell.as_ref());
    shells.map(|host| host.warning()).collect()
}

/// A worker in this process, on a machine among others.
pub fn here(router: &Arc<Router>) -> Result<Arc<Connection>, Failure> {
    let connection = worker::here(StudyWorker::default(), router);
    connection.map_err(|error| Failure::internal(error.in_words()))
}

/// Makes a run on other machines, or continues one that stopped.
///
/// # Errors
/// A machine is not reached or not ready, or nothing can be recorded.
pub fn run(
    context: &Context,
    study: &Study,
    store: &Store,
    stopped: Option<Stopped>,
    machines: &[MachineWay],
    permitted: Permitted<'_>,
    observer: &dyn Observer,
) -> Result<FinishedRun, Failure> {
    let run = PlacesRun::new(context, (study, store), on_log(machines), observer, LEFT)?;
    // All are connected before any begins: where one is not reached, none has done anything.
    let stop = run.stop();
    let connected = machines
        .iter()
        .map(|machine| ConnectedMachine::connect(context, machine, &stop));
    let connected: Vec<ConnectedMachine<'_>> = connected.collect::<Result<_, Failure>>()?;
    if stopped.is_some() {
        cleaned_shells(context, &connected)?;
    }
    let hosts: Vec<RemoteHost> = connected.iter().map(ConnectedMachine::host).collect();
    let mut warnings = taken::of_study_there(study, &hosts, permitted.anyway)?;
    let wipe = permitted.wipe;
    let places = workers::all(connected.iter().map(|there| there.place(study, wipe, None)));
    warnings.extend(shell_warnings(&connected));
    let finished = places.and_then(|places| run.make(places, stopped, &warnings));
    // Whatever came of it: nothing stays there.
    for there in &connected {
        there.put_away(context, observer);
    }
    finished
}

/// Has each machine say what would be done there; `tell` is called with its name and what it says.
///
/// # Errors
/// A machine is not reached, or cannot say.
pub fn plan(
    context: &Context,
    study: &Study,
    machines: &[MachineWay],
    observer: &dyn Observer,
    mut tell: impl FnMut(&str, PlanAnswer),
) -> Result<(), Failure> {
    for machine in machines {
        let there = ConnectedMachine::connect(context, machine, &StopAsked::default())?;
        let planned = there.plan(study);
        // Also after a failure: the worker has had a directory there since it was connected.
        there.put_away(context, observer);
        tell(&there.called(), planned?);
    }
    Ok(())
}
