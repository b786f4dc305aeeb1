//! Why the rounds so far give no interval: each reason has a remedy of its own, and more rounds are only one of them.

use stackrace_stats::FIRST_LOOK;

use super::fidelity;
use super::sides::Sides;
use super::table::{ComparedFigure, ObservationTable};
use stackrace_base::event::{Ended, NamedQuantile, Observation, WorkloadHead};
use stackrace_base::unit::{count, counted};

/// What is missing for an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lacking {
    /// Rounds: there were fewer than the first look needs.
    Rounds,
    /// Rounds in one go, which alone count since the slices of a workload ended.
    RoundsInOneGo {
        /// Those there are.
        have: usize,
    },
    /// Operations: a quantile takes more than a trial has.
    Operations {
        /// Those of the trial that has fewest.
        have: u64,
        /// Those that the quantile takes.
        needed: u64,
    },
    /// The figure itself: trials were complete without it.
    Figure,
    /// A replay that is like its application.
    Fidelity,
}

impl Lacking {
    /// What a comparison of two sides lacks, if the rounds that have both are `pairs`.
    pub(super) fn of(
        table: &ObservationTable<'_>,
        sides: &Sides,
        figure: ComparedFigure,
        pairs: usize,
    ) -> Self {
        if fidelity::is_unlike(table.evidence, figure) {
            return Self::Fidelity;
        }
        let first = FIRST_LOOK as usize;
        if table.rounds.len() < first {
            return Self::Rounds;
        }
        for (workload, metric) in figure.parts(table.evidence.head) {
            let before = table.evidence.rounds_before(workload);
            // What a workload did in slices is never mixed with what it did in one go.
            if before > 0 && table.rounds.len() - before < first {
                return Self::RoundsInOneGo { have: pairs };
            }
            let all = sides.a.iter().chain(&sides.b);
            // One side without it is enough: a ratio takes both.
            let mut without = all.filter_map(|t| without_figure(table, *t, workload, metric));
            if let Some(lacking) = without.next() {
                return lacking;
            }
        }
        Self::Rounds
    }

    /// The reason as a fragment, with what would help where it is not a further round.
    pub(super) fn words(self) -> String {
        match self {
            Self::Rounds => "too few rounds for an interval".to_owned(),
            Self::RoundsInOneGo { have } => format!(
                "an interval takes {FIRST_LOOK} rounds in one go, and there {} {have}: those in slices do not count",
                if have == 1 { "is" } else { "are" }
            ),
            Self::Operations { have, needed } => format!(
                "no interval, because a trial has only {} and the figure takes {}: longer trials would tell, further rounds would not",
                counted(usize::try_from(have).unwrap_or(usize::MAX), "operation"),
                count(needed)
            ),
            Self::Figure => {
                "no interval, because trials ended without this figure: longer trials may have it, further rounds would not"
                    .to_owned()
            }
            Self::Fidelity => "no verdict, because the replay is not like the application".to_owned(),
        }
    }

    /// The same for a cell of a table.
    pub fn brief(self) -> &'static str {
        match self {
            Self::Rounds | Self::RoundsInOneGo { .. } => "too few rounds",
            Self::Operations { .. } => "too few operations",
            Self::Figure => "no figure",
            Self::Fidelity => "not like the application",
        }
    }

    /// Returns true if further rounds would give an interval.
    pub(super) fn takes_rounds(self) -> bool {
        matches!(self, Self::Rounds | Self::RoundsInOneGo { .. })
    }
}

/// A note on each workload whose judged figure is a quantile that trials have too few operations for: the largest values
/// are seen in part, and more of them where more is done.
pub(super) fn notes(table: &ObservationTable<'_>) -> Vec<String> {
    let head = table.evidence.head;
    let few = |(workload, of): (usize, &WorkloadHead)| {
        let metric = &of.metrics.first()?.name;
        let all = 0..head.configurations.len();
        let few = all.filter_map(|t| few_operations(table, t, workload, metric));
        let (have, needed) = few.min()?;
        Some(format!(
            "{}: {metric} takes {} operations in a trial, and one has only {}: it is shown too low, and lower where less is done; longer trials tell more",
            of.name,
            count(needed),
            count(have)
        ))
    };
    // One alone is not compared; what it must meet says so itself.
    let compares = head.configurations.len() > 1;
    let all = head.workloads.iter().enumerate().filter(|_| compares);
    all.filter_map(few).collect()
}

/// What the trials of a configuration lack, where enough were complete and too few of them have the figure.
fn without_figure(
    table: &ObservationTable<'_>,
    configuration: usize,
    workload: usize,
    metric: usize,
) -> Option<Lacking> {
    // After it left, its trials count no more, whatever they have.
    let rounds = 0..table.rounds_of(configuration);
    let taken = &table.rounds[rounds.clone()];
    let have = |at: &usize| table.value(configuration, workload, metric, *at).is_some();
    let with = rounds.filter(have).count();
    let trials = complete(table, taken, (configuration, workload));
    let first = FIRST_LOOK as usize;
    (with < first && trials.count() >= first).then(|| {
        let name = &table.evidence.head.workloads[workload].metrics[metric].name;
        match few_operations(table, configuration, workload, name) {
            Some((have, needed)) => Lacking::Operations { have, needed },
            None => Lacking::Figure,
        }
    })
}

/// The complete trials of a configuration on a workload, of these rounds.
fn complete<'a>(
    table: &'a ObservationTable<'_>,
    rounds: &'a [u32],
    of: (usize, usize),
) -> impl Iterator<Item = &'a Observation> {
    let all = table.evidence.trials.iter().copied();
    all.filter(move |it| {
        (it.configuration, it.workload) == of
            && it.ended == Ended::Complete
            && rounds.binary_search(&it.round).is_ok()
    })
}

/// Operations of the trial that has fewest of those that a quantile is of, and those that it takes; `None` if they are
/// enough, or not counted.
pub(super) fn few_operations(
    table: &ObservationTable<'_>,
    configuration: usize,
    workload: usize,
    metric: &str,
) -> Option<(u64, u64)> {
    let quantile = NamedQuantile::of(metric)?;
    let all = table.evidence.trials.iter();
    // One that was cut off had no time for more.
    let own = all.filter(|it| {
        (it.configuration, it.workload) == (configuration, workload) && it.ended == Ended::Complete
    });
    let counts = own.map(|trial| {
        let operations = trial.phases.iter().flat_map(|phase| &phase.operations);
        let operations = operations.filter(|it| it.op == quantile.op);
        operations.map(|it| it.count).sum::<u64>()
    });
    // What a program of its own counts is not on record.
    let fewest = counts.filter(|count| *count > 0).min()?;
    (fewest < quantile.needed).then_some((fewest, quantile.needed))
}
