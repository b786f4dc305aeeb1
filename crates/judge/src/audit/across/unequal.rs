//! Disturbances that fell on one configuration more than on another: rounds cancel only what meets all
//! of them alike.

use super::difference::{RunReading, Unlike};
use crate::audit::cell::AuditCell;
use crate::audit::judgement::Grade;

/// A kind of disturbance.
struct Disturbance {
    /// The check of single trials that finds it.
    check: &'static str,
    /// The flagged trials that are meant.
    flagged: Flagged,
    /// The disturbance, in plain words.
    words: &'static str,
}

/// Trials that a check flags.
enum Flagged {
    All,
    /// Trials whose first figure is beyond its threshold.
    ByFirstFigure,
    /// Trials whose first figure is within its threshold: another figure flagged them.
    ByOtherFigures,
}

const DISTURBANCES: &[Disturbance] = &[
    Disturbance {
        check: "neighbours",
        flagged: Flagged::ByFirstFigure,
        words: "I/O of other processes disturbed",
    },
    Disturbance {
        check: "neighbours",
        flagged: Flagged::ByOtherFigures,
        words: "other processes took CPU time in",
    },
    Disturbance {
        check: "stolen time",
        flagged: Flagged::All,
        words: "the hypervisor took CPU time in",
    },
    Disturbance {
        check: "memory",
        flagged: Flagged::All,
        words: "memory ran short in",
    },
    Disturbance {
        check: "heat",
        flagged: Flagged::All,
        words: "a hot processor slowed down",
    },
];

/// Shares of disturbed trials that differ by at least this much are named.
const SHARE: f64 = 0.5;
/// Fewer disturbed trials may fall on one configuration by chance.
const TRIALS_MIN: usize = 3;

pub(super) fn judge(run: &RunReading<'_>) -> Vec<Unlike> {
    let all = DISTURBANCES.iter();
    all.filter_map(|disturbance| one(run, disturbance))
        .collect()
}

fn one(run: &RunReading<'_>, disturbance: &Disturbance) -> Option<Unlike> {
    let words = disturbance.words;
    let disturbed = run.each(|configuration| {
        let cells = run.cells.iter();
        let mine = cells.filter(|cell| cell.configuration == configuration);
        let counts = mine.filter_map(|cell| count(cell, disturbance));
        let (some, all) = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        // Without a judgement there is nothing to compare: a share of nothing is no share.
        (all > 0).then_some((some, all))
    });
    let share = |(some, all): (usize, usize)| some as f64 / all as f64;
    let by_share = |a: &&(usize, (usize, usize)), b: &&(usize, (usize, usize))| {
        share(a.1).total_cmp(&share(b.1))
    };
    let (least, most) = (
        disturbed.iter().min_by(by_share)?,
        disturbed.iter().max_by(by_share)?,
    );
    // A disturbance that meets all alike cancels in the ratio of each round.
    let unequal = share(most.1) - share(least.1) >= SHARE && most.1.0 >= TRIALS_MIN;
    unequal.then(|| Unlike {
        check: disturbance.check,
        sentence: format!(
            "{words} {} of {} trials of {}, but {} of {} of {}: a part of the difference is not the storage's",
            most.1.0,
            most.1.1,
            run.name(most.0),
            least.1.0,
            least.1.1,
            run.name(least.0)
        ),
    })
}

/// Disturbed trials of a cell, and all that were judged.
fn count(cell: &AuditCell, disturbance: &Disturbance) -> Option<(usize, usize)> {
    let judgement = cell.judgement(disturbance.check)?;
    if judgement.grade == Grade::Ok {
        return Some((0, judgement.of));
    }
    // Values and threshold are of the same figure: the first one of the evidence.
    let limit = judgement
        .evidence
        .first()?
        .threshold
        .unwrap_or(f64::INFINITY);
    let beyond = judgement
        .values
        .iter()
        .filter(|value| **value > limit)
        .count();
    let disturbed = match disturbance.flagged {
        Flagged::All => judgement.trials,
        Flagged::ByFirstFigure => beyond,
        Flagged::ByOtherFigures => judgement.trials.saturating_sub(beyond),
    };
    Some((disturbed, judgement.of))
}

#[cfg(test)]
mod tests {
    use super::super::sample::Run;
    use super::*;

    fn found(change: impl Fn(&mut stackrace_base::event::Observation)) -> Vec<Unlike> {
        let mut run = Run::of(|_| Vec::new());
        run.each_trial(change);
        run.read(judge)
    }

    #[test]
    fn a_neighbour_of_one_configuration_is_named_and_one_of_all_is_not() {
        let busy = |trial: &mut stackrace_base::event::Observation| {
            trial.counted.devices[0].written_bytes += 1_000_000_000_000;
        };
        let one = found(|trial| {
            if trial.configuration == 1 {
                busy(trial)
            }
        });
        assert_eq!(one.len(), 1, "{one:?}");
        assert!(
            one[0].sentence.contains(
                "I/O of other processes disturbed 15 of 15 trials of xfs, but 0 of 15 of ext4"
            ),
            "{one:?}"
        );
        assert_eq!(found(busy), []);
    }

    #[test]
    fn stolen_time_of_one_configuration_is_named_and_that_of_all_is_not() {
        let steal = |trial: &mut stackrace_base::event::Observation| {
            trial.counted.cpu_steal_ns = trial.elapsed_ns;
        };
        let one = found(|trial| {
            if trial.configuration == 0 {
                steal(trial)
            }
        });
        assert_eq!((one.len(), one[0].check), (1, "stolen time"), "{one:?}");
        assert_eq!(found(steal), []);
        // Two trials of fifteen are chance.
        let two = found(|trial| {
            if trial.configuration == 0 && trial.workload == 0 && trial.round < 3 {
                steal(trial);
            }
        });
        assert_eq!(two, []);
    }
}
