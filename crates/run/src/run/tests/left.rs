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
