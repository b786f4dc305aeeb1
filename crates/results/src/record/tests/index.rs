//! The index says what the logs say.

use super::super::index::{INDEX, SCHEMA};
use super::*;

/// Writes a whole made-up run and notes each of its lines.
fn noted(store: &Store, run: &str, index: &mut Index) -> Vec<LogLine> {
    let lines = write(store, run);
    for line in &lines {
        index.note(run, line).unwrap();
    }
    lines
}

#[test]
fn a_rebuilt_index_is_the_same_index() {
    let (_dir, store) = store();
    let mut index = store.index().unwrap();
    noted(&store, "2026-11-21T1405-aaaa", &mut index);
    noted(&store, "2026-11-21T1406-bbbb", &mut index);
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
        index.note(run, line).unwrap();
    }
    assert_eq!(index.dump(), once);
}

#[test]
fn others_read_the_index_while_a_run_goes_on() {
    let (_dir, store) = store();
    let mut index = store.index().unwrap();
    let run = "2026-11-21T1405-aaaa";
    let (mut log, first) = store.create_run(head(run), clock()).unwrap();
    index.note(run, &first).unwrap();
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
        index.note(run, &line).unwrap();
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
        assert!(section.contains(&format!("`{column}`")), "{table}.{column}");
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
