//! Workloads of one configuration that are measured at the same time, each as a trial of its own.
//!
//! The others are set up first and begin with the first one, which decides when all end. They are stopped at its end,
//! and that is the end that was asked for. They count together or not at all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stackrace_base::event::{FailureCause, Observation, WorkedBeside};
use stackrace_base::time::{Clock, SystemClock};
use stackrace_base::unit;
use stackrace_engine::{Control, PhaseEnd, PhaseOutcome, START_IS_TOLD};
use stackrace_load::workload::{Place, Workload, WorkloadError, cause_of_operation, trouble};

use super::observation::read_bytes;

/// Interval at which it is looked whether the others are set up.
const LOOK: Duration = Duration::from_micros(200);
/// Share of the time of the first one that another must have worked.
const BESIDE_SHARE: f64 = 0.95;

/// Part of a trial in what is measured at once.
#[derive(Debug, Clone, Default)]
pub(super) struct TogetherPart {
    /// Number of workloads that are measured at once.
    pub(super) of: usize,
    /// What the others did meanwhile, as it is recorded.
    beside: WorkedBeside,
}

impl TogetherPart {
    pub(super) fn new(of: usize) -> Self {
        let beside = WorkedBeside::default();
        Self { of, beside }
    }

    /// Notes the others with what they read: the kernel counts the reads of this program as one.
    pub(super) fn beside<'a>(&mut self, others: impl Iterator<Item = (usize, &'a PhaseOutcome)>) {
        for (workload, outcome) in others {
            self.beside.workloads.push(workload);
            self.beside.read_bytes += read_bytes(outcome);
        }
    }

    /// Puts on record beside what a trial was measured.
    pub(super) fn record(&self, observation: &mut Observation) {
        observation.beside = Some(self.beside.clone());
    }

    /// Bytes that all of them read, of which one read so many.
    pub(super) fn read_by_all(&self, own: u64) -> u64 {
        own.saturating_add(self.beside.read_bytes)
    }
}

/// One of several workloads that are measured at once.
pub(super) struct AtOnce<'a> {
    pub(super) name: &'a str,
    pub(super) workload: &'a dyn Workload,
    pub(super) place: Place<'a>,
}

/// Measures a phase of all of them, each in a thread of its own; the first one decides when all end.
pub(super) fn measured(
    phase: usize,
    all: &[AtOnce<'_>],
) -> Vec<Result<PhaseOutcome, WorkloadError>> {
    let controls: Vec<&Control> = all.iter().map(|one| one.place.control).collect();
    for control in &controls[1..] {
        control.start_at_ns.store(START_IS_TOLD, Ordering::Relaxed);
        // The same time as the first one's would end before the first one has synced.
        control.endless.store(true, Ordering::Relaxed);
    }
    // False as soon as something else than the end of one of them has stopped any.
    let ours = AtomicBool::new(true);
    let measured = |at: usize| {
        let outcome = all[at].workload.measure(phase, &all[at].place);
        let stopped = controls[at].stopped();
        if !stopped && (at == 0 || has_failed(&outcome)) {
            controls
                .iter()
                .for_each(|control| control.stop.store(true, Ordering::SeqCst));
        } else if stopped && at == 0 {
            ours.store(false, Ordering::SeqCst);
        }
        outcome
    };
    let outcomes = std::thread::scope(|scope| {
        let measured = &measured;
        let others: Vec<_> = (1..all.len())
            .map(|at| scope.spawn(move || measured(at)))
            .collect();
        // The first one begins when all others are ready: opening and allocating would disturb it.
        for (at, other) in others.iter().enumerate() {
            let control = controls[at + 1];
            while !control.set_up.load(Ordering::Relaxed) && !other.is_finished() {
                SystemClock.sleep(LOOK);
            }
        }
        for control in &controls[1..] {
            control.start_at_ns.store(1, Ordering::Relaxed);
        }
        let first = measured(0);
        let others = others.into_iter().map(|other| other.join());
        // A panic is a fault of this program, and must not look like a failed trial.
        let others = others.map(|it| it.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        std::iter::once(first).chain(others).collect::<Vec<_>>()
    });
    let judged = judged(all, outcomes);
    // What goes wrong now is the storage's doing, and not that of the user who stops a run.
    let failed = judged.iter().any(has_failed);
    if failed || ours.load(Ordering::SeqCst) {
        controls
            .iter()
            .for_each(|control| control.stop.store(false, Ordering::SeqCst));
    }
    judged
}

fn has_failed(outcome: &Result<PhaseOutcome, WorkloadError>) -> bool {
    outcome
        .as_ref()
        .map_or(true, |it| it.ended == PhaseEnd::Failed)
}

/// Cause of a failure as the system gave it.
fn cause_of(outcome: &Result<PhaseOutcome, WorkloadError>) -> Option<FailureCause> {
    match outcome {
        Err(error) => error.cause.clone(),
        Ok(outcome) => outcome.error.as_ref().and_then(cause_of_operation),
    }
}

/// The ends of all: those beside the first one are complete if it is, and all failed if one did.
fn judged(
    all: &[AtOnce<'_>],
    mut outcomes: Vec<Result<PhaseOutcome, WorkloadError>>,
) -> Vec<Result<PhaseOutcome, WorkloadError>> {
    let longest = match outcomes.first() {
        Some(Ok(first)) if first.ended == PhaseEnd::Complete => first.elapsed_ns,
        // Stopped by the user, or failed: no other one is complete.
        _ => u64::MAX,
    };
    for (one, outcome) in all.iter().zip(&mut outcomes).skip(1) {
        let Ok(other) = outcome else { continue };
        if longest == u64::MAX || other.ended == PhaseEnd::Failed {
            continue;
        }
        let short = (other.elapsed_ns as f64) < longest as f64 * BESIDE_SHARE;
        // One that was stopped has worked to the end, whatever the two clocks say.
        if other.ended == PhaseEnd::Complete && short {
            *outcome = Err(trouble(format!(
                "it ended after {}, and \"{}\" took {}: give \"{}\" more to do, or passes = 0, with which it goes on until it is stopped",
                unit::time_ns(other.elapsed_ns as f64),
                all[0].name,
                unit::time_ns(longest as f64),
                one.name
            )));
            continue;
        }
        // Stopped at the end of the first one, as it was asked for.
        other.ended = PhaseEnd::Complete;
    }
    if let Some(at) = outcomes.iter().position(has_failed) {
        let cause = cause_of(&outcomes[at]);
        for outcome in outcomes.iter_mut().filter(|outcome| !has_failed(outcome)) {
            let name = all[at].name;
            // With the cause of the other one: once that is mended, both are measured again.
            *outcome = Err(WorkloadError {
                said: format!("\"{name}\", measured at the same time, failed"),
                next: String::new(),
                cause: cause.clone(),
            });
        }
    }
    outcomes
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Never;

    impl Workload for Never {
        fn summary(&self) -> String {
            String::new()
        }
        fn cost(&self) -> stackrace_load::workload::Cost {
            Default::default()
        }
        fn phases(&self) -> Vec<&'static str> {
            vec!["measure"]
        }
        fn prepare(&self, _: &Place<'_>) -> Result<(), WorkloadError> {
            Ok(())
        }
        fn measure(&self, _: usize, _: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
            Err(trouble("never"))
        }
    }

    /// How two end that took so long and ended so, in words.
    fn ends(first: (u64, PhaseEnd), other: (u64, PhaseEnd)) -> [String; 2] {
        let (ledger, control) = (Default::default(), Control::default());
        let all = ["database", "backup"].map(|name| AtOnce {
            name,
            workload: &Never,
            place: Place::alone(std::path::Path::new("/"), 1, &ledger, &control),
        });
        let outcome = |(ns, ended)| {
            let whole = PhaseOutcome::of_program("none", String::new(), ns, 1);
            Ok(PhaseOutcome { ended, ..whole })
        };
        let told = judged(&all, vec![outcome(first), outcome(other)]);
        let told = told.into_iter().map(|it| match it {
            Ok(outcome) => format!("{:?}", outcome.ended),
            Err(why) => why.to_string(),
        });
        told.collect::<Vec<_>>().try_into().unwrap()
    }

    #[test]
    fn what_is_stopped_by_the_end_of_the_first_one_is_complete_and_nothing_else_is() {
        use PhaseEnd::{Complete, Failed, Stopped};
        assert_eq!(
            ends((100, Complete), (100, Stopped)),
            ["Complete", "Complete"]
        );
        assert_eq!(
            ends((100, Complete), (96, Complete)),
            ["Complete", "Complete"]
        );
        assert_eq!(ends((40, Stopped), (40, Stopped)), ["Stopped", "Stopped"]);
        let early = ends((2_000_000_000, Complete), (500_000_000, Complete));
        let said = "it ended after 500 ms, and \"database\" took 2.00 s: give \"backup\" more to do, or passes = 0";
        assert!(early[1].starts_with(said), "{}", early[1]);
        // Without it the first one was alone for most of the time.
        assert_eq!(early[0], "\"backup\", measured at the same time, failed");
        let [first, other] = ends((40, Stopped), (40, Failed));
        assert_eq!(
            (first.as_str(), other.as_str()),
            ("\"backup\", measured at the same time, failed", "Failed")
        );
    }

    #[test]
    fn one_that_failed_takes_the_others_along_with_its_cause() {
        let (ledger, control) = (Default::default(), Control::default());
        let all = ["database", "backup"].map(|name| AtOnce {
            name,
            workload: &Never,
            place: Place::alone(std::path::Path::new("/"), 1, &ledger, &control),
        });
        let whole = PhaseOutcome::of_program("none", String::new(), 100, 1);
        let full = WorkloadError {
            said: "its disk is full".to_owned(),
            next: String::new(),
            cause: Some(FailureCause::Errno(28)),
        };
        let told = judged(&all, vec![Ok(whole), Err(full.clone())]);
        // Otherwise its configuration would stay out after the disk has room again.
        assert_eq!(told[0].as_ref().unwrap_err().cause, full.cause);
    }

    #[test]
    fn one_that_cannot_begin_ends_all() {
        let (ledger, controls) = (Default::default(), [Control::default(), Control::default()]);
        let all = [0, 1].map(|at| AtOnce {
            name: "x",
            workload: &Never,
            place: Place::alone(std::path::Path::new("/"), 1, &ledger, &controls[at]),
        });
        assert!(measured(0, &all).iter().all(Result::is_err));
        // No user has stopped it.
        assert!(!controls.iter().any(Control::stopped));
    }
}
