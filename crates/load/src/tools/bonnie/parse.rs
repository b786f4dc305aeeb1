//! Reads what bonnie++ printed: tables and CSV lines, alone or among other lines.
//!
//! The layout of a CSV line follows from its first field, and where that is no format, from the
//! number of fields. What was cut off or cannot be read is left out and said, where the rest is whole.
//! Headers of CSV are passed over: 2.00 prints 48 names for 50 columns. A table
//! with a CSV line of the same run below it is one report, that of the line, which has more digits;
//! where the two disagree, one of them is damaged.

use super::csv_line;
use super::field::{is_name, misread};
use super::print::text_rate;
use super::report::{BonnieColumn, BonnieFigure, BonnieLayout, BonnieReport, Cell};
use super::table;
use stackrace_base::printed::{ImportError, text};

/// Beginnings of both CSV headers.
const HEADERS: [&str; 2] = ["name,file_size,", "format_version,bonnie_version,"];
/// A line with this many commas was meant to be CSV.
const COMMAS: usize = 20;
/// Every report in a text, in the order in which they stand there.
///
/// # Errors
/// A table or CSV line that cannot be understood, with its place, or no report at all.
pub fn parse(text: &str) -> Result<Vec<BonnieReport>, ImportError> {
    let (lines, doubtful) = whole_lines(text);
    let mut read = ReadSoFar::default();
    let mut at = 0;
    while let Some(line) = lines.get(at).copied() {
        let table = if table::begins(line) {
            Some(table::read(&lines, at))
        } else {
            let middle = table::begins_in_the_middle(line);
            middle.then(|| read.files_alone(&lines, at))
        };
        match table {
            Some(Ok((report, next))) => {
                read.reports.push(report);
                (at, read.above) = (next, true);
                continue;
            }
            // Not an error yet: a CSV line below may tell the same run.
            Some(Err(error)) if read.unreadable.is_none() => {
                (read.unreadable, read.before) = (Some(error), read.reports.len());
            }
            Some(Err(_)) => {}
            None => {}
        }
        at += 1;
        let header = HEADERS.iter().any(|header| line.starts_with(header));
        if !header && line.matches(',').count() >= COMMAS {
            let last = at == lines.len();
            read.csv(line.trim(), at, last, doubtful)?;
        }
    }
    read.reports(lines.len())
}

/// State of the reader after the text so far.
#[derive(Default)]
struct ReadSoFar {
    reports: Vec<BonnieReport>,
    /// Set if the last report is a table that a CSV line may follow.
    above: bool,
    /// Reason why a table could not be read, until what follows it tells the same.
    unreadable: Option<ImportError>,
    /// Reports before that table.
    before: usize,
}

impl ReadSoFar {
    /// The half about files of a table whose beginning is cut off, and not torn from the half before it.
    fn files_alone(&self, lines: &[&str], at: usize) -> Result<(BonnieReport, usize), ImportError> {
        let before = self.reports.last().filter(|_| self.above);
        match before.is_some_and(|table| table.files.is_none()) {
            true => Err(misread(
                at + 1,
                "something stands between this half of the table and the one about data",
                "give the table as bonnie++ printed it, blanks included",
            )),
            false => table::read_files(lines, at),
        }
    }

    /// Takes a CSV line, which has this number in its text. `doubtful`: the text ends in it.
    fn csv(
        &mut self,
        text: &str,
        at: usize,
        last: bool,
        doubtful: bool,
    ) -> Result<(), ImportError> {
        let mut report = match (csv_line(text, at), self.reports.last_mut()) {
            (Ok(report), _) => report,
            // The end of a text that was cut off, behind a table that says the same.
            (Err(error), Some(table)) if self.above && last => {
                let what = format!("the CSV line below the table: {}", error.what);
                table.left_out.get_or_insert(what);
                return Ok(());
            }
            (Err(error), _) => return Err(error),
        };
        if !is_name(&report.name) {
            let what = format!(
                "more than a machine's name begins this line: {:?}",
                text::cut(&report.name)
            );
            let next = "give the line as bonnie++ printed it, from its beginning";
            return Err(misread(at, what, next));
        }
        if doubtful && last {
            leave_out_the_end(&mut report);
        }
        if let Some(error) = self.unreadable.take() {
            let what = format!("the table above the CSV line: {}", error.what);
            report.left_out.get_or_insert(what);
        }
        match self.reports.last_mut().filter(|_| self.above) {
            Some(table) if same_run(table, &report) => {
                agree(table, &report, at)?;
                // CSV of 1.03 does not say "1.03e"; the banner of the table does.
                let program = std::mem::take(&mut table.program);
                *table = BonnieReport { program, ..report };
            }
            _ => self.reports.push(report),
        }
        self.above = false;
        Ok(())
    }

    /// Returns all reports, at the end of a text of so many lines.
    fn reports(mut self, lines: usize) -> Result<Vec<BonnieReport>, ImportError> {
        let count = self.reports.len();
        match (self.unreadable, self.reports.last_mut()) {
            // The last table was cut off.
            (Some(error), Some(last)) if self.above && self.before == count => {
                let what = format!("line {} of the text: {}", error.line, error.what);
                last.left_out.get_or_insert(what);
            }
            (Some(error), _) => return Err(error),
            (None, _) => {}
        }
        if self.reports.is_empty() {
            return Err(misread(
                lines.max(1),
                "no table and no CSV line of bonnie++ is in this text",
                "give all that bonnie++ printed on standard output, and with -q on standard error",
            ));
        }
        Ok(self.reports)
    }
}

/// The lines of a text, and whether digits may be missing at the end of the last one: bonnie++ ends
/// every line, and a text that was copied may end anywhere.
fn whole_lines(text: &str) -> (Vec<&str>, bool) {
    let mut lines: Vec<&str> = text::lines(text).iter().map(|line| line.text).collect();
    let last = lines.last().copied().unwrap_or_default().trim();
    // A unit, a row of plus signs and the head of a table end where they should.
    let ended = last.is_empty()
        || last.ends_with("us")
        || last.ends_with("ms")
        || last.ends_with("--")
        || last.ends_with("+++");
    let csv = last.matches(',').count() >= COMMAS;
    // A row that was cut off may end in a shorter number that looks whole.
    if !ended && !csv {
        lines.pop();
    }
    (lines, !ended && csv)
}

/// Takes out the figure at the end of a CSV line that may lack digits.
fn leave_out_the_end(report: &mut BonnieReport) {
    let last = &mut report.cells[BonnieColumn::RandomDelete as usize];
    // The last field: a processor's percentage in 1.03, a latency in the others.
    match report.layout {
        BonnieLayout::V1_03 => last.figure = None,
        _ => last.latency_ns = None,
    }
    let what = "the text ends in the middle of a line: random delete".to_owned();
    report.left_out = Some(what);
}

/// Returns true if a table and a CSV line are about the same run, as far as names tell: a table may
/// show only the beginning of one.
fn same_run(table: &BonnieReport, csv: &BonnieReport) -> bool {
    table.layout == csv.layout && csv.name.starts_with(table.name.as_str())
}

/// Refuses a CSV line that says something else than the table above it.
fn agree(table: &BonnieReport, csv: &BonnieReport, line: usize) -> Result<(), ImportError> {
    let sizes = |report: &BonnieReport| report.data.as_ref().map(|data| data.size_mib);
    // A half of the table may be missing.
    let (data, files) = (table.data.is_some(), table.files.is_some());
    let wrong = if data && sizes(table) != sizes(csv) || files && table.files != csv.files {
        Some("sizes".to_owned())
    } else {
        let of_data = |column: &BonnieColumn| *column as usize <= BonnieColumn::Seeks as usize;
        let there = |column: &BonnieColumn| if of_data(column) { data } else { files };
        let mut columns = BonnieColumn::ALL.into_iter().filter(there);
        let differs = columns.find(|column| {
            let at = *column as usize;
            !same(table.layout, table.cells[at], csv.cells[at], *column)
        });
        differs.map(|column| column.name().to_owned())
    };
    match wrong {
        None => Ok(()),
        Some(what) => Err(misread(
            line,
            format!("this line and the table above it disagree: {what}"),
            "one of them was changed: give the text as bonnie++ printed it, or only the line",
        )
        .contradicting()),
    }
}

/// Returns true if a cell of a table and one of a CSV line may be the same figure.
fn same(layout: BonnieLayout, table: Cell, csv: Cell, column: BonnieColumn) -> bool {
    let figures = match (table.figure, csv.figure) {
        (None, None) | (Some(BonnieFigure::TooFast), Some(BonnieFigure::TooFast)) => true,
        (
            // Tables of 2.00 have no rates of files, so only the processor can be compared.
            Some(BonnieFigure::Garbage { cpu_percent, .. }),
            Some(BonnieFigure::Rate {
                cpu_percent: csv, ..
            }),
        ) => cpu_percent == csv,
        (
            Some(BonnieFigure::Rate { per_s, cpu_percent }),
            Some(BonnieFigure::Rate {
                per_s: csv,
                cpu_percent: csv_cpu,
            }),
        ) => {
            // A CSV line cuts off what the table still rounds by.
            let cut_off = match column {
                BonnieColumn::Seeks => [-0.05, 0.0, 0.05],
                _ => [0.0, 0.5, 0.999],
            };
            let shown = text_rate(layout, column, per_s.value);
            let like = |more| text_rate(layout, column, csv.value + more) == shown;
            cpu_percent == csv_cpu && cut_off.into_iter().any(like)
        }
        _ => false,
    };
    // A row of latencies may have been cut off.
    figures && (table.latency_ns.is_none() || table.latency_ns == csv.latency_ns)
}
