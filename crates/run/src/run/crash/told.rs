//! The ledger of a trial on its way to another machine, while it grows: the power of this one is
//! going to be cut.
//!
//! What was planned is there before the first operation begins. Then each acknowledgement is said at
//! once, and heard: a thread is at most [`UNHEARD_MAX`] operations ahead. So the other machine knows
//! after the cut what was acknowledged, and which few operations may have been besides.

use std::collections::HashMap;

use parking_lot::{Condvar, Mutex};
use stackrace_engine::promises::{Acknowledged, PromiseRecord};

use crate::run::executor::Broken;
use stackrace_base::event::Promised;
use stackrace_remote::agent::message::TurnReply;

/// Number of operations of a thread that may be acknowledged here and not be known elsewhere.
pub(super) const UNHEARD_MAX: u32 = 16;

/// Says something to the coordinator.
type Say = Box<dyn Fn(TurnReply) -> Result<(), Broken> + Send + Sync>;

/// Tells the coordinator of each operation, and waits where it does not hear.
pub struct LedgerStream {
    say: Say,
    state: Mutex<StreamState>,
    changed: Condvar,
}

#[derive(Default)]
struct StreamState {
    /// True if the coordinator has what is planned.
    planned: bool,
    /// Operations of each thread that were told and not heard.
    unheard: HashMap<u32, u32>,
    /// True if nothing will be heard any more.
    ended: bool,
}

impl LedgerStream {
    /// A stream that says its words with `say`.
    pub fn new(say: Say) -> Self {
        Self {
            say,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Says what is going to be promised, on a stack of this mark, and waits until it is known.
    ///
    /// # Errors
    /// The coordinator is lost.
    pub fn begin(&self, mark: &str, promised: &Promised) -> Result<(), Broken> {
        *self.state.lock() = StreamState::default();
        let pieces = promised.pieces();
        let last = pieces.len().saturating_sub(1);
        for (number, piece) in pieces.enumerate() {
            (self.say)(TurnReply::WillPromise {
                mark: mark.to_owned(),
                promised: Box::new(piece),
                last: number == last,
            })?;
        }
        let mut state = self.state.lock();
        while !state.planned && !state.ended {
            self.changed.wait(&mut state);
        }
        match state.planned {
            true => Ok(()),
            false => Err(Broken("the coordinator is lost".to_owned())),
        }
    }

    /// Notes that the coordinator knows one more operation of a thread; `None` means that it knows what is planned.
    pub fn heard(&self, thread: Option<u32>) {
        let mut state = self.state.lock();
        match thread {
            None => state.planned = true,
            Some(thread) => {
                let unheard = state.unheard.entry(thread).or_default();
                *unheard = unheard.saturating_sub(1);
            }
        }
        self.changed.notify_all();
    }

    /// Notes that nothing will be heard any more: no thread is kept waiting for it.
    pub fn end(&self) {
        self.state.lock().ended = true;
        self.changed.notify_all();
    }
}

impl Acknowledged for LedgerStream {
    fn begins(&self, thread: u32) {
        let mut state = self.state.lock();
        let ahead = |state: &StreamState| state.unheard.get(&thread).copied().unwrap_or(0);
        while ahead(&state) >= UNHEARD_MAX && !state.ended {
            self.changed.wait(&mut state);
        }
    }

    fn ended(&self, record: &PromiseRecord) {
        *self.state.lock().unheard.entry(record.worker).or_default() += 1;
        // A coordinator that is lost is found out by the end of its requests, which ends this.
        let _ = (self.say)(TurnReply::Acknowledged {
            thread: record.worker,
            begun_ns: record.begun_ns,
            acknowledged_ns: record.acknowledged_ns,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use stackrace_engine::Op;

    use super::*;
    use stackrace_base::event::{LEDGER_LINES, LedgerLine, OperationKind, Promise};
    use stackrace_base::time::{Clock, SystemClock};

    fn stream() -> (Arc<LedgerStream>, Receiver<TurnReply>) {
        let (sender, said) = channel();
        let say = move |reply| {
            sender
                .send(reply)
                .map_err(|error| Broken(error.to_string()))
        };
        (Arc::new(LedgerStream::new(Box::new(say))), said)
    }

    fn record(worker: u32) -> PromiseRecord {
        PromiseRecord {
            worker,
            op: Op::Append,
            object: "log-0".to_owned(),
            offset: 0,
            bytes: 512,
            generation: 1,
            begun_ns: 1,
            acknowledged_ns: Some(2),
        }
    }

    /// Returns true if a thread that begins an operation goes on at once.
    fn goes_on(stream: &Arc<LedgerStream>, thread: u32) -> bool {
        let (sender, ended) = channel();
        let stream = Arc::clone(stream);
        std::thread::spawn(move || {
            stream.begins(thread);
            // The test may have ended.
            let _ = sender.send(());
        });
        ended.recv_timeout(Duration::from_millis(200)).is_ok()
    }

    #[test]
    fn a_thread_waits_where_too_much_was_not_heard_and_no_other_does() {
        let (stream, said) = stream();
        for _ in 0..UNHEARD_MAX {
            assert!(goes_on(&stream, 0));
            stream.ended(&record(0));
        }
        assert!(!goes_on(&stream, 0));
        assert!(goes_on(&stream, 1));
        stream.heard(Some(0));
        assert!(goes_on(&stream, 0));
        assert_eq!(said.try_iter().count(), UNHEARD_MAX as usize);
        stream.ended(&record(0));
        assert!(!goes_on(&stream, 0));
        stream.end();
        assert!(goes_on(&stream, 0), "a lost coordinator holds nothing up");
    }

    #[test]
    fn nothing_begins_before_all_that_is_planned_is_known() {
        let (stream, said) = stream();
        let line = LedgerLine {
            number: 0,
            worker: 0,
            kind: OperationKind::Append,
            object: "log-0".to_owned(),
            offset: 0,
            bytes: 512,
            generation: 1,
            promise: Promise::Fdatasync,
            begun_ns: 0,
            acknowledged_ns: None,
        };
        let promised = Promised {
            round: 1,
            configuration: 0,
            workload: 0,
            seed: 1,
            directory: "/d".to_owned(),
            lines: vec![line; LEDGER_LINES + 1],
        };
        let begins = |promised: Promised| {
            let stream = Arc::clone(&stream);
            std::thread::spawn(move || stream.begin("mark", &promised))
        };
        let begun = begins(promised.clone());
        let lasts: Vec<bool> = said
            .iter()
            .take(2)
            .map(|reply| match reply {
                TurnReply::WillPromise { last, .. } => last,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(lasts, [false, true]);
        SystemClock.sleep(Duration::from_millis(50));
        assert!(!begun.is_finished());
        stream.heard(None);
        begun.join().unwrap().unwrap();
        // The next trial has to be known, too; where nothing is heard any more, it does not begin.
        let begun = begins(promised);
        said.recv().unwrap();
        stream.end();
        begun.join().unwrap().unwrap_err();
    }
}
