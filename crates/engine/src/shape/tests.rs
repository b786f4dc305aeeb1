//! Shapes against what they promise: every block, every share, every distribution.

use super::*;
use crate::spec::{IoEngine, IoTarget, Pacing, Stop};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

fn spec(access: AccessPattern, sizes: &[(u32, u32)], files: &[u64]) -> Spec {
    let target = |(index, bytes): (usize, &u64)| IoTarget {
        path: format!("file{index}").into(),
        bytes: *bytes,
    };
    Spec {
        block_sizes: sizes.to_vec(),
        access,
        stop: Stop::default(),
        engine: IoEngine::Null,
        again: None,
        slice_ns: 1_000_000,
        ..Spec::reads(files.iter().enumerate().map(target).collect(), 4096)
    }
}

fn only(spec: &Spec) -> OpSequence {
    OpSequence::new(spec, &WorkerShare::of_thread(0, 1)).unwrap()
}

const RANDOM: [AccessPattern; 6] = [
    AccessPattern::Uniform,
    AccessPattern::OncePerPass,
    AccessPattern::Zipf(1.1),
    AccessPattern::Pareto(0.2),
    AccessPattern::Normal(0.1),
    AccessPattern::HotCold {
        hot_range: 0.1,
        hot_ops: 0.9,
    },
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Each block exactly once per pass, over all workers together, on every pass, whatever is left
    /// at the ends of the files and between the blocks.
    #[test]
    fn once_per_pass_is_once(
        files in prop::collection::vec(0u64..3_000_000, 1..5), workers in 1u32..6, seed: u64,
        size in 1u32..20_000, gap in prop::option::of(0u32..20_000),
    ) {
        // Neither so many blocks that they take long, nor blocks of the sizes disks have only.
        let size = size + 500;
        let stride = u64::from(size + gap.unwrap_or(0));
        let mut spec = spec(AccessPattern::OncePerPass, &[(size, 1)], &files);
        spec.align = gap.and_then(|gap| NonZeroU32::new(size + gap));
        spec.seed = seed;
        let expected: HashSet<(u32, u64)> = files.iter().enumerate()
            .flat_map(|(t, bytes)| (0..*bytes).step_by(stride as usize)
                .take_while(move |offset| offset + u64::from(size) <= *bytes)
                .map(move |offset| (t as u32, offset)))
            .collect();
        prop_assume!(expected.len() >= workers as usize);
        let mut shapes: Vec<(OpSequence, u64)> = (0..workers).map(|worker| {
            let share = WorkerShare::of_thread(worker, workers);
            (OpSequence::new(&spec, &share).unwrap(), share.operations(expected.len() as u64))
        }).collect();
        let mut orders = Vec::new();
        for pass in 0..2 {
            let order: Vec<(u32, u64)> = shapes.iter_mut()
                .flat_map(|(shape, count)| shape.take(*count as usize).collect::<Vec<_>>())
                .map(|step| (step.target, step.offset)).collect();
            prop_assert_eq!(order.len(), expected.len());
            let visited: HashSet<_> = order.iter().copied().collect();
            prop_assert_eq!(&visited, &expected, "pass {}", pass);
            orders.push(order);
        }
        prop_assert!(expected.len() < 10 || orders[0] != orders[1], "passes repeat their order");
    }

    #[test]
    fn a_permutation_is_a_bijection(count in 1u64..5_000, key: u64) {
        let permutation = Permutation::new(count, key);
        let mut hit = vec![false; count as usize];
        for index in 0..count {
            let mapped = permutation.apply(index);
            prop_assert!(mapped < count);
            prop_assert!(!std::mem::replace(&mut hit[mapped as usize], true));
        }
    }

    /// The share of reads is exact over all workers together, whatever their number.
    #[test]
    fn the_mix_is_exact(share in 0.0f64..=1.0, total in 1u64..5_000, workers in 1u32..7, seed: u64) {
        let mut spec = spec(AccessPattern::Uniform, &[(4096, 1)], &[1 << 20]);
        (spec.read_share, spec.stop.ops, spec.seed) = (share, Some(total), seed);
        let reads = |worker| {
            let share = WorkerShare::of_thread(worker, workers);
            let shape = OpSequence::new(&spec, &share).unwrap();
            shape.take(share.operations(total) as usize).filter(|s| s.op == Op::Read).count() as u64
        };
        let reads: u64 = (0..workers).map(reads).sum();
        prop_assert_eq!(reads, (total as f64 * share).round() as u64);
    }

    /// Each size has its share of the operations, over all workers together.
    #[test]
    fn sizes_are_exact(
        weights in prop::collection::vec(0u32..100, 1..6), total in 1u64..5_000, workers in 1u32..7, seed: u64,
    ) {
        let sizes: Vec<(u32, u32)> = (1..).map(|size| size * 512).zip(weights).collect();
        let sum: u32 = sizes.iter().map(|(_, weight)| weight).sum();
        prop_assume!(sum > 0);
        let mut spec = spec(AccessPattern::Uniform, &sizes, &[1 << 20]);
        (spec.stop.ops, spec.seed) = (Some(total), seed);
        let mut counts: HashMap<u32, u64> = HashMap::new();
        for worker in 0..workers {
            let share = WorkerShare::of_thread(worker, workers);
            let shape = OpSequence::new(&spec, &share).unwrap();
            for step in shape.take(share.operations(total) as usize) {
                *counts.entry(step.size).or_default() += 1;
            }
        }
        for (link, (size, weight)) in sizes.iter().enumerate() {
            let expected = total as f64 * f64::from(*weight) / f64::from(sum);
            let found = counts.get(size).copied().unwrap_or(0);
            prop_assert!((found as f64 - expected).abs() <= (link + 1) as f64 / 2.0 + 1e-6,
                "{size} bytes: {found} for {expected}");
            prop_assert!(*weight > 0 || found == 0);
        }
    }

    /// Every step lies within its file, at a multiple of its size or of what it is aligned to.
    #[test]
    fn steps_stay_inside(
        which in 0usize..6, align in prop::option::of(1u32..30_000), files in prop::collection::vec(0u64..2_000_000, 1..4), seed: u64,
        sizes in prop::collection::vec((1u32..5, 1u32..9), 1..4),
    ) {
        let mut sizes: Vec<_> = sizes.into_iter().map(|(s, w)| (s * 4096, w)).collect();
        if RANDOM[which] == AccessPattern::OncePerPass { sizes.truncate(1); }
        let mut spec = spec(RANDOM[which], &sizes, &files);
        spec.seed = seed;
        let overlaps = align.is_some_and(|align| align < sizes[0].0);
        let align = if RANDOM[which] == AccessPattern::OncePerPass && overlaps { None } else { align };
        spec.align = align.and_then(NonZeroU32::new);
        let Ok(shape) = OpSequence::new(&spec, &WorkerShare::of_thread(0, 1)) else {
            prop_assert!(files.iter().all(|bytes| *bytes < 20_480));
            return Ok(());
        };
        for step in shape.take(500) {
            prop_assert!(step.offset + u64::from(step.size) <= files[step.target as usize]);
            prop_assert_eq!(step.offset % u64::from(align.unwrap_or(step.size)), 0);
        }
    }

    /// Streams never skip a block, never leave their range, and start again at its begin.
    #[test]
    fn a_stream_visits_its_range_in_order(
        files in prop::collection::vec(0u64..200_000, 1..5), workers in 1u32..5,
    ) {
        let spec = spec(AccessPattern::Sequential, &[(4096, 1)], &files);
        let all: Vec<(u32, u64)> = files.iter().enumerate()
            .flat_map(|(t, bytes)| (0..bytes / 4096).map(move |b| (t as u32, b * 4096)))
            .collect();
        prop_assume!(all.len() >= workers as usize);
        for worker in 0..workers as usize {
            let (from, to) = (all.len() * worker / workers as usize, all.len() * (worker + 1) / workers as usize);
            let share = WorkerShare::of_thread(worker as u32, workers);
            let visited: Vec<_> = OpSequence::new(&spec, &share).unwrap()
                .take(2 * (to - from)).map(|s| (s.target, s.offset)).collect();
            prop_assert_eq!(visited, [&all[from..to], &all[from..to]].concat());
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_sequence_and_another_seed_another() {
    for access in RANDOM.into_iter().chain([AccessPattern::Sequential]) {
        // The order of a sequential stream is no secret; its mixes of kinds and sizes are.
        let mixed: &[(u32, u32)] = &[(4096, 3), (8192, 2), (16384, 1)];
        let once = access == AccessPattern::OncePerPass;
        let sizes = if once { &mixed[..1] } else { mixed };
        let mut spec = spec(access, sizes, &[40 << 20]);
        spec.read_share = 0.3;
        let sequence = |spec: &Spec| only(spec).take(1_000).collect::<Vec<_>>();
        let first = sequence(&spec);
        assert_eq!(first, sequence(&spec));
        for pacing in [
            Pacing::Closed { think_time_ns: 5 },
            Pacing::Fixed(9.0),
            Pacing::Poisson(9.0),
        ] {
            spec.pacing = pacing;
            assert_eq!(first, sequence(&spec), "{access:?} {pacing:?}");
        }
        spec.seed = 2;
        assert_ne!(first, sequence(&spec), "{access:?}");
    }
}

#[test]
fn workers_that_share_a_cursor_advance_one_stream() {
    let spec = spec(AccessPattern::Sequential, &[(4096, 1)], &[40_960]);
    let cursor = Some(Arc::new(AtomicU64::new(0)));
    let share = |worker| WorkerShare {
        worker,
        workers: 2,
        stream: (0, 1),
        cursor: cursor.clone(),
    };
    let mut a = OpSequence::new(&spec, &share(0)).unwrap();
    let mut b = OpSequence::new(&spec, &share(1)).unwrap();
    let offsets: Vec<u64> = (0..6)
        .flat_map(|_| [a.step().offset, b.step().offset])
        .collect();
    let expected: Vec<u64> = (0..12).map(|i| i % 10 * 4096).collect();
    assert_eq!(offsets, expected);
}

#[test]
fn mixed_sizes_stream_without_gaps() {
    let spec = spec(
        AccessPattern::Sequential,
        &[(4096, 1), (12288, 1)],
        &[1 << 20],
    );
    let mut at = 0;
    for step in only(&spec).take(2_000) {
        if step.offset != at {
            assert_eq!(step.offset, 0, "gap at {at}");
            assert!(
                at + u64::from(step.size) > 1 << 20,
                "wrapped at {at} though it would fit"
            );
        }
        at = step.offset + u64::from(step.size);
    }
}

/// No order of sizes is more likely than another: runs of a size are as long as chance makes them.
#[test]
fn sizes_are_not_in_turn() {
    let spec = spec(AccessPattern::Uniform, &[(4096, 1), (8192, 1)], &[1 << 20]);
    let sizes: Vec<u32> = only(&spec).take(100_000).map(|s| s.size).collect();
    let changes = sizes.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!((50_000..51_500).contains(&changes), "{changes}");
}

/// Checks that counts are no further from what was expected of them than chance allows at 1 %: the
/// critical value of chi-square by E. Wilson and M. Hilferty's approximation (1931). The seeds are
/// fixed: a sequence that passes once passes always.
fn follows(counts: &[u64], expected: &[f64]) {
    assert_eq!(counts.len(), expected.len());
    assert!(
        expected.iter().all(|e| *e >= 5.0),
        "cells too small to judge"
    );
    let square = |(count, expected): (&u64, &f64)| (*count as f64 - expected).powi(2) / expected;
    let distance: f64 = counts.iter().zip(expected).map(square).sum();
    let freedom = (counts.len() - 1) as f64;
    let ninth = 2.0 / (9.0 * freedom);
    let critical = freedom * (1.0 - ninth + 2.326 * ninth.sqrt()).powi(3);
    assert!(
        distance < critical,
        "{distance} of {critical} at {freedom} degrees"
    );
}

const STEPS: usize = 400_000;

/// Counts the choices of each of `blocks` blocks.
fn chosen(access: AccessPattern, blocks: u64) -> Vec<u64> {
    let mut counts = vec![0; blocks as usize];
    for step in only(&spec(access, &[(512, 1)], &[blocks * 512])).take(STEPS) {
        counts[(step.offset / 512) as usize] += 1;
    }
    counts
}

/// The same by rank: what was scattered is gathered again.
fn chosen_ranks(access: AccessPattern, blocks: u64) -> Vec<u64> {
    let counts = chosen(access, blocks);
    let scatter = Permutation::new(blocks, derive(1, PURPOSE_SCATTER));
    (0..blocks)
        .map(|rank| counts[scatter.apply(rank) as usize])
        .collect()
}

#[test]
fn uniform_is_uniform() {
    follows(
        &chosen(AccessPattern::Uniform, 1_000),
        &[STEPS as f64 / 1_000.0; 1_000],
    );
}

#[test]
fn zipf_ranks_have_their_probabilities() {
    for exponent in [0.5, 0.8, 1.0, 1.2] {
        let weight = |rank: u32| f64::from(rank).powf(-exponent);
        let norm: f64 = (1..=1_000).map(weight).sum();
        let expected: Vec<f64> = (1..=1_000)
            .map(|k| STEPS as f64 * weight(k) / norm)
            .collect();
        follows(
            &chosen_ranks(AccessPattern::Zipf(exponent), 1_000),
            &expected,
        );
    }
}

/// Rank r is `(n - 1) * u^e` rounded down, so that ranks up to r have the probability
/// `((r + 1) / (n - 1))^(1 / e)`; the last rank needs a `u` of 1, which is never drawn.
#[test]
fn pareto_ranks_have_their_probabilities() {
    for h in [0.2, 0.4] {
        let blocks = 200u32;
        let exponent = f64::ln(h) / (1.0 - h).ln();
        let below = |rank: u32| (f64::from(rank) / f64::from(blocks - 1)).powf(1.0 / exponent);
        let cell = |rank: u32| STEPS as f64 * (below(rank + 1) - below(rank));
        let expected: Vec<f64> = (0..blocks - 1).map(cell).collect();
        let counts = chosen_ranks(AccessPattern::Pareto(h), u64::from(blocks));
        let (last, others) = counts.split_last().unwrap();
        assert_eq!(*last, 0);
        follows(others, &expected);
    }
}

/// With h = 0.2, a share of 1 - h of the operations goes to the first share h of the ranks.
#[test]
fn pareto_is_the_eighty_twenty_rule() {
    let counts = chosen_ranks(AccessPattern::Pareto(0.2), 10_000);
    let hot: u64 = counts.iter().take(2_000).sum();
    let share = hot as f64 / STEPS as f64;
    assert!((share - 0.8).abs() < 0.01, "{share}");
}

/// The normal density over each block, by Simpson's rule, scaled to what lies within the range.
#[test]
fn normal_is_normal_and_stays_inside() {
    for deviation in [0.1, 0.3, 2.0] {
        let blocks = 200u32;
        let density = |x: f64| (-((x - 0.5) / deviation).powi(2) / 2.0).exp();
        let weight = |block: u32| {
            let at = |part: f64| density((f64::from(block) + part) / f64::from(blocks));
            at(0.0) + 4.0 * at(0.5) + at(1.0)
        };
        let norm: f64 = (0..blocks).map(weight).sum();
        let expected: Vec<f64> = (0..blocks)
            .map(|b| STEPS as f64 * weight(b) / norm)
            .collect();
        let counts = chosen(AccessPattern::Normal(deviation), u64::from(blocks));
        // Cells far out are rare: those that are too small to judge go into one.
        let (mut judged, mut wanted, mut rest) = (Vec::new(), Vec::new(), (0, 0.0));
        for (count, expected) in counts.iter().zip(&expected) {
            if *expected >= 5.0 {
                judged.push(*count);
                wanted.push(*expected);
            } else {
                rest = (rest.0 + count, rest.1 + expected);
            }
        }
        if rest.1 >= 5.0 {
            judged.push(rest.0);
            wanted.push(rest.1);
        }
        follows(&judged, &wanted);
    }
}

#[test]
fn the_hot_share_receives_its_operations_evenly() {
    let access = AccessPattern::HotCold {
        hot_range: 0.1,
        hot_ops: 0.9,
    };
    let hot = std::iter::repeat_n(STEPS as f64 * 0.9 / 100.0, 100);
    let cold = std::iter::repeat_n(STEPS as f64 * 0.1 / 900.0, 900);
    follows(&chosen(access, 1_000), &hot.chain(cold).collect::<Vec<_>>());
}

#[test]
fn what_cannot_be_done_is_refused_with_words() {
    let refused = |spec: &Spec| {
        OpSequence::new(spec, &WorkerShare::of_thread(0, 1))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refused(&spec(AccessPattern::Uniform, &[(4096, 1)], &[4095])),
        "a block of 4096 bytes fits into no file"
    );
    assert_eq!(
        refused(&spec(AccessPattern::Sequential, &[(4096, 1)], &[4095])),
        "a block of 4096 bytes does not fit into stream 1 of 1"
    );
    assert_eq!(
        refused(&spec(AccessPattern::Uniform, &[], &[4096])),
        "no block size has a weight"
    );
    assert_eq!(
        refused(&spec(AccessPattern::Uniform, &[(0, 1)], &[4096])),
        "a block size is 0 bytes"
    );
    assert_eq!(
        refused(&spec(
            AccessPattern::OncePerPass,
            &[(512, 1), (4096, 1)],
            &[4096]
        )),
        "each block once per pass, with 2 block sizes"
    );
    assert_eq!(
        refused(&spec(AccessPattern::Pareto(1.0), &[(512, 1)], &[4096])),
        "Pareto(1.0) has a parameter out of range"
    );
    let mut once = spec(AccessPattern::OncePerPass, &[(4096, 1)], &[1 << 20]);
    once.align = NonZeroU32::new(512);
    assert_eq!(
        refused(&once),
        "each block once per pass, with blocks that overlap at 512 bytes apart"
    );
    once.access = AccessPattern::Sequential;
    assert_eq!(
        refused(&once),
        "an alignment of 512 bytes for sequential access"
    );
    let mut spec = spec(AccessPattern::Uniform, &[(512, 1)], &[4096]);
    spec.read_share = 1.5;
    assert_eq!(refused(&spec), "the share of reads is 1.5");
}
