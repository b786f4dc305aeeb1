//! One run in a few words, for lists.

use super::read::Record;
use stackrace_base::event::Event;
use stackrace_base::owned::FileState;

/// One run in a list.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RunSummary {
    /// Its id.
    pub run: String,
    /// Title of the study; empty where the log cannot be read.
    pub title: String,
    /// Hash of the study's text; empty alike.
    pub study_hash: String,
    /// Start of the run, RFC 3339.
    pub started_at: String,
    /// Names of the configurations.
    pub configurations: Vec<String>,
    /// Number of workloads.
    pub workloads: usize,
    /// Complete rounds.
    pub rounds: usize,
    /// Trials, complete or not.
    pub trials: usize,
    /// Reason of its end (`decided` …); `None` if it is going on, or it was killed.
    pub ended: Option<String>,
    /// The verdict's sentence at the last look.
    pub sentence: Option<String>,
    /// Words the user put on it, sorted.
    pub tags: Vec<String>,
    /// Reason for which the log cannot be read.
    pub unreadable: Option<String>,
}

/// A run that is entered into the index: everything that its log holds, and the log's state before it
/// was read; `None` if it is still written.
pub(super) type IndexedRun = (Record, Option<FileState>);

/// Sums a run up, but for its tags: they are not in the log.
pub(super) fn summary(record: &Record) -> RunSummary {
    let sentence = record
        .lines
        .iter()
        .rev()
        .find_map(|line| match &line.event {
            Event::Checked { sentence, .. } => Some(sentence.clone()),
            _ => None,
        });
    RunSummary {
        run: record.head.run.clone(),
        title: record.head.title.clone(),
        study_hash: record.head.study_hash.clone(),
        started_at: record.started_at().to_owned(),
        configurations: record
            .head
            .configurations
            .iter()
            .map(|configuration| configuration.name.clone())
            .collect(),
        workloads: record.head.workloads.len(),
        rounds: record.complete_rounds().len(),
        trials: record.trials().count(),
        ended: record.ended().map(|ended| ended.reason.to_owned()),
        sentence,
        tags: Vec::new(),
        unreadable: None,
    }
}
