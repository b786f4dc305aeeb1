//! Whether processors were slowed down because they were hot.

use super::check::AuditCheck;
use super::judgement::{CheckFinding, EvidenceFigure, Grade};
use super::reading::TrialReading;

/// No event is harmless: each halves a processor's rate for a while.
const EVENTS_MAX: f64 = 0.0;

pub(super) const CHECK: AuditCheck = AuditCheck {
    name: "heat",
    question: "Were processors throttled by heat?",
    limits: false,
    priority: 18,
    judge,
};

fn judge(reading: &TrialReading<'_>) -> Option<CheckFinding> {
    let events = reading.trial.counted.throttled? as f64;
    let evidence = vec![
        EvidenceFigure::new("times a processor was throttled", events, "").against(EVENTS_MAX),
    ];
    let (grade, sentence) = if events > EVENTS_MAX {
        // Counted by the processor itself: any time at all means that it ran slower than before.
        let sentence = format!("disturbed: processors were throttled by heat {events:.0} times");
        (Grade::Note, sentence)
    } else {
        (Grade::Ok, "no processor was throttled".to_owned())
    };
    Some(CheckFinding::new(grade, sentence, evidence))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{grade, trial};
    use super::*;

    #[test]
    fn one_event_is_one_too_many() {
        let mut trial = trial();
        assert_eq!(grade(&CHECK, &trial), None, "nothing counts them");
        trial.counted.throttled = Some(0);
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Ok));
        trial.counted.throttled = Some(1);
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Note));
    }
}
