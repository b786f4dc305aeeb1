//! IOR 3 and 4, its default output: one result per row of the table of results, that is per
//! operation and iteration. The summary at the end must agree with the rows.

use super::mdtest::is_file_system;
use crate::import::signs::is_ior;
use stackrace_base::event::Fact;
use stackrace_base::printed::text::{Figures, TextLine, agree, bytes_of, cut, end, facts, lines};
use stackrace_base::printed::{ImportError, Imported, Importer, PrintedFigure};

pub(super) const IMPORTER: Importer = Importer {
    name: "ior",
    summary: "the default output of IOR 3 or 4",
    recognises: |text| text.contains(": MPI Coordinated Test of Parallel I/O"),
    read,
};

const MIB: f64 = 1_048_576.0;
/// Line that ends the table of results.
const SUMMARY: &str = "Summary of all tests:";
/// Columns of the table that become metrics: name there, name here, unit, factor.
const TIMES: [(&str, &str, &str, f64); 5] = [
    ("Latency(s)", "latency", "ns", 1e9),
    ("open(s)", "open time", "s", 1.0),
    ("wr/rd(s)", "transfer time", "s", 1.0),
    ("close(s)", "close time", "s", 1.0),
    ("total(s)", "elapsed", "s", 1.0),
];

/// One output of IOR: a text may have several.
#[derive(Debug, Default)]
struct Output<'a> {
    version: &'a str,
    /// Lines `name : value` before the results.
    told: Vec<(&'a str, &'a str)>,
    columns: Vec<&'a str>,
    rows: Vec<(TextLine<'a>, Vec<&'a str>)>,
    /// The summary's rows as (operation, largest MiB/s).
    summary: Vec<(TextLine<'a>, &'a str, f64)>,
    summed: bool,
    /// Names of the columns of the summary.
    summary_columns: Vec<&'a str>,
}

fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let mut outputs: Vec<Output<'_>> = Vec::new();
    for line in lines(text) {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        if let Some((name, _)) = line.text.split_once(": MPI Coordinated Test") {
            let version = name.trim().strip_prefix("IOR-");
            outputs.push(Output {
                version: version.ok_or_else(|| line.refuse("IOR-3 or IOR-4"))?,
                ..Output::default()
            });
            continue;
        }
        let is_row = is_ior(line.text.trim());
        match outputs.last_mut() {
            Some(output) if !(is_row && output.columns.is_empty()) => output.take(line, &words)?,
            _ if is_row => return Err(line.refuse("the names of the columns before it")),
            _ => {}
        }
    }
    let mut results = Vec::new();
    for output in &outputs {
        output.check(text)?;
        for (line, row) in &output.rows {
            // Removing moves no data, so that its row has no rate.
            if row[0] != "remove" {
                results.push(output.imported(*line, row)?);
            }
        }
    }
    Ok(results)
}

impl<'a> Output<'a> {
    fn take(&mut self, line: TextLine<'a>, words: &[&'a str]) -> Result<(), ImportError> {
        let first = words.first().copied().unwrap_or_default();
        let operation = matches!(first, "write" | "read" | "remove");
        if line.text.trim() == SUMMARY {
            self.summed = true;
        } else if self.summed && first == "Operation" {
            self.summary_columns = words.to_vec();
        } else if self.columns.is_empty() {
            if first == "access" && words.contains(&"bw(MiB/s)") {
                // Columns differ between versions and options; a cell is found by the name of its
                // column.
                self.columns = words.to_vec();
                // The number of the iteration is the last in every version.
                if words.last() != Some(&"iter") {
                    return Err(line.refuse("the names of all columns, up to \"iter\""));
                }
            } else if let Some((name, value)) = line.text.split_once(':') {
                let (name, value) = (name.trim(), value.trim());
                if value.contains(" : ") || name == "FS" && !is_file_system(value) {
                    return Err(line.refuse("one name and the whole of its value"));
                }
                self.told.push((name, value));
            }
        } else if self.summed && operation {
            // One of the table of results is of another run.
            let columns = &self.summary_columns;
            if words.len() < columns.len() {
                return Err(line.refuse(format!("{} columns", columns.len())));
            }
            for (name, column) in [("xfersize", "xsize"), ("blocksize", "blksiz")] {
                let at = columns.iter().position(|known| *known == column);
                self.is_as_told(line, name, at.and_then(|at| words.get(at)), 1.0)?;
            }
            let largest = words.get(1).ok_or_else(|| line.refuse("Max(MiB)"))?;
            let largest = line.number(largest)?;
            self.summary.push((line, first, largest.value));
        } else if operation {
            if words.len() != self.columns.len() {
                return Err(line.refuse(format!("{} columns", self.columns.len())));
            }
            for (name, column) in [("xfersize", "xfer(KiB)"), ("blocksize", "block(KiB)")] {
                self.is_as_told(line, name, self.cell(words, column).as_ref(), 1024.0)?;
            }
            self.rows.push((line, words.to_vec()));
        } else if let Some(rest) = line.after("Max Write:").or(line.after("Max Read:")) {
            largest(line, rest)?;
        }
        Ok(())
    }

    /// Every operation has its summary, and the summary's largest rate is the largest of its rows.
    fn check(&self, text: &str) -> Result<(), ImportError> {
        // The summary prints the largest rate of all iterations.
        let rates = |operation: &str| {
            let rows = self.rows.iter().filter(|(_, row)| row[0] == operation);
            let printed =
                rows.filter_map(|(_, row)| PrintedFigure::read(self.cell(row, "bw(MiB/s)")?));
            printed
                .map(|rate| rate.value)
                .fold(f64::NEG_INFINITY, f64::max)
        };
        for (line, operation, largest) in &self.summary {
            if !agree(rates(operation), *largest) {
                return Err(line.contradicts("the rows of the table of results"));
            }
        }
        for (line, row) in &self.rows {
            let summed = |sum: &&(TextLine<'_>, &str, f64)| sum.1 == row[0];
            if row[0] != "remove" && !self.summary.iter().any(|sum| summed(&sum)) {
                return Err(if self.summed {
                    line.refuse("a row of the summary for this operation")
                } else {
                    end(text, SUMMARY)
                });
            }
        }
        if self.rows.is_empty() {
            return Err(end(text, "the table of results"));
        }
        Ok(())
    }

    /// Checks an amount of a table, in units of so many bytes, against that of the head.
    fn is_as_told(
        &self,
        line: TextLine<'_>,
        name: &str,
        cell: Option<&&str>,
        unit: f64,
    ) -> Result<(), ImportError> {
        let cell = cell.and_then(|cell| PrintedFigure::read(cell));
        let Some((told, cell)) = amount(self.told(name)).zip(cell) else {
            return Ok(());
        };
        // Both are rounded; removing moves nothing.
        let near = (told - cell.value * unit).abs() <= 0.01 * told + cell.step * unit;
        match near || cell.value == 0.0 {
            true => Ok(()),
            false => Err(line.contradicts(format!("the {name} of the head, {}", self.told(name)))),
        }
    }

    fn cell(&self, row: &[&'a str], name: &str) -> Option<&'a str> {
        let at = self.columns.iter().position(|column| *column == name)?;
        row.get(at).copied()
    }

    fn told(&self, name: &str) -> &'a str {
        let mut all = self.told.iter();
        all.find(|(known, _)| *known == name)
            .map_or("", |(_, value)| value)
    }

    fn imported(&self, line: TextLine<'_>, row: &[&'a str]) -> Result<Imported, ImportError> {
        let figure = |name: &str| match self.cell(row, name) {
            // IOR prints these where a figure does not exist for the operation.
            None | Some("-" | "NA") => Ok(None),
            Some(word) => line.number(word).map(Some),
        };
        let rate = figure("bw(MiB/s)")?;
        let operations = figure("IOPS")?;
        let mut figures = Figures::default();
        figures.rate("throughput", "B/s", rate.map(|rate| rate * MIB));
        figures.rate("operations", "op/s", operations);
        for (column, name, of, factor) in TIMES {
            let value = figure(column)?;
            figures.time(name, of, value.map(|value| value * factor));
        }
        if let (Some(xfer), Some(rate), Some(operations)) = (figure("xfer(KiB)")?, rate, operations)
            && !(0.5..=2.0).contains(&(operations.value * xfer.value / 1024.0 / rate.value))
        {
            // IOPS leave out opening and closing, so that they need not follow exactly.
            return Err(line.contradicts("itself: operations of this size give another rate"));
        }
        if let (Some(rate), Some(seconds)) = (rate, figure("total(s)")?) {
            self.fits_time(line, rate.value * seconds.value)?;
        }
        let tasks = self.told("tasks");
        let (size, block) = (self.told("xfersize"), self.told("blocksize"));
        Ok(Imported {
            version: Some(format!("IOR-{}", self.version)),
            kind: "IOR".to_owned(),
            settings: self.settings(),
            environment: facts([
                ("machine", self.told("Machine")),
                ("file system", self.told("FS")),
            ]),
            notes: figures.missing("not in the text"),
            ..figures.imported(
                "ior",
                format!("IOR {} {size} of {block}, {tasks} task(s)", row[0]),
            )
        })
    }

    /// Checks what a row's rate moved in its time (in MiB) against what IOR says that it moves.
    fn fits_time(&self, line: TextLine<'_>, moved: f64) -> Result<(), ImportError> {
        let all = amount(self.told("aggregate filesize")).map(|bytes| bytes / MIB);
        // With a time limit less is moved; never more.
        let limited = self
            .told
            .iter()
            .any(|(name, _)| name.starts_with("stonewall"));
        let fits = |all: f64| moved <= 1.05 * all && (limited || moved >= 0.95 * all);
        match all.is_none_or(fits) {
            true => Ok(()),
            false => Err(line
                .contradicts("the aggregate filesize: the rate over the time is another amount")),
        }
    }

    /// The command line without the file that it writes to.
    fn command(&self) -> String {
        let mut words = self.told("Command line").split_whitespace();
        let mut kept = Vec::new();
        while let Some(word) = words.next() {
            match word {
                "-o" => drop(words.next()),
                _ => kept.push(word),
            }
        }
        kept.join(" ")
    }

    fn settings(&self) -> Vec<Fact> {
        const SETTINGS: [&str; 11] = [
            "api",
            "access",
            "type",
            "segments",
            "ordering in a file",
            "ordering inter file",
            "nodes",
            "tasks",
            "xfersize",
            "blocksize",
            "aggregate filesize",
        ];
        let mut settings = facts(SETTINGS.map(|name| (name, self.told(name))));
        settings.extend(facts([("command", self.command().as_str())]));
        settings
    }
}

/// Bytes of `1 MiB`, `262144 bytes`.
fn amount(words: &str) -> Option<f64> {
    let (count, unit) = words.split_once(' ')?;
    let unit = match unit {
        "bytes" => 1.0,
        unit => bytes_of(unit)?,
    };
    Some(PrintedFigure::read(count)?.value * unit)
}

/// Checks `580.00 MiB/sec (608.18 MB/sec)`: the same twice.
fn largest(line: TextLine<'_>, rest: &str) -> Result<(), ImportError> {
    let pair = rest.split_once(" MiB/sec (").and_then(|(binary, rest)| {
        let decimal = rest.strip_suffix(" MB/sec)")?;
        let read = |word| PrintedFigure::read(word).map(|figure| figure.value);
        Some((read(binary)?, read(decimal)?))
    });
    match pair {
        // The same rate in MiB and in MB.
        Some((binary, decimal)) if agree(binary * 1.048_576, decimal) => Ok(()),
        Some(_) => Err(line.contradicts(format!("itself: \"{}\" is two rates", cut(rest)))),
        None => Err(line.refuse("… MiB/sec (… MB/sec)")),
    }
}
