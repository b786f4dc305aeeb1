//! A worker: this program on another machine, in a guest, or in this very process. It does what the
//! coordinator asks, and what the other workers of the stack ask through it.
//!
//! When the connection to the coordinator is lost, a worker ends what it does: a turn is interrupted
//! and torn down, because nothing is left that could end it later.

use super::connection::{Closing, Connection, ConnectionError, Service, Task};
use super::message::{
    Assignment, CleanAnswer, ExecRequest, HEARTBEAT, PORT, PeerAddress, PhaseOrder, PhaseRequest,
    PlanAnswer, TurnRequest, WorkerReply, WorkerRequest,
};
use super::polled::{GuestOrders, ORDERS_NAME, PolledWriter};
use super::router::Router;
use serde::Serialize;
use stackrace_base::failure::Failure;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit::{InWords, ShownPath};
use stackrace_machine::host::verb::{self, RemoteError};
use stackrace_machine::host::{Host, HostError, local::LocalHost};
use stackrace_system::port::OutputPort;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Time a coordinator may be silent that says something every [`HEARTBEAT`], until it counts as lost.
const SILENCE: Duration = Duration::from_secs(120);

/// Time turns and phases may take to end when the coordinator is lost. What hangs longer cannot be
/// ended, and `clean` finds what it left.
const PATIENCE: Duration = Duration::from_secs(600);

/// File where the kernel shows what QEMU was started with.
const ORDERS_FILE: &str = "/sys/firmware/qemu_fw_cfg/by_name";

/// Interval at which it is checked whether they have ended, or whether a port was opened.
const LOOK: Duration = Duration::from_millis(20);

/// A refusal of what a worker was asked.
pub struct WorkerRefusal {
    /// The exit code of a command that is refused like this.
    pub code: u8,
    /// Error of the worker.
    pub text: String,
    /// Advice on it.
    pub next: String,
}

impl From<Failure> for WorkerRefusal {
    fn from(failure: Failure) -> Self {
        let code = failure.exit_code();
        let (text, next) = failure.into_parts();
        Self { code, text, next }
    }
}

impl WorkerRefusal {
    /// The program itself could not go on.
    fn internal(text: impl Into<String>) -> Self {
        Self {
            code: 1,
            text: text.into(),
            next: String::new(),
        }
    }
}

/// Request for a worker to clean.
#[derive(Debug, Clone)]
pub struct AskedCleaning {
    /// True to say only what would be undone.
    pub list: bool,
    /// Options of the command line that name the machine; empty if it is the one that is typed at.
    pub named_by: Vec<String>,
}

/// Duties of a worker with studies; the package of places knows how.
pub trait Duties: Send + Sync + 'static {
    /// Says what a study would do on this machine.
    ///
    /// # Errors
    /// The study cannot be read, or there is no place for a journal.
    fn plan(
        &self,
        connection: &Arc<Connection>,
        assignment: Assignment,
    ) -> Result<PlanAnswer, WorkerRefusal>;

    /// Undoes what dead runs left.
    ///
    /// # Errors
    /// The store cannot be read.
    fn clean(
        &self,
        connection: &Arc<Connection>,
        store: PathBuf,
        peers: Vec<PeerAddress>,
        asked: AskedCleaning,
    ) -> Result<CleanAnswer, WorkerRefusal>;

    /// Keeps other runs out of directories as long as this worker lives; a sentence for each that another
    /// run has.
    fn take(&self, directories: &[PathBuf]) -> Vec<String>;

    /// Executes turns until the conversation ends.
    ///
    /// # Errors
    /// The study cannot run on this machine.
    fn turns(
        &self,
        connection: &Arc<Connection>,
        assignment: Assignment,
        task: Task,
    ) -> Result<(), WorkerRefusal>;

    /// Measures in step with the machine that asks.
    fn phases(&self, order: &PhaseOrder, task: Task);
}

/// The service of a worker.
struct Worker<D> {
    duties: D,
    /// Number of turns and phases that go on: the process must not end before them.
    going_on: AtomicUsize,
}

impl<D: Duties> Service for Worker<D> {
    fn serve(&self, connection: &Arc<Connection>, first: WorkerRequest, task: Task) {
        let replies = task.replies.clone();
        let served = match first {
            // A command may hang: it is not waited for. `clean` finds it by its run.
            WorkerRequest::Exec(request) => {
                let reply = self.exec(connection, request);
                // Where the coordinator is lost nothing more can be said.
                return drop(replies.send(&reply));
            }
            WorkerRequest::Turn(TurnRequest::Open(assignment)) => {
                let _going_on = GoingOn::count(&self.going_on);
                self.duties.turns(connection, *assignment, task)
            }
            WorkerRequest::Phase(PhaseRequest::Prepare(order)) => {
                let _going_on = GoingOn::count(&self.going_on);
                self.duties.phases(&order, task);
                Ok(())
            }
            WorkerRequest::Hello
            | WorkerRequest::Clocks
            | WorkerRequest::Turn(_)
            | WorkerRequest::Phase(_) => Err(WorkerRefusal::internal("This conversation is over.")),
        };
        if let Err(refusal) = served {
            let _ = replies.send(&refused(refusal));
        }
    }
}

/// Counts what goes on, also where it panics.
struct GoingOn<'a>(&'a AtomicUsize);

impl<'a> GoingOn<'a> {
    fn count(counter: &'a AtomicUsize) -> Self {
        counter.fetch_add(1, Ordering::SeqCst);
        Self(counter)
    }
}

impl Drop for GoingOn<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn refused(WorkerRefusal { code, text, next }: WorkerRefusal) -> WorkerReply {
    WorkerReply::Refused { code, text, next }
}

fn value(answer: Result<impl Serialize, WorkerRefusal>) -> WorkerReply {
    match answer {
        Ok(answer) => match serde_json::to_value(answer) {
            Ok(value) => WorkerReply::Value(value),
            Err(error) => refused(WorkerRefusal::internal(error.to_string())),
        },
        Err(refusal) => refused(refusal),
    }
}

impl<D: Duties> Worker<D> {
    fn new(duties: D) -> Arc<Self> {
        Arc::new(Self {
            duties,
            going_on: AtomicUsize::new(0),
        })
    }

    fn exec(&self, connection: &Arc<Connection>, request: ExecRequest) -> WorkerReply {
        let host = LocalHost::new(Arc::new(|_| ()));
        let failed = |error: HostError| WorkerReply::Failed(RemoteError::of(&error));
        match request {
            ExecRequest::Command { argv, run } => {
                if let Some(run) = run {
                    host.belong_to(&run);
                }
                let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
                host.exec(&argv).map_or_else(failed, WorkerReply::Output)
            }
            ExecRequest::Operation(verb) => {
                verb::perform(&host, verb).map_or_else(failed, WorkerReply::Value)
            }
            ExecRequest::Plan { assignment } => value(self.duties.plan(connection, assignment)),
            ExecRequest::Clean {
                store,
                peers,
                list,
                named_by,
            } => {
                let asked = AskedCleaning { list, named_by };
                value(self.duties.clean(connection, store, peers, asked))
            }
            ExecRequest::Take { directories } => {
                value(Ok::<_, WorkerRefusal>(self.duties.take(&directories)))
            }
        }
    }

    /// Waits until what was interrupted has ended.
    fn finish(&self) {
        let began = SystemClock.now_ns();
        let waited = || u128::from(SystemClock.now_ns().saturating_sub(began));
        while self.going_on.load(Ordering::SeqCst) > 0 && waited() < PATIENCE.as_nanos() {
            SystemClock.sleep(LOOK);
        }
    }
}

/// Works in this very process, as the first machine of a stack.
///
/// # Errors
/// The system's.
pub fn here(duties: impl Duties, router: &Arc<Router>) -> std::io::Result<Arc<Connection>> {
    connect(duties, router, 1, "The worker in this process ended.")
}

/// A worker on threads of this process, as the machine of a number; `lost` is said when it has ended.
pub(super) fn connect(
    duties: impl Duties,
    router: &Arc<Router>,
    machine: u32,
    lost: &'static str,
) -> std::io::Result<Arc<Connection>> {
    let (ours, theirs) = UnixStream::pair()?;
    let reader = theirs.try_clone()?;
    let worker = Connection::to_coordinator(Closing(theirs), Worker::new(duties));
    std::thread::spawn(move || worker.listen(reader));
    let reader = ours.try_clone()?;
    let why = Box::new(move |_: Option<&str>| ConnectionError::new(lost));
    Ok(router.connect(machine, reader, Closing(ours), why))
}

/// Works in a guest until the coordinator is gone. The guest ends with it.
///
/// # Errors
/// There is no port, or it fails.
pub fn guest(duties: impl Duties) -> Result<(), String> {
    let path = port()?;
    let failed =
        |error: std::io::Error| format!("{}: {error}", path.shown(), error = error.in_words());
    let file = File::options().read(true).write(true).open(&path);
    let file = file.map_err(failed)?;
    let worker = Worker::new(duties);
    let connection = Connection::to_coordinator(file.try_clone().map_err(failed)?, worker);
    let mut reader = BufReader::new(file);
    // As long as the other end of the port is closed, reading says that the stream has ended.
    while reader.fill_buf().map_err(failed)?.is_empty() {
        SystemClock.sleep(LOOK);
    }
    connection.listen(reader);
    Ok(())
}

/// Works in a guest in virtual time, as its orders say; false: it has none.
///
/// # Errors
/// The orders cannot be read, or there is no port to answer on.
pub fn virtual_guest(duties: impl Duties) -> Result<bool, String> {
    let path = Path::new(ORDERS_FILE).join(ORDERS_NAME).join("raw");
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.shown());
    let text = match std::fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        read => read.map_err(|error| failed(&error.in_words()))?,
    };
    let orders: GuestOrders = serde_json::from_slice(&text).map_err(|error| failed(&error))?;
    // Before any thread is started: each of them inherits the right to the port.
    let port = OutputPort::open()
        .map_err(|error| format!("no port: {error}", error = error.in_words()))?;
    let worker = Worker::new(duties);
    let service: Arc<dyn Service> = Arc::<Worker<_>>::clone(&worker);
    let connection = Connection::to_coordinator(PolledWriter(port), service);
    SystemClock.sleep(Duration::from_nanos(orders.delay_ns));
    let (sender, requests) = channel();
    let mut asked = orders.requests.into_iter();
    let Some(first) = asked.next() else {
        return Ok(true);
    };
    for request in asked {
        // The receiver is below: nothing can be lost.
        let _ = sender.send(request);
    }
    let replies = connection.replies_unasked();
    worker.serve(&connection, first, Task { replies, requests });
    Ok(true)
}

/// Works over standard input and output until the coordinator is gone, or was silent for so long (two
/// minutes unless it is said); returns when nothing goes on any more.
pub fn stdio(duties: impl Duties, silence: Option<Duration>) {
    let silence = silence.unwrap_or(SILENCE);
    let worker = Worker::new(duties);
    let service: Arc<dyn Service> = Arc::<Worker<_>>::clone(&worker);
    let connection = Connection::to_coordinator(std::io::stdout(), service);
    let (watched, waited_for) = (Arc::clone(&connection), Arc::clone(&worker));
    std::thread::spawn(move || {
        // A network that is cut says nothing, and the reading never ends.
        while u128::from(watched.silent_ns()) < silence.as_nanos() {
            SystemClock.sleep(HEARTBEAT.min(silence / 4));
        }
        watched.end(None);
        waited_for.finish();
        std::process::exit(1);
    });
    connection.listen(std::io::stdin());
    worker.finish();
}

/// The serial port of our name.
fn port() -> Result<PathBuf, String> {
    let class = Path::new("/sys/class/virtio-ports");
    let names = std::fs::read_dir(class).map_err(|error| {
        format!(
            "no serial port: {}: {error}",
            class.shown(),
            error = error.in_words()
        )
    })?;
    let found = names.flatten().find(|entry| {
        std::fs::read_to_string(entry.path().join("name")).is_ok_and(|name| name.trim() == PORT)
    });
    found
        .map(|entry| Path::new("/dev").join(entry.file_name()))
        .ok_or_else(|| format!("no serial port is called {PORT}: this is not a guest of the lab"))
}
