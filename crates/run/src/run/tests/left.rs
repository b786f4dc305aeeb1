//! Stacks that stay.

use super::*;

#[test]
fn a_stack_that_cannot_be_torn_down_ends_the_run_before_another_is_added() {
    let steps = run(Fault::Never, "").steps;
    let at = steps.iter().position(|step| step.argv[0] == "umount");
    let run = run(Fault::DiedBefore(at.unwrap() + 1), "");
    assert_eq!(run.reason, Reason::Lost);
    let detail = run.record.ended().unwrap().detail;
    assert!(
        detail.starts_with("the stack of an earlier trial cannot be torn down ("),
        "{detail}"
    );
    let set_up = |event: &&Event| matches!(event, Event::StackSetUp { .. });
    assert_eq!(run.record.events().filter(set_up).count(), 1);
    assert_eq!(run.record.failures().count(), 0);
}

#[test]
fn a_run_ends_when_nothing_is_left_to_be_compared_with_what_failed() {
    let asked = "until = \"overall\"\ncompare = \"level\"";
    let study = STUDY.replace("until = \"never\"", asked);
    // The baseline: the others have nothing to be compared with.
    let run = run_study(&study, Fault::Never, "measure a");
    assert_eq!(run.reason, Reason::Failed);
    let detail = run.record.ended().unwrap().detail;
    assert!(
        detail.starts_with("every comparison has a configuration that failed"),
        "{detail}"
    );
    assert_eq!(run.ended("b"), ["complete"]);
    assert_eq!(run.left, [""; 0]);
    // Another one: the rest goes on.
    let run = run_study(&study, Fault::Never, "measure b");
    assert_eq!(run.reason, Reason::Rounds);
    assert_eq!(run.ended("c"), ["complete", "complete"]);
}
