//! Whether written data became fewer bytes on the way to the device.
//!
//! What a process causes to be sent (`write_bytes` less `cancelled_write_bytes`) counts a page once
//! however often it is overwritten in memory, and does not count files removed in time. What of it
//! neither reached a device nor is still in memory was compressed, deduplicated, or a hole.

use super::check::AuditCheck;
use super::judgement::{CheckFinding, EvidenceFigure, Grade};
use super::reading::{TrialReading, share};
use stackrace_base::unit;

/// Above this share of sent bytes that never reached a device, data were made smaller on purpose:
/// the device got less than two thirds, which is compression by more than 1.5, while alignment and
/// metadata only ever add bytes.
const LOST_SHARE: f64 = 1.0 / 3.0;

/// Fewer bytes are not judged: metadata and other writers would outweigh them.
const SENT_BYTES_MIN: f64 = 1_048_576.0;

pub(super) const CHECK: AuditCheck = AuditCheck {
    name: "compression",
    question: "Did all bytes written become bytes on the device?",
    limits: false,
    priority: 9,
    judge,
};

/// Places of the bytes of a trial that wrote.
pub(super) struct Written {
    /// Sent towards storage, bytes.
    pub(super) sent: f64,
    /// Arrived at the devices the file system lies on.
    pub(super) arrived: f64,
    /// Still in memory at the end, of those that did not arrive.
    pub(super) in_memory: f64,
}

/// Returns `None` if they are too few, or not known.
pub(super) fn written(reading: &TrialReading<'_>) -> Option<Written> {
    let counted = &reading.trial.counted;
    let wrote = reading.written_bytes();
    // Pages that were thrown away before they were written owe nothing to a device.
    let sent = counted.sent_bytes as f64 - counted.cancelled_bytes? as f64;
    let arrived: f64 = reading
        .upper()
        .map(|device| device.written_bytes as f64)
        .sum();
    // Of a few pages, metadata would decide the share.
    if sent < SENT_BYTES_MIN || wrote < SENT_BYTES_MIN || reading.upper().next().is_none() {
        return None;
    }
    let missing = (sent - arrived).max(0.0);
    Some(Written {
        sent,
        arrived,
        in_memory: missing.min(counted.unwritten_bytes? as f64),
    })
}

fn judge(reading: &TrialReading<'_>) -> Option<CheckFinding> {
    let Written {
        sent,
        arrived,
        in_memory,
    } = written(reading)?;
    let lost = (sent - arrived - in_memory).max(0.0);
    let part = share(lost, sent)?;
    let evidence = vec![
        EvidenceFigure::new("bytes sent that never reached a device", part, "share")
            .against(LOST_SHARE),
        EvidenceFigure::new("written by the workload", reading.written_bytes(), "B"),
        EvidenceFigure::new("sent towards storage", sent, "B"),
        EvidenceFigure::new("written to devices", arrived, "B"),
        EvidenceFigure::new("still in memory at the end", in_memory, "B"),
    ];
    let (grade, sentence) = if part > LOST_SHARE {
        let sentence = format!(
            "{} of the bytes written were compressed or deduplicated away: {} written, {} on the device",
            unit::percent(part),
            unit::si_bytes(sent),
            unit::si_bytes(arrived)
        );
        (Grade::Note, sentence)
    } else {
        (Grade::Ok, "all bytes written reached the device".to_owned())
    };
    Some(CheckFinding::new(grade, sentence, evidence))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{found, grade, operation, trial};
    use super::*;

    #[test]
    fn a_third_may_be_missing() {
        let mut trial = trial();
        trial.phases[0].operations = vec![operation("write", 3000, 1000)];
        trial.counted.sent_bytes = 3_000_000;
        trial.counted.cancelled_bytes = Some(0);
        assert_eq!(
            grade(&CHECK, &trial),
            None,
            "where the rest is, is not known"
        );
        trial.counted.unwritten_bytes = Some(0);
        for (arrived, wanted) in [(2_000_000, Grade::Ok), (1_999_999, Grade::Note)] {
            trial.counted.devices[0].written_bytes = arrived;
            assert_eq!(grade(&CHECK, &trial), Some(wanted), "{arrived}");
        }
        // What is still in memory is another matter, and so is what was removed in time.
        trial.counted.devices[0].written_bytes = 0;
        assert!(found(&CHECK, &trial).unwrap().sentence.starts_with("100 %"));
        trial.counted.unwritten_bytes = Some(3_000_000);
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Ok));
        trial.counted.cancelled_bytes = Some(2_900_000);
        assert_eq!(grade(&CHECK, &trial), None, "too little is left");
    }
}
