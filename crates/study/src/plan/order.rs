//! In which order the configurations of a round are tried.
//!
//! Order is chance, so that nothing that drifts (temperature, free space, a neighbour) can favour
//! one configuration; and for few configurations it is balanced chance. A storage remembers: what was
//! tried before may slow down what comes next. In a Williams square each configuration follows each
//! other one equally often, so that such an after-effect hits all alike (E. J. Williams,
//! "Experimental designs balanced for the estimation of residual effects of treatments", 1949).
//!
//! The order of a round depends on seed, study, round and the configurations still live, on nothing
//! else: it can be computed again, in any order of rounds.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Up to so many configurations are ordered by Williams squares; the square of more is longer than
/// most studies, which would see only an unbalanced piece of it.
const SQUARE_MAX: usize = 6;

/// The order of a round (from 1): a permutation of `live`.
///
/// `study_hash`: any text that identifies the study; two studies with one seed differ in order.
pub fn order(seed: u64, study_hash: &str, round: u32, live: &[usize]) -> Vec<usize> {
    let index = round.saturating_sub(1);
    // A square of n configurations takes n rounds (2 n if n is odd) to balance; with many of them a
    // run ends before that, and plain chance does as well.
    if live.len() > SQUARE_MAX {
        let mut order = live.to_vec();
        shuffle(&mut order, &mut generator(seed, study_hash, index, live));
        return order;
    }
    let square = williams(live.len());
    let rows = square.len() as u32;
    // One relabelling and one order of rows for a whole square; the next square has others.
    let mut generator = generator(seed, study_hash, index / rows, live);
    let mut labels = live.to_vec();
    shuffle(&mut labels, &mut generator);
    let mut row_order: Vec<usize> = (0..square.len()).collect();
    shuffle(&mut row_order, &mut generator);
    let row = &square[row_order[(index % rows) as usize]];
    row.iter().map(|&cell| labels[cell]).collect()
}

/// The order within one workload of a round that goes workload by workload. Each workload has squares
/// of its own, so that none always meets the same configuration first; the first workload's are those
/// of [`order`].
pub fn order_within(
    seed: u64,
    study_hash: &str,
    round: u32,
    workload: usize,
    live: &[usize],
) -> Vec<usize> {
    match workload {
        0 => order(seed, study_hash, round, live),
        // Each workload gets an order of its own, so that no configuration is first in all of a
        // round.
        _ => order(seed, &format!("{study_hash} {workload}"), round, live),
    }
}

/// Rows of a square (two squares for an odd number) in which every ordered pair of neighbours
/// occurs equally often. For 4: 0 1 3 2, 1 2 0 3, 2 3 1 0, 3 0 2 1.
fn williams(count: usize) -> Vec<Vec<usize>> {
    // 0, 1, count - 1, 2, count - 2 …: the differences of neighbours are all different.
    let first: Vec<usize> = (0..count)
        .map(|place| match place % 2 {
            1 => place.div_ceil(2),
            _ => (count - place / 2) % count,
        })
        .collect();
    let mut square: Vec<Vec<usize>> = (0..count.max(1))
        .map(|row| first.iter().map(|cell| (cell + row) % count).collect())
        .collect();
    // With an odd number one square is not balanced; with its mirror image it is.
    if count % 2 == 1 && count > 1 {
        let mirrored: Vec<Vec<usize>> = square
            .iter()
            .map(|row| row.iter().rev().copied().collect())
            .collect();
        square.extend(mirrored);
    }
    square
}

/// A generator of its own for each square or round.
fn generator(seed: u64, study_hash: &str, number: u32, live: &[usize]) -> Xoshiro256PlusPlus {
    let study = blake3::hash(study_hash.as_bytes());
    let mut mixed = *study.as_bytes();
    for (byte, seed) in mixed.iter_mut().zip(seed.to_le_bytes()) {
        *byte ^= seed;
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(&mixed);
    hasher.update(&number.to_le_bytes());
    // Without those that left: the order of the rest must not depend on when they left.
    for configuration in live {
        hasher.update(&(*configuration as u64).to_le_bytes());
    }
    Xoshiro256PlusPlus::from_seed(*hasher.finalize().as_bytes())
}

/// Fisher and Yates' shuffle.
fn shuffle(items: &mut [usize], generator: &mut Xoshiro256PlusPlus) {
    for last in (1..items.len()).rev() {
        // Multiply and shift instead of a remainder: off by less than 1 in 2^50 for any list
        // that fits into a study (D. Lemire, 2019).
        let product = u128::from(generator.next_u64()) * (last as u128 + 1);
        items.swap(last, (product >> 64) as usize);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_square_of_four_is_the_one_of_the_comment() {
        assert_eq!(
            williams(4),
            [[0, 1, 3, 2], [1, 2, 0, 3], [2, 3, 1, 0], [3, 0, 2, 1]]
        );
    }

    #[test]
    fn nothing_and_one_have_one_order() {
        assert_eq!(order(1, "a", 1, &[]), Vec::<usize>::new());
        assert_eq!(order(1, "a", 7, &[5]), [5]);
        assert_eq!(order(1, "a", 0, &[5]), [5]);
    }

    #[test]
    fn seed_study_and_round_each_change_the_order() {
        let live: Vec<usize> = (0..50).collect();
        let orders: HashSet<Vec<usize>> = [
            order(1, "a", 1, &live),
            order(2, "a", 1, &live),
            order(1, "b", 1, &live),
            order(1, "a", 2, &live),
        ]
        .into();
        assert_eq!(orders.len(), 4);
    }

    #[test]
    fn the_first_round_of_two_begins_with_either_equally_often() {
        let first = (0..1000)
            .filter(|seed| order(*seed, "a", 1, &[0, 1])[0] == 0)
            .count();
        // 1000 fair coins: 500 +- 16; these bounds are 6 standard deviations.
        assert!((400..600).contains(&first), "{first}");
    }

    #[test]
    fn every_order_of_three_and_of_seven_places_is_equally_likely() {
        let mut counts: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        for seed in 0..6000 {
            *counts.entry(order(seed, "a", 1, &[0, 1, 2])).or_default() += 1;
        }
        assert_eq!(counts.len(), 6);
        // 1000 +- 29.
        assert!(
            counts.values().all(|count| (820..1180).contains(count)),
            "{counts:?}"
        );
        let live: Vec<usize> = (0..7).collect();
        let mut places = [[0_usize; 7]; 7];
        for seed in 0..7000 {
            for (place, configuration) in order(seed, "a", 1, &live).into_iter().enumerate() {
                places[place][configuration] += 1;
            }
        }
        assert!(
            places
                .iter()
                .flatten()
                .all(|count| (820..1180).contains(count)),
            "{places:?}"
        );
    }

    #[test]
    fn workloads_of_a_round_begin_with_different_configurations() {
        let first = |workload| order_within(7, "study", 1, workload, &[0, 1])[0];
        let of_zero = (0..1000).filter(|workload| first(*workload) == 0).count();
        // 500 +- 16.
        assert!((400..600).contains(&of_zero), "{of_zero}");
    }

    proptest! {
        #[test]
        fn within_each_workload_order_is_balanced_over_rounds(
            seed: u64, count in 2..=6_usize, workload in 0..20_usize, square in 0..5_u32,
        ) {
            let live: Vec<usize> = (0..count).collect();
            let rows = if count % 2 == 0 { count } else { 2 * count } as u32;
            let mut before = vec![vec![0_u32; count]; count];
            let mut placed = vec![vec![0_u32; count]; count];
            for round in square * rows + 1..=(square + 1) * rows {
                let order = order_within(seed, "study", round, workload, &live);
                for pair in order.windows(2) {
                    before[pair[0]][pair[1]] += 1;
                }
                for (place, configuration) in order.into_iter().enumerate() {
                    placed[configuration][place] += 1;
                }
            }
            let times = rows / count as u32;
            prop_assert!(placed.iter().flatten().all(|n| *n == times), "{placed:?}");
            for (one, followed) in before.iter().enumerate() {
                for (other, n) in followed.iter().enumerate() {
                    prop_assert_eq!(*n, if one == other { 0 } else { times });
                }
            }
        }

        #[test]
        fn an_order_is_a_permutation_and_repeats(
            seed: u64,
            round in 0..1000_u32,
            live in prop::collection::btree_set(0..5000_usize, 0..40),
        ) {
            let live: Vec<usize> = live.into_iter().collect();
            let mut once = order(seed, "study", round, &live);
            prop_assert_eq!(&once, &order(seed, "study", round, &live));
            once.sort_unstable();
            prop_assert_eq!(once, live);
        }

        #[test]
        fn each_follows_each_other_equally_often(seed: u64, count in 2..=6_usize, square in 0..5_u32) {
            let live: Vec<usize> = (0..count).map(|n| n * 3).collect();
            let rows = if count % 2 == 0 { count } else { 2 * count } as u32;
            let mut followed: BTreeMap<(usize, usize), usize> = BTreeMap::new();
            let mut placed: BTreeMap<(usize, usize), usize> = BTreeMap::new();
            for round in square * rows + 1..=(square + 1) * rows {
                let order = order(seed, "study", round, &live);
                for pair in order.windows(2) {
                    *followed.entry((pair[0], pair[1])).or_default() += 1;
                }
                for (place, configuration) in order.into_iter().enumerate() {
                    *placed.entry((place, configuration)).or_default() += 1;
                }
            }
            let times = rows as usize / count;
            prop_assert_eq!(followed.len(), count * (count - 1));
            prop_assert!(followed.values().all(|&n| n == times), "{:?}", followed);
            prop_assert_eq!(placed.len(), count * count);
            prop_assert!(placed.values().all(|&n| n == times), "{:?}", placed);
        }
    }
}
