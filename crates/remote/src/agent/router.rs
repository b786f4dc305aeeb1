//! The coordinator between its workers: it alone can reach all of them.
//!
//! Only the machine the user sits at has keys. A frame that a worker addresses to a peer comes here,
//! and goes on over the peer's own connection with the number of the machine that sent it: a worker
//! cannot speak in another one's name.

use super::connection::{Carrier, Connection, WhyLost, refused};
use super::frame::{FrameKind, WireFrame};
use super::message::{FIRST, WorkerReply};
use parking_lot::Mutex;
use stackrace_base::time::{Clock, SystemClock};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The machines of one stack.
pub struct Router {
    machines: Mutex<BTreeMap<u32, MachineLink>>,
    /// Time a machine that is lost may take to come back.
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
    pub fn new(patience: Duration) -> Arc<Self> {
        Arc::new(Self {
            machines: Mutex::default(),
            patience,
        })
    }

    /// Connects the machine of a number over a stream, or connects it again after it came back.
    pub fn connect(
        self: &Arc<Self>,
        machine: u32,
        reader: impl Read + Send + 'static,
        writer: impl Write + Send + 'static,
        why_lost: WhyLost,
    ) -> Arc<Connection> {
        let carrier: Arc<dyn Carrier> = Arc::<Self>::clone(self);
        let connection = Connection::to_worker(carrier, machine, writer, why_lost);
        let there = MachineLink::There(Arc::downgrade(&connection));
        // Before the first frame is read: its sender must be known.
        self.machines.lock().insert(machine, there);
        connection.start(reader);
        connection
    }

    fn connection(&self, machine: u32) -> Option<Arc<Connection>> {
        match self.machines.lock().get(&machine)? {
            MachineLink::There(connection) => connection.upgrade(),
            MachineLink::Lost { .. } => None,
        }
    }

    fn undelivered(&self, machine: u32) -> WorkerReply {
        // A guest whose power was cut comes back by itself within this time; a machine that stays
        // away does not.
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

    /// Tells a machine what became of its request; if its connection is lost too, nothing waits there.
    fn answer(&self, from: u32, request: &WireFrame, reply: &WorkerReply) {
        let reply = WireFrame::new(
            FrameKind::Reply,
            request.machine,
            request.conversation,
            reply,
        );
        // A machine that is gone by now no longer waits for its answer.
        if let (Ok(reply), Some(connection)) = (reply, self.connection(from)) {
            let _ = connection.write(&reply);
        }
    }
}

impl Carrier for Router {
    fn forward(&self, from: u32, frame: WireFrame) {
        let to = frame.machine;
        // The first machine may be the user's own: a peer that could ask it would command it.
        if frame.kind == FrameKind::Request && from != FIRST {
            let reply = refused("Only the first machine of a stack asks others.");
            return self.answer(from, &frame, &reply);
        }
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
        let asked = WireFrame {
            machine: to,
            ..forwarded
        };
        self.answer(from, &asked, &self.undelivered(to));
    }

    fn lost(&self, machine: u32, connection: &Connection, why: &str) {
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

/// Frames the first machine of a stack gets when a peer sends these bytes. For the checks of what comes from outside.
#[cfg(any(test, feature = "testing"))]
pub fn forwarded(bytes: &[u8]) -> Vec<WireFrame> {
    use super::connection::ConnectionError;

    /// Keeps what is written.
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let router = Router::new(Duration::ZERO);
    let got = Arc::new(Mutex::new(Vec::new()));
    let to = |machine, kept| {
        let carrier: Arc<dyn Carrier> = Arc::<Router>::clone(&router);
        let why: WhyLost = Box::new(|_| ConnectionError::new("lost"));
        let connection = Connection::to_worker(carrier, machine, Kept(kept), why);
        let there = MachineLink::There(Arc::downgrade(&connection));
        router.machines.lock().insert(machine, there);
        connection
    };
    let (_first, peer) = (to(FIRST, Arc::clone(&got)), to(FIRST + 1, Arc::default()));
    peer.listen(bytes);
    let (got, mut frames) = (got.lock(), Vec::new());
    let mut rest = got.as_slice();
    while let Ok(Some(frame)) = WireFrame::read(&mut rest) {
        frames.push(frame);
    }
    frames
}
