//! Whether data were read that no device holds: holes, and extents that were reserved and never
//! written. The file system answers both with zeros.

use super::check::AuditCheck;
use super::judgement::{CheckFinding, EvidenceFigure, Grade};
use super::reading::{TrialReading, share};
use stackrace_base::unit;

/// Above this share of data that no device holds a figure is not the storage's, as with the page
/// cache.
const ZEROS_SHARE: f64 = 0.10;

pub(super) const CHECK: AuditCheck = AuditCheck {
    name: "holes",
    question: "Did a device hold the data that were read?",
    limits: false,
    priority: 3,
    judge,
};

fn judge(reading: &TrialReading<'_>) -> Option<CheckFinding> {
    let stored = reading.trial.settled.stored?;
    if reading.read_bytes() <= 0.0 {
        return None;
    }
    let all = stored.bytes as f64;
    let holes = share(stored.hole_bytes as f64, all)?;
    let unwritten = share(stored.unwritten_bytes as f64, all)?;
    let zeros = holes + unwritten;
    let evidence = vec![
        EvidenceFigure::new("data that no device holds", zeros, "share").against(ZEROS_SHARE),
        EvidenceFigure::new("in holes", stored.hole_bytes as f64, "B"),
        EvidenceFigure::new("in unwritten extents", stored.unwritten_bytes as f64, "B"),
        EvidenceFigure::new("data looked at", all, "B"),
    ];
    let (grade, sentence) = if zeros > ZEROS_SHARE {
        let kind = match (holes > 0.0, unwritten > 0.0) {
            (true, true) => "holes and unwritten extents",
            (true, false) => "holes",
            _ => "unwritten extents (reserved with fallocate)",
        };
        let part = unit::percent(zeros);
        let sentence = format!(
            "{part} of the data to read are {kind}: the file system answers with zeros and no device is read"
        );
        (Grade::NotAsAsked, sentence)
    } else {
        (
            Grade::Ok,
            "a device holds the data that were read".to_owned(),
        )
    };
    Some(CheckFinding::new(grade, sentence, evidence))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{found, grade, operation, trial};
    use super::*;
    use stackrace_base::event::StoredBytes;

    #[test]
    fn a_tenth_may_be_holes() {
        let mut trial = trial();
        trial.phases[0].operations = vec![operation("read", 1000, 1000)];
        assert_eq!(grade(&CHECK, &trial), None, "the file system does not tell");
        let stored = |hole_bytes, unwritten_bytes| {
            Some(StoredBytes {
                bytes: 1000,
                hole_bytes,
                unwritten_bytes,
                encoded_bytes: 0,
            })
        };
        trial.settled.stored = stored(100, 0);
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Ok));
        trial.settled.stored = stored(101, 0);
        let finding = found(&CHECK, &trial).unwrap();
        assert_eq!(finding.grade, Grade::NotAsAsked);
        assert!(finding.sentence.contains("are holes:"));
        trial.settled.stored = stored(0, 101);
        let finding = found(&CHECK, &trial).unwrap();
        assert!(finding.sentence.contains("unwritten extents (reserved"));
        trial.phases[0].operations = vec![operation("write", 1000, 1000)];
        assert_eq!(grade(&CHECK, &trial), None, "nothing was read");
    }
}
