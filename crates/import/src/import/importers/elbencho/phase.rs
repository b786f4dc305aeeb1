//! One phase of elbencho: its figures, from the cells of the CSV or what stands for them in the JSON.

use std::borrow::Cow;

use stackrace_base::printed::text::{Figures, TextLine, agree, facts, size};
use stackrace_base::printed::{ImportError, Imported, PrintedFigure};

const MIB: f64 = 1_048_576.0;

/// Latencies as the columns and the metrics are called.
const SPREAD: [(&str, &str); 3] = [("min", "min"), ("avg", "mean"), ("max", "max")];

/// Columns that say how a phase was set. A tree of one's own is told of by the JSON alone.
const SETTINGS: [&str; 17] = [
    "path type",
    "paths",
    "hosts",
    "threads",
    "dirs",
    "files",
    "custom tree dirs",
    "custom tree files shared",
    "files not shared",
    "file size",
    "block size",
    "direct IO",
    "random",
    "random aligned",
    "IO depth",
    "shared paths",
    "truncate",
];

/// A phase as elbencho printed it, by the names of its columns.
pub(super) struct Phase<'a> {
    pub(super) line: TextLine<'a>,
    /// Names of columns with what is in them. The JSON has whole bytes where the CSV has MiB: `B/s
    /// [last]` and `B [last]`.
    pub(super) cells: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl Phase<'_> {
    pub(super) fn cell(&self, name: &str) -> &str {
        let mut cells = self.cells.iter();
        cells
            .find(|(known, _)| known == name)
            .map_or("", |(_, cell)| cell.trim())
    }

    fn figure(&self, name: &str) -> Result<Option<PrintedFigure>, ImportError> {
        match self.cell(name) {
            "" => Ok(None),
            word => self.line.number(word).map(Some),
        }
    }

    /// Bytes, or bytes per second, from a column of them or of MiB.
    fn bytes(&self, before: &str, after: &str) -> Result<Option<PrintedFigure>, ImportError> {
        if let Some(bytes) = self.figure(&format!("{before}B{after} [last]"))? {
            return Ok(Some(bytes));
        }
        let mebibytes = self.figure(&format!("{before}MiB{after} [last]"))?;
        Ok(mebibytes.map(|mebibytes| mebibytes * MIB))
    }

    /// Returns what it says, in our words.
    pub(super) fn imported(&self) -> Result<Imported, ImportError> {
        let milliseconds = self.figure("time ms [last]")?;
        let mut figures = Figures::default();
        self.rates("", "", milliseconds, &mut figures)?;
        figures.time("elapsed", "s", milliseconds.map(|ms| ms * 1e-3));
        self.latencies("", "", &mut figures)?;
        // A phase of reads and writes at the same time tells of its reads apart.
        let mut reads = Figures::default();
        self.rates("rwmix read ", "read ", milliseconds, &mut reads)?;
        self.latencies("rwmix read ", "read ", &mut reads)?;
        let mut notes = Vec::new();
        if reads.values.iter().any(Option::is_some) {
            figures.append(reads);
            notes.push("figures that are not called read are those of the writes alone".to_owned());
        }
        notes.extend(figures.missing("empty in the text, that is not of this phase"));
        let said = |name: &str| Some(self.cell(name).to_owned()).filter(|said| !said.is_empty());
        Ok(Imported {
            version: said("version"),
            label: said("label"),
            settings: facts(SETTINGS.map(|name| (name, self.cell(name)))),
            notes,
            ..figures.imported("elbencho", self.workload()?)
        })
    }

    /// Amounts per second, where an amount and the time agree with them.
    fn rates(
        &self,
        before: &str,
        name: &str,
        milliseconds: Option<PrintedFigure>,
        figures: &mut Figures,
    ) -> Result<(), ImportError> {
        let throughput = self.bytes(before, "/s")?;
        let moved = self.bytes(before, "")?;
        let entries = self.figure(&format!("{before}entries/s [last]"))?;
        let finished = self.figure(&format!("{before}entries [last]"))?;
        for (amount, rate) in [(moved, throughput), (finished, entries)] {
            // Whole numbers of a short phase say too little to be compared.
            if let (Some(amount), Some(rate), Some(ms)) = (amount, rate, milliseconds)
                && ms.value >= 100.0
                && rate.value >= 20.0 * rate.step
                && !agree(amount.value / ms.value * 1e3, rate.value)
            {
                return Err(self
                    .line
                    .contradicts("itself: amount over time is another rate"));
            }
        }
        let operations = self.figure(&format!("{before}IOPS [last]"))?;
        figures.rate(format!("{name}throughput"), "B/s", throughput);
        figures.rate(format!("{name}operations"), "op/s", operations);
        figures.rate(format!("{name}entries"), "op/s", entries);
        Ok(())
    }

    fn latencies(
        &self,
        before: &str,
        name: &str,
        figures: &mut Figures,
    ) -> Result<(), ImportError> {
        for (column, of) in [("IO", ""), ("Ent", "entry ")] {
            let mut last = 0.0;
            for (what, word) in SPREAD {
                let us = self.figure(&format!("{before}{column} lat us [{what}]"))?;
                if us.is_some_and(|us| us.value < last) {
                    return Err(self
                        .line
                        .contradicts("itself: a mean is not between min and max"));
                }
                last = us.map_or(last, |us| us.value);
                figures.time(
                    format!("{name}{of}latency {word}"),
                    "ns",
                    us.map(|us| us * 1e3),
                );
            }
        }
        Ok(())
    }

    /// Names the workload: `elbencho write, files of 256M in blocks of 1M, 8 thread(s)`.
    fn workload(&self) -> Result<String, ImportError> {
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
