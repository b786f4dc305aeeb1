//! A run as it is read back: its lines in order, and what follows from them.
//!
//! Reading never writes. A line that this program does not know is left where it is and skipped
//! with a note: a log of a newer program stays readable as far as this one understands it.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::RecordError;
use super::skim::{RoundTime, RunMarks, is_mendable, seconds_between};
use stackrace_base::appendlog::split_torn;
use stackrace_base::event::{
    Cut, Ended, Event, FORMAT, ImportedText, LayerFacts, LineError, LogLine, Observation, Promised,
    RunStarted, SlicesEnded, StorageIdentity,
};
use stackrace_base::unit::{self, ShownPath};

/// Everything a run left behind.
#[derive(Debug, Clone)]
pub struct Record {
    /// The question and its design.
    pub head: RunStarted,
    /// Every line, the first included.
    pub lines: Vec<LogLine>,
    /// Parts that could not be read, one sentence each.
    pub notes: Vec<String>,
}

/// The end of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunEnd<'a> {
    /// Time of day of that, RFC 3339, UTC.
    pub at: &'a str,
    /// `decided`, `rounds`, `time`, `interrupted` or `failed`.
    pub reason: &'a str,
    /// Explanation for a person.
    pub detail: &'a str,
}

impl Record {
    /// Reads a log's bytes; `path` is named in messages only.
    ///
    /// # Errors
    /// The log does not begin with a readable `run-started`.
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self, RecordError> {
        let (whole, torn) = split_torn(bytes);
        let mut lines = Vec::new();
        let mut notes = Vec::new();
        let mut head = None;
        for (index, text) in whole.split_inclusive(|&byte| byte == b'\n').enumerate() {
            match LogLine::read(text) {
                Ok(line) => {
                    if let (0, Event::RunStarted(started)) = (index, &line.event) {
                        // Fields that have since been renamed may be missing unnoticed: an older log
                        // that happens to parse is refused like one that does not.
                        if started.format < FORMAT {
                            return Err(old_format(path, started.format.into()));
                        }
                        head = Some((**started).clone());
                    }
                    lines.push(line);
                }
                Err(error) if index == 0 => return Err(no_head(path, text, error)),
                Err(error) => notes.push(skipped(path, index + 1, &error)),
            }
        }
        let Some(head) = head else {
            let error = match (lines.first(), torn) {
                (Some(_), _) => LineError::NotFirst,
                (None, []) => LineError::Empty,
                // Not one whole line of JSON: a file of something else.
                (None, _) => LineError::NotJson,
            };
            let path = path.to_path_buf();
            return Err(RecordError::NoHead { path, error });
        };
        if head.format > FORMAT {
            notes.insert(
                0,
                format!(
                    "log format {} is newer than this stackrace ({FORMAT}): unknown parts are skipped",
                    head.format
                ),
            );
        }
        notes.extend(altered_rounds(&lines).iter().map(AlteredRound::to_string));
        if !torn.is_empty() {
            notes.push(format!(
                "the last line is incomplete ({} bytes) and not counted: it is being written, or its writer was killed",
                torn.len()
            ));
        }
        Ok(Self { head, lines, notes })
    }

    /// Rounds whose lines were removed or added since they ended.
    pub fn altered_rounds(&self) -> Vec<AlteredRound> {
        altered_rounds(&self.lines)
    }

    /// Returns true if a text can be the id of a run.
    pub fn fits_id(run: &str) -> bool {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
        !run.is_empty() && run.len() <= 64 && run.chars().all(fits)
    }

    /// Refuses a log that was found in the directory of another run than it says.
    ///
    /// # Errors
    /// [`RecordError::OtherRun`].
    pub(super) fn is_of_run(&self, path: &Path) -> Result<(), RecordError> {
        let found = path.parent().and_then(Path::file_name);
        match found.is_some_and(|name| name == self.head.run.as_str()) {
            true => Ok(()),
            false => Err(RecordError::OtherRun {
                path: path.to_path_buf(),
                run: self.head.run.clone(),
            }),
        }
    }

    /// A record that begins with this line; `None` if the line begins no run.
    pub fn begin(line: LogLine) -> Option<Self> {
        let Event::RunStarted(head) = &line.event else {
            return None;
        };
        Some(Self {
            head: (**head).clone(),
            lines: vec![line],
            notes: Vec::new(),
        })
    }

    /// Adds a line, so that a run in progress can be judged as it stands.
    pub fn push(&mut self, line: LogLine) {
        self.lines.push(line);
    }

    /// Everything that was logged behind the head, in the order it happened.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &Event> {
        self.lines.iter().map(|line| &line.event)
    }

    /// Every trial, in the order they ended.
    pub fn trials(&self) -> impl DoubleEndedIterator<Item = &Observation> {
        self.events().filter_map(|event| match event {
            Event::Trial(observation) => Some(&**observation),
            _ => None,
        })
    }

    /// The trials that ended after a round was begun for the first time, the last one first.
    pub fn trials_since(&self, round: u32) -> impl Iterator<Item = &Observation> {
        let begins = move |event: &&Event| matches!(event, Event::RoundStarted { round: begun, .. } if *begun < round);
        let since = self.events().rev().take_while(move |event| !begins(event));
        // The end of the round before lies between: its trials are met, and are not meant.
        since.filter_map(move |event| match event {
            Event::Trial(observation) if observation.round >= round => Some(&**observation),
            _ => None,
        })
    }

    /// The promises made to the operations of a trial; `None` if it has no ledger.
    pub fn promised(&self, round: u32, configuration: usize, workload: usize) -> Option<&Promised> {
        let mut all = self.events().filter_map(|event| match event {
            Event::Promised(promised) => Some(&**promised),
            _ => None,
        });
        all.find(|one| {
            (one.round, one.configuration, one.workload) == (round, configuration, workload)
        })
    }

    /// The lines that say how far it is.
    fn marks(&self) -> RunMarks<'_> {
        RunMarks::of(&self.lines)
    }

    /// Trials that failed, and take their configuration out of the race ([`RunMarks::failures`]).
    pub fn failures(&self) -> impl Iterator<Item = &Observation> {
        self.marks().failures().into_iter()
    }

    /// The first failure that a resume would try again, once its cause is mended; `None` if there is none.
    pub fn mendable(&self) -> Option<&Observation> {
        self.failures().find(|trial| is_mendable(trial))
    }

    /// Rounds whose end was recorded, ascending ([`RunMarks::complete_rounds`]).
    pub fn complete_rounds(&self) -> Vec<u32> {
        self.marks().complete_rounds()
    }

    /// Configurations that were dropped, in the order they were ([`RunMarks::dropped`]).
    pub fn dropped(&self) -> Vec<(usize, u32)> {
        self.marks().dropped()
    }

    /// Workloads that are no longer measured in slices ([`RunMarks::slices_ended`]).
    pub fn slices_ended(&self) -> impl Iterator<Item = (u32, &SlicesEnded)> {
        self.marks().slices_ended().into_iter()
    }

    /// Cuts of the power, in the order in which they were made.
    pub fn cuts(&self) -> impl DoubleEndedIterator<Item = &Cut> {
        self.marks().cuts().into_iter()
    }

    /// Returns true if the figures were imported: another tool measured them, in no order that is known.
    pub fn imported(&self) -> bool {
        self.marks().imported()
    }

    /// Durations of the complete rounds, ascending ([`RunMarks::round_times`]).
    pub fn round_times(&self) -> Vec<RoundTime> {
        self.marks().round_times()
    }

    /// The next round to be measured: the first that is not complete.
    pub fn next_round(&self) -> u32 {
        let complete = self.complete_rounds();
        let missing = (1..)
            .zip(&complete)
            .find(|(number, round)| number != *round);
        missing.map_or_else(
            || u32::try_from(complete.len()).map_or(u32::MAX, |done| done.saturating_add(1)),
            |(number, _)| number,
        )
    }

    /// The same without its complete trials, which are nearly all of it.
    pub fn outline(mut self) -> Self {
        self.lines.retain(
            |line| !matches!(&line.event, Event::Trial(trial) if trial.ended == Ended::Complete),
        );
        // A thousand of them are kept: the room of what was taken out is given back.
        self.lines.shrink_to_fit();
        self
    }

    /// The texts that figures were imported from.
    pub fn origins(&self) -> impl Iterator<Item = &ImportedText> {
        self.events().filter_map(|event| match event {
            Event::Imported(text) => Some(&**text),
            _ => None,
        })
    }

    /// The order a round was begun in, if it was.
    pub fn order_of(&self, round: u32) -> Option<Vec<usize>> {
        self.events().find_map(|event| match event {
            Event::RoundStarted {
                round: begun,
                order,
                ..
            } if *begun == round => Some(order.clone()),
            _ => None,
        })
    }

    /// The orders of the workloads of a round that was begun. `None` if it was not begun; empty if
    /// it goes in whole turns.
    pub fn orders_of(&self, round: u32) -> Option<Vec<Vec<usize>>> {
        self.events().find_map(|event| match event {
            Event::RoundStarted {
                round: begun,
                orders,
                ..
            } if *begun == round => Some(orders.clone()),
            _ => None,
        })
    }

    /// Returns true if the results were checked after so many complete rounds.
    pub fn checked_at(&self, rounds: u32) -> bool {
        self.events()
            .any(|event| matches!(event, Event::Checked { rounds: at, .. } if *at == rounds))
    }

    /// Start of the run, RFC 3339.
    pub fn started_at(&self) -> &str {
        self.lines.first().map_or("", |line| &line.at)
    }

    /// Time of the run's executions together, s; the pauses between them are not counted.
    pub fn elapsed_seconds(&self) -> f64 {
        let resumed = |line: &LogLine| matches!(line.event, Event::RunResumed { .. });
        let executions = self.lines.chunk_by(|_, next| !resumed(next));
        let seconds = executions.map(|lines| match lines {
            [began, .., last] => seconds_between(began, last),
            _ => 0.0,
        });
        // From 0.0: the sum of none is -0.0.
        seconds.fold(0.0, |total, seconds| total + seconds)
    }

    /// The facts of a configuration's layers as they really were each time it was set up, first to
    /// last, bottom up; empty if it was never set up.
    pub fn layer_facts(&self, configuration: usize) -> Vec<&[LayerFacts]> {
        self.events()
            .filter_map(|event| match event {
                Event::StackSetUp {
                    configuration: set_up,
                    layers,
                    ..
                } if *set_up == configuration => Some(layers.as_slice()),
                _ => None,
            })
            .collect()
    }

    /// The storage that a configuration lay on when it was first set up: the directories that the
    /// user named for it. Empty if none is named, or an older program made the log.
    pub fn lies_on(&self, configuration: usize) -> &[StorageIdentity] {
        // The first alone: whatever came later is compared with it.
        let mut first = self.events().filter_map(|event| match event {
            Event::StackSetUp {
                configuration: set_up,
                lies_on,
                ..
            } if *set_up == configuration && !lies_on.is_empty() => Some(lies_on.as_slice()),
            _ => None,
        });
        first.next().unwrap_or_default()
    }

    /// The warnings, in order, each once.
    pub fn warnings(&self) -> Vec<&str> {
        each_warning(self.events())
    }

    /// Those of them that were known before the first round: what the question itself lacks.
    pub fn warnings_before(&self) -> Vec<&str> {
        let round = |event: &&Event| matches!(event, Event::RoundStarted { .. });
        each_warning(self.events().take_while(|event| !round(event)))
    }

    /// The end of the last execution; `None` if it is going on, or it was killed.
    pub fn ended(&self) -> Option<RunEnd<'_>> {
        let line = self.lines.last()?;
        match &line.event {
            Event::RunEnded { reason, detail } => Some(RunEnd {
                at: &line.at,
                reason,
                detail,
            }),
            _ => None,
        }
    }
}

/// A round that has not as many trials as it had when it ended: a line was taken out of the log, or put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlteredRound {
    /// Round, from 1.
    pub round: u32,
    /// Trials that it ended with.
    pub ended_with: u32,
    /// Trials that are there.
    pub found: u32,
}

impl std::fmt::Display for AlteredRound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            round,
            ended_with,
            found,
        } = self;
        let trials = unit::counted(*ended_with as usize, "trial");
        write!(
            f,
            "round {round} ended with {trials}, and the log has {found}: lines were removed or added, so its figures and verdict are not those that were measured"
        )
    }
}

fn altered_rounds(lines: &[LogLine]) -> Vec<AlteredRound> {
    let mut trials: BTreeMap<u32, u32> = BTreeMap::new();
    let mut altered = Vec::new();
    for line in lines {
        match &line.event {
            Event::Trial(trial) => *trials.entry(trial.round).or_default() += 1,
            Event::RoundFinished {
                round,
                trials: Some(ended_with),
            } => {
                let found = trials.get(round).copied().unwrap_or(0);
                if found != *ended_with {
                    altered.push(AlteredRound {
                        round: *round,
                        ended_with: *ended_with,
                        found,
                    });
                }
            }
            _ => {}
        }
    }
    altered
}

fn no_head(path: &Path, text: &[u8], error: LineError) -> RecordError {
    let format = serde_json::from_slice::<serde_json::Value>(text)
        .ok()
        .and_then(|value| value.get("format")?.as_u64());
    match format {
        Some(format) if format < FORMAT.into() => old_format(path, format),
        Some(format) if format > FORMAT.into() => RecordError::NewerHead {
            path: path.to_path_buf(),
            format,
        },
        _ => RecordError::NoHead {
            path: path.to_path_buf(),
            error,
        },
    }
}

fn old_format(path: &Path, format: u64) -> RecordError {
    RecordError::OldFormat {
        path: path.to_path_buf(),
        format,
    }
}

fn skipped(path: &Path, number: usize, error: &LineError) -> String {
    let does = match error {
        LineError::Unknown(_) => "the stackrace that wrote it, or a newer one, reads it",
        _ => "bring back the log from a copy to have it",
    };
    format!(
        "line {number} of {} does not count: {error}; {does}",
        path.shown()
    )
}

/// The warnings among events, in order, each once.
fn each_warning<'a>(events: impl Iterator<Item = &'a Event>) -> Vec<&'a str> {
    let mut warnings: Vec<&str> = Vec::new();
    for event in events {
        if let Event::Warned { text } = event
            && !warnings.contains(&text.as_str())
        {
            warnings.push(text);
        }
    }
    warnings
}
