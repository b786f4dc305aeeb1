//! mdtest 1.9, 3 and 4: the table of rates at the end, which has largest, smallest and mean of the
//! iterations. The figure is the mean. `0.000` is a phase that was not run.

use crate::import::signs::is_mdtest;
use stackrace_base::printed::text::{Figures, TextLine, end, facts, lines};
use stackrace_base::printed::{ImportError, Imported, Importer, PrintedFigure};

pub(super) const IMPORTER: Importer = Importer {
    name: "mdtest",
    summary: "the output of mdtest with its table of rates",
    recognises: |text| text.contains("SUMMARY rate") && text.contains("iterations)"),
    read,
};

/// Phases mdtest reports.
const PHASES: [&str; 10] = [
    "Directory creation",
    "Directory stat",
    "Directory rename",
    "Directory removal",
    "File creation",
    "File stat",
    "File read",
    "File removal",
    "Tree creation",
    "Tree removal",
];

/// Two rates of a phase may differ by so much: they were taken with two clocks.
const SAME: f64 = 0.01;

/// State of the reader since the output began.
#[derive(Debug, Default)]
struct Output<'a> {
    version: Option<&'a str>,
    command: &'a str,
    /// The line that shows it.
    command_at: Option<usize>,
    place: &'a str,
    file_system: &'a str,
    tasks: &'a str,
    iterations: &'a str,
    rows: Vec<(&'static str, PrintedFigure)>,
    /// Figures that `-v` prints of each iteration: phase, seconds, rate.
    timed: Vec<(&'static str, f64, PrintedFigure)>,
    notes: Vec<String>,
    /// Inside the table of rates.
    open: bool,
    /// Set if the text has anything of the run but the table.
    begun: bool,
}

fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let mut results = Vec::new();
    let mut output = Output::default();
    for line in lines(text) {
        if line.text.trim_start().starts_with("-- finished at ") {
            if output.rows.is_empty() {
                return Err(line.refuse("the table of rates before it"));
            }
            results.push(output.imported());
            output = Output::default();
        } else if line.text.trim_start().starts_with("-- started at ") {
            if output.open {
                return Err(line.refuse("\"-- finished at\" of the output before it"));
            }
            output.begun = true;
        } else if let Some(rest) = line.text.split("SUMMARY ").nth(1) {
            let iterations = head(line, rest)?;
            if output.is_table_alone() {
                results.push(output.imported());
                output = Output::default();
            } else if output.open {
                return Err(line.refuse("\"-- finished at\" of the output before it"));
            }
            output.iterations = iterations;
            output.open = true;
        } else if output.is_table_alone() && !is_row(line) {
            // Behind a table that was pasted alone anything may follow.
            results.push(output.imported());
            output = Output::default();
            output.tell(line)?;
        } else if output.open {
            output.row(line)?;
        } else {
            output.tell(line)?;
        }
    }
    if output.is_table_alone() {
        results.push(output.imported());
    } else if output.open {
        return Err(end(text, "\"-- finished at\""));
    }
    Ok(results)
}

/// Returns true if a line may stand in the table of rates.
fn is_row(line: TextLine<'_>) -> bool {
    let text = line.text.trim();
    let phase = PHASES.iter().any(|phase| text.starts_with(phase));
    phase || text.is_empty() || text.starts_with("---") || text.starts_with("Operation")
}

/// Reads `rate (in ops/sec): (of 5 iterations)`.
fn head<'a>(line: TextLine<'a>, rest: &'a str) -> Result<&'a str, ImportError> {
    let refuse = || line.refuse("SUMMARY rate: (of … iterations)");
    let (what, rest) = rest.split_once(": (of ").ok_or_else(refuse)?;
    if what != "rate" && what != "rate (in ops/sec)" {
        // mdtest 4 can print a summary of times as well, in a table of the same form.
        return Err(line.refuse("a summary of rates, operations per second"));
    }
    let iterations = rest.strip_suffix(" iterations)").ok_or_else(refuse)?;
    line.whole(iterations)?;
    Ok(iterations)
}

impl<'a> Output<'a> {
    /// Returns true if this is a table with figures and nothing of the run around it, which people
    /// paste: a row is whole where it has all of its four figures.
    fn is_table_alone(&self) -> bool {
        self.open && !self.begun && !self.rows.is_empty()
    }

    fn tell(&mut self, line: TextLine<'a>) -> Result<(), ImportError> {
        if is_mdtest(line.text.trim()) {
            return Err(line.refuse("\"SUMMARY rate\" before it"));
        }
        let quotes = |text: &str| text.matches(['"', '\'']).count();
        let follows = self.command_at.is_some_and(|at| at + 1 == line.index);
        // Its words are quoted: the rest of one that was folded has quotes, or closes one.
        if follows
            && !line.text.contains(": ")
            && (quotes(line.text) > 0 || quotes(self.command) % 2 != 0)
        {
            return Err(line.rest_of_command());
        }
        if let Some((version, _)) = line.text.split_once(" was launched with ") {
            self.version = Some(version.trim());
            self.begun = true;
        }
        if let Some((_, command)) = line.text.split_once("Command line used:") {
            let command = command.trim();
            if command.is_empty() || command.contains("Path: ") {
                return Err(line.refuse("the command alone"));
            }
            self.command = command;
            self.command_at = Some(line.index);
            self.begun = true;
        } else if let Some(place) = field(line, "Path") {
            self.place = place;
        } else if let Some(told) = field(line, "FS") {
            if !is_file_system(told) {
                return Err(line.refuse("FS: … Used Inodes: …%"));
            }
            self.file_system = told;
        } else if let Some(timed) = timed(line)? {
            self.timed.push(timed);
        } else if line.text.contains(" tasks, ") {
            self.tasks = line.text.trim();
        }
        Ok(())
    }

    /// Reads `Directory stat  :  9250.393  8797.425  9009.705  185.725`; without the colon from 4.0
    /// on.
    fn row(&mut self, line: TextLine<'_>) -> Result<(), ImportError> {
        let text = line.text.trim();
        if text.is_empty() || text.starts_with("---") {
            return Ok(());
        }
        if text.starts_with("Operation") {
            let columns: Vec<&str> = text.split_whitespace().collect();
            if columns != ["Operation", "Max", "Min", "Mean", "Std", "Dev"] {
                return Err(line.refuse("the columns Operation, Max, Min, Mean, Std Dev"));
            }
            return Ok(());
        }
        let phase = PHASES.into_iter().find(|phase| text.starts_with(phase));
        let phase = phase.ok_or_else(|| line.refuse("a phase of mdtest, or \"-- finished at\""))?;
        let rest = text[phase.len()..].trim_start().trim_start_matches(':');
        let figures = rest.split_whitespace().map(PrintedFigure::read);
        let figures: Option<Vec<PrintedFigure>> = figures.collect();
        let Some([max, min, mean, _]) = figures.as_deref() else {
            return Err(line.refuse("largest, smallest, mean rate and standard deviation"));
        };
        // A column that slipped would still read as four numbers.
        if min.value > mean.value || mean.value > max.value {
            return Err(line.contradicts("itself: the mean is not between smallest and largest"));
        }
        if self.rows.iter().any(|(known, _)| *known == phase) {
            return Err(line.refuse("each phase once"));
        }
        let mean = self.stated(line, phase, *mean)?;
        self.rows.push((phase, mean));
        Ok(())
    }

    /// The rate of a phase where the lines of its iterations state it too. The summary of mdtest 3.2 has
    /// rates that no iteration had.
    fn stated(
        &mut self,
        line: TextLine<'_>,
        phase: &'static str,
        mean: PrintedFigure,
    ) -> Result<PrintedFigure, ImportError> {
        let own = self.timed.iter().filter(|(known, _, _)| *known == phase);
        let own: Vec<(f64, PrintedFigure)> =
            own.map(|(_, seconds, rate)| (*seconds, *rate)).collect();
        // Of some of the iterations, or of a phase that was not run, no mean follows.
        if own.is_empty() || own.len().to_string() != self.iterations || mean.value <= 0.0 {
            return Ok(mean);
        }
        let sum = own.iter().map(|(_, rate)| *rate).reduce(std::ops::Add::add);
        let told = sum.unwrap_or_default() * (1.0 / own.len() as f64);
        if (told.value - mean.value).abs() <= SAME * told.value.max(mean.value) {
            return Ok(mean);
        }
        // `32 tasks, 320000 files`: the count and the time of each line say whether its rate is right.
        let items = self
            .tasks
            .split_once(", ")
            .and_then(|(_, items)| PrintedFigure::read(items.split(' ').next()?));
        let follows = |(seconds, rate): &(f64, PrintedFigure)| {
            items.is_some_and(|items| {
                (seconds * rate.value - items.value).abs() <= SAME * items.value
            })
        };
        if !own.iter().all(follows) {
            return Err(line.contradicts(format!(
                "the lines of {phase} before it, which say {:.3}",
                told.value
            )));
        }
        self.notes.push(format!(
            "{}: the summary says {:.3}, and the lines before it say {:.3}, which their times confirm: that is taken",
            phase.to_lowercase(),
            mean.value,
            told.value
        ));
        Ok(told)
    }

    fn imported(&self) -> Imported {
        let mut figures = Figures::default();
        for (phase, mean) in &self.rows {
            // A phase that was switched off stands there with 0.000.
            figures.rate(phase.to_lowercase(), "op/s", mean.above_zero());
        }
        let mut notes = figures.missing("0.000, that is not run");
        notes.extend(self.notes.iter().cloned());
        if self.iterations != "1" {
            notes.push(format!(
                "each figure is the mean of {} iterations, whose own figures are not in the text",
                self.iterations
            ));
        }
        if !self.begun {
            notes.push("the text has the table alone: how mdtest was run is not known".to_owned());
        }
        let separator = if self.tasks.is_empty() { "" } else { " " };
        Imported {
            version: self.version.map(str::to_owned),
            settings: facts([
                ("command", self.command),
                ("iterations", self.iterations),
                ("tasks", self.tasks),
            ]),
            environment: facts([("path", self.place), ("file system", self.file_system)]),
            notes,
            against: self.notes.clone(),
            ..figures.imported("mdtest", format!("mdtest{separator}{}", self.tasks))
        }
    }
}

/// Reads `V-1:   File stat         :          7.251 sec,      44129.214 ops/sec`.
fn timed(line: TextLine<'_>) -> Result<Option<(&'static str, f64, PrintedFigure)>, ImportError> {
    let told = line
        .text
        .split_once("V-1:")
        .map_or("", |(_, told)| told.trim());
    let Some(phase) = PHASES.into_iter().find(|phase| told.starts_with(phase)) else {
        return Ok(None);
    };
    let read = || {
        let rest = told[phase.len()..].trim_start().trim_start_matches(':');
        let (seconds, rest) = rest.split_once(" sec,")?;
        let rate = rest.trim().strip_suffix(" ops/sec")?;
        let seconds = PrintedFigure::read(seconds.trim())?;
        Some((phase, seconds.value, PrintedFigure::read(rate.trim())?))
    };
    let timed = read().ok_or_else(|| line.refuse("… sec, … ops/sec"))?;
    Ok(Some(timed))
}

/// Returns true if what IOR and mdtest say of a file system is whole.
pub(super) fn is_file_system(told: &str) -> bool {
    !told.contains("Used FS:") || told.contains("Used Inodes:") && told.ends_with('%')
}

/// Reads `Path : value`, `Path: value`.
fn field<'a>(line: TextLine<'a>, name: &str) -> Option<&'a str> {
    let (before, value) = line.text.split_once(':')?;
    (before.trim() == name).then(|| value.trim())
}
