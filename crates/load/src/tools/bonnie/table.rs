//! Reads the tables of bonnie++, whose columns are aligned with blanks.
//!
//! A page or a mail may have taken blanks out. A row that has a word for each of its cells is then
//! read word by word. A row with fewer words is refused, because they may belong to any cell.

use super::field::{data_words, figure, files_words, is_name, latency_ns, misread, small, whole};
use super::print::FIELD;
use super::report::{BonnieColumn, BonnieFigure, BonnieLayout, BonnieReport, Cell};
use stackrace_base::printed::ImportError;

/// Word a banner begins with.
const BANNER: &str = "Version ";
const DATA_BANNER: &str = "------Sequential Output------ --Sequential Input- --Random-";
const FILES_BANNER: &str = "------Sequential Create------ --------Random Create--------";
const DATA_TITLES: &str = "-Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--";
const FILES_TITLES: &str = "-Create-- --Read--- -Delete-- -Create-- --Read--- -Delete--";

/// Returns true if a table begins with this line.
pub(super) fn begins(line: &str) -> bool {
    line.trim_start().starts_with(BANNER) && line.contains("------")
}

/// Returns true if the half of a table about files begins with this line, the first half being cut
/// off.
pub(super) fn begins_in_the_middle(line: &str) -> bool {
    line.contains(FILES_BANNER) && line.trim_start().starts_with('-')
}

/// The half about files of a table of 1.03 that begins at a line (from 0), and the line behind it.
pub(super) fn read_files(lines: &[&str], at: usize) -> Result<(BonnieReport, usize), ImportError> {
    let mut reader = Reader { lines, at };
    let mut report = BonnieReport::new(BonnieLayout::V1_03, [Cell::default(); 12]);
    reader.files(&mut report)?;
    // 1.03 names the machine in the half about data, which is missing.
    report.name.clear();
    report.left_out = Some("the half of the table about data is missing".to_owned());
    Ok((report, reader.at))
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

    /// Reads one table: data, files, or one after the other.
    fn table(&mut self) -> Result<BonnieReport, ImportError> {
        let banner = self.line().trim_start();
        let program = banner[BANNER.len()..].split('-').next().unwrap_or_default();
        let program = program.trim();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '.';
        // Releases have a letter behind the number ("1.03e", "2.00a"); the layout does not depend
        // on it.
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
        if banner.contains("--Sequential Output--") {
            self.data(&mut report)?;
            let next = self.line();
            // 1.03 says its version once, the others on both halves.
            let begin = |line: &'a str| line.split("------").next().unwrap_or_default().trim();
            let goes_on = match layout {
                BonnieLayout::V1_03 => begin(next).is_empty(),
                _ => begin(next) == begin(banner),
            };
            if goes_on && next.contains(FILES_BANNER) {
                self.files_or_nothing(&mut report)?;
            }
        } else {
            self.files(&mut report)?;
        }
        Ok(report)
    }

    fn data(&mut self, report: &mut BonnieReport) -> Result<(), ImportError> {
        self.pass(DATA_BANNER)?;
        let titles = self.pass(DATA_TITLES)?;
        if let Some(rest) = titles.strip_prefix("Concurrency") {
            let number = rest.split('-').next().unwrap_or_default().trim();
            let number = small(number).ok_or_else(|| self.wrong(format!("{number:?} copies")))?;
            report.concurrency = number;
        }
        self.pass(" %CP")?;
        // Word by word where every phase has figures: that also reads tables whose blanks were
        // changed.
        if let Some((before, cells)) = self.words(12) {
            let (size, name) = before.split_last().unwrap_or((&"", &[]));
            self.named(report, &name.join(" "), size)?;
            return self.row(Cells::Words(cells), report, &BonnieColumn::ALL[..6]);
        }
        let (field, rest) = self.field()?;
        let Some((name, size)) = field.trim_end().rsplit_once(' ') else {
            return Err(self.wrong("the machine's name and the size are not apart"));
        };
        self.named(report, name.trim_end(), size)?;
        self.row(Cells::Columns(rest), report, &BonnieColumn::ALL[..6])
    }

    fn named(&self, report: &mut BonnieReport, name: &str, size: &str) -> Result<(), ImportError> {
        let Some((data, concurrency)) = data_words(size) else {
            return Err(self.wrong("the size is missing in front of the rates"));
        };
        // Its CSV line is refused for the same name.
        if !is_name(name) {
            return Err(self.wrong("more than a machine's name stands in front of the size"));
        }
        name.clone_into(&mut report.name);
        // 1.9x says it in the row of titles, 2.00 behind the size; where it is not said it is 1.
        report.concurrency = report.concurrency.max(concurrency);
        report.data = Some(data);
        Ok(())
    }

    /// The half about files; where the text ends in it, that is said and the other half stays.
    fn files_or_nothing(&mut self, report: &mut BonnieReport) -> Result<(), ImportError> {
        let before = self.at;
        let mut whole = report.clone();
        match self.files(&mut whole) {
            Ok(()) => *report = whole,
            Err(error) if !self.is_cut_off(error.line) => return Err(error),
            Err(error) => {
                // Not behind the half: a CSV line may follow at any line of it.
                self.at = before + 1;
                let what = format!("files: line {} of the text: {}", error.line, error.what);
                report.left_out = Some(what);
            }
        }
        Ok(())
    }

    /// Returns true if nothing of a table stands behind a line, from 1: a CSV line may tell it all.
    fn is_cut_off(&self, line: usize) -> bool {
        let mut behind = self.lines.iter().skip(line);
        behind.all(|line| line.trim().is_empty() || line.contains(','))
    }

    fn files(&mut self, report: &mut BonnieReport) -> Result<(), ImportError> {
        self.pass(FILES_BANNER)?;
        let titles = self.pass(FILES_TITLES)?;
        let name = titles.split(" -Create--").next().unwrap_or_default().trim();
        if report.data.is_none() {
            if !is_name(name) {
                return Err(self.wrong("more than a machine's name begins this row"));
            }
            report.name = name.to_owned();
        }
        self.pass(" %CP")?;
        let (field, cells) = match self.words(12) {
            Some((before, cells)) => (before.concat(), Cells::Words(cells)),
            None => {
                let (field, rest) = self.field()?;
                (field, Cells::Columns(rest))
            }
        };
        report.files = files_words(field.trim());
        if report.files.is_none() {
            return Err(self.wrong("the number of files is missing in front of the rates"));
        }
        self.row(cells, report, &BonnieColumn::ALL[6..])
    }

    /// The words of this line, if it has one for each of so many cells behind what it begins with, and
    /// those words look like cells; what it begins with comes first.
    fn words(&self, cells: usize) -> Option<(Vec<&'a str>, Vec<&'a str>)> {
        let mut words: Vec<&str> = self.line().split_whitespace().collect();
        // A phase that was left out has no words at all, so a shorter row cannot be told apart by
        // words.
        let first = words.len().checked_sub(cells).filter(|first| *first > 0)?;
        let rest = words.split_off(first);
        let cell = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit() || c == '+');
        rest.iter().all(cell).then_some((words, rest))
    }

    /// Splits a row into what stands before its first rate, and the rest.
    fn field(&self) -> Result<(String, &'a [u8]), ImportError> {
        match self.line().as_bytes().split_at_checked(FIELD) {
            Some((field, rest)) => Ok((String::from_utf8_lossy(field).into_owned(), rest)),
            None => Err(self.wrong("a row of figures is missing")),
        }
    }

    /// The figures of a row and the latencies below it.
    fn row(
        &mut self,
        mut cells: Cells<'_>,
        report: &mut BonnieReport,
        columns: &[BonnieColumn],
    ) -> Result<(), ImportError> {
        for column in columns {
            let at = *column as usize;
            report.cells[at].figure = self.figure(&mut cells, report.layout, *column)?;
        }
        if !cells.is_over() {
            return Err(self.wrong("there is more in this row than six figures"));
        }
        let is_missing = |column: &BonnieColumn| report.cells[*column as usize].figure.is_none();
        if columns.last().is_some_and(is_missing) {
            return Err(self.wrong("the row ends before its last figure"));
        }
        self.at += 1;
        self.is_whole()?;
        if report.layout == BonnieLayout::V1_03 {
            return Ok(());
        }
        if !self.line().contains("Latency") {
            report.left_out = Some("a row of latencies is missing".to_owned());
            return Ok(());
        }
        let mut cells = match self.words(columns.len()) {
            Some((_, cells)) => Cells::Words(cells),
            // "Latency" and the blanks behind it are 17 characters.
            None => Cells::Columns(self.line().as_bytes().get(17..).unwrap_or_default()),
        };
        for column in columns {
            let cell = cells.next(9, 10).map_err(|what| self.wrong(what))?;
            let wrong = |text: &str| self.wrong(format!("{text:?} is no latency"));
            let cell_of = &mut report.cells[*column as usize];
            cell_of.latency_ns = match cell {
                None => None,
                Some(text) => Some(latency_ns(&text).ok_or_else(|| wrong(&text))?),
            };
            if cell_of.latency_ns.is_some() != cell_of.figure.is_some() {
                return Err(self.wrong("there is not one latency for each figure above it"));
            }
        }
        if !cells.is_over() {
            return Err(self.wrong("there is more in this row than six latencies"));
        }
        self.at += 1;
        self.is_whole()
    }

    /// Refuses a line of figures alone, which is the rest of the row before it.
    fn is_whole(&self) -> Result<(), ImportError> {
        let mut words = self.line().split_whitespace().peekable();
        let cell = |word: &str| {
            word.trim_end_matches(char::is_alphabetic)
                .parse::<f64>()
                .is_ok()
                || word.starts_with("++")
        };
        match words.peek().is_some() && words.all(cell) {
            true => Err(self.wrong("this seems to be the rest of the row before it")),
            false => Ok(()),
        }
    }

    /// The rate and the processor of one column.
    fn figure(
        &self,
        cells: &mut Cells<'_>,
        layout: BonnieLayout,
        column: BonnieColumn,
    ) -> Result<Option<BonnieFigure>, ImportError> {
        // A blank, five characters of rate, a blank, three of processor: 10 where a phase was left
        // out.
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
        // 2.00 shows whatever lies in a register where the rate of files belongs. It is kept only
        // to print the table again.
        if layout == BonnieLayout::V2_00 && column as usize > BonnieColumn::Seeks as usize {
            let shown = whole(&rate).ok_or_else(wrong)?;
            return Ok(Some(BonnieFigure::Garbage { shown, cpu_percent }));
        }
        let per_s = if layout == BonnieLayout::V2_00 && column.moves_data() {
            // 2.00 puts a unit behind rates of data; the older ones always print KiB/s.
            let scaled = |unit, kib: f64| Some(figure(rate.strip_suffix(unit)?)? * kib);
            scaled('k', 1.0)
                .or_else(|| scaled('m', 1024.0))
                .or_else(|| scaled('g', 1_048_576.0))
        } else {
            figure(&rate)
        };
        let per_s = per_s.ok_or_else(wrong)?;
        Ok(Some(BonnieFigure::Rate { per_s, cpu_percent }))
    }
}

/// The cells of a row.
enum Cells<'a> {
    /// A blank, then a word that is right-aligned, and wider than its cell where it does not fit.
    Columns(&'a [u8]),
    /// The words, one for each cell.
    Words(Vec<&'a str>),
}

impl Cells<'_> {
    fn is_over(&self) -> bool {
        match self {
            Cells::Columns(rest) => rest.iter().all(u8::is_ascii_whitespace),
            Cells::Words(words) => words.is_empty(),
        }
    }

    /// Reads the next word, right-aligned in `width`; `None` if `blanks` blanks stand in its place,
    /// or the row is over.
    fn next(&mut self, width: usize, blanks: usize) -> Result<Option<String>, &'static str> {
        let row = match self {
            Cells::Words(words) if words.is_empty() => return Ok(None),
            Cells::Words(words) => return Ok(Some(words.remove(0).to_owned())),
            Cells::Columns(row) => row,
        };
        let empty = row.len().min(blanks);
        if row[..empty].iter().all(|byte| *byte == b' ') {
            *row = &row[empty..];
            return Ok(None);
        }
        let begin = row.iter().position(|byte| *byte != b' ').unwrap_or(0);
        let word = &row[begin..];
        let length = word
            .iter()
            .position(|byte| *byte == b' ')
            .unwrap_or(word.len());
        // A blank and a right-aligned word must end where its column does, unless the word is too
        // wide. Anything else is another column's word.
        if begin + length != 1 + width.max(length) {
            return Err("the columns of this row are not where they should be");
        }
        *row = &word[length..];
        Ok(Some(String::from_utf8_lossy(&word[..length]).into_owned()))
    }
}
