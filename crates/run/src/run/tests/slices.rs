//! Configurations that take turns in slices within a workload.

use stackrace_engine::spec::{Content, IoEngine, IoTarget, Spec, Stop};

use super::*;
use crate::run::trial_kind::{TrialKind, trial_kinds};
use stackrace_base::event::{Fact, FactFigure};
use stackrace_base::setting::{SettingDoc, Settings};
use stackrace_load::workload::Slicing;

/// A workload without I/O that alternates with others, and fails or interrupts the run where its level
/// says so.
struct Turning {
    level: String,
    does: String,
    operations: u64,
    writes: bool,
}

pub(super) const TURNING: WorkloadKind = WorkloadKind {
    name: "turning",
    summary: "",
    source: "",
    settings: &[
        SettingDoc::text("level", "", "").required(),
        SettingDoc::text("does", "nothing", ""),
        SettingDoc::count("operations", "200000", ""),
        SettingDoc::flag("writes", "false", ""),
    ],
    example: "",
    parse: |settings: &Settings| {
        Ok(Box::new(Turning {
            level: settings.text("level")?,
            does: settings.text("does")?,
            operations: settings.count("operations")?,
            writes: settings.flag("writes")?,
        }))
    },
    ..WorkloadKind::PLAIN
};

impl Turning {
    fn is_to(&self, what: &str) -> bool {
        self.does == format!("{what} {}", self.level)
    }
}

impl Workload for Turning {
    fn summary(&self) -> String {
        String::new()
    }

    fn metrics(&self) -> Vec<MetricHead> {
        vec![MetricHead {
            name: "operations".to_owned(),
            unit: "1/s".to_owned(),
            better: Better::Higher,
        }]
    }

    fn cost(&self) -> Cost {
        Cost::default()
    }

    fn phases(&self) -> Vec<&'static str> {
        vec!["turn"]
    }

    fn slicing(&self) -> Slicing {
        match self.writes {
            true => Slicing::Writes,
            false => Slicing::Reads,
        }
    }

    fn prepare(&self, _place: &Place<'_>) -> Result<(), WorkloadError> {
        match self.is_to("not prepare") {
            true => Err(trouble("told not to prepare".to_owned())),
            false => Ok(()),
        }
    }

    fn measure(&self, _phase: usize, place: &Place<'_>) -> Result<PhaseOutcome, WorkloadError> {
        if self.is_to("fail") {
            // It has not even begun: the others must not wait for it.
            return Err(trouble("told to fail".to_owned()));
        }
        if self.is_to("stop") {
            place.control.stop.store(true, Ordering::SeqCst);
        }
        let target = IoTarget {
            path: "none".into(),
            bytes: 1 << 20,
        };
        let spec = Spec {
            content: Content::Zero,
            engine: IoEngine::Null,
            stop: Stop {
                ops: Some(self.operations),
                time_ns: None,
            },
            ..Spec::reads(vec![target], 4096)
        };
        stackrace_engine::run(&spec, place.control).map_err(|error| trouble(error.to_string()))
    }

    fn evaluate(&self, outcomes: &[PhaseOutcome]) -> Vec<Option<f64>> {
        if self.writes {
            // Work that is put off to the turns of others makes it look faster.
            let puts_off = self.is_to("put off") && !outcomes[0].parts.is_empty();
            return vec![Some(if puts_off { 2.0 } else { 1.0 })];
        }
        let count = outcomes[0].ops.iter().map(|op| op.count).sum::<u64>();
        vec![Some(count as f64 * 1e9 / outcomes[0].elapsed_ns as f64)]
    }
}

pub(super) fn study(does: &str, trial: &str) -> String {
    format!(
        r#"title = "Turning"
seed = 7
[factors]
level = ["a", "b", "c"]
[[stack]]
tmpfs = {{ size = "16 MiB" }}
[[workload]]
turning = {{ level = "{{level}}", does = "{does}" }}
[decide]
rounds-at-most = 2
at-most = "1 h"
until = "never"
[trial]
provision = "once"
{trial}"#
    )
}

#[test]
fn a_trial_in_slices_is_a_full_record_that_says_so() {
    let text = study("nothing", "slice = \"10 ms\"");
    let run = run_study(&text, Fault::Never, "");
    let trials: Vec<_> = run.record.trials().collect();
    assert_eq!(trials.len(), 6);
    for trial in trials {
        assert_eq!(trial.ended, Ended::Complete);
        let sliced = trial.sliced.as_ref().unwrap();
        assert_eq!(sliced.slice_ns, 10_000_000);
        let done = sliced.forwards.operations + sliced.backwards.operations;
        assert_eq!(done, 200_000, "every operation belongs to a slice");
        let phase = &trial.phases[0];
        assert_eq!(phase.operations[0].count, 200_000);
        assert!(!phase.operations[0].histogram.is_empty());
        let own = sliced.forwards.ns + sliced.backwards.ns;
        assert!(phase.elapsed_ns <= own && trial.counted.window_ns.unwrap() >= own);
        // Pressure is that of the machine: it cannot be told whose it is.
        assert_eq!(trial.counted.pressure_io_ns, None);
        assert!(trial.counted.paused_ns.is_some());
    }
}

#[test]
fn all_data_are_laid_out_before_the_first_stack_is_settled_and_all_settled_before_the_first_slice()
{
    let run = run_study(&study("nothing", ""), Fault::Never, "");
    let order = run.order(2);
    let told = |part: &str| -> Vec<String> {
        let each = order.iter().flat_map(|level| match part {
            "settle" => vec![format!("settle {level}"), "    sync".to_owned()],
            part => vec![format!("{part} {level}")],
        });
        each.collect()
    };
    let round = [told("prepare"), told("settle"), told("turn, in slices")].concat();
    let at = run.story.len() - round.len() - 3;
    assert_eq!(run.story[at..at + round.len()], round);
    let torn_down: Vec<&str> = run.story[at + round.len()..]
        .iter()
        .map(|s| s.trim())
        .collect();
    assert_eq!(torn_down, ["umount"; 3]);
}

#[test]
fn slices_that_are_switched_off_and_turns_of_all_workloads_have_none() {
    for trial in ["slice = \"off\"", "order = \"turns\""] {
        let run = run_study(&study("nothing", trial), Fault::Never, "");
        assert!(run.record.trials().all(|trial| trial.sliced.is_none()));
        assert_eq!(run.record.trials().count(), 6);
    }
}

#[test]
fn one_that_fails_before_or_in_its_slices_fails_alone() {
    for does in ["fail b", "not prepare b"] {
        let run = run_study(&study(does, ""), Fault::Never, "");
        assert_eq!(run.ended("b"), ["failed"], "{does}");
        assert_eq!(run.ended("a"), ["complete", "complete"], "{does}");
        assert_eq!(run.ended("c"), ["complete", "complete"], "{does}");
        assert_eq!(run.left, [""; 0]);
    }
}

#[test]
fn a_trial_that_is_stopped_interrupts_the_run() {
    let run = run_study(&study("stop b", ""), Fault::Never, "");
    assert_eq!(run.ended("b"), ["interrupted"]);
    assert_eq!(run.reason, Reason::Interrupted);
    assert_eq!(run.left, [""; 0]);
}

/// The record of a run that was killed after the first of three trials in slices was written.
#[test]
fn a_round_that_was_cut_off_between_its_records_is_measured_again_for_all() {
    let (_base, study, ledger) = begin(&study("nothing", ""));
    let host = stackrace_layers::stack::imagined(Fault::Never);
    let interrupted = Observation {
        configuration: 1,
        metrics: vec![Some(1.0)],
        sliced: Some(stackrace_base::event::Sliced::default()),
        ..Observation::unmeasured(Ended::Complete)
    };
    let begun = [
        Event::RoundStarted {
            round: 1,
            order: vec![1, 0, 2],
            orders: vec![vec![1, 0, 2]],
        },
        Event::Trial(Box::new(interrupted)),
    ];
    for event in begun {
        ledger.tell(event).unwrap();
    }
    let race = Coordinator {
        study: &study,
        ledger: ledger.clone(),
        watcher: &Unwatched,
    };
    let tell = |event| ledger.tell(event);
    let mut here = here(&study, &host, &tell, &Unwatched, Arc::default());
    assert_eq!(race.run(&mut here).unwrap(), Reason::Rounds);
    let record = ledger.lock().record().clone();
    let first: Vec<usize> = record
        .trials()
        .filter(|trial| trial.round == 1)
        .map(|trial| trial.configuration)
        .collect();
    assert_eq!(first, [1, 1, 0, 2]);
    let evidence = stackrace_judge::verdict::Evidence::of(&record);
    let verdict = stackrace_judge::verdict::judge(&evidence);
    let one = &verdict
        .configurations
        .iter()
        .find(|row| row.configuration == 1);
    let (_, value) = one.unwrap().cells[0].rounds[0];
    assert!(
        value > 1.0,
        "the figure is that of the slices that were cut off"
    );
}

/// Returns for each round which kinds of trial each configuration has, in the order they were measured.
fn kinds(run: &Run) -> Vec<String> {
    let of = |round: u32| -> String {
        let trials = run.record.trials().filter(|trial| trial.round == round);
        let kind = trials.map(|trial| if trial.sliced.is_some() { 's' } else { 'w' });
        kind.collect()
    };
    (1..=5).map(of).collect()
}

#[test]
fn writes_are_measured_both_ways_for_three_rounds_and_then_in_slices_only_if_that_is_the_same() {
    let of = |does: &str| {
        let text = study(does, "slice = \"10 ms\"")
            .replace(
                "level = \"{level}\",",
                "level = \"{level}\", writes = true,",
            )
            .replace(
                "rounds-at-most = 2",
                "rounds-at-most = 5\nmargin = \"60 %\"",
            );
        run_study(&text, Fault::Never, "")
    };
    let both = ["ssswww", "wwwsss", "ssswww"];
    let same = of("nothing");
    assert_eq!(kinds(&same), [&both[..], &["sss", "sss"]].concat());
    let puts_off = of("put off b");
    assert_eq!(kinds(&puts_off), [&both[..], &["www", "www"]].concat());
    let warned =
        |line: &&String| line.contains("turning is no longer measured in slices: its first");
    assert_eq!(puts_off.story.iter().filter(warned).count(), 1);
    let verdict =
        stackrace_judge::verdict::judge(&stackrace_judge::verdict::Evidence::of(&puts_off.record));
    let note = |note: &&String| note.starts_with("turning: measured in one go from round 4 on");
    assert_eq!(
        verdict.notes.iter().filter(note).count(),
        1,
        "{:?}",
        verdict.notes
    );
}

#[test]
fn writes_are_measured_in_one_go_where_no_study_asks_for_slices() {
    let text = study("nothing", "").replace("does =", "writes = true, does =");
    let run = run_study(&text, Fault::Never, "");
    assert_eq!(kinds(&run)[..2], ["www", "www"]);
}

#[test]
fn where_a_control_group_limits_io_reads_are_in_slices_only_if_a_study_asks_for_them() {
    let kinds = |trial: &str, limited: bool| {
        let (_base, study, ledger) = begin(&study("nothing", trial));
        let mut record = ledger.lock().record().clone();
        if limited {
            let limit = Fact::new("limit of I/O", "io.max: 8:0 rbps=1").with(FactFigure::IoLimit);
            record.head.environment.push(limit);
        }
        trial_kinds(&study, &record, 0, 1)
    };
    assert_eq!(kinds("", false), [TrialKind::Sliced(50_000_000)]);
    assert_eq!(kinds("", true), [TrialKind::Whole]);
    let asked = "slice = \"10 ms\"";
    assert_eq!(kinds(asked, true), [TrialKind::Sliced(10_000_000)]);
}
