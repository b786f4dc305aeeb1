//! A request as it arrives, and an answer as it leaves: never more bytes, and never longer, than
//! agreed.
//!
//! The head is read first: a visitor who may not enter is refused before anything else is read.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use super::http::{self, HEAD_MAX, HttpError, HttpRequest, HttpResponse};
use super::limits::{FormRoom, Limits};
use stackrace_base::time::Clock;

/// Time for a whole request to arrive, ns.
const REQUEST_NS: u64 = 30_000_000_000;
/// Time for a whole answer, or one event, to leave, ns.
const ANSWER_NS: u64 = 60_000_000_000;
/// Bytes that are sent at a time.
const PART: usize = 64 << 10;
/// Silence after which a reader or a writer is given up, ns.
const SILENCE_NS: u64 = 10_000_000_000;
/// Time for what was sent and is not wanted to arrive and be thrown away, ns.
const REST_NS: u64 = 1_000_000_000;
/// Bytes of a form that are read before room for them is asked for.
const SMALL_FORM: usize = 4 << 10;

/// A connection with its limits.
pub(super) struct ReceivedLine<'a> {
    stream: &'a mut TcpStream,
    clock: &'a dyn Clock,
}

/// The part of a request that has arrived.
pub(super) struct Arrived {
    /// The request; its form is read by [`ReceivedLine::form`].
    pub(super) request: HttpRequest,
    /// Bytes behind the head.
    rest: Vec<u8>,
    until_ns: u64,
}

impl<'a> ReceivedLine<'a> {
    /// Reads from a connection; times are those of this clock.
    pub(super) fn new(stream: &'a mut TcpStream, clock: &'a dyn Clock) -> Self {
        Self { stream, clock }
    }

    /// Reads the head of a request.
    ///
    /// # Errors
    /// See [`HttpError`].
    pub(super) fn head(&mut self) -> Result<Arrived, HttpError> {
        let until_ns = self.clock.now_ns() + REQUEST_NS;
        let mut bytes = Vec::new();
        loop {
            // Parsed anew with every piece: heads are short, and nothing has to be kept in between.
            if let Some((request, begin)) = http::head(&bytes)? {
                let rest = bytes.split_off(begin);
                return Ok(Arrived {
                    request,
                    rest,
                    until_ns,
                });
            }
            if bytes.len() >= HEAD_MAX {
                return Err(HttpError::Refused(431, "The request head is too long."));
            }
            self.more(&mut bytes, HEAD_MAX, until_ns)?;
        }
    }

    /// Reads the form of a request, of at most so many bytes. The room it takes is taken as long as
    /// what comes back is held.
    ///
    /// # Errors
    /// See [`HttpError`].
    pub(super) fn form(
        &mut self,
        arrived: Arrived,
        most: usize,
        limits: &Arc<Limits>,
    ) -> Result<(HttpRequest, Option<FormRoom>), HttpError> {
        let Arrived {
            mut request,
            rest: mut bytes,
            until_ns,
        } = arrived;
        let length = http::length(&request, most)?;
        // Small forms ask for no room: the number of connections limits all of them together.
        let room = match length > SMALL_FORM {
            true => Some(limits.form(length).ok_or(HttpError::Refused(
                503,
                "Other forms are being read. Send it again in a minute.",
            ))?),
            false => None,
        };
        // Some clients (curl) wait for this before they send a long form.
        if length > 0 && request.header("expect").is_some() {
            let _ = self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        // What follows the form would be a second request, and a connection has only one.
        bytes.truncate(length);
        // Only what arrives takes memory; growing in steps would hold twice as much for a moment.
        if bytes.try_reserve_exact(length - bytes.len()).is_err() {
            return Err(HttpError::Refused(503, "There is no memory for this form."));
        }
        while bytes.len() < length {
            self.more(&mut bytes, length, until_ns)?;
        }
        request.form = http::pairs(&bytes)?;
        Ok((request, room))
    }

    fn more(&mut self, bytes: &mut Vec<u8>, most: usize, until_ns: u64) -> Result<(), HttpError> {
        let mut part = [0; 16 << 10];
        let room = part.len().min(most - bytes.len());
        // A limit for each silence and one for the whole: a byte now and then must not hold a
        // thread.
        let patience = patience(self.clock, until_ns).ok_or(HttpError::Refused(
            408,
            "The request took too long to arrive.",
        ))?;
        let read = self.stream.set_read_timeout(Some(patience));
        match read.and_then(|()| self.stream.read(&mut part[..room])) {
            Ok(0) => Err(HttpError::Gone),
            Ok(read) => {
                bytes.extend_from_slice(&part[..read]);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            Err(_) => Err(HttpError::Gone),
        }
    }

    /// Sends bytes, all of them in time.
    ///
    /// # Errors
    /// The other side went away, or takes them too slowly.
    pub(super) fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let until_ns = self.clock.now_ns() + ANSWER_NS;
        while !bytes.is_empty() {
            let patience = patience(self.clock, until_ns).ok_or(ErrorKind::TimedOut)?;
            self.stream.set_write_timeout(Some(patience))?;
            // In parts, so that the whole time is looked at even if the other side reads slowly.
            match self.stream.write(&bytes[..bytes.len().min(PART)]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends an answer.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub(super) fn answer(&mut self, answer: &HttpResponse, head_only: bool) -> io::Result<()> {
        let length = answer.body.len();
        let head = format!("{}Content-Length: {length}\r\n\r\n", answer.head());
        self.send(head.as_bytes())?;
        if head_only {
            return Ok(());
        }
        self.send(&answer.body)
    }

    /// Closes the connection so that the answer arrives: what was sent and not read would make the
    /// system throw away what the visitor has not read yet.
    pub(super) fn close(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
        let until_ns = self.clock.now_ns() + REST_NS;
        let mut rest = [0; 4096];
        while let Some(patience) = patience(self.clock, until_ns) {
            let read = self.stream.set_read_timeout(Some(patience));
            match read.and_then(|()| self.stream.read(&mut rest)) {
                Ok(1..) => {}
                _ => return,
            }
        }
    }
}

/// Longest duration of one more silence; `None` if the time is over.
fn patience(clock: &dyn Clock, until_ns: u64) -> Option<Duration> {
    let left_ns = until_ns.checked_sub(clock.now_ns()).filter(|ns| *ns > 0)?;
    Some(Duration::from_nanos(left_ns.min(SILENCE_NS)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_base::time::SystemClock;
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A clock on which 20 s pass whenever it is looked at.
    #[derive(Default)]
    struct Hurried(AtomicU64);

    impl Clock for Hurried {
        fn now_ns(&self) -> u64 {
            self.0.fetch_add(20_000_000_000, Ordering::SeqCst)
        }

        fn today(&self) -> String {
            String::new()
        }

        fn sleep(&self, _: Duration) {}
    }

    /// Both ends of a connection.
    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener.accept().unwrap().0, theirs)
    }

    fn post(length: usize) -> String {
        format!("POST /start HTTP/1.1\r\nHost: here\r\nContent-Length: {length}\r\n\r\n")
    }

    #[test]
    fn nothing_behind_the_head_is_read_before_it_is_asked_for() {
        let (mut ours, mut theirs) = pair();
        theirs.write_all(post(1 << 30).as_bytes()).unwrap();
        let mut line = ReceivedLine::new(&mut ours, &SystemClock);
        let arrived = line.head().unwrap();
        assert_eq!(arrived.request.path, "/start");
        let limits = Arc::default();
        let refused = line.form(arrived, 4096, &limits).unwrap_err();
        assert!(matches!(refused, HttpError::Refused(413, _)), "{refused:?}");
    }

    #[test]
    fn a_form_is_read_whole_and_forms_share_their_room() {
        let limits = Arc::default();
        let (mut ours, mut theirs) = pair();
        let body = format!("name={}", "a".repeat(5000));
        theirs
            .write_all((post(body.len()) + &body + "&more=1").as_bytes())
            .unwrap();
        let mut line = ReceivedLine::new(&mut ours, &SystemClock);
        let arrived = line.head().unwrap();
        let (request, room) = line.form(arrived, 1 << 20, &limits).unwrap();
        assert_eq!(request.filled("name").map(str::len), Some(5000));
        assert_eq!(request.filled("more"), None);
        let (mut others, mut theirs) = pair();
        theirs.write_all(post(32 << 20).as_bytes()).unwrap();
        let mut line = ReceivedLine::new(&mut others, &SystemClock);
        let arrived = line.head().unwrap();
        let refused = line.form(arrived, 1 << 30, &limits).unwrap_err();
        assert!(matches!(refused, HttpError::Refused(503, _)), "{refused:?}");
        drop(room);
        assert!(limits.form(32 << 20).is_some());
    }

    #[test]
    fn a_request_that_takes_too_long_to_arrive_ends() {
        let (mut ours, mut theirs) = pair();
        theirs.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        let hurried = Hurried::default();
        let refused = ReceivedLine::new(&mut ours, &hurried).head().map(|_| ());
        assert!(
            matches!(refused, Err(HttpError::Refused(408, _))),
            "{refused:?}"
        );
    }

    #[test]
    fn an_answer_that_is_taken_too_slowly_is_given_up() {
        let (mut ours, mut theirs) = pair();
        let slow = std::thread::spawn(move || {
            let mut taken = 0;
            while let Ok(read @ 1..) = theirs.read(&mut [0; 64]) {
                taken += read;
            }
            taken
        });
        let hurried = Hurried::default();
        let bytes = vec![0; 16 * PART];
        let given_up = ReceivedLine::new(&mut ours, &hurried)
            .send(&bytes)
            .unwrap_err();
        assert_eq!(given_up.kind(), ErrorKind::TimedOut);
        drop(ours);
        assert!(slow.join().unwrap() < bytes.len());
    }
}
