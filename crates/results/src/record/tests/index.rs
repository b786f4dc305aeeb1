//! The index says what the logs say.

use super::super::index::{INDEX, SCHEMA};
use super::*;

/// Writes a whole made-up run and notes each of its lines.
fn noted(store: &Store, run: &str, index: &mut Index) -> Vec<LogLine> {
    let lines = write(store, run);
    for line in &lines {
        index.note(&head(run), line).unwrap();
    }
    lines
}

#[test]
fn a_rebuilt_index_is_the_same_index() {
    let (_dir, store) = store();
    let mut index = store.index().unwrap();
    noted(&store, "2026-11-21T1405-aaaa", &mut index);
    noted(&store, "2026-11-21T1406-bbbb", &mut index);
    // A list enters the summaries.
    store.runs().unwrap();
    let noted = index.dump();
    assert!(noted.len() > 300, "{}", noted.len());
    drop(index);
    assert_eq!(store.reindex().unwrap().dump(), noted);
    // Deleted, damaged, of an older schema: made again, the same.
    let path = store.dir().join(INDEX);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(store.index().unwrap().dump(), noted);
    std::fs::write(&path, "this is no database, this is a sentence").unwrap();
    assert_eq!(store.index().unwrap().dump(), noted);
    rusqlite::Connection::open(&path)
        .unwrap()
        .pragma_update(None, "user_version", 0)
        .unwrap();
    assert_eq!(store.index().unwrap().dump(), noted);
    // Tables of the first schema that have other names now do not stay behind.
    let old = rusqlite::Connection::open(&path).unwrap();
    old.execute_batch("CREATE TABLE looks (run TEXT REFERENCES runs); PRAGMA user_version = 1")
        .unwrap();
    drop(old);
    assert_eq!(store.index().unwrap().dump(), noted);
    let anew = rusqlite::Connection::open(&path).unwrap();
    assert!(anew.prepare("SELECT * FROM looks").is_err());
    drop(anew);
    // A newer one is left alone.
    rusqlite::Connection::open(&path)
        .unwrap()
        .pragma_update(None, "user_version", SCHEMA + 1)
        .unwrap();
    assert!(matches!(store.index(), Err(RecordError::Index { .. })));
}

#[test]
fn noting_twice_changes_nothing() {
    let (_dir, store) = store();
    let mut index = store.index().unwrap();
    let run = "2026-11-21T1405-aaaa";
    let lines = noted(&store, run, &mut index);
    let once = index.dump();
    for line in &lines {
        index.note(&head(run), line).unwrap();
    }
    assert_eq!(index.dump(), once);
}

#[test]
fn others_read_the_index_while_a_run_goes_on() {
    let (_dir, store) = store();
    let mut index = store.index().unwrap();
    let run = "2026-11-21T1405-aaaa";
    let (mut log, first) = store.create_run(head(run), clock()).unwrap();
    index.note(&head(run), &first).unwrap();
    let reader = rusqlite::Connection::open_with_flags(
        store.dir().join(INDEX),
        rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY,
    )
    .unwrap();
    let count = || -> i64 {
        reader
            .query_row(
                "SELECT count(*) FROM results WHERE configuration_name = 'xfs' AND metric = 'throughput'",
                [],
                |row| row.get(0),
            )
            .unwrap()
    };
    let record = sample::record(&sample::small());
    let mut expected = 0;
    for trial in record.trials().take(8) {
        // A reader in the middle of its work must not stop the writer.
        reader.execute_batch("BEGIN; SELECT * FROM runs").unwrap();
        let line = log.append(Event::Trial(Box::new(trial.clone()))).unwrap();
        index.note(&head(run), &line).unwrap();
        reader.execute_batch("COMMIT").unwrap();
        expected += i64::from(trial.configuration == 1);
        assert_eq!(count(), expected);
    }
    assert!(expected > 0);
}

/// The page and the schema are written by hand, twice: this keeps them one.
#[test]
fn every_table_and_column_is_documented() {
    let page = include_str!("../../../../../docs/formats/index.md");
    let (_dir, store) = store();
    drop(store.index().unwrap());
    let connection = rusqlite::Connection::open(store.dir().join(INDEX)).unwrap();
    let mut statement = connection
        .prepare(
            "SELECT m.name, m.type, c.name FROM sqlite_schema m, pragma_table_info(m.name) c
             WHERE m.type IN ('table', 'view')",
        )
        .unwrap();
    let columns: Vec<(String, String)> = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(2)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert!(columns.len() > 100);
    for (table, column) in columns {
        let section = page
            .split(&format!("## `{table}`"))
            .nth(1)
            .unwrap_or_else(|| panic!("no section on {table}"));
        let section = section.split("\n## ").next().unwrap();
        // The page says once that every table begins with the run.
        let is_said = column == "run" || section.contains(&format!("`{column}`"));
        assert!(is_said, "{table}.{column}");
    }
    assert!(page.contains(&format!("Schema version {SCHEMA} ")));
}

#[test]
fn a_removed_run_is_in_no_table() {
    let (_dir, store) = store();
    let mut index = store.index().unwrap();
    let (gone, stays) = ("2026-11-21T1405-aaaa", "2026-11-21T1406-bbbb");
    noted(&store, stays, &mut index);
    let without = index.dump();
    noted(&store, gone, &mut index);
    assert_ne!(index.dump(), without);
    store
        .remove_run(gone, |_| Ok::<_, RecordError>(()))
        .unwrap();
    assert_eq!(index.dump(), without);
}

/// Titles of all runs, as a list shows them.
fn titles(store: &Store) -> Vec<String> {
    let runs = store.runs().unwrap();
    runs.iter().map(|run| run.title.clone()).collect()
}

/// Changes the titles that the index keeps for lists, and nothing else.
fn retitle(store: &Store) {
    let index = rusqlite::Connection::open(store.dir().join(INDEX)).unwrap();
    let retitled = "UPDATE listed SET summary = json_set(summary, '$.title', 'of the index')";
    index.execute(retitled, []).unwrap();
}

#[test]
fn a_list_reads_only_the_logs_that_changed_since_the_last_one() {
    let (_dir, store) = store();
    let (first, second) = ("2026-11-21T1405-aaaa", "2026-11-21T1406-bbbb");
    write(&store, first);
    let title = titles(&store).remove(0);
    retitle(&store);
    assert_eq!(titles(&store), ["of the index"]);
    // One more run, a tag: the others are still not read.
    write(&store, second);
    store.tag(first, &["kept".to_owned()], &[]).unwrap();
    assert_eq!(titles(&store), ["of the index", &*title]);
    assert_eq!(store.runs().unwrap()[0].tags, ["kept"]);
    // A log that was written, and one that was exchanged for another of the same length and time.
    let (mut log, _) = store.reopen_run(first, clock()).unwrap();
    log.append(Event::RoundFinished {
        round: 6,
        trials: None,
    })
    .unwrap();
    drop(log);
    retitle(&store);
    assert_eq!(titles(&store), [&*title, "of the index"]);
    let path = store.run_dir(second).join("log.jsonl");
    let before = std::fs::metadata(&path).unwrap().modified().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, bytes).unwrap();
    let log = std::fs::File::options().write(true).open(&path).unwrap();
    log.set_modified(before).unwrap();
    assert_eq!(titles(&store), [&*title, &*title]);
}

#[test]
fn a_run_that_is_written_is_read_at_each_list() {
    let (_dir, store) = store();
    let (log, _) = store
        .create_run(head("2026-11-21T1405-aaaa"), clock())
        .unwrap();
    let title = titles(&store).remove(0);
    retitle(&store);
    assert_eq!(titles(&store), [&*title]);
    drop(log);
}

#[test]
fn a_list_heals_the_index_whatever_happened_to_it_or_to_the_runs() {
    let (_dir, store) = store();
    let (first, second, third) = (
        "2026-11-21T1405-aaaa",
        "2026-11-21T1406-bbbb",
        "2026-11-21T1407-cccc",
    );
    write(&store, first);
    write(&store, second);
    drop(store.index().unwrap());
    let path = store.dir().join(INDEX);
    let healed = |what: &str| {
        let listed = store.runs().unwrap();
        assert!(listed.iter().all(|run| run.unreadable.is_none()), "{what}");
        assert_eq!(listed.len(), store.ids().unwrap().len(), "{what}");
        let dump = store.index().unwrap().dump();
        assert_eq!(store.reindex().unwrap().dump(), dump, "{what}");
    };
    healed("nothing happened");
    std::fs::remove_dir_all(store.run_dir(first)).unwrap();
    healed("a run was removed by hand");
    write(&store, third);
    healed("a run came from elsewhere");
    let log = store.run_dir(third).join("log.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    let shorter: Vec<&str> = text.lines().take(20).collect();
    std::fs::write(&log, shorter.join("\n") + "\n").unwrap();
    healed("a log is shorter now");
    let sql = |text: &str| {
        let index = rusqlite::Connection::open(&path).unwrap();
        index.execute_batch(text).unwrap();
    };
    sql("UPDATE listed SET summary = 'no JSON'");
    healed("a summary is damaged");
    sql("DROP TABLE listed");
    healed("a table is missing");
    sql("DROP TABLE listed; PRAGMA user_version = 2");
    healed("an older program made it");
    std::fs::write(&path, "this is no database, this is a sentence").unwrap();
    healed("it is no database");
    let mut bytes = std::fs::read(&path).unwrap();
    let whole = bytes.len();
    bytes[4096..].fill(0xa5);
    std::fs::write(&path, &bytes).unwrap();
    healed("its pages are damaged");
    std::fs::write(&path, &bytes[..whole / 2]).unwrap();
    healed("it was cut off");
}

#[test]
fn runs_are_listed_where_the_index_cannot_be_used() {
    let (_dir, store) = store();
    write(&store, "2026-11-21T1405-aaaa");
    let title = titles(&store).remove(0);
    let path = store.dir().join(INDEX);
    let newer = rusqlite::Connection::open(&path).unwrap();
    newer
        .pragma_update(None, "user_version", SCHEMA + 1)
        .unwrap();
    drop(newer);
    let before = std::fs::read(&path).unwrap();
    assert_eq!(titles(&store), [&*title]);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    // Another process writes: who lists does not wait for it.
    let writer = rusqlite::Connection::open(&path).unwrap();
    writer.pragma_update(None, "user_version", SCHEMA).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    write(&store, "2026-11-21T1406-bbbb");
    assert_eq!(titles(&store), [&*title, &*title]);
}
