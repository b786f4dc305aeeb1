//! Stacks that are conditioned before they are measured.

use super::*;

#[test]
fn a_stack_set_up_anew_does_passes_until_they_are_steady() {
    let text = format!("{STUDY}[trial]\nprecondition = \"snia\"\n");
    let run = run_study(&text, Fault::Never, "");
    let orders = [run.order(1), run.order(2)].concat();
    let expected: Vec<String> = orders.iter().flat_map(|level| worn_in(level, 5)).collect();
    assert_eq!(run.story, expected);
    for trial in run.record.trials() {
        let before = trial.preconditioned.as_ref().unwrap();
        assert!(before.steady && before.passes.len() == 5);
        assert_eq!(before.passes[4], trial.metrics[0]);
    }
    assert_eq!(run.ended("a"), ["complete"; 2], "passes are no trials");
    assert_eq!(run.left, [""; 0]);
}

#[test]
fn a_stack_that_stands_is_not_preconditioned_again_and_one_that_never_rests_is_said_to() {
    let text = format!("{STUDY}[trial]\nprecondition = \"snia\"\nprovision = \"once\"\n");
    SHRINKS.set((1.0, 0.9));
    let run = run_study(&text, Fault::Never, "");
    SHRINKS.set((1.0, 1.0));
    for trial in run.record.trials() {
        let before = trial.preconditioned.as_ref();
        assert_eq!(before.is_some(), trial.round == 1);
        assert!(before.is_none_or(|before| !before.steady && before.passes.len() == 25));
    }
}

#[test]
fn a_pass_that_fails_or_is_interrupted_ends_the_trial_it_was_for() {
    let text = format!("{STUDY}[trial]\nprecondition = \"snia\"\n");
    let run = run_study(&text, Fault::Never, "measure b");
    assert_eq!(run.ended("b"), ["failed"]);
    let mut trials = run.record.trials().filter(|trial| trial.configuration == 1);
    let Ended::Failed { error } = &trials.next().unwrap().ended else {
        unreachable!("it failed")
    };
    assert_eq!(error, "preconditioning: pass 1: told to fail");
    assert_eq!(run.left, [""; 0]);
    let run = run_study(&text, Fault::Never, "interrupt b");
    assert_eq!(run.ended("b"), ["interrupted"]);
    assert_eq!(run.reason, Reason::Interrupted);
    assert_eq!(run.left, [""; 0]);
}
