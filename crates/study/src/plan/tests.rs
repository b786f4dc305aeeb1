//! Figures of a plan worked by hand, lints, and the width of the page.

use std::path::Path;

use super::content::*;
use super::order;
use crate::study::{Kinds, Study, parse};

const GIB: u64 = 1 << 30;

const TWO: &str = r#"title = "ext4 or XFS?"
seed = 1
[factors]
filesystem = ["ext4", "xfs"]
[[stack]]
loop = { size = "4 GiB", directory = "/srv" }
[[stack]]
"{filesystem}" = {}
[[workload]]
name = "streaming"
sequential = { mode = "write", size = "1 GiB" }
[[workload]]
random = { mode = "read", size = "1 GiB", time = "5 s" }
[decide]
compare = "filesystem"
rounds-at-most = 10
at-most = "2 h"
"#;

fn study(text: &str) -> Study {
    match parse("study.toml", text.as_bytes(), &Kinds::real()) {
        Ok(study) => study,
        Err(errors) => panic!("{}", errors[0]),
    }
}

/// A plan on a machine with this much room, memory unknown, at 1 GB/s.
fn planned(text: &str, free_bytes: u64) -> Plan {
    plan_on(text, &|_| Some(free_bytes), None, Some(1e9))
}

fn plan_on(
    text: &str,
    free_bytes: &dyn Fn(&Path) -> Option<u64>,
    memory_bytes: Option<u64>,
    write_rate: Option<f64>,
) -> Plan {
    Plan::of(
        &study(text),
        &MachineFacts {
            commands: &|index, configuration| {
                Ok(vec![
                    format!("raise {index}"),
                    format!("mkfs {}", configuration.name),
                ])
            },
            missing: &|| Vec::new(),
            free_bytes,
            speed: write_rate.map_or(StorageSpeed::Unknown, |rate| {
                StorageSpeed::Modelled(Bounds {
                    least: rate,
                    most: rate,
                })
            }),
            memory_bytes,
            scratch: Path::new("/run/scratch"),
        },
    )
}

fn problems(plan: &Plan) -> Vec<&str> {
    let problems = plan.lints.iter();
    problems
        .filter(|lint| lint.weight == LintWeight::Problem)
        .map(|lint| lint.text.as_str())
        .collect()
}

fn has_lint(plan: &Plan, part: &str) {
    let found = plan.lints.iter().any(|lint| lint.text.contains(part));
    assert!(found, "{part} is not in {:?}", plan.lints);
}

#[test]
fn bytes_and_room_are_summed() {
    let plan = planned(TWO, 100 * GIB);
    // Streaming writes 1 GiB; random reads lay out 1 GiB and then read by the clock.
    assert_eq!(
        plan.moved,
        MovedBytes {
            trial_bytes: GIB,
            round_bytes: 4 * GIB,
            total_bytes: 40 * GIB,
            open_ended: true,
            data_bytes: GIB,
            precondition: None,
        }
    );
    let need = |needed_bytes| DiskNeed {
        path: "/srv".into(),
        needed_bytes,
        free_bytes: Some(100 * GIB),
    };
    assert_eq!(plan.disk, [need(4 * GIB)]);
    let once = TWO.replace("[decide]", "[trial]\nprovision = \"once\"\n[decide]");
    assert_eq!(planned(&once, 100 * GIB).disk, [need(8 * GIB)]);
    let scratch = TWO.replace(", directory = \"/srv\"", "");
    assert_eq!(
        planned(&scratch, GIB).disk[0].path,
        Path::new("/run/scratch")
    );
}

#[test]
fn time_is_bytes_over_rate_and_what_is_said_to_be_assumed() {
    let plan = planned(TWO, 100 * GIB);
    let gib = GIB as f64 / 1e9;
    // A configuration: 2 commands, 2 settlings, 1 GiB laid out, 1 GiB streamed, 5 s of reading.
    let least = 2.0 * (2.0 * 0.02 + 2.0 * 0.1 + 2.0 * gib + 5.0);
    let most = 2.0 * (2.0 * 0.5 + 2.0 * 2.0 + 2.0 * gib * 4.0 + 5.0);
    let time = &plan.time;
    assert!((time.round_seconds.least - least).abs() < 1e-9, "{time:?}");
    assert!((time.round_seconds.most - most).abs() < 1e-9, "{time:?}");
    // From the first check, after 3 rounds, to all 10.
    assert!(
        (time.run_seconds.least - 3.0 * least).abs() < 1e-9,
        "{time:?}"
    );
    assert!(
        (time.run_seconds.most - 10.0 * most).abs() < 1e-9,
        "{time:?}"
    );
    assert_eq!(time.rounds, (10, 10));
    assert!(
        time.assumed.contains("up to what all stream, 1.00 GB/s"),
        "{}",
        time.assumed
    );
    let unknown = plan_on(TWO, &|_| None, None, None);
    assert!(unknown.time.assumed.contains("not measured"));
    assert!(unknown.time.round_seconds.most > most);
    assert_eq!(unknown.disk[0].free_bytes, None);
}

/// Each configuration: 1 GiB written twice, then 5 to 25 times what a round moves.
#[test]
fn preconditioning_is_counted_in_bytes_and_time() {
    let text = TWO.replace("[decide]", "[trial]\nprecondition = \"snia\"\n[decide]");
    let (plan, without) = (planned(&text, 100 * GIB), planned(TWO, 100 * GIB));
    let expected = |each_round| PlannedPrecondition {
        each_round,
        least_bytes: 4 * GIB + 5 * 4 * GIB,
        most_bytes: 4 * GIB + 25 * 4 * GIB,
    };
    assert_eq!(plan.moved.precondition, Some(expected(true)));
    assert_eq!(plan.moved.round_bytes, without.moved.round_bytes);
    // Of the round without it, raising is not repeated.
    let commands = 2.0 * 2.0 * 0.02;
    let trials = without.time.round_seconds.least - commands;
    let least = commands + 4.0 * GIB as f64 / 1e9 + 6.0 * trials;
    let time = &plan.time;
    assert!((time.round_seconds.least - least).abs() < 1e-9, "{time:?}");
    let page = plan.render(80);
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "before preconditioning on top of that, in each round: each stack written over 2 times, \
                then each workload 5 to 25 times until it is steady; at least 24 GiB, at most 104 GiB";
    assert!(words.contains(said), "{page}");

    let once = text.replace("[trial]", "[trial]\nprovision = \"once\"");
    let once = planned(&once, 100 * GIB);
    assert_eq!(once.moved.precondition, Some(expected(false)));
    assert!((once.time.round_seconds.least - trials).abs() < 1e-9);
    let run = once.time.run_seconds.least - 3.0 * trials;
    assert!((run - (least - trials)).abs() < 1e-9, "{:?}", once.time);
}

#[test]
fn error_is_shared_among_checks_comparisons_and_families() {
    let plan = planned(TWO, 100 * GIB);
    let rounds: Vec<u32> = plan.looks.iter().map(|look| look.rounds).collect();
    assert_eq!(rounds, [3, 5, 8, 10]);
    assert_eq!(plan.comparisons, 1);
    // Two workloads, and the run stops when the overall figure is decided: it has four fifths.
    let alpha = stackrace_stats::two_sided_level(0.05 * 0.8, 3);
    assert!((plan.looks[0].alpha / alpha - 1.0).abs() < 1e-9);
    for pair in plan.looks.windows(2) {
        for (early, late) in pair[0].detectable.iter().zip(pair[1].detectable) {
            assert!(early.unwrap() > late.unwrap());
        }
    }
    let [quiet, usual, noisy] = plan.looks[0].detectable.map(Option::unwrap);
    assert!(quiet < usual && usual < noisy);
    let best = TWO
        .replace("compare = \"filesystem\"\n", "")
        .replace("\"xfs\"]", "\"xfs\", \"btrfs\"]");
    assert_eq!(planned(&best, 100 * GIB).comparisons, 3);
}

#[test]
fn a_sound_study_has_no_problem() {
    assert_eq!(problems(&planned(TWO, 100 * GIB)), [""; 0]);
}

#[test]
fn room_and_time_that_do_not_suffice_are_problems() {
    has_lint(
        &planned(TWO, GIB),
        "4 GiB must be free in /srv; 1 GiB are free",
    );
    let small = TWO.replace("4 GiB", "512 MiB");
    has_lint(
        &planned(&small, 100 * GIB),
        "the workloads need 1 GiB, and the stack of ext4 has",
    );
    let short = TWO.replace("2 h", "20 s");
    has_lint(
        &planned(&short, 100 * GIB),
        "only 1 round fits into 20 s: the first check needs 3",
    );
    let tight = TWO.replace("2 h", "60 s");
    has_lint(
        &planned(&tight, 100 * GIB),
        "on slow storage only 1 round fits",
    );
    let few = TWO.replace("rounds-at-most = 10", "rounds-at-most = 2");
    has_lint(
        &planned(&few, 100 * GIB),
        "rounds-at-most is 2: the first check needs 3",
    );
}

#[test]
fn what_can_be_misread_is_noted() {
    let one = TWO
        .replace(", \"xfs\"]", "]")
        .replace("compare = \"filesystem\"\n", "");
    let plan = planned(&one, 100 * GIB);
    has_lint(&plan, "only one configuration");
    assert!(plan.looks.is_empty());
    assert!(plan.render(80).contains("nothing is compared"));

    let same = TWO.replace("\"xfs\"]", "{ label = \"ext4 again\", value = \"ext4\" }]");
    has_lint(
        &planned(&same, 100 * GIB),
        "ext4 and ext4 again are the same",
    );
    // What they differ in is said by no description of the layer.
    let lines = TWO
        .replace(
            "loop = { size = \"4 GiB\", directory = \"/srv\" }\n[[stack]]\n\"{filesystem}\" = {}",
            "dir = { path = \"/srv\", line = \"{filesystem}\" }",
        )
        .replace("[\"ext4\", \"xfs\"]", "[\"1 GB\", \"2 GB\"]");
    let plan = planned(&lines, 100 * GIB);
    assert!(
        plan.lints
            .iter()
            .all(|lint| !lint.text.contains("are the same"))
    );

    let memory = plan_on(TWO, &|_| None, Some(8 * GIB), None);
    has_lint(&memory, "data smaller than memory (8 GiB)");
    let small_memory = plan_on(TWO, &|_| None, Some(GIB / 2), None);
    assert!(
        !small_memory
            .lints
            .iter()
            .any(|lint| lint.text.contains("memory"))
    );

    let holes = TWO
        .replace(
            "[factors]",
            "[factors]\nblock-size = [\"4 KiB\", \"8 KiB\"]",
        )
        .replace("time = \"5 s\"", "block-size = \"{block-size}\"")
        .replace(
            "[[stack]]\nloop",
            "[[exclude]]\nfilesystem = \"xfs\"\nblock-size = \"8 KiB\"\n[[stack]]\nloop",
        );
    has_lint(
        &planned(&holes, 100 * GIB),
        "1 of 2 combinations lack a level of filesystem",
    );
}

#[test]
fn a_configuration_that_cannot_be_set_up_is_a_problem() {
    let plan = Plan::of(
        &study(TWO),
        &MachineFacts {
            commands: &|_, _| Err("no such directory".to_owned()),
            missing: &|| vec!["mkfs.xfs is missing; install xfsprogs".to_owned()],
            free_bytes: &|_| None,
            speed: StorageSpeed::Unknown,
            memory_bytes: None,
            scratch: Path::new("/run/scratch"),
        },
    );
    assert_eq!(
        problems(&plan),
        [
            "mkfs.xfs is missing; install xfsprogs",
            "ext4 cannot be set up: no such directory",
            "xfs cannot be set up: no such directory",
        ]
    );
}

#[test]
fn the_first_order_is_the_one_of_the_first_round() {
    let study = study(TWO);
    let plan = planned(TWO, GIB);
    assert_eq!(plan.first_order, order(1, &study.hash(), 1, &[0, 1]));
}

#[test]
fn the_page_is_at_most_80_columns_wide_and_says_everything() {
    let plan = planned(TWO, 100 * GIB);
    let page = plan.render(80);
    for line in page.lines() {
        assert!(line.chars().count() <= 80, "{line}");
        assert_eq!(line, line.trim_end());
    }
    for part in [
        "ext4 or XFS? (study.toml)",
        "2 configurations x 2 workloads = 4 trials a round; at most 10 rounds",
        "    $ raise 0\n    $ mkfs ext4\n",
        "    $ raise 1\n    $ mkfs xfs\n",
        "at most 1 GiB a trial, 4 GiB a round, 40 GiB in all",
        "4 GiB at once in /srv (100 GiB free)",
        "rounds    noise 1 %    noise 3 %   noise 10 %",
    ] {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
}

#[test]
fn a_long_command_is_broken_so_that_it_can_be_pasted() {
    let plan = Plan::of(
        &study(TWO),
        &MachineFacts {
            commands: &|_, _| Ok(vec![["word"; 40].join(" ")]),
            missing: &|| Vec::new(),
            free_bytes: &|_| None,
            speed: StorageSpeed::Unknown,
            memory_bytes: None,
            scratch: Path::new("/run/scratch"),
        },
    );
    let page = plan.render(80);
    assert!(page.lines().all(|line| line.chars().count() <= 80));
    let start = page.find("$ word").unwrap() + 2;
    let pasted = page[start..].replace("\\\n", " ");
    let command = pasted.lines().next().unwrap();
    assert_eq!(command.split_whitespace().count(), 40);
}

#[test]
fn a_plan_is_data() {
    let plan = serde_json::to_value(planned(TWO, 100 * GIB)).unwrap();
    assert_eq!(plan["configurations"][1]["commands"][1], "mkfs xfs");
    assert_eq!(plan["workloads"][0]["name"], "streaming");
    assert_eq!(plan["looks"][0]["rounds"], 3);
    assert_eq!(plan["lints"], serde_json::json!([]));
}
