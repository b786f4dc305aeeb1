//! Reads the tables of bonnie++, whose columns are where they are by blanks.

use super::field::{data_words, files_words, latency_ns, misread, number, small, whole};
use super::print::FIELD;
use super::report::{BonnieColumn, BonnieFigure, BonnieLayout, BonnieReport, Cell};
use crate::printed::ImportError;

/// What a banner says first.
const BANNER: &str = "Version ";
const DATA_BANNER: &str = "------Sequential Output------";
const FILES_BANNER: &str = "------Sequential Create------";

/// Whether a table begins with this line.
pub(super) fn begins(line: &str) -> bool {
    line.starts_with(BANNER) && line.contains("------")
}

/// The table that begins at a line (from 0), and the line behind it.
pub(super) fn read(lines: &[&str], at: usize) -> Result<(BonnieReport, usize), ImportError> {
    let mut reader = Reader { lines, at };
    Ok((reader.table()?, reader.at))
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

    fn wrong(&self, what: impl Into<String>) -> ImportError {
        let next = "give the table as bonnie++ printed it, blanks included";
        misread(self.at + 1, what, next)
    }

    /// Passes over a line that must hold some words.
    fn pass(&mut self, words: &str) -> Result<&'a str, ImportError> {
        let line = self.line();
        if !line.contains(words) {
            return Err(self.wrong(format!("{words:?} is missing from this line of the table")));
        }
        self.at += 1;
        Ok(line)
    }

    /// One table: data, files, or one after the other.
    fn table(&mut self) -> Result<BonnieReport, ImportError> {
        let banner = self.line();
        let program = banner[BANNER.len()..].split('-').next().unwrap_or_default();
        let program = program.trim();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '.';
        let known = program.get(..4).filter(|_| program.chars().all(plain));
        let layout = match known.unwrap_or_default() {
            "1.03" => BonnieLayout::V1_03,
            "1.96" => BonnieLayout::V1_96,
            "1.97" => BonnieLayout::V1_97,
            "1.98" | "2.00" => BonnieLayout::V2_00,
            _ => {
                let what = format!("bonnie++ {program:?} is not known: 1.03, 1.96, 1.97, 2.00 are");
                return Err(self.wrong(what));
            }
        };
        let mut report = BonnieReport {
            program: program.to_owned(),
            ..BonnieReport::new(layout, [Cell::default(); 12])
        };
        if banner.contains(DATA_BANNER) {
            self.data(&mut report)?;
            let next = self.line();
            let goes_on = match layout {
                BonnieLayout::V1_03 => next.starts_with(' '),
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

    fn data(&mut self, report: &mut BonnieReport) -> Result<(), ImportError> {
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
        self.row(rest, report, &BonnieColumn::ALL[..6])
    }

    fn files(&mut self, report: &mut BonnieReport) -> Result<(), ImportError> {
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
        self.row(rest, report, &BonnieColumn::ALL[6..])
    }

    /// What stands before the first rate of a row, and the rest of it.
    fn field(&self) -> Result<(String, &'a [u8]), ImportError> {
        match self.line().as_bytes().split_at_checked(FIELD) {
            Some((field, rest)) => Ok((String::from_utf8_lossy(field).into_owned(), rest)),
            None => Err(self.wrong("a row of figures is missing")),
        }
    }

    /// The figures of a row and the latencies below it.
    fn row(
        &mut self,
        rest: &[u8],
        report: &mut BonnieReport,
        columns: &[BonnieColumn],
    ) -> Result<(), ImportError> {
        let mut cells = Cells { rest };
        for column in columns {
            let at = *column as usize;
            report.cells[at].figure = self.figure(&mut cells, report.layout, *column)?;
        }
        if !cells.is_over() {
            return Err(self.wrong("there is more in this row than six figures"));
        }
        self.at += 1;
        if report.layout == BonnieLayout::V1_03 {
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
        layout: BonnieLayout,
        column: BonnieColumn,
    ) -> Result<Option<BonnieFigure>, ImportError> {
        let rate = cells.next(5, 10).map_err(|what| self.wrong(what))?;
        let Some(rate) = rate else {
            return Ok(None);
        };
        let cpu = cells.next(3, 4).map_err(|what| self.wrong(what))?;
        let cpu = cpu.unwrap_or_default();
        if (rate.as_str(), cpu.as_str()) == ("+++++", "+++") {
            return Ok(Some(BonnieFigure::TooFast));
        }
        let wrong = || {
            let name = column.name();
            self.wrong(format!("{rate:?} and {cpu:?} are no figures of {name}"))
        };
        let cpu_percent = small(&cpu).ok_or_else(wrong)?;
        if layout == BonnieLayout::V2_00 && column as usize > BonnieColumn::Seeks as usize {
            let shown = whole(&rate).ok_or_else(wrong)?;
            return Ok(Some(BonnieFigure::Garbage { shown, cpu_percent }));
        }
        let per_s = if layout == BonnieLayout::V2_00 && column.moves_data() {
            let scaled = |unit, kib: f64| Some(number(rate.strip_suffix(unit)?)? * kib);
            scaled('k', 1.0)
                .or_else(|| scaled('m', 1024.0))
                .or_else(|| scaled('g', 1_048_576.0))
        } else {
            number(&rate)
        };
        let per_s = per_s.ok_or_else(wrong)?;
        Ok(Some(BonnieFigure::Rate { per_s, cpu_percent }))
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
