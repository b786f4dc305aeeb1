//! The table of effects: what each factor does, and whether it does so everywhere.
//!
//! One table for the overall figure and one for each workload. All rows of a table share its error
//! equally; half of the whole is for the overall table, half for those of the workloads. Effects within
//! levels of another factor are given for the factor the study compares, for every factor where it
//! compares none.

use serde::Serialize;
use stackrace_stats::Term;

use super::fragment;
use super::statement::{Coarseness, Interval, VerdictWord};
use super::table::{ComparedFigure, ObservationTable};
use crate::published::distinct;
use stackrace_base::event::{MetricHead, RunStarted};

/// The effects on one figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EffectTable {
    /// Name of the workload; empty for all workloads.
    pub workload: String,
    /// Metric; `None` for the overall figure.
    pub metric: Option<MetricHead>,
    /// Main effects, then effects within levels, then interactions.
    pub rows: Vec<EffectRow>,
}

/// The ratio of two levels of a factor, or how it depends on another factor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EffectRow {
    /// Main effect, effect within a level, or interaction.
    pub kind: EffectKind,
    /// Name of the factor whose levels are compared.
    pub factor: String,
    /// Its baseline.
    pub a: String,
    /// The level compared with it.
    pub b: String,
    /// The other factor; empty for a main effect.
    pub other: String,
    /// Levels of the other factor: the one this is within, or the baseline of an interaction and
    /// the one compared with it.
    pub at: Vec<String>,
    /// B over A, above 1: better; of an interaction, the ratio there over the ratio at the other
    /// factor's baseline. `None` if there are too few complete rounds.
    pub ratio: Option<Interval>,
    /// The word that follows from the interval.
    pub word: VerdictWord,
    /// The word as a sentence fragment.
    pub text: String,
    /// Complete rounds it rests on.
    pub rounds: usize,
}

/// The subject of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EffectKind {
    /// A level against the first, averaged over everything else.
    Main,
    /// The same at one level of another factor.
    Within,
    /// The ratio by which the effect is larger at a level of another factor than at its first.
    Interaction,
}

/// The tables of a study that varies two factors or more, at a look; none of any other.
pub(super) fn effects(table: &ObservationTable<'_>, checked: bool) -> Vec<EffectTable> {
    let head = table.evidence.head;
    let factors: Vec<Factor> = (0..head.factors.len())
        .map(|at| Factor::of(head, at))
        .collect();
    // With a single factor, its main effects are the comparisons of the verdict already.
    let varied = factors.iter().filter(|factor| factor.levels.len() > 1);
    if varied.count() < 2 || table.evidence.imported || !checked {
        return Vec::new();
    }
    let configurations: Vec<Vec<usize>> = (0..table.configurations())
        .map(|t| {
            factors
                .iter()
                .map(|factor| factor.of_configuration[t])
                .collect()
        })
        .collect();
    let compared = head.decide.comparison.as_ref();
    let asked = |term: Term| match term {
        Term::Within { factor, .. } => compared.is_none_or(|name| *name == head.factors[factor]),
        Term::Main { .. } | Term::Interaction { .. } => true,
    };
    let found = stackrace_stats::effects(&configurations);
    let found: Vec<_> = found.iter().filter(|effect| asked(effect.term)).collect();
    let spent = (1.0 - head.decide.confidence) / found.len().max(1) as f64;
    let workloads = table.workloads();
    // With one workload both tables would be the same: there is one, with the whole error.
    let mut figures = vec![(
        ComparedFigure::Overall,
        if workloads > 1 { spent / 2.0 } else { spent },
    )];
    if workloads > 1 {
        let share = spent / 2.0 / workloads as f64;
        figures.extend((0..workloads).map(|w| (ComparedFigure::primary(w), share)));
    }
    figures
        .into_iter()
        .map(|(figure, alpha)| {
            let values = Values::of(table, figure);
            let row = |effect: &&stackrace_stats::FactorEffect| {
                row(head, &factors, effect, &values, alpha)
            };
            EffectTable {
                workload: figure.workload_name(head),
                metric: figure.metric(head).cloned(),
                rows: found.iter().map(row).collect(),
            }
        })
        .collect()
}

/// A factor's levels in the order of the study, and the level of each configuration.
struct Factor {
    levels: Vec<String>,
    of_configuration: Vec<usize>,
}

impl Factor {
    fn of(head: &RunStarted, at: usize) -> Self {
        let of = |configuration: usize| head.configurations[configuration].levels[at].clone();
        let levels = distinct((0..head.configurations.len()).map(of));
        let place = |t: usize| levels.iter().position(|level| *level == of(t)).unwrap_or(0);
        Self {
            of_configuration: (0..head.configurations.len()).map(place).collect(),
            levels,
        }
    }
}

/// A figure of all configurations, indexed `[configuration][round]`, as far as each was in the race.
struct Values {
    /// Logarithms; a missing one is not a number.
    logs: Vec<Vec<f64>>,
    /// Step widths of each.
    steps: Vec<Vec<f64>>,
    printed: bool,
}

impl Values {
    fn of(table: &ObservationTable<'_>, figure: ComparedFigure) -> Self {
        // The statistics leave out a round in which a value that an effect needs is not a number.
        let value = |t, at| table.ln(t, figure, at).unwrap_or(f64::NAN);
        let all = |of: &dyn Fn(usize, usize) -> f64| {
            (0..table.configurations())
                .map(|t| (0..table.rounds_of(t)).map(|at| of(t, at)).collect())
                .collect()
        };
        Self {
            logs: all(&value),
            steps: all(&|t, at| table.log_step(t, figure, at)),
            printed: figure.is_printed(table.evidence),
        }
    }
}

fn row(
    head: &RunStarted,
    factors: &[Factor],
    effect: &stackrace_stats::FactorEffect,
    values: &Values,
    alpha: f64,
) -> EffectRow {
    let (kind, factor, level, other) = match effect.term {
        Term::Main { factor, level } => (EffectKind::Main, factor, level, None),
        Term::Within {
            factor,
            level,
            other,
            at,
        } => (EffectKind::Within, factor, level, Some((other, vec![at]))),
        Term::Interaction {
            factor,
            level,
            other,
            at,
        } => (
            // An interaction is relative to the other factor's first level.
            EffectKind::Interaction,
            factor,
            level,
            Some((other, vec![0, at])),
        ),
    };
    let rounds = effect.rounds(&values.logs).len();
    let said = effect.state(&values.logs, &values.steps, alpha, head.decide.margin);
    let word = said.map_or(VerdictWord::TooFew, |said| said.word.into());
    let ratio = said.map(|said| Interval::from(said.ratio));
    let coarse = said.map_or_else(Coarseness::default, |said| {
        Coarseness::of(&said, values.printed)
    });
    let (other, at) = other.map_or((String::new(), Vec::new()), |(other, at)| {
        let level = |at: &usize| factors[other].levels[*at].clone();
        (head.factors[other].clone(), at.iter().map(level).collect())
    });
    EffectRow {
        kind,
        factor: head.factors[factor].clone(),
        a: factors[factor].levels[0].clone(),
        b: factors[factor].levels[level].clone(),
        other,
        at,
        ratio,
        word,
        text: match kind {
            EffectKind::Interaction => fragment::interaction(word, ratio, coarse),
            EffectKind::Main | EffectKind::Within => fragment::fragment(word, ratio, coarse),
        },
        rounds,
    }
}
