//! Which of many treatments are out of the race for the best.
//!
//! At each planned look the treatment with the highest mean leads, and those that the leader
//! beats for certain are dropped, so that later rounds are spent on the ones still in question.
//! The true best can only be dropped when one of the k − 1 others beats it by accident at one
//! of K looks; at a one-sided error of `alpha / (K (k − 1))` each, all these accidents together
//! have a probability of at most alpha. It does not matter which treatment happens to lead.
//!
//! Values are natural logarithms oriented so that bigger is better, indexed
//! `[treatment][round]`. Only *complete* rounds count: those in which every live treatment has
//! a finite value. A dropped treatment may simply have fewer rounds.

use crate::interval::{mean, t_quantile, variance};

/// The live treatments over their complete rounds, and one one-sided multiplier for all pairs.
struct Race {
    /// Index of the treatment, its values in complete rounds.
    lanes: Vec<(usize, Vec<f64>)>,
    /// `t(n−1, 1−a) / √n` with a = alpha per look / (k − 1); `None` below two complete rounds.
    multiplier: Option<f64>,
}

impl Race {
    fn new(log_values: &[Vec<f64>], live: &[usize], one_sided_alpha: f64) -> Race {
        let rounds = live.iter().map(|&i| log_values[i].len()).min().unwrap_or(0);
        let complete: Vec<usize> = (0..rounds)
            .filter(|&round| live.iter().all(|&i| log_values[i][round].is_finite()))
            .collect();
        let lane = |&i: &usize| (i, complete.iter().map(|&r| log_values[i][r]).collect());
        let n = complete.len() as f64;
        let multiplier = t_quantile(1.0 - one_sided_alpha, n - 1.0) / n.sqrt();
        Race {
            lanes: live.iter().map(lane).collect(),
            multiplier: (complete.len() >= 2).then_some(multiplier),
        }
    }

    /// Every treatment with the highest mean: one, except for exact ties.
    fn leaders(&self) -> Vec<usize> {
        let means: Vec<f64> = self.lanes.iter().map(|(_, values)| mean(values)).collect();
        let top = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (0..means.len())
            .filter(|&lane| means[lane] == top)
            .collect()
    }

    /// How far lane `ahead` is above lane `behind`, and how far off that may be to one side.
    fn lead(&self, ahead: usize, behind: usize) -> Option<(f64, f64)> {
        let pairs = self.lanes[ahead].1.iter().zip(&self.lanes[behind].1);
        let differences: Vec<f64> = pairs.map(|(a, b)| a - b).collect();
        let slack = self.multiplier? * variance(&differences).sqrt();
        Some((mean(&differences), slack))
    }
}

/// The share of one pair in the error of a look: the best has `treatments_total - 1` rivals.
fn share(alpha_per_look: f64, treatments_total: usize) -> f64 {
    alpha_per_look / treatments_total.saturating_sub(1).max(1) as f64
}

/// The live treatments that are certainly not the best, in the order of `live`.
///
/// `treatments_total` is the number the study began with, because each of them might have beaten
/// the best by accident at an earlier look. Nothing is dropped before two complete rounds. With
/// several exact leaders, being beaten by one of them is enough, so that the order in which
/// treatments are listed never matters.
///
/// # Panics
///
/// If `live` names a treatment that `log_values` does not have.
pub fn eliminate(
    log_values: &[Vec<f64>],
    live: &[usize],
    alpha_per_look: f64,
    treatments_total: usize,
) -> Vec<usize> {
    let race = Race::new(log_values, live, share(alpha_per_look, treatments_total));
    let leaders = race.leaders();
    let beaten_by = |leader: usize, lane: usize| {
        race.lead(leader, lane)
            .is_some_and(|(lead, slack)| lead - slack > 0.0)
    };
    (0..live.len())
        .filter(|&lane| leaders.iter().any(|&leader| beaten_by(leader, lane)))
        .map(|lane| race.lanes[lane].0)
        .collect()
}

/// The live treatment with the highest mean over the complete rounds; of several, or before the
/// first complete round, the one listed first.
///
/// # Panics
///
/// If `live` is empty or names a treatment that `log_values` does not have.
pub fn leader(log_values: &[Vec<f64>], live: &[usize]) -> usize {
    assert!(!live.is_empty(), "a race without treatments has no leader");
    let race = Race::new(log_values, live, 0.5);
    live[race.leaders().first().copied().unwrap_or(0)]
}

/// Whether all live treatments are certainly within the margin (0.05 is 5 %) of the leader:
/// none is behind it by a ratio of `1 + margin` or more. Choosing among them is then a matter
/// of other grounds.
///
/// A single live treatment is no tie, and nothing is certain before two complete rounds.
/// This is a second family of statements with its own error of alpha beside that of
/// [`eliminate`].
///
/// # Panics
///
/// If `live` names a treatment that `log_values` does not have.
pub fn tie_set(
    log_values: &[Vec<f64>],
    live: &[usize],
    alpha_per_look: f64,
    treatments_total: usize,
    margin: f64,
) -> bool {
    if live.len() < 2 {
        return false;
    }
    let race = Race::new(log_values, live, share(alpha_per_look, treatments_total));
    let within = |leader: usize, lane: usize| {
        race.lead(leader, lane)
            .is_some_and(|(lead, slack)| lead + slack < margin.ln_1p())
    };
    // Without a complete round there is no leader, and `all` over nothing would be true.
    let leaders = race.leaders();
    !leaders.is_empty()
        && leaders
            .iter()
            .all(|&leader| (0..live.len()).all(|lane| lane == leader || within(leader, lane)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three treatments around 2, 1 and 0 with noise that differs from round to round.
    fn steps() -> Vec<Vec<f64>> {
        let noise = [0.010, -0.020, 0.015, -0.005, 0.0];
        let around =
            |centre: f64, shift: usize| (0..5).map(|r| centre + noise[(r + shift) % 5]).collect();
        vec![around(0.0, 0), around(2.0, 1), around(1.0, 2)]
    }

    #[test]
    fn the_clearly_beaten_go() {
        assert_eq!(leader(&steps(), &[0, 1, 2]), 1);
        assert_eq!(eliminate(&steps(), &[0, 1, 2], 0.01, 3), vec![0, 2]);
        assert_eq!(eliminate(&steps(), &[2, 0], 0.01, 3), vec![0]);
        assert_eq!(eliminate(&steps(), &[1], 0.01, 3), Vec::<usize>::new());
        assert_eq!(eliminate(&steps(), &[], 0.01, 3), Vec::<usize>::new());
    }

    /// t(4, 0.995) = 4.604; mean 0.1 and deviation s differ by 4.604 s / √5 = 2.059 s.
    #[test]
    fn the_bound_is_the_one_sided_paired_t() {
        let study = |s: f64| {
            let unit = (0.4_f64).sqrt();
            let noise = [-2.0, -1.0, 0.0, 1.0, 2.0].map(|z| z * unit * s);
            vec![vec![1.0; 5], noise.map(|z| 0.9 + z).to_vec()]
        };
        // The noise above has variance s²: (4 + 1 + 0 + 1 + 4) / 4 · 0.4 = 1.
        assert_eq!(eliminate(&study(0.1 / 2.07), &[0, 1], 0.005, 2), vec![1]);
        assert!(eliminate(&study(0.1 / 2.05), &[0, 1], 0.005, 2).is_empty());
        // Three treatments halve the share of a pair: t(4, 0.9975) = 5.598, 2.503 s.
        assert!(eliminate(&study(0.1 / 2.07), &[0, 1], 0.005, 3).is_empty());
        assert_eq!(eliminate(&study(0.1 / 2.52), &[0, 1], 0.005, 3), vec![1]);
    }

    #[test]
    fn one_round_drops_no_treatment_and_ties_none() {
        let values = vec![vec![5.0], vec![1.0]];
        assert_eq!(eliminate(&values, &[0, 1], 0.05, 2), Vec::<usize>::new());
        assert!(!tie_set(&values, &[0, 1], 0.05, 2, 0.05));
        assert_eq!(leader(&values, &[0, 1]), 0);
        let nothing = vec![vec![], vec![]];
        assert!(!tie_set(&nothing, &[0, 1], 0.05, 2, 0.05));
        assert_eq!(leader(&nothing, &[1, 0]), 1);
    }

    /// A failed trial takes its round out for all live treatments, and only for those.
    #[test]
    fn only_complete_rounds_count() {
        let mut values = steps();
        values[0][2] = f64::NAN;
        values[2].truncate(3);
        assert_eq!(leader(&values, &[0, 1, 2]), 1);
        let cut = |keep: &[usize]| -> Vec<Vec<f64>> {
            steps()
                .iter()
                .map(|v| keep.iter().map(|&r| v[r]).collect())
                .collect()
        };
        let all = [0, 1, 2];
        for alpha in [0.05, 0.02, 0.001, 0.0001] {
            assert_eq!(
                eliminate(&values, &all, alpha, 3),
                eliminate(&cut(&[0, 1]), &all, alpha, 3)
            );
            let pair = eliminate(&cut(&[0, 1, 3, 4]), &[0, 1], alpha, 3);
            assert_eq!(eliminate(&values, &[0, 1], alpha, 3), pair);
        }
    }

    #[test]
    fn exact_leaders_all_count() {
        // 0 and 1 have the same mean; only 1 is close enough to 2 in every round to beat it.
        let wild = vec![3.0, -1.0, 3.0, -1.0];
        let calm = vec![1.0, 1.0, 1.0, 1.0];
        let behind = vec![0.50, 0.51, 0.49, 0.50];
        let values = vec![wild, calm, behind];
        assert_eq!(eliminate(&values, &[0, 1, 2], 0.05, 3), vec![2]);
        assert_eq!(eliminate(&values, &[1, 0, 2], 0.05, 3), vec![2]);
    }

    #[test]
    fn a_tie_needs_everyone_within_the_margin() {
        let noise = [0.001, -0.002, 0.001, 0.002, -0.002];
        let around = |centre: f64, sign: f64| -> Vec<f64> {
            noise.iter().map(|z| centre + sign * z).collect()
        };
        let values = vec![around(1.0, 1.0), around(0.99, -1.0), around(0.9, 1.0)];
        assert!(tie_set(&values, &[0, 1], 0.01, 3, 0.05));
        assert!(!tie_set(&values, &[0, 1], 0.01, 3, 0.01));
        assert!(!tie_set(&values, &[0, 1, 2], 0.01, 3, 0.05));
        assert!(!tie_set(&values, &[0], 0.01, 3, 0.05));
    }
}
