//! The importer of bonnie++: tables and CSV of 1.03, 1.96, 1.97 and 2.00 become results.

use super::parse::parse;
use super::report::{BonnieFiles, BonnieLayout, BonnieReport, Made, metrics, notes, values};
use stackrace_base::event::Fact;
use stackrace_base::printed::text::end;
use stackrace_base::printed::{ImportError, Imported, Importer};

pub(super) const IMPORTER: Importer = Importer {
    name: "bonnie++",
    summary: "the tables or the CSV of bonnie++ 1.03, 1.96, 1.97 or 2.00",
    recognises,
    read,
};

fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let reports = parse(text)?;
    let results: Vec<Imported> = reports.iter().map(imported).collect();
    // A table without figures is only its head.
    let figures = |result: &Imported| result.values.iter().any(Option::is_some);
    // A note besides "left out" says why figures are missing: such a report is whole without any.
    let too_fast =
        |report: &BonnieReport| notes(report).len() > usize::from(report.left_out.is_some());
    if !reports
        .iter()
        .zip(&results)
        .all(|(report, it)| figures(it) || too_fast(report))
    {
        return Err(end(text, "the figures of a report of bonnie++"));
    }
    Ok(results)
}

/// A CSV line of the oldest version has so many commas.
const COMMAS_MIN: usize = 26;

/// Its CSV has no word of its own: a line of so many fields is taken for one if it can be read.
fn recognises(text: &str) -> bool {
    let banner = |line: &str| {
        line.contains("------Sequential Output------")
            || line.contains("------Sequential Create------")
    };
    let fields = |line: &str| line.matches(',').count() >= COMMAS_MIN;
    // In this order: `parse` reads the whole text, and only some texts have so many commas.
    text.lines().any(banner) || text.lines().any(fields) && parse(text).is_ok()
}

fn imported(report: &BonnieReport) -> Imported {
    let version = match report.layout {
        BonnieLayout::V1_03 => "1.03",
        BonnieLayout::V1_96 => "1.96",
        BonnieLayout::V1_97 => "1.97",
        BonnieLayout::V2_00 => "2.00",
    };
    let mut settings = Vec::new();
    let mut workload = format!("bonnie++ {version}");
    if let Some(data) = &report.data {
        settings.push(Fact::new("size", format!("{} MiB", data.size_mib)));
        workload.push_str(&format!(", {} MiB", data.size_mib));
    }
    if let Some(files) = &report.files {
        settings.push(Fact::new("files", made(files)));
        workload.push_str(&format!(", {}", made(files)));
    }
    Imported {
        tool: "bonnie++",
        version: Some(format!("bonnie++ {version}")),
        // Half a table, its beginning cut off, names no machine.
        label: Some(report.name.clone()).filter(|name| !name.is_empty()),
        workload,
        kind: "bonnie++".to_owned(),
        settings,
        environment: Vec::new(),
        metrics: metrics(),
        values: values(report),
        command: None,
        notes: notes(report),
        against: Vec::new(),
    }
}

/// Words for the files: `16 × 1024 files of 0 B`.
fn made(files: &BonnieFiles) -> String {
    let what = match files.made {
        Made::Sizes { max, min } if max == min => format!("files of {max} B"),
        Made::Sizes { max, min } => format!("files of {min} to {max} B"),
        Made::HardLinks => "hard links".to_owned(),
        Made::SymbolicLinks => "symbolic links".to_owned(),
    };
    let places = match files.directories {
        0 | 1 => String::new(),
        several => format!(" in {several} directories"),
    };
    format!("{} × 1024 {what}{places}", files.number)
}
