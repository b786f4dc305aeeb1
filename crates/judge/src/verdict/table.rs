//! The observations as a table: one value for each configuration, workload, metric and complete round.

use std::sync::Arc;

use super::cells::{Cells, OnLogScale};
use super::evidence::Evidence;
use stackrace_base::event::{MetricHead, RunStarted, WorkloadHead};

/// The figure that two configurations are compared on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ComparedFigure {
    /// The weighted mean over the workloads' primary metrics.
    Overall,
    /// One metric of one workload, by index.
    Metric { workload: usize, metric: usize },
}

impl ComparedFigure {
    /// The primary metric of a workload.
    pub(super) fn primary(workload: usize) -> Self {
        Self::Metric {
            workload,
            metric: 0,
        }
    }

    /// Name of the workload; empty for all of them.
    pub(super) fn workload_name(self, head: &RunStarted) -> String {
        match self {
            Self::Overall => String::new(),
            Self::Metric { workload, .. } => head.workloads[workload].name.clone(),
        }
    }

    /// The workloads and metrics, by index, that it is made of.
    pub(super) fn parts(self, head: &RunStarted) -> Vec<(usize, usize)> {
        match self {
            Self::Metric { workload, metric } => vec![(workload, metric)],
            Self::Overall => {
                let heads = head.workloads.iter().enumerate();
                let weighed = heads.filter(|(_, head)| head.weight > 0.0);
                weighed.map(|(workload, _)| (workload, 0)).collect()
            }
        }
    }

    /// Returns true if another program printed it, so that its digits are the program's choice.
    pub(super) fn is_printed(self, evidence: &Evidence<'_>) -> bool {
        let workloads = &evidence.head.workloads;
        evidence.imported
            || match self {
                Self::Overall => workloads.iter().all(WorkloadHead::is_printed),
                Self::Metric { workload, .. } => workloads
                    .get(workload)
                    .is_some_and(WorkloadHead::is_printed),
            }
    }

    /// The metric; `None` for the overall figure.
    pub(super) fn metric(self, head: &RunStarted) -> Option<&MetricHead> {
        match self {
            Self::Overall => None,
            Self::Metric { workload, metric } => head.workloads[workload].metrics.get(metric),
        }
    }
}

/// Values by configuration, workload, metric and round.
#[derive(Debug)]
pub(super) struct ObservationTable<'a> {
    pub(super) evidence: &'a Evidence<'a>,
    cells: Arc<Cells>,
    pub(super) rounds: Vec<u32>,
}

impl<'a> ObservationTable<'a> {
    /// A table of this evidence, of which nothing was kept.
    pub(super) fn new(evidence: &'a Evidence<'a>) -> Self {
        let mut cells = Cells::default();
        cells.grow(evidence);
        Self::of(evidence, Arc::new(cells))
    }

    /// A table of the cells that were filled from this evidence.
    pub(super) fn of(evidence: &'a Evidence<'a>, cells: Arc<Cells>) -> Self {
        Self {
            evidence,
            cells,
            rounds: evidence.rounds.clone(),
        }
    }

    /// Returns true if a configuration came before another one in a round; `None` if they took turns in slices, or one
    /// of them was not measured.
    pub(super) fn first(
        &self,
        one: usize,
        other: usize,
        workload: usize,
        at: usize,
    ) -> Option<bool> {
        let place = |configuration: usize| self.cells.place(configuration, workload, at);
        Some(place(one)? < place(other)?)
    }

    pub(super) fn configurations(&self) -> usize {
        self.evidence.head.configurations.len()
    }

    pub(super) fn workloads(&self) -> usize {
        self.evidence.head.workloads.len()
    }

    /// One value as it was measured.
    pub(super) fn value(
        &self,
        configuration: usize,
        workload: usize,
        metric: usize,
        at: usize,
    ) -> Option<f64> {
        self.cells.value(configuration, workload, metric, at)
    }

    fn on_log_scale(
        &self,
        configuration: usize,
        workload: usize,
        metric: usize,
        at: usize,
    ) -> Option<OnLogScale> {
        let cell = (configuration, workload, metric, at);
        self.cells.on_log_scale(self.evidence, cell)
    }

    /// Fineness of a figure: the width of one step on the log scale; 0 if there is no value.
    pub(super) fn log_step(&self, configuration: usize, figure: ComparedFigure, at: usize) -> f64 {
        self.apart(&[configuration], figure, at)
    }

    /// Uncertainty of the ratio of two configurations because their figures are given in steps: a step of the coarser
    /// one, on the log scale.
    pub(super) fn apart(&self, either: &[usize], figure: ComparedFigure, at: usize) -> f64 {
        let of = |workload: usize, metric: usize| {
            let steps = either.iter().filter_map(|t| {
                let known = self.on_log_scale(*t, workload, metric, at)?;
                Some(known.step)
            });
            steps.fold(0.0, f64::max)
        };
        match figure {
            ComparedFigure::Metric { workload, metric } => of(workload, metric),
            ComparedFigure::Overall => {
                let weighed = self.evidence.head.workloads.iter().enumerate();
                let (mut sum, mut weights) = (0.0, 0.0);
                for (workload, head) in weighed.filter(|(_, head)| head.weight > 0.0) {
                    sum += head.weight * of(workload, 0);
                    weights += head.weight;
                }
                if weights > 0.0 { sum / weights } else { 0.0 }
            }
        }
    }

    /// The overall figure's logarithm: the weighted mean over the workloads, none if one is missing.
    pub(super) fn overall_ln(&self, configuration: usize, at: usize) -> Option<f64> {
        self.cells.overall_ln(configuration, at)
    }

    /// A figure's logarithm, oriented so that larger is better.
    pub(super) fn ln(
        &self,
        configuration: usize,
        figure: ComparedFigure,
        at: usize,
    ) -> Option<f64> {
        match figure {
            ComparedFigure::Overall => self.overall_ln(configuration, at),
            ComparedFigure::Metric { workload, metric } => {
                let known = self.on_log_scale(configuration, workload, metric, at)?;
                Some(known.ln)
            }
        }
    }

    /// Number of the rounds, from the first, that a configuration took part in.
    pub(super) fn rounds_of(&self, configuration: usize) -> usize {
        let all = self.rounds.len();
        self.evidence
            .dropped
            .iter()
            .find(|(dropped, _)| *dropped == configuration)
            .map_or(all, |(_, n)| all.min(*n as usize))
    }

    /// Returns true if a configuration is still in the race.
    pub(super) fn live(&self, configuration: usize) -> bool {
        !self
            .evidence
            .dropped
            .iter()
            .any(|(dropped, _)| *dropped == configuration)
    }
}
