//! Whether a device seems to have been faster than its link can be.

use super::check::AuditCheck;
use super::judgement::{CheckFinding, EvidenceFigure, Grade, shown};
use super::reading::{TrialReading, moved};

/// Above this share of a physical limit something else was measured, or the limit is not the one
/// the data took: clocks and counters err by less than the twentieth.
const LIMIT_SHARE: f64 = 1.05;

pub(super) const CHECK: AuditCheck = AuditCheck {
    name: "possible",
    question: "Was any device faster than its link allows?",
    limits: false,
    priority: 1,
    judge,
};

/// The device that is furthest above, or nearest below.
fn judge(reading: &TrialReading<'_>) -> Option<CheckFinding> {
    let window = reading.window_ns()?;
    let devices = reading.trial.counted.devices.iter();
    let shares = devices.flat_map(|device| {
        let own = reading
            .limits
            .iter()
            .filter(|limit| !limit.line && limit.is_of(&device.device));
        own.map(move |limit| {
            (
                device,
                limit,
                moved(device) * 1e9 / window / limit.bytes_per_s,
            )
        })
    });
    let (device, limit, share) = shares.max_by(|a, b| a.2.total_cmp(&b.2))?;
    let evidence = vec![
        EvidenceFigure::new("of what the link allows", share, "share").against(LIMIT_SHARE),
        EvidenceFigure::new(
            format!("moved by {}", device.device),
            share * limit.bytes_per_s,
            "B/s",
        ),
        EvidenceFigure::new(limit.words.clone(), limit.bytes_per_s, "B/s"),
    ];
    // A little above the link is rounding and counting at other moments. Far above it, something was
    // counted that did not cross the link.
    let (grade, sentence) = if share > LIMIT_SHARE {
        let sentence = format!(
            "{} appears to have moved {}, more than {} allows",
            device.device,
            shown(share * limit.bytes_per_s, "B/s"),
            limit.words
        );
        (Grade::Invalid, sentence)
    } else {
        (Grade::Ok, format!("within what {} allows", limit.words))
    };
    Some(CheckFinding::new(grade, sentence, evidence))
}

#[cfg(test)]
mod tests {
    use super::super::limit::Limit;
    use super::super::sample::{reading, trial};
    use super::*;

    #[test]
    fn nothing_is_faster_than_its_link() {
        let mut trial = trial();
        let limits = [Limit {
            device: "vda".to_owned(),
            bytes_per_s: 100e6,
            words: "SATA".to_owned(),
            line: false,
        }];
        for (moved, wanted) in [(105_000_000, Grade::Ok), (105_000_001, Grade::Invalid)] {
            trial.counted.devices[1].read_bytes = moved;
            let reading = TrialReading {
                limits: &limits,
                ..reading(&trial)
            };
            assert_eq!(
                judge(&reading).map(|finding| finding.grade),
                Some(wanted),
                "{moved}"
            );
        }
        assert!(judge(&reading(&trial)).is_none(), "no limit is known");
    }
}
