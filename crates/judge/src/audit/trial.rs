//! One trial alone: what each check finds in it, and what set its pace.

use super::check::AuditCheck;
use super::judgement::{CheckFinding, Grade, LimitedBy};
use super::limit::limits;
use super::list::checks_of;
use super::reading::TrialReading;
use stackrace_base::event::{Ended, Fact, FactFigure, Observation, OperationsOf};

/// Audit of one trial alone.
#[derive(Debug, Clone)]
pub struct TrialAudit {
    /// The limit that set the pace; `None` if it cannot be told.
    pub limited_by: Option<LimitedBy>,
    /// The figures of that: `loop0 97 % busy, 412 MB/s`.
    pub limited_how: String,
    /// Names of the checks that say more than "ok", with their grades.
    pub remarks: Vec<(&'static str, Grade)>,
    /// Sentences of the checks, in the same order.
    pub sentences: Vec<String>,
}

/// Findings of the checks in one trial, by priority.
pub(super) type Findings = Vec<(&'static AuditCheck, CheckFinding)>;

/// The limit that set the pace of one trial, its strength and its words.
pub(super) struct TrialPace {
    pub(super) by: LimitedBy,
    pub(super) strength: f64,
    pub(super) how: String,
}

/// The circumstances of a trial, for its audit.
#[derive(Debug, Clone, Copy)]
pub struct AuditedTrial<'a> {
    /// Whose operations its workload does.
    pub whose: OperationsOf,
    /// Set if the rate of that workload ought to be level.
    pub level: bool,
    /// Facts of the machine.
    pub environment: &'a [Fact],
    /// Set if its clock is simulated.
    pub in_virtual_time: bool,
}

/// The audit of one trial; `None` if it is not
/// complete, or another tool measured it.
pub fn trial_audit(of: &AuditedTrial<'_>, trial: &Observation) -> Option<TrialAudit> {
    if trial.ended != Ended::Complete || trial.settled.caches == "unknown" {
        return None;
    }
    let reading = TrialReading {
        trial,
        whose: of.whose,
        level: of.level,
        limits: &limits(of.environment),
        memory_bytes: memory_bytes(of.environment),
        processors_allowed: super::group::processors(of.environment),
    };
    let findings = findings(&checks_of(of.in_virtual_time), &reading);
    let pace = pace(&findings);
    let grave = findings
        .iter()
        .filter(|(_, finding)| finding.grade > Grade::Ok);
    let grave: Vec<_> = grave.filter(|(check, _)| !check.limits).collect();
    Some(TrialAudit {
        limited_by: pace.as_ref().map(|pace| pace.by),
        limited_how: pace.map_or(String::new(), |pace| pace.how),
        remarks: grave
            .iter()
            .map(|(check, finding)| (check.name, finding.grade))
            .collect(),
        sentences: grave
            .iter()
            .map(|(_, finding)| finding.sentence.clone())
            .collect(),
    })
}

/// Findings of each check in a trial.
pub(super) fn findings(checks: &[&'static AuditCheck], reading: &TrialReading<'_>) -> Findings {
    let judged = checks.iter();
    judged
        .filter_map(|check| Some((*check, (check.judge)(reading)?)))
        .collect()
}

/// The first check that names a limit; where none does, how full device and processor were.
pub(super) fn pace(findings: &[(&AuditCheck, CheckFinding)]) -> Option<TrialPace> {
    let mut limits = findings
        .iter()
        .filter_map(|(_, finding)| Some((finding.limit?, finding)));
    let limiting = limits.next().map(|(by, finding)| TrialPace {
        by,
        strength: finding.strength,
        how: match (by, limits.next()) {
            // What was full all the same, or the program's own fault, is in the latencies.
            (LimitedBy::OfferedLoad, Some((_, other))) => {
                format!("{}; {}", finding.sentence, other.sentence)
            }
            _ => finding.sentence.clone(),
        },
    });
    let parts = ["device", "processor"].map(|name| {
        let mut all = findings.iter();
        let mine = all.find(|(check, _)| check.name == name);
        mine.map(|(_, finding)| finding.sentence.as_str())
    });
    limiting.or_else(|| {
        let how: Vec<&str> = parts.into_iter().flatten().collect();
        (!how.is_empty()).then(|| TrialPace {
            by: LimitedBy::NoSinglePart,
            strength: 0.0,
            how: how.join("; "),
        })
    })
}

/// Bytes of memory that can hold data; of several places the largest: it can hold most. A control group's limit counts,
/// too, for caches are charged to it.
pub(super) fn memory_bytes(environment: &[Fact]) -> Option<f64> {
    let limits = environment.iter().filter_map(|fact| match fact.figure {
        Some(FactFigure::MemoryLimit(bytes)) => Some(bytes),
        _ => None,
    });
    let limit = limits.max().unwrap_or(u64::MAX);
    let bytes = environment.iter().filter_map(|fact| {
        // Of several places, each has a fact `memory on PLACE`.
        let kind = fact.name.split(' ').next();
        match fact.figure {
            Some(FactFigure::Bytes(bytes)) if kind == Some("memory") => Some(bytes),
            _ => None,
        }
    });
    bytes.max().map(|bytes| bytes.min(limit) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_several_places_is_that_of_the_largest() {
        let facts = [
            ("memory available at the start", "9 kB"),
            ("memory on a", "2 kB"),
            ("memory on b", "3 kB"),
        ];
        let facts = facts.map(|(name, value)| Fact::of_older_log(name, value));
        assert_eq!(memory_bytes(&facts), Some(3.0 * 1024.0));
        assert_eq!(memory_bytes(&facts[..1]), None);
        assert_eq!(
            memory_bytes(&[Fact::of_older_log("memory", "5 kB")]),
            Some(5.0 * 1024.0)
        );
    }
}
