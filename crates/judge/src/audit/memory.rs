//! Whether memory ran short: tasks that waited for it, pages that went to swap space and back.

use super::check::AuditCheck;
use super::judgement::{CheckFinding, EvidenceFigure, Grade};
use super::reading::TrialReading;
use stackrace_base::unit;

/// Above this share of the time some task waited for memory, the page cache was fought for.
const WAITING_SHARE: f64 = 0.05;

/// More bytes than this to or from swap space are no leftovers of something long idle.
const SWAPPED_BYTES: f64 = 1_048_576.0;

pub(super) const CHECK: AuditCheck = AuditCheck {
    name: "memory",
    question: "Did memory run short?",
    limits: false,
    priority: 17,
    judge,
};

fn judge(reading: &TrialReading<'_>) -> Option<CheckFinding> {
    let window = reading.window_ns()?;
    let counted = &reading.trial.counted;
    // Pressure Stall Information, where the kernel has it; swap counts catch the rest.
    let waiting = counted.pressure_memory_ns.map(|ns| ns as f64 / window);
    let swapped = counted.swapped_in_bytes.zip(counted.swapped_out_bytes);
    let swapped = swapped.map(|(back, away)| back as f64 + away as f64);
    if waiting.is_none() && swapped.is_none() {
        return None;
    }
    let (waiting, swapped) = (waiting.unwrap_or(0.0), swapped.unwrap_or(0.0));
    let evidence = vec![
        EvidenceFigure::new("a task waited for memory", waiting, "share").against(WAITING_SHARE),
        EvidenceFigure::new("moved to or from swap space", swapped, "B").against(SWAPPED_BYTES),
    ];
    let (grade, sentence) = if waiting > WAITING_SHARE || swapped > SWAPPED_BYTES {
        let sentence = format!(
            "disturbed: memory ran short (a task waited for it {} of the time, {} swapped)",
            unit::percent(waiting),
            unit::si_bytes(swapped)
        );
        (Grade::Note, sentence)
    } else {
        (Grade::Ok, "memory sufficed".to_owned())
    };
    Some(CheckFinding::new(grade, sentence, evidence))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{grade, trial};
    use super::*;

    #[test]
    fn waiting_and_swapping_have_a_threshold_each() {
        let mut trial = trial();
        assert_eq!(grade(&CHECK, &trial), None, "nothing counted it");
        for (ms, wanted) in [(50, Grade::Ok), (51, Grade::Note)] {
            trial.counted.pressure_memory_ns = Some(ms * 1_000_000);
            assert_eq!(grade(&CHECK, &trial), Some(wanted), "{ms}");
        }
        trial.counted.pressure_memory_ns = None;
        trial.counted.swapped_in_bytes = Some(1 << 19);
        for (out, wanted) in [(1 << 19, Grade::Ok), ((1 << 19) + 4096, Grade::Note)] {
            trial.counted.swapped_out_bytes = Some(out);
            assert_eq!(grade(&CHECK, &trial), Some(wanted), "{out}");
        }
    }
}
