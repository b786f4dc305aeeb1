//! Lines of a log that cannot be read.

use super::*;

/// In plain words: those of the reader (`missing field`, `column`) are of no help.
#[test]
fn a_line_that_cannot_be_read_is_told_with_its_file_its_number_and_what_to_do() {
    let (_dir, store) = store();
    let run = "2026-11-21T1405-aaaa";
    drop(store.create_run(head(run), clock()).unwrap());
    let path = store.run_dir(run).join("log.jsonl");
    let whole = std::fs::read_to_string(&path).unwrap();
    let written = |text: &str| std::fs::write(&path, text).unwrap();
    let place = format!("line 2 of {} does not count: ", path.display());
    for (line, why) in [
        (
            "{\"at\":\"x\",\"event\":\"trial\"}",
            "it is an event \"trial\", but a part",
        ),
        (
            "{\"at\":\"x\",\"event\":\"tea\"}",
            "it is an event \"tea\", which",
        ),
        ("{\"jobs\":[]}", "it is JSON, but no event of a run"),
        ("tea", "it is no JSON"),
        ("", "it is empty"),
    ] {
        // A line that is cut off at the end is told otherwise: its writer was killed.
        written(&format!(
            "{whole}{line}\n{{\"at\":\"x\",\"event\":\"warned\",\"text\":\"y\"}}\n"
        ));
        let notes = store.read(run).unwrap().notes;
        assert!(notes[0].starts_with(&format!("{place}{why}")), "{notes:?}");
        assert!(notes[0].contains("; "), "advice: {notes:?}");
        written(&format!("{line}\n{whole}"));
        let refused = store.read(run).unwrap_err();
        let said = format!("line 1 of {} does not begin a run: {why}", path.display());
        assert!(refused.to_string().starts_with(&said), "{refused}");
        assert!(refused.next().contains("rm -r "), "{}", refused.next());
        for text in [refused.to_string(), notes[0].clone()] {
            assert!(
                !text.contains("column") && !text.contains("field"),
                "{text}"
            );
        }
    }
}

#[test]
fn unknown_events_and_newer_formats_are_skipped_with_a_note() {
    let (_dir, store) = store();
    let run = "2026-11-21T1405-aaaa";
    drop(store.create_run(head(run), clock()).unwrap());
    let path = store.run_dir(run).join("log.jsonl");
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap();
    file.write_all(b"{\"at\":\"2026-11-21T14:05:00.000Z\",\"event\":\"teleported\",\"to\":3}\n")
        .unwrap();
    file.write_all(
        b"{\"at\":\"2026-11-21T14:05:00.000Z\",\"event\":\"round-started\"}\n\xff\xfe\n",
    )
    .unwrap();
    // A line as older versions wrote it.
    file.write_all(
        b"{\"at\":\"2026-11-21T14:05:01.000Z\",\"event\":\"round-finished\",\"round\":1}\n",
    )
    .unwrap();
    let record = store.read(run).unwrap();
    assert_eq!(record.lines.len(), 2);
    assert_eq!(record.lines[1].since_ns, None);
    assert_eq!(record.notes.len(), 3, "{:?}", record.notes);
    assert!(record.notes[0].contains("line 2") && record.notes[0].contains("teleported"));
    assert!(record.notes[1].contains("round-started"));
    assert!(record.notes[2].contains("no JSON"));
    // Reopening keeps what it does not know.
    drop(store.reopen_run(run, clock()).unwrap());
    let kept = std::fs::read(&path).unwrap();
    assert!(kept.windows(10).any(|part| part == b"teleported"));

    let format = |number: u32| format!("\"format\":{number}");
    let kept = String::from_utf8_lossy(&kept);
    let newer = kept.replacen(&format(FORMAT), &format(FORMAT + 1), 1);
    let record = Record::parse(newer.as_bytes(), Path::new("log.jsonl")).unwrap();
    let named = format!("format {}", FORMAT + 1);
    assert!(record.notes[0].contains(&named));
    let stranger = b"{\"at\":\"x\",\"event\":\"run-started\",\"format\":9}\n";
    let error = Record::parse(stranger, Path::new("log.jsonl")).unwrap_err();
    assert!(error.to_string().contains("log format 9"), "{error}");
    assert!(error.next().contains("newer"), "{}", error.next());
}

#[test]
fn a_file_without_one_line_of_json_is_told_to_be_none_and_not_to_be_empty() {
    let said = |text: &str| {
        let read = Record::parse(text.as_bytes(), Path::new("a"));
        read.unwrap_err().to_string()
    };
    assert!(said("some words\n").contains("it is no JSON"));
    assert!(said("{\"at\":").contains("it is no JSON"));
    assert!(said("").contains("it is empty"));
}
