//! `--agent none`: this program works as the worker of a machine that has nothing but a shell. It sits
//! here, and everything it does happens there.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::place::shell::marks;
use crate::place::shell::store;
use crate::place::shell::study;
use crate::place::taken;
use crate::place::worker::{lost, received};
use stackrace_base::failure::Failure;
use stackrace_base::time::SystemClock;
use stackrace_remote::agent::connection::{Connection, Task};
use stackrace_remote::agent::message::{
    Assignment, CleanAnswer, PeerAddress, PhaseOrder, PlanAnswer, TurnReply,
};
use stackrace_remote::agent::shell::ShellHost;
use stackrace_remote::agent::worker::{AskedCleaning, Duties, WorkerRefusal};
use stackrace_run::prepare::preflight;
use stackrace_run::run::crash::CrashSide;
use stackrace_run::run::turns::{TurnReporter, asked_for, execute_all};
use stackrace_run::run::{Interrupt, LocalExecutor};

/// The worker of such a machine.
pub struct ShellWorker {
    /// The machine.
    pub host: Arc<ShellHost>,
}

/// Directory of the run as a plan names it.
const PLANNED: &str = ".stackrace-{id}";

impl Duties for ShellWorker {
    fn plan(
        &self,
        connection: &Arc<Connection>,
        assignment: Assignment,
    ) -> Result<PlanAnswer, WorkerRefusal> {
        let (_, _, part) = received(connection, &assignment)?;
        study::check(&part)?;
        let host = &*self.host;
        let base = host.temporary();
        let base = base.map_err(|error| Failure::unable(error.to_string()).next(error.next()))?;
        let plan = preflight::plan_there(host, &base.join(PLANNED), &part)?;
        let facts = host.facts().iter();
        let facts: String = facts
            .map(|fact| format!("  {}: {}\n", fact.name, fact.value))
            .collect();
        Ok(PlanAnswer {
            json: serde_json::to_value(&plan).unwrap_or_default(),
            text: format!(
                "{}\nOver the machine's own shell\n{facts}",
                plan.render(stackrace_study::plan::COLUMNS)
            ),
            refused: plan.problems().next().is_some(),
        })
    }

    fn clean(
        &self,
        _connection: &Arc<Connection>,
        _store: PathBuf,
        _peers: Vec<PeerAddress>,
        _asked: AskedCleaning,
    ) -> Result<CleanAnswer, WorkerRefusal> {
        // Its journals are here: `shell_store` reads them without asking a worker.
        Ok(CleanAnswer::default())
    }

    fn turns(
        &self,
        connection: &Arc<Connection>,
        assignment: Assignment,
        task: Task,
    ) -> Result<(), WorkerRefusal> {
        let (context, study, part) = received(connection, &assignment)?;
        study::check(&part)?;
        let host = &*self.host;
        preflight::check_there(host, &part)?;
        let interrupt = Arc::new(Interrupt::default());
        let reporter = TurnReporter(task.replies);
        host.tell(reporter.commands());
        store::work(&context, host, &assignment, |journal, id, there: &Path| {
            let directories = taken::directories(&study);
            marks::leave(host, journal, &directories, id)?;
            let environment = host.facts().to_vec();
            reporter
                .say(TurnReply::Ready { environment })
                .map_err(lost)?;
            let mut executor = LocalExecutor {
                study: &study,
                tell: &|event| reporter.happened(event),
                host,
                peers: &[],
                clients: None,
                machine: Some(host.to().to_string()),
                journal,
                // FreeBSD before 12 mounts at paths of at most 87 bytes (MNAMELEN): nothing longer is made.
                scratch: there.to_path_buf(),
                clock: Arc::new(SystemClock),
                watcher: &reporter,
                interrupt: Arc::clone(&interrupt),
                // Its journal and its directory are of this execution alone.
                execution: "s".to_owned(),
                wipe: Vec::new(),
                first_look: LocalExecutor::first_look(&study, host),
                standing: Vec::new(),
                crash: CrashSide::default(),
                lost: RefCell::default(),
            };
            let turns = asked_for(task.requests, interrupt, None);
            execute_all(&mut executor, turns, &reporter).map_err(lost)
        })?;
        Ok(reporter.say(TurnReply::Closed).map_err(lost)?)
    }

    fn take(&self, directories: &[PathBuf]) -> Vec<String> {
        // The marks of this run are left as soon as there is a journal.
        marks::others(&*self.host, directories)
    }

    fn phases(&self, _order: &PhaseOrder, task: Task) {
        // A stack over several machines was refused before: nothing measures in step here.
        drop(task);
    }
}
