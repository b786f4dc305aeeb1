//! Whether data were read from compressed extents: then a device moves fewer bytes than the workload
//! gets, and the processor does the rest.

use super::check::AuditCheck;
use super::judgement::{CheckFinding, EvidenceFigure, Grade};
use super::reading::TrialReading;
use stackrace_base::unit;

/// Above this share of data in compressed extents, reads are mostly decompression; below it the
/// figure differs by less than most margins.
pub(super) const SQUEEZED_SHARE: f64 = 0.10;

pub(super) const CHECK: AuditCheck = AuditCheck {
    name: "compressed reads",
    question: "Were the data read as they are, or from compressed extents?",
    limits: false,
    priority: 10,
    judge,
};

fn judge(reading: &TrialReading<'_>) -> Option<CheckFinding> {
    let read = reading.read_bytes();
    let part = reading.squeezed()?;
    if read <= 0.0 {
        return None;
    }
    // Evidence only: what a device moves also has what was read ahead.
    let moved: f64 = reading.upper().map(|device| device.read_bytes as f64).sum();
    let evidence = vec![
        EvidenceFigure::new("data in compressed extents", part, "share").against(SQUEEZED_SHARE),
        EvidenceFigure::new("read by the workload", read, "B"),
        EvidenceFigure::new("read by devices", moved, "B"),
    ];
    let (grade, sentence) = if part > SQUEEZED_SHARE {
        let sentence = format!(
            "{} of the data to read are compressed: devices move fewer bytes than the workload gets",
            unit::percent(part)
        );
        (Grade::Note, sentence)
    } else {
        (Grade::Ok, "the data read are not compressed".to_owned())
    };
    Some(CheckFinding::new(grade, sentence, evidence))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{grade, operation, trial};
    use super::*;
    use stackrace_base::event::StoredBytes;

    #[test]
    fn a_tenth_may_be_compressed() {
        let mut trial = trial();
        trial.phases[0].operations = vec![operation("read", 1000, 1000)];
        assert_eq!(grade(&CHECK, &trial), None);
        for (encoded_bytes, wanted) in [(100, Grade::Ok), (101, Grade::Note)] {
            trial.settled.stored = Some(StoredBytes {
                bytes: 1000,
                encoded_bytes,
                ..StoredBytes::default()
            });
            assert_eq!(grade(&CHECK, &trial), Some(wanted), "{encoded_bytes}");
        }
    }
}
