//! The table of iozone: which columns it has, and its rows.

use stackrace_base::printed::text::{Figures, TextLine, size};
use stackrace_base::printed::{ImportError, PrintedFigure};

/// Kind of the figures of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Unit {
    /// kBytes/s of 1024 bytes.
    KibPerSecond,
    /// Operations per second.
    Operations,
    /// Microseconds per operation, which are not read.
    Times,
}

/// A test, the word in the head, the word above it, and the width of its column.
type Column = (&'static str, &'static str, &'static str, usize);

/// Every column behind `kB` and `reclen`, in order, with the widths of iozone's own format strings.
const COLUMNS: [Column; 13] = [
    ("write", "write", "", 9),
    ("rewrite", "rewrite", "", 9),
    ("read", "read", "", 9),
    ("reread", "reread", "", 9),
    ("random read", "read", "random", 9),
    ("random write", "write", "random", 9),
    ("backward read", "read", "bkwd", 9),
    ("record rewrite", "rewrite", "record", 10),
    ("stride read", "read", "stride", 10),
    ("fwrite", "fwrite", "", 9),
    ("frewrite", "frewrite", "", 9),
    ("fread", "fread", "", 9),
    ("freread", "freread", "", 9),
];
/// Width of the second column.
const RECLEN: usize = 8;

/// The columns of a table.
#[derive(Debug)]
pub(super) struct Table {
    /// Column where `kB` ends. Figures are aligned to the right, so that a column is where its head
    /// ends.
    at: usize,
    columns: Vec<Column>,
}

/// Returns true if a line has the names of the columns; a version wrote `KB`.
pub(super) fn is_head(line: TextLine<'_>) -> bool {
    let mut words = line.text.split_whitespace();
    matches!(words.next(), Some("kB" | "KB")) && words.next() == Some("reclen")
}

impl Table {
    /// Reads the line of names and the one above it, which tells columns of one name apart.
    pub(super) fn of(line: TextLine<'_>, above: &str) -> Result<Self, ImportError> {
        let words: Vec<&str> = line.text.split_whitespace().skip(2).collect();
        let mut above: Vec<&str> = above.split_whitespace().collect();
        let known = COLUMNS.iter().filter(|column| !column.2.is_empty());
        // What stands above may be anything, where the line was not pasted.
        if !above
            .iter()
            .all(|word| known.clone().any(|column| column.2 == *word))
        {
            above.clear();
        }
        let all: Vec<&str> = COLUMNS.iter().map(|column| column.1).collect();
        let columns = if words == all {
            Some(COLUMNS.to_vec())
        } else {
            chosen(&words, &above)
        };
        let columns = columns.ok_or_else(|| {
            line.refuse(format!(
                "the columns kB reclen {}, or some of them in this order with the line above them",
                all.join(" ")
            ))
        })?;
        // `is_head` has seen the word.
        let at = line.text.find("reclen").unwrap_or(0);
        let at = line.text[..at].trim_end().len();
        Ok(Self { at, columns })
    }

    /// Reads the name of a row and its figures. `open`: nothing shows that the last figure is whole
    /// but its place.
    pub(super) fn row(
        &self,
        line: TextLine<'_>,
        unit: Unit,
        open: bool,
    ) -> Result<(String, Figures), ImportError> {
        let mut ends = vec![self.at, self.at + RECLEN];
        for (.., width) in &self.columns {
            let last = ends[ends.len() - 1];
            ends.push(last + width);
        }
        let words: Vec<(usize, &str)> = words_with_ends(line.text).collect();
        let mut cells = vec![None; ends.len()];
        let below = |(stop, _): &(usize, &str)| ends.contains(stop);
        // A page may have squeezed the blanks; where no cell is missing, their order is enough.
        let squeezed = !line.text.trim().contains("  ");
        let whole = squeezed && words.len() == ends.len() && !open;
        for (at, (stop, word)) in words.iter().enumerate() {
            let column = match (words.iter().all(below), whole) {
                (true, _) => ends.iter().position(|end| end == stop),
                (false, true) => Some(at),
                (false, false) => None,
            };
            let column = column.ok_or_else(|| {
                line.refuse(format!(
                    "\"{word}\" below the end of a column (tabs change that)"
                ))
            })?;
            cells[column] = Some(line.whole(word)?);
        }
        let (Some(kilobytes), Some(record)) = (cells[0], cells[1]) else {
            return Err(line.refuse("kB and reclen at the beginning of the row"));
        };
        let mut figures = Figures::default();
        for ((test, ..), value) in self.columns.iter().zip(&cells[2..]) {
            let value = value.map(PrintedFigure::whole);
            match unit {
                Unit::Operations => figures.rate(*test, "op/s", value),
                _ => figures.rate(*test, "B/s", value.map(|value| value * 1024.0)),
            }
        }
        // A row of blanks was cut off, or is none of the table.
        if figures.values.iter().all(Option::is_none) {
            return Err(line.refuse("at least one figure behind kB and reclen"));
        }
        let bytes = |kilobytes: u64| size(kilobytes.saturating_mul(1024));
        let workload = format!(
            "iozone {} in records of {}",
            bytes(kilobytes),
            bytes(record)
        );
        Ok((workload, figures))
    }
}

/// The columns of a version that prints only those of the tests that were run: names that stand for
/// several are told apart by the line above, whose words belong to the columns before `fwrite`.
fn chosen(words: &[&str], above: &[&str]) -> Option<Vec<Column>> {
    let buffered = words.iter().filter(|word| word.starts_with('f')).count();
    let named = words.len().checked_sub(buffered + above.len())?;
    let over = |at: usize| match at.checked_sub(named) {
        Some(at) => above.get(at).copied().unwrap_or(""),
        None => "",
    };
    let mut columns: Vec<Column> = Vec::new();
    let mut next = 0;
    for (at, word) in words.iter().enumerate() {
        let found = COLUMNS[next..]
            .iter()
            .position(|column| column.1 == *word && column.2 == over(at))?;
        columns.push(COLUMNS[next + found]);
        next += found + 1;
    }
    (!columns.is_empty()).then_some(columns)
}

/// Returns each word of a line with the column behind it.
fn words_with_ends(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split([' ', '\t']).filter_map(move |word| {
        let stop = at + word.len();
        at = stop + 1;
        (!word.trim().is_empty()).then_some((stop, word))
    })
}
