//! iozone 3: the table of automatic mode or of a single size, in kBytes/s (of 1024 bytes) or, with
//! `-O`, in operations per second. Each row is a result.
//!
//! A test that was not run is left blank in its row, so that figures belong to their columns by
//! where they end. Versions print all columns, or those of the tests that were run; people paste the
//! table alone.

mod table;

use crate::import::signs::is_iozone;
use stackrace_base::printed::text::{TextLine, cut, end, lines};
use stackrace_base::printed::{ImportError, Imported, Importer};
use table::{Table, Unit};

pub(super) const IMPORTER: Importer = Importer {
    name: "iozone",
    summary: "the output of iozone -a, or of one size, with its table",
    recognises: |text| {
        text.contains(BANNER) || lines(text).iter().any(|line| table::is_head(*line))
    },
    read,
};

/// The first line of an output.
const BANNER: &str = "Iozone: Performance Test of File I/O";
/// The last one.
const COMPLETE: &str = "iozone test complete.";

/// State of the reader since the output began.
#[derive(Debug, Default)]
struct Output<'a> {
    version: Option<&'a str>,
    command: &'a str,
    /// The line that shows it.
    command_at: Option<usize>,
    unit: Option<Unit>,
    /// The line above the names of the columns.
    above: &'a str,
    table: Option<Table>,
    results: Vec<Imported>,
    /// Set if the banner was there: the output then has an end.
    begun: bool,
}

fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let mut results = Vec::new();
    let mut output = Output::default();
    for line in lines(text) {
        let trimmed = line.text.trim();
        if trimmed.starts_with("Iozone: Performance Test") {
            if output.begun {
                return Err(line.refuse("\"iozone test complete.\" of the output before it"));
            }
            results.append(&mut output.results);
            output = Output {
                begun: true,
                ..Output::default()
            };
        } else if trimmed == COMPLETE {
            if output.results.is_empty() {
                return Err(line.refuse("a table of results before it"));
            }
            results.append(&mut output.results);
            output = Output::default();
        } else {
            output.take(line, !text.ends_with('\n'))?;
        }
    }
    if output.begun {
        return Err(end(text, "\"iozone test complete.\""));
    }
    results.append(&mut output.results);
    Ok(results)
}

/// Returns true if a line below a command is the rest of it. Banners are indented, as heads of tables are: what
/// stands at the margin is of the shell.
fn is_rest(line: TextLine<'_>, banner: bool) -> bool {
    let mut words = line.text.split(' ').filter(|word| !word.is_empty());
    let option = words.clone().any(|word| word.starts_with('-'));
    let at_margin = line.text.starts_with(|c: char| !c.is_whitespace());
    at_margin && (banner || option || words.nth(1).is_none())
}

impl<'a> Output<'a> {
    /// Takes one line; `open`: the text does not end with a line break, so that its last line may have
    /// lost something.
    fn take(&mut self, line: TextLine<'a>, open: bool) -> Result<(), ImportError> {
        let text = line.text.trim();
        if self.command_at.is_some_and(|at| at + 1 == line.index) && is_rest(line, self.begun) {
            return Err(line.rest_of_command());
        }
        if let Some(version) = line.after("Version $Revision:") {
            self.version = version.strip_suffix('$').map(str::trim);
        } else if let Some((_, command)) = line.text.split_once("Command line used:") {
            let command = command.trim();
            if command.contains(" = ") {
                return Err(line.refuse("the command alone"));
            }
            self.command = command;
            self.command_at = Some(line.index);
        } else if text == "Output is in kBytes/sec" {
            self.unit = Some(Unit::KibPerSecond);
        } else if text == "OPS Mode. Output is in operations per second." {
            self.unit = Some(Unit::Operations);
        } else if text.starts_with("Output is in ") {
            return Err(line.refuse(
                "\"Output is in kBytes/sec\", as without -N and without a unit of your own",
            ));
        } else if line.text.contains("Microseconds/op") || line.text.contains("throughput for") {
            // Times per operation, and the sums of throughput mode, are other figures under the same
            // names.
            return Err(line.refuse("a table in kBytes/sec or in operations per second"));
        } else if text.starts_with("Error ") || text.contains("No space left on device") {
            return Err(ImportError::at(
                line.index,
                format!("iozone says of this run: \"{}\"", cut(text)),
                "mend that, and run it again: what it measured until then is no result",
            ));
        } else if text.starts_with("Performance measurements are invalid") {
            // iozone's own word on the mode that checks contents (-+d).
            return Err(ImportError::at(
                line.index,
                "iozone says of this run: \"Performance measurements are invalid in this mode.\"",
                "run it without -+d: in this mode it checks contents, and its rates are no result",
            ));
        } else if table::is_head(line) {
            self.table = Some(Table::of(line, self.above)?);
        } else if let (Some(table), false) = (&self.table, text.is_empty()) {
            if self.begun || text.starts_with(|c: char| c.is_ascii_digit()) {
                let result = self.row(line, table, open)?;
                self.results.push(result);
            } else {
                // Behind a table that was pasted alone anything may follow.
                self.table = None;
                self.note_command(line);
            }
        } else if self.begun && is_figures(text) || is_iozone(text) {
            return Err(line.refuse("the head of the table before it"));
        } else {
            self.above = line.text;
            self.note_command(line);
        }
        Ok(())
    }

    /// Takes the command from a prompt, where there is no banner that repeats it.
    fn note_command(&mut self, line: TextLine<'a>) {
        let text = line.text.trim();
        let is_iozone = |word: &str| matches!(word.rsplit('/').next(), Some("iozone" | "iozone3"));
        let at = text.split(' ').position(is_iozone);
        if let Some(at) = at.filter(|_| !self.begun && text.contains(" -")) {
            self.command_at = Some(line.index);
            let words = text.splitn(at + 1, ' ').last();
            self.command = words.unwrap_or_default();
            let option = |name: &str| self.command.split(' ').any(|word| word == name);
            self.unit = match (option("-O"), option("-N")) {
                (true, _) => Some(Unit::Operations),
                (false, true) => Some(Unit::Times),
                (false, false) => Some(Unit::KibPerSecond),
            };
        }
    }

    fn row(&self, line: TextLine<'_>, table: &Table, open: bool) -> Result<Imported, ImportError> {
        let mut notes = Vec::new();
        let unit = match self.unit {
            Some(Unit::Times) => {
                return Err(line.refuse("a table in kBytes/sec or in operations per second"));
            }
            Some(unit) => unit,
            None if self.begun => {
                return Err(line.refuse("\"Output is in kBytes/sec\" before it"));
            }
            None => {
                notes.push(
                    "the text has the table alone: its unit is taken to be kBytes/s of 1024, as without -O and -N"
                        .to_owned(),
                );
                Unit::KibPerSecond
            }
        };
        let (workload, figures) = table.row(line, unit, open && !self.begun)?;
        notes.extend(figures.missing("blank in the text, that is not run"));
        Ok(Imported {
            version: self.version.map(|version| format!("iozone {version}")),
            settings: stackrace_base::printed::text::facts([("command", self.command)]),
            notes,
            ..figures.imported("iozone", workload)
        })
    }
}

/// Returns true if a line has whole numbers alone.
fn is_figures(text: &str) -> bool {
    let mut words = text.split_whitespace();
    text.split_whitespace().count() > 2 && words.all(|word| word.parse::<u64>().is_ok())
}

#[cfg(test)]
mod tests {
    use crate::import::tests::{from, golden, has, refused};

    #[test]
    fn a_table_alone_is_read_with_what_its_columns_are() {
        let results = from("iozone/iozone-3.4_table-alone.txt");
        assert_eq!(results.len(), 3);
        assert_eq!(results[0].workload, "iozone 100M in records of 4k");
        let names: Vec<&str> = results[0]
            .metrics
            .iter()
            .map(|it| it.name.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "write",
                "rewrite",
                "read",
                "reread",
                "random read",
                "random write"
            ]
        );
        has(&results[0], "random read", "B/s", 4553.0 * 1024.0);
        has(&results[2], "write", "B/s", 31528.0 * 1024.0);
        has(&results[2], "random write", "B/s", 31446.0 * 1024.0);
        // A unit that only the command tells.
        let text = golden("iozone/iozone-3.4_table-alone.txt");
        let operations =
            crate::import::tests::read(&text.replace(" -e ", " -O -e "), None).unwrap();
        has(&operations[0], "read", "op/s", 5184.0);
        assert!(
            refused(&text.replace(" -e ", " -N -e "))
                .next
                .contains("kBytes/sec")
        );
        let alone = text.split_once('\n').unwrap().1;
        let alone = crate::import::tests::read(alone, None).unwrap();
        assert!(alone[0].notes[0].contains("unit"), "{:?}", alone[0].notes);
    }

    #[test]
    fn a_last_row_that_may_have_lost_a_digit_is_refused() {
        let text = golden("iozone/iozone-3.4_table-alone.txt");
        let whole = text.trim_end();
        assert_eq!(crate::import::tests::read(whole, None).unwrap().len(), 3);
        assert_eq!(refused(&whole[..whole.len() - 1]).line, 6);
    }

    #[test]
    fn a_figure_or_a_unit_that_is_none_is_refused_for_that_reason() {
        let text = golden("iozone/iozone-3.489_three_tests.txt");
        let row = text.lines().find(|line| line.trim().starts_with("4096"));
        let row = row.unwrap();
        let last = row.split_whitespace().last().unwrap();
        for (from, to) in [
            (last, "inf".to_owned()),
            (last, format!("-{}", &last[1..])),
            ("kBytes/sec", "MBytes/sec".to_owned()),
        ] {
            let at = match from == last {
                true => text.find(row).unwrap() + row.rfind(last).unwrap(),
                false => text.find(from).unwrap(),
            };
            let wide = format!("{to:>width$}", width = from.len());
            let wrong = format!("{}{wide}{}", &text[..at], &text[at + from.len()..]);
            let why = refused(&wrong);
            let line = text[..at].matches('\n').count() + 1;
            assert_eq!(why.line, line, "{to}: {why}");
            assert!(!why.to_string().contains("folded"), "{to}: {why}");
        }
    }

    #[test]
    fn a_run_that_iozone_calls_invalid_is_refused() {
        let misread = refused(&golden("iozone/iozone-3.429_diagnostic.txt"));
        assert!(misread.what.contains("invalid in this mode"), "{misread}");
        assert!(misread.next.contains("-+d"), "{misread}");
    }

    #[test]
    fn a_run_that_ended_with_an_error_is_refused_with_it() {
        let text = golden("iozone/iozone-3.489_three_tests.txt");
        let end = text.rfind("\niozone test complete.").unwrap();
        for error in [
            "Error reading block 5 7f00",
            "write: No space left on device",
        ] {
            let failed = format!("{}\n{error}\n{}", &text[..end], &text[end..]);
            let why = refused(&failed);
            assert!(why.what.contains(error), "{why}");
            assert!(why.next.contains("run it again"), "{why}");
        }
    }
}
