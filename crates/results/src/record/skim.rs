//! The few lines of a log that say how far its run is, and the places of its trials.
//!
//! A run of many configurations has a hundred times as many lines as that, and a check after each round
//! would go over all of them again. So the places of these lines can be kept ([`RecordSkim`]), and only new lines are
//! read. What follows from them is worked out in one place ([`RunMarks`]), whether they were kept or just found.

use std::collections::BTreeSet;

use stackrace_base::event::{Cut, Event, FailureCause, LogLine, Observation, SlicesEnded};

/// Messages of failures that can be mended by hand, for logs and steps that give no cause as a value.
const MENDABLE: [&str; 7] = [
    "No space left on device",
    "Disk quota exceeded",
    "Input/output error",
    "Read-only file system",
    "No such device",
    "Transport endpoint is not connected",
    "Stale file handle",
];

/// Returns true if a trial failed for a reason that can be mended by hand, so that another try makes sense. A
/// configuration that gives back wrong data or refuses an option stays out.
pub(super) fn is_mendable(trial: &Observation) -> bool {
    let error = trial.ended.error().unwrap_or_default();
    let known = trial.cause.as_ref().map(FailureCause::can_be_mended);
    // What was exchanged can be brought back, too.
    trial.exchanged.is_some()
        || known.unwrap_or_else(|| MENDABLE.iter().any(|words| error.contains(words)))
}

/// The duration of one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundTime {
    /// Number of the round, from 1.
    pub round: u32,
    /// Time from the first line of the round to its last, s.
    pub seconds: f64,
}

/// Lines that say how far a run is: all but complete trials, and what was done for them.
#[derive(Debug, Clone)]
pub struct RunMarks<'a>(Vec<&'a LogLine>);

/// Returns true if something about the course of the run follows from a line.
fn is_mark(event: &Event) -> bool {
    match event {
        Event::Trial(trial) => trial.ended.error().is_some(),
        Event::RoundStarted { .. }
        | Event::RoundFinished { .. }
        | Event::RunResumed { .. }
        | Event::Checked { .. }
        | Event::Imported(_)
        | Event::Cut(_) => true,
        Event::RunStarted(_)
        | Event::RunEnded { .. }
        | Event::StackSetUp { .. }
        | Event::StackTornDown { .. }
        | Event::Command(_)
        | Event::Promised(_)
        | Event::Warned { .. } => false,
    }
}

impl<'a> RunMarks<'a> {
    /// Finds them among all lines.
    pub(super) fn of(lines: &'a [LogLine]) -> Self {
        Self(lines.iter().filter(|line| is_mark(&line.event)).collect())
    }

    fn events(&self) -> impl DoubleEndedIterator<Item = &'a Event> {
        self.0.iter().map(|line| &line.event)
    }

    /// Trials that failed, and take their configuration out of the race. After a resume, one that found
    /// a disk full or broken does not: its configuration is tried again. Its trial stays on record.
    pub fn failures(&self) -> Vec<&'a Observation> {
        let mut failures = Vec::new();
        for event in self.events() {
            match event {
                Event::Trial(trial) => failures.push(&**trial),
                Event::RunResumed { .. } => failures.retain(|trial| !is_mendable(trial)),
                _ => {}
            }
        }
        failures
    }

    /// Rounds whose end was recorded, ascending; after a resume, without one in which a configuration failed of what can
    /// be mended: it is measured again, and takes nothing of the rounds that were asked for.
    pub fn complete_rounds(&self) -> Vec<u32> {
        let mut rounds: Vec<u32> = Vec::new();
        // Of the execution under way: rounds that ended, and rounds with such a failure.
        let (mut ended, mut mendable): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        for event in self.events() {
            match event {
                Event::RoundFinished { round, .. } => ended.push(*round),
                Event::Trial(trial) if is_mendable(trial) => mendable.push(trial.round),
                Event::RunResumed { .. } => {
                    ended.retain(|round| !mendable.contains(round));
                    rounds.append(&mut ended);
                    mendable.clear();
                }
                _ => {}
            }
        }
        rounds.append(&mut ended);
        rounds.sort_unstable();
        rounds.dedup();
        rounds
    }

    /// Configurations by index with the number of complete rounds after which each was dropped, in
    /// the order they were.
    pub fn dropped(&self) -> Vec<(usize, u32)> {
        let mut dropped: Vec<(usize, u32)> = Vec::new();
        for event in self.events() {
            let Event::Checked {
                rounds,
                dropped: now,
                ..
            } = event
            else {
                continue;
            };
            for &configuration in now {
                if dropped.iter().all(|&(known, _)| known != configuration) {
                    dropped.push((configuration, *rounds));
                }
            }
        }
        dropped
    }

    /// Workloads that are no longer measured in slices, each with the number of complete rounds after
    /// which that began.
    pub fn slices_ended(&self) -> Vec<(u32, &'a SlicesEnded)> {
        let mut all = Vec::new();
        for event in self.events() {
            if let Event::Checked { rounds, whole, .. } = event {
                all.extend(whole.iter().map(|ended| (*rounds, ended)));
            }
        }
        all
    }

    /// Cuts of the power, in the order in which they were made.
    pub fn cuts(&self) -> Vec<&'a Cut> {
        let cuts = self.events().filter_map(|event| match event {
            Event::Cut(cut) => Some(&**cut),
            _ => None,
        });
        cuts.collect()
    }

    /// Returns true if the figures were imported: another tool measured them, in no order that is known.
    pub fn imported(&self) -> bool {
        self.events()
            .any(|event| matches!(event, Event::Imported(_)))
    }

    /// Durations of the complete rounds, ascending; an interrupted one counts from its last beginning.
    pub fn round_times(&self) -> Vec<RoundTime> {
        let mut times: Vec<RoundTime> = Vec::new();
        let mut began: Option<(u32, &LogLine)> = None;
        for line in &self.0 {
            match line.event {
                Event::RoundStarted { round, .. } => began = Some((round, line)),
                Event::RunResumed { .. } => began = began.map(|(round, _)| (round, *line)),
                Event::RoundFinished { round, .. } => {
                    if let Some((_, first)) = began.take().filter(|&(begun, _)| begun == round) {
                        times.push(RoundTime {
                            round,
                            seconds: seconds_between(first, line),
                        });
                    }
                }
                _ => {}
            }
        }
        times.sort_by_key(|time| time.round);
        times
    }
}

/// Places of the marks and the trials of a record that grows, kept from look to look.
#[derive(Debug, Clone, Default)]
pub struct RecordSkim {
    /// The run that was read, so that another one is not taken for it.
    run: String,
    read: usize,
    trials: Vec<usize>,
    marks: Vec<usize>,
    sliced: BTreeSet<usize>,
}

impl RecordSkim {
    /// Reads the lines that are new; all of them if this is not the same run with more lines.
    pub fn follow(&mut self, run: &str, lines: &[LogLine]) {
        if self.run != run || self.read > lines.len() {
            *self = Self {
                run: run.to_owned(),
                ..Self::default()
            };
        }
        for (at, line) in lines.iter().enumerate().skip(self.read) {
            if is_mark(&line.event) {
                self.marks.push(at);
            }
            if let Event::Trial(trial) = &line.event {
                self.trials.push(at);
                if trial.sliced.is_some() {
                    self.sliced.insert(trial.workload);
                }
            }
        }
        self.read = lines.len();
    }

    /// Every trial among the lines that were followed, in the order they ended.
    pub fn trials<'a>(&self, lines: &'a [LogLine]) -> Vec<&'a Observation> {
        let lines = self.trials.iter().map(|at| &lines[*at].event);
        let trials = lines.filter_map(|event| match event {
            Event::Trial(trial) => Some(&**trial),
            _ => None,
        });
        trials.collect()
    }

    /// The marks among the lines that were followed.
    pub fn marks<'a>(&self, lines: &'a [LogLine]) -> RunMarks<'a> {
        RunMarks(self.marks.iter().map(|at| &lines[*at]).collect())
    }

    /// Workloads with a trial in slices.
    pub fn sliced(&self) -> &BTreeSet<usize> {
        &self.sliced
    }
}

/// Seconds between two lines of one execution. In the log of an older version by the times of day: 0 where one
/// cannot be read or the clock was set back.
pub(super) fn seconds_between(begin: &LogLine, end: &LogLine) -> f64 {
    if let (Some(begin), Some(end)) = (begin.since_ns, end.since_ns) {
        return end.saturating_sub(begin) as f64 / 1e9;
    }
    match (
        begin.at.parse::<jiff::Timestamp>(),
        end.at.parse::<jiff::Timestamp>(),
    ) {
        (Ok(begin), Ok(end)) => end.duration_since(begin).as_secs_f64().max(0.0),
        _ => 0.0,
    }
}
