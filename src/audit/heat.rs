//! Whether processors were slowed down because they were hot.

use super::Check;
use super::judgement::{Figure, Finding, Grade};
use super::reading::Reading;

/// No event is harmless: each halves a processor's rate for a while.
const EVENTS_MAX: f64 = 0.0;

pub(super) const CHECK: Check = Check {
    name: "heat",
    question: "Were processors slowed down because they were hot?",
    limits: false,
    judge,
};

fn judge(reading: &Reading<'_>) -> Option<Finding> {
    let events = reading.trial.counted.throttled? as f64;
    let evidence =
        vec![Figure::new("times a processor was slowed down", events, "").against(EVENTS_MAX)];
    let (grade, sentence) = if events > EVENTS_MAX {
        let sentence = format!("disturbed: processors were slowed down by heat {events:.0} times");
        (Grade::Note, sentence)
    } else {
        (Grade::Ok, "no processor was slowed down".to_owned())
    };
    Some(Finding::new(grade, sentence, evidence))
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
