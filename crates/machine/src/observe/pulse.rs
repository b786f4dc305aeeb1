//! Whether this program ran all the time it measured.
//!
//! A thread wakes up ten times a second and does little else. A device that answers late does not
//! hold it up; a program that is stopped, frozen or left without a processor does. Programs that this one started can be
//! stopped alone: it looks at their states. The clocks tell the
//! rest: one of them goes on while the machine is suspended, another can be set.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use stackrace_base::event::Counted;

/// Time between two beats.
const BEAT: Duration = Duration::from_millis(100);
/// A beat that comes later than this by so much is a pause, ns: no scheduler makes a thread wait for
/// a second that is not stopped.
const PAUSE_NS: u64 = 1_000_000_000;

/// Beats between two looks at the programs that this one started.
const LOOK_BEATS: u32 = 5;

/// Names processes that this program started and that are stopped.
pub type StoppedLook = fn() -> Vec<String>;

/// The thread, from the beginning of a measured part to its end.
pub struct Pulse {
    began: Clocks,
    end: Sender<()>,
    beating: Option<JoinHandle<Beats>>,
}

/// Lateness of the beats.
#[derive(Debug, Default, PartialEq, Eq)]
struct Beats {
    /// All together, ns.
    late_ns: u64,
    /// Beats late by a second or more, ns.
    paused_ns: u64,
    stops: Stops,
}

/// Time in which a process that this program started was stopped.
#[derive(Debug, Default, PartialEq, Eq)]
struct Stops {
    /// Stops of a second or more, ns; those of several processes at once count once.
    stopped_ns: u64,
    /// The process of the last one.
    who: Option<String>,
    /// Processes that the last look found.
    found: Vec<String>,
    /// Looks, ns, between which one process or another was stopped all the time.
    from_to: (u64, u64),
}

impl Stops {
    /// Takes what a look found; nothing, too, where it is the last one.
    fn look(&mut self, now_ns: u64, found: Vec<String>) {
        let last = std::mem::replace(&mut self.found, found);
        if let Some(goes_on) = self.found.iter().find(|one| last.contains(one)) {
            self.from_to.1 = now_ns;
            // A program that stops its own helpers for moments is as it is.
            if now_ns.saturating_sub(self.from_to.0) >= PAUSE_NS {
                self.who = Some(goes_on.clone());
            }
            return;
        }
        let (from, to) = std::mem::replace(&mut self.from_to, (now_ns, now_ns));
        let stopped = to.saturating_sub(from);
        if stopped >= PAUSE_NS {
            self.stopped_ns += stopped;
        }
    }
}

impl Beats {
    fn late(&mut self, by_ns: u64) {
        self.late_ns += by_ns;
        if by_ns >= PAUSE_NS {
            self.paused_ns += by_ns;
        }
    }
}

/// Three clocks at one moment, ns.
#[derive(Debug, Clone, Copy)]
struct Clocks {
    monotonic: i128,
    /// Goes on while the machine is suspended.
    boot: i128,
    /// The clock that can be set.
    wall: i128,
}

impl Clocks {
    fn read() -> Self {
        let ns = |clock| {
            let now = clock_gettime(clock);
            i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
        };
        Self {
            monotonic: ns(ClockId::Monotonic),
            boot: ns(stackrace_system::BOOT_CLOCK),
            wall: ns(ClockId::Realtime),
        }
    }

    /// Time for which the machine was suspended from here on, ns.
    fn suspended_ns(&self, later: &Self) -> u64 {
        let suspended = (later.boot - later.monotonic) - (self.boot - self.monotonic);
        // The clocks are read one after the other: a moment is no suspension.
        u64::try_from(suspended)
            .ok()
            .filter(|ns| *ns >= 1_000_000)
            .unwrap_or(0)
    }

    /// Time by which the wall clock was set from here on, ns.
    fn set_ns(&self, later: &Self) -> i64 {
        let set = (later.wall - later.boot) - (self.wall - self.boot);
        i64::try_from(set).unwrap_or(i64::MAX)
    }
}

impl Pulse {
    /// Starts the thread that notes when this program, or one that it started, did not run.
    pub fn begin(stopped: StoppedLook) -> Self {
        let (end, ended) = channel();
        // Where no thread can be started the clocks still tell what they can.
        let beating = std::thread::Builder::new()
            .name("pulse".to_owned())
            .spawn(move || beat(&ended, stopped))
            .ok();
        Self {
            began: Clocks::read(),
            end,
            beating,
        }
    }

    /// Ends, and adds what was found to what was counted meanwhile.
    pub fn end(self, counted: &mut Counted) {
        drop(self.end);
        let beats = self.beating.and_then(|beating| beating.join().ok());
        counted.late_ns = beats.as_ref().map(|beats| beats.late_ns);
        // Who is stopped together with this program is away as long.
        let paused = |beats: &Beats| beats.paused_ns.max(beats.stops.stopped_ns);
        counted.paused_ns = beats.as_ref().map(paused);
        counted.stopped = beats.and_then(|beats| beats.stops.who);
        let now = Clocks::read();
        counted.suspended_ns = Some(self.began.suspended_ns(&now));
        counted.clock_set_ns = Some(self.began.set_ns(&now));
    }
}

fn beat(ended: &Receiver<()>, stopped: StoppedLook) -> Beats {
    let mut beats = Beats::default();
    let mut counted: u32 = 0;
    let mut before = super::now_ns();
    loop {
        let waited = ended.recv_timeout(BEAT);
        let now = super::now_ns();
        // Also of the last beat: a pause may end with the measured part.
        let late = u128::from(now.saturating_sub(before)).saturating_sub(BEAT.as_nanos());
        beats.late(u64::try_from(late).unwrap_or(u64::MAX));
        before = now;
        if waited != Err(RecvTimeoutError::Timeout) {
            beats.stops.look(now, Vec::new());
            return beats;
        }
        counted = counted.wrapping_add(1);
        if counted.is_multiple_of(LOOK_BEATS) {
            beats.stops.look(now, stopped());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_without_a_beat_is_a_pause() {
        let mut beats = Beats::default();
        beats.late(PAUSE_NS - 1);
        assert_eq!((beats.late_ns, beats.paused_ns), (PAUSE_NS - 1, 0));
        beats.late(PAUSE_NS);
        assert_eq!(beats.paused_ns, PAUSE_NS);
        assert_eq!(beats.late_ns, 2 * PAUSE_NS - 1);
    }

    #[test]
    fn a_second_in_which_a_process_was_stopped_is_a_pause_and_moments_are_none() {
        const LOOK_NS: u64 = PAUSE_NS / 2;
        let looked = |each: &[&[&str]]| {
            let mut stops = Stops::default();
            for (at, found) in each.iter().enumerate() {
                let found = found.iter().map(|name| (*name).to_owned());
                stops.look(at as u64 * LOOK_NS, found.collect());
            }
            stops.look(each.len() as u64 * LOOK_NS, Vec::new());
            (stops.stopped_ns / LOOK_NS, stops.who)
        };
        let who = |name: &str| Some(name.to_owned());
        assert_eq!(looked(&[&[], &["a"], &["a"], &["a"], &[]]), (2, who("a")));
        // It goes on until the end, and with another one at the same time.
        assert_eq!(
            looked(&[&["a"], &["a", "b"], &["b"], &["b"]]),
            (3, who("b"))
        );
        assert_eq!(looked(&[&["a"], &["a"], &[], &["a"], &["a"]]), (0, None));
        assert_eq!(looked(&[&["a"], &["b"], &["a"], &["b"]]), (0, None));
        assert_eq!(
            looked(&[&["a"], &["a"], &["a"], &[], &["b"], &["b"]]),
            (2, who("a"))
        );
    }

    #[test]
    fn the_clocks_tell_a_suspension_from_a_clock_that_was_set() {
        let at = |monotonic, boot, wall| Clocks {
            monotonic,
            boot,
            wall,
        };
        let before = at(10, 20, 1000);
        let second = 1_000_000_000;
        // Suspended for nine seconds of ten.
        let after = at(10 + second, 20 + 10 * second, 1000 + 10 * second);
        assert_eq!(before.suspended_ns(&after), 9 * second as u64);
        assert_eq!(before.set_ns(&after), 0);
        // Set back by an hour.
        let after = at(10 + second, 20 + second, 1000 - 3599 * second);
        assert_eq!(before.suspended_ns(&after), 0);
        assert_eq!(before.set_ns(&after), -3_600_000_000_000);
    }

    #[test]
    fn what_is_found_is_counted() {
        let mut counted = Counted::default();
        Pulse::begin(Vec::new).end(&mut counted);
        assert!(counted.paused_ns.is_some() && counted.late_ns.is_some());
        assert!(counted.suspended_ns.is_some() && counted.clock_set_ns.is_some());
    }
}
