//! Shapes against what they promise: every block, every share, every distribution.

use super::*;
use crate::spec::{Content, Durability, Engine, Pacing, Stop, Target};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

fn spec(access: Access, sizes: &[(u32, u32)], files: &[u64]) -> Spec {
    let target = |(index, bytes): (usize, &u64)| Target {
        path: format!("file{index}").into(),
        bytes: *bytes,
    };
    Spec {
        targets: files.iter().enumerate().map(target).collect(),
        block_sizes: sizes.to_vec(),
        access,
        align: None,
        read_share: 1.0,
        threads: 1,
        queue_depth: 1,
        direct: false,
        preallocate: false,
        durability: Durability::default(),
        pacing: Pacing::Closed { think_time_ns: 0 },
        content: Content::Random,
        stop: Stop::default(),
        engine: Engine::Null,
        seed: 1,
        slice_ns: 1_000_000,
    }
}

fn only(spec: &Spec) -> Shape {
    Shape::new(spec, &Share::of_thread(0, 1)).unwrap()
}

const RANDOM: [Access; 6] = [
    Access::Uniform,
    Access::OncePerPass,
    Access::Zipf(1.1),
    Access::Pareto(0.2),
    Access::Normal(0.1),
    Access::HotCold {
        hot_range: 0.1,
        hot_ops: 0.9,
    },
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Each block exactly once per pass, over all workers together, on every pass.
    #[test]
    fn once_per_pass_is_once(
        files in prop::collection::vec(0u64..3_000_000, 1..5), workers in 1u32..6, seed: u64,
    ) {
        let mut spec = spec(Access::OncePerPass, &[(4096, 1)], &files);
        spec.seed = seed;
        let expected: HashSet<(u32, u64)> = files.iter().enumerate()
            .flat_map(|(t, bytes)| (0..bytes / 4096).map(move |b| (t as u32, b * 4096)))
            .collect();
        prop_assume!(expected.len() >= workers as usize);
        let mut shapes: Vec<(Shape, u64)> = (0..workers).map(|worker| {
            let share = Share::of_thread(worker, workers);
            (Shape::new(&spec, &share).unwrap(), share.operations(expected.len() as u64))
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
        let mut spec = spec(Access::Uniform, &[(4096, 1)], &[1 << 20]);
        (spec.read_share, spec.stop.ops, spec.seed) = (share, Some(total), seed);
        let reads = |worker| {
            let share = Share::of_thread(worker, workers);
            let shape = Shape::new(&spec, &share).unwrap();
            shape.take(share.operations(total) as usize).filter(|s| s.op == Op::Read).count() as u64
        };
        let reads: u64 = (0..workers).map(reads).sum();
        prop_assert_eq!(reads, (total as f64 * share).round() as u64);
    }

    /// Every step lies within its file, at a multiple of its size.
    #[test]
    fn steps_stay_inside(
        which in 0usize..6, files in prop::collection::vec(0u64..2_000_000, 1..4), seed: u64,
        sizes in prop::collection::vec((1u32..5, 1u32..9), 1..4),
    ) {
        let mut sizes: Vec<_> = sizes.into_iter().map(|(s, w)| (s * 4096, w)).collect();
        if RANDOM[which] == Access::OncePerPass { sizes.truncate(1); }
        let mut spec = spec(RANDOM[which], &sizes, &files);
        spec.seed = seed;
        let Ok(shape) = Shape::new(&spec, &Share::of_thread(0, 1)) else {
            prop_assert!(files.iter().all(|bytes| *bytes < 20_480));
            return Ok(());
        };
        for step in shape.take(500) {
            prop_assert!(step.offset + u64::from(step.size) <= files[step.target as usize]);
            prop_assert_eq!(step.offset % u64::from(step.size), 0);
        }
    }

    /// Streams never skip a block, never leave their range, and start again at its begin.
    #[test]
    fn a_stream_visits_its_range_in_order(
        files in prop::collection::vec(0u64..200_000, 1..5), workers in 1u32..5,
    ) {
        let spec = spec(Access::Sequential, &[(4096, 1)], &files);
        let all: Vec<(u32, u64)> = files.iter().enumerate()
            .flat_map(|(t, bytes)| (0..bytes / 4096).map(move |b| (t as u32, b * 4096)))
            .collect();
        prop_assume!(all.len() >= workers as usize);
        for worker in 0..workers as usize {
            let (from, to) = (all.len() * worker / workers as usize, all.len() * (worker + 1) / workers as usize);
            let share = Share::of_thread(worker as u32, workers);
            let visited: Vec<_> = Shape::new(&spec, &share).unwrap()
                .take(2 * (to - from)).map(|s| (s.target, s.offset)).collect();
            prop_assert_eq!(visited, [&all[from..to], &all[from..to]].concat());
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_sequence_and_another_seed_another() {
    for access in RANDOM {
        let mut spec = spec(access, &[(4096, 1)], &[40 << 20]);
        spec.read_share = 0.3;
        let sequence = |spec: &Spec| only(spec).take(1_000).collect::<Vec<_>>();
        let first = sequence(&spec);
        assert_eq!(first, sequence(&spec));
        spec.seed = 2;
        assert_ne!(first, sequence(&spec), "{access:?}");
    }
}

#[test]
fn workers_that_share_a_cursor_advance_one_stream() {
    let spec = spec(Access::Sequential, &[(4096, 1)], &[40_960]);
    let cursor = Some(Arc::new(AtomicU64::new(0)));
    let share = |worker| Share {
        worker,
        workers: 2,
        stream: (0, 1),
        cursor: cursor.clone(),
    };
    let mut a = Shape::new(&spec, &share(0)).unwrap();
    let mut b = Shape::new(&spec, &share(1)).unwrap();
    let offsets: Vec<u64> = (0..6)
        .flat_map(|_| [a.step().offset, b.step().offset])
        .collect();
    let expected: Vec<u64> = (0..12).map(|i| i % 10 * 4096).collect();
    assert_eq!(offsets, expected);
}

#[test]
fn mixed_sizes_stream_without_gaps() {
    let spec = spec(Access::Sequential, &[(4096, 1), (12288, 1)], &[1 << 20]);
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

#[test]
fn block_sizes_follow_their_weights() {
    let spec = spec(Access::Uniform, &[(4096, 3), (8192, 1)], &[1 << 20]);
    let small = only(&spec).take(100_000).filter(|s| s.size == 4096).count();
    assert!((74_000..76_000).contains(&small), "{small}");
}

/// Frequencies of blocks, most frequent first.
fn ranked(access: Access, blocks: u64, count: usize) -> Vec<usize> {
    let mut seen: HashMap<u64, usize> = HashMap::new();
    for step in only(&spec(access, &[(512, 1)], &[blocks * 512])).take(count) {
        *seen.entry(step.offset).or_default() += 1;
    }
    let mut counts: Vec<usize> = seen.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts
}

#[test]
fn zipf_ranks_have_their_probabilities() {
    for exponent in [0.8, 1.0, 1.2] {
        let count = 400_000;
        let counts = ranked(Access::Zipf(exponent), 1_000, count);
        let norm: f64 = (1..=1_000).map(|k| f64::from(k).powf(-exponent)).sum();
        for rank in [1usize, 2, 3, 10, 30] {
            let expected = count as f64 * (rank as f64).powf(-exponent) / norm;
            let found = counts[rank - 1] as f64;
            assert!(
                (found / expected - 1.0).abs() < 0.08,
                "s {exponent}, rank {rank}: {found} for {expected}"
            );
        }
    }
}

/// With h = 0.2, a share of 1 - h of the operations goes to the first share h of the ranks.
#[test]
fn pareto_is_the_eighty_twenty_rule() {
    let counts = ranked(Access::Pareto(0.2), 10_000, 400_000);
    let hot: usize = counts.iter().take(2_000).sum();
    let share = hot as f64 / 400_000.0;
    assert!((share - 0.8).abs() < 0.02, "{share}");
}

#[test]
fn normal_has_its_middle_and_its_deviation() {
    let blocks = 10_000.0;
    let spec = spec(Access::Normal(0.1), &[(512, 1)], &[10_000 * 512]);
    let positions: Vec<f64> = only(&spec)
        .take(100_000)
        .map(|s| s.offset as f64 / 512.0 / blocks)
        .collect();
    let mean = positions.iter().sum::<f64>() / 1e5;
    let variance = positions.iter().map(|p| (p - mean).powi(2)).sum::<f64>() / 1e5;
    assert!((mean - 0.5).abs() < 0.005, "mean {mean}");
    assert!(
        (variance.sqrt() - 0.1).abs() < 0.003,
        "deviation {}",
        variance.sqrt()
    );
}

#[test]
fn the_hot_share_receives_its_operations() {
    let access = Access::HotCold {
        hot_range: 0.1,
        hot_ops: 0.9,
    };
    let spec = spec(access, &[(512, 1)], &[1_000 * 512]);
    let hot = only(&spec)
        .take(100_000)
        .filter(|s| s.offset < 100 * 512)
        .count();
    assert!((89_000..91_000).contains(&hot), "{hot}");
}

#[test]
fn what_cannot_be_done_is_refused_with_words() {
    let refused = |spec: &Spec| {
        Shape::new(spec, &Share::of_thread(0, 1))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refused(&spec(Access::Uniform, &[(4096, 1)], &[4095])),
        "no file holds a block of 4096 bytes"
    );
    assert_eq!(
        refused(&spec(Access::Sequential, &[(4096, 1)], &[4095])),
        "stream 1 of 1 has no place for a block of 4096 bytes"
    );
    assert_eq!(
        refused(&spec(Access::Uniform, &[], &[4096])),
        "no block size has a weight"
    );
    assert_eq!(
        refused(&spec(Access::Uniform, &[(0, 1)], &[4096])),
        "a block size is 0 bytes"
    );
    assert_eq!(
        refused(&spec(Access::OncePerPass, &[(512, 1), (4096, 1)], &[4096])),
        "each block once per pass, with 2 block sizes"
    );
    assert_eq!(
        refused(&spec(Access::Pareto(1.0), &[(512, 1)], &[4096])),
        "Pareto(1.0) has a parameter out of range"
    );
    let mut spec = spec(Access::Uniform, &[(512, 1)], &[4096]);
    spec.read_share = 1.5;
    assert_eq!(refused(&spec), "the share of reads is 1.5");
}
