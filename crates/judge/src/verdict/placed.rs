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
}

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
        said
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
