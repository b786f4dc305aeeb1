//! Whether the program ran all the time it measured.

use super::check::AuditCheck;
use super::judgement::{CheckFinding, EvidenceFigure, Grade};
use super::reading::TrialReading;
use stackrace_base::event::AWAY_SHARE;
use stackrace_base::unit;

/// Above this share of the time a thread that only has to wake up was late: other programs had the
/// processors, and the program's own threads waited as well.
const LATE_SHARE: f64 = 0.25;

/// Adjustments of the wall clock below this are those of a time service, ns.
const SET_NS: f64 = 1e9;

pub(super) const CHECK: AuditCheck = AuditCheck {
    name: "pauses",
    question: "Did the program run all the time?",
    limits: false,
    priority: 19,
    judge,
};

fn judge(reading: &TrialReading<'_>) -> Option<CheckFinding> {
    let counted = &reading.trial.counted;
    counted.paused_ns.zip(counted.suspended_ns)?;
    let window = reading.window_ns()?;
    let most = reading.trial.away();
    let (paused, suspended, away) = (most.paused_ns, most.suspended_ns, most.share());
    let late = counted.late_ns.unwrap_or(0) as f64 / window;
    let set = counted.clock_set_ns.unwrap_or(0) as f64;
    let evidence = vec![
        EvidenceFigure::new("time in which the program did not run", away, "share")
            .against(AWAY_SHARE),
        EvidenceFigure::new("stopped or frozen", paused as f64, "ns"),
        EvidenceFigure::new("machine suspended", suspended as f64, "ns"),
        EvidenceFigure::new("late for want of a processor", late, "share").against(LATE_SHARE),
        EvidenceFigure::new("wall clock set by", set.abs(), "ns").against(SET_NS),
    ];
    let (grade, sentence) = if let Some(said) = most.said() {
        (Grade::Note, format!("disturbed: {said}"))
    // Not stopped, and still not running: threads waited for a processor.
    } else if late > LATE_SHARE {
        let sentence = format!(
            "disturbed: other programs kept the processors {} of the time",
            unit::percent(late)
        );
        (Grade::Note, sentence)
    } else if set.abs() > SET_NS {
        (
            Grade::Note,
            format!("the wall clock was set by {}", unit::time_ns(set.abs())),
        )
    } else {
        (Grade::Ok, "the program ran all the time".to_owned())
    };
    let grade = match away > AWAY_SHARE {
        // So much time away distorts the figure itself.
        true => Grade::NotAsAsked,
        false => grade,
    };
    Some(CheckFinding::new(grade, sentence, evidence))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{found, grade, trial};
    use super::*;
    use stackrace_base::event::Observation;

    /// One second in which nothing paused.
    fn watched() -> Observation {
        let mut trial = trial();
        trial.counted.paused_ns = Some(0);
        trial.counted.suspended_ns = Some(0);
        trial.counted.late_ns = Some(0);
        trial.counted.clock_set_ns = Some(0);
        trial
    }

    #[test]
    fn what_was_not_watched_is_not_judged() {
        assert_eq!(grade(&CHECK, &trial()), None);
        assert_eq!(grade(&CHECK, &watched()), Some(Grade::Ok));
    }

    #[test]
    fn each_kind_of_pause_is_named_in_plain_words() {
        type Change = fn(&mut Observation);
        let cases: [(Change, Grade, &str); 5] = [
            (
                |trial| {
                    trial.elapsed_ns = 12_000_000_000;
                    trial.counted.paused_ns = Some(8_000_000_000);
                },
                Grade::NotAsAsked,
                "the program was stopped for 8.00 s",
            ),
            (
                |trial| {
                    trial.elapsed_ns = 60_000_000_000;
                    trial.counted.paused_ns = Some(1_000_000_000);
                },
                Grade::Note,
                "the program was stopped for 1.00 s",
            ),
            (
                |trial| trial.counted.suspended_ns = Some(60_000_000_000),
                Grade::NotAsAsked,
                "the machine was suspended for 1 min",
            ),
            (
                |trial| trial.counted.late_ns = Some(300_000_000),
                Grade::Note,
                "other programs kept the processors 30 % of the time",
            ),
            (
                |trial| trial.counted.clock_set_ns = Some(-3_600_000_000_000),
                Grade::Note,
                "the wall clock was set by",
            ),
        ];
        for (change, wanted, words) in cases {
            let mut trial = watched();
            change(&mut trial);
            let found = found(&CHECK, &trial).unwrap();
            assert_eq!(found.grade, wanted, "{}", found.sentence);
            assert!(found.sentence.contains(words), "{}", found.sentence);
        }
    }
}
