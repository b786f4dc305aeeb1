//! `dd` of GNU coreutils 5 to 9, busybox, toybox and the BSDs: what it prints when it ends, any
//! number of times in one text.
//!
//! `67108864 bytes (67 MB, 64 MiB) copied, 0.097739 s, 687 MB/s`: MB are 10⁶ bytes; busybox, which
//! leaves no blank before its units, means 2²⁰. Where the text shows the command, it says what was
//! done, and results of other operands are other work. Other lines (prompts, messages) are skipped.

mod command;
mod group;
mod line;

use command::{commands, goes_on};
use group::{DdReport, Group};
use line::{Copied, RESULT, Records, copied, is_result, is_summary, records};
use stackrace_base::printed::text::{TextLine, lines};
use stackrace_base::printed::{ImportError, Imported, Importer};

pub(super) const IMPORTER: Importer = Importer {
    name: "dd",
    summary: "what dd of GNU coreutils, of busybox or of a BSD prints when it ends",
    recognises: |text| {
        let all = lines(text);
        // In any language the two lines of records follow each other.
        let mut pairs = all.windows(2);
        let of_dd = |pair: &[TextLine<'_>]| pair.iter().all(|line| records(*line).is_some());
        text.contains(" records out")
            || pairs.any(of_dd)
            || all.iter().any(|line| is_summary(*line))
    },
    read,
};

/// Returns true if dd prints such a line, in whichever language.
pub(in crate::import) fn is_of_dd(text: &str) -> bool {
    let line = TextLine { index: 0, text };
    records(line).is_some() || is_result(line)
}

/// Lines that have to stand before a report's last one, in words.
const BEFORE: &str = "\"… records in\" and \"… records out\" before it";

fn read(text: &str) -> Result<Vec<Imported>, ImportError> {
    let all = lines(text);
    let columns = all.iter().map(|line| line.text.chars().count());
    let mut reader = Reader {
        longest: columns.max().unwrap_or(0),
        // Of several lines `grep copied` leaves one.
        summaries: !all.iter().any(|line| records(*line).is_some()),
        ..Reader::default()
    };
    for line in all {
        if let Some(counts) = records(line) {
            reader.count(line, counts?)?;
        } else if is_result(line) {
            reader.end(line, overwritten(text, line))?;
        } else if !line.text.trim().is_empty() {
            reader.other(line)?;
        }
    }
    reader.finish()
}

/// State of the reader after the lines so far.
#[derive(Default)]
struct Reader<'a> {
    groups: Vec<Group>,
    taken: Option<Records>,
    given: Option<Records>,
    /// The line that was last taken, for what is missing behind it.
    last: Option<TextLine<'a>>,
    /// Lines of progress, until the report shows that they are that.
    held: Vec<(TextLine<'a>, Copied)>,
    /// A command that goes on in the next line.
    shell: String,
    /// The line in which a command ended, if one did.
    command: Option<TextLine<'a>>,
    /// Set if caches were emptied since the last command.
    dropped: bool,
    /// Set if the text has no line of records: it has the last lines of reports alone.
    summaries: bool,
    /// Columns of the longest line: a window is not wider where it folded one.
    longest: usize,
}

impl<'a> Reader<'a> {
    /// Records in, or records out: in every language they come in this order.
    fn count(&mut self, line: TextLine<'a>, counts: Records) -> Result<(), ImportError> {
        self.last = Some(line);
        let named = |end: &str| line.text.trim_end().ends_with(end);
        match (self.taken, self.given) {
            (Some(_), None) if !named(" records in") => self.given = Some(counts),
            (None, _) if named(" records out") => {
                return Err(line.refuse("a line \"… records in\" before it"));
            }
            // A command that was killed leaves records in without the rest; the next begins anew.
            _ => (self.taken, self.given) = (Some(counts), None),
        }
        Ok(())
    }

    /// The last line of a report, or a line of progress.
    fn end(&mut self, line: TextLine<'a>, overwritten: bool) -> Result<(), ImportError> {
        let (taken, given) = (self.taken.take(), self.given.take());
        let (Some(taken), Some(given)) = (taken, given) else {
            if taken.is_some() {
                return Err(line.refuse(BEFORE));
            }
            // `status=progress` prints the like without records, and a terminal keeps no carriage
            // return that would tell it apart.
            if !overwritten {
                let copied = copied(line)?;
                // Progress has whole seconds, or words of its own.
                if self.summaries && !copied.progress && copied.seconds.value.fract() != 0.0 {
                    self.progress_of(&copied)?;
                    self.report(DdReport {
                        records: None,
                        copied,
                    });
                } else {
                    self.held.push((line, copied));
                }
            }
            return Ok(());
        };
        let copied = copied(line)?;
        if copied.progress {
            return Err(line.refuse(RESULT));
        }
        if given.0 > 0 && copied.bytes == 0 {
            return Err(line.contradicts("the records before it"));
        }
        self.progress_of(&copied)?;
        // Every whole record has the same bytes.
        let (whole, part) = given;
        if part == 0 && whole > 0 && !copied.bytes.is_multiple_of(whole) {
            return Err(line.contradicts(format!("the {whole} whole records before it")));
        }
        self.report(DdReport {
            records: Some((taken, given)),
            copied,
        });
        Ok(())
    }

    /// Takes the lines that are held as progress of a report, or refuses them.
    fn progress_of(&mut self, copied: &Copied) -> Result<(), ImportError> {
        for (before, progress) in self.held.drain(..) {
            // Progress is told by whole seconds where its words do not tell it, and the report goes on from there.
            let known = progress.progress || progress.seconds.value.fract() == 0.0;
            if !known || !progress.within(copied) {
                return Err(before.refuse(BEFORE));
            }
        }
        Ok(())
    }

    fn report(&mut self, report: DdReport) {
        match self.groups.last_mut() {
            Some(group) => group.reports.push(report),
            None => self.groups.push(Group::of(report)),
        }
    }

    /// A line that is no part of a report: a command, or anything.
    fn other(&mut self, line: TextLine<'a>) -> Result<(), ImportError> {
        let trimmed = line.text.trim();
        if let Some((before, _)) = self.held.first() {
            return Err(before.refuse(BEFORE));
        }
        let figures = trimmed.contains(|c: char| c.is_ascii_digit());
        if self.given.is_some() && figures && trimmed.contains("/s") {
            return Err(line::foreign(line));
        }
        let whole = format!("{}{}", self.shell, trimmed.trim_end_matches('\\'));
        if trimmed.ends_with('\\') {
            self.shell = whole;
            return Ok(());
        }
        self.shell.clear();
        let mut found = commands(&whole);
        self.dropped |= whole.contains("drop_caches");
        // To pass over the rest of a command would make work of other flags the same work.
        let before = self.command.filter(|before| before.index + 1 == line.index);
        // What time(1) says of a command goes on with its times.
        let full = |before: TextLine<'_>| {
            before.text.chars().count() >= self.longest && !before.text.contains("being timed:")
        };
        let said = ["dd: ", "[sudo] ", "Password"]
            .iter()
            .any(|own| trimmed.starts_with(own));
        let goes_on = |before| goes_on(trimmed) || found.is_empty() && !said && full(before);
        if before.is_some_and(goes_on) {
            return Err(line.rest_of_command());
        }
        if found.is_empty() {
            // Its name may be the last word that fitted.
            self.command = trimmed.ends_with(" dd").then_some(line).or(self.command);
            return Ok(());
        }
        if let Some(word) = found.iter().find_map(|command| command.unread.as_ref()) {
            return Err(line.refuse(format!("an operand of dd where \"{word}\" is")));
        }
        self.command = Some(line);
        // What was emptied before one command is filled by it.
        found[0].after_dropping |= std::mem::take(&mut self.dropped);
        match self.groups.last_mut() {
            Some(group) if group.reports.is_empty() => group.commands.extend(found),
            _ => self.groups.push(Group {
                commands: found,
                reports: Vec::new(),
            }),
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<Imported>, ImportError> {
        if let Some((before, _)) = self.held.first() {
            return Err(before.refuse(BEFORE));
        }
        match (self.taken, self.last) {
            (Some(_), Some(line)) => Err(ImportError {
                next: format!("expected after it: {RESULT}"),
                ..line.refuse(RESULT)
            }),
            _ => Ok(self.groups.iter().flat_map(Group::imported).collect()),
        }
    }
}

/// Returns true if a line was overwritten while dd ran.
fn overwritten(text: &str, line: TextLine<'_>) -> bool {
    let whole = text.split('\n').nth(line.index);
    whole.is_some_and(|whole| whole.trim_end_matches('\r').contains('\r'))
}

#[cfg(test)]
mod tests;
