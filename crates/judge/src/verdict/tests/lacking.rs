//! Why there is no interval: what is said must be what would help.

use super::*;
use stackrace_base::event::{Event, SlicesEnded};
use stackrace_results::record::sample;

/// Five rounds of trials of 4000 reads each, none of which has its 99.9th percentile.
fn without_quantile() -> stackrace_results::record::Record {
    let mut record = sample::record(&sample::small());
    for workload in &mut record.head.workloads {
        workload.metrics[3].name = "read latency p99.9".to_owned();
    }
    for line in &mut record.lines {
        if let Event::Trial(trial) = &mut line.event {
            trial.metrics[3] = None;
        }
    }
    record
}

#[test]
fn a_quantile_that_no_trial_has_lacks_operations_and_not_rounds() {
    let record = without_quantile();
    let question = Question {
        metric: Some("read latency p99.9".to_owned()),
        ..Question::default()
    };
    let answer = ask(std::slice::from_ref(&record), &question).unwrap();
    for said in &answer[0].sentences {
        let reason = "a trial has only 4,000 operations and the figure takes 10,000";
        assert!(said.contains(reason), "{said}");
        assert!(said.contains("longer trials would tell"), "{said}");
        assert!(!said.contains("too few rounds"), "{said}");
    }
    let threshold = Threshold {
        worse_than: 0.05,
        confidence: None,
        workloads: Vec::new(),
        metric: question.metric,
        anyway: false,
    };
    let gated = gate(&[(&record, 1)], &[(&record, 0)], &threshold).unwrap();
    assert!(
        gated.sentence.contains("only 4,000 operations"),
        "{}",
        gated.sentence
    );
    assert!(!gated.sentence.contains("more round"), "{}", gated.sentence);
    assert!(gated.answers.iter().all(|answer| answer.more.is_none()));
}

#[test]
fn a_quantile_that_is_judged_says_where_trials_have_too_few_operations_for_it() {
    let said = |metric: &str| {
        let mut record = sample::record(&sample::small());
        for workload in &mut record.head.workloads {
            workload.metrics[0].name = metric.to_owned();
        }
        let notes = judge(&Evidence::of(&record)).notes;
        let few = "takes 10,000 operations in a trial, and one has only 4,000: ";
        notes.iter().any(|note| note.contains(few))
    };
    assert!(said("read latency p99.9"));
    assert!(!said("read latency p99"));
    assert!(!said("throughput"));
}

#[test]
fn a_figure_that_is_no_quantile_is_said_to_be_missing() {
    let mut record = without_quantile();
    for workload in &mut record.head.workloads {
        workload.metrics[3].name = "copied".to_owned();
    }
    let question = Question {
        metric: Some("copied".to_owned()),
        ..Question::default()
    };
    let answer = ask(&[record], &question).unwrap();
    let said = &answer[0].sentences[0];
    assert!(said.contains("trials ended without this figure"), "{said}");
}

#[test]
fn after_slices_ended_it_is_rounds_in_one_go_that_are_lacking() {
    let head = head(&["fs"], &[&["a"], &["b"]], 1, Some("fs"));
    let data = trials(&head, 5, 0.01, 5, |_, _| 1.0);
    let mut proof = evidence(&head, &data, 5);
    let why = "the turn of a changes that of b".to_owned();
    proof.slices_ended = vec![(4, SlicesEnded { workload: 0, why })];
    proof.ended = true;
    let verdict = judge(&proof);
    let said = &verdict.sentence;
    assert!(
        said.contains("an interval takes 3 rounds in one go, and there is 1"),
        "{said}"
    );
    assert!(!said.contains("too few rounds"), "{said}");
    assert!(said.contains("resume"), "{said}");
    // The estimate of the round that counts stands in the table.
    let row = verdict
        .configurations
        .iter()
        .find(|row| row.name == "b")
        .unwrap();
    assert_eq!(row.lacking.map(Lacking::brief), Some("too few rounds"));
}
