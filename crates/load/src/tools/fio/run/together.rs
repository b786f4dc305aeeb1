//! Jobs that run at the same time: who waits for which, who ends with which, who is too slow.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use stackrace_engine::Control;

use super::super::job::{ExitScope, FioJob, LeastRate};
use stackrace_base::time::{Clock, SystemClock};

/// Interval at which one that waits asks whether it is still wanted, ns.
const LOOK_NS: u64 = 20_000_000;

/// One clone among those that run at the same time.
#[derive(Clone, Copy)]
pub(super) struct Member<'a> {
    pub(super) job: &'a FioJob,
    pub(super) control: &'a Control,
}

/// The clones between two walls.
pub(in super::super) struct JobStage {
    /// Threads start one after the other; what a stage measures is all of them together.
    start: Barrier,
    /// True for each member that has ended.
    ended: Mutex<Vec<bool>>,
    changed: Condvar,
    /// Set when one of them ended all jobs: no other stage begins.
    last: AtomicBool,
}

impl JobStage {
    /// A stage of so many clones.
    pub(in super::super) fn new(clones: usize) -> Self {
        Self {
            start: Barrier::new(clones),
            ended: Mutex::new(vec![false; clones]),
            changed: Condvar::new(),
            last: AtomicBool::new(false),
        }
    }

    /// Returns true if no other stage begins after this one.
    pub(in super::super) fn is_last(&self) -> bool {
        self.last.load(Ordering::Relaxed)
    }

    /// Waits until a clone may begin: for all others to be ready, for the job it names, and for its
    /// delay. Ctrl-C, and a job that ends others, end the wait.
    pub(super) fn wait(&self, members: &[Member<'_>], at: usize) {
        self.start.wait();
        let Member { job, control } = members[at];
        let waits = |ended: &[bool]| {
            let mut others = members.iter().zip(ended);
            others.any(|(other, ended)| {
                !ended && job.ties.waits_for.as_ref() == Some(&other.job.name)
            })
        };
        let mut ended = self.ended.lock();
        while waits(&ended) && !control.stopped() {
            // Not without an end: nothing tells of Ctrl-C here.
            self.changed
                .wait_for(&mut ended, Duration::from_nanos(LOOK_NS));
        }
        drop(ended);
        let began = SystemClock.now_ns();
        while !control.stopped() {
            let left = job
                .start_delay_ns
                .saturating_sub(SystemClock.now_ns().saturating_sub(began));
            if left == 0 {
                return;
            }
            SystemClock.sleep(Duration::from_nanos(left.min(LOOK_NS)));
        }
    }

    /// A clone has ended: tells those that wait for it, and ends those that end with it.
    pub(super) fn ended(&self, members: &[Member<'_>], at: usize) {
        self.ended.lock()[at] = true;
        self.changed.notify_all();
        let job = members[at].job;
        let Some(ends) = job.ties.ends else { return };
        self.last
            .fetch_or(ends == ExitScope::All, Ordering::Relaxed);
        for other in members {
            if ends != ExitScope::Group || other.job.group == job.group {
                other.control.stop.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Does a clone's work, and ends it if it moves less than it has to; then also says so.
    pub(super) fn watched<T>(
        &self,
        least: Option<LeastRate>,
        control: &Control,
        work: impl FnOnce() -> T,
    ) -> (T, Option<String>) {
        let Some(least) = least else {
            return (work(), None);
        };
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watch = scope.spawn(|| too_slow(least, control, &over));
            let done = work();
            over.store(true, Ordering::Relaxed);
            // A thread that only looks does not panic.
            (done, watch.join().unwrap_or_default())
        })
    }
}

/// Stops a phase that moves less than it has to over a whole cycle, and says so.
fn too_slow(least: LeastRate, control: &Control, over: &AtomicBool) -> Option<String> {
    let mut before = control.bytes.load(Ordering::Relaxed);
    loop {
        let began = SystemClock.now_ns();
        loop {
            if over.load(Ordering::Relaxed) || control.stopped() {
                return None;
            }
            let left = least
                .every_ns
                .saturating_sub(SystemClock.now_ns().saturating_sub(began));
            if left == 0 {
                break;
            }
            SystemClock.sleep(Duration::from_nanos(left.min(LOOK_NS)));
        }
        let now = control.bytes.load(Ordering::Relaxed);
        let seconds = SystemClock.now_ns().saturating_sub(began) as f64 / 1e9;
        let rate = (now - before) as f64 / seconds;
        if rate < least.bytes as f64 {
            control.stop.store(true, Ordering::Relaxed);
            return Some(format!(
                "rate_min={}B/s not met, got {rate:.0}B/s",
                least.bytes
            ));
        }
        before = now;
    }
}
