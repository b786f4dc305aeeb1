//! A study as it is planned and run: its factors, its configurations, its decision.

use crate::event::{Decide, WorkloadHead};
use crate::setting::{Span, Value};
use crate::stack::{LayerCommand, LayerKind, Stack};
use crate::workload::{Cost, Slicing, Workload, WorkloadKind};

use super::crash::CrashPlan;

/// The layers and workloads a study may name.
#[derive(Clone, Copy)]
pub(crate) struct Kinds<'a> {
    /// Every layer by its name.
    pub(crate) layers: &'a [LayerKind],
    /// Every workload by its name.
    pub(crate) workloads: &'a [WorkloadKind],
}

impl Kinds<'static> {
    /// All kinds that this program has.
    pub(crate) fn real() -> Self {
        Self {
            layers: crate::stack::ALL,
            workloads: crate::programs::workloads(),
        }
    }
}

/// A study in which every word has been checked.
pub(crate) struct Study {
    /// Where it was read from.
    pub(crate) name: String,
    /// Its text, verbatim.
    pub(crate) text: String,
    /// Its title; the file's stem where none is written.
    pub(crate) title: String,
    /// The question at length.
    pub(crate) question: Option<String>,
    /// What is varied, in the order written.
    pub(crate) factors: Vec<Factor>,
    /// Combinations of levels that are left, the last factor changing fastest.
    pub(crate) configurations: Vec<Configuration>,
    /// The workloads every configuration goes through, in order.
    pub(crate) workload_heads: Vec<WorkloadHead>,
    /// What is asked and when to stop.
    pub(crate) decide: Decide,
    /// How a trial is prepared.
    pub(crate) policy: Policy,
    /// How the power of its trials is cut; none: it is not.
    pub(crate) crash: Option<CrashPlan>,
    /// Everything random follows from it.
    pub(crate) seed: u64,
}

impl Study {
    /// Hash of the text (BLAKE3, hex): the identity of the question.
    pub(crate) fn hash(&self) -> String {
        blake3::hash(self.text.as_bytes()).to_hex().to_string()
    }

    /// Bytes the most demanding trial needs on disk.
    pub(crate) fn trial_disk_bytes(&self) -> u64 {
        self.costs().map(|cost| cost.disk_bytes).max().unwrap_or(0)
    }

    /// The largest working set of any trial, bytes.
    pub(crate) fn working_set_bytes(&self) -> u64 {
        self.costs()
            .map(|cost| cost.working_set_bytes)
            .max()
            .unwrap_or(0)
    }

    /// Whether the configurations may take turns in slices within a workload, by its index: what the
    /// study says, and what every configuration of it can do.
    pub(crate) fn slicing(&self, workload: usize) -> Slicing {
        match self.several_machines() {
            Some(_) => Slicing::Never,
            None => self.slicing_on_one_machine(workload),
        }
    }

    fn slicing_on_one_machine(&self, workload: usize) -> Slicing {
        let all = self.configurations.iter();
        let can = all.map(|configuration| configuration.workloads[workload].slicing());
        let least = can.min().unwrap_or(Slicing::Never);
        match (self.policy.slices, least) {
            (Some(Slices { writes: false, .. }), Slicing::Writes) | (None, _) => Slicing::Never,
            _ if self.configurations.len() < 2 => Slicing::Never,
            (Some(_), least) => least,
        }
    }

    /// Why a run over several machines has no slices; none: it is on one machine.
    fn several_machines(&self) -> Option<&'static str> {
        if self.places().is_some() {
            return Some(
                "the configurations are on several machines, which work one after the other",
            );
        }
        let mut all = self.configurations.iter();
        all.any(|one| one.loaded_from() != 1).then_some(
            "several machines load one file system at once, and would have to change turns in step",
        )
    }

    /// Why workloads that would have slices on one machine have none; none: nothing is in the way.
    pub(crate) fn no_slices(&self) -> Option<&'static str> {
        let mut workloads = 0..self.workload_heads.len();
        let could = |workload| self.slicing_on_one_machine(workload) != Slicing::Never;
        workloads.any(could).then(|| self.several_machines())?
    }

    /// The commands it gives, each with the layer or workload that runs it; each once.
    pub(crate) fn commands(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        // Configurations mostly have the same ones.
        let mut add = |one: (String, String)| {
            if !all.contains(&one) {
                all.push(one);
            }
        };
        for configuration in &self.configurations {
            for (layer, command) in configuration.layer_commands() {
                add((
                    format!("layer {layer}, {}", command.what),
                    command.line.to_string(),
                ));
            }
            let workloads = configuration.workloads.iter().zip(&self.workload_heads);
            for (workload, head) in workloads {
                for command in workload.commands() {
                    add((format!("workload {}", head.name), command));
                }
            }
        }
        all
    }

    /// Whether a layer of it runs commands of the study.
    pub(crate) fn layers_have_commands(&self) -> bool {
        let mut all = self.configurations.iter();
        all.any(|one| one.layer_commands().next().is_some())
    }

    /// The commands that take down what its layers set up: `clean` may have to run them.
    pub(crate) fn undoing_commands(&self) -> Vec<String> {
        let all = self.configurations.iter();
        let commands = all.flat_map(|one| one.layer_commands());
        let mut lines: Vec<String> = commands
            .filter(|(_, command)| command.undoes)
            .map(|(_, command)| command.line.to_string())
            .collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    fn costs(&self) -> impl Iterator<Item = Cost> {
        self.configurations
            .iter()
            .flat_map(|configuration| configuration.costs())
    }
}

/// Something that is varied.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Factor {
    /// As written.
    pub(crate) name: String,
    /// Where the name is written.
    pub(crate) span: Span,
    /// Its values, in the order written; the first is the baseline of a comparison.
    pub(crate) levels: Vec<Level>,
}

/// One value of a factor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Level {
    /// Its name in reports.
    pub(crate) label: String,
    /// What replaces the placeholder.
    pub(crate) value: Value,
    /// Whether the label was given, not made.
    pub(crate) labelled: bool,
    /// Where the value is written.
    pub(crate) span: Span,
}

/// One level of each factor, and what it makes.
pub(crate) struct Configuration {
    /// Unique in the study.
    pub(crate) name: String,
    /// Label of each factor's level, in the order of the factors.
    pub(crate) levels: Vec<String>,
    /// Its storage.
    pub(crate) stack: Stack,
    /// Its workloads; each belongs to the head at the same index.
    pub(crate) workloads: Vec<Box<dyn Workload>>,
    /// How many processes of clients measure it at once; 1: it is not measured by clients.
    pub(crate) processes: usize,
}

impl Configuration {
    /// How many machines, or processes of clients, load it at once.
    pub(crate) fn loaded_from(&self) -> usize {
        self.stack.loaded_from().max(self.processes)
    }

    /// The commands that the study gives to its layers, each with the layer's word.
    fn layer_commands(&self) -> impl Iterator<Item = (&'static str, LayerCommand<'_>)> {
        let layers = self.stack.layers.iter();
        layers.flat_map(|layer| {
            layer
                .commands()
                .into_iter()
                .map(move |one| (layer.kind(), one))
        })
    }

    /// The workload whose data a workload works on: the first of those that share them.
    pub(crate) fn data_of(&self, workload: usize) -> usize {
        let before = self.workloads[..=workload].iter().rev();
        workload - before.take_while(|w| w.uses_data_before()).count()
    }

    /// Bytes its data need at once: the data of one workload are gone before the next.
    pub(crate) fn data_bytes(&self) -> u64 {
        let needs = self.costs().map(|cost| cost.disk_bytes);
        needs.max().unwrap_or(0)
    }

    /// What each of its workloads costs, on all machines it runs on at once.
    pub(crate) fn costs(&self) -> impl Iterator<Item = Cost> {
        let machines = self.loaded_from();
        self.workloads.iter().map(move |w| w.cost().on(machines))
    }
}

/// How a trial is prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Drop the page cache before the clock starts.
    pub(crate) drop_caches: bool,
    /// Unmount and mount again before the clock starts.
    pub(crate) remount: bool,
    /// How often stacks are built.
    pub(crate) provision: Provision,
    /// What follows what in a round.
    pub(crate) order: RoundOrder,
    /// Slices in which the configurations take turns within a workload; none: they do not.
    pub(crate) slices: Option<Slices>,
    /// Bring each stack to its steady state after it was built, by the method and the criterion of
    /// the SNIA Solid State Storage Performance Test Specification.
    pub(crate) precondition: bool,
}

impl Policy {
    /// Whether the stacks of all configurations stand at the same time.
    pub(crate) fn stand_together(&self) -> bool {
        self.provision == Provision::Once || self.order == RoundOrder::Adjacent
    }
}

/// What follows what in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoundOrder {
    /// Workload by workload: within each, the configurations follow each other at once. All stacks
    /// stand at the same time.
    Adjacent,
    /// Configuration by configuration: each goes through all workloads in its turn.
    Turns,
}

/// Slices in which the configurations take turns within a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slices {
    /// How long one lasts, ns.
    pub(crate) ns: u64,
    /// Whether workloads that write are tried in slices too.
    pub(crate) writes: bool,
}

/// How often stacks are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Provision {
    /// Anew in every round: chance in allocation is sampled, and disks are needed by one configuration
    /// at a time.
    EachRound,
    /// Before the first round; all of them stand at once.
    Once,
}
