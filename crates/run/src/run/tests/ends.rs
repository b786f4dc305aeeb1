//! When a run ends by itself.

use super::*;

#[test]
fn a_run_ends_with_a_winner_or_not_before_every_round_of_every_configuration_is_done() {
    let five = STUDY.replace("rounds-at-most = 2", "rounds-at-most = 5");
    let run = run_study(&five, Fault::Never, "");
    assert_eq!(run.reason, Reason::Rounds);
    assert_eq!(run.order(5).len(), 3, "one is dropped");
    let until_decided = five.replace("never", "overall");
    let run = run_study(&until_decided, Fault::Never, "");
    assert_eq!(run.reason, Reason::Decided);
    assert_eq!(run.record.complete_rounds(), [1, 2, 3]);
    assert!(run.record.dropped().is_empty(), "it ended with this check");
}

#[test]
fn the_last_one_left_is_measured_on_while_it_is_open_whether_it_meets_what_is_required() {
    let two = STUDY.replace(r#"["a", "b", "c"]"#, r#"["c", "a"]"#);
    let until_decided = two.replace("never", "overall").replace("= 2\n", "= 6\n");
    // What it has is just the bound: neither above nor below it.
    let required = format!("{until_decided}[require]\n\"told: throughput\" = \">= 8 B/s\"\n");
    let run = run_study(&required, Fault::Never, "");
    assert_eq!(run.reason, Reason::Rounds);
    assert_eq!(run.record.complete_rounds().len(), 6);
    let run = run_study(&until_decided, Fault::Never, "");
    assert_eq!(run.reason, Reason::Decided);
}
