//! A worker whose answers do not fit what it was asked: none of them counts.

use super::places::race_on_another_machine;
use super::*;
use crate::run::fits::{Since, TurnAsked, phase_fits};
use stackrace_base::event::{FailureCause, OperationObservation, PhaseObservation};
use stackrace_remote::agent::message::{Turn, TurnReply};

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

#[test]
fn a_guest_in_virtual_time_is_believed_no_more_than_any_other_machine() {
    let study = parsed(HONEST);
    let (_, record) = race_on_another_machine(HONEST, "", usize::MAX);
    // The first configuration, so that the lie names another one.
    let first = record.trials().find(|trial| trial.configuration == 0);
    let first = first.unwrap();
    let turn = Turn {
        round: first.round,
        position: first.position,
        configuration: first.configuration,
        missing: vec![0],
        keep: false,
        lies_on: Vec::new(),
    };
    let events = |lie: &str| -> Vec<Event> {
        let own = |event: &&Event| match event {
            Event::StackSetUp { configuration, .. } => *configuration == 0,
            Event::Trial(trial) => trial.configuration == 0,
            _ => false,
        };
        let first_two = record.events().filter(own).take(2).cloned();
        first_two.flat_map(|event| told(lie, event)).collect()
    };
    let said = |lie: &str, recovers: bool| {
        let mut asked = TurnAsked::of_guest(&study, turn.clone(), recovers);
        let mut events = events(lie).into_iter();
        let fits = events.try_for_each(|event| {
            let reply = TurnReply::Happened(Box::new(event));
            asked.fits(&reply)
        });
        fits.and_then(|()| asked.is_whole())
    };
    assert_eq!(said("", false), Ok(()));
    let more = [("set up", "configuration 77"), ("counts", "of read")];
    // Its clock is no clock of a wall, so that any time of day may be what it shows.
    let lies = LIES.iter().chain(&more).filter(|(lie, _)| *lie != "before");
    for (lie, why) in lies {
        let refused = said(lie, false).expect_err(lie);
        let named = ["other configuration", "round"].contains(lie);
        assert!(refused.contains(why) || named, "{lie}: {refused}");
    }
    let refused = said("", true).unwrap_err();
    assert!(refused.contains("nothing was to be measured"), "{refused}");
}

#[test]
fn a_client_is_believed_no_more_than_a_worker() {
    let (_, record) = race_on_another_machine(HONEST, "", usize::MAX);
    let honest = record.trials().next().unwrap().phases[0].clone();
    let since = Since::now();
    let fits = |phase: &PhaseObservation| phase_fits(phase, "first", since);
    assert_eq!(fits(&honest), Ok(()));
    type Lie = fn(&mut PhaseObservation);
    let lies: [(Lie, &str); 9] = [
        (|it| it.name = "second".to_owned(), "and not first"),
        (|it| it.elapsed_ns = u64::MAX, "more than passed since"),
        (|it| it.series = vec![(1, 1); 40_000], "steps of"),
        (
            |it| (it.series, it.step_ns) = (vec![(1, 1)], 0),
            "steps of 0 ns",
        ),
        (|it| it.operations = vec![read(u64::MAX)], "of read"),
        (|it| it.operations = vec![read(0); 70_000], "than there are"),
        (|it| it.depth_achieved = -5.0, "is no figure"),
        (|it| it.offered_per_s = Some(f64::NAN), "is no figure"),
        (
            |it| {
                let mut one = read(1);
                one.histogram = "no histogram".to_owned();
                it.operations = vec![one];
            },
            "a histogram that cannot be read",
        ),
    ];
    for (lie, why) in lies {
        let mut phase = honest.clone();
        lie(&mut phase);
        let refused = fits(&phase).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
    // By our clock: what began before it was asked for, or in the future, was not asked for.
    for at_ns in [i64::MIN, 0, i64::MAX] {
        assert!(at_ns == 0 || !since.holds_start(at_ns), "{at_ns}");
    }
}

#[test]
fn a_disk_that_was_full_when_data_were_laid_out_can_be_mended() {
    let (_, record) = race_on_another_machine(HONEST, "disk of a", usize::MAX);
    let failed = record.failures().next().unwrap();
    assert_eq!(failed.cause, Some(FailureCause::Errno(28)));
    assert!(record.mendable().is_some());
}
