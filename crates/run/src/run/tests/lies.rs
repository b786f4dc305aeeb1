//! A worker whose answers do not fit what it was asked: none of them counts.

use super::places::race_on_another_machine;
use super::*;
use stackrace_base::event::OperationObservation;

/// Two levels and one workload, in whole turns.
const HONEST: &str = r#"title = "Told on another machine"
seed = 7
[factors]
level = ["a", "b"]
[[stack]]
tmpfs = { size = "16 MiB" }
[[workload]]
name = "one"
told = { level = "{level}" }
[decide]
rounds-at-most = 3
at-most = "1 h"
until = "never"
"#;

/// Each lie, and what is said of it.
const LIES: [(&str, &str); 19] = [
    ("round", "it was not asked for a in round 999"),
    ("configuration 77", "it was not asked for configuration 77"),
    ("other configuration", "it was not asked for b in round 1"),
    ("workload", "a workload that is not in the study"),
    ("position", "in another position"),
    ("twice", "the same trial twice"),
    ("none", "there is no trial of one"),
    ("negative", "-5 is no figure"),
    ("zero", "no throughput"),
    ("null", "no throughput"),
    ("no figures", "0 figures, and not 1"),
    ("many figures", "5 figures, and not 1"),
    ("elapsed", "more than passed since"),
    ("no phase", "0 of 2 phases"),
    ("before", "set the clock of that machine"),
    ("yesterday", "is no time at which it began"),
    ("notes", "of notes"),
    ("series", "a series of 40000 steps"),
    ("ended", "an event that no worker has a say in"),
];

/// Events that a worker tells instead of one.
pub(super) fn told(lie: &str, event: Event) -> Vec<Event> {
    let Event::Trial(mut trial) = event else {
        return match (lie, event) {
            (
                "set up",
                Event::StackSetUp {
                    layers,
                    lies_on,
                    elapsed_ns,
                    round,
                    ..
                },
            ) => {
                let configuration = 77;
                vec![Event::StackSetUp {
                    round,
                    configuration,
                    layers,
                    lies_on,
                    elapsed_ns,
                }]
            }
            (_, event) => vec![event],
        };
    };
    let many = |each| vec![Some(each); 5];
    match lie {
        "round" => trial.round = 999,
        "configuration 77" => trial.configuration = 77,
        "other configuration" => trial.configuration = 1,
        "workload" => trial.workload = 99,
        "position" => trial.position = 7,
        "twice" => return vec![Event::Trial(trial.clone()), Event::Trial(trial)],
        "none" => return Vec::new(),
        "negative" => trial.metrics = vec![Some(-5.0)],
        "zero" => trial.metrics = vec![Some(0.0)],
        "null" => trial.metrics = vec![None],
        "no figures" => trial.metrics.clear(),
        "many figures" => trial.metrics = many(1.0),
        "elapsed" => trial.elapsed_ns = u64::MAX,
        "no phase" => trial.phases.clear(),
        "before" => trial.started_at = "1971-01-01T00:00:00.000Z".to_owned(),
        "yesterday" => trial.started_at = "yesterday \u{1b}[31m".to_owned(),
        "notes" => trial.notes = vec!["x".repeat(10_000); 20],
        "series" => trial.phases[0].series = vec![(1, 1); 40_000],
        "ended" => {
            let (reason, detail) = ("decided".to_owned(), String::new());
            return vec![Event::RunEnded { reason, detail }];
        }
        "counts" => trial.phases.iter_mut().for_each(|phase| {
            phase.operations = vec![read(u64::MAX)];
        }),
        _ => return vec![Event::Trial(trial)],
    }
    if matches!(lie, "zero" | "null") {
        trial.phases[0].operations = vec![read(5)];
    }
    vec![Event::Trial(trial)]
}

fn read(count: u64) -> OperationObservation {
    OperationObservation {
        op: "read".to_owned(),
        count,
        bytes: count,
        latency_ns_min: 1,
        latency_ns_mean: 1.0,
        latency_ns_p50: 1,
        latency_ns_p95: 1,
        latency_ns_p99: 1,
        latency_ns_p999: None,
        latency_ns_max: 1,
        histogram: String::new(),
        service: None,
    }
}

#[test]
fn an_answer_that_does_not_fit_ends_the_run_by_name_and_never_counts() {
    // Whatever configuration comes first is the one that the lie names as the other.
    let more = [("set up", "configuration 77"), ("counts", "of read")];
    for (lie, why) in LIES.iter().chain(&more) {
        let (reason, record) = race_on_another_machine(HONEST, lie, usize::MAX);
        assert_eq!(reason, Reason::Lost, "{lie}");
        let end = record.ended().unwrap();
        let begins = "liar: its answer does not fit what was asked: ";
        assert!(end.detail.starts_with(begins), "{lie}: {}", end.detail);
        assert!(
            end.detail.contains(why) || *lie == "other configuration" || *lie == "round",
            "{lie}: {}",
            end.detail
        );
        // Only of the lies that an honest trial comes before.
        let honest = usize::from(*lie == "twice") + usize::from(*lie == "other configuration");
        assert!(record.trials().count() <= honest, "{lie}");
    }
}

#[test]
fn an_honest_worker_is_believed() {
    let (reason, record) = race_on_another_machine(HONEST, "", usize::MAX);
    assert_eq!(reason, Reason::Rounds);
    assert_eq!(record.trials().count(), 6);
}
