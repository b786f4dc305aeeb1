//! Disturbances that fell on one configuration more than on another: rounds cancel only what meets all
//! of them alike.

use super::difference::{RunReading, Unlike};
use crate::audit::cell::AuditCell;
use crate::audit::judgement::Grade;

/// Checks of disturbances, with what disturbed in plain words.
const DISTURBANCES: [(&str, &str); 4] = [
    ("neighbours", "other processes disturbed"),
    ("stolen time", "the hypervisor took CPU time from"),
    ("memory", "memory ran short in"),
    ("heat", "a hot processor slowed down"),
];

/// Shares of disturbed trials that differ by at least this much are named.
const SHARE: f64 = 0.5;
/// Fewer disturbed trials may fall on one configuration by chance.
const TRIALS_MIN: usize = 3;

pub(super) fn judge(run: &RunReading<'_>) -> Vec<Unlike> {
    let checks = DISTURBANCES.iter();
    checks
        .filter_map(|(check, words)| one(run, check, words))
        .collect()
}

fn one(run: &RunReading<'_>, check: &'static str, words: &str) -> Option<Unlike> {
    let disturbed = run.each(|configuration| {
        let cells = run.cells.iter();
        let mine = cells.filter(|cell| cell.configuration == configuration);
        let counts = mine.filter_map(|cell| count(cell, check));
        let (some, all) = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
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
    let unequal = share(most.1) - share(least.1) >= SHARE && most.1.0 >= TRIALS_MIN;
    unequal.then(|| Unlike {
        check,
        sentence: format!(
            "disturbed unequally: {words} {} of {} trials of {} and {} of {} of {}, so a part of the difference is not the storage's",
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
fn count(cell: &AuditCell, check: &str) -> Option<(usize, usize)> {
    let judgement = cell.judgement(check)?;
    let disturbed = match judgement.grade {
        Grade::Ok => 0,
        _ => judgement.trials,
    };
    Some((disturbed, judgement.of))
}

#[cfg(test)]
mod tests {
    use super::super::sample::Run;
    use super::*;

    fn found(change: impl Fn(&mut crate::event::Observation)) -> Vec<Unlike> {
        let mut run = Run::of(|_| Vec::new());
        run.each_trial(change);
        run.read(judge)
    }

    #[test]
    fn a_neighbour_of_one_configuration_is_named_and_one_of_all_is_not() {
        let busy = |trial: &mut crate::event::Observation| {
            trial.counted.devices[0].written_bytes += 1_000_000_000_000;
        };
        let one = found(|trial| {
            if trial.configuration == 1 {
                busy(trial)
            }
        });
        assert_eq!(one.len(), 1, "{one:?}");
        assert!(
            one[0]
                .sentence
                .contains("other processes disturbed 15 of 15 trials of xfs and 0 of 15 of ext4"),
            "{one:?}"
        );
        assert_eq!(found(busy), []);
    }

    #[test]
    fn stolen_time_of_one_configuration_is_named_and_that_of_all_is_not() {
        let steal = |trial: &mut crate::event::Observation| {
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
