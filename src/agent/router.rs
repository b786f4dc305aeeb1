//! The coordinator between its workers: it alone can reach all of them.
//!
//! Only the machine the user sits at has keys. A frame that a worker addresses to a peer comes here,
//! and goes on over the peer's own connection with the number of the machine that sent it: a worker
//! cannot speak in another one's name.

use super::connection::Connection;
use super::frame::{FrameKind, WireFrame};
use super::message::WorkerReply;
use crate::time::{Clock, SystemClock};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The machines of one stack.
pub(crate) struct Router {
    machines: Mutex<BTreeMap<u32, MachineLink>>,
    /// How long a machine that is lost may take to come back.
    patience: Duration,
}

/// A machine with its connection, or why and since when it has none.
enum MachineLink {
    There(Weak<Connection>),
    Lost { why: String, since_ns: u64 },
}

impl Router {
    /// Machines that may come back within some time: guests start again, a connection over SSH does
    /// not.
    pub(crate) fn new(patience: Duration) -> Arc<Self> {
        Arc::new(Self {
            machines: Mutex::default(),
            patience,
        })
    }

    /// Adds a machine, or its connection after it came back.
    pub(super) fn attach(&self, machine: u32, connection: &Arc<Connection>) {
        let there = MachineLink::There(Arc::downgrade(connection));
        self.machines.lock().insert(machine, there);
    }

    fn connection(&self, machine: u32) -> Option<Arc<Connection>> {
        match self.machines.lock().get(&machine)? {
            MachineLink::There(connection) => connection.upgrade(),
            MachineLink::Lost { .. } => None,
        }
    }

    /// Carries a frame from one machine to the one it names.
    pub(super) fn forward(&self, from: u32, frame: WireFrame) {
        let to = frame.machine;
        let forwarded = WireFrame {
            machine: from,
            ..frame
        };
        let delivered = self
            .connection(to)
            .is_some_and(|connection| connection.write(&forwarded).is_ok());
        // Only a request waits for something.
        if delivered || forwarded.kind != FrameKind::Request {
            return;
        }
        let reply = self.undelivered(to);
        let reply = WireFrame::new(FrameKind::Reply, to, forwarded.conversation, &reply);
        if let (Ok(reply), Some(connection)) = (reply, self.connection(from)) {
            // If that connection is lost as well, nothing waits there any more.
            let _ = connection.write(&reply);
        }
    }

    fn undelivered(&self, machine: u32) -> WorkerReply {
        let (why, may_return) = match self.machines.lock().get(&machine) {
            Some(MachineLink::Lost { why, since_ns }) => {
                let gone_ns = u128::from(SystemClock.now_ns().saturating_sub(*since_ns));
                (why.clone(), gone_ns < self.patience.as_nanos())
            }
            Some(MachineLink::There(_)) => ("the connection is lost".to_owned(), false),
            None => (format!("there is no machine of number {machine}"), false),
        };
        WorkerReply::Undelivered { why, may_return }
    }

    /// A machine's connection is lost: what the others began with it fails.
    pub(super) fn lost(&self, machine: u32, connection: &Connection, why: &str) {
        let others: Vec<u32> = {
            let mut machines = self.machines.lock();
            let lost = MachineLink::Lost {
                why: why.to_owned(),
                since_ns: SystemClock.now_ns(),
            };
            // A machine that came back has another connection by now.
            let current = match machines.get(&machine) {
                Some(MachineLink::There(current)) => std::ptr::eq(current.as_ptr(), connection),
                _ => true,
            };
            if current {
                machines.insert(machine, lost);
            }
            machines
                .keys()
                .copied()
                .filter(|other| *other != machine)
                .collect()
        };
        let Ok(frame) = WireFrame::new(FrameKind::Lost, machine, 0, &why) else {
            return;
        };
        for other in others {
            if let Some(connection) = self.connection(other) {
                // A machine that cannot be told is lost itself.
                let _ = connection.write(&frame);
            }
        }
    }
}
