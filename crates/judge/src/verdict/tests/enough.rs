//! Requirements on made-up devices: planted truth in, *meets it*, *does not*, *not certain yet* out.

use super::*;
use crate::audit::sample::{operation, trial};
use stackrace_base::event::{BoundSide, OperationsOf, Price, Requirement};

/// Noise of a quantile from round to round, on the log scale.
const NOISE: f64 = 0.1;
const ROUNDS: u32 = 40;

/// Bounds of 10 ms for the figure of the only workload, of so many configurations.
fn asked(configurations: &[&[&str]]) -> RunStarted {
    let mut head = head(&["dir"], configurations, 1, None);
    let metric = &mut head.workloads[0].metrics[0];
    *metric = MetricHead::new("fsync latency p99", "ns", Better::Lower);
    head.decide.required = vec![Requirement {
        workload: 0,
        metric: 0,
        limit: BoundSide::AtMost,
        bound: 10e6,
    }];
    head
}

/// Rounds of devices whose p99 is this, ms.
fn devices(milliseconds: &[f64], seed: u64) -> Vec<Observation> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut all = Vec::new();
    for round in 1..=ROUNDS {
        for (at, truth) in milliseconds.iter().enumerate() {
            let value = truth * 1e6 * (NOISE * normal(&mut random)).exp();
            all.push(observation(round, at, 0, value));
        }
    }
    all
}

/// The verdict at which a run of this device stops, or its last one.
fn verdict(truth: f64, seed: u64) -> Verdict {
    let (head, data) = (asked(&[&["a"]]), devices(&[truth], seed));
    let stops = |look: &u32| *look == ROUNDS || may_stop(&evidence(&head, &data, *look));
    let last = (3..=ROUNDS).find(stops).unwrap();
    judge(&evidence(&head, &data, last))
}

#[test]
fn devices_away_from_the_bound_are_told_right_every_time() {
    for (truth, word) in [
        (8.0, Enough::Meets),
        (12.0, Enough::Fails),
        (30.0, Enough::Fails),
    ] {
        for seed in 0..20 {
            let verdict = verdict(truth, 1000 + seed);
            assert_eq!(
                verdict.enough(),
                Some(word),
                "{truth}: {}",
                verdict.sentence
            );
            assert_eq!(verdict.state, State::Decided);
        }
    }
}

#[test]
fn devices_at_the_bound_are_seldom_told_anything() {
    let wrong = (0..200).filter(|seed| verdict(10.0, 5000 + seed).enough() != Some(Enough::Open));
    let wrong = wrong.count();
    assert!(wrong <= 10, "{wrong} of 200");
}

#[test]
fn the_sentence_has_the_figure_the_interval_the_bound_and_the_margin() {
    let meets = verdict(8.0, 1).sentence;
    assert!(
        meets.starts_with("a meets it: fsync latency p99 "),
        "{meets}"
    );
    assert!(
        meets.contains("required at most 10.0 ms, at least"),
        "{meets}"
    );
    assert!(meets.contains(" below it."), "{meets}");
    let fails = verdict(12.0, 1).sentence;
    assert!(fails.starts_with("a does not meet it: "), "{fails}");
    assert!(fails.contains(" above it."), "{fails}");
    let open = verdict(10.0, 5000);
    assert!(
        open.sentence
            .starts_with("Not certain yet whether a meets it: "),
        "{}",
        open.sentence
    );
    assert!(open.more.is_some());
}

#[test]
fn of_several_configurations_it_is_said_which_ones_meet_it() {
    let head = asked(&[&["a"], &["b"], &["c"]]);
    let data = devices(&[5.0, 30.0, 10.0], 1);
    let proof = evidence(&head, &data, 20);
    let verdict = judge(&proof);
    let said = "a meets it; b does not meet it; not certain yet whether c meets it. ";
    assert!(verdict.sentence.starts_with(said), "{}", verdict.sentence);
    assert_eq!(verdict.enough(), Some(Enough::Meets));
    assert_eq!(verdict.details.len(), 3, "{:?}", verdict.details);
    assert!(!may_stop(&proof), "c is open");
}

#[test]
fn a_log_that_requires_what_it_does_not_have_is_judged_all_the_same() {
    let mut head = asked(&[&["a"]]);
    head.decide.required[0].metric = 7;
    let data = devices(&[8.0], 1);
    assert_eq!(judge(&evidence(&head, &data, 3)).enough(), None);
}

#[test]
fn a_quantile_of_too_few_operations_never_meets_a_bound_and_may_miss_it() {
    let head = asked(&[&["a"]]);
    let answered = |truth: f64, count: u64| {
        let mut data = devices(&[truth], 1);
        for one in &mut data {
            let mut phase = trial().phases.remove(0);
            phase.operations = vec![operation("fsync", count, 4096)];
            one.phases = vec![phase];
        }
        // One that was cut off had no time for more, and counts nowhere.
        let mut cut_off = data[0].clone();
        cut_off.ended = Ended::Interrupted;
        cut_off.round = 21;
        cut_off.phases[0].operations[0].count = 37;
        data.push(cut_off);
        let proof = evidence(&head, &data, 20);
        let verdict = judge(&proof);
        // Nothing is decided that is open, also where no further round would decide it.
        let open = verdict.enough() == Some(Enough::Open);
        assert_eq!(
            verdict.state != State::Decided,
            open,
            "{}",
            verdict.sentence
        );
        assert_eq!(Look::at(&proof).answer().too_coarse, open);
        (verdict.enough(), may_stop(&proof), verdict.sentence)
    };
    assert_eq!(answered(5.0, 1000).0, Some(Enough::Meets));
    assert_eq!(answered(30.0, 999).0, Some(Enough::Fails));
    let (enough, stops, said) = answered(5.0, 999);
    assert_eq!(enough, Some(Enough::Open));
    assert!(stops, "further rounds are not longer: {said}");
    assert!(
        said.contains("only 999 operations, and p99 takes 1,000: longer trials would tell"),
        "{said}"
    );
}

#[test]
fn the_cheapest_that_meets_it_is_named_with_cheaper_ones_that_may() {
    let mut head = asked(&[&["a"], &["b"], &["c"], &["d"]]);
    let data = devices(&[5.0, 30.0, 10.0, 4.0], 1);
    let said = |head: &RunStarted| judge(&evidence(head, &data, 20)).sentence;
    assert!(!said(&head).contains("cheapest"));
    for (configuration, cost) in head
        .configurations
        .iter_mut()
        .zip(["73", "20", "45.5", "150"])
    {
        configuration.cost = Some(Price::read(&format!("{cost} EUR")).unwrap());
    }
    let sentence = said(&head);
    let part = "The cheapest that meets it is a (73 EUR); c would be cheaper.";
    assert!(sentence.contains(part), "{sentence}");
    head.configurations[3].cost = head.configurations[0].cost.clone();
    let sentence = said(&head);
    assert!(
        sentence.contains("The cheapest that meet it are a and d (73 EUR)"),
        "{sentence}"
    );
}

/// What a command printed: in many digits, or in few.
fn printed(values: [f64; 5], step: f64) -> Verdict {
    let mut head = asked(&[&["a"]]);
    head.workloads[0].operations = Some(OperationsOf::Command);
    let rounds = (1..).zip(values);
    let mut all: Vec<Observation> = rounds
        .map(|(round, value)| observation(round, 0, 0, value * 1e6))
        .collect();
    for trial in &mut all {
        trial.resolution = vec![Some(step * 1e6)];
    }
    judge(&evidence(&head, &all, 5))
}

#[test]
fn a_figure_that_never_moves_is_doubted_where_it_is_required_too() {
    let doubt = "; but it has the same figure to the last digit every time";
    let still = printed([8.0; 5], 1e-3);
    assert!(still.sentence.contains(doubt), "{}", still.sentence);
    assert!(still.required[0].still && still.enough() == Some(Enough::Meets));
    for (values, step) in [([8.0, 8.1, 7.9, 8.0, 8.05], 1e-3), ([8.0; 5], 1.0)] {
        let moves = printed(values, step);
        assert!(
            !moves.sentence.contains("same figure"),
            "{}",
            moves.sentence
        );
    }
}

#[test]
fn a_single_configuration_that_failed_is_not_decided() {
    let head = asked(&[&["a"]]);
    let mut data = devices(&[5.0], 1);
    data.truncate(3);
    data.push(Observation {
        round: 4,
        ..Observation::unmeasured(Ended::Failed {
            error: "it was mounted otherwise".to_owned(),
        })
    });
    let proof = Evidence {
        dropped: vec![(0, 3)],
        ..evidence(&head, &data, 3)
    };
    assert!(!may_stop(&proof), "{}", judge(&proof).sentence);
}

#[test]
fn an_answer_on_memory_begins_with_what_is_lost() {
    let head = asked(&[&["a"]]);
    let data = devices(&[5.0], 1);
    let proof = Evidence {
        in_memory: vec![0],
        ..evidence(&head, &data, 20)
    };
    let said = judge(&proof).sentence;
    let first =
        "a lies in memory: nothing there is kept when the machine is switched off. a meets it: ";
    assert!(said.starts_with(first), "{said}");
}

#[test]
fn a_figure_has_the_interval_that_its_requirement_was_judged_by_and_no_other() {
    let verdict = verdict(8.0, 1);
    let cell = &verdict.configurations[0].cells[0];
    assert_eq!(cell.metric, verdict.required[0].metric);
    assert_eq!(cell.value, verdict.required[0].value);
    assert!(cell.value.is_some());
}

#[test]
fn a_slowest_second_of_less_than_a_second_never_meets_a_bound() {
    let mut head = asked(&[&["a"]]);
    let name = stackrace_base::video::WRITE_SLOWEST;
    head.workloads[0].metrics[0] = MetricHead::new(name, "B/s", Better::Higher);
    let answered = |least: f64, elapsed_ns: u64| {
        let mut head = head.clone();
        head.decide.required[0].limit = BoundSide::AtLeast;
        head.decide.required[0].bound = least;
        let mut data = devices(&[100.0], 1);
        for one in &mut data {
            let mut phase = trial().phases.remove(0);
            phase.elapsed_ns = elapsed_ns;
            one.phases = vec![phase];
        }
        let verdict = judge(&evidence(&head, &data, 20));
        (verdict.enough(), verdict.sentence)
    };
    assert_eq!(answered(50e6, 1_000_000_000).0, Some(Enough::Meets));
    assert_eq!(answered(200e6, 130_000_000).0, Some(Enough::Fails));
    let (enough, said) = answered(50e6, 130_000_000);
    assert_eq!(enough, Some(Enough::Open));
    assert!(
        said.contains("a phase lasted only 130 ms, and it takes a second"),
        "{said}"
    );
}
