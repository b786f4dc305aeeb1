//! The figures of a study as one list, whatever form they were published in.

use super::card::{Card, PublishedSource};
use stackrace_base::event::{Better, MetricHead};
use stackrace_base::printed::bonnie::csv_line;
use stackrace_base::printed::bonnie::report::{BonnieColumn, FILES_UNIT, SEEKS};

/// Every figure of a study.
#[derive(Debug, Clone, Default)]
pub struct PublishedTable {
    /// The figures in the order published.
    pub figures: Vec<PublishedFigure>,
}

/// One figure of one configuration.
#[derive(Debug, Clone)]
pub struct PublishedFigure {
    /// Name of the load: `bonnie++ 1.03e`, `copy-file`.
    pub workload: String,
    /// The metric measured, in base units (B/s, op/s, s).
    pub metric: MetricHead,
    /// The unit it was published in; empty if it was computed here from what was published.
    pub original: String,
    /// Level of each factor of the card, in its order; empty if it does not apply.
    pub levels: Vec<String>,
    /// The machine as the tool named it; empty if not said.
    pub machine: String,
    /// The figure.
    pub reading: PublishedValue,
    /// CPU while it was measured, per cent of one processor; `None` if not published.
    pub cpu_percent: Option<f64>,
    /// Work done: bytes moved (a rate of bytes, or an elapsed time) or operations; `None` if not said.
    pub work: Option<f64>,
    /// Bytes of the data it worked on; `None` if not said.
    pub data_bytes: Option<u64>,
}

/// The value published for one figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PublishedValue {
    /// The value in base units.
    Value(f64),
    /// `+++++`: the tool found the phase too short to measure.
    TooShort,
}

impl PublishedFigure {
    /// The value, where there is one.
    pub fn value(&self) -> Option<f64> {
        match self.reading {
            PublishedValue::Value(value) => Some(value),
            PublishedValue::TooShort => None,
        }
    }

    /// Returns true if it was computed here from what was published.
    pub fn derived(&self) -> bool {
        self.original.is_empty()
    }

    /// Seconds it took: the work divided by the rate; `None` if not known.
    pub fn seconds(&self) -> Option<f64> {
        let value = self.value()?;
        match self.metric.unit.as_str() {
            "s" => Some(value),
            _ => Some(self.work? / value),
        }
    }
}

impl PublishedTable {
    /// The figures of a study.
    ///
    /// # Errors
    /// The line (from 1) that is not what the form says, and why. The data that ship are read by a
    /// test, so that a reader of the program never sees it.
    pub fn of(card: &Card) -> Result<Self, String> {
        let mut table = match card.source {
            PublishedSource::Bonnie {
                version,
                results,
                levels,
            } => of_bonnie(card, version, results, levels)?,
            PublishedSource::Long(text) => long(card, text)?,
            PublishedSource::None => Self::default(),
        };
        // After all figures are read: a rate that was published counts more than one computed here.
        table.derive();
        Ok(table)
    }

    /// Names of the loads, in the order published.
    pub fn workloads(&self) -> Vec<&str> {
        distinct(self.figures.iter().map(|figure| figure.workload.as_str()))
    }

    /// The figures of one load and metric.
    pub fn of_metric<'a>(
        &'a self,
        workload: &'a str,
        metric: &'a str,
    ) -> impl Iterator<Item = &'a PublishedFigure> {
        self.figures
            .iter()
            .filter(move |figure| figure.workload == workload && figure.metric.name == metric)
    }

    /// Each load with each of its metrics, in the order published.
    pub fn metrics(&self) -> Vec<(&str, &str)> {
        distinct(
            self.figures
                .iter()
                .map(|figure| (figure.workload.as_str(), figure.metric.name.as_str())),
        )
    }

    /// Adds the rate of every elapsed time whose bytes are stated and whose rate is not published.
    fn derive(&mut self) {
        let rated = |figure: &PublishedFigure| {
            self.figures
                .iter()
                .any(|other| other.workload == figure.workload && other.metric.unit == "B/s")
        };
        let derived: Vec<PublishedFigure> = self
            .figures
            .iter()
            .filter(|figure| figure.metric.name == "elapsed" && !rated(figure))
            .filter_map(|figure| {
                let rate = figure.work? / figure.value()?;
                Some(PublishedFigure {
                    metric: head("throughput", "B/s", Better::Higher),
                    // Empty marks it as derived: no ratio is counted twice because of it.
                    original: String::new(),
                    reading: PublishedValue::Value(rate),
                    ..figure.clone()
                })
            })
            .collect();
        self.figures.extend(derived);
    }
}

/// Each once, in the order they first appear.
pub fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for one in all {
        // Not a set: the order of publication is kept, and the lists are short.
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}

fn head(name: &str, unit: &str, better: Better) -> MetricHead {
    MetricHead {
        name: name.to_owned(),
        unit: unit.to_owned(),
        better,
    }
}

/// Phases of bonnie++ 1.03 in the order of its CSV.
const PHASES: [&str; 12] = [
    "per-character output",
    "block output",
    "rewrite",
    "per-character input",
    "block input",
    "random seeks",
    "sequential create",
    "sequential stat",
    "sequential delete",
    "random create",
    "random stat",
    "random delete",
];

fn of_bonnie(
    card: &Card,
    version: &str,
    results: &str,
    levels: &str,
) -> Result<PublishedTable, String> {
    let mut names = levels.lines();
    let factors: Vec<&str> = names
        .next()
        .unwrap_or_default()
        .split(',')
        .skip(1)
        .collect();
    let asked: Vec<&str> = card.factors.iter().map(|factor| factor.name).collect();
    // The levels are in a file of their own: one that was edited alone must not shift them.
    if factors != asked {
        return Err(format!("line 1: levels of {factors:?}, expected {asked:?}"));
    }
    let mut table = PublishedTable::default();
    for (at, line) in results.lines().enumerate() {
        let wrong = |what: &str| format!("line {}: {what}", at + 1);
        let levels = names.next().ok_or_else(|| wrong("has no levels"))?;
        let levels: Vec<String> = levels.split(',').skip(1).map(str::to_owned).collect();
        let report = csv_line(line, at + 1).map_err(|misread| misread.to_string())?;
        let data_bytes = report.data.map(|data| data.size_mib << 20);
        // bonnie++ counts files in units of 1024, and does each of its phases over all of them.
        let files = report.files.map(|files| files.number * FILES_UNIT);
        for ((column, name), cell) in BonnieColumn::ALL.into_iter().zip(PHASES).zip(report.cells) {
            // A phase that was not run is no figure of 0.
            let Some(figure) = cell.figure else { continue };
            let (unit, original, factor, work) = match column {
                BonnieColumn::Seeks => ("op/s", "/sec", 1.0, Some(SEEKS.into())),
                // bonnie++ prints KiB/s under the heading K/sec.
                column if column.moves_data() => ("B/s", "K/sec", 1024.0, data_bytes),
                _ => ("op/s", "/sec", 1.0, files),
            };
            let value = figure
                .per_s()
                .map(|value| PublishedValue::Value(value.value * factor));
            table.figures.push(PublishedFigure {
                workload: format!("bonnie++ {version}"),
                metric: head(name, unit, Better::Higher),
                original: original.to_owned(),
                levels: levels.clone(),
                machine: report.name.clone(),
                // `+++++` stays a figure: its remark says what it means.
                reading: value.unwrap_or(PublishedValue::TooShort),
                cpu_percent: figure.cpu_percent().map(|percent| percent.value),
                work: work.map(|work| work as f64),
                data_bytes,
            });
        }
    }
    Ok(table)
}

/// `workload,<factors>,metric,value,unit`.
fn long(card: &Card, text: &str) -> Result<PublishedTable, String> {
    let mut lines = text.lines();
    let columns = lines.next().unwrap_or_default();
    let factors: Vec<&str> = card.factors.iter().map(|factor| factor.name).collect();
    let expected: Vec<&str> = ["workload"]
        .into_iter()
        .chain(factors.iter().copied())
        .chain(["metric", "value", "unit"])
        .collect();
    let expected = expected.join(",");
    if columns != expected {
        return Err(format!(
            "line 1: columns \"{columns}\", expected \"{expected}\""
        ));
    }
    let mut table = PublishedTable::default();
    for (at, line) in lines.enumerate() {
        let wrong = |what: String| format!("line {}: {what}", at + 2);
        let cells: Vec<&str> = line.split(',').collect();
        // No cell of these files holds a comma, so that none is quoted.
        if cells.len() != factors.len() + 4 {
            return Err(wrong(format!(
                "{} columns, expected {}",
                cells.len(),
                factors.len() + 4
            )));
        }
        let [metric, value, unit] = [1, 2, 3].map(|n| cells[factors.len() + n]);
        let value: f64 = value
            .parse()
            .map_err(|_| wrong(format!("\"{value}\" is no number")))?;
        let (scale, base, better) = match unit {
            "s" => (1.0, "s", Better::Lower),
            "1/s" => (1.0, "op/s", Better::Higher),
            "MB/s" => (1e6, "B/s", Better::Higher),
            other => return Err(wrong(format!("\"{other}\" is no unit known here"))),
        };
        let bytes = card.stated.bytes_of(cells[0]);
        table.figures.push(PublishedFigure {
            workload: cells[0].to_owned(),
            // The data spell names as columns do: random_read.
            metric: head(&metric.replace('_', " "), base, better),
            original: unit.to_owned(),
            levels: cells[1..=factors.len()]
                .iter()
                .map(|cell| (*cell).to_owned())
                .collect(),
            machine: String::new(),
            reading: PublishedValue::Value(value * scale),
            cpu_percent: None,
            work: bytes.map(|bytes| bytes as f64),
            data_bytes: bytes,
        });
    }
    Ok(table)
}
