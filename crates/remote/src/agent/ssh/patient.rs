//! Reading and writing that does not wait for ever: while a login has not become a worker yet, it may be silent, or
//! say anything.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use stackrace_base::time::{Clock, SystemClock};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

/// Time for which a login may say nothing, or take nothing.
const LOGIN_SILENCE: Duration = Duration::from_secs(60);

/// Time that all of a login may take but the copying of this program, whatever it says meanwhile.
const LOGIN: Duration = Duration::from_secs(180);

/// Interval between looks at the interrupt and the clock.
const LOOK_NS: i64 = 20_000_000;

/// Bytes that a pipe which can be written to takes without waiting (pipe(7), PIPE_BUF).
const PIECE: usize = 4096;

/// Says that what is waited for is not wanted any more.
#[derive(Clone, Default)]
pub struct StopAsked(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl StopAsked {
    /// Stops when this says so.
    pub fn when(asked: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(asked)))
    }

    /// Returns true if it was asked; nothing asks where Ctrl-C ends the program.
    pub fn asked(&self) -> bool {
        self.0.as_ref().is_some_and(|asked| asked())
    }
}

impl std::fmt::Debug for StopAsked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("StopAsked").field(&self.asked()).finish()
    }
}

/// A pipe of a login.
pub(in crate::agent) struct PatientPipe<T> {
    pipe: T,
    /// Ends of waiting; `None` once a worker is there, whose silence is watched otherwise.
    limit: Option<(StopAsked, u64)>,
}

impl<T: AsFd> PatientPipe<T> {
    /// A pipe on which waiting has an end.
    pub(in crate::agent) fn new(pipe: T, stop: &StopAsked) -> Self {
        let until = SystemClock.now_ns().saturating_add(ns(LOGIN));
        Self {
            pipe,
            limit: Some((stop.clone(), until)),
        }
    }

    /// A pipe of a login whose time is over.
    #[cfg(test)]
    pub(in crate::agent) fn over(pipe: T) -> Self {
        let limit = Some((StopAsked::default(), 0));
        Self { pipe, limit }
    }

    /// Begins the time of a login anew, after something that may take as long as it needs.
    pub(in crate::agent) fn begin_anew(&mut self) {
        if let Some((_, until)) = &mut self.limit {
            *until = SystemClock.now_ns().saturating_add(ns(LOGIN));
        }
    }

    /// Takes the end of waiting away: a worker is there, and may be at work for hours.
    pub(in crate::agent) fn wait_for_ever(&mut self) {
        self.limit = None;
    }

    /// Returns true if waiting has no end.
    pub(in crate::agent) fn waits_for_ever(&self) -> bool {
        self.limit.is_none()
    }

    /// Waits until the pipe is ready.
    ///
    /// # Errors
    /// It is not in time ([`ErrorKind::TimedOut`]), or a stop was asked for ([`ErrorKind::ConnectionAborted`]).
    fn ready(&self, flags: PollFlags, whole: bool) -> Result<()> {
        let Some((stop, until)) = &self.limit else {
            return Ok(());
        };
        let silent = SystemClock.now_ns().saturating_add(ns(LOGIN_SILENCE));
        let until = match whole {
            true => silent.min(*until),
            false => silent,
        };
        let look = Timespec {
            tv_sec: 0,
            tv_nsec: LOOK_NS,
        };
        loop {
            // Also where it says something all the time.
            if stop.asked() {
                return Err(ErrorKind::ConnectionAborted.into());
            }
            if SystemClock.now_ns() >= until {
                return Err(ErrorKind::TimedOut.into());
            }
            let ready = poll(&mut [PollFd::new(&self.pipe, flags)], Some(&look));
            if ready.is_ok_and(|ready| ready > 0) {
                return Ok(());
            }
        }
    }
}

/// Returns true if an error is that of a wait that was given up.
pub(in crate::agent) fn is_given_up(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::TimedOut | ErrorKind::ConnectionAborted
    )
}

impl<T: AsFd + Read> Read for PatientPipe<T> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self.ready(PollFlags::IN, true)?;
        self.pipe.read(buffer)
    }
}

impl<T: AsFd + Write> Write for PatientPipe<T> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        // A slow line may take minutes for a program; only a standstill ends it.
        self.ready(PollFlags::OUT, false)?;
        let piece = match self.limit {
            Some(_) => &bytes[..bytes.len().min(PIECE)],
            None => bytes,
        };
        self.pipe.write(piece)
    }

    fn flush(&mut self) -> Result<()> {
        self.pipe.flush()
    }
}

impl<T: AsFd> AsFd for PatientPipe<T> {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
