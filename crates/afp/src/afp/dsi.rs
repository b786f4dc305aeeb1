//! DSI, the layer under AFP: requests and replies over one TCP connection, matched by number.
//!
//! Several threads may send requests at once; one thread passes each reply to the thread that waits
//! for it. Another thread sends a keep-alive twice a minute, or the server would end the session.

use super::codes::{AfpCommand, EOF};
use super::error::AfpError;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of a header.
const HEADER: usize = 16;

/// Purposes of messages.
const CLOSE_SESSION: u8 = 1;
const COMMAND: u8 = 2;
const OPEN_SESSION: u8 = 4;
const TICKLE: u8 = 5;
const WRITE: u8 = 6;

/// Options of a session: how much a request may carry (said by the server), an attention (by us).
const REQUEST_QUANTUM: u8 = 0;
const ATTENTION_QUANTUM: u8 = 1;

/// Most bytes of a reply that is taken.
const REPLY_MAX: u32 = 16 << 20;

/// Least the server must take in one request.
const QUANTUM_MIN: u32 = 4096;

/// Pause between keep-alives: the server ends a session after two minutes of silence.
const TICKLE_PAUSE: Duration = Duration::from_secs(30);

/// Longest wait for a reply: syncing a slow disk takes minutes.
const PATIENCE: Duration = Duration::from_secs(600);

/// The beginning of every message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// Reply, or request.
    pub(super) is_reply: bool,
    /// The DSI command, as the specification numbers them.
    pub(super) command: u8,
    /// The number of the request.
    pub(super) id: u16,
    /// Result of a reply: 0, or why not. Place of the data in a write request.
    pub(super) code: u32,
    /// Bytes that follow.
    pub(super) length: u32,
}

impl Header {
    /// The header as it is sent.
    pub(super) fn encode(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0] = u8::from(self.is_reply);
        bytes[1] = self.command;
        bytes[2..4].copy_from_slice(&self.id.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.code.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    /// Reads a header as it was received.
    pub(super) fn decode(bytes: [u8; HEADER]) -> Self {
        let [flags, command, i0, i1, c0, c1, c2, c3, l0, l1, l2, l3, ..] = bytes;
        Self {
            is_reply: flags == 1,
            command,
            id: u16::from_be_bytes([i0, i1]),
            code: u32::from_be_bytes([c0, c1, c2, c3]),
            length: u32::from_be_bytes([l0, l1, l2, l3]),
        }
    }
}

/// The answer of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DsiReply {
    /// 0: done; negative: why not.
    pub(super) code: i32,
    /// The bytes after the header.
    pub(super) data: Vec<u8>,
}

/// The threads that wait for replies, by request number; `None` if the connection is lost.
type Waiting = Arc<Mutex<Option<HashMap<u16, Sender<DsiReply>>>>>;

/// One session with a server.
#[derive(Debug)]
pub(super) struct Session {
    stream: Arc<Mutex<TcpStream>>,
    waiting: Waiting,
    next: Mutex<u16>,
    quantum: u32,
    /// Dropped with the session, which ends the thread that tickles.
    _alive: Sender<()>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn broken(error: std::io::Error) -> AfpError {
    AfpError::Broken(error.to_string())
}

impl Session {
    /// Opens a session over a connection.
    pub(super) fn open(stream: TcpStream) -> Result<Self, AfpError> {
        // Requests are small and each waits for its reply.
        stream.set_nodelay(true).map_err(broken)?;
        let reading = stream.try_clone().map_err(broken)?;
        let stream = Arc::new(Mutex::new(stream));
        let waiting: Waiting = Arc::new(Mutex::new(Some(HashMap::new())));
        let told = Arc::clone(&waiting);
        std::thread::spawn(move || {
            // The waiting threads learn only that the connection ended.
            let _ = listen(reading, &told);
            // Dropping the senders wakes every thread that still waits.
            *held(&told) = None;
        });
        let (alive, ended) = channel();
        let tickled = Arc::clone(&stream);
        std::thread::spawn(move || {
            while ended.recv_timeout(TICKLE_PAUSE) == Err(RecvTimeoutError::Timeout) {
                let tickle = Header {
                    is_reply: false,
                    command: TICKLE,
                    id: 0,
                    code: 0,
                    length: 0,
                };
                if held(&tickled).write_all(&tickle.encode()).is_err() {
                    return;
                }
            }
        });
        let mut session = Self {
            stream,
            waiting,
            next: Mutex::new(0),
            quantum: 0,
            _alive: alive,
        };
        // The protocol asks for the longest attention message we accept, even if none is shown.
        let mut options = vec![ATTENTION_QUANTUM, 4];
        options.extend(1024_u32.to_be_bytes());
        let reply = session.exchange(OPEN_SESSION, 0, &[&options])?;
        session.quantum = quantum(&reply.data).ok_or(AfpError::Malformed("no request quantum"))?;
        Ok(session)
    }

    /// Most bytes of data one request may carry.
    pub(super) fn quantum(&self) -> usize {
        self.quantum as usize
    }

    /// Asks; a refusal is an error, except the end of a file, which comes with data.
    pub(super) fn ask(&self, command: AfpCommand, request: &[u8]) -> Result<Vec<u8>, AfpError> {
        accepted(command, self.exchange(COMMAND, 0, &[request])?)
    }

    /// Asks to write data that follow the request.
    pub(super) fn write(
        &self,
        command: AfpCommand,
        request: &[u8],
        data: &[u8],
    ) -> Result<Vec<u8>, AfpError> {
        let offset = u32::try_from(request.len()).unwrap_or(u32::MAX);
        accepted(command, self.exchange(WRITE, offset, &[request, data])?)
    }

    /// Ends the session without waiting for the reply.
    pub(super) fn close(&self) {
        // A lost connection needs no closing.
        let _ = self.send(0, CLOSE_SESSION, 0, &[]);
    }

    fn exchange(&self, command: u8, code: u32, parts: &[&[u8]]) -> Result<DsiReply, AfpError> {
        // Also for later requests: the listener never comes back.
        let gone = || AfpError::Broken("the server has closed it".to_string());
        let (sender, replies) = channel();
        let id = {
            let mut waiting = held(&self.waiting);
            let waiting = waiting.as_mut().ok_or_else(gone)?;
            let mut next = held(&self.next);
            // Numbers wrap after 65,536: one may still be waiting.
            while waiting.contains_key(&next) {
                *next = next.wrapping_add(1);
            }
            let id = *next;
            *next = next.wrapping_add(1);
            waiting.insert(id, sender);
            id
        };
        self.send(id, command, code, parts)?;
        replies.recv_timeout(PATIENCE).map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                AfpError::Broken(format!("no answer within {} s", PATIENCE.as_secs()))
            }
            RecvTimeoutError::Disconnected => gone(),
        })
    }

    fn send(&self, id: u16, command: u8, code: u32, parts: &[&[u8]]) -> Result<(), AfpError> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let header = Header {
            is_reply: false,
            command,
            id,
            code,
            length: u32::try_from(length).unwrap_or(u32::MAX),
        };
        // In one piece: with Nagle's algorithm or delayed ACKs, two small packets wait for each
        // other.
        let mut message = Vec::with_capacity(HEADER + length);
        message.extend(header.encode());
        for part in parts {
            message.extend_from_slice(part);
        }
        held(&self.stream).write_all(&message).map_err(broken)
    }
}

fn accepted(command: AfpCommand, reply: DsiReply) -> Result<Vec<u8>, AfpError> {
    match reply.code {
        0 | EOF => Ok(reply.data),
        code => Err(AfpError::Refused(command, code)),
    }
}

/// Passes each reply to the thread that waits for it, until the connection ends.
fn listen(mut stream: TcpStream, waiting: &Waiting) -> std::io::Result<()> {
    loop {
        let mut bytes = [0; HEADER];
        stream.read_exact(&mut bytes)?;
        let header = Header::decode(bytes);
        // A damaged length must not make us allocate gigabytes.
        if header.length > REPLY_MAX {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        let mut data = vec![0; header.length as usize];
        stream.read_exact(&mut data)?;
        if !header.is_reply {
            // A keep-alive of the server, or an attention message for users: there are none here.
            if header.command == CLOSE_SESSION {
                return Ok(());
            }
            continue;
        }
        if let Some(waiting) = &mut *held(waiting)
            && let Some(sender) = waiting.remove(&header.id)
        {
            let code = header.code.cast_signed();
            // A thread that timed out has dropped its end.
            let _ = sender.send(DsiReply { code, data });
        }
    }
}

/// The quantum among the options of a session: type, length, value of each.
fn quantum(mut options: &[u8]) -> Option<u32> {
    while let [kind, length, rest @ ..] = options {
        let (value, after) = rest.split_at_checked(usize::from(*length))?;
        if *kind == REQUEST_QUANTUM {
            let value = u32::from_be_bytes(value.try_into().ok()?);
            // A tiny quantum would split every read into thousands of requests.
            return (value >= QUANTUM_MIN).then_some(value.min(REPLY_MAX));
        }
        options = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::TcpListener;

    proptest! {
        #[test]
        fn a_header_comes_back(is_reply: bool, command: u8, id: u16, code: u32, length: u32) {
            let header = Header { is_reply, command, id, code, length };
            prop_assert_eq!(Header::decode(header.encode()), header);
        }
    }

    #[test]
    fn the_quantum_is_found_among_options() {
        let replay = [2, 4, 0, 0, 0, 128];
        let quantum_option = [0, 4, 0, 16, 0, 0];
        assert_eq!(quantum(&[replay, quantum_option].concat()), Some(1 << 20));
        assert_eq!(quantum(&replay), None);
        assert_eq!(quantum(&[0, 4, 0, 0, 0, 1]), None, "too small to be used");
        assert_eq!(quantum(&[0, 4, 0]), None);
    }

    /// Reads one message as a server does.
    fn message(stream: &mut TcpStream) -> (Header, Vec<u8>) {
        let mut bytes = [0; HEADER];
        stream.read_exact(&mut bytes).unwrap();
        let header = Header::decode(bytes);
        let mut data = vec![0; header.length as usize];
        stream.read_exact(&mut data).unwrap();
        (header, data)
    }

    fn reply(stream: &mut TcpStream, to: Header, code: i32, data: &[u8]) {
        let header = Header {
            is_reply: true,
            code: code.cast_unsigned(),
            length: u32::try_from(data.len()).unwrap(),
            ..to
        };
        stream.write_all(&header.encode()).unwrap();
        stream.write_all(data).unwrap();
    }

    #[test]
    fn replies_find_their_request_and_a_gone_server_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (open, _) = message(&mut stream);
            assert_eq!(open.command, OPEN_SESSION);
            reply(&mut stream, open, 0, &[0, 4, 0, 16, 0, 0]);
            let both = [message(&mut stream), message(&mut stream)];
            let tickle = Header {
                is_reply: false,
                command: TICKLE,
                ..both[0].0
            };
            stream
                .write_all(
                    &Header {
                        length: 0,
                        ..tickle
                    }
                    .encode(),
                )
                .unwrap();
            // The second one is answered first.
            for (header, data) in both.iter().rev() {
                reply(&mut stream, *header, 0, data);
            }
            let (write, data) = message(&mut stream);
            assert_eq!((write.command, write.code, data.len()), (WRITE, 2, 5));
            reply(&mut stream, write, -5008, &[]);
        });
        let session = Session::open(TcpStream::connect(address).unwrap()).unwrap();
        assert_eq!(session.quantum(), 1 << 20);
        std::thread::scope(|scope| {
            for word in [b"first", b"other"] {
                let session = &session;
                scope.spawn(move || {
                    assert_eq!(session.ask(AfpCommand::Delete, word).unwrap(), word);
                });
            }
        });
        let full = session.write(AfpCommand::WriteExt, b"ab", b"cde");
        assert_eq!(full, Err(AfpError::Refused(AfpCommand::WriteExt, -5008)));
        server.join().unwrap();
        let late = session.ask(AfpCommand::Delete, b"late");
        assert!(matches!(late, Err(AfpError::Broken(_))), "{late:?}");
    }
}
