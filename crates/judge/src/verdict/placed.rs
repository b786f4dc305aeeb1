//! Where the storage of a run stands: against its own earlier runs, and among modelled drives.

use serde::Serialize;
use stackrace_base::event::Better;
use stackrace_base::unit::{self, counted};

/// Where one directory stands, workload by workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Placed {
    /// No earlier run asked the same.
    pub first: bool,
    /// Against earlier runs.
    pub past: Vec<AgainstPast>,
    /// Among modelled drives.
    pub drives: Vec<AmongDrives>,
    /// Among the runs of a gallery.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<AmongRuns>,
    /// Reason for which it stands nowhere among those runs; `None` if it does, or none were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_runs: Option<String>,
}

/// A figure of this run among those of the runs of a gallery on drives of the same class and model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AmongRuns {
    /// Name of the workload.
    pub workload: String,
    /// Unit of the figures, as metrics have it.
    pub unit: String,
    /// Class and model of the drive.
    pub drive: String,
    /// Figure of this run.
    pub value: f64,
    /// Runs of the gallery that have a figure of this workload.
    pub runs: usize,
    /// Those of them whose figure is worse.
    pub worse: usize,
    /// Smallest figure, median and largest one of them; `None` if they are too few.
    pub spread: Option<[f64; 3]>,
}

/// Runs of a gallery without which nothing is normal.
pub const RUNS_LEAST: usize = 3;

/// A figure of this run against those of the runs before that asked the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgainstPast {
    /// Name of the workload.
    pub workload: String,
    /// Unit of the figures, as metrics have it.
    pub unit: String,
    /// Which figures are better.
    pub better: Better,
    /// Figure of this run.
    pub value: f64,
    /// Median of the earlier runs.
    pub median: f64,
    /// Earlier runs.
    pub runs: usize,
    /// Date of the earliest of them, `2026-06-01`.
    pub since: String,
    /// The difference is larger than what runs of the same storage differ by.
    pub certain: bool,
}

/// A figure of this run among those of modelled drives.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AmongDrives {
    /// Name of the workload.
    pub workload: String,
    /// Unit of the figures, as metrics have it.
    pub unit: String,
    /// Figure of this run.
    pub value: f64,
    /// The fastest drive that is no faster; `None` if all are.
    pub slower: Option<ModelledDrive>,
    /// The slowest drive that is faster; `None` if none is.
    pub faster: Option<ModelledDrive>,
}

/// A modelled drive and its figure for a workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelledDrive {
    /// Name of its card.
    pub drive: String,
    /// Figure that its model reaches, in the unit of the workload's metric.
    pub value: f64,
    /// Source of a published figure of such work; `None` if there is none.
    pub published: Option<String>,
}

impl Placed {
    /// Returns true if neither a past nor drives are known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// A sentence for each, and one on what the drives are.
    pub fn sentences(&self) -> Vec<String> {
        let mut said: Vec<String> = self.past.iter().map(AgainstPast::sentence).collect();
        if self.first {
            said.push("The first run that asks this: later ones are compared with it".to_owned());
        }
        said.extend(self.drives.iter().filter_map(AmongDrives::sentence));
        if !self.drives.is_empty() {
            said.push("Models of bare drives, not measurements: a file system, caches and other work lie between. Their sources: stackrace show drives NAME".to_owned());
        }
        said.extend(self.runs.iter().map(AmongRuns::sentence));
        // Where nothing is placed, there is nothing to be careful about.
        if self.runs.iter().any(|one| one.spread.is_some()) {
            said.push("Runs of a gallery are those of the same class and model of drive: sizes of data, file systems and machines may differ, and its pages say how".to_owned());
        }
        said.extend(self.without_runs.clone());
        said
    }
}

impl AmongRuns {
    /// `streaming write: 1.67 GB/s, better than 5 of 7 runs on SSD ACME 900 (1.2 GB/s to 1.9 GB/s, median 1.5 GB/s)`
    fn sentence(&self) -> String {
        let shown = |value| unit::of_metric(&self.unit, value);
        let runs = counted(self.runs, "run");
        let Self {
            workload, drive, ..
        } = self;
        match self.spread {
            // The ends, and no interval: so few runs have no other shape.
            Some([low, median, high]) => format!(
                "{workload}: {}, better than {} of the {runs} on {drive} in the gallery ({} to {}, median {})",
                shown(self.value),
                self.worse,
                shown(low),
                shown(high),
                shown(median)
            ),
            None => format!(
                "{workload}: the gallery has {runs} on {drive}: too few to say what is normal, which takes {RUNS_LEAST}"
            ),
        }
    }
}

impl AgainstPast {
    /// `streaming write: 4 % slower than the median of 5 runs since 2026-06-01 (212 MB/s): not certain`
    fn sentence(&self) -> String {
        let share = match self.better {
            Better::Higher => self.value / self.median - 1.0,
            Better::Lower => self.median / self.value - 1.0,
        };
        let word = if share < 0.0 { "slower" } else { "faster" };
        let sure = if self.certain {
            "certain"
        } else {
            "not certain"
        };
        let earlier = match self.runs {
            1 => format!("the run of {}", self.since),
            several => format!(
                "the median of {} since {}",
                counted(several, "run"),
                self.since
            ),
        };
        format!(
            "{}: {} {word} than {earlier} ({}): {sure}",
            self.workload,
            unit::percent(share.abs()),
            unit::of_metric(&self.unit, self.median)
        )
    }
}

impl AmongDrives {
    fn sentence(&self) -> Option<String> {
        let shown = |it: &ModelledDrive| {
            let published = it.published.iter().map(|source| format!("; {source}"));
            format!(
                "{} ({}{})",
                it.drive,
                unit::of_metric(&self.unit, it.value),
                published.collect::<String>()
            )
        };
        let place = match (&self.slower, &self.faster) {
            (Some(slower), Some(faster)) => format!(
                "between the models of {} and {}",
                shown(slower),
                shown(faster)
            ),
            (Some(slower), None) => format!("above all models; the fastest is {}", shown(slower)),
            (None, Some(faster)) => format!("below all models; the slowest is {}", shown(faster)),
            (None, None) => return None,
        };
        let figure = unit::of_metric(&self.unit, self.value);
        Some(format!("{}: {figure}, {place}", self.workload))
    }
}
