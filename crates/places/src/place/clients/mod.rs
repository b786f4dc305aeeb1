//! `--clients`: one storage measured by several clients at the same time.
//!
//! The first client has the worker that sets up and conducts the trials; the coordinator stays here,
//! and every message between clients goes through it. Nothing is left on a client but the copy of this
//! program: what trials make lies in the shared directories, and the journal of the first client names
//! it.

pub mod claimed;
mod cluster;
mod launcher;

use stackrace_base::unit::ShownPath;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::place::machine_options::{ClientsOptions, MachineOptions, SshOptions, unable};
use crate::place::taken;
use crate::place::worker_store::WorkerStore;
use crate::place::workers::{PlacesRun, ReadyPlace, assignment, not_reached};
use claimed::ClaimedJob;
use launcher::{JobVolume, Launched, job_of};
use stackrace_base::event::{Fact, LeftBehind, RunPlace};
use stackrace_base::failure::Failure;
use stackrace_machine::host::{Filling, Host};
use stackrace_remote::agent::connection::Connection;
use stackrace_remote::agent::message::{Assignment, Clients, ExecRequest, PlanAnswer};
use stackrace_remote::agent::remote_host::RemoteHost;
use stackrace_remote::agent::router::Router;
use stackrace_remote::agent::ssh::{Remote, StopAsked, Way};
use stackrace_remote::agent::watch::watch;
use stackrace_results::record::Store;
use stackrace_run::execute::FinishedRun;
use stackrace_run::execute::resume::Stopped;
use stackrace_run::prepare::context::{Context, entropy};
use stackrace_run::prepare::observer::Observer;
use stackrace_run::prepare::study_file;
use stackrace_study::study::{CLIENTS, Study};

/// Names of the facts that say by which clients a run was made.
const STARTED: &str = "clients";
const PROCESSES: &str = "processes on each client";

/// The kernel's version.
const KERNEL: &str = "/proc/sys/kernel/osrelease";

/// Number of clients that are connected at the same time: an sshd lets ten in before they have said
/// who they are (`MaxStartups` of sshd_config(5)).
const CONNECTING: usize = 8;

/// Tasks that are left after a second Ctrl-C.
const LEFT: LeftBehind = LeftBehind {
    clean: &["clean", "--clients", "CLIENTS"],
    told: "removes what is left",
    resumes: true,
};

/// The clients a run is made by, and how they are reached.
#[derive(Debug)]
pub struct AskedClients {
    /// Clients in the words of the command line.
    started: String,
    /// Number of clients and the processes of each.
    pub clients: Clients,
    ways: Vec<Way>,
    /// The Job that is made for the run, before which nothing is known of its pods; `None` if they run already.
    claimed: Option<ClaimedJob>,
    /// What is known of the pods, for the record.
    facts: Vec<Fact>,
}

/// Returns the clients that the command line names; `None` if it names none.
///
/// # Errors
/// They make no sense, or not for this study.
pub fn asked_for(
    study: &Study,
    options: &MachineOptions<'_>,
) -> Result<Option<AskedClients>, Failure> {
    // What the study needs, before what the command line offers.
    let (clients, processes) = study.clients_most();
    let Some(started) = options.clients.started else {
        if clients.or(processes).is_none() {
            return Ok(None);
        }
        return Err(Failure::usage(format!(
            "the study has a factor \"{CLIENTS}\" or \"processes\", and no clients are named"
        ))
        .next("name them: --clients ssh:HOST,HOST, or --clients srun inside of an allocation"));
    };
    let claimed = ClaimedJob::of(study, started, options.ssh.sudo)?;
    let asked = match claimed {
        Some(job) => {
            AskedClients::of_claimed(job, started, options.clients.processes.or(processes))
        }
        None => asked(started, options.clients, processes, &options.ssh)?,
    };
    study_file::check_clients(study, &asked.clients)?;
    Ok(Some(asked))
}

impl AskedClients {
    /// Returns the clients that the command line names, of which no study needs to know; `None` if it names none.
    ///
    /// # Errors
    /// They make no sense.
    pub fn named(
        options: ClientsOptions<'_>,
        ssh: &SshOptions<'_>,
    ) -> Result<Option<Self>, Failure> {
        let started = options.started;
        started
            .map(|started| asked(started, options, None, ssh))
            .transpose()
    }

    /// The pod of a Job that is not there yet.
    fn of_claimed(job: ClaimedJob, started: &str, processes: Option<u32>) -> Self {
        Self {
            started: started.to_owned(),
            clients: Clients {
                names: vec![format!("{}-0", job.job)],
                processes: processes.unwrap_or(1),
            },
            ways: Vec::new(),
            claimed: Some(job),
            facts: Vec::new(),
        }
    }

    /// The pod that runs by now.
    fn of_running(&self, job: &ClaimedJob, facts: Vec<Fact>) -> Result<Self, Failure> {
        let options = ClientsOptions {
            started: Some(&self.started),
            processes: Some(self.clients.processes),
            allocation: None,
        };
        let ssh = SshOptions {
            command: "ssh",
            typed: false,
            sudo: job.sudo,
        };
        let running = asked(&self.started, options, None, &ssh)?;
        Ok(Self { facts, ..running })
    }

    /// Processes on all of them together.
    pub fn processes(&self) -> u64 {
        self.clients.names.len() as u64 * u64::from(self.clients.processes)
    }

    /// Says what is started where, a line for each client.
    fn started_where(&self) -> String {
        let mut text = format!(
            "Clients: {}, all at the same time. {} conducts\n",
            processes(self.processes()),
            self.clients.names[0],
        );
        for (name, way) in self.clients.names.iter().zip(&self.ways) {
            let processes = processes(u64::from(self.clients.processes));
            let command = match &way.launcher {
                Some(words) => words.join(" "),
                None => format!("{} {}", way.ssh.join(" "), way.to),
            };
            text.push_str(&format!("  {name}: {processes}, each over: {command}\n"));
        }
        text
    }

    /// Reaches each of them, and has them see that these directories are one storage, before anything is measured.
    ///
    /// # Errors
    /// The one that is not reached, or whose directory is another.
    pub fn reach(&self, directories: &[PathBuf], observer: &dyn Observer) -> Result<(), Failure> {
        let connected = ConnectedClients::connect(self, &StopAsked::default())?;
        let shared = connected.check_shared(directories);
        connected.put_away(observer);
        shared
    }

    /// Has a study measured by them.
    ///
    /// # Errors
    /// They cannot measure it together.
    pub fn join(&self, study: &mut Study) -> Result<(), Failure> {
        study_file::check_clients(study, &self.clients)?;
        study_file::by_clients(study, &self.clients);
        Ok(())
    }
}

/// Ways to the clients that the command line names, each of which is to be cleaned; `None` if it names none.
///
/// # Errors
/// They make no sense.
pub fn ways(
    options: ClientsOptions<'_>,
    ssh: &SshOptions<'_>,
) -> Result<Option<Vec<Way>>, Failure> {
    Ok(AskedClients::named(options, ssh)?.map(|asked| asked.ways))
}

/// The clients that a run was made by.
///
/// # Errors
/// The ssh command makes no sense.
pub fn on_record(
    study: &Study,
    (started, processes): (&str, u32),
    ssh: &SshOptions<'_>,
    allocation: Option<&str>,
) -> Result<AskedClients, Failure> {
    if let Some(job) = ClaimedJob::of(study, started, ssh.sudo)? {
        return Ok(AskedClients::of_claimed(job, started, Some(processes)));
    }
    let options = ClientsOptions {
        started: Some(started),
        processes: Some(processes),
        allocation,
    };
    asked(started, options, None, ssh)
}

/// Reads what the command line says of clients.
fn asked(
    started: &str,
    options: ClientsOptions<'_>,
    needed: Option<u32>,
    ssh: &SshOptions<'_>,
) -> Result<AskedClients, Failure> {
    let Launched { names, ways } = launcher::launched(started, options, ssh)?;
    let mut known = BTreeSet::new();
    if let Some(twice) = names.iter().find(|name| !known.insert(name.as_str())) {
        return Err(
            Failure::usage(format!("--clients {started} names {twice} twice"))
                .next("name each client once; --processes N starts several processes on each"),
        );
    }
    Ok(AskedClients {
        started: started.to_owned(),
        ways,
        clients: Clients {
            names,
            processes: options.processes.or(needed).unwrap_or(1),
        },
        claimed: None,
        facts: Vec::new(),
    })
}

/// Clients that are connected: each process of each, in the order of their numbers.
struct ConnectedClients<'a> {
    asked: &'a AskedClients,
    processes: Vec<Remote>,
    /// The store of the first one's worker.
    store: WorkerStore,
    /// Says that they are not waited for any longer.
    stop: StopAsked,
}

impl<'a> ConnectedClients<'a> {
    /// Connects all clients or not one: where one is not reached, the others are let go.
    fn connect(asked: &'a AskedClients, stop: &StopAsked) -> Result<Self, Failure> {
        let router = Router::new(Duration::ZERO);
        let all = asked.ways.len() * asked.clients.processes as usize;
        let machines: Vec<u32> = (1..=all as u32).collect();
        let mut processes = Vec::with_capacity(all);
        for group in machines.chunks(CONNECTING) {
            let connect = |machine: u32| {
                let way = &asked.ways[(machine as usize - 1) % asked.ways.len()];
                let way = Way {
                    stop: stop.clone(),
                    ..way.clone()
                };
                Remote::connect(&way, &router, machine).map_err(|error| not_reached(&error))
            };
            // Side by side: most of the time a login waits for the other machine.
            let connected = std::thread::scope(|scope| {
                let each = group
                    .iter()
                    .map(|machine| scope.spawn(move || connect(*machine)));
                let each: Vec<_> = each.collect();
                let lost = || Err(Failure::internal("a thread that connects has failed"));
                let each = each
                    .into_iter()
                    .map(|one| one.join().unwrap_or_else(|_| lost()));
                each.collect::<Result<Vec<_>, Failure>>()
            });
            processes.extend(connected?);
        }
        let id = format!("{:016x}", entropy());
        let connections = processes.iter().map(|one| Arc::clone(one.connection()));
        // From now on: one that falls silent while the others connect is found too.
        watch(&connections.collect::<Vec<_>>());
        let store = WorkerStore::at(processes[0].store(&id));
        Ok(Self {
            asked,
            processes,
            store,
            stop: stop.clone(),
        })
    }

    /// The first process of each client.
    fn firsts(&self) -> &[Remote] {
        &self.processes[..self.asked.ways.len()]
    }

    fn first(&self) -> (&Arc<Connection>, RemoteHost) {
        (self.processes[0].connection(), self.processes[0].host())
    }

    /// Refuses a directory that is not the same storage on all clients: a file that one of them makes
    /// is not seen by another, or another cannot make one.
    fn check_shared(&self, directories: &[PathBuf]) -> Result<(), Failure> {
        for directory in directories {
            let mark = |number: usize| {
                let name = format!(".stackrace-mark-{:016x}-{number}", entropy());
                directory.join(name)
            };
            let own = mark(0);
            let (_, first) = self.first();
            make_mark(&first, directory, &own)?;
            let mut others = self.firsts().iter().enumerate().skip(1);
            let mut left = None;
            let checked = others.try_for_each(|(number, other)| {
                let there = other.host();
                // A client that does not answer is lost, and says nothing of the storage.
                if !there.sees(&own).map_err(unable)? {
                    return Err(not_shared(directory, first.name(), there.name()));
                }
                let theirs = left.insert(mark(number));
                make_mark(&there, directory, theirs)?;
                there.remove_file(theirs).map_err(unable)?;
                left = None;
                Ok(())
            });
            // What a client made that was lost meanwhile: this one sees it too, if the storage is shared.
            if let Some(left) = left {
                let _ = first.remove_file(&left);
            }
            // Also where another client does not see it.
            first.remove_file(&own).map_err(unable)?;
            checked?;
        }
        Ok(())
    }

    /// Hands the study over and waits until the first client is ready to conduct.
    fn place(&self, study: &Study, wipe: &[String]) -> Result<ReadyPlace, Failure> {
        let (connection, _) = self.first();
        let mut assignment = assignment(study, None, self.store.path(), Vec::new(), wipe);
        assignment.clients = Some(self.asked.clients.clone());
        assignment.called = Some(self.asked.clients.names[0].clone());
        assignment.named_by.clone_from(&self.asked.ways[0].named_by);
        let called = format!("on {}", self.asked.clients.names[0]);
        let mut place =
            ReadyPlace::open(connection, assignment, &called, &|said| said, &self.stop)?;
        self.store.note(&self.first().1);
        place.facts.push(Fact::new(STARTED, &self.asked.started));
        let processes = self.asked.clients.processes.to_string();
        place.facts.push(Fact::new(PROCESSES, processes));
        place.facts.extend(self.asked.facts.iter().cloned());
        for client in self.firsts() {
            // What a client does not tell is not worth a run.
            if let Ok(kernel) = client.host().read_text(Path::new(KERNEL)) {
                let name = format!("kernel of {}", client.to());
                place.facts.push(Fact::new(name, kernel.trim()));
            }
        }
        Ok(place)
    }

    /// Tears down what was left standing, if anything was, and removes what the run had on the first
    /// client.
    fn put_away(&self, observer: &dyn Observer) {
        let (_, host) = self.first();
        if let Err(left) = self.store.put_away(&host, Vec::new()) {
            left.tell(observer, &self.store, &host, &[]);
        }
    }
}

/// `1 process`, `4 processes`
fn processes(count: u64) -> String {
    format!("{count} process{}", if count == 1 { "" } else { "es" })
}

/// Makes a file that says whose storage a directory is.
fn make_mark(host: &RemoteHost, directory: &Path, mark: &Path) -> Result<(), Failure> {
    if !host.is_dir(directory) {
        let (name, path) = (host.name().to_owned(), directory.shown());
        return Err(
            Failure::refused(format!("{name}: {path} is not a directory"))
                .next("mount the storage at the same place on every client"),
        );
    }
    let made = host.create_file(mark, 0, Filling::Sparse);
    made.map_err(|error| Failure::refused(error.to_string()).next(error.next()))
}

fn not_shared(directory: &Path, first: &str, other: &str) -> Failure {
    Failure::refused(format!(
        "{} is not the same storage on all clients: what {first} makes there, {other} does not see",
        directory.shown()
    ))
    .next("mount the storage at the same place on every client, or leave that client out")
}

/// Returns the Job that has to run before a study is measured by its pods, and has the study measured by them; `None` if
/// the clients are no pods.
///
/// # Errors
/// Its pods cannot measure the study together.
pub fn manifest(
    study: &mut Study,
    options: ClientsOptions<'_>,
) -> Result<Option<JobManifest>, Failure> {
    let started = options.started.unwrap_or_default();
    let Some(job) = job_of(started) else {
        return Ok(None);
    };
    let claimed = ClaimedJob::of(study, started, false)?;
    let (count, processes) = study.clients_most();
    let count = count.unwrap_or(if claimed.is_some() { 1 } else { 2 });
    // None of them is there yet: only their number counts.
    let clients = Clients {
        names: (0..count).map(|pod| format!("{job}-{pod}")).collect(),
        processes: options.processes.or(processes).unwrap_or(1),
    };
    study_file::check_clients(study, &clients)?;
    study_file::by_clients(study, &clients);
    if let Some(claimed) = claimed {
        return Ok(Some(JobManifest {
            text: claimed.manifest(false)?,
            made_by_run: true,
        }));
    }
    let given = taken::directories(study).into_iter().map(JobVolume::Given);
    let text = launcher::manifest(job, count as usize, &given.collect::<Vec<_>>(), false)?;
    Ok(Some(JobManifest {
        text,
        made_by_run: false,
    }))
}

/// A Job in whose pods a study is measured.
pub struct JobManifest {
    /// The Job as Kubernetes reads it.
    pub text: String,
    /// True if the run makes it where it is not there.
    pub made_by_run: bool,
}

/// Says what is started where, and what the study would do there.
///
/// # Errors
/// A client is not reached, or cannot say.
pub fn plan(
    study: &Study,
    asked: &AskedClients,
    observer: &dyn Observer,
) -> Result<PlanAnswer, Failure> {
    let connected = ConnectedClients::connect(asked, &StopAsked::default())?;
    let (_, first) = connected.first();
    let assignment = Assignment {
        clients: Some(asked.clients.clone()),
        decide: Some(Box::new(study.decide.clone())),
        ..assignment(study, None, connected.store.path(), Vec::new(), &[])
    };
    let planned = first.value::<PlanAnswer>(ExecRequest::Plan { assignment });
    // Also after a failure: the worker has had a directory there since it was connected.
    connected.put_away(observer);
    let mut answer = planned.map_err(unable)?;
    answer.text = format!("{}\n{}", asked.started_where(), answer.text);
    Ok(answer)
}

/// Makes a run by clients, or continues one that stopped.
///
/// # Errors
/// A client is not reached or not ready, a directory is not shared, or nothing can be recorded.
pub fn run(
    context: &Context,
    (study, store): (&Study, &Store),
    stopped: Option<Stopped>,
    (asked, anyway): (&AskedClients, bool),
    observer: &dyn Observer,
    warnings: &[String],
) -> Result<FinishedRun, Failure> {
    let place = RunPlace::Clients {
        started: asked.started.clone(),
        processes: asked.clients.processes,
    };
    let run = PlacesRun::new(context, (study, store), place, observer, LEFT)?;
    let Some(job) = &asked.claimed else {
        return measured(&run, study, stopped, (asked, anyway), observer, warnings);
    };
    let up = job.up(&run.stop(), observer)?;
    let running = asked.of_running(job, up.facts());
    let finished = running
        .and_then(|running| measured(&run, study, stopped, (&running, anyway), observer, warnings));
    // Whatever came of it: what was made for it goes with it.
    up.down(observer);
    finished
}

/// Makes a run by clients that are there.
fn measured(
    run: &PlacesRun<'_>,
    study: &Study,
    stopped: Option<Stopped>,
    (asked, anyway): (&AskedClients, bool),
    observer: &dyn Observer,
    warnings: &[String],
) -> Result<FinishedRun, Failure> {
    let connected = ConnectedClients::connect(asked, &run.stop())?;
    // Before the first client makes anything of its own.
    let hosts: Vec<RemoteHost> = connected.firsts().iter().map(Remote::host).collect();
    let others = taken::of_study_there(study, &hosts, anyway)?;
    connected.check_shared(&taken::directories(study))?;
    let warnings = [warnings, &others].concat();
    let finished = connected
        .place(study, &[])
        .and_then(|place| run.make(vec![place], stopped, &warnings));
    // Whatever came of it: nothing stays there.
    connected.put_away(observer);
    finished
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_does_not_run_yet_is_planned_with_all_its_processes() {
        let study = |text: &str| {
            let text = format!(
                "title = \"t\"\n{text}[[stack]]\ndir = {{ path = \"/mnt/s\" }}\n[[workload]]\nfiles = {{ count = 4 }}\n\
                 [decide]\nrounds-at-most = 3\n"
            );
            study_file::parse("t.toml", text.as_bytes()).unwrap()
        };
        let options = |processes| ClientsOptions {
            started: Some("kubernetes:job"),
            processes,
            ..ClientsOptions::default()
        };
        for (asked, of_all) in [(None, 2), (Some(3), 6)] {
            let mut study = study("");
            let job = manifest(&mut study, options(asked)).unwrap().unwrap().text;
            assert!(job.contains("completions: 2"), "{job}");
            assert_eq!(study.configurations[0].processes, of_all);
        }
        // What `run` refuses with so few processes is no plan either.
        let mut more = study("[factors]\nprocesses = [2, 8]\n");
        assert!(manifest(&mut more, options(Some(4))).is_err());
        assert!(manifest(&mut more, options(None)).is_ok());
        let mut other = study("");
        let none = manifest(&mut other, ClientsOptions::default()).unwrap();
        assert!(none.is_none());
        assert_eq!(other.configurations[0].processes, 1);
    }
}
