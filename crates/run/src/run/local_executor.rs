//! What this machine needs to execute turns.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::crash::CrashSide;
use super::executor::{Broken, Watcher};
use stackrace_base::event::{Event, StorageIdentity};
use stackrace_base::interrupt::Interrupt;
use stackrace_base::time::Clock;
use stackrace_layers::stack::StandingStack;
use stackrace_load::workload::KeptData;
use stackrace_machine::host::Host;
use stackrace_machine::journal::Journal;
use stackrace_remote::agent::connection::Connection;
use stackrace_remote::agent::message::Clients;
use stackrace_remote::agent::remote_host::Peer;
use stackrace_study::study::Study;

/// Executes turns on this machine.
pub struct LocalExecutor<'a> {
    /// The question.
    pub study: &'a Study,
    /// Function that is told every event, as it happens.
    pub tell: &'a dyn Fn(Event) -> Result<(), Broken>,
    /// Host on which stacks live.
    pub host: &'a dyn Host,
    /// Its peers, which may measure in step with it.
    pub peers: &'a [Peer],
    /// The clients that measure in its place, itself among them; `None` if it measures.
    pub clients: Option<ClientsReached>,
    /// Name of this machine on the command line, if it is another one than it was typed at.
    pub machine: Option<String>,
    /// Journal of what exists because of us.
    pub journal: &'a Journal,
    /// Directory in which mount points are made.
    pub scratch: PathBuf,
    /// Clock that time comes from.
    pub clock: Arc<dyn Clock>,
    /// Watcher that is told what begins, and what went wrong.
    pub watcher: &'a dyn Watcher,
    /// Interrupt that stops it.
    pub interrupt: Arc<Interrupt>,
    /// Distinguishes the stacks of this execution from those of an earlier one of the same run.
    pub execution: String,
    /// Ids of devices that may be wiped, repeated on the command line.
    pub wipe: Vec<String>,
    /// What each configuration lay on before any was set up: see [`Self::first_look`].
    pub first_look: Vec<Vec<StorageIdentity>>,
    /// Stacks that stand from one turn to the next.
    pub standing: Vec<KeptStack>,
    /// The client that was lost in this turn, and why; `None` if all are there.
    pub lost: RefCell<Option<String>>,
    /// Data that power cuts need.
    pub crash: CrashSide,
}

/// The clients of a storage, and the way to them.
pub struct ClientsReached {
    /// Names and places of the clients.
    pub clients: Clients,
    /// Connection to the coordinator, through which all of them are reached.
    pub connection: Arc<Connection>,
}

/// A stack that stands from one turn to the next.
pub struct KeptStack {
    /// Configuration by index.
    pub configuration: usize,
    /// The round in which it was set up, from 1.
    pub since: u32,
    /// Its layers, and how they are torn down.
    pub stack: StandingStack,
    /// Data that lie on it for the next trial, by workload.
    pub data: RefCell<BTreeMap<usize, KeptData>>,
}
