//! Commands of dd with the reports that follow them, and what both say together.

use super::command::DdCommand;
use super::line::{Copied, Records};
use stackrace_base::printed::Imported;
use stackrace_base::printed::text::{Figures, facts, size};

/// One report of dd.
pub(super) struct DdReport {
    /// Records in and out; `None` if the text has the last line alone.
    pub(super) records: Option<(Records, Records)>,
    pub(super) copied: Copied,
}

/// Commands, and the reports between them and the next commands.
#[derive(Default)]
pub(super) struct Group {
    pub(super) commands: Vec<DdCommand>,
    pub(super) reports: Vec<DdReport>,
}

impl Group {
    /// A report without a command before it.
    pub(super) fn of(report: DdReport) -> Self {
        Self {
            commands: Vec::new(),
            reports: vec![report],
        }
    }

    /// Its results, each with the command that it belongs to, as far as that is clear.
    pub(super) fn imported(&self) -> Vec<Imported> {
        let all = |command: Option<&DdCommand>| -> Vec<Imported> {
            let reports = self.reports.iter();
            reports.map(|report| report.imported(command)).collect()
        };
        let runs = self.runs();
        match (self.commands.as_slice(), self.reports.as_slice()) {
            (_, []) => Vec::new(),
            (commands, reports) if commands.len() == reports.len() => {
                let pairs = commands.iter().zip(reports);
                pairs
                    .map(|(command, report)| report.imported(Some(command)))
                    .collect()
            }
            ([command], _) if command.repeats => all(Some(command)),
            // As many runs as commands: what else was told was told under way.
            (commands, _) if commands.len() == runs.len() => {
                let pairs = runs.iter().zip(commands);
                pairs
                    .map(|(run, command)| run.last(Some(command)))
                    .collect()
            }
            // The others printed to somewhere else, or are only spoken of.
            ([.., command], [report]) => vec![report.imported(Some(command))],
            ([], _) => runs.iter().flat_map(ReportedRun::without_command).collect(),
            _ => all(None),
        }
    }

    /// The reports, parted where one cannot go on from the one before it: those that a signal asks for (`kill
    /// -USR1`) have more bytes in more time each.
    fn runs(&self) -> Vec<ReportedRun<'_>> {
        let on = |one: &DdReport, next: &DdReport| {
            one.copied.within(&next.copied)
                && one.copied.seconds.value < next.copied.seconds.value
                && one.copied.bytes < next.copied.bytes
        };
        let runs = self
            .reports
            .chunk_by(on)
            .filter_map(<[DdReport]>::split_last);
        runs.map(|(whole, parts)| ReportedRun { parts, whole })
            .collect()
    }
}

/// Reports that go on from one another.
struct ReportedRun<'a> {
    /// The reports under way.
    parts: &'a [DdReport],
    whole: &'a DdReport,
}

impl ReportedRun<'_> {
    /// The last report, which has the others in it.
    fn last(&self, command: Option<&DdCommand>) -> Imported {
        let mut result = self.whole.imported(command);
        if !self.parts.is_empty() {
            let parts = self.parts.len();
            result.notes.push(format!(
                "{parts} report(s) of the same dd under way were left out: they are part of this one"
            ));
        }
        result
    }

    /// Its results where no command tells whether it is one dd or several.
    fn without_command(&self) -> Vec<Imported> {
        // A signal comes after any number of records, or in the middle of one; people ask for round numbers.
        if !self.parts.iter().all(DdReport::is_round) {
            return vec![self.last(None)];
        }
        let part = |report: &DdReport| {
            let mut result = report.imported(None);
            result.notes.push(
                "this may be a report of one dd under way (kill -USR1), and then it is a part of the last one"
                    .to_owned(),
            );
            result
        };
        let parts = self.parts.iter().map(part);
        parts.chain([self.whole.imported(None)]).collect()
    }
}

impl DdReport {
    /// Returns true if it moved as many whole records as a person asks for.
    fn is_round(&self) -> bool {
        let Some((taken, given)) = self.records else {
            // Without records it may have been any number of them.
            return true;
        };
        let (count, part) = given;
        part == 0 && taken == given && (count.is_multiple_of(10) || count.is_multiple_of(64))
    }

    /// Returns true if a command can have made this report: so many records of its blocks, and no more of them than
    /// it asks for.
    fn is_of(&self, command: &DdCommand) -> bool {
        let bytes = self.copied.bytes;
        let Some((_, (whole, part))) = self.records else {
            // No more than was asked for.
            let most = command.whole_block().zip(command.blocks_asked());
            return most.is_none_or(|(block, asked)| bytes <= block.saturating_mul(asked));
        };
        let records = whole.saturating_add(part);
        let fits = |block: u64| {
            let least = whole.saturating_mul(block);
            (least..=records.saturating_mul(block)).contains(&bytes)
        };
        // With `ibs` and `obs` other blocks are read than written.
        command.whole_block().is_none_or(fits)
            && command.blocks_asked().is_none_or(|asked| records <= asked)
    }

    fn imported(&self, command: Option<&DdCommand>) -> Imported {
        let shown = command.is_some();
        let command = command.filter(|command| self.is_of(command));
        let mut figures = Figures::default();
        figures.rate("throughput", "B/s", Some(self.copied.rate));
        figures.time("elapsed", "s", Some(self.copied.seconds));
        let bytes = self.copied.bytes;
        let moved = match self.records {
            // A partial record at the end says nothing of the block size that was asked for.
            Some((_, (count, 0))) if count > 0 && bytes.is_multiple_of(count) => {
                Some(bytes / count)
            }
            _ => None,
        };
        let block = command.and_then(DdCommand::block).or(moved);
        let blocks = block.map_or(String::new(), |block| {
            format!(" in blocks of {}", size(block))
        });
        let what = command.map_or(String::new(), |command| format!(" {}", command.direction()));
        let flags = command.map_or(String::new(), DdCommand::flags);
        let amount = bytes.to_string();
        let mut settings = facts([("bytes", amount.as_str())]);
        if let Some(command) = command {
            settings.extend(facts(command.settings()));
        }
        Imported {
            settings,
            notes: self.notes(command, shown),
            ..figures.imported("dd", format!("dd{what} {}{blocks}{flags}", size(bytes)))
        }
    }

    /// `shown`: a command stands before the report, of this or of another run.
    fn notes(&self, command: Option<&DdCommand>, shown: bool) -> Vec<String> {
        let mut notes = Vec::new();
        if self.copied.bytes == 0 {
            notes.push("it moved no bytes: there is no rate".to_owned());
        }
        let Some((taken, given)) = self.records else {
            notes.push(
                "the text has only the last line of dd: how many records it moved is not known"
                    .to_owned(),
            );
            if command.is_none() {
                notes.push(unknown(shown));
            }
            return notes;
        };
        // One record was read and not written any more.
        let short = taken.0 > given.0 && taken.1 == given.1;
        let stopped = "it was stopped between reading and writing";
        let Some(command) = command else {
            if short {
                notes.push(stopped.to_owned());
            }
            notes.push(unknown(shown));
            return notes;
        };
        let given = given.0.saturating_add(given.1);
        match command.blocks_asked() {
            Some(asked) if given < asked => notes.push(format!(
                "it moved {given} of the {asked} blocks that were asked for. It was stopped, or there were no more"
            )),
            _ if short => notes.push(stopped.to_owned()),
            _ => {}
        }
        notes
    }
}

/// Says what no command tells; `shown`: there is one, of another run.
fn unknown(shown: bool) -> String {
    let why = match shown {
        true => "the command before it asks for other blocks, or for fewer",
        false => "the text does not show dd's command",
    };
    format!("{why}. So it is not known whether it read or wrote, and with which flags")
}
