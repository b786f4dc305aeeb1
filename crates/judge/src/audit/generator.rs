//! Whether the program that makes the load sets the pace, not what it measures.

use super::check::AuditCheck;
use super::judgement::{CheckFinding, EvidenceFigure, Grade, LimitedBy};
use super::reading::{TrialReading, share};
use stackrace_base::unit;

/// Above this share of its threads' time in user mode the program itself is what takes longest:
/// everything storage costs is waiting, or time in the kernel.
const USER_SHARE: f64 = 0.50;

/// Above this share of the response time, operations were issued late by the generator's own fault.
const LATE_SHARE: f64 = 0.10;

pub(super) const CHECK: AuditCheck = AuditCheck {
    name: "generator",
    question: "Was the load generator the bottleneck?",
    limits: true,
    priority: 12,
    judge,
};

fn judge(reading: &TrialReading<'_>) -> Option<CheckFinding> {
    if !reading.whose.are_issued_here() {
        // A compiler's or a database's time on a processor is the work, and not what makes it.
        return None;
    }
    let phases = &reading.trial.phases;
    if phases.iter().any(|phase| phase.replayed.is_some()) {
        // A replay computes as long as its application did: that is the work, too.
        return None;
    }
    reading.window_ns()?;
    // Time in user mode is the generator's own; time in the kernel belongs to what is measured.
    let user = share(reading.own_cpu_ns().0, reading.thread_time_ns())?;
    let mut evidence = vec![
        EvidenceFigure::new("thread time spent in the generator itself", user, "share")
            .against(USER_SHARE),
    ];
    let late = lateness(reading);
    if let Some((late_ns, response_ns)) = late {
        let part = share(late_ns, response_ns).unwrap_or(0.0);
        evidence.push(
            EvidenceFigure::new("lateness, of the response time", part, "share")
                .against(LATE_SHARE),
        );
        evidence.push(EvidenceFigure::new("mean lateness", late_ns, "ns"));
        evidence.push(EvidenceFigure::new("mean response time", response_ns, "ns"));
    }
    let unissued = reading
        .trial
        .phases
        .iter()
        .filter_map(|phase| phase.unissued);
    if let Some(count) = unissued.map(|count| count as f64).reduce(|a, b| a + b) {
        evidence.push(EvidenceFigure::new(
            "operations due and not issued",
            count,
            "",
        ));
    }
    let is_late = late.is_some_and(|(late, response)| late > LATE_SHARE * response);
    let (limit, sentence) = if user > USER_SHARE {
        let words = format!(
            "{} of thread time spent in the generator itself",
            unit::percent(user)
        );
        (Some(LimitedBy::Generator), words)
    } else if is_late {
        let (late, response) = late.unwrap_or_default();
        let words = format!(
            "operations issued {} late on average, response time {}",
            unit::time_ns(late),
            unit::time_ns(response)
        );
        (Some(LimitedBy::Generator), words)
    } else {
        (
            None,
            format!(
                "{} of thread time spent in the generator itself",
                unit::percent(user)
            ),
        )
    };
    let grade = if limit.is_some() {
        Grade::Note
    } else {
        Grade::Ok
    };
    Some(CheckFinding::new(grade, sentence, evidence).limiting(limit))
}

/// Mean lateness and mean response time of the phase whose generator was latest, ns; `None` if
/// there was no open loop.
fn lateness(reading: &TrialReading<'_>) -> Option<(f64, f64)> {
    let phases = reading.trial.phases.iter().filter_map(|phase| {
        let late = phase.lateness.as_ref()?.ns_mean;
        let ops = || phase.operations.iter().filter(|op| op.op != "fsync");
        let count: f64 = ops().map(|op| op.count as f64).sum();
        let sum: f64 = ops().map(|op| op.latency_ns_mean * op.count as f64).sum();
        Some((late, share(sum, count)?))
    });
    // The phase in which lateness makes up most of the response time.
    phases.max_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{found, grade, operation, trial};
    use super::*;
    use stackrace_base::event::{OperationsOf, ReplayedCalls, TimingObservation};

    #[test]
    fn half_of_the_time_in_the_program_is_too_much() {
        let mut trial = trial();
        for (ms, wanted) in [(500, Grade::Ok), (501, Grade::Note)] {
            trial.counted.cpu_user_ns = ms * 1_000_000;
            assert_eq!(grade(&CHECK, &trial), Some(wanted), "{ms}");
        }
        // Two threads could have used twice as much.
        trial.phases[0].threads = vec![Vec::new(), Vec::new()];
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Ok));
        // What the phase itself counted goes before what was counted around it.
        trial.phases[0].cpu_user_ns = Some(1_200_000_000);
        trial.phases[0].cpu_system_ns = Some(0);
        assert_eq!(
            found(&CHECK, &trial).unwrap().limit,
            Some(LimitedBy::Generator)
        );
    }

    #[test]
    fn the_work_of_another_program_is_not_the_load_generators() {
        let mut trial = trial();
        trial.counted.cpu_user_ns = 900_000_000;
        for whose in [
            OperationsOf::Command,
            OperationsOf::Job,
            OperationsOf::Program,
        ] {
            let reading = TrialReading {
                whose,
                ..super::super::sample::reading(&trial)
            };
            assert!((CHECK.judge)(&reading).is_none(), "{whose:?}");
        }
    }

    #[test]
    fn a_replay_that_computes_is_not_limited_by_the_load_generator() {
        let mut trial = trial();
        trial.counted.cpu_user_ns = 900_000_000;
        assert!(found(&CHECK, &trial).unwrap().limit.is_some());
        trial.phases[0].replayed = Some(ReplayedCalls::default());
        assert!(found(&CHECK, &trial).is_none());
    }

    #[test]
    fn lateness_is_held_against_the_response_time() {
        let mut trial = trial();
        trial.phases[0].operations = vec![operation("read", 1000, 4096)];
        for (late, wanted) in [(10_000.0, Grade::Ok), (10_001.0, Grade::Note)] {
            trial.phases[0].lateness = Some(TimingObservation {
                ns_mean: late,
                ns_p50: 0,
                ns_p99: 0,
                ns_max: 0,
                histogram: String::new(),
            });
            assert_eq!(grade(&CHECK, &trial), Some(wanted), "{late}");
        }
    }
}
