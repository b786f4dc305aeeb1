//! The part of a trial that is under way, and how fast it goes.
//!
//! The engine's threads add to two counters once in ten milliseconds whether anybody looks or not;
//! a look here reads them, so that watching costs a run nothing where it measures.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use stackrace_engine::Control;

use stackrace_base::unit;
use stackrace_results::record::Now;
use stackrace_run::run::TrialStart;

/// Rates that are kept.
const RECENT_MAX: usize = 60;
/// Shorter than this a rate would be mostly rounding, ns.
const LOOK_MIN_NS: u64 = 100_000_000;

/// What is under way.
#[derive(Debug, Default)]
pub(super) struct Doing {
    /// Round, from 1; 0: nothing yet.
    pub(super) round: u32,
    /// Configuration by index.
    pub(super) configuration: usize,
    /// Workload by index; none while a stack is set up.
    pub(super) workload: Option<usize>,
    /// `set up`, `prepare`, `settle`, or the name of the phase.
    pub(super) part: String,
    control: Option<Arc<Control>>,
    began_ns: u64,
    seen: Seen,
    ops_per_s: f64,
    bytes_per_s: f64,
    recent: VecDeque<f64>,
}

/// The counters at a look.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    at_ns: u64,
    ops: u64,
    bytes: u64,
}

impl Doing {
    /// A part that begins.
    pub(super) fn begins(start: &TrialStart<'_>, now_ns: u64) -> Self {
        Self {
            round: start.round,
            configuration: start.configuration,
            workload: start.workload,
            part: start.part.to_owned(),
            control: start.control.clone(),
            began_ns: now_ns,
            seen: Seen {
                at_ns: now_ns,
                ..Seen::default()
            },
            ..Self::default()
        }
    }

    /// Reads what the engine has counted so far, at this moment, ns.
    pub(super) fn look(&mut self, now_ns: u64) {
        let Some(control) = &self.control else { return };
        let since = now_ns.saturating_sub(self.seen.at_ns);
        // A rate over a shorter time would jump with each batch of the counters.
        if since < LOOK_MIN_NS {
            return;
        }
        let seen = Seen {
            at_ns: now_ns,
            ops: control.ops.load(Ordering::Relaxed),
            bytes: control.bytes.load(Ordering::Relaxed),
        };
        let per_second = |more: u64| more as f64 * 1e9 / since as f64;
        self.ops_per_s = per_second(seen.ops.saturating_sub(self.seen.ops));
        self.bytes_per_s = per_second(seen.bytes.saturating_sub(self.seen.bytes));
        if seen.bytes > 0 && self.seen.bytes == 0 {
            // What was counted so far was in operations.
            self.recent.clear();
        }
        self.seen = seen;
        if seen.ops > 0 || seen.bytes > 0 {
            let rate = if seen.bytes > 0 {
                self.bytes_per_s
            } else {
                self.ops_per_s
            };
            self.recent.push_back(rate);
        }
        while self.recent.len() > RECENT_MAX {
            self.recent.pop_front();
        }
    }

    /// Since the part began, ns.
    pub(super) fn elapsed_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.began_ns)
    }

    /// The rate right now, as text; empty: nothing is counted.
    pub(super) fn rate(&self) -> String {
        match (self.recent.is_empty(), self.seen.bytes) {
            (true, _) => String::new(),
            (false, 0) => unit::operations_per_second(self.ops_per_s),
            (false, _) => unit::bytes_per_second(self.bytes_per_s),
        }
    }

    /// The last rates, oldest first.
    pub(super) fn recent(&self) -> Vec<f64> {
        self.recent.iter().copied().collect()
    }

    /// All of it for those outside. The process, the time of day and what is left are the caller's.
    pub(super) fn told(&self, now_ns: u64) -> Now {
        Now {
            round: self.round,
            configuration: self.configuration,
            workload: self.workload,
            part: self.part.clone(),
            elapsed_ns: self.elapsed_ns(now_ns),
            ops: self.seen.ops,
            bytes: self.seen.bytes,
            ops_per_s: self.ops_per_s,
            bytes_per_s: self.bytes_per_s,
            unit: if self.seen.bytes > 0 { "B/s" } else { "op/s" }.to_owned(),
            recent: self.recent(),
            ..Now::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn doing(control: &Arc<Control>) -> Doing {
        let start = TrialStart {
            round: 2,
            configuration: 1,
            workload: Some(0),
            part: "measure",
            control: Some(Arc::clone(control)),
        };
        Doing::begins(&start, 10 * SECOND)
    }

    #[test]
    fn a_rate_is_what_was_done_since_the_last_look() {
        let control = Arc::new(Control::default());
        let mut doing = doing(&control);
        doing.look(11 * SECOND);
        assert_eq!(doing.rate(), "");
        control.ops.store(50, Ordering::Relaxed);
        control.bytes.store(3_000_000, Ordering::Relaxed);
        doing.look(12 * SECOND);
        assert_eq!(doing.rate(), "3.00 MB/s");
        // Too soon for another rate.
        control.bytes.store(9_000_000, Ordering::Relaxed);
        doing.look(12 * SECOND + 1);
        doing.look(14 * SECOND);
        let now = doing.told(14 * SECOND);
        assert_eq!((now.recent, now.unit.as_str()), (vec![3e6, 3e6], "B/s"));
        assert_eq!(
            (now.ops, now.ops_per_s, now.elapsed_ns),
            (50, 0.0, 4 * SECOND)
        );
        for second in 15..200 {
            doing.look(second * SECOND);
        }
        assert_eq!(doing.recent().len(), RECENT_MAX);
    }

    #[test]
    fn operations_are_shown_where_no_bytes_move() {
        let control = Arc::new(Control::default());
        let mut doing = doing(&control);
        control.ops.store(500, Ordering::Relaxed);
        doing.look(11 * SECOND);
        assert_eq!(
            (doing.rate(), doing.told(0).unit),
            ("500/s".to_owned(), "op/s".to_owned())
        );
        control.bytes.store(4096, Ordering::Relaxed);
        doing.look(12 * SECOND);
        assert_eq!(doing.recent(), [4096.0]);
    }
}
