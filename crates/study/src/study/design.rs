//! A study as it is planned and run: its factors, its configurations, its decision.

use stackrace_base::event::{Decide, Price, WorkloadHead};
use stackrace_base::setting::{Span, Value};
use stackrace_layers::stack::{LayerCommand, LayerKind, Stack};
use stackrace_load::workload::{Cost, Slicing, Workload, WorkloadKind};

use super::crash::CrashPlan;

/// The layers and workloads a study may name.
#[derive(Clone, Copy)]
pub struct Kinds<'a> {
    /// Every layer by its name.
    pub layers: &'a [LayerKind],
    /// Every workload by its name.
    pub workloads: &'a [WorkloadKind],
}

impl Kinds<'static> {
    /// All kinds that this program has.
    pub fn real() -> Self {
        Self {
            layers: stackrace_layers::stack::ALL,
            workloads: stackrace_load::programs::workloads(),
        }
    }
}

/// A study in which every word has been checked.
pub struct Study {
    /// Name of the place it was read from.
    pub name: String,
    /// Its text, verbatim.
    pub text: String,
    /// Its title; the file's stem where none is written.
    pub title: String,
    /// The question at length.
    pub question: Option<String>,
    /// Factors that are varied, in the order written.
    pub factors: Vec<Factor>,
    /// Combinations of levels that are left, the last factor changing fastest.
    pub configurations: Vec<Configuration>,
    /// The workloads every configuration goes through, in order.
    pub workload_heads: Vec<WorkloadHead>,
    /// The question asked, and the rule when to stop.
    pub decide: Decide,
    /// Preparation of a trial.
    pub policy: Policy,
    /// Plan by which the power of its trials is cut; `None` if it is not.
    pub crash: Option<CrashPlan>,
    /// Workloads that are measured at the same time, by index, the one first that decides when all end; empty if each
    /// is measured alone.
    pub together: Vec<usize>,
    /// Seed from which everything random follows.
    pub seed: u64,
}

impl Study {
    /// Hash of the text (BLAKE3, hex): the identity of the question.
    pub fn hash(&self) -> String {
        blake3::hash(self.text.as_bytes()).to_hex().to_string()
    }

    /// Bytes the most demanding trial needs on disk, or those that are measured at once.
    pub fn trial_disk_bytes(&self) -> u64 {
        let each = self.configurations.iter();
        each.map(|one| self.trial_disk_bytes_of(one))
            .max()
            .unwrap_or(0)
    }

    /// The same of one of its configurations.
    pub fn trial_disk_bytes_of(&self, configuration: &Configuration) -> u64 {
        let costs: Vec<Cost> = configuration.costs().collect();
        let at_once = self.together.iter().map(|at| costs[*at].disk_bytes);
        let at_once = at_once.fold(0, u64::saturating_add);
        configuration.data_bytes().max(at_once)
    }

    /// The largest working set of any trial, bytes.
    pub fn working_set_bytes(&self) -> u64 {
        self.costs()
            .map(|cost| cost.working_set_bytes)
            .max()
            .unwrap_or(0)
    }

    /// Says whether the configurations may take turns in slices within a workload, by its index: by
    /// the word of the study, and by what every configuration of it can do.
    pub fn slicing(&self, workload: usize) -> Slicing {
        match self.several_machines() {
            Some(_) => Slicing::Never,
            // Beside another one there is no turn in which the storage is a workload's own.
            None if self.together.contains(&workload) => Slicing::Never,
            None => self.slicing_on_one_machine(workload),
        }
    }

    fn slicing_on_one_machine(&self, workload: usize) -> Slicing {
        let all = self.configurations.iter();
        let can = all.map(|configuration| configuration.workloads[workload].slicing());
        // Turns are taken together: one that cannot holds back all.
        let least = can.min().unwrap_or(Slicing::Never);
        match (self.policy.slices, least) {
            (Some(Slices { writes: false, .. }), Slicing::Writes) | (None, _) => Slicing::Never,
            _ if self.configurations.len() < 2 => Slicing::Never,
            (Some(_), least) => least,
        }
    }

    /// Reason why a run over several machines has no slices; `None` if it is on one machine.
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

    /// Reason why workloads that would have slices on one machine have none; `None` if nothing is
    /// in the way.
    pub fn no_slices(&self) -> Option<&'static str> {
        let mut workloads = 0..self.workload_heads.len();
        let could = |workload| self.slicing_on_one_machine(workload) != Slicing::Never;
        workloads.any(could).then(|| self.several_machines())?
    }

    /// The commands it gives, each with the layer or workload that runs it; each once.
    pub fn commands(&self) -> Vec<(String, String)> {
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

    /// Returns true if a layer of it runs commands of the study.
    pub fn layers_have_commands(&self) -> bool {
        let mut all = self.configurations.iter();
        all.any(|one| one.layer_commands().next().is_some())
    }

    /// The commands that take down what its layers set up, each with the most seconds that it may take: `clean` may
    /// have to run them.
    pub fn undoing_commands(&self) -> Vec<(String, u32)> {
        let all = self.configurations.iter();
        let commands = all.flat_map(|one| one.layer_commands());
        let mut lines: Vec<(String, u32)> = commands
            .filter(|(_, command)| command.undoes)
            .map(|(_, command)| (command.line.to_string(), command.limit_s))
            .collect();
        // Many configurations share a layer; `clean` shows each command once.
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
pub struct Factor {
    /// Name as written.
    pub name: String,
    /// Place where the name is written.
    pub span: Span,
    /// Its values, in the order written; the first is the baseline of a comparison.
    pub levels: Vec<Level>,
}

/// One value of a factor.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// Its name in reports.
    pub label: String,
    /// Value that replaces the placeholder.
    pub value: Value,
    /// True if the label was given, not made.
    pub labelled: bool,
    /// What it costs; `None` if the study does not say it.
    pub cost: Option<Price>,
    /// Place where the value is written.
    pub span: Span,
}

/// A layer or a workload as it is written: its word, and its settings.
pub(crate) type WrittenEntry = (String, Vec<(String, Value)>);

/// One level of each factor, and what it makes.
pub struct Configuration {
    /// Name, unique in the study.
    pub name: String,
    /// Label of each factor's level, in the order of the factors.
    pub levels: Vec<String>,
    /// What its levels cost together; `None` if the study does not say it.
    pub cost: Option<Price>,
    /// Layers and workloads with their settings as they are written, the levels put in: two configurations with the
    /// same are the same.
    pub(crate) written: Vec<WrittenEntry>,
    /// Its storage.
    pub stack: Stack,
    /// Its workloads; each belongs to the head at the same index.
    pub workloads: Vec<Box<dyn Workload>>,
    /// Number of processes of clients that measure it at once; 1 if it is not measured by clients.
    pub processes: usize,
}

impl Configuration {
    /// Number of machines, or processes of clients, that load it at once.
    pub fn loaded_from(&self) -> usize {
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
    pub fn data_of(&self, workload: usize) -> usize {
        let before = self.workloads[..=workload].iter().rev();
        workload - before.take_while(|w| w.uses_data_before()).count()
    }

    /// Bytes its data need at once: the data of one workload are gone before the next.
    pub fn data_bytes(&self) -> u64 {
        let needs = self.costs().map(|cost| cost.disk_bytes);
        needs.max().unwrap_or(0)
    }

    /// Returns what each of its workloads costs, on all machines it runs on at once.
    pub fn costs(&self) -> impl Iterator<Item = Cost> {
        let machines = self.loaded_from();
        self.workloads.iter().map(move |w| w.cost().on(machines))
    }
}

/// Preparation of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Set to drop the page cache before the clock starts.
    pub drop_caches: bool,
    /// Set to unmount and mount again before the clock starts.
    pub remount: bool,
    /// Rule for how often stacks are built.
    pub provision: Provision,
    /// Sequence of work within a round.
    pub order: RoundOrder,
    /// Slices in which the configurations take turns within a workload; `None` if they do not.
    pub slices: Option<Slices>,
    /// Set to bring each stack to its steady state after it was built, by the method and the
    /// criterion of the SNIA Solid State Storage Performance Test Specification.
    pub precondition: bool,
}

impl Policy {
    /// Returns true if the stacks of all configurations stand at the same time.
    pub fn stand_together(&self) -> bool {
        self.provision == Provision::Once || self.order == RoundOrder::Adjacent
    }
}

/// Sequence of work within a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundOrder {
    /// Workload by workload: within each, the configurations follow each other at once. All stacks
    /// stand at the same time.
    Adjacent,
    /// Configuration by configuration: each goes through all workloads in its turn.
    Turns,
}

/// Slices in which the configurations take turns within a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slices {
    /// Duration of one slice, ns.
    pub ns: u64,
    /// Set if workloads that write are tried in slices too.
    pub writes: bool,
}

/// Rule for how often stacks are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provision {
    /// Anew in every round: chance in allocation is sampled, and disks are needed by one configuration
    /// at a time.
    EachRound,
    /// Before the first round; all of them stand at once.
    Once,
}
