//! The effect of each factor of a study, and whether it is the same at every level of the others.
//!
//! In a factorial study a main effect is the ratio of two levels of a factor averaged over all
//! combinations of the others; an interaction is the ratio of two such ratios: how much larger the
//! effect is at one level of another factor than at its baseline (Box, Hunter and Hunter,
//! Statistics for Experimenters, 2nd ed. 2005, chapter 5; here on the log scale and against the
//! first level as baseline). Each is a fixed weighted sum of the treatments' logarithms of one
//! round, so complete rounds give one value each and Student's interval applies as it does to a
//! pair. Nothing is assumed of the treatments beyond that, and no model is fitted.

use std::collections::BTreeMap;

use crate::equivalence::{Statement, state_in_order};
use crate::interval::mean;

/// The comparison of an effect. Factors by index; levels by index, those compared with the baseline
/// (or with each other where a level is the baseline) named last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Term {
    /// A level of a factor against its baseline, averaged over everything else.
    Main {
        /// Index of the factor.
        factor: usize,
        /// Index of the level that is compared with the factor's first.
        level: usize,
    },
    /// The same at one level of another factor alone.
    Within {
        /// Index of the factor.
        factor: usize,
        /// Index of the level that is compared with the factor's first.
        level: usize,
        /// Index of the factor that is held at one level.
        other: usize,
        /// Index of the level at which it is held.
        at: usize,
    },
    /// The effect of a level of a factor at a level of another, compared with the effect at the
    /// other's baseline.
    Interaction {
        /// Index of the factor.
        factor: usize,
        /// Index of the level that is compared with the factor's first.
        level: usize,
        /// The other factor, of a higher index.
        other: usize,
        /// Index of the other factor's level.
        at: usize,
    },
}

/// An effect as weights of the treatments' logarithms.
#[derive(Debug, Clone, PartialEq)]
pub struct FactorEffect {
    /// The comparison.
    pub term: Term,
    /// Treatment by index, and its weight; the weights add up to 0.
    pub weights: Vec<(usize, f64)>,
}

impl FactorEffect {
    /// The effect in each round that has all of its treatments: the round by position, and the
    /// logarithm of the ratio. `log_values` is indexed `[treatment][round]`; a value that is
    /// missing is not a number.
    pub fn rounds(&self, log_values: &[Vec<f64>]) -> Vec<(usize, f64)> {
        let lanes = self.weights.iter().map(|(t, _)| log_values[*t].len());
        (0..lanes.min().unwrap_or(0))
            .map(|round| {
                let parts = self.weights.iter();
                let sum: f64 = parts
                    .map(|(t, weight)| weight * log_values[*t][round])
                    .sum();
                (round, sum)
            })
            // A missing value is NaN and makes the sum NaN: the round is incomplete.
            .filter(|(_, sum)| sum.is_finite())
            .collect()
    }

    /// The statement that may be made of the effect over complete rounds; see [`state_in_order`].
    /// `log_steps` is the step in which each of the values is known, indexed as they are
    /// ([`crate::resolution::log_step`]); empty: exactly.
    pub fn state(
        &self,
        log_values: &[Vec<f64>],
        log_steps: &[Vec<f64>],
        alpha: f64,
        margin: f64,
    ) -> Option<Statement> {
        let rounds = self.rounds(log_values);
        let logs: Vec<f64> = rounds.iter().map(|(_, log)| *log).collect();
        let resolution = self.resolution(&rounds, log_steps);
        state_in_order(&logs, None, resolution, alpha, margin)
    }

    /// Largest error of the mean over these rounds because the values are given in steps.
    fn resolution(&self, rounds: &[(usize, f64)], log_steps: &[Vec<f64>]) -> f64 {
        if rounds.is_empty() {
            return 0.0;
        }
        // Cutting off moves all values down: those of one sign alone, at worst. Rounding does no more.
        let of_sign = |round: usize, sign: f64| -> f64 {
            let parts = self.weights.iter();
            parts
                .map(|(t, weight)| {
                    let step = log_steps.get(*t).and_then(|steps| steps.get(round));
                    (weight * sign).max(0.0) * step.unwrap_or(&0.0)
                })
                .sum()
        };
        let of_round = |(round, _): &(usize, f64)| of_sign(*round, 1.0).max(of_sign(*round, -1.0));
        mean(&rounds.iter().map(of_round).collect::<Vec<_>>())
    }
}

/// Every main effect, then every effect within levels of another factor, then every interaction of
/// two factors, of treatments given by the level of each factor. Level 0 is the baseline.
///
/// Only treatments that differ in nothing else are set against each other: where combinations are
/// missing, an effect is averaged over those that have all they need, and is left out where none
/// has. With one factor there are main effects alone.
pub fn effects(treatments: &[Vec<usize>]) -> Vec<FactorEffect> {
    let design = Design::of(treatments);
    let mut found = Vec::new();
    for factor in 0..design.levels.len() {
        for level in 1..design.levels[factor] {
            found.extend(design.main(factor, level, None));
        }
    }
    for (factor, other) in design.pairs() {
        for level in 1..design.levels[factor] {
            for at in 0..design.levels[other] {
                found.extend(design.main(factor, level, Some((other, at))));
            }
        }
    }
    for (factor, other) in design.pairs().filter(|(factor, other)| factor < other) {
        for level in 1..design.levels[factor] {
            for at in 1..design.levels[other] {
                found.extend(design.interaction((factor, level), (other, at)));
            }
        }
    }
    found
}

/// Treatments by their levels.
struct Design<'a> {
    treatments: &'a [Vec<usize>],
    place: BTreeMap<&'a [usize], usize>,
    /// Number of levels of each factor.
    levels: Vec<usize>,
}

impl<'a> Design<'a> {
    fn of(treatments: &'a [Vec<usize>]) -> Design<'a> {
        let factors = treatments.iter().map(Vec::len).min().unwrap_or(0);
        let count = |factor: usize| {
            let levels = treatments.iter().map(|levels| levels[factor] + 1);
            levels.max().unwrap_or(0)
        };
        Design {
            treatments,
            place: treatments
                .iter()
                .enumerate()
                .map(|(at, levels)| (levels.as_slice(), at))
                .collect(),
            levels: (0..factors).map(count).collect(),
        }
    }

    /// Every ordered pair of factors.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let n = self.levels.len();
        (0..n).flat_map(move |a| (0..n).filter(move |b| *b != a).map(move |b| (a, b)))
    }

    /// The treatment that is like `base` but for some factors.
    fn with(&self, base: &[usize], changed: &[(usize, usize)]) -> Option<usize> {
        let mut levels = base.to_vec();
        for (factor, level) in changed {
            levels[*factor] = *level;
        }
        self.place.get(levels.as_slice()).copied()
    }

    /// A level against the baseline, over all combinations that have both.
    fn main(
        &self,
        factor: usize,
        level: usize,
        within: Option<(usize, usize)>,
    ) -> Option<FactorEffect> {
        let inside = |levels: &[usize]| within.is_none_or(|(other, at)| levels[other] == at);
        let bases = self.treatments.iter();
        let sets = bases
            .filter(|base| base[factor] == 0 && inside(base))
            .filter_map(|base| {
                let low = self.with(base, &[])?;
                let high = self.with(base, &[(factor, level)])?;
                Some(vec![(high, 1.0), (low, -1.0)])
            });
        let term = match within {
            None => Term::Main { factor, level },
            Some((other, at)) => Term::Within {
                factor,
                level,
                other,
                at,
            },
        };
        averaged(term, sets)
    }

    /// The ratio of two ratios, over all combinations that have all four.
    fn interaction(&self, one: (usize, usize), two: (usize, usize)) -> Option<FactorEffect> {
        let bases = self.treatments.iter();
        let sets = bases
            .filter(|base| base[one.0] == 0 && base[two.0] == 0)
            .filter_map(|base| {
                let low = self.with(base, &[])?;
                let first = self.with(base, &[one])?;
                let second = self.with(base, &[two])?;
                let both = self.with(base, &[one, two])?;
                Some(vec![(both, 1.0), (second, -1.0), (first, -1.0), (low, 1.0)])
            });
        let term = Term::Interaction {
            factor: one.0,
            level: one.1,
            other: two.0,
            at: two.1,
        };
        averaged(term, sets)
    }
}

/// The mean of sets of weights; `None` if there is no set.
fn averaged(term: Term, sets: impl Iterator<Item = Vec<(usize, f64)>>) -> Option<FactorEffect> {
    let sets: Vec<Vec<(usize, f64)>> = sets.collect();
    let mut weights: BTreeMap<usize, f64> = BTreeMap::new();
    for (treatment, weight) in sets.iter().flatten() {
        // A treatment may occur in several sets: its weights add up, and may cancel.
        *weights.entry(*treatment).or_default() += weight / sets.len() as f64;
    }
    (!sets.is_empty()).then(|| FactorEffect {
        term,
        weights: weights.into_iter().collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(found: &[FactorEffect], term: Term) -> &FactorEffect {
        found.iter().find(|effect| effect.term == term).unwrap()
    }

    /// Box, Hunter and Hunter's pilot plant: 2³ runs of temperature (160, 180 °C), concentration
    /// (20, 40 %) and catalyst (A, B), yields 60 72 54 68 52 83 45 80 in standard order. Their
    /// effects in per cent of yield: T 23, C −5, K 1.5, TC 1.5, TK 10, CK 0. An interaction there
    /// is half the difference of two effects, here it is the whole.
    #[test]
    fn effects_of_the_pilot_plant_are_as_published() {
        let yields = [60.0, 72.0, 54.0, 68.0, 52.0, 83.0, 45.0, 80.0];
        let treatments: Vec<Vec<usize>> = (0..8)
            .map(|run| vec![run & 1, run >> 1 & 1, run >> 2 & 1])
            .collect();
        let values: Vec<Vec<f64>> = yields.iter().map(|y| vec![*y]).collect();
        let found = effects(&treatments);
        let value = |term| of(&found, term).rounds(&values)[0].1;
        let main = |factor| value(Term::Main { factor, level: 1 });
        let both = |factor, other| {
            value(Term::Interaction {
                factor,
                level: 1,
                other,
                at: 1,
            })
        };
        assert_eq!([main(0), main(1), main(2)], [23.0, -5.0, 1.5]);
        assert_eq!(
            [both(0, 1) / 2.0, both(0, 2) / 2.0, both(1, 2) / 2.0],
            [1.5, 10.0, 0.0]
        );
        // Of temperature within catalyst A and B: (12 + 14) / 2 and (31 + 35) / 2.
        let within = |at| {
            value(Term::Within {
                factor: 0,
                level: 1,
                other: 2,
                at,
            })
        };
        assert_eq!([within(0), within(1)], [13.0, 33.0]);
        assert_eq!(found.len(), 3 + 12 + 3);
    }

    #[test]
    fn weights_add_up_to_zero_and_one_factor_has_no_interaction() {
        let treatments: Vec<Vec<usize>> = (0..3).map(|level| vec![level]).collect();
        let found = effects(&treatments);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].weights, vec![(0, -1.0), (2, 1.0)]);
        assert_eq!(effects(&[]), Vec::new());
        let six: Vec<Vec<usize>> = (0..6).map(|at| vec![at / 3, at % 3]).collect();
        for effect in effects(&six) {
            let sum: f64 = effect.weights.iter().map(|(_, weight)| weight).sum();
            assert!(sum.abs() < 1e-15, "{effect:?}");
        }
    }

    /// Without the fourth corner there is no interaction, and a main effect is one pair.
    #[test]
    fn missing_combinations_are_not_made_up() {
        let found = effects(&[vec![0, 0], vec![1, 0], vec![0, 1]]);
        let terms: Vec<Term> = found.iter().map(|effect| effect.term).collect();
        assert!(
            !terms
                .iter()
                .any(|term| matches!(term, Term::Interaction { .. }))
        );
        let main = of(
            &found,
            Term::Main {
                factor: 0,
                level: 1,
            },
        );
        assert_eq!(main.weights, vec![(0, -1.0), (1, 1.0)]);
    }

    #[test]
    fn only_complete_rounds_count() {
        let found = effects(&[vec![0], vec![1]]);
        let values = vec![vec![1.0, 2.0, f64::NAN, 4.0], vec![1.5, 2.5, 3.5]];
        assert_eq!(found[0].rounds(&values), vec![(0, 0.5), (1, 0.5)]);
        assert_eq!(found[0].state(&values, &[], 0.05, 0.05), None);
        let more = vec![vec![1.0, 2.0, f64::NAN, 4.0], vec![1.5, 2.5, 3.5, 4.5]];
        let said = found[0].state(&more, &[], 0.05, 0.05).unwrap();
        assert!((said.ratio.estimate.ln() - 0.5).abs() < 1e-12);
    }
}
