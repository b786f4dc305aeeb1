//! iozone 3: the table of automatic mode or of a single size, in kBytes/s (of 1024 bytes) or, with
//! `-O`, in operations per second. Each row is a result.
//!
//! A test that was not run is left blank in its row, so that figures belong to their columns by
//! where they end.

use stackrace_base::printed::text::{Figures, TextLine, end, facts, lines, size};
use stackrace_base::printed::{ImportError, Imported, Importer};

pub(super) const IMPORTER: Importer = Importer {
    name: "iozone",
    summary: "the output of iozone -a, or of one size, with its table",
    recognises: |text| text.contains("Iozone: Performance Test of File I/O"),
    read,
};

/// The two lines above the table, word by word.
const COLUMNS: [&str; 15] = [
    "kB", "reclen", "write", "rewrite", "read", "reread", "read", "write", "read", "rewrite",
    "read", "fwrite", "frewrite", "fread", "freread",
];
/// What the figures are of.
const TESTS: [&str; 13] = [
    "write",
    "rewrite",
    "read",
    "reread",
    "random read",
    "random write",
    "backward read",
    "record rewrite",
    "stride read",
    "fwrite",
    "frewrite",
    "fread",
    "freread",
];
/// Width of the second column.
const RECLEN: usize = 8;
/// Widths of the columns behind it.
const WIDTHS: [usize; TESTS.len()] = [9, 9, 9, 9, 9, 9, 9, 10, 10, 9, 9, 9, 9];

/// What the figures of a table are.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Unit {
    KibPerSecond,
    Operations,
}

/// What was told since the output began.
#[derive(Debug, Default)]
struct Output<'a> {
    version: Option<&'a str>,
    command: &'a str,
    unit: Option<Unit>,
    /// Where `kB` ends; none: not in the table.
    table: Option<usize>,
    results: Vec<Imported>,
}

fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let mut results = Vec::new();
    let mut output: Option<Output<'_>> = None;
    for line in lines(text) {
        let trimmed = line.text.trim();
        if trimmed.starts_with("Iozone: Performance Test") {
            if output.is_some() {
                return Err(line.refuse("\"iozone test complete.\" of the output before it"));
            }
            output = Some(Output::default());
        } else if trimmed == "iozone test complete." {
            let found = output
                .take()
                .map(|output| output.results)
                .unwrap_or_default();
            if found.is_empty() {
                return Err(line.refuse("a table of results before it"));
            }
            results.extend(found);
        } else if let Some(output) = &mut output {
            output.take(line)?;
        }
    }
    match output {
        Some(_) => Err(end(text, "\"iozone test complete.\"")),
        None => Ok(results),
    }
}

impl<'a> Output<'a> {
    fn take(&mut self, line: TextLine<'a>) -> Result<(), ImportError> {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        if let Some(version) = line.after("Version $Revision:") {
            self.version = version.strip_suffix('$').map(str::trim);
        } else if let Some(command) = line.after("Command line used:") {
            self.command = command;
        } else if line.text.trim() == "Output is in kBytes/sec" {
            self.unit = Some(Unit::KibPerSecond);
        } else if line.text.trim() == "OPS Mode. Output is in operations per second." {
            self.unit = Some(Unit::Operations);
        } else if line.text.contains("Microseconds/op") || line.text.contains("throughput for") {
            // Times per operation, and the sums of throughput mode, are other figures under the same
            // names.
            return Err(line.refuse("a table in kBytes/sec or in operations per second"));
        } else if words.first() == Some(&"kB") {
            if words != COLUMNS {
                return Err(line.refuse(format!("the columns {}", COLUMNS.join(" "))));
            }
            // Figures are aligned to the right, so that a column is where its head ends.
            self.table = line.text.find("kB").map(|at| at + 2);
        } else if let Some(table) = self.table {
            if !words.is_empty() {
                let result = self.row(line, table)?;
                self.results.push(result);
            }
        } else if words.len() > 2 && words.iter().all(|word| word.parse::<u64>().is_ok()) {
            return Err(line.refuse("the head of the table before it"));
        }
        Ok(())
    }

    fn row(&self, line: TextLine<'_>, table: usize) -> Result<Imported, ImportError> {
        let unit = self
            .unit
            .ok_or_else(|| line.refuse("\"Output is in kBytes/sec\" before it"))?;
        // The widths of iozone's own format strings. A blank cell cannot be seen by splitting at
        // spaces.
        let mut columns = vec![table, table + RECLEN];
        for width in WIDTHS {
            let last = columns[columns.len() - 1];
            columns.push(last + width);
        }
        let mut cells = vec![None; columns.len()];
        for (stop, word) in words_with_ends(line.text) {
            let column = columns.iter().position(|column| *column == stop);
            let column = column.ok_or_else(|| {
                line.refuse(format!(
                    "\"{word}\" below the end of a column (tabs change that)"
                ))
            })?;
            cells[column] = Some(line.whole(word)?);
        }
        let (kilobytes, record) = (cells[0], cells[1]);
        let (Some(kilobytes), Some(record)) = (kilobytes, record) else {
            return Err(line.refuse("kB and reclen at the beginning of the row"));
        };
        let bytes = |kilobytes: u64| size(kilobytes.saturating_mul(1024));
        let mut figures = Figures::default();
        for (test, value) in TESTS.into_iter().zip(&cells[2..]) {
            let value = value.map(|value| value as f64);
            match unit {
                Unit::KibPerSecond => figures.rate(test, "B/s", value.map(|value| value * 1024.0)),
                Unit::Operations => figures.rate(test, "op/s", value),
            }
        }
        // A row of blanks was cut off, or is none of the table.
        if figures.values.iter().all(Option::is_none) {
            return Err(line.refuse("at least one figure behind kB and reclen"));
        }
        Ok(Imported {
            tool: "iozone",
            version: self.version.map(|version| format!("iozone {version}")),
            label: None,
            workload: format!(
                "iozone {} in records of {}",
                bytes(kilobytes),
                bytes(record)
            ),
            kind: "iozone".to_owned(),
            settings: facts([("command", self.command)]),
            environment: Vec::new(),
            notes: figures.missing("blank in the text, that is not run"),
            metrics: figures.metrics,
            values: figures.values,
        })
    }
}

/// Each word of a line with the column behind it.
fn words_with_ends(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split(' ').filter_map(move |word| {
        let stop = at + word.len();
        at = stop + 1;
        (!word.trim().is_empty()).then_some((stop, word))
    })
}
