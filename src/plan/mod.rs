//! What a study will do, before it does anything.
//!
//! A plan is data: the commands that would be run, what is measured, what it costs in bytes and
//! time, and how small a difference could be told. Nothing here touches the machine; what must be
//! known of it comes in as [`Machine`], and what is only assumed is said to be assumed.

mod duration;
mod lint;
mod order;
mod render;

#[cfg(test)]
mod tests;

pub(crate) use order::order;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use stackrace_stats::{Looks, PASSES_MAX, WINDOW, detectable};

use crate::event::{Decide, WorkloadHead};
use crate::study::{Configuration, Provision, Study};
use crate::workload::Cost;

/// Standard deviations of the ratio of two configurations from round to round for which the
/// detectable difference is shown: a quiet, an ordinary and a noisy storage.
pub(crate) const NOISES: [f64; 3] = [0.01, 0.03, 0.10];
/// Times a stack that is preconditioned is written over from beginning to end: twice its capacity,
/// as the SNIA Solid State Storage Performance Test Specification has it.
pub(crate) const FILLS: u32 = 2;
/// Commands as they would be typed, or why there are none.
pub(crate) type Commands = Result<Vec<String>, String>;

/// What must be known of the machine.
pub(crate) struct Machine<'a> {
    /// The exact commands that raise one configuration, by index, or why it cannot be raised.
    pub(crate) commands: &'a dyn Fn(usize, &Configuration) -> Commands,
    /// What this machine lacks to raise the configurations, none twice, and what to do about it.
    pub(crate) missing: &'a dyn Fn() -> Vec<String>,
    /// Bytes free in the file system a path lies on.
    pub(crate) free_bytes: &'a dyn Fn(&Path) -> Option<u64>,
    /// Measured rate of writing, B/s; none: not measured.
    pub(crate) write_rate: Option<f64>,
    /// Memory; none: not known.
    pub(crate) memory_bytes: Option<u64>,
    /// Where disk files lie for which the study names no directory.
    pub(crate) scratch: &'a Path,
}

/// A figure known only to lie between two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Between {
    /// Low end.
    pub(crate) least: f64,
    /// High end.
    pub(crate) most: f64,
}

/// What a study will do.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Plan {
    /// Title of the study.
    pub(crate) title: String,
    /// The question at length.
    pub(crate) question: Option<String>,
    /// Where the study was read from.
    pub(crate) study_name: String,
    /// Everything random follows from it.
    pub(crate) seed: u64,
    /// What is asked and when to stop.
    pub(crate) decide: Decide,
    /// Where configurations are tried; none: at one place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) places: Option<PlannedPlaces>,
    /// Every configuration with its commands.
    pub(crate) configurations: Vec<PlannedConfiguration>,
    /// What each configuration goes through, in order.
    pub(crate) workloads: Vec<PlannedWorkload>,
    /// Order of the first round, by index of configuration.
    pub(crate) first_order: Vec<usize>,
    /// What is written and read.
    pub(crate) moved: Moved,
    /// What must be free.
    pub(crate) disk: Vec<DiskNeed>,
    /// How long it takes.
    pub(crate) time: TimeEstimate,
    /// Comparisons the probability of error is shared among, at each look.
    pub(crate) comparisons: usize,
    /// When the data are looked at and what could be told then.
    pub(crate) looks: Vec<PlannedLook>,
    /// What the reader should think about first.
    pub(crate) lints: Vec<Lint>,
}

/// The places a study is tried at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct PlannedPlaces {
    /// The factor they are the levels of.
    pub(crate) factor: String,
    /// What they are called.
    pub(crate) levels: Vec<String>,
}

/// One configuration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct PlannedConfiguration {
    /// Its name.
    pub(crate) name: String,
    /// Its layers as asked for, from the bottom up.
    pub(crate) layers: Vec<String>,
    /// Commands that raise it, as they would be typed.
    pub(crate) commands: Vec<String>,
}

/// One workload.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct PlannedWorkload {
    /// As the record will describe it.
    #[serde(flatten)]
    pub(crate) head: WorkloadHead,
    /// How long its measured part takes, seconds; none: that depends on the storage.
    pub(crate) measured_seconds: Option<f64>,
}

/// Bytes moved; what is moved by the clock is not in it. Most of it is written: what is read has
/// been written before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Moved {
    /// By the largest trial.
    pub(crate) trial_bytes: u64,
    /// By a round of all configurations.
    pub(crate) round_bytes: u64,
    /// By all rounds, if none is spared.
    pub(crate) total_bytes: u64,
    /// Whether some workloads move as much as the storage can, on top of that.
    pub(crate) open_ended: bool,
    /// Room the data of the largest trial take.
    pub(crate) data_bytes: u64,
    /// What the study asks for to bring its stacks to rest; none: it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) precondition: Option<PlannedPrecondition>,
}

/// What it takes to bring the stacks of all configurations to their steady state once, on top of what
/// the trials move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct PlannedPrecondition {
    /// In each round; else before the first one alone.
    pub(crate) each_round: bool,
    /// Bytes, with as few passes as there can be.
    pub(crate) least_bytes: u64,
    /// Bytes, with as many.
    pub(crate) most_bytes: u64,
}

/// Room needed at once in one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DiskNeed {
    /// Directory.
    pub(crate) path: PathBuf,
    /// Bytes needed.
    pub(crate) needed_bytes: u64,
    /// Bytes free; none: not known.
    pub(crate) free_bytes: Option<u64>,
}

/// How long it takes, as far as that can be known before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct TimeEstimate {
    /// Seconds of one round.
    pub(crate) round_seconds: Between,
    /// Seconds of the run: from a verdict at the first look to the last round that fits.
    pub(crate) run_seconds: Between,
    /// Rounds that fit into the time allowed; the low end goes with slow rounds.
    pub(crate) rounds: (u32, u32),
    /// Names of workloads whose time is not known at all: they come on top.
    pub(crate) unknown: Vec<String>,
    /// What was assumed.
    pub(crate) assumed: String,
}

/// One look at the data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct PlannedLook {
    /// After so many complete rounds.
    pub(crate) rounds: u32,
    /// Probability of error it may spend on one comparison.
    pub(crate) alpha: f64,
    /// Smallest difference (0.1: 10 %) that could be told, for each of [`NOISES`].
    pub(crate) detectable: [Option<f64>; 3],
}

/// Something to think about before the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Lint {
    /// How bad.
    pub(crate) weight: LintWeight,
    /// One sentence.
    pub(crate) text: String,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LintWeight {
    /// The run will fail, or end without an answer.
    Problem,
    /// The answer may be another than the reader thinks.
    Note,
}

impl Plan {
    /// The plan of a study on a machine.
    pub(crate) fn of(study: &Study, machine: &Machine<'_>) -> Self {
        let mut lints = Vec::new();
        let configurations = configurations(study, machine, &mut lints);
        let costs = Costs::of(study);
        let everyone: Vec<usize> = (0..study.configurations.len()).collect();
        let comparisons = comparisons(study);
        let looks = looks(&study.decide, comparisons, study.workload_heads.len());
        let time = duration::time(study, &costs, &configurations, &looks, machine);
        let disk = room(study, machine, 1);
        let mut plan = Self {
            title: study.title.clone(),
            question: study.question.clone(),
            study_name: study.name.clone(),
            seed: study.seed,
            decide: study.decide.clone(),
            places: study.places().map(|factor| PlannedPlaces {
                factor: factor.name.clone(),
                levels: factor.levels.iter().map(|l| l.label.clone()).collect(),
            }),
            configurations,
            workloads: workloads(study, &costs),
            first_order: order(study.seed, &study.hash(), 1, &everyone),
            moved: moved(study, &costs),
            disk,
            time,
            comparisons,
            looks,
            lints: Vec::new(),
        };
        lints.extend(lint::lints(study, &plan, &costs, machine.memory_bytes));
        plan.lints = lints;
        plan
    }
}

/// Cost of each workload in each configuration.
struct Costs(Vec<Vec<Cost>>);

impl Costs {
    fn of(study: &Study) -> Self {
        Self(
            study
                .configurations
                .iter()
                .map(|configuration| configuration.costs().collect())
                .collect(),
        )
    }

    fn all(&self) -> impl Iterator<Item = &Cost> {
        self.0.iter().flatten()
    }

    /// One workload in every configuration.
    fn of_workload(&self, workload: usize) -> impl Iterator<Item = &Cost> {
        self.0.iter().filter_map(move |costs| costs.get(workload))
    }
}

fn configurations(
    study: &Study,
    machine: &Machine<'_>,
    lints: &mut Vec<Lint>,
) -> Vec<PlannedConfiguration> {
    let mut planned = Vec::new();
    lints.extend((machine.missing)().into_iter().map(|text| Lint {
        weight: LintWeight::Problem,
        text,
    }));
    for (index, configuration) in study.configurations.iter().enumerate() {
        let commands = (machine.commands)(index, configuration).unwrap_or_else(|error| {
            lints.push(Lint {
                weight: LintWeight::Problem,
                text: format!("{} cannot be raised: {error}", configuration.name),
            });
            Vec::new()
        });
        planned.push(PlannedConfiguration {
            name: configuration.name.clone(),
            layers: configuration
                .stack
                .layers
                .iter()
                .map(|layer| layer.describe_asked())
                .collect(),
            commands,
        });
    }
    planned
}

fn workloads(study: &Study, costs: &Costs) -> Vec<PlannedWorkload> {
    study
        .workload_heads
        .iter()
        .enumerate()
        .map(|(index, head)| {
            let times: Option<Vec<u64>> = costs
                .of_workload(index)
                .map(|cost| cost.measured_ns)
                .collect();
            PlannedWorkload {
                head: head.clone(),
                measured_seconds: times.and_then(|times| times.into_iter().max()).map(seconds),
            }
        })
        .collect()
}

fn moved(study: &Study, costs: &Costs) -> Moved {
    let trial = |cost: &Cost| {
        cost.prepare_bytes
            .saturating_add(cost.measured_bytes.unwrap_or(0))
    };
    let round_bytes = costs
        .all()
        .fold(0_u64, |sum, cost| sum.saturating_add(trial(cost)));
    Moved {
        trial_bytes: costs.all().map(trial).max().unwrap_or(0),
        round_bytes,
        total_bytes: round_bytes.saturating_mul(study.decide.rounds_max.into()),
        open_ended: costs.all().any(|cost| cost.measured_bytes.is_none()),
        data_bytes: costs.all().map(|cost| cost.disk_bytes).max().unwrap_or(0),
        precondition: study.policy.precondition.then(|| {
            let data = study.configurations.iter().map(Configuration::data_bytes);
            let sequential = data
                .fold(0, u64::saturating_add)
                .saturating_mul(FILLS.into());
            let passes = |n: usize| sequential.saturating_add(round_bytes.saturating_mul(n as u64));
            PlannedPrecondition {
                each_round: study.policy.provision == Provision::EachRound,
                least_bytes: passes(WINDOW),
                most_bytes: passes(PASSES_MAX),
            }
        }),
    }
}

/// Room a study needs at once on a machine of its stacks, from 1, place by place, and what is free
/// there: by the largest configuration, or by all where all stand at once.
pub(crate) fn room(study: &Study, machine: &Machine<'_>, node: usize) -> Vec<DiskNeed> {
    let mut places: BTreeMap<PathBuf, u64> = BTreeMap::new();
    for configuration in &study.configurations {
        let mut needs: BTreeMap<PathBuf, u64> = BTreeMap::new();
        for (path, bytes) in configuration.stack.disk_needed_on(node) {
            let path = match path.as_os_str().is_empty() {
                true => machine.scratch.to_owned(),
                false => path,
            };
            // A place without a size of its own (a directory) holds the data themselves.
            let bytes = match bytes {
                0 => configuration.data_bytes(),
                bytes => bytes,
            };
            let need = needs.entry(path).or_default();
            *need = need.saturating_add(bytes);
        }
        for (path, bytes) in needs {
            let place = places.entry(path).or_default();
            *place = match study.policy.provision {
                Provision::EachRound => (*place).max(bytes),
                Provision::Once => place.saturating_add(bytes),
            };
        }
    }
    places
        .into_iter()
        .map(|(path, needed_bytes)| DiskNeed {
            free_bytes: (machine.free_bytes)(&path),
            path,
            needed_bytes,
        })
        .collect()
}

/// Comparisons the verdict on the overall figure allows for at a look: each level with the first,
/// or, since the leader is chosen by the data, each pair of configurations.
fn comparisons(study: &Study) -> usize {
    match &study.decide.comparison {
        Some(name) => study
            .factors
            .iter()
            .find(|factor| factor.name == *name)
            .map_or(0, |factor| factor.levels.len().saturating_sub(1)),
        None => {
            let configurations = study.configurations.len();
            configurations * configurations.saturating_sub(1) / 2
        }
    }
}

fn looks(decide: &Decide, comparisons: usize, workloads: usize) -> Vec<PlannedLook> {
    if comparisons == 0 {
        return Vec::new();
    }
    let looks = Looks::plan(decide.rounds_max);
    // The verdict's own division: half of the error is kept for the statements on single
    // workloads, where there are several.
    let families = if workloads > 1 { 2 } else { 1 };
    let alpha = looks.alpha_per_look(1.0 - decide.confidence) / (families * comparisons) as f64;
    looks
        .rounds()
        .iter()
        .map(|&rounds| PlannedLook {
            rounds,
            alpha,
            detectable: NOISES
                .map(|noise| detectable(noise, rounds, alpha).map(|ratio| ratio - 1.0)),
        })
        .collect()
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
