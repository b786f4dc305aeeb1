//! Every table in every form: the same cells, the columns that are documented.

use super::*;
use stackrace_results::record::Record;
use stackrace_results::record::{sample, sample_cuts};
use stackrace_results::tables::ColumnValues;

#[cfg(feature = "parquet")]
mod forms;

/// Made-up runs, each with an id of its own.
fn records() -> Vec<Record> {
    let mut records = vec![
        sample::record(&sample::small()),
        sample::record(&sample::sweep()),
        sample::with_failure(),
        sample::without_rounds(),
        sample::record(&sample::hostile()),
        sample_cuts::with_cuts(),
    ];
    for (at, record) in records.iter_mut().enumerate() {
        record.head.run = format!("run-{at}");
    }
    records
}

/// Columns of a section of the documentation: name and kind.
fn documented(heading: &str) -> Vec<(String, String)> {
    let text = include_str!("../../../../docs/formats/export.md");
    let (_, section) = text.split_once(&format!("\n## {heading}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    section
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split('|');
            let name = cells.next()?.trim().trim_matches('`').to_owned();
            Some((name, cells.next()?.trim().to_owned()))
        })
        .collect()
}

#[test]
fn columns_are_those_of_the_documentation() {
    let names: Vec<&str> = ALL.iter().map(|kind| kind.name).collect();
    assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
    for kind in ALL {
        let table = (kind.of)(&records());
        let found: Vec<(String, String)> = table
            .columns
            .iter()
            .filter(|column| !column.name.starts_with("level_"))
            .map(|column| (column.name.clone(), column.values.kind().to_owned()))
            .collect();
        let mut expected = documented(&format!("`{}`", kind.name));
        if found.iter().any(|(name, _)| name == "trial") {
            expected.splice(0..0, documented("Columns of every table of trials"));
        }
        assert_eq!(found, expected, "{}", kind.name);
    }
}

#[test]
fn no_table_has_a_name_twice_or_a_column_of_another_length() {
    for kind in ALL {
        let table = (kind.of)(&records());
        let mut names: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{}", kind.name);
        assert!(table.rows() > 0, "{}: nothing to look at", kind.name);
        for column in &table.columns {
            let rows = match &column.values {
                ColumnValues::Text(values) => {
                    assert!(values.iter().flatten().all(|text| !text.is_empty()));
                    values.len()
                }
                ColumnValues::Whole(values) => values.len(),
                ColumnValues::Real(values) => {
                    assert!(values.iter().flatten().all(|value| value.is_finite()));
                    values.len()
                }
                ColumnValues::Time(values) => values.len(),
                ColumnValues::Flag(values) => values.len(),
            };
            assert_eq!(rows, table.rows(), "{}: {}", kind.name, column.name);
        }
    }
}

/// A run without a factor has no level of it; one with it has one in every row.
#[test]
fn runs_of_different_studies_fit_one_table() {
    let records = records();
    let table = (trials::OBSERVATIONS.of)(&records);
    let expected: usize = records
        .iter()
        .flat_map(Record::trials)
        .map(|trial| trial.metrics.len())
        .sum();
    assert_eq!(table.rows(), expected);
    let text = |name: &str| {
        let column = table.columns.iter().find(|column| column.name == name);
        match &column.unwrap().values {
            ColumnValues::Text(values) => values.clone(),
            other => panic!("{other:?}"),
        }
    };
    let runs = text("run");
    let mut gaps = 0;
    for name in records.iter().flat_map(|record| &record.head.factors) {
        for (run, level) in runs.iter().zip(text(&format!("level_{name}"))) {
            let record = records.iter().find(|r| Some(&r.head.run) == run.as_ref());
            assert_eq!(level.is_some(), record.unwrap().head.factors.contains(name));
            gaps += usize::from(level.is_none());
        }
    }
    assert!(gaps > 0, "all runs have the same factors");
}
