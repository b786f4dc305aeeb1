//! Every message between machines, in one place. `docs/formats/wire.md` is the page about it.
//!
//! A coordinator and its workers speak in *conversations*: one side opens one with a [`WorkerRequest`], may
//! send further requests in it, and gets one or more [`WorkerReply`]s, of which the last one says so
//! ([`WorkerReply::is_last`]). There are three verbs: `exec` does one thing on a machine, `turn` carries out
//! the trials of one configuration in one round, `phase` lets a peer measure in step.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stackrace_base::event::{
    Counted, Decide, Event, ExchangedStorage, Fact, FailureCause, PhaseObservation, Promised,
    StorageIdentity,
};
use stackrace_machine::host::Output;
use stackrace_machine::host::verb::{RemoteError, Verb};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Number of the coordinator among the machines of a stack; the first machine is 1, its peers follow.
pub const COORDINATOR: u32 = 0;

/// Number of the first machine: it alone asks others of its stack, and none of them asks it.
pub(super) const FIRST: u32 = 1;

/// Interval at which a coordinator says [`WorkerRequest::Hello`] over a connection whose worker
/// listens for silence.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);

/// Name of a guest's serial port, inside and outside.
pub const PORT: &str = "stackrace";

/// Requests to a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkerRequest {
    /// Say that it is there: [`WorkerReply::Done`].
    Hello,
    /// Say what its clocks show: [`WorkerReply::Clocks`].
    Clocks,
    /// Do one thing.
    Exec(ExecRequest),
    /// Carry out turns.
    Turn(TurnRequest),
    /// Measure in step with the machine that asks.
    Phase(PhaseRequest),
}

/// One thing that a machine does; one reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExecRequest {
    /// Run a command to its end: [`WorkerReply::Output`].
    Command {
        /// Program and arguments.
        argv: Vec<String>,
        /// The run it belongs to, by which [`Verb::Outlive`] finds it; `None` for no run.
        run: Option<String>,
    },
    /// Do what a host does: [`WorkerReply::Value`].
    Operation(Verb),
    /// Say what a study would do there: [`WorkerReply::Value`] with a [`PlanAnswer`].
    Plan {
        /// The study and its place.
        assignment: Assignment,
    },
    /// Undo what dead runs left there: [`WorkerReply::Value`] with a [`CleanAnswer`].
    Clean {
        /// The store whose journals are read.
        store: PathBuf,
        /// Machines on which something may be left, too.
        peers: Vec<PeerAddress>,
        /// True to say only what would be undone.
        list: bool,
        /// Options of the command line that name the machine; empty if it is the one that is typed at.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        named_by: Vec<String>,
    },
    /// Keep other runs out of directories as long as the worker lives: [`WorkerReply::Value`] with a
    /// sentence for each that another run has.
    Take {
        /// Directories on the machine that is asked.
        directories: Vec<PathBuf>,
    },
}

/// A study as a worker gets it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// Directory where the worker may keep a journal.
    pub store: PathBuf,
    /// Name of the machine on the command line; `None` if it is the one that is typed at, or a guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called: Option<String>,
    /// Options of the command line that name it, with the other machines of the run where they have one option;
    /// empty if it is the one that is typed at, or a guest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named_by: Vec<String>,
    /// The other machines of its stacks, from number 2 on.
    pub peers: Vec<PeerAddress>,
    /// Name of the study.
    pub name: String,
    /// The study as it was written, in TOML.
    pub text: String,
    /// Seed of everything random.
    pub seed: u64,
    /// The question and the limits, with what the command line says of them; `None` where only trials are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decide: Option<Box<Decide>>,
    /// The level of the study's factor of places that is tried there; `None` if all of it is.
    pub place: Option<String>,
    /// Ids of disks that may be wiped there.
    pub wipe: Vec<String>,
    /// The clients that measure at once; `None` if the machine measures alone, or with the peers of
    /// its stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Clients>,
    /// True if the second machine of its stacks is in the kernel of the first, as in virtual time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_kernel: bool,
    /// Side of a real power cut that the worker is on; `None` if no power is really cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<RealCut>,
}

/// A worker on a machine whose power is really cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RealCut {
    /// The worker measures until the cut.
    Before,
    /// The worker finds out what is left. Disks bear what the run made.
    After,
}

/// The clients of one storage. Each process is a machine of its own to the coordinator: the first
/// process of every client by their order, then the second ones, and so on, from number 1.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clients {
    /// Their names.
    pub names: Vec<String>,
    /// Processes on each.
    pub processes: u32,
}

/// Another machine of a stack, as the first one knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerAddress {
    /// The user's name for it.
    pub name: String,
    /// Address for the stack's own traffic.
    pub address: IpAddr,
    /// The run's directory there, which is made when it is needed; `None` if it is a guest, which needs none.
    pub directory: Option<PathBuf>,
}

/// Plan of a study on a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanAnswer {
    /// For programs.
    pub json: Value,
    /// For people.
    pub text: String,
    /// True if `run` refuses it there.
    #[serde(default)]
    pub refused: bool,
}

/// Result of cleaning up what dead runs left.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanAnswer {
    /// One line for each thing.
    pub lines: Vec<String>,
    /// True if something is left: what could not be undone, or belongs to a run that is alive.
    pub left: bool,
}

/// Workers only execute turns; the coordinator draws their order and decides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TurnRequest {
    /// Check that the study can run there: [`TurnReply::Ready`]. Opens the conversation.
    Open(Box<Assignment>),
    /// Execute a turn: [`TurnReply::Executed`] after everything that happened in it.
    Execute(Turn),
    /// Execute turns of one workload each, every one of another configuration, whose trials alternate in
    /// slices: [`TurnReply::Executed`] as for one turn.
    ExecuteInSlices {
        /// Turns in the order of the first lap.
        turns: Vec<Turn>,
        /// Duration of a slice, ns.
        slice_ns: u64,
    },
    /// Cut the power of what was captured, bring the stack back, check promises; in virtual time
    /// alone: an event for each cut, then [`TurnReply::Executed`].
    Recover(RecoverOrder),
    /// Execute a turn of one workload, on a machine whose power is going to be cut meanwhile: what is
    /// planned is told first ([`TurnReply::WillPromise`]), then each [`TurnReply::Acknowledged`].
    ExecuteUntilCut(Turn),
    /// Acknowledges the plan of a trial, or one more operation of a thread.
    Heard {
        /// Number of the thread, from 0; `None` for what is planned.
        thread: Option<u32>,
    },
    /// Part of what was promised on this machine before its power was cut; [`TurnRequest::Recover`]
    /// follows.
    Keep {
        /// Common beginning of the names of the stack.
        mark: String,
        /// Lines of its ledger.
        promised: Box<Promised>,
    },
    /// End what is under way, as Ctrl-C would.
    Interrupt,
    /// Tear down what stands: [`TurnReply::Closed`].
    Close,
}

/// Trials of one configuration in one round that have no result yet: all of them, or one workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Round, from 1.
    pub round: u32,
    /// Position in the round's order, from 0.
    pub position: usize,
    /// Configuration by index.
    pub configuration: usize,
    /// Workloads by index that have no complete trial in this round yet.
    pub missing: Vec<usize>,
    /// True if the stack stays up afterwards, for another turn.
    pub keep: bool,
    /// Storage the configuration lay on when it was first set up; empty if that is not known yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lies_on: Vec<StorageIdentity>,
}

/// Cuts of the power of one configuration in one round. The window of the guest holds what its
/// drives were told to write, and what was promised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoverOrder {
    /// Round, from 1.
    pub round: u32,
    /// Configuration by index.
    pub configuration: usize,
    /// Cuts in the order in which they are made.
    pub cuts: Vec<CutOrder>,
}

/// A power cut that a worker is to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutOrder {
    /// Workload by index.
    pub workload: usize,
    /// Number of the cut within the configuration, from 1.
    pub number: u32,
    /// Seed the drives draw from.
    pub seed: u64,
    /// Time, ns, on the clock of the guest whose drives they were.
    pub at_ns: u64,
    /// Stratum the instant was drawn from.
    pub stratum: String,
}

/// Messages of a worker on its turns.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TurnReply {
    /// Everything is there for the study, and nothing has been touched.
    Ready {
        /// The machine.
        environment: Vec<Fact>,
    },
    /// A part of a trial begins; for the live view.
    Began {
        /// Round, from 1.
        round: u32,
        /// Configuration by index.
        configuration: usize,
        /// Workload by index; none while a stack is set up.
        workload: Option<usize>,
        /// Name of the part.
        part: String,
    },
    /// A warning for the user; what has to be on record comes as an event.
    Warned {
        /// One sentence.
        text: String,
    },
    /// Something happened that belongs on record.
    Happened(Box<Event>),
    /// Part of what a trial is going to be promised; nothing begins before the last part is heard
    /// ([`TurnRequest::Heard`]).
    WillPromise {
        /// Common beginning of the names of the stack.
        mark: String,
        /// Lines of the ledger; none of its operations was begun.
        promised: Box<Promised>,
        /// True if it is the last part.
        last: bool,
    },
    /// The next operation of a thread was acknowledged, or failed.
    Acknowledged {
        /// Number of the thread, from 0.
        thread: u32,
        /// Time when it was begun, ns, by the monotonic clock there.
        begun_ns: u64,
        /// Time when it was acknowledged, ns; `None` if it failed.
        acknowledged_ns: Option<u64>,
    },
    /// The turn, or the turns in slices, are over.
    Executed {
        /// Its trials were done, well or not; else it was interrupted.
        done: bool,
        /// Client that was lost meanwhile, and the reason; `None` if all are there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lost: Option<String>,
    },
    /// Nothing stands any more. The last reply.
    Closed,
}

/// The peer prepares at once; each of its phases begins when it is told to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseRequest {
    /// Prepare a workload: [`PhaseReply::Prepared`]. Opens the conversation.
    Prepare(Box<PhaseOrder>),
    /// Begin the next phase: [`PhaseReply::Measured`].
    Start,
    /// Write everything back and empty its caches: [`PhaseReply::Settled`]. Clients only.
    Settle,
    /// Set the next phase up, and wait for its start: [`PhaseReply::SetUp`]. Clients only.
    SetUp,
    /// Begin the phase that is set up at one instant: [`PhaseReply::Measured`]. Clients only.
    StartAt {
        /// Time by the monotonic clock of the machine that is told, ns.
        at_ns: u64,
    },
    /// End what is under way: [`PhaseReply::Ended`].
    Stop,
}

/// The workload a peer runs beside the first machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseOrder {
    /// Name of the study.
    pub name: String,
    /// The study as it was written, in TOML.
    pub text: String,
    /// Configuration by index.
    pub configuration: usize,
    /// Workload by index.
    pub workload: usize,
    /// The trial's directory there.
    pub directory: PathBuf,
    /// Seed of its data and offsets: another one than that of the first machine. Of clients: the one that
    /// they have in common.
    pub seed: u64,
    /// Seat among the clients of one storage; `None` if it is a machine of a stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seat: Option<ClientSeat>,
}

/// Place among the processes that measure one storage at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientSeat {
    /// Its number among them, from 0. It changes from round to round.
    pub rank: u32,
    /// Number of processes.
    pub of: u32,
    /// True if caches are to be emptied before a phase.
    pub cold: bool,
}

/// Messages of a peer on a workload.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseReply {
    /// The first phase may begin.
    Prepared,
    /// A phase is over.
    Measured {
        /// The peer's measurement.
        observation: Box<PhaseObservation>,
        /// The trial's metrics; they come with the last phase.
        metrics: Vec<Option<f64>>,
        /// Time the program there was stopped or had no processor meanwhile, ns.
        paused_ns: u64,
        /// Time the machine was suspended meanwhile, ns.
        suspended_ns: u64,
        /// Time when it began, by the monotonic clock there, ns; 0 if not known.
        #[serde(default)]
        began_ns: u64,
        /// Counters of a client's system meanwhile; `None` if it is no client.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        counted: Option<Box<Counted>>,
    },
    /// A client's caches are empty.
    Settled {
        /// Way of emptying them: `drop_caches`, `advice` or `none`.
        caches: String,
    },
    /// A client's phase is set up, and waits for its start.
    SetUp,
    /// The workload failed.
    Failed {
        /// Reason for a person.
        said: String,
        /// Cause as the system gave it there; `None` if it is none of the system's.
        cause: Option<FailureCause>,
    },
    /// The storage that this machine sees is another one than before.
    Exchanged {
        /// Storage that was there, and that is there.
        storage: Box<ExchangedStorage>,
        /// Failure that most likely is because of that; `None` if nothing failed yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effect: Option<String>,
    },
    /// Nothing of it goes on any more. The last reply.
    Ended,
}

/// Answers of a machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkerReply {
    /// Success: the request is done, and there is nothing to say of it.
    Done,
    /// Readings of its clocks.
    Clocks {
        /// The monotonic clock, ns since some moment of its own.
        monotonic_ns: u64,
        /// The wall clock, ns since 1970.
        unix_ns: u64,
    },
    /// A command ended.
    Output(Output),
    /// Answer of a host.
    Value(Value),
    /// A host could not do it.
    Failed(RemoteError),
    /// Refusal, or failure of this program there to go on.
    Refused {
        /// The exit code it would have had as a command.
        code: u8,
        /// Error of the refusal.
        text: String,
        /// Advice on it.
        next: String,
    },
    /// The coordinator cannot reach the machine that was asked; nothing was done there.
    Undelivered {
        /// Reason that it did not arrive.
        why: String,
        /// True if the machine may come back soon.
        may_return: bool,
    },
    /// Message of a turn while it goes on, and at its end.
    Turn(TurnReply),
    /// Message of a phase while it goes on, and at its end.
    Phase(PhaseReply),
}

impl WorkerReply {
    /// Returns true if nothing follows in the same conversation.
    pub fn is_last(&self) -> bool {
        match self {
            Self::Turn(reply) => matches!(reply, TurnReply::Closed),
            Self::Phase(reply) => matches!(reply, PhaseReply::Ended),
            _ => true,
        }
    }
}
