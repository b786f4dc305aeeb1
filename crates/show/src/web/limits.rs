//! How much visitors may take of this machine at a time, all together and each.
//!
//! A page is ready in milliseconds, so a slow connection can be given up: when there are too many,
//! the oldest ends. Event streams last, and are counted on their own: however many there are,
//! pages still load.

use std::collections::VecDeque;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// Connections at a time that are read or answered; with one more, the oldest ends.
const CONNECTIONS_MAX: usize = 96;
/// Event streams at a time.
const STREAMS_MAX: usize = 48;
/// Event streams at a time of one address. A browser has at most six to a server.
const STREAMS_OF_ONE_MAX: usize = 16;
/// Threads at a time: each ends soon after its connection does, but not at once.
const THREADS_MAX: usize = CONNECTIONS_MAX + STREAMS_MAX + 48;
/// Bytes of forms at a time, all visitors together.
const FORM_BYTES_MAX: usize = 32 << 20;

/// Resources that visitors take at the moment.
#[derive(Debug, Default)]
pub(super) struct Limits {
    connections: Mutex<Connections>,
    streams: Mutex<Vec<Stream>>,
    threads: AtomicUsize,
    form_bytes: AtomicUsize,
}

/// Connections that are read or answered, oldest first.
#[derive(Debug, Default)]
struct Connections {
    next: u64,
    open: VecDeque<(u64, TcpStream)>,
}

/// An event stream that counts.
#[derive(Debug)]
struct Stream {
    id: u64,
    client: IpAddr,
    handle: TcpStream,
}

impl Stream {
    /// Returns true if the visitor has closed its end.
    fn is_closed(&self) -> bool {
        use rustix::net::{RecvFlags, recv};
        // Takes nothing out of the connection, and does not wait.
        let look = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        match recv(&self.handle, &mut [0; 1], look) {
            Ok((bytes, _)) => bytes == 0,
            Err(error) => !matches!(error, rustix::io::Errno::AGAIN | rustix::io::Errno::INTR),
        }
    }
}

impl Limits {
    /// Lets a connection in; the oldest ends where there are too many. `None` if even those that
    /// were ended still take too much.
    pub(super) fn arrive(self: &Arc<Self>, stream: &TcpStream) -> Option<Visit> {
        let handle = stream.try_clone().ok()?;
        // Counted first, then checked: two that arrive at once cannot both take the last place.
        if self.threads.fetch_add(1, Ordering::SeqCst) >= THREADS_MAX {
            self.threads.fetch_sub(1, Ordering::SeqCst);
            return None;
        }
        let mut connections = self.connections.lock();
        let id = connections.next;
        connections.next += 1;
        connections.open.push_back((id, handle));
        if connections.open.len() > CONNECTIONS_MAX
            && let Some((_, oldest)) = connections.open.pop_front()
        {
            // Its thread finds the end, wherever it waits.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        Some(Visit {
            limits: Arc::clone(self),
            id,
        })
    }

    /// Takes room for bytes of a form; `None` if others fill it at the moment.
    pub(super) fn form(self: &Arc<Self>, bytes: usize) -> Option<FormRoom> {
        let room = FormRoom {
            limits: Arc::clone(self),
            bytes,
        };
        let before = self.form_bytes.fetch_add(bytes, Ordering::SeqCst);
        // Too much is given back as the room is dropped.
        (before + bytes <= FORM_BYTES_MAX).then_some(room)
    }

    fn leave(&self, id: u64) -> Option<TcpStream> {
        let mut connections = self.connections.lock();
        let at = connections.open.iter().position(|(open, _)| *open == id)?;
        connections.open.remove(at).map(|(_, handle)| handle)
    }
}

/// A connection that was let in.
#[derive(Debug)]
pub(super) struct Visit {
    limits: Arc<Limits>,
    id: u64,
}

impl Visit {
    /// Makes an event stream of the connection, which then counts as one and nothing else. `None` if this address has
    /// too many, or all have, or the connection was ended meanwhile.
    pub(super) fn listen(&self, client: IpAddr) -> Option<Listener> {
        let mut streams = self.limits.streams.lock();
        let full = |streams: &[Stream]| {
            let of_one = streams.iter().filter(|stream| stream.client == client);
            streams.len() >= STREAMS_MAX || of_one.count() >= STREAMS_OF_ONE_MAX
        };
        // Who walks from page to page leaves a stream behind at each. Its thread finds out only when
        // it next sends something.
        if full(&streams) {
            streams.retain(|stream| !stream.is_closed());
        }
        if full(&streams) {
            return None;
        }
        // From here on it is not among the connections of which the oldest ends.
        let handle = self.limits.leave(self.id)?;
        let id = self.id;
        streams.push(Stream { id, client, handle });
        Some(Listener {
            limits: Arc::clone(&self.limits),
            id,
        })
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.limits.leave(self.id);
        self.limits.threads.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A visitor's event stream; dropped, it makes room for another one.
#[derive(Debug)]
pub(super) struct Listener {
    limits: Arc<Limits>,
    id: u64,
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut streams = self.limits.streams.lock();
        streams.retain(|stream| stream.id != self.id);
    }
}

/// Room for the bytes of one form.
#[derive(Debug)]
pub(super) struct FormRoom {
    limits: Arc<Limits>,
    bytes: usize,
}

impl Drop for FormRoom {
    fn drop(&mut self) {
        self.limits
            .form_bytes
            .fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{Ipv4Addr, TcpListener};

    /// Both ends of a connection.
    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener.accept().unwrap().0, theirs)
    }

    #[test]
    fn with_one_connection_too_many_the_oldest_ends() {
        let limits = Arc::new(Limits::default());
        let mut all: Vec<_> = (0..=CONNECTIONS_MAX)
            .map(|_| {
                let (ours, theirs) = pair();
                let visit = limits.arrive(&ours).unwrap();
                (ours, theirs, visit)
            })
            .collect();
        assert_eq!(all[0].1.read(&mut [0]).unwrap(), 0, "it has ended");
        all[1].1.set_nonblocking(true).unwrap();
        let waits = all[1].1.read(&mut [0]).unwrap_err();
        assert_eq!(waits.kind(), std::io::ErrorKind::WouldBlock);
        all.clear();
        assert!(limits.connections.lock().open.is_empty());
        assert_eq!(limits.threads.load(Ordering::SeqCst), 0);
    }

    /// Opens event streams of an address until one is refused.
    fn listen_all(limits: &Arc<Limits>, client: IpAddr) -> Vec<(TcpStream, Visit, Listener)> {
        std::iter::from_fn(|| {
            let (ours, theirs) = pair();
            let visit = limits.arrive(&ours)?;
            let listener = visit.listen(client)?;
            Some((theirs, visit, listener))
        })
        .collect()
    }

    #[test]
    fn event_streams_are_limited_for_one_address_and_for_all() {
        let limits = Arc::new(Limits::default());
        let mut open = Vec::new();
        for last in 1..=9 {
            let of_one = listen_all(&limits, IpAddr::from([10, 0, 0, last]));
            assert!(of_one.len() <= STREAMS_OF_ONE_MAX);
            open.extend(of_one);
        }
        assert_eq!(open.len(), STREAMS_MAX);
        open.clear();
        assert!(limits.streams.lock().is_empty());
    }

    #[test]
    fn an_event_stream_whose_page_was_left_makes_room_before_its_thread_ends() {
        let limits = Arc::new(Limits::default());
        let client = IpAddr::from([10, 0, 0, 1]);
        let mut open = listen_all(&limits, client);
        assert_eq!(open.len(), STREAMS_OF_ONE_MAX);
        let (page, _visit, _listener) = open.remove(3);
        drop(page);
        assert_eq!(listen_all(&limits, client).len(), 1);
    }

    #[test]
    fn forms_share_their_room_and_give_it_back() {
        let limits = Arc::new(Limits::default());
        let half = limits.form(FORM_BYTES_MAX / 2).unwrap();
        assert!(limits.form(FORM_BYTES_MAX).is_none());
        let other = limits.form(FORM_BYTES_MAX / 2).unwrap();
        assert!(limits.form(1).is_none());
        drop((half, other));
        assert!(limits.form(FORM_BYTES_MAX).is_some());
    }
}
