//! Whether a trial that was to start cold did.

use super::check::AuditCheck;
use super::judgement::{CheckFinding, EvidenceFigure, Grade};
use super::reading::{TrialReading, share};
use stackrace_base::unit;

/// Above this share of prepared data in memory a start is not called cold: below it are the few
/// pages that a mount itself reads.
const WARM_SHARE: f64 = 0.01;

pub(super) const CHECK: AuditCheck = AuditCheck {
    name: "cold start",
    question: "Was the data out of memory when the clock started?",
    limits: false,
    priority: 4,
    judge,
};

fn judge(reading: &TrialReading<'_>) -> Option<CheckFinding> {
    let settled = &reading.trial.settled;
    // Nothing was dropped because nothing was to be dropped.
    if settled.caches == "none" {
        return None;
    }
    let (resident, prepared) = settled.resident_bytes.zip(settled.prepared_bytes)?;
    let (resident, prepared) = (resident as f64, prepared as f64);
    let warm = share(resident, prepared)?;
    let evidence = vec![
        EvidenceFigure::new("prepared data in memory at the start", warm, "share")
            .against(WARM_SHARE),
        EvidenceFigure::new("in memory", resident, "B"),
        EvidenceFigure::new("prepared", prepared, "B"),
    ];
    let (grade, sentence) = if warm > WARM_SHARE {
        let sentence = format!(
            "did not start cold: {} of {} of data stayed in memory after caches were dropped",
            unit::si_bytes(resident),
            unit::si_bytes(prepared)
        );
        (Grade::NotAsAsked, sentence)
    } else {
        (Grade::Ok, "started cold".to_owned())
    };
    Some(CheckFinding::new(grade, sentence, evidence))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{grade, trial};
    use super::*;

    #[test]
    fn a_hundredth_may_stay_in_memory() {
        let mut trial = trial();
        assert_eq!(grade(&CHECK, &trial), None, "nothing was prepared");
        trial.settled.prepared_bytes = Some(100_000);
        for (resident, wanted) in [(1000, Grade::Ok), (1001, Grade::NotAsAsked)] {
            trial.settled.resident_bytes = Some(resident);
            assert_eq!(grade(&CHECK, &trial), Some(wanted), "{resident}");
        }
        trial.settled.caches = "none".to_owned();
        assert_eq!(grade(&CHECK, &trial), None, "the study did not ask for it");
    }
}
