//! Whether an open loop got the load it offered.

use super::check::AuditCheck;
use super::judgement::{CheckFinding, EvidenceFigure, Grade, LimitedBy};
use super::reading::TrialReading;
use stackrace_base::unit;

/// Below this share of the offered load a figure is not that of the load asked for. Arrivals by
/// chance differ from their mean by 1 % at 10,000 operations.
const ACHIEVED_SHARE: f64 = 0.99;

pub(super) const CHECK: AuditCheck = AuditCheck {
    name: "offered load",
    question: "Did the storage keep up with the load that was offered?",
    limits: false,
    priority: 6,
    judge,
};

/// The phase that is furthest behind.
fn judge(reading: &TrialReading<'_>) -> Option<CheckFinding> {
    let loads = reading.trial.phases.iter().filter_map(|phase| {
        let ops = phase.operations.iter().filter(|op| op.op != "fsync");
        let count: f64 = ops.map(|op| op.count as f64).sum();
        let achieved = count * 1e9 / (phase.elapsed_ns as f64).max(1.0);
        Some((phase.offered_per_s.filter(|rate| *rate > 0.0)?, achieved))
    });
    // The worst phase: one that kept up does not make good for one that did not.
    let (offered, achieved) = loads.min_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)))?;
    let share = achieved / offered;
    let evidence = vec![
        EvidenceFigure::new("share of the offered load achieved", share, "share")
            .against(ACHIEVED_SHARE),
        EvidenceFigure::new("offered", offered, "op/s"),
        EvidenceFigure::new("achieved", achieved, "op/s"),
    ];
    let rates = [offered, achieved].map(unit::operations_per_second);
    let (grade, sentence) = if not_achieved(offered, achieved) {
        let sentence = format!(
            "did not keep up with the offered load: offered {}, achieved {}; response times then grow with the length of the phase",
            rates[0], rates[1]
        );
        (Grade::NotAsAsked, sentence)
    } else {
        (
            Grade::Ok,
            format!("the offered load of {} was achieved", rates[0]),
        )
    };
    // Whatever else was full: more was not asked for. A phase without an offer went as fast as it could.
    let mut phases = reading.trial.phases.iter();
    let all = grade == Grade::Ok && phases.all(|phase| phase.offered_per_s.is_some());
    let limit = all.then_some(LimitedBy::OfferedLoad);
    Some(CheckFinding {
        // Less is worse.
        strength: -share,
        ..CheckFinding::new(grade, sentence, evidence).limiting(limit)
    })
}

/// Returns true if what was achieved is not the load that was offered, both in operations per second.
pub fn not_achieved(offered: f64, achieved: f64) -> bool {
    achieved < ACHIEVED_SHARE * offered
}

#[cfg(test)]
mod tests {
    use super::super::list::checks;
    use super::super::sample::{found, grade, operation, reading, trial};
    use super::super::trial::{findings, pace};
    use super::*;

    #[test]
    fn a_load_is_achieved_or_not() {
        let mut trial = trial();
        trial.phases[0].operations = vec![operation("read", 989, 4096)];
        assert_eq!(grade(&CHECK, &trial), None, "a closed loop offers nothing");
        trial.phases[0].offered_per_s = Some(1000.0);
        let finding = found(&CHECK, &trial).unwrap();
        assert_eq!(finding.grade, Grade::NotAsAsked);
        let words = "offered 1.00 k/s, achieved 989/s";
        assert!(finding.sentence.contains(words), "{}", finding.sentence);
        trial.phases[0].operations = vec![operation("read", 990, 4096)];
        assert_eq!(grade(&CHECK, &trial), Some(Grade::Ok));
    }

    #[test]
    fn what_did_all_that_was_offered_is_limited_by_the_offer_whatever_else_was_full() {
        let of = |achieved, elapsed_ns| {
            let mut trial = trial();
            trial.phases[0].operations = vec![operation("read", achieved, 4096)];
            trial.phases[0].offered_per_s = Some(1000.0);
            // A generator that is late, in user mode for the whole second.
            trial.counted.cpu_user_ns = elapsed_ns;
            let findings = findings(&checks(), &reading(&trial));
            let found = pace(&findings).unwrap();
            (found.by, found.how)
        };
        let (by, how) = of(1000, 1_000_000_000);
        assert_eq!(by, LimitedBy::OfferedLoad);
        // Its share in the latencies is still said.
        assert!(
            how.contains("1.00 k/s was achieved; 100 % of thread time"),
            "{how}"
        );
        assert_eq!(of(900, 1_000_000_000).0, LimitedBy::Generator);
    }
}
