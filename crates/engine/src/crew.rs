//! The threads of one phase of whole-file operations: start together, watch, stop together.
//!
//! Everything a thread needs is made before the common start. A thread that fails takes the
//! others with it at their next operation; what all of them measured until then is kept.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{RwLock, mpsc};
use std::time::Instant;

use rustix::io::Errno;

use crate::control::Control;
use crate::meter::{Halt, Meter, now};
use crate::outcome::{Op, OpError, Outcome};

/// Operations after which a thread tells the world how far it is.
const BATCH_OPS: u64 = 64;
/// Bytes after which a thread tells the world how far it is.
const BATCH_BYTES: u64 = 8 << 20;

/// What the system said about an operation on a path.
pub(crate) fn fault(op: Op, path: &Path, errno: Errno) -> OpError {
    let errno = errno.raw_os_error();
    OpError {
        op,
        path: path.to_path_buf(),
        offset: None,
        errno,
        detail: String::new(),
    }
}

/// What we have to say about an operation on a path that the system would have allowed.
pub(crate) fn refusal(op: Op, path: &Path, errno: Errno, detail: impl Into<String>) -> OpError {
    OpError {
        detail: detail.into(),
        ..fault(op, path, errno)
    }
}

/// The raw error of the standard library as the system gave it.
pub(crate) fn errno_of(error: &std::io::Error) -> Errno {
    error
        .raw_os_error()
        .map_or(Errno::IO, Errno::from_raw_os_error)
}

/// How a phase is measured and watched.
#[derive(Clone, Copy)]
pub(crate) struct Watch<'a> {
    pub(crate) slice_ns: u64,
    pub(crate) control: &'a Control,
    /// The kinds of operation that will be issued.
    pub(crate) ops: &'a [Op],
}

/// What a thread works with: its meter, and the news of whether to go on.
pub(crate) struct Hand<'a> {
    meter: Meter,
    control: &'a Control,
    failed: &'a AtomicBool,
    batch_ops: u64,
    batch_bytes: u64,
}

impl<'a> Hand<'a> {
    fn new(watch: Watch<'a>, failed: &'a AtomicBool) -> Hand<'a> {
        let meter = Meter::new(watch.slice_ns, watch.ops);
        Hand {
            meter,
            control: watch.control,
            failed,
            batch_ops: 0,
            batch_bytes: 0,
        }
    }

    /// Runs `work`, which returns the bytes it moved, as one operation.
    ///
    /// # Errors
    /// Those of `work`; nothing is recorded then.
    #[inline]
    pub(crate) fn time<E>(
        &mut self,
        op: Op,
        work: impl FnOnce() -> Result<u64, E>,
    ) -> Result<u64, E> {
        let bytes = self.meter.time(op, work)?;
        self.batch_ops += 1;
        self.batch_bytes += bytes;
        if self.batch_ops >= BATCH_OPS || self.batch_bytes >= BATCH_BYTES {
            self.tell();
        }
        Ok(bytes)
    }

    /// Counts a read or write that moved less than was asked for.
    pub(crate) fn count_short(&mut self) {
        self.meter.count_short();
    }

    /// Whether to go on.
    ///
    /// # Errors
    /// [`Halt::Stopped`] if somebody asked to stop or another thread failed.
    #[inline]
    pub(crate) fn proceed(&self) -> Result<(), Halt> {
        if self.control.stopped() || self.failed.load(Ordering::Relaxed) {
            return Err(Halt::Stopped);
        }
        Ok(())
    }

    fn tell(&mut self) {
        self.control
            .ops
            .fetch_add(std::mem::take(&mut self.batch_ops), Ordering::Relaxed);
        self.control
            .bytes
            .fetch_add(std::mem::take(&mut self.batch_bytes), Ordering::Relaxed);
    }

    fn finish(mut self, result: Result<(), Halt>) -> Meter {
        self.meter.finish(result);
        self.tell();
        self.meter
    }
}

/// Runs `work` on the calling thread. `why` says in a clause how operations are done.
pub(crate) fn alone(
    watch: Watch<'_>,
    why: String,
    work: impl FnOnce(&mut Hand<'_>) -> Result<(), Halt>,
) -> Outcome {
    let failed = AtomicBool::new(false);
    let mut hand = Hand::new(watch, &failed);
    hand.meter.begin(now());
    let result = work(&mut hand);
    Meter::merge(vec![hand.finish(result)], why)
}

/// What ends a phase of several threads, inside its time.
pub(crate) type Close<'a> = &'a dyn Fn(&mut Hand<'_>) -> Result<(), Halt>;

/// Runs `work` once per part, each on its own thread, from a common start; then, unless one of
/// them failed or was stopped, `close` on the calling thread, inside the elapsed time.
///
/// # Errors
/// A thread could not be started; no work was done then. `root` is named in the error.
pub(crate) fn together<P: Send>(
    watch: Watch<'_>,
    why: String,
    root: &Path,
    parts: Vec<P>,
    work: impl Fn(P, &mut Hand<'_>) -> Result<(), Halt> + Sync,
    close: Option<Close<'_>>,
) -> Result<Outcome, OpError> {
    let failed = AtomicBool::new(false);
    // Threads wait for the lock that is held here until all of them are ready. `None` behind it
    // means that not all could be started, and everybody goes home.
    let gate: RwLock<Option<Instant>> = RwLock::new(None);
    let mut last = Hand::new(watch, &failed);
    let count = parts.len();
    let started = std::thread::scope(|scope| {
        let (ready, all_ready) = mpsc::channel::<()>();
        let mut closed = gate
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut threads = Vec::with_capacity(count);
        for part in parts {
            let (ready, gate, failed, work) = (ready.clone(), &gate, &failed, &work);
            let body = move || labour(watch, failed, ready, gate, |hand| work(part, hand));
            match std::thread::Builder::new().spawn_scoped(scope, body) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    let detail = format!("cannot start thread {} of {count}", threads.len() + 1);
                    let detail = format!("{detail}: {error}");
                    return Err(refusal(watch.ops[0], root, errno_of(&error), detail));
                }
            }
        }
        drop(ready);
        for _ in 0..count {
            // Fails once all are ready or, having panicked, gone: the join below reports that.
            let _ = all_ready.recv();
        }
        let start = now();
        *closed = Some(start);
        drop(closed);
        let join = |thread: std::thread::ScopedJoinHandle<'_, Option<Meter>>| match thread.join() {
            Ok(meter) => meter,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        Ok((
            start,
            threads.into_iter().filter_map(join).collect::<Vec<Meter>>(),
        ))
    });
    let (start, mut meters) = started?;
    if let Some(close) = close {
        last.meter.begin(start);
        let result = last.proceed().and_then(|()| close(&mut last));
        meters.push(last.finish(result));
    }
    Ok(Meter::merge(meters, why))
}

/// One thread's life.
fn labour<'a>(
    watch: Watch<'a>,
    failed: &'a AtomicBool,
    ready: mpsc::Sender<()>,
    gate: &RwLock<Option<Instant>>,
    work: impl FnOnce(&mut Hand<'a>) -> Result<(), Halt>,
) -> Option<Meter> {
    let mut hand = Hand::new(watch, failed);
    // Nobody listens any more only if the start was called off, which the gate tells.
    let _ = ready.send(());
    let start = *gate
        .read()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    hand.meter.begin(start?);
    let result = work(&mut hand);
    if matches!(result, Err(Halt::Failed(_))) {
        failed.store(true, Ordering::Relaxed);
    }
    Some(hand.finish(result))
}
