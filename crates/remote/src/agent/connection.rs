//! One end of a connection: conversations multiplexed over one stream of bytes.

use super::frame::{FrameKind, MESSAGE_MAX, WireFrame};
use super::message::{COORDINATOR, WorkerReply, WorkerRequest};
use parking_lot::Mutex;
use serde::Serialize;
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit::InWords;
use std::collections::HashMap;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Reason there is no connection to a machine any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct ConnectionError {
    /// The event that ended it.
    pub why: String,
    /// Advice for the user.
    pub next: String,
}

impl ConnectionError {
    /// One about which nothing can be done.
    pub fn new(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            next: String::new(),
        }
    }
}

/// Says why a connection is lost. It is told what this end knows; `None` if the stream has ended.
pub type WhyLost = Box<dyn Fn(Option<&str>) -> ConnectionError + Send + Sync>;

/// Does what a worker is asked. Every conversation has a thread of its own, so that nothing has to
/// wait for a command that takes long.
pub trait Service: Send + Sync {
    /// Answers a request, and what follows it in its conversation.
    fn serve(&self, connection: &Arc<Connection>, first: WorkerRequest, task: Task);
}

/// Carries frames between the machines of a stack.
pub(super) trait Carrier: Send + Sync {
    /// Carries a frame from one machine to the one it names.
    fn forward(&self, from: u32, frame: WireFrame);

    /// A machine's connection is lost: what the others began with it fails.
    fn lost(&self, machine: u32, connection: &Connection, why: &str);
}

/// Role of an end: its answer to what it has no conversation for.
enum Role {
    /// A worker does what it is asked.
    Worker(Arc<dyn Service>),
    /// A coordinator carries frames between the workers; this one's number among them.
    Coordinator(Arc<dyn Carrier>, u32),
}

/// Machine and number of a conversation. Requests and replies have different tables, as both ends
/// choose numbers.
type Key = (u32, u64);

/// Most bytes of the replies that one conversation has not taken yet. It takes them as they come: a
/// machine that sends so many says more than anything here asked for.
const WAITING_MAX: usize = MESSAGE_MAX;

/// Queue where the replies of a conversation wait for it.
struct Inbox {
    sender: Sender<Incoming>,
    /// Bytes of the messages that wait.
    waiting: Arc<AtomicUsize>,
}

/// A reply with the bytes it had as a message, or why there will be none.
type Incoming = Result<(WorkerReply, usize), ConnectionError>;

#[derive(Default)]
struct Conversations {
    /// Conversations that this end opened.
    opened: HashMap<Key, Inbox>,
    /// Conversations that the other end, or another machine through it, opened.
    served: HashMap<Key, Sender<WorkerRequest>>,
    /// Reason the connection is lost; `None` if it stands.
    lost: Option<ConnectionError>,
}

/// One end of a stream to another machine.
pub struct Connection {
    writer: Mutex<Box<dyn Write + Send>>,
    conversations: Mutex<Conversations>,
    next: AtomicU64,
    heard_ns: AtomicU64,
    /// Other machines that the coordinator lost, each with why, until it is asked.
    losses: Mutex<HashMap<u32, String>>,
    role: Role,
    why_lost: WhyLost,
}

impl Connection {
    fn new(writer: impl Write + Send + 'static, role: Role, why_lost: WhyLost) -> Arc<Self> {
        Arc::new(Self {
            writer: Mutex::new(Box::new(writer)),
            conversations: Mutex::default(),
            next: AtomicU64::new(1),
            heard_ns: AtomicU64::new(SystemClock.now_ns()),
            losses: Mutex::default(),
            role,
            why_lost,
        })
    }

    /// The coordinator's end of a connection to the machine of a number; nothing is read before
    /// [`Connection::start`].
    pub(super) fn to_worker(
        carrier: Arc<dyn Carrier>,
        machine: u32,
        writer: impl Write + Send + 'static,
        why_lost: WhyLost,
    ) -> Arc<Self> {
        Self::new(writer, Role::Coordinator(carrier, machine), why_lost)
    }

    /// Reads on a thread of its own until the stream ends.
    pub(super) fn start(self: &Arc<Self>, reader: impl Read + Send + 'static) {
        // A weak reference: the stream is closed as soon as nothing needs it, and the reading ends.
        let weak = Arc::downgrade(self);
        std::thread::spawn(move || listen(&weak, reader));
    }

    /// The worker's end; nothing is served before [`Connection::listen`].
    pub fn to_coordinator(
        writer: impl Write + Send + 'static,
        service: Arc<dyn Service>,
    ) -> Arc<Self> {
        let why = |_: Option<&str>| ConnectionError::new("Lost the connection to the coordinator.");
        Self::new(writer, Role::Worker(service), Box::new(why))
    }

    /// Returns why the coordinator has lost another machine since it was last asked; `None` if it has not.
    pub fn lost_since(&self, machine: u32) -> Option<String> {
        self.losses.lock().remove(&machine)
    }

    /// Reads and serves until the stream ends.
    pub fn listen(self: &Arc<Self>, reader: impl Read) {
        listen(&Arc::downgrade(self), reader);
    }

    /// Begins a conversation. On the coordinator's end `machine` is [`COORDINATOR`]: it speaks for
    /// itself, with the worker at the other end.
    ///
    /// # Errors
    /// The connection is lost, or the request is too long.
    pub fn open(
        self: &Arc<Self>,
        machine: u32,
        request: &WorkerRequest,
    ) -> Result<Conversation, ConnectionError> {
        // Ids only have to differ; nothing is ordered by them.
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, replies) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        {
            // Checked under the same lock that the end of the stream takes: no conversation is begun
            // that nothing ends.
            let mut conversations = self.conversations.lock();
            if let Some(lost) = &conversations.lost {
                return Err(lost.clone());
            }
            let inbox = Inbox {
                sender,
                waiting: Arc::clone(&waiting),
            };
            conversations.opened.insert((machine, id), inbox);
        }
        let conversation = Conversation {
            connection: Arc::clone(self),
            key: (machine, id),
            replies,
            waiting,
        };
        conversation.send(request)?;
        Ok(conversation)
    }

    /// Destination of the replies of a conversation that was handed over in another way than as frames.
    pub(super) fn replies_unasked(self: &Arc<Self>) -> Replies {
        self.replies((COORDINATOR, 0))
    }

    /// Ends the connection if the other end does not answer within so long: what is asked of it then fails at once.
    pub fn give_up_unless_answered(self: &Arc<Self>, patience: Duration) {
        let asked = self.open(COORDINATOR, &WorkerRequest::Hello);
        let answered = asked.and_then(|asked| asked.receive_within(patience));
        if !matches!(answered, Ok(Some(_))) {
            self.end(Some("it does not answer"));
        }
    }

    /// Time nothing has come, ns.
    pub fn silent_ns(&self) -> u64 {
        let heard = self.heard_ns.load(Ordering::Relaxed);
        SystemClock.now_ns().saturating_sub(heard)
    }

    /// Writes a frame.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn write(&self, frame: &WireFrame) -> std::io::Result<()> {
        let mut writer = self.writer.lock();
        frame.write(&mut **writer)
    }

    fn say(
        &self,
        kind: FrameKind,
        (machine, id): Key,
        message: &impl Serialize,
    ) -> Result<(), ConnectionError> {
        let written =
            WireFrame::new(kind, machine, id, message).and_then(|frame| self.write(&frame));
        written.map_err(|error| match error.kind() {
            ErrorKind::InvalidInput => ConnectionError::new(error.in_words()),
            // The reading end finds out as well, and knows more.
            _ => (self.why_lost)(None),
        })
    }

    /// Takes in one frame.
    ///
    /// # Errors
    /// Its message is not understood, or more replies wait than are taken.
    fn receive(self: &Arc<Self>, frame: WireFrame) -> std::io::Result<()> {
        self.heard_ns.store(SystemClock.now_ns(), Ordering::Relaxed);
        let key = (frame.machine, frame.conversation);
        if let Role::Coordinator(router, own) = &self.role
            && frame.machine != COORDINATOR
        {
            router.forward(*own, frame);
            return Ok(());
        }
        match frame.kind {
            FrameKind::Request => self.requested(key, serde_json::from_slice(&frame.message)?),
            FrameKind::Reply => {
                let reply: WorkerReply = serde_json::from_slice(&frame.message)?;
                let mut conversations = self.conversations.lock();
                let last = reply.is_last();
                if let Some(inbox) = conversations.opened.get(&key) {
                    let bytes = frame.message.len();
                    // A worker that sends faster than its replies are read would fill the
                    // coordinator's memory.
                    if inbox.waiting.fetch_add(bytes, Ordering::SeqCst) > WAITING_MAX {
                        return Err(ErrorKind::FileTooLarge.into());
                    }
                    // A conversation that was dropped wants no reply.
                    let _ = inbox.sender.send(Ok((reply, bytes)));
                }
                // What follows the last reply belongs to nothing.
                if last {
                    conversations.opened.remove(&key);
                }
            }
            FrameKind::Cancel => {
                self.conversations.lock().served.remove(&key);
            }
            FrameKind::Lost => {
                let why: String = serde_json::from_slice(&frame.message)?;
                self.losses.lock().insert(frame.machine, why.clone());
                self.end_conversations(&ConnectionError::new(why), |machine| {
                    machine == frame.machine
                });
            }
        }
        Ok(())
    }

    /// Hands a request to its conversation, or begins to serve a new one.
    fn requested(self: &Arc<Self>, key: Key, request: WorkerRequest) {
        let (connection, replies) = (Arc::clone(self), self.replies(key));
        let service = match (&self.role, &request) {
            // Answered at once: it says that the machine is there, and not how busy it is.
            (_, WorkerRequest::Hello) => return drop(replies.send(&WorkerReply::Done)),
            // As well: a thread of its own would take longer than the way here.
            (_, WorkerRequest::Clocks) => return drop(replies.send(&clocks())),
            (Role::Worker(service), _) => Arc::clone(service),
            (Role::Coordinator(..), _) => {
                return drop(replies.send(&refused("A coordinator takes no requests.")));
            }
        };
        let mut conversations = self.conversations.lock();
        if let Some(served) = conversations.served.get(&key) {
            // One that has just ended does not want it.
            let _ = served.send(request);
            return;
        }
        let (sender, requests) = channel();
        // Before the thread starts: a second request of this conversation may already be on its way.
        conversations.served.insert(key, sender);
        drop(conversations);
        std::thread::spawn(move || {
            let task = Task {
                replies: replies.clone(),
                requests,
            };
            let serve = AssertUnwindSafe(|| service.serve(&connection, request, task));
            // A machine that asked must not wait forever for a thread that has died.
            if catch_unwind(serve).is_err() {
                let _ = replies.send(&refused("The worker failed: this is a bug in stackrace."));
            }
            connection.conversations.lock().served.remove(&key);
        });
    }

    fn replies(self: &Arc<Self>, key: Key) -> Replies {
        Replies {
            connection: Arc::clone(self),
            key,
        }
    }

    /// Ends the conversations with machines of some numbers.
    fn end_conversations(&self, error: &ConnectionError, with: impl Fn(u32) -> bool) {
        let mut conversations = self.conversations.lock();
        conversations.opened.retain(|(machine, _), inbox| {
            if !with(*machine) {
                return true;
            }
            // A conversation that was dropped does not need to know.
            let _ = inbox.sender.send(Err(error.clone()));
            false
        });
        // What is served finds out that nothing wants it by the end of its requests.
        conversations
            .served
            .retain(|(machine, _), _| !with(*machine));
    }

    /// Sends what is no frame: the other end gives up the connection.
    #[cfg(any(test, feature = "testing"))]
    #[expect(clippy::unwrap_used, reason = "only tests break a line off")]
    pub fn break_off(&self) {
        self.writer.lock().write_all(&[0; 64]).unwrap();
    }

    /// The stream has ended, or must be taken to have; `known` is why, if this end knows.
    pub(super) fn end(&self, known: Option<&str>) {
        // Asked before anything is locked: ssh may take seconds to say why.
        let lost = (self.why_lost)(known);
        self.conversations.lock().lost = Some(lost.clone());
        self.end_conversations(&lost, |_| true);
        if let Role::Coordinator(router, machine) = &self.role {
            router.lost(*machine, self, &lost.why);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The reading end finds nothing to tell any more, but the other machines have to know.
        if let Role::Coordinator(router, machine) = &self.role
            && self.conversations.lock().lost.is_none()
        {
            router.lost(*machine, self, "The coordinator closed the connection.");
        }
    }
}

/// Readings of the clocks of this machine.
fn clocks() -> WorkerReply {
    WorkerReply::Clocks {
        monotonic_ns: SystemClock.now_ns(),
        unix_ns: SystemClock.unix_ns(),
    }
}

/// A refusal without advice.
pub(super) fn refused(text: &str) -> WorkerReply {
    WorkerReply::Refused {
        code: 1,
        text: text.to_owned(),
        next: String::new(),
    }
}

/// Reads frames until the stream ends, or nothing needs the connection any more.
fn listen(connection: &Weak<Connection>, reader: impl Read) {
    let mut reader = BufReader::new(reader);
    let known = loop {
        let frame = match WireFrame::read(&mut reader) {
            Ok(Some(frame)) => frame,
            Ok(None) => break None,
            // The program that carries the stream says why.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => break None,
            Err(error) => {
                break Some(format!(
                    "what comes cannot be read: {error}",
                    error = error.in_words()
                ));
            }
        };
        let Some(connection) = connection.upgrade() else {
            return;
        };
        // After a message that is not understood no later one can be trusted.
        if let Err(error) = connection.receive(frame) {
            break Some(format!(
                "a message is refused: {error}",
                error = error.in_words()
            ));
        }
    };
    if let Some(connection) = connection.upgrade() {
        connection.end(known.as_deref());
    }
}

/// A conversation that this end opened. Dropping it tells the other end that it is not wanted.
pub struct Conversation {
    connection: Arc<Connection>,
    key: Key,
    replies: Receiver<Incoming>,
    waiting: Arc<AtomicUsize>,
}

impl Conversation {
    /// Sends a further request.
    ///
    /// # Errors
    /// The connection is lost, or the request is too long.
    pub fn send(&self, request: &WorkerRequest) -> Result<(), ConnectionError> {
        self.connection.say(FrameKind::Request, self.key, request)
    }

    /// The next reply.
    ///
    /// # Errors
    /// The machine is lost, or has said its last.
    pub fn receive(&self) -> Result<WorkerReply, ConnectionError> {
        let next = self.replies.recv().unwrap_or_else(|_| Err(self.over()));
        self.taken(next)
    }

    /// The next reply; `None` if there was none for so long.
    ///
    /// # Errors
    /// As [`Conversation::receive`].
    pub fn receive_within(
        &self,
        patience: Duration,
    ) -> Result<Option<WorkerReply>, ConnectionError> {
        match self.replies.recv_timeout(patience) {
            Ok(next) => self.taken(next).map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.over()),
        }
    }

    /// Counts a reply that was taken out of the inbox as waiting no more.
    fn taken(&self, next: Incoming) -> Result<WorkerReply, ConnectionError> {
        let (reply, bytes) = next?;
        self.waiting.fetch_sub(bytes, Ordering::SeqCst);
        Ok(reply)
    }

    fn over(&self) -> ConnectionError {
        let lost = self.connection.conversations.lock().lost.clone();
        // What ended the connection says more than that it has ended.
        lost.unwrap_or_else(|| ConnectionError::new("The other machine ended the conversation."))
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        let open = self
            .connection
            .conversations
            .lock()
            .opened
            .remove(&self.key);
        if open.is_some() {
            // A machine that cannot be told is lost, and everything it does with it.
            let _ = self.connection.say(FrameKind::Cancel, self.key, &());
        }
    }
}

/// Destination of a worker's replies.
#[derive(Clone)]
pub struct Replies {
    connection: Arc<Connection>,
    key: Key,
}

impl Replies {
    /// Sends a reply.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn send(&self, reply: &WorkerReply) -> Result<(), ConnectionError> {
        self.connection.say(FrameKind::Reply, self.key, reply)
    }
}

/// A conversation that a worker serves.
pub struct Task {
    /// Destination of its replies.
    pub replies: Replies,
    /// Requests that follow the first one. Their end says that nothing of this is wanted any more.
    pub requests: Receiver<WorkerRequest>,
}

/// A socket that ends for both sides when it is dropped, also where another thread still reads it.
pub struct Closing(pub UnixStream);

impl Write for Closing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        // The other side may have closed it already.
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}
