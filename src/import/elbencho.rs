//! elbencho 3, its CSV of results (`--csvfile`): one result per phase. Figures are those of `[last]`,
//! when the last thread had ended; MiB are 2²⁰ bytes.
//!
//! Columns are found by their names. An empty cell is what the phase has no figure for. Its JSON is
//! not read.

use super::text::{Figures, Line, agree, facts, lines, size};
use super::{Imported, Importer, Misread};

pub(super) const IMPORTER: Importer = Importer {
    name: "elbencho",
    summary: "the CSV of elbencho (--csvfile) with its line of names",
    recognises: |text| lines(text).iter().any(|line| is_head(*line)),
    read,
};

/// Columns without which it is no such file.
const NEEDED: [&str; 12] = [
    "threads",
    "dirs",
    "files",
    "file size",
    "block size",
    "operation",
    "time ms [last]",
    "entries/s [last]",
    "IOPS [last]",
    "MiB/s [last]",
    "entries [last]",
    "MiB [last]",
];
/// Columns in µs that become metrics, and their names here.
const LATENCIES: [(&str, &str); 6] = [
    ("IO lat us [min]", "latency min"),
    ("IO lat us [avg]", "latency mean"),
    ("IO lat us [max]", "latency max"),
    ("Ent lat us [min]", "entry latency min"),
    ("Ent lat us [avg]", "entry latency mean"),
    ("Ent lat us [max]", "entry latency max"),
];
/// Columns that say how a phase was set.
const SETTINGS: [&str; 12] = [
    "path type",
    "paths",
    "hosts",
    "threads",
    "dirs",
    "files",
    "file size",
    "block size",
    "direct IO",
    "random",
    "IO depth",
    "truncate",
];

fn is_head(line: Line<'_>) -> bool {
    line.text.starts_with("ISO date,") && line.text.contains(",operation,")
}

/// One phase.
struct Row<'a> {
    line: Line<'a>,
    names: &'a [&'a str],
    cells: Vec<&'a str>,
}

fn read(text: &str) -> Result<Vec<Imported>, Misread> {
    let all = lines(text);
    let (mut names, mut results): (Vec<&str>, Vec<Imported>) = (Vec::new(), Vec::new());
    for (at, line) in all.iter().copied().enumerate() {
        if is_head(line) {
            names = line.text.split(',').collect();
            if let Some(missing) = NEEDED.iter().find(|name| !names.contains(name)) {
                return Err(line.refuse(format!("a column \"{missing}\"")));
            }
            continue;
        }
        if line.text.trim().is_empty() {
            continue;
        }
        if names.is_empty() {
            return Err(line.refuse("the line of names (ISO date,label,…) before it"));
        }
        // Without a line break the last cell may have been cut off.
        if at + 1 == all.len() {
            return Err(line.refuse("a line break at the end of the file"));
        }
        results.push(Row::new(line, &names)?.imported()?);
    }
    Ok(results)
}

impl<'a> Row<'a> {
    fn new(line: Line<'a>, names: &'a [&'a str]) -> Result<Self, Misread> {
        // The command line is the last column and may have commas of its own.
        let cells: Vec<&str> = match names.last() {
            Some(&"command") => line.text.splitn(names.len(), ',').collect(),
            _ => line.text.split(',').collect(),
        };
        if cells.len() != names.len() {
            return Err(line.refuse(format!("{} cells, not {}", names.len(), cells.len())));
        }
        Ok(Self { line, names, cells })
    }

    fn cell(&self, name: &str) -> &'a str {
        let at = self.names.iter().position(|known| *known == name);
        at.and_then(|at| self.cells.get(at))
            .map_or("", |cell| cell.trim())
    }

    fn figure(&self, name: &str) -> Result<Option<f64>, Misread> {
        match self.cell(name) {
            "" => Ok(None),
            word => self.line.number(word).map(Some),
        }
    }

    fn imported(&self) -> Result<Imported, Misread> {
        let milliseconds = self.figure("time ms [last]")?;
        let rate = self.figure("MiB/s [last]")?;
        let mut figures = Figures::default();
        figures.rate("throughput", "B/s", rate.map(|rate| rate * 1024.0 * 1024.0));
        figures.rate("operations", "op/s", self.figure("IOPS [last]")?);
        figures.rate("entries", "op/s", self.figure("entries/s [last]")?);
        figures.time("elapsed", "s", milliseconds.map(|ms| ms / 1e3));
        for (column, name) in LATENCIES {
            figures.time(name, "ns", self.figure(column)?.map(|us| us * 1e3));
        }
        for (amount, rate) in [
            (self.figure("MiB [last]")?, rate),
            (
                self.figure("entries [last]")?,
                self.figure("entries/s [last]")?,
            ),
        ] {
            // Whole numbers of a short phase say too little to be compared.
            if let (Some(amount), Some(rate), Some(ms)) = (amount, rate, milliseconds)
                && ms >= 100.0
                && rate >= 20.0
                && !agree(amount / ms * 1e3, rate)
            {
                return Err(self
                    .line
                    .contradicts("itself: amount over time is another rate"));
            }
        }
        for kind in ["IO", "Ent"] {
            let of = |what: &str| self.figure(&format!("{kind} lat us [{what}]"));
            if let (Some(min), Some(mean), Some(max)) = (of("min")?, of("avg")?, of("max")?)
                && (min > mean || mean > max)
            {
                return Err(self
                    .line
                    .contradicts("itself: a mean is not between min and max"));
            }
        }
        let label = self.cell("label");
        Ok(Imported {
            tool: "elbencho",
            version: Some(self.cell("version").to_owned()).filter(|version| !version.is_empty()),
            label: (!label.is_empty()).then(|| label.to_owned()),
            workload: self.workload()?,
            kind: "elbencho".to_owned(),
            settings: facts(SETTINGS.map(|name| (name, self.cell(name)))),
            environment: Vec::new(),
            notes: figures.missing("empty in the text, that is not of this phase"),
            metrics: figures.metrics,
            values: figures.values,
        })
    }

    /// `elbencho write, 4 files of 256M in blocks of 1M, 8 threads`
    fn workload(&self) -> Result<String, Misread> {
        let operation = self.cell("operation");
        if operation.is_empty() {
            return Err(self.line.refuse("an operation"));
        }
        let bytes = |name: &str| match self.cell(name) {
            "" => Ok("?".to_owned()),
            word => self.line.whole(word).map(size),
        };
        let random = if self.cell("random") == "1" {
            "random "
        } else {
            ""
        };
        let depth = match self.cell("IO depth") {
            "" | "1" => String::new(),
            depth => format!(", depth {depth}"),
        };
        Ok(format!(
            "elbencho {random}{}, files of {} in blocks of {}, {} thread(s){depth}",
            operation.to_lowercase(),
            bytes("file size")?,
            bytes("block size")?,
            self.cell("threads")
        ))
    }
}
