//! Reads what bonnie++ printed: tables and CSV lines, alone or among other lines.
//!
//! The layout of a CSV line follows from its first field, and where that is no format, from the
//! number of fields. What was cut off or cannot be read is left out and said, where the rest is whole.
//! Headers of CSV are passed over: 2.00 prints 48 names for 50 columns. A table
//! with a CSV line of the same run below it is one report, that of the line, which has more digits;
//! where the two disagree, one of them is damaged.

use super::field::{
    chunk_bytes, data_words, files_words, latency_ns, misread, number, size_mib, small, whole,
};
use super::print::text_rate;
use super::report::{
    BonnieColumn, BonnieFigure, BonnieFiles, BonnieLayout, BonnieReport, Cell, Data, Made,
};
use super::table;
use crate::printed::{ImportError, text};

/// How both CSV headers begin.
const HEADERS: [&str; 2] = ["name,file_size,", "format_version,bonnie_version,"];
/// A line with this many commas was meant to be CSV.
const COMMAS: usize = 20;
/// Every report in a text, in the order in which they stand there.
///
/// # Errors
/// A table or CSV line that cannot be understood, with its place, or no report at all.
pub(crate) fn parse(text: &str) -> Result<Vec<BonnieReport>, ImportError> {
    let (lines, doubtful) = whole_lines(text);
    let mut read = ReadSoFar::default();
    let mut at = 0;
    while let Some(line) = lines.get(at).copied() {
        let table = if table::begins(line) {
            Some(table::read(&lines, at))
        } else {
            let middle = table::begins_in_the_middle(line);
            middle.then(|| table::read_files(&lines, at))
        };
        match table {
            Some(Ok((report, next))) => {
                read.reports.push(report);
                (at, read.above) = (next, true);
                continue;
            }
            // Not an error yet: a CSV line below may tell the same run.
            Some(Err(error)) => read.unreadable = read.unreadable.or(Some(error)),
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

/// What was read of a text so far.
#[derive(Default)]
struct ReadSoFar {
    reports: Vec<BonnieReport>,
    /// Whether the last report is a table that a CSV line may follow.
    above: bool,
    /// Why a table could not be read, until what follows it tells the same.
    unreadable: Option<ImportError>,
}

impl ReadSoFar {
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

    /// All of them, at the end of a text of so many lines.
    fn reports(mut self, lines: usize) -> Result<Vec<BonnieReport>, ImportError> {
        match (self.unreadable, self.reports.last_mut()) {
            (Some(error), Some(last)) if self.above => {
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

/// Whether a table and a CSV line are about the same run, as far as names tell: a table may show
/// only the beginning of one.
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
        )),
    }
}

/// Whether a cell of a table and one of a CSV line may be the same figure.
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
            let shown = text_rate(layout, column, per_s);
            let like = |more| text_rate(layout, column, csv + more) == shown;
            cpu_percent == csv_cpu && cut_off.into_iter().any(like)
        }
        _ => false,
    };
    // A row of latencies may have been cut off.
    figures && (table.latency_ns.is_none() || table.latency_ns == csv.latency_ns)
}

/// The fields of a CSV line, taken one after the other.
struct Fields<'a> {
    rest: std::str::Split<'a, char>,
    line: usize,
    /// Number of the field taken last, from 1.
    number: usize,
}

impl<'a> Fields<'a> {
    fn next(&mut self) -> &'a str {
        self.number += 1;
        self.rest.next().unwrap_or_default()
    }

    fn wrong(&self, field: &str, what: &str) -> ImportError {
        let what = format!("field {} is {field:?}, not {what}", self.number);
        misread(self.line, what, "give the line as bonnie++ printed it")
    }

    /// The next field as something that may be missing.
    fn may<T>(
        &mut self,
        read: fn(&str) -> Option<T>,
        what: &str,
    ) -> Result<Option<T>, ImportError> {
        match self.next() {
            "" => Ok(None),
            field => read(field).map(Some).ok_or_else(|| self.wrong(field, what)),
        }
    }

    /// The next two as the rate and the processor of a phase.
    fn figure(&mut self) -> Result<Option<BonnieFigure>, ImportError> {
        let rate = self.next();
        let figure = match rate {
            "" | "+++++" => None,
            rate => Some(number(rate).ok_or_else(|| self.wrong(rate, "a rate"))?),
        };
        let cpu = self.next();
        match (rate, figure, cpu) {
            ("", _, "") => Ok(None),
            ("+++++", _, "+++") => Ok(Some(BonnieFigure::TooFast)),
            (_, Some(per_s), cpu) => {
                let cpu_percent = small(cpu).ok_or_else(|| self.wrong(cpu, "a percentage"))?;
                Ok(Some(BonnieFigure::Rate { per_s, cpu_percent }))
            }
            _ => Err(self.wrong(cpu, "what belongs to the field before it")),
        }
    }

    fn figures(&mut self, cells: &mut [Cell]) -> Result<(), ImportError> {
        for cell in cells {
            cell.figure = self.figure()?;
        }
        Ok(())
    }
}

/// One line of CSV, which has this number in its text.
///
/// # Errors
/// It cannot be understood.
pub(crate) fn csv_line(text: &str, line: usize) -> Result<BonnieReport, ImportError> {
    let mut fields = Fields {
        rest: text.split(','),
        line,
        number: 0,
    };
    let count = text.split(',').count();
    // 1.03 names no format: its first field is the machine, so only the number of fields tells.
    // The format of 2.00 calls itself 1.98.
    let layout = match (text.split(',').next().unwrap_or_default(), count) {
        ("1.96", 48) => BonnieLayout::V1_96,
        ("1.97", 48) => BonnieLayout::V1_97,
        ("1.98", 50) => BonnieLayout::V2_00,
        ("1.96" | "1.97" | "1.98", _) | (_, ..27 | 28..) => {
            return Err(misread(
                line,
                format!(
                    "{count} fields: bonnie++ 1.03 prints 27, 1.96 and 1.97 print 48, 2.00 prints 50"
                ),
                "take commas out of the machine's name; lines of 1.96 without I/O lack fields and cannot be told apart",
            ));
        }
        (_, 27) => return csv_1_03(fields),
    };
    csv_later(layout, &mut fields)
}

fn csv_1_03(mut fields: Fields<'_>) -> Result<BonnieReport, ImportError> {
    let name = fields.next().to_owned();
    let data = fields.may(|text| data_words(text).map(|(data, _)| data), "a size")?;
    let mut cells = [Cell::default(); 12];
    fields.figures(&mut cells[..6])?;
    let files = fields.may(files_words, "a number of files")?;
    fields.figures(&mut cells[6..])?;
    Ok(BonnieReport {
        layout: BonnieLayout::V1_03,
        program: "1.03".to_owned(),
        name,
        concurrency: 1,
        seed: None,
        data,
        files,
        cells,
        left_out: None,
    })
}

fn csv_later(layout: BonnieLayout, fields: &mut Fields<'_>) -> Result<BonnieReport, ImportError> {
    // The format, which has chosen the layout already.
    fields.next();
    let program = fields.next().to_owned();
    let name = fields.next().to_owned();
    let concurrency = fields.may(small, "a number of copies")?.unwrap_or(1);
    let seed = Some(fields.next().to_owned()).filter(|seed| !seed.is_empty());
    let size = fields.may(size_mib, "a size")?;
    let chunk = fields.may(chunk_bytes, "a chunk")?;
    // Format 1.98 put two fields in here: 50 columns instead of 48.
    let (seeks, seekers) = match layout {
        BonnieLayout::V2_00 => (
            fields.may(small, "a number of seeks")?,
            fields.may(small, "a number of seekers")?,
        ),
        BonnieLayout::V1_03 | BonnieLayout::V1_96 | BonnieLayout::V1_97 => (None, None),
    };
    let mut cells = [Cell::default(); 12];
    fields.figures(&mut cells[..6])?;
    let files = csv_files(fields)?;
    fields.figures(&mut cells[6..])?;
    for cell in &mut cells {
        cell.latency_ns = fields.may(latency_ns, "a latency")?;
    }
    Ok(BonnieReport {
        layout,
        program,
        name,
        concurrency,
        seed,
        data: size.map(|size_mib| Data {
            size_mib,
            chunk,
            seeks,
            seekers,
        }),
        files,
        cells,
        left_out: None,
    })
}

/// Five fields that speak of files. Where the number of directories is missing it stands in the
/// field behind it, which is named after the chunk's size.
fn csv_files(fields: &mut Fields<'_>) -> Result<Option<BonnieFiles>, ImportError> {
    let number = fields.may(whole, "a number of files")?;
    let max = fields.next();
    let links = match max {
        "link" => Some(Made::HardLinks),
        "symlink" => Some(Made::SymbolicLinks),
        _ => None,
    };
    let max = match (max, links) {
        ("", _) | (_, Some(_)) => 0,
        (max, None) => whole(max).ok_or_else(|| fields.wrong(max, "a size"))?,
    };
    let min = fields.may(whole, "a size")?.unwrap_or(0);
    let directories = fields.may(small, "a number of directories")?;
    let behind = fields.may(small, "a number of directories")?;
    Ok(number.map(|number| BonnieFiles {
        number,
        made: links.unwrap_or(Made::Sizes { max, min }),
        directories: directories.or(behind).unwrap_or(1),
    }))
}
