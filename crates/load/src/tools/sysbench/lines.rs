//! The lines of what sysbench printed: which of them are its own, and what stands in them.

use stackrace_base::printed::{ImportError, PrintedFigure};

const WHOLE: &str = "give the whole output of `sysbench … run`, from its first line to its last";

pub(super) const RUNNING: &str = "Running the test with following options:";
pub(super) const THREADS: &str = "Number of threads:";
pub(super) const LAST: &str = "execution time (avg/stddev):";
pub(super) const FLAGS: &str = "Extra file open flags:";
/// The first line of the results: of 0.4, and of 1.0.
pub(super) const RESULTS: [&str; 2] = ["Operations performed:", "File operations:"];

/// Beginnings of a report's lines; those of a run's results come last, in their order.
const BEGINNINGS: [&str; 41] = [
    RUNNING,
    THREADS,
    "Target transaction rate:",
    "Report intermediate results every",
    "Validation checks: on.",
    "Initializing random number generator",
    "Random number generator seed",
    FLAGS,
    "Block size",
    "Merging requests up to",
    "Number of random requests for random IO:",
    "Number of IO requests:",
    "Read/Write ratio for combined random IO test:",
    "Periodic FSYNC enabled, calling fsync() each",
    "Calling fsync() at the end of test, Enabled.",
    "Calling fsync() after each write operation.",
    "Using checksums validation.",
    "Using ",
    "Initializing worker threads...",
    "Threads started!",
    "Latency histogram (values are in milliseconds)",
    "value  ------------- distribution ------------- count",
    RESULTS[0],
    RESULTS[1],
    "Read ",
    "reads/s:",
    "writes/s:",
    "fsyncs/s:",
    "Throughput:",
    "read, M",
    "written, M",
    "General statistics:",
    "total ",
    "Latency (ms):",
    "min:",
    "avg:",
    "max:",
    "approx.",
    "percentile stats:",
    "sum:",
    "Threads fairness:",
];

/// Returns true if sysbench prints such a line about a run of fileio.
fn is_ours(line: &str) -> bool {
    let whole = [
        "Done.",
        "Test execution summary:",
        "per-request statistics:",
        "response time:",
    ];
    let numbered = [" each", " total file size", " Requests/sec executed"];
    let starts = |beginning: &&str| line.starts_with(*beginning);
    BEGINNINGS.iter().any(starts)
        || whole.contains(&line)
        || line.starts_with("Doing ") && line.ends_with(" test")
        || ["events (avg/stddev):", LAST].iter().any(starts)
        || line.starts_with(|c: char| c.is_ascii_digit())
            && (numbered.iter().any(|end| line.ends_with(end))
                || line.contains("th percentile:")
                || line.contains('|'))
        || line.starts_with("[ ") && line.contains("reads:")
        || is_banner(line)
}

/// Returns true if a line has a figure of a run, which counts only with the lines before it.
fn is_figure(line: &str) -> bool {
    let begins = [
        "reads/s:",
        "writes/s:",
        "fsyncs/s:",
        "read, M",
        "written, M",
        "total time:",
        "total number of events:",
        "total time taken by event execution:",
        "Latency (ms):",
        "events (avg/stddev):",
        LAST,
    ];
    let row = ["min:", "avg:", "max:", "sum:", "approx."];
    let row = row.iter().find_map(|name| line.strip_prefix(name));
    let number = |rest: &str| {
        let word = rest.split_whitespace().next_back().unwrap_or_default();
        PrintedFigure::read(word.trim_end_matches("ms")).is_some()
    };
    begins.iter().any(|begin| line.starts_with(begin))
        || row.is_some_and(number)
        || line.ends_with(" Requests/sec executed")
        || line.contains("th percentile:")
}

/// Returns true for any of the first lines of a part: a text may begin in the middle of a run.
fn begins_part(line: &str) -> bool {
    let line = line.trim();
    let mut firsts = [RUNNING, FLAGS].iter().chain(&RESULTS);
    is_banner(line) || firsts.any(|it| line.starts_with(it))
}

pub(super) fn is_banner(line: &str) -> bool {
    let rest = line.trim().strip_prefix("sysbench ");
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns true if a text holds results of fileio, their first line cut off or not.
pub(super) fn has_results(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    lines.any(|line| {
        RESULTS[0] == line.get(..RESULTS[0].len()).unwrap_or_default()
            || RESULTS[1] == line
            || line.ends_with(" Requests/sec executed")
    })
}

/// The lines of a text under their reader's finger.
pub(super) struct Lines<'a> {
    pub(super) all: Vec<&'a str>,
    /// The line that is read next, from 0.
    pub(super) at: usize,
    /// The labels of this report so far, each with its line.
    pub(super) labels: Vec<(String, usize)>,
}

impl<'a> Lines<'a> {
    /// The line to be read next; blank ones and those of others before it are skipped.
    pub(super) fn peek(&mut self) -> &'a str {
        while self
            .all
            .get(self.at)
            .is_some_and(|line| !is_ours(line.trim()))
        {
            self.at += 1;
        }
        self.all.get(self.at).map_or("", |line| line.trim())
    }

    pub(super) fn next(&mut self) -> &'a str {
        let line = self.peek();
        self.at += 1;
        line
    }

    pub(super) fn misread(&self, what: impl Into<String>) -> ImportError {
        ImportError::at(self.at, what, WHOLE)
    }

    /// A mistake in the line just taken.
    pub(super) fn behind(&self, what: impl Into<String>) -> ImportError {
        ImportError {
            line: self.at.max(1),
            ..self.misread(what)
        }
    }

    /// Returns what follows a label, if the next line has it.
    pub(super) fn option(&mut self, label: &str) -> Option<&'a str> {
        let rest = self.peek().strip_prefix(label)?;
        self.labels.push((label.to_owned(), self.at));
        self.at += 1;
        Some(rest.trim())
    }

    /// A mistake in the line with the first of these labels that the report has.
    pub(super) fn at_label(&self, labels: &[&str], what: impl Into<String>) -> ImportError {
        let line = |label: &&str| {
            let mut known = self.labels.iter();
            known.find(|(known, _)| known == label).map(|(_, at)| *at)
        };
        match labels.iter().find_map(line) {
            Some(at) => ImportError::at(at, what, WHOLE),
            None => self.behind(what),
        }
    }

    pub(super) fn take(&mut self, label: &str) -> Result<&'a str, ImportError> {
        self.option(label).ok_or_else(|| {
            let line: String = self.peek().chars().take(60).collect();
            self.misread(match line.is_empty() {
                true => format!("the run of sysbench ends where \"{label}\" should stand"),
                false => format!("\"{label}\" should stand here, and \"{line}\" does"),
            })
        })
    }

    /// A count after a label and before an end, if the line is there.
    pub(super) fn count_within(
        &mut self,
        label: &str,
        end: &str,
    ) -> Result<Option<u64>, ImportError> {
        let Some(rest) = self.option(label) else {
            return Ok(None);
        };
        self.count(rest.strip_suffix(end).unwrap_or("").trim())
            .map(Some)
    }

    /// Returns what stands between a label and an end.
    pub(super) fn within(&mut self, label: &str, end: &str) -> Result<&'a str, ImportError> {
        let rest = self.take(label)?;
        let within = rest.strip_suffix(end).map(str::trim_end);
        within.ok_or_else(|| self.behind(format!("\"{rest}\" does not end with \"{end}\"")))
    }

    pub(super) fn figure_after(&mut self, label: &str) -> Result<PrintedFigure, ImportError> {
        let word = self.take(label)?;
        self.figure(word)
    }

    pub(super) fn number_after(&mut self, label: &str) -> Result<f64, ImportError> {
        let word = self.take(label)?;
        self.number(word)
    }

    pub(super) fn count(&self, word: &str) -> Result<u64, ImportError> {
        let digits = word.bytes().all(|byte| byte.is_ascii_digit());
        let number = word.parse().ok().filter(|_| digits);
        number.ok_or_else(|| self.behind(format!("\"{word}\" is no whole number")))
    }

    pub(super) fn figure(&self, word: &str) -> Result<PrintedFigure, ImportError> {
        let figure = PrintedFigure::read(word);
        figure.ok_or_else(|| self.behind(format!("\"{word}\" is no number")))
    }

    pub(super) fn number(&self, word: &str) -> Result<f64, ImportError> {
        self.figure(word).map(|figure| figure.value)
    }

    pub(super) fn size(&self, word: &str) -> Result<PrintedFigure, ImportError> {
        let end = word
            .find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(word.len());
        let (number, unit) = word.split_at(end);
        let power = match unit {
            "b" | "B" => 0,
            // 0.4 writes Kb, and means 1024 bytes as 1.0 does with KiB.
            "Kb" | "KiB" => 1,
            "Mb" | "MiB" => 2,
            "Gb" | "GiB" => 3,
            "Tb" | "TiB" => 4,
            _ => return Err(self.behind(format!("\"{word}\" is no size"))),
        };
        // Sizes have five digits, and zeros at their end are left out.
        Ok(self.figure(number)?.of_digits(5) * 1024f64.powi(power))
    }

    /// Passes over the rest of a test that has nothing to do with files.
    pub(super) fn skip_part(&mut self) {
        while self.all.get(self.at).is_some_and(|line| !begins_part(line)) {
            self.at += 1;
        }
    }

    /// Goes to the next line that begins a report, or what is left of one; whether there is one.
    ///
    /// # Errors
    /// A figure of a run whose beginning is not there would be passed over.
    pub(super) fn seek_report(&mut self) -> Result<bool, ImportError> {
        let rest = &self.all[self.at.min(self.all.len())..];
        let skipped = rest.iter().position(|line| begins_part(line));
        let skipped = skipped.unwrap_or(rest.len());
        let lost = rest[..skipped]
            .iter()
            .position(|line| is_figure(line.trim()));
        if let Some(lost) = lost {
            self.at += lost;
            let line: String = self.peek().chars().take(60).collect();
            let what = format!("\"{line}\" is of a run whose first lines are not there");
            return Err(self.misread(what));
        }
        self.at += skipped;
        Ok(self.at < self.all.len())
    }

    /// Returns true if the text, or this run of it, ends here.
    pub(super) fn is_over(&mut self) -> bool {
        let next = self.peek();
        next.is_empty() || is_banner(next) || next == RUNNING
    }
}
