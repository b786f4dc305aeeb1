//! The one vocabulary of what happened: written by `run`, kept by `record`, shown by the rest.
//!
//! A run is its events in order, one JSON object a line. Everything a verdict or a report needs is
//! in them: nothing is looked up elsewhere later. Unknown fields are ignored when read, so that a
//! newer log can be read by an older program; a field is never given a new meaning.
//!
//! Units: bytes, nanoseconds, operations; rates per second. Times of day are RFC 3339 in UTC.

mod again;
mod client;
mod counted;
mod crash;
mod decide;
mod drive;
mod exchanged;
mod fact;
mod figure;
mod head;
pub mod histogram;
mod identity;
mod line;
mod loop_file;
mod mount_options;
mod observation;
mod older;
mod operations;
mod place;
mod price;
mod recorded;
mod require;
#[cfg(test)]
mod sample;
mod shell;

pub use again::*;
pub use client::*;
pub use counted::*;
pub use crash::*;
pub use decide::{Decide, Precision, Until};
pub use drive::{DriveClass, DriveTold};
pub use exchanged::ExchangedStorage;
pub use fact::*;
pub use figure::{FactFigure, LayerEffect};
pub use head::*;
pub use identity::*;
pub use line::{LineError, LogLine};
pub use loop_file::LoopFile;
pub use mount_options::{comparable_options, counting_options};
pub use observation::*;
pub use operations::OperationsOf;
pub use place::*;
pub use price::Price;
pub use recorded::*;
pub use require::{BoundSide, NamedQuantile, Requirement, is_same_metric, metrics_named, split};
pub use shell::shell;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Version of the log's format; written into [`RunStarted`]. See `docs/formats/log.md`.
pub const FORMAT: u32 = 3;

/// Cost of a modelled drive to the guest that serves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedCost {
    /// The block device: `ublkb0`.
    pub device: String,
    /// Requests answered.
    pub requests: u64,
    /// Processor time of the thread that served them, ns: the model, the data, the way to the kernel.
    pub busy_ns: u64,
}

/// Events of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// First line: the question and everything needed to read the rest.
    // Boxed like the other large events: a log is held as a vector of events.
    RunStarted(Box<RunStarted>),
    /// The text of another tool that the run's trials were read from, verbatim.
    Imported(Box<ImportedText>),
    /// The run went on after an interruption.
    RunResumed {
        /// Version of the program that went on.
        stackrace: String,
        /// Complete rounds found.
        rounds: u32,
    },
    /// The order of one round, written before it begins.
    RoundStarted {
        /// Round, from 1.
        round: u32,
        /// Configurations by index, in the order they are tried; of several orders, the first.
        order: Vec<usize>,
        /// Order of the configurations in each workload, where a round goes workload by workload.
        /// Empty if each configuration goes through all workloads in its turn.
        // Logs of rounds in whole turns have no such field, and stay as they were.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        orders: Vec<Vec<usize>>,
    },
    /// A stack was set up.
    StackSetUp {
        /// Round, from 1.
        round: u32,
        /// Configuration by index.
        configuration: usize,
        /// Facts each layer really got, bottom up.
        layers: Vec<LayerFacts>,
        /// The directories that the user named for it, in the order of the layers, each with what it
        /// lies on. Empty in logs of older versions, and where none is named.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lies_on: Vec<StorageIdentity>,
        /// Duration, ns.
        elapsed_ns: u64,
    },
    /// A stack was torn down.
    StackTornDown {
        /// Round, from 1.
        round: u32,
        /// Configuration by index.
        configuration: usize,
        /// Cost of serving its modelled drives.
        // Only stacks in virtual time have such drives: other logs stay as they were.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        served: Vec<ServedCost>,
    },
    /// One command that set up, settled or tore down a stack.
    Command(CommandRun),
    /// One trial ended, well or not.
    Trial(Box<Observation>),
    /// Promises to the operations of a trial, where its workload keeps a ledger.
    Promised(Box<Promised>),
    /// The power was cut, and what was promised was looked for.
    Cut(Box<Cut>),
    /// Every live configuration has been tried once more.
    RoundFinished {
        /// Round, from 1.
        round: u32,
        /// Number of lines of trials of this round until here, of whatever end: a line that is missing is noticed.
        /// `None` in logs of older versions, and of imported results.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trials: Option<u32>,
    },
    /// The results were checked after a round.
    Checked {
        /// Complete rounds.
        rounds: u32,
        /// The verdict's sentence then.
        sentence: String,
        /// Configurations dropped by this check, by index.
        dropped: Vec<usize>,
        /// Workloads that were measured in slices and are measured in one go from here on.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        whole: Vec<SlicesEnded>,
    },
    /// A warning the reader of the results must know.
    Warned {
        /// One sentence.
        text: String,
    },
    /// Last line of an execution.
    RunEnded {
        /// `decided`, `rounds`, `time`, `interrupted`, `failed` or `imported`.
        reason: String,
        /// Description of the event, for a person.
        detail: String,
    },
}

/// A workload that is no longer measured in slices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlicesEnded {
    /// Workload by index.
    pub workload: usize,
    /// Reason, as a clause: `slices change what is measured`.
    pub why: String,
}

/// The head of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunStarted {
    /// Version of the format of the log: [`FORMAT`] of the program that wrote it.
    pub format: u32,
    /// Identity of the run: sortable, unique on this machine.
    pub run: String,
    /// Version of the program.
    pub stackrace: String,
    /// The command as it was typed.
    pub command: Vec<String>,
    /// The study, verbatim.
    // The text itself, because the file may have changed when the run is resumed.
    pub study: String,
    /// Source it was read from (a path, or `compare`).
    pub study_name: String,
    /// Hash of the study's text (BLAKE3, hex).
    pub study_hash: String,
    /// The study's title.
    pub title: String,
    /// Names of the factors, in the order of the study.
    pub factors: Vec<String>,
    /// Every configuration; its position is its index everywhere else.
    // Trials name them by index: names may be long, and a log has many trials.
    pub configurations: Vec<ConfigurationHead>,
    /// Every workload; its position is its index everywhere else.
    pub workloads: Vec<WorkloadHead>,
    /// Question, and when to stop.
    pub decide: Decide,
    /// Seed that everything random follows from.
    // Kept, so that a resumed run draws the orders and data that it would have drawn.
    pub seed: u64,
    /// Place it is made at; `None` if it was imported, or its log is from before this was kept ([`RunStarted::place`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<RunPlace>,
    /// The machine.
    pub environment: Vec<Fact>,
}

/// The option with which a user permits the commands of a study.
const ALLOW_COMMANDS: &str = "--allow-commands";

/// Options that a run which goes on needs as it needed them when it began, each with whether a value follows:
/// where it is kept, how its machines are reached and cut, which disks it may wipe.
const AGAIN: [(&str, bool); 7] = [
    ("--store", true),
    ("--ssh", true),
    ("--sudo", false),
    ("--wipe", true),
    ("--cut", true),
    ("--restore", true),
    ("--back-within", true),
];

impl RunStarted {
    /// Place the run is made at; in a log from before this was kept, what its facts say.
    pub fn place(&self) -> Cow<'_, RunPlace> {
        match &self.place {
            Some(place) => Cow::Borrowed(place),
            None => Cow::Owned(older::place(&self.environment)),
        }
    }

    /// Returns true if the study gives commands, so that it runs only with the user's permission.
    pub fn gives_commands(&self) -> bool {
        // A layer's commands leave no trace here but the option without which they did not run.
        self.command.iter().any(|word| word == ALLOW_COMMANDS)
            || self
                .workloads
                .iter()
                .any(|head| head.gives_commands || head.operations() == OperationsOf::Command)
    }

    /// The command that goes on with the run, as the user would have to type it.
    pub fn resume_command(&self) -> String {
        let mut words = vec!["resume".to_owned(), self.run.clone()];
        words.extend(self.gives_commands().then(|| ALLOW_COMMANDS.to_owned()));
        words.extend(self.typed_options(&AGAIN.map(|(name, _)| name)));
        again(&words)
    }

    /// The command that removes what the run left on other machines that have this program while it is made; `None` if
    /// it was made on this machine alone.
    pub fn clean_command(&self) -> Option<String> {
        let place = self.place();
        let others = match &*place {
            RunPlace::Ssh(others) | RunPlace::RealCut(others) => others,
            RunPlace::Clients { started, .. } => {
                return Some(self.reached(&["clean", "--clients", started]));
            }
            _ => return None,
        };
        let peers = others.peers.iter().flat_map(|peer| ["--peer", peer]);
        let on = match (&others.on, others.peers.is_empty()) {
            (Some(on), _) => vec!["--on", on.as_str()],
            // Those that the study names.
            (None, true) => vec!["--on", "HOST"],
            (None, false) => Vec::new(),
        };
        let words: Vec<&str> = ["clean"].into_iter().chain(on).chain(peers).collect();
        Some(self.reached(&words))
    }

    /// A command with the options by which the run's machines are reached.
    fn reached(&self, words: &[&str]) -> String {
        let way = self.typed_options(&["--ssh", "--sudo"]);
        let words = words.iter().map(|word| (*word).to_owned()).chain(way);
        again(&words.collect::<Vec<_>>())
    }

    /// Options of the command line with which the run began that hold for other commands on it, too.
    fn typed_options(&self, names: &[&str]) -> Vec<String> {
        // Behind `--` is a command of the user's, with options of its own.
        let mut words = self.command.iter().take_while(|word| *word != "--");
        let mut again = Vec::new();
        while let Some(word) = words.next() {
            let name = word.split('=').next().unwrap_or_default();
            let Some((_, takes_value)) = AGAIN.iter().find(|(known, _)| *known == name) else {
                continue;
            };
            // `--ssh=COMMAND` has its value in the same word.
            let value = (*takes_value && name == word).then(|| words.next());
            // The store that this process reads may have been moved since.
            let moved = name == "--store" && is_store_named();
            if names.contains(&name) && !moved {
                again.push(word.clone());
                again.extend(value.flatten().cloned());
            }
        }
        again
    }
}

/// A text that figures were imported from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedText {
    /// The file as it was named.
    pub file: String,
    /// Tool whose output it is, the first where several are in it.
    pub tool: String,
    /// Version of the tool, if the text says it.
    pub version: Option<String>,
    /// Hash of the text (BLAKE3, hex).
    // Two imports of one file are the same data: the hash tells, whatever the file is called now.
    pub hash: String,
    /// The text as it was given, whole.
    pub text: String,
}

/// One configuration, as a report needs it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConfigurationHead {
    /// `xfs, 4 KiB`.
    pub name: String,
    /// Level of each factor, in the order of the factors.
    pub levels: Vec<String>,
    /// What its levels cost together; `None` if the study does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Price>,
}

/// One command as it was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRun {
    /// Name of the host (`local`).
    pub host: String,
    /// Program and arguments (lossy where they are not UTF-8).
    pub argv: Vec<String>,
    /// Exit status; `None` if ended by a signal or not started.
    pub status: Option<i32>,
    /// Standard output, cut at a stated limit.
    pub stdout: String,
    /// Standard error, cut at a stated limit.
    pub stderr: String,
    /// Duration, ns.
    pub elapsed_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resume_is_asked_for_with_all_that_the_first_command_said_of_the_way() {
        let resumed = |words: &[&str]| {
            let command = words.iter().map(|word| (*word).to_owned()).collect();
            crate::printed::Design::of(&[], "2026-01-02T03:04:05Z")
                .head("r1".to_owned(), String::new(), command)
                .resume_command()
        };
        let plain = ["stackrace", "run", "demo", "--time", "60s"];
        assert_eq!(resumed(&plain), "stackrace resume r1");
        let far = [
            "stackrace",
            "--store=/srv/a b",
            "run",
            "s.toml",
            "--on",
            "far",
            "--ssh",
            "ssh -i KEY",
            "--sudo",
        ];
        assert_eq!(
            resumed(&far),
            "stackrace resume r1 '--store=/srv/a b' --ssh 'ssh -i KEY' --sudo"
        );
        let head = |words: &[&str], place: RunPlace| {
            let command = words.iter().map(|word| (*word).to_owned()).collect();
            let design = crate::printed::Design::of(&[], "2026-01-02T03:04:05Z");
            let mut head = design.head("r1".to_owned(), String::new(), command);
            head.place = Some(place);
            head.clean_command()
        };
        let on = OtherMachines {
            on: Some("far".to_owned()),
            peers: vec!["ann@two".to_owned()],
            directory: None,
        };
        assert_eq!(
            head(&far, RunPlace::Ssh(on)).unwrap(),
            "stackrace clean --on far --peer ann@two --ssh 'ssh -i KEY' --sudo"
        );
        assert_eq!(head(&far, RunPlace::Here { directory: None }), None);
        let own = ["stackrace", "compare", "a", "b", "--", "tool", "--ssh", "x"];
        assert_eq!(resumed(&own), "stackrace resume r1");
    }
}
