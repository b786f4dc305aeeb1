//! The losses of a run, numbered.

use super::Record;
use stackrace_base::event::{Cut, LossLine, again};

/// A broken promise, or a cut after which nothing could be mounted.
#[derive(Debug, Clone, Copy)]
pub struct RecordedLoss<'a> {
    /// The power cut that broke it.
    pub cut: &'a Cut,
    /// The promise; `None` if nothing could be mounted.
    pub line: Option<&'a LossLine>,
}

impl RecordedLoss<'_> {
    /// The loss, in a few words.
    pub fn what(&self) -> String {
        match self.line {
            Some(line) => format!("{}: {}", line.ledger.object, line.found),
            None => "nothing could be mounted".to_owned(),
        }
    }
}

impl Record {
    /// The losses that are kept one by one, in the order of the log: the first one is number 1.
    pub fn losses(&self) -> Vec<RecordedLoss<'_>> {
        let mut all = Vec::new();
        for cut in self.cuts() {
            let found = cut.found.iter().flat_map(|found| &found.losses);
            all.extend(found.map(|line| RecordedLoss {
                cut,
                line: Some(line),
            }));
            // Nothing could be looked for, so there are no lines.
            if !cut.recovery.mounted {
                all.push(RecordedLoss { cut, line: None });
            }
        }
        all
    }

    /// The command that makes a loss of this run again, and shows how it came about.
    pub fn loss_command(&self, number: usize) -> String {
        again(&["crash", "show", &self.head.run, &number.to_string()])
    }
}
