//! What a run that goes on trusts: the format, the number of lines, and the causes of failures.

use super::*;
use stackrace_base::event::{FailureCause, Observation};

/// A log of one round of two trials, of which one may be missing.
fn round_of_two(left_out: Option<usize>, format: u32) -> Vec<u8> {
    let mut head = head("x");
    head.format = format;
    let line = |event| LogLine {
        at: "2026-11-21T14:00:00.000Z".to_owned(),
        since_ns: None,
        event,
    };
    let mut lines = vec![line(Event::RunStarted(Box::new(head)))];
    for configuration in 0..2 {
        let trial = Observation {
            configuration,
            ..Observation::unmeasured(TrialEnded::Complete)
        };
        if left_out != Some(configuration) {
            lines.push(line(Event::Trial(Box::new(trial))));
        }
    }
    let trials = Some(2);
    lines.push(line(Event::RoundFinished { round: 1, trials }));
    let text = lines
        .iter()
        .map(|line| serde_json::to_string(line).unwrap() + "\n");
    text.collect::<String>().into_bytes()
}

#[test]
fn a_trial_that_was_taken_out_of_a_log_is_noticed_and_said() {
    let notes = |left_out| {
        let log = round_of_two(left_out, FORMAT);
        Record::parse(&log, Path::new("log.jsonl")).unwrap().notes
    };
    assert_eq!(notes(None), [""; 0]);
    let said = notes(Some(1));
    assert!(
        said.len() == 1 && said[0].starts_with("round 1 ended with 2 trials, and the log has 1:"),
        "{said:?}"
    );
    // Of older logs nothing is known, and nothing is said.
    let log = String::from_utf8(round_of_two(Some(1), FORMAT)).unwrap();
    let log = log.replace(",\"trials\":2", "");
    let record = Record::parse(log.as_bytes(), Path::new("log.jsonl")).unwrap();
    assert_eq!(record.notes, [""; 0]);
}

#[test]
fn a_log_of_a_newer_format_is_read_and_never_added_to() {
    let base = tempfile::tempdir().unwrap();
    let store = Store::open(base.path()).unwrap();
    drop(store.create_run(head("x"), clock()).unwrap());
    let path = store.run_dir("x").join("log.jsonl");
    let newer = round_of_two(None, 99);
    std::fs::write(&path, &newer).unwrap();
    let error = store.reopen_run("x", clock()).unwrap_err();
    assert!(
        matches!(error, RecordError::NewerFormat { format: 99, .. }),
        "{error}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), newer);
    assert_eq!(store.read("x").unwrap().trials().count(), 2);
}

/// What is known of a failure, and whether `resume` measures it, and its round, again.
#[test]
fn a_round_whose_failure_can_be_mended_is_measured_again_after_a_resume() {
    let command = |status| FailureCause::Command {
        command: "mount /dev/sdx /mnt".to_owned(),
        status,
    };
    for (cause, error, again) in [
        (Some(FailureCause::Errno(28)), "whatever the words", true),
        (Some(FailureCause::Errno(2)), "a directory was away", true),
        (
            Some(FailureCause::Errno(22)),
            "an option that is refused",
            false,
        ),
        (Some(command(Some(32))), "mount failed", true),
        (None, "the data read are not those written", false),
        (None, "write failed: No space left on device", true),
    ] {
        let line = |event| LogLine {
            at: "2026-11-21T14:00:00.000Z".to_owned(),
            since_ns: None,
            event,
        };
        let mut record = Record::begin(line(Event::RunStarted(Box::new(head("x"))))).unwrap();
        let finished = |round| Event::RoundFinished {
            round,
            trials: None,
        };
        let failed = Observation {
            round: 2,
            cause: cause.clone(),
            ..Observation::unmeasured(TrialEnded::Failed {
                error: error.to_owned(),
            })
        };
        record.push(line(finished(1)));
        record.push(line(Event::Trial(Box::new(failed))));
        record.push(line(finished(2)));
        record.push(line(finished(3)));
        assert_eq!(
            (record.complete_rounds().len(), record.next_round()),
            (3, 4)
        );
        record.push(line(Event::RunResumed {
            stackrace: "0.1.0".to_owned(),
            rounds: 3,
        }));
        let next = match again {
            true => (vec![1, 3], 2, 0),
            false => (vec![1, 2, 3], 4, 1),
        };
        let is = |record: &Record| {
            let failures = record.failures().count();
            (record.complete_rounds(), record.next_round(), failures)
        };
        assert_eq!(is(&record), next, "{error}");
        record.push(line(finished(2)));
        assert_eq!(record.next_round(), 4, "{error}");
    }
}
