//! Whether the network line that the data take sets the pace. Where there is one, a fact `line NAME`
//! of the run's environment, or of the trial's stack, says how fast it is.

use super::check::AuditCheck;
use super::judgement::{CheckFinding, EvidenceFigure, Grade, LimitedBy, shown};
use super::limit::limit;
use super::reading::TrialReading;
use crate::unit;

/// At this share of its rate a line is full: frames and headers take 5 to 10 %.
const LINE_SHARE: f64 = 0.90;

pub(super) const CHECK: AuditCheck = AuditCheck {
    name: "line",
    question: "Was the network line full?",
    limits: true,
    priority: 13,
    judge,
};

fn judge(reading: &TrialReading<'_>) -> Option<CheckFinding> {
    let window = reading.window_ns()?;
    let own = reading.trial.counted.line.as_ref().and_then(limit);
    let slowest = reading
        .limits
        .iter()
        .chain(&own)
        .filter(|limit| limit.line)
        // Data take all lines, and the slowest one sets the pace.
        .min_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s))?;
    // A line carries both directions at once: the fuller one counts.
    let counted = &reading.trial.counted;
    let bytes = (counted.fetched_bytes as f64).max(counted.sent_bytes as f64);
    let rate = bytes * 1e9 / window;
    let share = rate / slowest.bytes_per_s;
    let evidence = vec![
        EvidenceFigure::new("of what the line can carry", share, "share").against(LINE_SHARE),
        EvidenceFigure::new("moved over it", rate, "B/s"),
        EvidenceFigure::new(slowest.words.clone(), slowest.bytes_per_s, "B/s"),
    ];
    let by = (share >= LINE_SHARE).then_some(LimitedBy::Line);
    let grade = if by.is_some() { Grade::Note } else { Grade::Ok };
    let sentence = format!(
        "network line {} {} full, {}",
        slowest.device,
        unit::percent(share),
        shown(rate, "B/s")
    );
    Some(CheckFinding::new(grade, sentence, evidence).limiting(by))
}

#[cfg(test)]
mod tests {
    use super::super::limit::Limit;
    use super::super::sample::{reading, trial};
    use super::*;
    use crate::event::Fact;

    #[test]
    fn a_line_is_full_at_nine_tenths_of_its_rate() {
        let mut trial = trial();
        let limits = [Limit {
            device: "eth0".to_owned(),
            bytes_per_s: 125e6,
            words: "1 Gbit/s".to_owned(),
            line: true,
        }];
        for (bytes, full) in [(112_499_999, false), (112_500_000, true)] {
            trial.counted.fetched_bytes = bytes;
            let reading = TrialReading {
                limits: &limits,
                ..reading(&trial)
            };
            let limit = judge(&reading).unwrap().limit;
            assert_eq!(limit, full.then_some(LimitedBy::Line));
        }
        assert!(judge(&reading(&trial)).is_none(), "it has no line");
        trial.counted.line = Some(Fact::new("line to the peer", "125000000 B/s, measured"));
        let limit = judge(&reading(&trial)).unwrap().limit;
        assert_eq!(limit, Some(LimitedBy::Line));
    }
}
