//! What a worker does with studies: turns, plans, cleaning up. The other end of [`crate::place::workers`].

use stackrace_base::unit::InWords;
use stackrace_system::window::SharedWindow;
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use crate::place::taken::TakenDirs;
use parking_lot::Mutex;
use stackrace_base::failure::Failure;
use stackrace_base::time::SystemClock;
use stackrace_machine::host::{Host, drives};
use stackrace_machine::journal::{GROUND, Journal, Undo};
use stackrace_machine::observe;
use stackrace_remote::agent::connection::{Connection, Task};
use stackrace_remote::agent::message::{
    Assignment, CleanAnswer, PeerAddress, PhaseOrder, PlanAnswer, RealCut, TurnReply,
};
use stackrace_remote::agent::remote_host::Peer;
use stackrace_remote::agent::window;
use stackrace_remote::agent::worker::{AskedCleaning, Duties, WorkerRefusal};
use stackrace_run::prepare::clean;
use stackrace_run::prepare::context::{Context, entropy};
use stackrace_run::prepare::preflight;
use stackrace_run::prepare::study_file;
use stackrace_run::prepare::temporary;
use stackrace_run::run::crash::{Capture, CrashPackage, CrashSide, LedgerStream};
use stackrace_run::run::turns::{TurnReporter, asked_for, execute_all};
use stackrace_run::run::{Broken, ClientsReached, Interrupt, KnownGrounds, LocalExecutor, serve};
use stackrace_study::study::Study;

/// This program as a worker.
#[derive(Default)]
pub struct StudyWorker {
    /// Storage of the directories in which it measures for another machine.
    grounds: KnownGrounds,
    /// Directories that other runs are kept out of.
    taken: Mutex<TakenDirs>,
}

/// Failure of a worker whose connection broke.
pub fn lost(broken: Broken) -> Failure {
    Failure::internal(broken.0)
}

/// Returns what is needed for a study that was received: everything, and the part of this place.
pub fn received(
    connection: &Arc<Connection>,
    assignment: &Assignment,
) -> Result<(Context, Study, Study), Failure> {
    let mut study = study_file::parse(&assignment.name, assignment.text.as_bytes())?;
    // A seed that was given on the command line is not in the text.
    study.seed = assignment.seed;
    let mut part = study_file::part(&study, assignment.place.as_deref())?;
    for study in [&mut study, &mut part] {
        // What several clients measure costs more, and is told in more ways.
        if let Some(clients) = &assignment.clients {
            study_file::by_clients(study, clients);
        }
        if let Some(decide) = &assignment.decide {
            study.decide.clone_from(decide);
        }
    }
    let context = Context {
        one_kernel: assignment.one_kernel,
        named_by: assignment.named_by.clone(),
        ..context(connection, &assignment.store, assignment.peers.clone())
    };
    Ok((context, study, part))
}

fn context(
    connection: &Arc<Connection>,
    store: &std::path::Path,
    peers: Vec<PeerAddress>,
) -> Context {
    Context {
        store: Some(store.to_path_buf()),
        command: Vec::new(),
        peers: Peer::all(connection, peers),
        named_by: Vec::new(),
        one_kernel: false,
    }
}

/// Says in the journal what the run will have on its peers.
fn journal_directories(peers: &[Peer], host: &dyn Host, journal: &Journal) -> Result<(), Failure> {
    for peer in peers {
        // A guest is removed whole.
        let Some(directory) = peer.address.directory.clone() else {
            continue;
        };
        let node = peer.machine as usize;
        let there = host
            .peer(node)
            .map_err(|error| Failure::internal(error.to_string()))?;
        let name = directory.to_string_lossy().into_owned();
        let mark = name.rsplit('-').next().unwrap_or_default();
        let undo = Undo::on(node, there, Undo::RemoveTree(directory));
        journal
            .draw(mark)
            .and_then(|()| journal.will(GROUND, undo))
            .and_then(|id| journal.made(host, id))
            .map_err(|error| Failure::internal(error.to_string()).next(error.next()))?;
    }
    Ok(())
}

/// Returns what the window held when the guest was started; `None` if it held nothing.
fn brought_along(window: &SharedWindow) -> Result<Option<CrashPackage>, Failure> {
    let bytes = window.read();
    let bytes = bytes.map_err(|error| {
        Failure::internal(format!("shared memory: {error}", error = error.in_words()))
    })?;
    // It is to be filled.
    if bytes.is_empty() {
        return Ok(None);
    }
    CrashPackage::of_bytes(&bytes)
        .map(Some)
        .map_err(Failure::internal)
}

/// Puts into the window what the drives were told to write.
fn leave_behind(window: &SharedWindow, capture: Capture) -> Result<(), Failure> {
    let package = CrashPackage {
        promised: Vec::new(),
        capture,
    };
    let written = window.write(&package.to_bytes());
    written.map_err(|error| {
        Failure::internal(format!(
            "what the drives were told to write does not leave the guest: {error}",
            error = error.in_words()
        ))
        .next("have the workload write less")
    })
}

impl Duties for StudyWorker {
    fn plan(
        &self,
        connection: &Arc<Connection>,
        assignment: Assignment,
    ) -> Result<PlanAnswer, WorkerRefusal> {
        let (context, _, part) = received(connection, &assignment)?;
        let plan = preflight::plan(&context, &part, true)?;
        Ok(PlanAnswer {
            json: serde_json::to_value(&plan).unwrap_or_default(),
            text: plan.render(stackrace_study::plan::COLUMNS) + &preflight::dangers_text(&part),
            refused: plan.problems().next().is_some(),
        })
    }

    fn clean(
        &self,
        connection: &Arc<Connection>,
        store: PathBuf,
        peers: Vec<PeerAddress>,
        asked: AskedCleaning,
    ) -> Result<CleanAnswer, WorkerRefusal> {
        let context = Context {
            named_by: asked.named_by,
            ..context(connection, &store, peers)
        };
        let cleaned = clean::clean(
            &context,
            // The studies of these runs are on record at the machine that commands this one.
            clean::Cleaning {
                list: asked.list,
                allow_commands: false,
            },
        )?;
        Ok(CleanAnswer {
            lines: cleaned.iter().map(ToString::to_string).collect(),
            left: cleaned.iter().any(clean::Cleaned::is_left_alone),
        })
    }

    fn turns(
        &self,
        connection: &Arc<Connection>,
        assignment: Assignment,
        task: Task,
    ) -> Result<(), WorkerRefusal> {
        let (context, study, part) = received(connection, &assignment)?;
        match assignment.cut {
            // Disks bear what this run made: nothing is made on them now.
            Some(RealCut::After) => preflight::check_machine(&context, &part)?,
            _ => preflight::check(&context, &part, &assignment.wipe)?,
        }
        // Only a guest has one.
        let captures = study.crash.is_some() && assignment.cut.is_none();
        let window = captures.then(window::open).transpose();
        let window = window.map_err(Failure::internal)?;
        let package = window.as_ref().map(brought_along).transpose()?.flatten();
        if window.is_some() && package.is_none() {
            drives::keep_logs();
        }
        let interrupt = Arc::new(Interrupt::default());
        let reporter = TurnReporter(task.replies);
        let host = context.host(reporter.commands());
        let said = reporter.clone();
        let stream = || Arc::new(LedgerStream::new(Box::new(move |reply| said.say(reply))));
        let told = assignment.cut.is_some().then(stream);
        temporary::work(&context, &host, |journal, id| {
            journal_directories(&context.peers, &host, journal)?;
            let environment = observe::environment();
            reporter
                .say(TurnReply::Ready { environment })
                .map_err(lost)?;
            let mut executor = LocalExecutor {
                study: &study,
                tell: &|event| reporter.happened(event),
                host: &host,
                peers: &context.peers,
                clients: assignment.clients.map(|clients| ClientsReached {
                    clients,
                    connection: Arc::clone(connection),
                }),
                machine: assignment.called,
                journal,
                scratch: temporary::dir(&context, id)?.join("mnt"),
                clock: Arc::new(SystemClock),
                watcher: &reporter,
                interrupt: Arc::clone(&interrupt),
                execution: format!("{id}-{:04x}", entropy() & 0xffff),
                wipe: assignment.wipe,
                first_look: LocalExecutor::first_look(&study, &host),
                standing: Vec::new(),
                crash: CrashSide {
                    package,
                    told: told.clone(),
                    ..CrashSide::default()
                },
                lost: RefCell::default(),
            };
            let turns = asked_for(task.requests, interrupt, told);
            execute_all(&mut executor, turns, &reporter).map_err(lost)?;
            match (window, executor.crash.captured.take()) {
                (Some(window), Some(capture)) => leave_behind(&window, capture),
                _ => Ok(()),
            }
        })?;
        Ok(reporter.say(TurnReply::Closed).map_err(lost)?)
    }

    fn take(&self, directories: &[PathBuf]) -> Vec<String> {
        let (taken, others) = TakenDirs::take(directories.iter().map(PathBuf::as_path));
        *self.taken.lock() = taken;
        others
    }

    fn phases(&self, order: &PhaseOrder, task: Task) {
        // With a seat it is a client, without one a peer.
        serve(order, &self.grounds, task);
    }
}
