//! What coming first in a round does is no noise.

use super::*;

/// Rounds of two configurations, b 10 % better, in which the later one is 1.2 times as good on the first
/// workload. Each workload has an order of its own.
fn rounds(head: &RunStarted, rounds: u32) -> Vec<Observation> {
    let mut all = trials(head, rounds, 0.005, 5, |t, _| 1.0 + 0.1 * t as f64);
    for trial in &mut all {
        let b_first = (trial.round + trial.workload as u32).is_multiple_of(2);
        trial.position = usize::from((trial.configuration == 1) != b_first);
        if trial.workload == 0 && trial.position == 1 {
            trial.metrics[0] = trial.metrics[0].map(|value| 1.2 * value);
        }
    }
    all
}

#[test]
fn what_comes_first_in_a_round_is_taken_out_of_the_comparison() {
    let head = head(&["fs"], &[&["a"], &["b"]], 3, Some("fs"));
    let trials = rounds(&head, 8);
    let verdict = judge(&evidence(&head, &trials, 8));
    assert!(matches!(verdict.state, State::Decided));
    let on = |workload: &str| {
        let mut workloads = verdict.workloads.iter();
        workloads.find(|c| c.workload == workload).unwrap()
    };
    let first = on("w0");
    assert!((first.order_effect.unwrap() - 1.2).abs() < 0.01);
    let ratio = first.ratio.unwrap();
    assert!(ratio.low > 1.05 && ratio.high < 1.15, "{ratio:?}");
    assert!((ratio.estimate - 1.1).abs() < 0.01);
    // What was measured stays as it was.
    assert!(first.rounds.iter().any(|(_, ratio)| *ratio > 1.25));
    let note = "w0: a configuration is 17 % slower when it comes first in a round";
    let named = verdict.notes.iter().filter(|said| said.starts_with(note));
    assert_eq!(named.count(), 1, "{:?}", verdict.notes);
    assert!(
        !verdict
            .notes
            .iter()
            .any(|said| said.starts_with("w1: a conf"))
    );
}

#[test]
fn an_order_that_never_changes_says_nothing_of_its_effect() {
    let head = head(&["fs"], &[&["a"], &["b"]], 1, Some("fs"));
    let mut trials = rounds(&head, 8);
    for trial in &mut trials {
        trial.position = trial.configuration;
    }
    let verdict = judge(&evidence(&head, &trials, 8));
    assert_eq!(verdict.overall[0].order_effect, None);
}
