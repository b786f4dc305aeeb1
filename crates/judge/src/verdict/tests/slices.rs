//! Trials in slices: when slices end, and what counts.

use super::*;
use crate::verdict::end_slices;
use stackrace_base::event::{SliceSum, Sliced, SlicesEnded};

/// A trial in slices that did so much better in laps in the order of the round.
fn sliced(round: u32, configuration: usize, value: f64, forwards: f64) -> Observation {
    let sum = |operations: f64| SliceSum {
        ns: 1_000_000_000,
        operations: operations as u64,
        bytes: 0,
        latency_ns: 1_000_000_000,
    };
    Observation {
        position: configuration,
        sliced: Some(Sliced {
            slice_ns: 50_000_000,
            slices: 40,
            forwards: sum(1e6 * forwards),
            backwards: sum(1e6),
        }),
        ..observation(round, configuration, 0, value)
    }
}

fn two() -> RunStarted {
    head(&["fs"], &[&["a"], &["b"]], 1, Some("fs"))
}

/// A little noise, another in each round.
fn noise(round: u32, by: f64) -> f64 {
    1.0 + by * [0.3, -1.0, 0.8, -0.4, 0.1][round as usize % 5]
}

/// Five rounds of trials in slices in which the order does this to each configuration.
fn ordered(effects: [f64; 2], spread: f64) -> Vec<Observation> {
    let both = |round| {
        let each =
            move |t: usize| sliced(round, t, 1.0, effects[t] * noise(round + t as u32, spread));
        [each(0), each(1)]
    };
    (1..=5).flat_map(both).collect()
}

#[test]
fn slices_end_where_the_order_of_the_turns_matters_and_stay_where_it_may_be_chance() {
    let head = two();
    let why = |data: &[Observation]| {
        let ended = end_slices(&evidence(&head, data, 5));
        ended.into_iter().next().map(|ended| ended.why)
    };
    // 5 % are the margin: a third of it is 1.6 %.
    assert_eq!(why(&ordered([1.0, 1.0], 0.001)), None);
    assert_eq!(why(&ordered([1.02, 0.995], 0.001)), None);
    let wanted = Some("the turn of a changes that of b, or the other way round".to_owned());
    assert_eq!(
        why(&ordered([1.05, 0.95], 0.001)),
        wanted,
        "each loses as the second"
    );
    assert_eq!(
        why(&ordered([1.0, 1.06], 0.001)),
        wanted,
        "one of them loses as the first"
    );
    assert_eq!(why(&ordered([1.05, 0.95], 0.3)), None, "it may be chance");
    assert_eq!(
        why(&ordered([1.05, 0.95], 0.001)[..4]),
        None,
        "two rounds say nothing"
    );
}

#[test]
fn the_size_of_what_the_order_does_is_told_where_slices_stay() {
    let head = two();
    let told = |data: &[Observation], rounds| {
        let verdict = judge(&evidence(&head, data, rounds));
        let [effect] = &verdict.order_effects[..] else {
            panic!("{:?}", verdict.order_effects)
        };
        assert_eq!(effect.workload, 0);
        effect.sentence.clone()
    };
    // a gains 2 % and b 1 % in laps in the order of the round: 0.5 % of the ratio for the order, and
    // 1.5 % for what one loses more than the other.
    assert_eq!(
        told(&ordered([1.02, 1.01], 0.0), 5),
        "measured in slices of 50.0 ms: taking turns can shift the ratio of a and b by 1.5 % (at most 1.5 %); right after a turn of the other one, work differs by 0.49 % (at most 0.50 %); slices end above 1.6 %"
    );
    let noisy = told(&ordered([1.02, 1.01], 0.001), 5);
    assert!(noisy.contains("by 0.49 % (at most 0.66 %)"), "{noisy}");
    let chance = told(&ordered([1.0, 1.0], 0.9), 5);
    assert!(chance.contains("(very uncertain)"), "{chance}");
    let few = told(&ordered([1.0, 1.0], 0.001)[..4], 2);
    assert!(few.ends_with("too few rounds to tell whether the order of the turns matters"));
    let data = ordered([1.05, 0.95], 0.001);
    let mut evidence = evidence(&head, &data, 5);
    let why = "of this test".to_owned();
    evidence.slices_ended = vec![(5, SlicesEnded { workload: 0, why })];
    assert!(judge(&evidence).order_effects.is_empty(), "they ended");
}

/// Three rounds of both kinds: the ratio in one go, the ratio in slices, and the noise of both.
fn both_kinds(whole: f64, slices: f64, by: f64) -> Vec<Observation> {
    let each = |round| {
        [
            observation(round, 0, 0, noise(round, by)),
            observation(round, 1, 0, whole),
            sliced(round, 0, 1.0, 1.0),
            sliced(round, 1, slices, 1.0),
        ]
    };
    (1..=3).flat_map(each).collect()
}

#[test]
fn slices_of_writes_stay_only_where_trials_in_one_go_certainly_say_the_same() {
    let head = two();
    let ends = |data: &[Observation]| !end_slices(&evidence(&head, data, 3)).is_empty();
    assert!(!ends(&both_kinds(1.20, 1.205, 0.002)));
    assert!(
        ends(&both_kinds(1.20, 1.30, 0.002)),
        "what was put off is missing"
    );
    assert!(ends(&both_kinds(1.20, 1.205, 0.05)), "it cannot be told");
    let mut lacks = both_kinds(1.20, 1.205, 0.002);
    lacks.remove(1);
    assert!(ends(&lacks), "two rounds are too few");
}

#[test]
fn only_trials_of_the_kind_in_use_count_and_a_workload_whose_slices_end_begins_anew() {
    let head = two();
    let mut data = both_kinds(1.20, 1.30, 0.002);
    let rounds = |data: &[Observation], ended: Option<u32>| -> Vec<(u32, f64)> {
        let mut evidence = evidence(&head, data, 6);
        evidence.slices_ended.extend(ended.map(|rounds| {
            let why = "of this test".to_owned();
            (rounds, SlicesEnded { workload: 0, why })
        }));
        let verdict = judge(&evidence);
        assert_eq!(
            verdict
                .notes
                .iter()
                .any(|note| note.contains("of this test")),
            ended.is_some()
        );
        assert!(
            !verdict
                .notes
                .iter()
                .any(|note| note.contains("lacks a complete trial 3"))
        );
        let rounded = |(round, ratio): &(u32, f64)| (*round, (ratio * 100.0).round());
        verdict.overall[0].rounds.iter().map(rounded).collect()
    };
    for round in 4..=6 {
        data.push(sliced(round, 0, 1.0, 1.0));
        data.push(sliced(round, 1, 1.31, 1.0));
    }
    let in_slices = [1, 2, 3].map(|r| (r, 130.0)).into_iter();
    let more = [4, 5, 6].map(|r| (r, 131.0));
    assert_eq!(
        rounds(&data, None),
        in_slices.chain(more).collect::<Vec<_>>()
    );
    for round in 4..=6 {
        data.push(observation(round, 0, 0, 1.0));
        data.push(observation(round, 1, 0, 1.21));
    }
    assert_eq!(rounds(&data, Some(3)), [4, 5, 6].map(|r| (r, 121.0)));
}

#[test]
fn response_times_stand_for_the_rate_of_an_open_loop() {
    let head = two();
    let mut data = ordered([1.0, 1.0], 0.0);
    for trial in &mut data {
        let open = serde_json::json!([{
            "name": "read", "elapsed_ns": 1, "engine": "sync", "clock": "tsc",
            "depth_achieved": 0.0, "operations": [], "step_ns": 1, "series": [],
            "offered_per_s": 100.0,
        }]);
        trial.phases = serde_json::from_value(open).unwrap();
        let late = if trial.configuration == 0 { 1.1 } else { 0.9 } * noise(trial.round, 0.001);
        let forwards = &mut trial.sliced.as_mut().unwrap().forwards;
        forwards.latency_ns = (1e9 * late) as u64;
    }
    assert_eq!(end_slices(&evidence(&head, &data, 5)).len(), 1);
    for trial in &mut data {
        trial.phases[0].offered_per_s = None;
    }
    assert_eq!(end_slices(&evidence(&head, &data, 5)), []);
}
