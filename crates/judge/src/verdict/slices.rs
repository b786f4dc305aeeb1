//! Whether slices may stay: what the order of the turns does, and whether whole trials say the same.
//!
//! Slices assume that a turn leaves nothing behind that changes the next one. Each run tests that.
//! Within slices, turns in the order of the round are compared with those in the opposite order. A
//! workload that writes is also measured in one go in the first three rounds, because the order of
//! the turns does not show work that a stack puts off to the turns of others. These comparisons
//! decide whether slices stay; a workload whose slices end begins anew with the next round.

use std::collections::BTreeMap;

use libm::{expm1 as exp_m1, log as ln, log1p as ln_1p};
use serde::Serialize;
use stackrace_stats::{FIRST_LOOK, Ratio, paired_ratio, two_sided_level};

use super::evidence::Evidence;
use stackrace_base::event::{Ended, Observation, SliceSum, SlicesEnded};
use stackrace_base::unit;

/// Share of the margin from which on the effect of the order of turns matters.
pub(super) const SHARE_OF_MARGIN: f64 = 1.0 / 3.0;
/// Probability that the order of turns seems to matter at some check although it does not.
const ERROR: f64 = 0.05;
/// Two one-sided tests at 5 % each that whole trials say the same, as an interval of 90 %.
const SAME: f64 = 0.10;

/// Workloads whose slices are to end after these rounds.
pub fn end_slices(evidence: &Evidence<'_>) -> Vec<SlicesEnded> {
    let workloads = 0..evidence.head.workloads.len();
    let sliced = workloads.filter(|workload| evidence.in_slices(*workload));
    sliced
        .filter_map(|workload| {
            let why = Slices::of(evidence, workload).must_end()?;
            Some(SlicesEnded { workload, why })
        })
        .collect()
}

/// Notes for the reader on slices that ended.
pub(super) fn notes(evidence: &Evidence<'_>) -> Vec<String> {
    let ended = evidence.slices_ended.iter();
    ended
        .filter_map(|(rounds, ended)| {
            let workload = evidence.head.workloads.get(ended.workload)?;
            Some(format!(
                "{}: measured in one go from round {} on, not in slices, because {}; the rounds before do not count for it",
                workload.name,
                rounds + 1,
                ended.why
            ))
        })
        .collect()
}

/// Effect of the order of turns on a workload whose slices stayed.
#[derive(Debug, Clone, Serialize)]
pub struct OrderEffect {
    /// Workload by index.
    pub workload: usize,
    /// Size of the effect, in plain words.
    pub sentence: String,
}

/// Sizes of the effect of the order, of each workload whose slices stayed.
pub(super) fn order_effects(evidence: &Evidence<'_>) -> Vec<OrderEffect> {
    let workloads = 0..evidence.head.workloads.len();
    let stayed = workloads.filter(|workload| evidence.in_slices(*workload));
    stayed
        .map(|workload| OrderEffect {
            workload,
            sentence: Slices::of(evidence, workload).effect_words(),
        })
        .collect()
}

/// The last trial of each configuration in each complete round.
type LastTrials<'a> = BTreeMap<(usize, u32), &'a Observation>;

/// The complete trials of finished rounds of a workload that is measured in slices.
struct Slices<'a> {
    evidence: &'a Evidence<'a>,
    workload: usize,
    /// Planned duration of a slice, ns.
    slice_ns: Option<u64>,
    // What was measured again after a resume counts the last time, as in the verdict (`Cells::grow`).
    sliced: LastTrials<'a>,
    whole: LastTrials<'a>,
}

impl<'a> Slices<'a> {
    /// Finds the trials, once for all pairs of configurations.
    fn of(evidence: &'a Evidence<'a>, workload: usize) -> Self {
        let mut found = Self {
            evidence,
            workload,
            slice_ns: None,
            sliced: LastTrials::new(),
            whole: LastTrials::new(),
        };
        for trial in evidence.trials.iter().copied() {
            if trial.workload != workload
                || trial.ended != Ended::Complete
                || evidence.rounds.binary_search(&trial.round).is_err()
            {
                continue;
            }
            let kind = match &trial.sliced {
                Some(sliced) => {
                    found.slice_ns = found.slice_ns.or(Some(sliced.slice_ns));
                    &mut found.sliced
                }
                None => &mut found.whole,
            };
            kind.insert((trial.configuration, trial.round), trial);
        }
        found
    }

    /// The reason its slices must end; `None` if they may stay.
    fn must_end(&self) -> Option<String> {
        let head = self.evidence.head;
        // On the log scale, as the effects are.
        let allowed = ln_1p(head.decide.margin) * SHARE_OF_MARGIN;
        for other in 1..head.configurations.len() {
            let (order, after) = self.order_effects(other);
            if matters(&order, allowed) || matters(&after, allowed) {
                let [a, b] = [0, other].map(|t| head.configurations[t].name.as_str());
                return Some(format!(
                    "the turn of {a} changes that of {b}, or the other way round"
                ));
            }
        }
        // Only what writes also has trials in one go. Reads put no work off, so the order says all.
        let also_whole = !self.whole.is_empty();
        let unproven = (1..head.configurations.len()).any(|other| {
            // One that failed or was dropped says nothing any more.
            let gone = |t: usize| {
                self.evidence
                    .dropped
                    .iter()
                    .any(|(dropped, _)| *dropped == t)
            };
            !gone(0) && !gone(other) && !within(&self.of_kinds(other), allowed)
        });
        (also_whole && unproven).then(|| {
            "its first three rounds do not show that trials in one go have the same ratio"
                .to_owned()
        })
    }

    /// Size of the effect of the order of turns, for the configuration where it may matter most.
    fn effect_words(&self) -> String {
        let head = self.evidence.head;
        let slices = self.slice_ns.map_or(String::new(), |ns| {
            format!(" of {}", unit::time_ns(ns as f64))
        });
        let allowed = ln_1p(head.decide.margin) * SHARE_OF_MARGIN;
        let pairs = (1..head.configurations.len()).filter_map(|other| {
            let (order, after) = self.order_effects(other);
            Some((other, EffectSize::of(&order)?, EffectSize::of(&after)?))
        });
        let most = |pair: &(usize, EffectSize, EffectSize)| pair.1.most.max(pair.2.most);
        let Some((other, order, after)) = pairs.max_by(|a, b| most(a).total_cmp(&most(b))) else {
            let lacking = match self.evidence.rounds.len() < FIRST_LOOK as usize {
                true => "too few rounds",
                false => "too few turns with operations in both orders",
            };
            return format!(
                "measured in slices{slices}: {lacking} to tell whether the order of the turns matters"
            );
        };
        let [a, b] = [0, other].map(|t| head.configurations[t].name.as_str());
        format!(
            "measured in slices{slices}: taking turns can shift the ratio of {a} and {b} by {}; right after a turn of the other one, work differs by {}; slices end above {}",
            after.words(),
            order.words(),
            unit::percent(exp_m1(allowed))
        )
    }

    /// The last trial of a configuration in a round, in slices or in one go.
    fn trial(&self, sliced: bool, configuration: usize, round: u32) -> Option<&'a Observation> {
        let kind = if sliced { &self.sliced } else { &self.whole };
        kind.get(&(configuration, round)).copied()
    }

    /// For each round, what the order does to the ratio of a configuration to the first one; and how
    /// much more one of them loses by coming after the other, which is what a ratio over both orders
    /// keeps. Logarithms.
    fn order_effects(&self, other: usize) -> (Vec<f64>, Vec<f64>) {
        let effects = self.evidence.rounds.iter().filter_map(|round| {
            let [a, b] = [0, other].map(|t| self.trial(true, t, *round));
            let (a, b) = (a?, b?);
            let (of_a, of_b) = (forwards_effect(a)?, forwards_effect(b)?);
            // Half of each, since only every second lap has the other order. Where the other one
            // comes first in the round, "forwards" is B A, and the sign turns.
            let sign = if a.position < b.position { 0.5 } else { -0.5 };
            Some((sign * (of_b - of_a), sign * (of_b + of_a)))
        });
        effects.unzip()
    }

    /// For each round with trials of both kinds, the ratio in slices over that in one go, as a
    /// logarithm.
    fn of_kinds(&self, other: usize) -> Vec<f64> {
        let better = self.evidence.head.workloads[self.workload].metrics.first();
        let ln = |sliced: bool, t: usize, round: u32| {
            let value = (*self.trial(sliced, t, round)?.metrics.first()?)?;
            (value > 0.0).then(|| better.map(|metric| metric.better.oriented_ln(value)))?
        };
        let rounds = self.evidence.rounds.iter();
        rounds
            .filter_map(|round| {
                let ratio = |sliced| Some(ln(sliced, other, *round)? - ln(sliced, 0, *round)?);
                Some(ratio(true)? - ratio(false)?)
            })
            .collect()
    }
}

/// Advantage of a trial in laps in the order of the round over others, as a logarithm. The rate of an open loop is
/// given: there it is the response time.
fn forwards_effect(trial: &Observation) -> Option<f64> {
    let sliced = trial.sliced.as_ref()?;
    let open = trial
        .phases
        .iter()
        .any(|phase| phase.offered_per_s.is_some());
    let speed = |sum: &SliceSum| {
        let time = if open { sum.latency_ns } else { sum.ns };
        // A short trial may have no operation, or no lap, in one of the directions.
        let speed = sum.operations as f64 / time as f64;
        (speed.is_finite() && speed > 0.0).then(|| ln(speed))
    };
    Some(speed(&sliced.forwards)? - speed(&sliced.backwards)?)
}

/// The size of an effect over some rounds, whichever its direction, as logarithms.
struct EffectSize {
    estimate: f64,
    /// Upper bound of it, with the confidence of the test over all checks.
    most: f64,
}

impl EffectSize {
    /// Returns `None` if there are too few rounds.
    fn of(effects: &[f64]) -> Option<Self> {
        let ratio = tested(effects)?;
        let most = ln(ratio.low).abs().max(ln(ratio.high).abs());
        Some(Self {
            estimate: ln(ratio.estimate).abs(),
            most,
        })
    }

    fn words(&self) -> String {
        let [estimate, most] = [self.estimate, self.most].map(exp_m1);
        let estimate = unit::percent(estimate);
        match most {
            // No bound says anything there.
            most if most > 1.0 => format!("{estimate} (very uncertain)"),
            most => format!(
                "{estimate} (at most {})",
                unit::percent_rounded(most, unit::Rounded::Up)
            ),
        }
    }
}

/// An effect with its interval over all checks; `None` if there are too few rounds.
fn tested(effects: &[f64]) -> Option<Ratio> {
    let rounds = u32::try_from(effects.len()).unwrap_or(u32::MAX);
    let enough = rounds >= FIRST_LOOK;
    enough.then(|| paired_ratio(effects, two_sided_level(ERROR, rounds)))?
}

/// Returns true if an effect is larger than allowed, and no chance of these rounds.
fn matters(effects: &[f64], allowed: f64) -> bool {
    tested(effects).is_some_and(|ratio| ratio.excludes_one() && ln(ratio.estimate).abs() > allowed)
}

/// Returns true if an effect is certainly not larger than allowed.
fn within(effects: &[f64], allowed: f64) -> bool {
    let enough = effects.len() >= FIRST_LOOK as usize;
    let ratio = paired_ratio(effects, SAME).filter(|_| enough);
    ratio.is_some_and(|ratio| ln(ratio.low) >= -allowed && ln(ratio.high) <= allowed)
}
