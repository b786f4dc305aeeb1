//! Whether a trial, and the stack before it, had come to rest.
//!
//! Where the work is the same from the first to the last moment the rate ought to be level: the
//! warm-up has ended, and five equal parts of what is left satisfy the criterion of the SNIA Solid
//! State Storage Performance Test Specification. Steps of one trial resemble each other, so that a
//! short one misses the criterion by chance now and then: one trial alone is not held against a
//! configuration. A preconditioning that never got there is.

use stackrace_stats::{Course, RANGE_MAX, SLOPE_MAX, SteadyWindow, WINDOW};

use super::check::AuditCheck;
use super::judgement::{CheckFinding, EvidenceFigure, Grade};
use super::reading::TrialReading;
use stackrace_base::event::{PhaseObservation, Preconditioned};
use stackrace_base::unit;

pub(super) const CHECK: AuditCheck = AuditCheck {
    name: "steady state",
    question: "Was the rate steady, and the storage before it?",
    limits: false,
    priority: 7,
    judge,
};

fn judge(reading: &TrialReading<'_>) -> Option<CheckFinding> {
    let before = reading.trial.preconditioned.as_ref();
    // A device that was not worn in explains an uneven rate, and goes before it.
    let worn_in = before.map(worn_in);
    match worn_in {
        Some(found) if found.grade > Grade::Ok => Some(found),
        worn_in => level(reading).or(worn_in),
    }
}

/// The course of one phase of one trial; `None` if it has no series, or nothing was done.
///
/// Of bytes where any were moved, else of operations. The last step is left out unless the phase
/// filled it.
pub fn course(phase: &PhaseObservation) -> Option<Course> {
    let whole = phase.elapsed_ns / phase.step_ns.max(1);
    let whole = usize::try_from(whole).unwrap_or(usize::MAX);
    let series = &phase.series[..phase.series.len().min(whole)];
    // Bytes where there are any: block sizes may be mixed.
    let moved = series.iter().any(|(_, bytes)| *bytes > 0);
    let amounts: Vec<f64> = series
        .iter()
        .map(|(ops, bytes)| if moved { *bytes } else { *ops } as f64)
        .collect();
    Course::of(&amounts)
}

/// Judges whether the phase that is furthest from level is level; `None` if it need not be, or is too short.
fn level(reading: &TrialReading<'_>) -> Option<CheckFinding> {
    if !reading.level {
        return None;
    }
    let phases = reading.trial.phases.iter();
    let judged = phases.filter_map(|phase| {
        let course = course(phase)?;
        Some((course.steady()?, course.warm_up?, course.level?, phase))
    });
    let (steady, warm_up, level, phase) =
        judged.min_by(|a, b| a.0.cmp(&b.0).then(b.2.range.total_cmp(&a.2.range)))?;
    let warming = EvidenceFigure::new(
        "warm-up",
        warm_up.values as f64 * phase.step_ns as f64,
        "ns",
    );
    let mut evidence = shape(level);
    evidence.push(warming);
    if steady {
        return Some(CheckFinding::new(
            Grade::Ok,
            words("steady", level),
            evidence,
        ));
    }
    let warming = match warm_up.ended {
        true => "not steady",
        false => "not steady, still warming up after half of the time",
    };
    Some(CheckFinding::new(Grade::Note, words(warming, level), evidence).by_chance())
}

/// Result of the passes before the trial.
fn worn_in(before: &Preconditioned) -> CheckFinding {
    let passes = before.passes.len();
    let figures: Vec<f64> = before
        .passes
        .iter()
        .map(|v| v.unwrap_or(f64::NAN))
        .collect();
    let last = SteadyWindow::of(&figures[passes.saturating_sub(WINDOW)..]);
    let mut evidence = last.map_or(Vec::new(), shape);
    evidence.push(EvidenceFigure::new("passes", passes as f64, ""));
    evidence.push(EvidenceFigure::new(
        "preconditioned for",
        before.elapsed_ns as f64,
        "ns",
    ));
    let (grade, state) = match before.steady {
        true => (Grade::Ok, format!("steady after {passes} passes")),
        false => (
            Grade::NotAsAsked,
            format!("no steady state after {passes} passes of preconditioning"),
        ),
    };
    let sentence = last.map_or(state.clone(), |last| words(&state, last));
    CheckFinding::new(grade, sentence, evidence)
}

/// Range and slope beside what is allowed.
fn shape(level: SteadyWindow) -> Vec<EvidenceFigure> {
    vec![
        EvidenceFigure::new("range over the mean", level.range, "share").against(RANGE_MAX),
        EvidenceFigure::new(
            "slope over the mean, either way",
            level.slope.abs(),
            "share",
        )
        .against(SLOPE_MAX),
    ]
}

/// `steady: the rate varied by 3.1 % of its mean, and fell by 0.4 %`
fn words(state: &str, level: SteadyWindow) -> String {
    format!(
        "{state}: the rate varied by {} of its mean, and {} by {}",
        unit::percent(level.range),
        if level.slope < 0.0 { "fell" } else { "rose" },
        unit::percent(level.slope.abs())
    )
}

#[cfg(test)]
mod tests {
    use super::super::sample::{found, grade, reading, trial};
    use super::*;
    use stackrace_base::event::Observation;

    /// A trial of 20 s whose steps have these bytes.
    fn steps(bytes: impl Fn(usize) -> u64) -> Observation {
        let mut trial = trial();
        trial.phases[0].series = (0..200).map(|at| (1, bytes(at))).collect();
        trial.phases[0].elapsed_ns = 20_000_000_000;
        trial
    }

    #[test]
    fn work_that_ought_to_be_level_is_level_or_not() {
        let even = steps(|at| 1000 + at as u64 % 7);
        assert_eq!(grade(&CHECK, &even), Some(Grade::Ok));
        // A slide of 18 % is no step, and not level either.
        let slide = steps(|at| 100_000 - 90 * at as u64);
        let finding = found(&CHECK, &slide).unwrap();
        assert_eq!(finding.grade, Grade::Note);
        assert!(finding.by_chance);
        let part = "not steady, still warming up after half of the time: the rate varied by ";
        assert!(finding.sentence.starts_with(part), "{}", finding.sentence);
        let tree = TrialReading {
            level: false,
            ..reading(&slide)
        };
        assert!(judge(&tree).is_none(), "files of all sizes");
        let mut short = even;
        short.phases[0].series.truncate(40);
        assert_eq!(grade(&CHECK, &short), None);
    }

    #[test]
    fn a_stack_that_never_rested_was_not_what_was_asked_for() {
        let passed = |passes: Vec<Option<f64>>, steady| {
            let mut trial = steps(|_| 1000);
            trial.preconditioned = Some(Preconditioned {
                passes,
                steady,
                ..Preconditioned::default()
            });
            found(&CHECK, &trial).unwrap()
        };
        let falling = (0..25).map(|pass| Some(100.0 * 0.9_f64.powi(pass)));
        let never = passed(falling.collect(), false);
        assert_eq!(never.grade, Grade::NotAsAsked);
        let part = "no steady state after 25 passes of preconditioning: the rate varied by 42 %";
        assert!(never.sentence.starts_with(part), "{}", never.sentence);
        assert_eq!(passed(vec![None; 25], false).grade, Grade::NotAsAsked);
        let rested = passed(vec![Some(5.0); 5], true);
        assert_eq!(rested.grade, Grade::Ok);
    }

    #[test]
    fn the_last_step_counts_only_if_it_is_whole() {
        let mut phase = trial().phases.remove(0);
        phase.series = vec![(1, 100); 31];
        phase.elapsed_ns = 3_050_000_000;
        assert_eq!(course(&phase).unwrap().steps, 30);
        phase.series.clear();
        assert_eq!(course(&phase), None);
    }
}
