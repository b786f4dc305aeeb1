//! The promises of the room as a whole: nothing lost, nothing torn, nothing derived that differs.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use stackrace_base::event::{Ended as TrialEnded, Event, FORMAT, LogLine};
use stackrace_base::time::Clock;

mod clocks;
#[cfg(feature = "sqlite")]
mod index;
mod lines;
mod resumed;

/// A clock that moves one second at every look.
#[derive(Default)]
struct MadeUp(std::sync::atomic::AtomicU64);

impl Clock for MadeUp {
    fn now_ns(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed) * 1_000_000_000
    }

    fn today(&self) -> String {
        let second = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        format!(
            "2026-11-21T14:{:02}:{:02}.000Z",
            second / 60 % 60,
            second % 60
        )
    }

    fn sleep(&self, _: Duration) {}
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(MadeUp::default())
}

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("store")).unwrap();
    (dir, store)
}

fn head(run: &str) -> stackrace_base::event::RunStarted {
    let mut head = sample::head(&sample::small());
    head.run = run.to_owned();
    head
}

/// Writes a whole made-up run.
fn write(store: &Store, run: &str) -> Vec<LogLine> {
    let (mut log, first) = store.create_run(head(run), clock()).unwrap();
    let mut lines = vec![first];
    for line in sample::record(&sample::small()).lines.into_iter().skip(1) {
        lines.push(log.append(line.event).unwrap());
    }
    lines
}

fn text(lines: &[LogLine]) -> Vec<String> {
    lines
        .iter()
        .map(|line| serde_json::to_string(line).unwrap())
        .collect()
}

#[test]
fn what_is_written_is_read_back() {
    let (_dir, store) = store();
    let lines = write(&store, "2026-11-21T1405-aaaa");
    let record = store.read("last").unwrap();
    assert_eq!(text(&record.lines), text(&lines));
    assert!(record.notes.is_empty(), "{:?}", record.notes);
    assert_eq!(record.complete_rounds(), [1, 2, 3, 4, 5]);
    assert_eq!(record.trials().count(), 30);
    assert_eq!(record.ended().unwrap().reason, "interrupted");
    assert_eq!(record.warnings().len(), 1);
    assert_eq!(record.layer_facts(1).len(), 5);
    assert_eq!(record.round_times().len(), 5);
    assert!(record.elapsed_seconds() > 10.0);
    let study =
        std::fs::read_to_string(store.run_dir("2026-11-21T1405-aaaa").join("study.toml")).unwrap();
    assert_eq!(study, record.head.study);
}

/// A kill may leave any number of bytes of the last line; whichever it is, the lines before are
/// read, and going on gives a log of whole lines again.
#[test]
fn a_line_torn_at_any_byte_is_set_aside() {
    let (_dir, store) = store();
    let run = "2026-11-21T1405-aaaa";
    let (mut log, _) = store.create_run(head(run), clock()).unwrap();
    log.append(Event::RoundStarted {
        round: 1,
        order: vec![1, 0],
        orders: Vec::new(),
    })
    .unwrap();
    let path = store.run_dir(run).join("log.jsonl");
    let torn_path = store.run_dir(run).join("log.torn");
    let before = std::fs::read(&path).unwrap();
    log.append(Event::Warned {
        text: "größer\n".into(),
    })
    .unwrap();
    drop(log);
    let whole = std::fs::read(&path).unwrap();
    for cut in before.len()..whole.len() {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let _ = std::fs::remove_file(&torn_path);
        let record = store.read(run).unwrap();
        assert_eq!(record.lines.len(), 2, "cut at {cut}");
        assert_eq!(record.notes.len(), usize::from(cut > before.len()));

        let (mut log, torn) = store.reopen_run(run, clock()).unwrap();
        assert_eq!(torn, (cut - before.len()) as u64);
        if torn > 0 {
            let aside = std::fs::read(&torn_path).unwrap();
            assert_eq!(&aside[..aside.len() - 1], &whole[before.len()..cut]);
        }
        log.append(Event::RoundFinished {
            round: 1,
            trials: None,
        })
        .unwrap();
        drop(log);
        let record = store.read(run).unwrap();
        assert!(record.notes.is_empty());
        assert_eq!(record.lines.len(), 3);
        assert_eq!(record.complete_rounds(), [1]);
    }
}

#[test]
fn a_log_without_its_first_line_is_refused() {
    let (_dir, store) = store();
    let run = "2026-11-21T1405-aaaa";
    drop(store.create_run(head(run), clock()).unwrap());
    let path = store.run_dir(run).join("log.jsonl");
    let whole = std::fs::read(&path).unwrap();
    for cut in [0, 1, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..cut]).unwrap();
        assert!(matches!(store.read(run), Err(RecordError::NoHead { .. })));
        assert!(matches!(
            store.reopen_run(run, clock()),
            Err(RecordError::NoHead { .. })
        ));
        assert!(store.runs().unwrap()[0].unreadable.is_some());
    }
}

#[test]
fn a_second_writer_is_refused() {
    let (_dir, store) = store();
    let run = "2026-11-21T1405-aaaa";
    let (log, _) = store.create_run(head(run), clock()).unwrap();
    assert!(matches!(
        store.reopen_run(run, clock()),
        Err(RecordError::Locked { .. })
    ));
    drop(log);
    store.reopen_run(run, clock()).unwrap();
    assert!(matches!(
        store.create_run(head(run), clock()),
        Err(RecordError::Exists { .. })
    ));
    // The refused attempt must not have taken the log away.
    store.read(run).unwrap();
}

#[test]
fn an_id_is_never_a_path() {
    let (_dir, store) = store();
    for run in ["", "..", "a/b", "a b", "x\n"] {
        assert!(matches!(
            store.create_run(head(run), clock()),
            Err(RecordError::BadId { .. })
        ));
    }
}

/// An older log has other names for the same things: read as this format it would be half empty.
#[test]
fn a_log_of_an_older_format_is_refused_with_advice() {
    let (_dir, store) = store();
    let run = "2026-11-21T1405-aaaa";
    drop(store.create_run(head(run), clock()).unwrap());
    let path = store.run_dir(run).join("log.jsonl");
    let whole = std::fs::read_to_string(&path).unwrap();
    let format = |number: u32| format!("\"format\":{number}");
    let old = whole.replacen(&format(FORMAT), &format(FORMAT - 1), 1);
    assert_ne!(old, whole);
    // One that parses all the same, and one with a name of version 1.
    let renamed = old.replacen("\"configurations\":", "\"treatments\":", 1);
    for text in [old, renamed] {
        std::fs::write(&path, text).unwrap();
        let error = store.read(run).unwrap_err();
        let said = error.to_string();
        let (old, new) = (FORMAT - 1, FORMAT);
        let refusal = format!("has log format {old}; this stackrace reads format {new}");
        assert!(said.ends_with(&refusal), "{said}");
        assert!(error.next().contains("measure again"), "{}", error.next());
        assert!(store.runs().unwrap()[0].unreadable.is_some());
    }
}

/// JSON has no infinity: such a line would be null and could never be read again.
#[test]
fn a_figure_that_is_no_number_is_refused_before_it_is_written() {
    let (_dir, store) = store();
    let run = "2026-11-21T1405-aaaa";
    let (mut log, _) = store.create_run(head(run), clock()).unwrap();
    let record = sample::record(&sample::small());
    let mut trial = record.trials().next().unwrap().clone();
    trial.phases[0].depth_achieved = f64::NAN;
    assert!(matches!(
        log.append(Event::Trial(Box::new(trial))),
        Err(RecordError::Unreadable { .. })
    ));
    log.append(Event::RoundFinished {
        round: 1,
        trials: None,
    })
    .unwrap();
    assert_eq!(store.read(run).unwrap().lines.len(), 2);
}

#[test]
fn runs_are_found_by_prefix_and_by_last() {
    let (_dir, store) = store();
    assert!(matches!(
        store.find("last"),
        Err(RecordError::NoRuns { .. })
    ));
    let shared = clock();
    // Two of one minute: the one that began later is the last, whatever its suffix says.
    for run in [
        "2026-11-20T0900-zzzz",
        "2026-11-21T1405-k3f9",
        "2026-11-21T1405-b0b0",
    ] {
        drop(store.create_run(head(run), shared.clone()).unwrap());
    }
    assert_eq!(store.find("last").unwrap(), "2026-11-21T1405-b0b0");
    assert_eq!(store.find("2026-11-20").unwrap(), "2026-11-20T0900-zzzz");
    assert_eq!(
        store.find("2026-11-21T1405-k").unwrap(),
        "2026-11-21T1405-k3f9"
    );
    // By what tells it from another one of its minute; no part of a word does.
    assert_eq!(store.find("b0b0").unwrap(), "2026-11-21T1405-b0b0");
    assert!(store.find("0b0").is_err());
    let error = store.find("2026-11-21").unwrap_err();
    assert!(matches!(&error, RecordError::Ambiguous { count: 2, .. }));
    assert!(error.next().contains("2026-11-21T1405-b0b0"));
    let error = store.find("2026-11-21T1405-k3f8").unwrap_err();
    let RecordError::Unknown { nearest, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(nearest[0], "2026-11-21T1405-k3f9");
    assert_eq!(store.runs().unwrap().len(), 3);
}

#[test]
fn a_run_in_virtual_time_is_the_last_where_its_log_was_written_last() {
    let (_dir, store) = store();
    let shared = clock();
    for run in ["2026-11-20T0900-zzzz", "virtual-0123"] {
        drop(store.create_run(head(run), shared.clone()).unwrap());
    }
    assert_eq!(store.find("last").unwrap(), "virtual-0123");
    // An older version noted no order: the files tell.
    std::fs::remove_file(store.dir().join("order")).unwrap();
    let log = store.run_dir("virtual-0123").join("log.jsonl");
    let log = std::fs::File::options().write(true).open(log).unwrap();
    let day = Duration::from_secs(86_400);
    let now = log.metadata().unwrap().modified().unwrap();
    log.set_modified(now - day).unwrap();
    assert_eq!(store.find("last").unwrap(), "2026-11-20T0900-zzzz");
    log.set_modified(now + day).unwrap();
    assert_eq!(store.find("last").unwrap(), "virtual-0123");
}

#[test]
fn the_first_line_of_a_log_is_read_without_the_rest() {
    let (_dir, store) = store();
    let run = "2026-11-21T1405-aaaa";
    write(&store, run);
    let path = store.run_dir(run).join("log.jsonl");
    let mut log = std::fs::File::options().append(true).open(&path).unwrap();
    log.write_all(b"\xff no line of ours").unwrap();
    let line = store.first_line(run).unwrap();
    assert!(matches!(line.event, Event::RunStarted(head) if head.run == run));
    std::fs::write(&path, "{}\n").unwrap();
    assert!(store.first_line(run).is_err());
}

#[test]
fn what_is_no_id_is_no_run_whatever_lies_there() {
    let (_dir, store) = store();
    let run = "2026-11-21T1405-aaaa";
    write(&store, run);
    let runs = StoredRuns::new(store);
    assert!(runs.holds(run));
    for other in [
        "",
        ".",
        "..",
        "2026-11-21T1405-aaa",
        "2026-11-21T1405-aaaa/",
    ] {
        assert!(!runs.holds(other), "{other:?}");
    }
}

#[test]
fn an_id_that_is_taken_is_drawn_again() {
    let (_dir, store) = store();
    let mut bits = [7, 7, 8].into_iter();
    let mut begin = || {
        let begun = store.begin_run(head("any"), &clock(), || bits.next().unwrap());
        begun.unwrap().1.head.run
    };
    let (one, other) = (begin(), begin());
    assert_ne!(one, other);
    assert!(store.has_log(&one) && store.has_log(&other));
    let none = store.begin_run(head("any"), &clock(), || 7);
    assert!(matches!(none, Err(RecordError::Exists { run }) if run == one));
}

#[test]
fn ids_sort_by_time_and_tell_two_runs_of_a_minute_apart() {
    let id = run_id("2026-11-21T14:05:59.123Z", 12_345);
    assert!(id.starts_with("2026-11-21T1405-"), "{id}");
    assert_eq!(id.len(), 20);
    assert_ne!(id, run_id("2026-11-21T14:05:59.123Z", 12_346));
    assert!(id < run_id("2026-11-21T14:06:00.000Z", 0));
}

#[test]
fn a_failed_round_is_not_complete() {
    let record = sample::with_failure();
    assert_eq!(record.complete_rounds(), [1, 2, 4, 5]);
    assert_eq!(
        record
            .trials()
            .filter(|trial| trial.ended != TrialEnded::Complete)
            .count(),
        3
    );
}

#[test]
fn the_trials_since_a_round_are_those_of_that_round_and_later() {
    let record = sample::with_failure();
    for round in 1..=6 {
        let since: Vec<u32> = record
            .trials_since(round)
            .map(|trial| trial.round)
            .collect();
        let mut expected: Vec<u32> = record.trials().map(|trial| trial.round).collect();
        expected.retain(|of| *of >= round);
        expected.reverse();
        assert_eq!(since, expected, "round {round}");
    }
}

#[test]
fn pauses_between_executions_are_not_counted() {
    let at = |at: &str, event: Event| LogLine {
        at: at.to_owned(),
        since_ns: None,
        event,
    };
    let mut record = Record::begin(at(
        "2026-11-21T14:00:00.000Z",
        Event::RunStarted(Box::new(head("x"))),
    ))
    .unwrap();
    let started = |round| Event::RoundStarted {
        round,
        order: vec![0, 1],
        orders: Vec::new(),
    };
    record.push(at("2026-11-21T14:00:10.000Z", started(1)));
    record.push(at(
        "2026-11-21T14:00:30.000Z",
        Event::RoundFinished {
            round: 1,
            trials: None,
        },
    ));
    record.push(at("2026-11-21T14:00:31.000Z", started(2)));
    record.push(at(
        "2026-11-22T09:00:00.000Z",
        Event::RunResumed {
            stackrace: "0.1.0".into(),
            rounds: 1,
        },
    ));
    record.push(at(
        "2026-11-22T09:00:25.000Z",
        Event::RoundFinished {
            round: 2,
            trials: None,
        },
    ));
    assert_eq!(record.elapsed_seconds(), 31.0 + 25.0);
    let times: Vec<f64> = record
        .round_times()
        .iter()
        .map(|time| time.seconds)
        .collect();
    assert_eq!(times, [20.0, 25.0]);
    assert!(record.ended().is_none());
}

#[test]
fn a_full_or_broken_disk_keeps_a_configuration_out_until_the_run_is_resumed() {
    let mut record = sample::record(&sample::small());
    let before = record.failures().count();
    let trial = record.trials().next().unwrap().clone();
    let push = |record: &mut Record, event| {
        let at = record.started_at().to_owned();
        record.push(LogLine {
            at,
            since_ns: None,
            event,
        });
    };
    let failed = |error: &str| {
        let mut trial = trial.clone();
        let error = error.to_owned();
        trial.ended = TrialEnded::Failed { error };
        Event::Trial(Box::new(trial))
    };
    let resumed = || Event::RunResumed {
        stackrace: String::new(),
        rounds: 0,
    };
    for error in [
        "write of /x failed: No space left on device",
        "write of /x failed: Input/output error",
        "creation of /x failed: Read-only file system",
    ] {
        push(&mut record, failed(error));
        assert_eq!(record.failures().count(), before + 1);
        push(&mut record, resumed());
        assert_eq!(record.failures().count(), before, "{error}");
    }
    push(&mut record, failed("block 7 of /x holds wrong data"));
    push(&mut record, resumed());
    assert_eq!(
        record.failures().count(),
        before + 1,
        "data are lost again in another try"
    );
}

#[test]
fn a_run_that_is_removed_leaves_nothing_and_touches_no_other() {
    let (_dir, store) = store();
    let (gone, stays) = ("2026-11-21T1405-aaaa", "2026-11-21T1406-bbbb");
    write(&store, gone);
    let lines = write(&store, stays);
    std::fs::create_dir(store.run_dir(gone).join("inside")).unwrap();
    std::fs::write(store.run_dir(gone).join("inside/rest"), "x").unwrap();
    store
        .remove_run(gone, |_| Ok::<_, RecordError>(()))
        .unwrap();
    assert_eq!(store.ids().unwrap(), [stays]);
    assert!(!store.run_dir(gone).exists());
    assert_eq!(text(&store.read(stays).unwrap().lines), text(&lines));
}

#[test]
fn a_run_that_is_written_or_still_needed_is_not_removed() {
    let (_dir, store) = store();
    let run = "2026-11-21T1405-aaaa";
    let (log, _) = store.create_run(head(run), clock()).unwrap();
    let asked = store.remove_run(run, |_| -> Result<(), RecordError> {
        panic!("asked although it is written")
    });
    assert!(
        matches!(asked, Err(RecordError::Locked { .. })),
        "{asked:?}"
    );
    drop(log);
    let refused = store.remove_run(run, |_| {
        Err(RecordError::BadId {
            run: "still needed".to_owned(),
        })
    });
    assert!(matches!(refused, Err(RecordError::BadId { .. })));
    assert!(store.read(run).is_ok());
    assert!(store.run_dir(run).join("study.toml").exists());
}

#[test]
fn pruning_takes_the_runs_whose_logs_are_oldest_and_none_that_goes_on() {
    let (_dir, store) = store();
    // Their ids sort against their age, as those of virtual time may.
    let day = Duration::from_hours(24);
    for (run, days) in [("zzz", 3), ("mmm", 2), ("aaa", 1)] {
        write(&store, run);
        let path = store.run_dir(run).join("log.jsonl");
        let log = std::fs::File::options().write(true).open(path).unwrap();
        log.set_modified(log.metadata().unwrap().modified().unwrap() - day * days)
            .unwrap();
    }
    assert_eq!(store.all_but_newest(1).unwrap(), ["zzz", "mmm"]);
    assert_eq!(store.all_but_newest(3).unwrap(), [""; 0]);
    let (_going, _) = store.reopen_run("zzz", clock()).unwrap();
    assert_eq!(store.all_but_newest(1).unwrap(), ["mmm"]);
}

#[test]
fn a_tag_names_its_run_and_keeps_it_from_being_pruned() {
    let (_dir, store) = store();
    let (old, new) = ("2026-11-21T1405-aaaa", "2026-11-21T1406-bbbb");
    write(&store, old);
    write(&store, new);
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    store
        .tag(old, &words(&["before-upgrade", "xfs"]), &[])
        .unwrap();
    assert_eq!(store.find("before-upgrade").unwrap(), old);
    assert_eq!(store.summary(old).tags, ["before-upgrade", "xfs"]);
    assert_eq!(store.all_but_newest(0).unwrap(), [new]);
    // On two runs it names neither.
    store.tag(new, &words(&["xfs"]), &[]).unwrap();
    assert!(matches!(
        store.find("xfs"),
        Err(RecordError::Ambiguous { .. })
    ));
    store.tag(old, &[], &words(&["xfs"])).unwrap();
    assert_eq!(store.find("xfs").unwrap(), new);
    for bad in ["last", "2026", "-x", "a b", "", "../x", "a\nb"] {
        let refused = store.tag(new, &words(&[bad]), &[]);
        assert!(
            matches!(refused, Err(RecordError::BadTag { .. })),
            "{bad:?}"
        );
    }
    std::fs::write(store.run_dir(new).join("tags"), "good\n\u{1b}[2J\nlast\n").unwrap();
    assert_eq!(store.summary(new).tags, ["good"]);
}
