//! A replay beside its application: what is said of how like it is, and no verdict where it is not.

use super::*;
use crate::verdict::{Lacking, can_compare, withheld};
use stackrace_base::event::{
    Counted, DeviceCounted, Event, LogLine, NotByElapsed, PhaseObservation, RecordedApplication,
    RecordedDevice, ReplayedCalls,
};
use stackrace_results::record::{Record, sample};

const SECOND: u64 = 1_000_000_000;

/// What a replay at home was like: its time as a multiple of the recorded one, and what the device did.
#[derive(Clone, Copy)]
struct AtHome {
    time: f64,
    read: u64,
    written: u64,
    flushes: u64,
}

const ALIKE: AtHome = AtHome {
    time: 1.06,
    read: 0,
    written: 97 << 20,
    flushes: 1090,
};

fn recorded() -> RecordedApplication {
    RecordedApplication {
        home: Some(0),
        file_system: "ext4".to_owned(),
        lost: 0.0,
        covered: 0.996,
        cost: 0.04,
        elapsed_ns: SECOND,
        operations: Vec::new(),
        device: Some(RecordedDevice {
            read_bytes: 0,
            written_bytes: 100 << 20,
            flushes: Some(1000),
        }),
        not_by_elapsed: None,
    }
}

/// Five rounds of a replay in two places, of which the second is twice as fast; at home it was like this in each round.
fn measured(recorded: RecordedApplication, at_home: &[AtHome]) -> (RunStarted, Vec<Observation>) {
    let mut head = head(&["fs"], &[&["a"], &["b"]], 1, Some("fs"));
    head.workloads[0].recorded = Some(Box::new(recorded));
    let rounds = u32::try_from(at_home.len()).unwrap();
    let mut trials = trials(
        &head,
        rounds,
        0.01,
        1,
        |t, _| if t == 1 { 2.0 } else { 1.0 },
    );
    let phase = sample::record(&sample::small())
        .trials()
        .next()
        .unwrap()
        .phases[0]
        .clone();
    for trial in &mut trials {
        let found = at_home[trial.round as usize - 1];
        trial.elapsed_ns = match trial.configuration {
            0 => (found.time * SECOND as f64) as u64,
            _ => SECOND / 2,
        };
        trial.phases = vec![PhaseObservation {
            replayed: Some(ReplayedCalls {
                calls: 70_000,
                differing: 7,
            }),
            ..phase.clone()
        }];
        trial.counted = Counted {
            devices: vec![DeviceCounted {
                read_bytes: found.read,
                written_bytes: found.written,
                flushes: Some(found.flushes),
                ..DeviceCounted::default()
            }],
            ..Counted::default()
        };
    }
    (head, trials)
}

#[test]
fn a_replay_that_is_like_its_application_is_judged_and_says_how_like_it_is() {
    let (head, data) = measured(recorded(), &[ALIKE; 5]);
    let verdict = judge(&evidence(&head, &data, 5));
    assert_eq!(verdict.state, State::Decided, "{}", verdict.sentence);
    let note = verdict.notes.join("\n");
    for part in [
        "w0: fidelity on a, where it was recorded (ext4; the middle of 5 trials): time 1.06 x of the recorded one",
        "the device read nothing, as recorded, wrote 0.97 x, flushed 1.09 x",
        "7 of 70,000 results differ",
        "recording cost about 4.0 %, 99.6 % of the time on storage is replayed",
    ] {
        assert!(note.contains(part), "{part}: {note}");
    }
}

/// A program that adapts to its storage asks other things of it.
#[test]
fn a_replay_that_is_not_like_its_application_gives_no_verdict_and_says_why() {
    for (at_home, why) in [
        (AtHome { time: 1.2, ..ALIKE }, "it takes 1.20 x the time"),
        (AtHome { time: 0.8, ..ALIKE }, "it takes 0.80 x the time"),
        (
            AtHome {
                flushes: 1200,
                ..ALIKE
            },
            "the device flushed 1,200 times, recorded were 1,000 times",
        ),
        (
            AtHome {
                written: 80 << 20,
                ..ALIKE
            },
            "the device wrote 80 MiB, recorded were 100 MiB",
        ),
        (
            AtHome {
                read: 9 << 20,
                ..ALIKE
            },
            "the device read 9 MiB, recorded were 0 B",
        ),
    ] {
        let (head, data) = measured(recorded(), &[at_home; 5]);
        let proof = evidence(&head, &data, 5);
        let verdict = judge(&proof);
        let expected =
            format!("No verdict: the replay of w0 on a is not like the application: {why}");
        assert!(
            verdict.sentence.starts_with(&expected),
            "{}",
            verdict.sentence
        );
        assert_eq!(verdict.state, State::Undecided);
        let compared = &verdict.overall[0];
        assert_eq!(
            (compared.ratio, compared.lacking),
            (None, Some(Lacking::Fidelity))
        );
        assert!(compared.rounds.is_empty(), "{:?}", compared.rounds);
        // No round would change it: the run ends.
        assert!(withheld(&proof).is_some() && can_compare(&proof));
    }
}

#[test]
fn one_disturbed_trial_of_several_is_no_other_application() {
    let mut at_home = [ALIKE; 5];
    at_home[1].time = 3.0;
    at_home[3].flushes = 9000;
    let (head, data) = measured(recorded(), &at_home);
    assert_eq!(withheld(&evidence(&head, &data, 5)), None);
    // A megabyte is a journal's.
    let read = AtHome {
        read: 1 << 20,
        ..ALIKE
    };
    let (head, data) = measured(recorded(), &[read; 5]);
    assert_eq!(withheld(&evidence(&head, &data, 5)), None);
}

#[test]
fn a_replay_whose_home_is_not_compared_says_that_its_fidelity_is_unknown() {
    let application = RecordedApplication {
        home: None,
        not_by_elapsed: Some(NotByElapsed::Waits),
        ..recorded()
    };
    let unlike = AtHome { time: 9.0, ..ALIKE };
    let (head, data) = measured(application, &[unlike; 5]);
    let verdict = judge(&evidence(&head, &data, 5));
    assert_eq!(verdict.state, State::Decided, "{}", verdict.sentence);
    let notes = verdict.notes.join("\n");
    assert!(
        notes.contains("how like the application this replay is, is not known"),
        "{notes}"
    );
    let waits = "w0: the recorded application mostly waits for others, so m is compared, and not the elapsed time";
    assert!(notes.contains(waits), "{notes}");
}

/// A run of these trials, of whole rounds.
fn record_of(head: RunStarted, trials: Vec<Observation>) -> Record {
    let line = |event| LogLine {
        at: "2026-11-21T14:05:00Z".to_owned(),
        since_ns: None,
        event,
    };
    let mut record = Record::begin(line(Event::RunStarted(Box::new(head)))).unwrap();
    let rounds = trials.iter().map(|trial| trial.round).max().unwrap_or(0);
    for trial in trials {
        record.push(line(Event::Trial(Box::new(trial))));
    }
    for round in 1..=rounds {
        record.push(line(Event::RoundFinished {
            round,
            trials: None,
        }));
    }
    record
}

/// A gate that passed what the report gives no verdict on would let it through.
#[test]
fn a_gate_does_not_answer_on_a_replay_that_is_not_like_its_application() {
    let gated = |at_home: AtHome| {
        let (head, data) = measured(recorded(), &[at_home; 5]);
        let record = record_of(head, data);
        let question = Threshold {
            worse_than: 0.05,
            confidence: None,
            workloads: Vec::new(),
            metric: None,
            anyway: false,
        };
        gate(&[(&record, 0)], &[(&record, 1)], &question).unwrap()
    };
    assert_eq!(gated(ALIKE).outcome, GateOutcome::Passed);
    let unlike = gated(AtHome { time: 1.5, ..ALIKE });
    assert_eq!(unlike.outcome, GateOutcome::Undecided);
    assert_eq!(unlike.answers[0].more, None);
}
