//! Commands of dd with the reports that follow them, and what both say together.

use super::command::DdCommand;
use super::line::{Copied, Records};
use stackrace_base::printed::Imported;
use stackrace_base::printed::text::{Figures, facts, size};

/// One report of dd.
pub(super) struct DdReport {
    pub(super) taken: Records,
    pub(super) given: Records,
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
        match (self.commands.as_slice(), self.reports.as_slice()) {
            (_, []) => Vec::new(),
            ([], _) => all(None),
            (commands, reports) if commands.len() == reports.len() => {
                let pairs = commands.iter().zip(reports);
                pairs
                    .map(|(command, report)| report.imported(Some(command)))
                    .collect()
            }
            ([command], _) if command.repeats => all(Some(command)),
            ([command], [.., last]) if self.is_one_under_way() => {
                let mut result = last.imported(Some(command));
                let count = self.reports.len() - 1;
                result.notes.push(format!(
                    "{count} report(s) of the same dd under way were left out: they are part of this one"
                ));
                vec![result]
            }
            // The others printed to somewhere else, or are only spoken of.
            ([.., command], [report]) => vec![report.imported(Some(command))],
            _ => all(None),
        }
    }

    /// Whether the reports go on from one another, as those that a signal asks for do.
    fn is_one_under_way(&self) -> bool {
        let mut pairs = self.reports.windows(2);
        pairs.all(|pair| {
            let (one, next) = (&pair[0], &pair[1]);
            one.copied.within(&next.copied)
                && one.copied.seconds.value < next.copied.seconds.value
                && one.copied.bytes < next.copied.bytes
        })
    }
}

impl DdReport {
    fn imported(&self, command: Option<&DdCommand>) -> Imported {
        let mut figures = Figures::default();
        figures.rate("throughput", "B/s", Some(self.copied.rate));
        figures.time("elapsed", "s", Some(self.copied.seconds));
        let bytes = self.copied.bytes;
        let moved = match self.given {
            // A partial record at the end says nothing of the block size that was asked for.
            (count, 0) if count > 0 && bytes.is_multiple_of(count) => Some(bytes / count),
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
            tool: "dd",
            version: None,
            label: None,
            workload: format!("dd{what} {}{blocks}{flags}", size(bytes)),
            kind: "dd".to_owned(),
            settings,
            environment: Vec::new(),
            metrics: figures.metrics,
            values: figures.values,
            notes: self.notes(command),
        }
    }

    fn notes(&self, command: Option<&DdCommand>) -> Vec<String> {
        let mut notes = Vec::new();
        let Some(command) = command else {
            notes.push(
                "the text does not show dd's command: whether it read or wrote, and with which flags, is not known"
                    .to_owned(),
            );
            return notes;
        };
        let given = self.given.0.saturating_add(self.given.1);
        let asked: Option<u64> = command.operand("count").parse().ok();
        match asked {
            Some(asked) if given < asked => notes.push(format!(
                "it moved {given} of the {asked} blocks that were asked for: it was stopped, or there were no more"
            )),
            // One record was read and not written any more.
            _ if self.taken.0 > self.given.0 && self.taken.1 == self.given.1 => {
                notes.push("it was stopped between reading and writing".to_owned());
            }
            _ => {}
        }
        notes
    }
}
