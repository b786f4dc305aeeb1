//! Exported tables as pandas and DuckDB read them: the same rows, sums and types from every form.
//!
//! The Python is that of `STACKRACE_PYTHON`, else `python3`; `.ci/run` makes one that has both.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::process::Command;

use crate::support::Ground;
use serde_json::Value;
use stackrace_test_needs as needs;

/// Two studies whose factors differ, small enough for any machine.
const STUDIES: [&str; 2] = [
    study!(
        "Synchronous, or not",
        "fsync = [true, false]",
        [r#"dir = { path = "data" }"#],
        [
            r#"name = "small, \"files\""
files = { count = 20, directories = 1, fsync = "{fsync}" }"#,
            r#"random = { mode = "read", size = "1 MiB", block-size = "4 KiB", time = "0.2 s" }"#
        ],
        3
    ),
    study!(
        "How large, and how often",
        r#"block-size = ["4 KiB", "16 KiB"]"#,
        [r#"dir = { path = "data" }"#],
        [
            r#"random = { mode = "write", size = "1 MiB", block-size = "{block-size}", time = "0.2 s" }"#
        ],
        3
    ),
];

/// Skips the test where the program was built without Parquet.
fn needs_parquet() {
    if !cfg!(feature = "parquet") {
        needs::skip("built without Parquet");
    }
}

const FORMS: [&str; 3] = ["csv", "json", "parquet"];

fn ran() -> Ground {
    let ground = Ground::new();
    ground.make_dir("data");
    for (at, study) in STUDIES.iter().enumerate() {
        let name = format!("study-{at}.toml");
        ground.write(&name, study);
        ground.stackrace(&["run", &name, "--quiet"]).ended(0);
    }
    ground
}

/// Ids of all runs, as `stackrace runs` lists them.
fn ids(ground: &Ground) -> Vec<String> {
    let said = ground.stackrace(&["runs"]);
    let lines = said
        .ended(0)
        .out
        .lines()
        .filter(|line| line.starts_with("2"));
    lines
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .collect()
}

/// What the script says of these directories. Skips the test if Python or a library is missing.
#[expect(clippy::disallowed_methods, reason = "pandas and DuckDB are processes")]
fn readers(ground: &Ground) -> Value {
    let python = std::env::var("STACKRACE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let output = Command::new(&python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/export.py"))
        .arg(ground.path().join("tables"))
        .output();
    let Ok(output) = output else {
        needs::skip(format!("needs {python}"));
    };
    let err = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) {
        needs::skip(format!("{python}: {}", err.trim()));
    }
    assert!(output.status.success(), "{err}");
    serde_json::from_slice::<Value>(&output.stdout).unwrap()["tables"].take()
}

fn pandas_and_duckdb_read_the_same_from_every_form() {
    needs_parquet();
    let ground = ran();
    let ids = ids(&ground);
    assert_eq!(ids.len(), 2);
    ground.make_dir("tables");
    for form in FORMS {
        let mut words = vec!["export", "--table", "all", "--format", form, "-o", "tables"];
        words.extend(ids.iter().map(String::as_str));
        ground.stackrace(&words).ended(0).err_has("observations");
    }
    let found = readers(&ground);
    let tables = found.as_object().unwrap();
    assert_eq!(tables.len(), 11, "{:?}", tables.keys());
    for (name, forms) in tables {
        let truth = &forms["parquet"]["duckdb"];
        for form in FORMS {
            for reader in ["pandas", "duckdb"] {
                let read = &forms[form][reader];
                let place = format!("{name}.{form} by {reader}");
                assert_eq!(read["rows"], truth["rows"], "{place}");
                if form == "json" && truth["rows"] == 0 {
                    // An array of no objects names no columns.
                    continue;
                }
                let named = |table: &Value| -> Vec<String> {
                    table["types"]
                        .as_object()
                        .unwrap()
                        .keys()
                        .cloned()
                        .collect()
                };
                assert_eq!(named(read), named(truth), "{place}");
                for (column, sum) in truth["sums"].as_object().unwrap() {
                    // A column that is nowhere filled has no type but in Parquet.
                    let there = read["sums"][column].as_f64().unwrap_or(0.0);
                    let sum = sum.as_f64().unwrap();
                    let near = (there - sum).abs() <= sum.abs() * 1e-9;
                    assert!(near, "{place}: {column}: {there}, not {sum}");
                }
            }
        }
    }
    types(&tables["observations"]);
    let rows = tables["observations"]["csv"]["pandas"]["rows"].as_u64();
    let printed = ground.stackrace(&["export", &ids[0], "-f", "json"]);
    let one: Value = serde_json::from_str(&printed.ended(0).out).unwrap();
    let printed = ground.stackrace(&["export", &ids[1], "-f", "json"]);
    let other: Value = serde_json::from_str(&printed.ended(0).out).unwrap();
    let both = one.as_array().unwrap().len() + other.as_array().unwrap().len();
    assert_eq!(rows, Some(both as u64));
}

/// The types each reader gives the columns that matter.
fn types(observations: &Value) {
    let expected = [
        ("csv", "pandas", "round", "int64"),
        ("csv", "pandas", "value", "float64"),
        ("csv", "pandas", "primary", "bool"),
        ("csv", "duckdb", "round", "BIGINT"),
        ("csv", "duckdb", "value", "DOUBLE"),
        ("csv", "duckdb", "primary", "BOOLEAN"),
        ("csv", "duckdb", "started_at", "TIMESTAMP WITH TIME ZONE"),
        ("json", "pandas", "round", "int64"),
        ("json", "pandas", "value", "float64"),
        ("json", "pandas", "primary", "bool"),
        ("json", "duckdb", "round", "BIGINT"),
        ("json", "duckdb", "value", "DOUBLE"),
        ("json", "duckdb", "primary", "BOOLEAN"),
        ("parquet", "pandas", "round", "int64"),
        ("parquet", "pandas", "value", "float64"),
        ("parquet", "pandas", "started_at", "datetime64[us, UTC]"),
        ("parquet", "duckdb", "round", "BIGINT"),
        ("parquet", "duckdb", "value", "DOUBLE"),
        ("parquet", "duckdb", "primary", "BOOLEAN"),
        (
            "parquet",
            "duckdb",
            "started_at",
            "TIMESTAMP WITH TIME ZONE",
        ),
        ("parquet", "duckdb", "level_fsync", "VARCHAR"),
        ("parquet", "duckdb", "level_block-size", "VARCHAR"),
    ];
    for (form, reader, column, kind) in expected {
        let found = &observations[form][reader]["types"][column];
        assert_eq!(found, kind, "{form}, {reader}: {column}");
    }
}

fn what_cannot_be_written_is_refused() {
    let ground = Ground::new();
    ground.make_dir("data");
    ground.write("study.toml", STUDIES[1]);
    ground.stackrace(&["run", "study.toml", "--quiet"]).ended(0);
    let said = ground.stackrace(&["export", "--table", "trails"]);
    said.ended(2)
        .err_has("there is no table \"trails\"")
        .err_has("did you mean \"trials\"?");
    let said = ground.stackrace(&["export", "--format", "parqet"]);
    said.ended(2).err_has("did you mean \"parquet\"?");
    let said = ground.stackrace(&["export", "--table", "all", "-o", "all.csv"]);
    said.ended(2).err_has("name a directory");
    let said = ground.stackrace(&["export", "--table", "all", "-o", "new/tables"]);
    said.ended(0).err_has("new/tables/trials.csv");
    assert!(ground.path().join("new/tables/trials.csv").is_file());
    let said = ground.stackrace(&["export", "-o", "o.xlsx"]);
    said.ended(2).err_has("there is no format \"xlsx\"");
    assert!(!ground.path().join("o.xlsx").exists());
    let said = ground.stackrace(&["export", "-o", "missing/o.csv"]);
    said.ended(3).err_has("cannot write missing/o.csv");
    parquet(&ground);
}

#[cfg(feature = "parquet")]
fn parquet(ground: &Ground) {
    let said = ground.stackrace(&["export", "-o", "o.parquet"]);
    said.ended(0).err_has("rows  o.parquet");
    let file = std::fs::read(ground.path().join("o.parquet")).unwrap();
    assert_eq!(
        (&file[..4], &file[file.len() - 4..]),
        (&b"PAR1"[..], &b"PAR1"[..])
    );
}

#[cfg(not(feature = "parquet"))]
fn parquet(ground: &Ground) {
    let said = ground.stackrace(&["export", "-o", "o.parquet"]);
    said.ended(1).err_has("built without Parquet");
}

/// The rows of a table in JSON.
fn table(ground: &Ground, words: &[&str]) -> Vec<Value> {
    let said = ground.stackrace(words);
    serde_json::from_str(&said.ended(0).out).unwrap()
}

/// The rows of the sheet of a report, each by the names of its columns.
fn sheet(ground: &Ground, run: &str) -> Vec<Value> {
    let said = ground.stackrace(&["report", run, "--format", "csv"]);
    let text = &said.ended(0).out;
    let mut lines = text.lines().map(cells);
    let names = lines.next().unwrap();
    let row = |cells: Vec<String>| {
        names
            .iter()
            .cloned()
            .zip(cells.into_iter().map(Value::from))
    };
    lines.map(|cells| row(cells).collect()).collect()
}

/// The cells of a line of CSV; no cell of these studies holds a line break.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            letter => cells.last_mut().unwrap().push(letter),
        }
    }
    cells
}

/// Columns that only the sheet has: what the audit says, and counters of the first device, which
/// exported tables have for each device.
const OF_THE_SHEET: [&str; 7] = [
    "device",
    "device_read_bytes",
    "device_written_bytes",
    "device_read_requests",
    "device_write_requests",
    "limited_by",
    "remarks",
];

/// The same name is the same thing, and the same thing has the same name: in the sheet, in exported
/// tables, and in the events, which are the lines of the log.
fn columns_have_one_name_in_every_form() {
    let ground = ran();
    let mut compared = 0;
    for run in ids(&ground) {
        let export = |name: &str| {
            table(
                &ground,
                &["export", &run, "--format", "json", "--table", name],
            )
        };
        let (observations, trials) = (export("observations"), export("trials"));
        let sheet = sheet(&ground, &run);
        assert_eq!(sheet.len(), observations.len());
        for (row, observation) in sheet.iter().zip(&observations) {
            let trial = trials
                .iter()
                .find(|trial| trial["trial"] == observation["trial"])
                .unwrap();
            compared += compare(row, observation, trial);
        }
        names_in_the_log(&ground, &run, &trials);
    }
    assert!(compared > 200, "{compared}");
}

/// Compares a row of the sheet with what exported tables have of it; how many cells there were.
#[track_caller]
fn compare(row: &Value, observation: &Value, trial: &Value) -> usize {
    let mut compared = 0;
    for (name, cell) in row.as_object().unwrap() {
        let cell = cell.as_str().unwrap();
        let same = |name: &str| observation.get(name).or(trial.get(name));
        let (there, unit) = match name.strip_suffix("_s") {
            Some(name) => (same(&format!("{name}_ns")), 1e9),
            None => (same(name), 1.0),
        };
        let Some(there) = there else {
            let own = OF_THE_SHEET.contains(&name.as_str());
            assert!(own, "only the sheet has {name}");
            continue;
        };
        compared += 1;
        match there {
            Value::Null => assert_eq!(cell, "", "{name}"),
            Value::Number(number) => {
                let here = cell.parse::<f64>().unwrap();
                let there = number.as_f64().unwrap() / unit;
                let near = (here - there).abs() <= there.abs() * 1e-9;
                assert!(near, "{name}: {here} {there}");
            }
            // A table has microseconds, where the log has milliseconds.
            Value::String(there) if name == "started_at" => {
                let cell = cell.trim_end_matches('Z');
                assert!(
                    !cell.is_empty() && there.starts_with(cell),
                    "{cell} {there}"
                );
            }
            // Quotes within a cell are written twice, which `cells` leaves out.
            there => assert_eq!(cell, there.as_str().unwrap().replace('"', ""), "{name}"),
        }
    }
    compared
}

/// The event of a trial, and what it holds, has the names of the table's columns, as the log and
/// `--events` have them.
#[track_caller]
fn names_in_the_log(ground: &Ground, run: &str, trials: &[Value]) {
    let log = ground.store().join("runs").join(run).join("log.jsonl");
    let log = std::fs::read_to_string(log).unwrap();
    let mut lines = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let event = lines.find(|line| line["event"] == "trial").unwrap();
    let mut names = std::collections::BTreeSet::new();
    named(&event, &mut names);
    for name in trials[0].as_object().unwrap().keys() {
        // Which trial it is, is the line's place; names of the study are in the head.
        let elsewhere = ["run", "study", "title", "trial", "kind", "error"];
        let measured = trials.iter().any(|trial| !trial[name].is_null());
        let ours = name.starts_with("level_") || name.starts_with("precondition_");
        assert!(
            names.contains(name) || elsewhere.contains(&name.as_str()) || ours || !measured,
            "the log does not have {name}"
        );
    }
}

/// All names of fields in a value, at any depth.
fn named(value: &Value, names: &mut std::collections::BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                names.insert(name.clone());
                named(value, names);
            }
        }
        Value::Array(all) => all.iter().for_each(|value| named(value, names)),
        _ => {}
    }
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![
        pandas_and_duckdb_read_the_same_from_every_form,
        what_cannot_be_written_is_refused,
        columns_have_one_name_in_every_form,
    ]
}
