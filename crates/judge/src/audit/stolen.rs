//! Whether the hypervisor took processors away.

use super::check::AuditCheck;
use super::judgement::{CheckFinding, EvidenceFigure, Grade};
use super::reading::TrialReading;
use stackrace_base::unit;

/// Above this share of the processors' time the neighbours outside of this virtual machine can be
/// seen in its figures.
const STOLEN_SHARE: f64 = 0.01;

pub(super) const CHECK: AuditCheck = AuditCheck {
    name: "stolen time",
    question: "Did the hypervisor take CPU time?",
    limits: false,
    priority: 16,
    judge,
};

fn judge(reading: &TrialReading<'_>) -> Option<CheckFinding> {
    let counted = &reading.trial.counted;
    let whole = reading.window_ns()? * f64::from(counted.cpus.max(1));
    let share = counted.cpu_steal_ns as f64 / whole;
    let evidence = vec![
        EvidenceFigure::new("CPU time taken by the hypervisor", share, "share")
            .against(STOLEN_SHARE),
    ];
    let (grade, sentence) = if share > STOLEN_SHARE {
        let sentence = format!(
            "disturbed: the hypervisor took {} of CPU time",
            unit::percent(share)
        );
        (Grade::Note, sentence)
    } else {
        (
            Grade::Ok,
            "the hypervisor took almost no CPU time".to_owned(),
        )
    };
    Some(CheckFinding::new(grade, sentence, evidence))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{grade, trial};
    use super::*;

    #[test]
    fn a_hundredth_may_be_taken_away() {
        let mut trial = trial();
        for (ns, wanted) in [(20_000_000, Grade::Ok), (20_000_001, Grade::Note)] {
            trial.counted.cpu_steal_ns = ns;
            assert_eq!(grade(&CHECK, &trial), Some(wanted), "{ns}");
        }
    }
}
