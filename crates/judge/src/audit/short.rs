//! Whether there was enough to measure.

use super::check::AuditCheck;
use super::judgement::{CheckFinding, EvidenceFigure, Grade};
use super::reading::TrialReading;
use stackrace_base::unit;

/// A shorter measured part is too short, ns: processors are counted in ticks of 10 ms, so that below
/// this a share of 1 % cannot be told, and caches of devices outlast it.
const ELAPSED_NS_MIN: f64 = 1e9;

/// Fewer operations than this say little of what follows them.
const OPERATIONS_MIN: f64 = 30.0;

pub(super) const CHECK: AuditCheck = AuditCheck {
    name: "length",
    question: "Did it last long enough?",
    limits: false,
    priority: 8,
    judge,
};

fn judge(reading: &TrialReading<'_>) -> Option<CheckFinding> {
    let elapsed = reading.trial.elapsed_ns as f64;
    let count = reading.count();
    let evidence = vec![
        EvidenceFigure::new("measured for", elapsed, "ns").against(ELAPSED_NS_MIN),
        EvidenceFigure::new("operations", count, "").against(OPERATIONS_MIN),
    ];
    let lasted = unit::time_ns(elapsed);
    // One long operation is a measurement: a file copied whole, an archive unpacked.
    let few = count < OPERATIONS_MIN && elapsed < OPERATIONS_MIN * ELAPSED_NS_MIN;
    let (grade, sentence) = if elapsed < ELAPSED_NS_MIN {
        (
            Grade::Note,
            format!("measured for only {lasted}; 1 s or more says much more"),
        )
    } else if few && count > 0.0 {
        (
            Grade::Note,
            format!("only {count:.0} operations in {lasted}; 30 or more say much more"),
        )
    } else {
        (Grade::Ok, format!("measured for {lasted}"))
    };
    Some(CheckFinding {
        // Less is worse.
        strength: -elapsed,
        ..CheckFinding::new(grade, sentence, evidence)
    })
}

#[cfg(test)]
mod tests {
    use super::super::judgement::Judgement;
    use super::super::sample::{found, grade, operation, trial};
    use super::*;

    #[test]
    fn a_second_and_thirty_operations_are_enough() {
        let mut trial = trial();
        trial.phases[0].operations = vec![operation("read", 30, 4096)];
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Ok));
        trial.elapsed_ns -= 1;
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Note));
        trial.elapsed_ns = 29_999_999_999;
        trial.phases[0].operations = vec![operation("read", 29, 4096)];
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Note));
        trial.elapsed_ns += 1;
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Ok), "few, but long");
    }

    #[test]
    fn nothing_is_counted_as_0_without_a_sign() {
        let finding = found(&CHECK, &trial()).unwrap();
        let words = finding.evidence[1].words();
        assert_eq!(words, "operations 0 (threshold 30)");
    }

    #[test]
    fn a_note_on_short_trials_has_the_shortest_and_the_median() {
        let mut trial = trial();
        trial.elapsed_ns = 4_000_000;
        let finding = found(&CHECK, &trial).unwrap();
        let judgement = Judgement {
            check: CHECK.name,
            grade: finding.grade,
            sentence: finding.sentence,
            trials: 3,
            of: 6,
            round: 1,
            evidence: finding.evidence,
            values: vec![4e6, 5e6, 6e6],
            strength: finding.strength,
        };
        assert_eq!(
            judgement.words(),
            "3 of 6 trials: measured for only 4.00 ms (median 5.00 ms); 1 s or more says much more"
        );
    }
}
