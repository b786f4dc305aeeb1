//! Reads what bonnie++ printed: tables and CSV lines, alone or among other lines.
//!
//! The layout of a CSV line follows from its first field, and where that is no format, from the
//! number of fields. Headers of CSV are passed over: 2.00 prints 48 names for 50 columns. A table
//! with a CSV line of the same run below it is one report, that of the line, which has more digits;
//! where the two disagree, one of them is damaged.

use super::super::Misread;
use super::print::{FIELD, text_rate};
use super::{Cell, Column, Data, Figure, Files, Layout, Made, Report};

/// What a banner says first.
const BANNER: &str = "Version ";
const DATA_BANNER: &str = "------Sequential Output------";
const FILES_BANNER: &str = "------Sequential Create------";
/// How both CSV headers begin.
const HEADERS: [&str; 2] = ["name,file_size,", "format_version,bonnie_version,"];
/// A line with this many commas was meant to be CSV.
const COMMAS: usize = 20;
/// Larger numbers than these are no sizes, and no rates.
const NUMBER_MAX: f64 = 1e15;

/// Every report in a text, in the order in which they stand there.
///
/// # Errors
/// A table or CSV line that cannot be understood, with its place, or no report at all.
pub(crate) fn parse(text: &str) -> Result<Vec<Report>, Misread> {
    let lines: Vec<&str> = text.lines().collect();
    let mut reports: Vec<Report> = Vec::new();
    // Whether the last report is a table that a CSV line may follow.
    let mut table = false;
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        if line.starts_with(BANNER) && line.contains("------") {
            let mut reader = Reader { lines: &lines, at };
            reports.push(reader.table()?);
            (at, table) = (reader.at, true);
            continue;
        }
        at += 1;
        if HEADERS.iter().any(|header| line.starts_with(header)) {
            continue;
        }
        if line.matches(',').count() >= COMMAS {
            let report = csv(line, at)?;
            match reports.last_mut().filter(|_| table) {
                Some(last) if same_run(last, &report) => {
                    agree(last, &report, at)?;
                    let program = std::mem::take(&mut last.program);
                    *last = Report { program, ..report };
                }
                _ => reports.push(report),
            }
            table = false;
        }
    }
    if reports.is_empty() {
        return Err(misread(
            lines.len().max(1),
            "no table and no CSV line of bonnie++ is in this text",
            "give all that bonnie++ printed on standard output, and with -q on standard error",
        ));
    }
    Ok(reports)
}

fn misread(line: usize, what: impl Into<String>, next: &str) -> Misread {
    Misread {
        line,
        what: what.into(),
        next: next.to_owned(),
    }
}

/// Whether a table and a CSV line are about the same run, as far as names tell: a table may show
/// only the beginning of one.
fn same_run(table: &Report, csv: &Report) -> bool {
    table.layout == csv.layout && csv.name.starts_with(table.name.as_str())
}

/// Refuses a CSV line that says something else than the table above it.
fn agree(table: &Report, csv: &Report, line: usize) -> Result<(), Misread> {
    let sizes = |report: &Report| report.data.as_ref().map(|data| data.size_mib);
    let wrong = if sizes(table) != sizes(csv) || table.files != csv.files {
        Some("sizes".to_owned())
    } else {
        let mut columns = Column::ALL.into_iter();
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
fn same(layout: Layout, table: Cell, csv: Cell, column: Column) -> bool {
    let figures = match (table.figure, csv.figure) {
        (None, None) | (Some(Figure::TooFast), Some(Figure::TooFast)) => true,
        (
            Some(Figure::Garbage { cpu_percent, .. }),
            Some(Figure::Rate {
                cpu_percent: csv, ..
            }),
        ) => cpu_percent == csv,
        (
            Some(Figure::Rate { per_s, cpu_percent }),
            Some(Figure::Rate {
                per_s: csv,
                cpu_percent: csv_cpu,
            }),
        ) => {
            // A CSV line cuts off what the table still rounds by.
            let cut_off = match column {
                Column::Seeks => [-0.05, 0.0, 0.05],
                _ => [0.0, 0.5, 0.999],
            };
            let shown = text_rate(layout, column, per_s);
            let like = |more| text_rate(layout, column, csv + more) == shown;
            cpu_percent == csv_cpu && cut_off.into_iter().any(like)
        }
        _ => false,
    };
    figures && table.latency_ns == csv.latency_ns
}

/// A whole number, or one with decimals, and nothing else; within reason.
fn number(text: &str) -> Option<f64> {
    let plain = |c: char| c.is_ascii_digit() || c == '.';
    let begins = text.starts_with(|c: char| c.is_ascii_digit());
    let number: f64 = text
        .parse()
        .ok()
        .filter(|_| begins && text.chars().all(plain))?;
    (number <= NUMBER_MAX).then_some(number)
}

fn whole(text: &str) -> Option<u64> {
    let number = number(text).filter(|_| !text.contains('.'))?;
    Some(number as u64)
}

fn small(text: &str) -> Option<u32> {
    whole(text).and_then(|number| u32::try_from(number).ok())
}

/// `1G` or `1100M`, in MiB.
fn size_mib(text: &str) -> Option<u64> {
    match text.strip_suffix('G') {
        Some(gib) => whole(gib)?.checked_mul(1024),
        None => whole(text.strip_suffix('M')?),
    }
}

/// `64k` or `512`, in bytes.
fn chunk_bytes(text: &str) -> Option<u64> {
    match text.strip_suffix('k') {
        Some(kib) => whole(kib)?.checked_mul(1024),
        None => whole(text),
    }
}

/// `62186us`, `102ms` or `5s`, in ns.
fn latency_ns(text: &str) -> Option<u64> {
    let (digits, unit_ns) = match text.strip_suffix("us") {
        Some(digits) => (digits, 1_000),
        None => match text.strip_suffix("ms") {
            Some(digits) => (digits, 1_000_000),
            None => (text.strip_suffix('s')?, 1_000_000_000),
        },
    };
    whole(digits)?.checked_mul(unit_ns)
}

/// `8`, `8:16384:512`, `8:link`, with `/4` behind it.
fn files_words(text: &str) -> Option<Files> {
    let (words, directories) = match text.split_once('/') {
        Some((words, directories)) => (words, small(directories)?),
        None => (text, 1),
    };
    let mut words = words.split(':');
    let number = whole(words.next()?)?;
    let made = match (words.next(), words.next()) {
        (None, _) => Made::Sizes { max: 0, min: 0 },
        (Some("link"), None) => Made::HardLinks,
        (Some("symlink"), None) => Made::SymbolicLinks,
        (Some(max), min) => Made::Sizes {
            max: whole(max)?,
            min: min.map_or(Some(0), whole)?,
        },
    };
    words.next().is_none().then_some(Files {
        number,
        made,
        directories,
    })
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

    fn wrong(&self, field: &str, what: &str) -> Misread {
        let what = format!("field {} is {field:?}, not {what}", self.number);
        misread(self.line, what, "give the line as bonnie++ printed it")
    }

    /// The next field as something that may be missing.
    fn may<T>(&mut self, read: fn(&str) -> Option<T>, what: &str) -> Result<Option<T>, Misread> {
        match self.next() {
            "" => Ok(None),
            field => read(field).map(Some).ok_or_else(|| self.wrong(field, what)),
        }
    }

    /// The next two as the rate and the processor of a phase.
    fn figure(&mut self) -> Result<Option<Figure>, Misread> {
        let rate = self.next();
        let figure = match rate {
            "" | "+++++" => None,
            rate => Some(number(rate).ok_or_else(|| self.wrong(rate, "a rate"))?),
        };
        let cpu = self.next();
        match (rate, figure, cpu) {
            ("", _, "") => Ok(None),
            ("+++++", _, "+++") => Ok(Some(Figure::TooFast)),
            (_, Some(per_s), cpu) => {
                let cpu_percent = small(cpu).ok_or_else(|| self.wrong(cpu, "a percentage"))?;
                Ok(Some(Figure::Rate { per_s, cpu_percent }))
            }
            _ => Err(self.wrong(cpu, "what belongs to the field before it")),
        }
    }

    fn figures(&mut self, cells: &mut [Cell]) -> Result<(), Misread> {
        for cell in cells {
            cell.figure = self.figure()?;
        }
        Ok(())
    }
}

/// One line of CSV.
fn csv(text: &str, line: usize) -> Result<Report, Misread> {
    let mut fields = Fields {
        rest: text.split(','),
        line,
        number: 0,
    };
    let count = text.split(',').count();
    let layout = match (text.split(',').next().unwrap_or_default(), count) {
        ("1.96", 48) => Layout::V1_96,
        ("1.97", 48) => Layout::V1_97,
        ("1.98", 50) => Layout::V2_00,
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

fn csv_1_03(mut fields: Fields<'_>) -> Result<Report, Misread> {
    let name = fields.next().to_owned();
    let data = fields.may(|text| data_words(text).map(|(data, _)| data), "a size")?;
    let mut cells = [Cell::default(); 12];
    fields.figures(&mut cells[..6])?;
    let files = fields.may(files_words, "a number of files")?;
    fields.figures(&mut cells[6..])?;
    Ok(Report {
        layout: Layout::V1_03,
        program: "1.03".to_owned(),
        name,
        concurrency: 1,
        seed: None,
        data,
        files,
        cells,
    })
}

fn csv_later(layout: Layout, fields: &mut Fields<'_>) -> Result<Report, Misread> {
    fields.next();
    let program = fields.next().to_owned();
    let name = fields.next().to_owned();
    let concurrency = fields.may(small, "a number of copies")?.unwrap_or(1);
    let seed = Some(fields.next().to_owned()).filter(|seed| !seed.is_empty());
    let size = fields.may(size_mib, "a size")?;
    let chunk = fields.may(chunk_bytes, "a chunk")?;
    let (seeks, seekers) = match layout {
        Layout::V2_00 => (
            fields.may(small, "a number of seeks")?,
            fields.may(small, "a number of seekers")?,
        ),
        Layout::V1_03 | Layout::V1_96 | Layout::V1_97 => (None, None),
    };
    let mut cells = [Cell::default(); 12];
    fields.figures(&mut cells[..6])?;
    let files = csv_files(fields)?;
    fields.figures(&mut cells[6..])?;
    for cell in &mut cells {
        cell.latency_ns = fields.may(latency_ns, "a latency")?;
    }
    Ok(Report {
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
    })
}

/// Five fields that speak of files. Where the number of directories is missing it stands in the
/// field behind it, which is named after the chunk's size.
fn csv_files(fields: &mut Fields<'_>) -> Result<Option<Files>, Misread> {
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
    Ok(number.map(|number| Files {
        number,
        made: links.unwrap_or(Made::Sizes { max, min }),
        directories: directories.or(behind).unwrap_or(1),
    }))
}

/// `1G:64k:2:20000`: size, chunk, copies, seeks; what is usual may be missing.
fn data_words(text: &str) -> Option<(Data, u32)> {
    let mut words = text.split(':');
    let size_mib = size_mib(words.next()?)?;
    let chunk = match words.next() {
        None | Some("") => None,
        Some(chunk) => Some(chunk_bytes(chunk)?),
    };
    let mut more = || match words.next() {
        None | Some("") => Some(None),
        Some(number) => small(number).map(Some),
    };
    let (concurrency, seeks) = (more()?.unwrap_or(1), more()?);
    let data = Data {
        size_mib,
        chunk,
        seeks,
        seekers: None,
    };
    words.next().is_none().then_some((data, concurrency))
}

/// Goes through the lines of a table.
struct Reader<'a> {
    lines: &'a [&'a str],
    /// The line that is read next, from 0.
    at: usize,
}

impl<'a> Reader<'a> {
    fn line(&self) -> &'a str {
        self.lines.get(self.at).copied().unwrap_or_default()
    }

    fn wrong(&self, what: impl Into<String>) -> Misread {
        let next = "give the table as bonnie++ printed it, blanks included";
        misread(self.at + 1, what, next)
    }

    /// Passes over a line that must hold some words.
    fn pass(&mut self, words: &str) -> Result<&'a str, Misread> {
        let line = self.line();
        if !line.contains(words) {
            return Err(self.wrong(format!("{words:?} is missing from this line of the table")));
        }
        self.at += 1;
        Ok(line)
    }

    /// One table: data, files, or one after the other.
    fn table(&mut self) -> Result<Report, Misread> {
        let banner = self.line();
        let program = banner[BANNER.len()..].split('-').next().unwrap_or_default();
        let program = program.trim();
        let layout = match program.get(..4).unwrap_or(program) {
            "1.03" => Layout::V1_03,
            "1.96" => Layout::V1_96,
            "1.97" => Layout::V1_97,
            "1.98" | "2.00" => Layout::V2_00,
            _ => {
                let what = format!("bonnie++ {program:?} is not known: 1.03, 1.96, 1.97, 2.00 are");
                return Err(self.wrong(what));
            }
        };
        let mut report = Report {
            layout,
            program: program.to_owned(),
            name: String::new(),
            concurrency: 1,
            seed: None,
            data: None,
            files: None,
            cells: [Cell::default(); 12],
        };
        if banner.contains(DATA_BANNER) {
            self.data(&mut report)?;
            let next = self.line();
            let goes_on = match layout {
                Layout::V1_03 => next.starts_with(' '),
                _ => next.starts_with(&banner[..FIELD.min(banner.len())]),
            };
            if goes_on && next.contains(FILES_BANNER) {
                self.files(&mut report)?;
            }
        } else {
            self.files(&mut report)?;
        }
        Ok(report)
    }

    fn data(&mut self, report: &mut Report) -> Result<(), Misread> {
        self.pass(DATA_BANNER)?;
        let titles = self.pass("-Per Chr- --Block-- -Rewrite-")?;
        if let Some(rest) = titles.strip_prefix("Concurrency") {
            let number = rest.split('-').next().unwrap_or_default().trim();
            let number = small(number).ok_or_else(|| self.wrong(format!("{number:?} copies")))?;
            report.concurrency = number;
        }
        self.pass(" %CP")?;
        let (field, rest) = self.field()?;
        let Some((name, words)) = field.trim_end().rsplit_once(' ') else {
            return Err(self.wrong("the machine's name and the size are not apart"));
        };
        let words = data_words(words);
        let Some((data, concurrency)) = words else {
            return Err(self.wrong("the size is missing in front of the rates"));
        };
        report.name = name.trim_end().to_owned();
        report.concurrency = report.concurrency.max(concurrency);
        report.data = Some(data);
        self.row(rest, report, &Column::ALL[..6])
    }

    fn files(&mut self, report: &mut Report) -> Result<(), Misread> {
        self.pass(FILES_BANNER)?;
        let titles = self.pass("-Create-- --Read--- -Delete--")?;
        let name = titles.split(" -Create--").next().unwrap_or_default().trim();
        if report.data.is_none() {
            report.name = name.to_owned();
        }
        self.pass(" %CP")?;
        let (field, rest) = self.field()?;
        report.files = files_words(field.trim());
        if report.files.is_none() {
            return Err(self.wrong("the number of files is missing in front of the rates"));
        }
        self.row(rest, report, &Column::ALL[6..])
    }

    /// What stands before the first rate of a row, and the rest of it.
    fn field(&self) -> Result<(String, &'a [u8]), Misread> {
        match self.line().as_bytes().split_at_checked(FIELD) {
            Some((field, rest)) => Ok((String::from_utf8_lossy(field).into_owned(), rest)),
            None => Err(self.wrong("a row of figures is missing")),
        }
    }

    /// The figures of a row and the latencies below it.
    fn row(&mut self, rest: &[u8], report: &mut Report, columns: &[Column]) -> Result<(), Misread> {
        let mut cells = Cells { rest };
        for column in columns {
            let at = *column as usize;
            report.cells[at].figure = self.figure(&mut cells, report.layout, *column)?;
        }
        if !cells.is_over() {
            return Err(self.wrong("there is more in this row than six figures"));
        }
        self.at += 1;
        if report.layout == Layout::V1_03 {
            return Ok(());
        }
        let line = self.pass("Latency")?.as_bytes();
        self.at -= 1;
        let mut cells = Cells {
            rest: line.get(17..).unwrap_or_default(),
        };
        for column in columns {
            let cell = cells.next(9, 10).map_err(|what| self.wrong(what))?;
            let wrong = |text: &str| self.wrong(format!("{text:?} is no latency"));
            report.cells[*column as usize].latency_ns = match cell {
                None => None,
                Some(text) => Some(latency_ns(&text).ok_or_else(|| wrong(&text))?),
            };
        }
        if !cells.is_over() {
            return Err(self.wrong("there is more in this row than six latencies"));
        }
        self.at += 1;
        Ok(())
    }

    /// The rate and the processor of one column.
    fn figure(
        &self,
        cells: &mut Cells<'_>,
        layout: Layout,
        column: Column,
    ) -> Result<Option<Figure>, Misread> {
        let rate = cells.next(5, 10).map_err(|what| self.wrong(what))?;
        let Some(rate) = rate else {
            return Ok(None);
        };
        let cpu = cells.next(3, 4).map_err(|what| self.wrong(what))?;
        let cpu = cpu.unwrap_or_default();
        if (rate.as_str(), cpu.as_str()) == ("+++++", "+++") {
            return Ok(Some(Figure::TooFast));
        }
        let wrong = || {
            let name = column.name();
            self.wrong(format!("{rate:?} and {cpu:?} are no figures of {name}"))
        };
        let cpu_percent = small(&cpu).ok_or_else(wrong)?;
        if layout == Layout::V2_00 && column as usize > Column::Seeks as usize {
            let shown = whole(&rate).ok_or_else(wrong)?;
            return Ok(Some(Figure::Garbage { shown, cpu_percent }));
        }
        let per_s = if layout == Layout::V2_00 && column.moves_data() {
            let scaled = |unit, kib: f64| Some(number(rate.strip_suffix(unit)?)? * kib);
            scaled('k', 1.0)
                .or_else(|| scaled('m', 1024.0))
                .or_else(|| scaled('g', 1_048_576.0))
        } else {
            number(&rate)
        };
        let per_s = per_s.ok_or_else(wrong)?;
        Ok(Some(Figure::Rate { per_s, cpu_percent }))
    }
}

/// The cells of a row: a blank, then a word that is right-aligned, and wider than its cell where it
/// does not fit.
struct Cells<'a> {
    rest: &'a [u8],
}

impl Cells<'_> {
    fn is_over(&self) -> bool {
        self.rest.iter().all(u8::is_ascii_whitespace)
    }

    /// The next word, right-aligned in `width`; none: `blanks` blanks stand in its place, or the row
    /// is over.
    fn next(&mut self, width: usize, blanks: usize) -> Result<Option<String>, &'static str> {
        let empty = self.rest.len().min(blanks);
        if self.rest[..empty].iter().all(|byte| *byte == b' ') {
            self.rest = &self.rest[empty..];
            return Ok(None);
        }
        let begin = self.rest.iter().position(|byte| *byte != b' ').unwrap_or(0);
        let word = &self.rest[begin..];
        let length = word
            .iter()
            .position(|byte| *byte == b' ')
            .unwrap_or(word.len());
        if begin + length != 1 + width.max(length) {
            return Err("the columns of this row are not where they should be");
        }
        self.rest = &word[length..];
        Ok(Some(String::from_utf8_lossy(&word[..length]).into_owned()))
    }
}
