//! Rounds that go workload by workload.

use super::*;

const STUDY: &str = r#"title = "Told"
seed = 7
[factors]
level = ["a", "b", "c"]
[[stack]]
tmpfs = { size = "16 MiB" }
[[workload]]
name = "one"
told = { level = "{level}" }
[[workload]]
name = "two"
told = { level = "{level}" }
[decide]
rounds-at-most = 2
at-most = "1 h"
until = "never"
[trial]
"#;

/// Tells what a story says of preparing, setting up and tearing down, in short.
fn short(story: &[String]) -> Vec<String> {
    let told = story.iter().filter_map(|line| {
        let told = match line.trim() {
            "umount" => "down",
            up if up.starts_with("set up") => up,
            made if line.starts_with("prepare") => made,
            _ => return None,
        };
        Some(told.replace("prepare ", "").replace("set up", "up"))
    });
    told.collect()
}

/// The trials of a round, as they were ordered, by letters.
fn ordered(run: &Run, round: u32) -> Vec<Vec<&'static str>> {
    let orders = run.record.orders_of(round).unwrap();
    let letters = |order: Vec<usize>| order.into_iter().map(|t| ["a", "b", "c"][t]).collect();
    orders.into_iter().map(letters).collect()
}

#[test]
fn configurations_follow_each_other_within_each_workload_and_stand_to_the_end() {
    let text = format!("{STUDY}provision = \"once\"\n");
    let run = run_study(&text, Fault::Never, "");
    let mut expected = Vec::new();
    for round in [1, 2] {
        for (workload, order) in ordered(&run, round).into_iter().enumerate() {
            for level in order {
                if (round, workload) == (1, 0) {
                    expected.push(format!("up {level}"));
                }
                expected.push(level.to_owned());
            }
        }
    }
    expected.extend(["down"; 3].map(str::to_owned));
    assert_eq!(short(&run.story), expected);
    let trials: Vec<_> = run.record.trials().map(|t| (t.round, t.workload)).collect();
    assert!(trials.is_sorted(), "{trials:?}");
    assert_eq!(trials.len(), 12);
}

#[test]
fn stacks_built_in_each_round_stand_until_their_last_workload_of_it() {
    let text = format!("{STUDY}order = \"adjacent\"\n");
    let run = run_study(&text, Fault::Never, "");
    let mut expected = Vec::new();
    for round in [1, 2] {
        let [one, two] = ordered(&run, round).try_into().unwrap();
        expected.extend(
            one.into_iter()
                .flat_map(|level| [format!("up {level}"), level.to_owned()]),
        );
        expected.extend(
            two.into_iter()
                .flat_map(|level| [level.to_owned(), "down".to_owned()]),
        );
    }
    assert_eq!(short(&run.story), expected);
    assert_eq!(run.left, [""; 0]);
}

#[test]
fn a_study_may_ask_for_turns_although_its_stacks_stand() {
    let text = format!("{STUDY}provision = \"once\"\norder = \"turns\"\n");
    let run = run_study(&text, Fault::Never, "");
    assert_eq!(run.record.orders_of(1), Some(Vec::new()));
    let expected = run
        .order(2)
        .iter()
        .flat_map(|level| [*level; 2])
        .collect::<Vec<_>>();
    let told = short(&run.story);
    assert_eq!(told[9..15], expected);
}

#[test]
fn one_that_fails_is_torn_down_at_once_and_has_no_further_trial_of_the_round() {
    let text = format!("{STUDY}provision = \"once\"\n");
    let run = run_study(&text, Fault::Never, "measure b");
    assert_eq!(run.ended("b"), ["failed"]);
    assert_eq!(run.ended("a"), ["complete"; 4]);
    let warned = run
        .story
        .iter()
        .position(|line| line == "warned b: told to fail");
    assert_eq!(run.story[warned.unwrap() + 1], "    umount");
    assert_eq!(run.record.complete_rounds(), [1, 2]);
    assert_eq!(run.left, [""; 0]);
}

#[test]
fn a_stack_is_worn_in_by_every_workload_of_its_first_round_and_written_over_once() {
    let text = format!("{STUDY}provision = \"once\"\nprecondition = \"snia\"\n");
    let run = run_study(&text, Fault::Never, "");
    for trial in run.record.trials() {
        assert_eq!(trial.preconditioned.is_some(), trial.round == 1);
    }
}

/// Rounds that fit a time, which a run of four rounds tells: when its round `at` ended, over `share`.
fn rounds_in(at: u32, share: f64) -> usize {
    let whole = run_study(
        &STUDY.replace("rounds-at-most = 2", "rounds-at-most = 4"),
        Fault::Never,
        "",
    );
    let mut until = whole.record;
    let ends = |event: &Event| matches!(event, Event::RoundFinished { round, .. } if *round == at);
    let last = until
        .lines
        .iter()
        .position(|line| ends(&line.event))
        .unwrap();
    until.lines.truncate(last + 1);
    let allowed = until.elapsed_seconds() / share;
    let text = STUDY.replace(
        "at-most = \"1 h\"",
        &format!("at-most = \"{:.0} us\"", allowed * 1e6),
    );
    let text = text.replace("rounds-at-most = 2", "rounds-at-most = 9");
    let run = run_study(&text, Fault::Never, "");
    assert_eq!(run.reason, Reason::Time);
    run.record.complete_rounds().len()
}

#[test]
fn a_round_that_ends_a_little_late_is_begun_where_it_brings_the_first_verdict() {
    assert_eq!(rounds_in(3, 1.07), 3, "it brings the first verdict");
    assert_eq!(rounds_in(3, 1.3), 2, "far too late for a third one");
    assert_eq!(rounds_in(4, 1.07), 3, "one more verdict");
    assert_eq!(rounds_in(4, 1.0), 4);
}
