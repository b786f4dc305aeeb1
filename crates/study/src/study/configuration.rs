//! Configurations built from entries: every layer and workload checked in every combination.

use std::collections::HashSet;

use stackrace_engine::spec::Content;

use stackrace_base::event::{MetricHead, Price, RecordedApplication, WorkloadHead, metrics_named};
use stackrace_base::setting::{Refusal, SettingDoc, Settings, Span, unknown_word};
use stackrace_base::unit;
use stackrace_layers::stack::{LaidOutData, Layer, Stack};
use stackrace_load::workload::{DataLayout, DataUse, Workload, aligned, replay, together};

use super::design::{Configuration, Factor, Kinds, WrittenEntry};
use super::entry::StudyEntry;
use super::error::{ERRORS_MAX, LevelRefusal};
use super::home;
use super::quantile;

/// The setting that says how much one operation does.
const BLOCK_SIZE: &str = "block-size";

/// A `[[workload]]` as written.
pub(super) struct WorkloadEntry {
    pub(super) entry: StudyEntry,
    /// Kind of workload, the same in every configuration.
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) weight: f64,
    /// The metric that it is judged by, and where that is written; by default its first one.
    pub(super) metric: Option<(String, Span)>,
}

/// Builder of the configurations of one study, with what it finds on the way.
pub(super) struct ConfigurationBuilder<'a> {
    kinds: &'a Kinds<'a>,
    factors: &'a [Factor],
    stack: &'a [StudyEntry],
    workloads: &'a [WorkloadEntry],
    /// Set if every layer could be read: how they fit is only then a question.
    pub(super) stack_whole: bool,
    findings: Vec<LevelRefusal>,
    /// Places and messages already found: the same mistake in a thousand configurations is one.
    seen: HashSet<(Option<Span>, String)>,
}

impl<'a> ConfigurationBuilder<'a> {
    pub(super) fn new(
        kinds: &'a Kinds<'a>,
        factors: &'a [Factor],
        stack: &'a [StudyEntry],
        workloads: &'a [WorkloadEntry],
    ) -> Self {
        Self {
            kinds,
            factors,
            stack,
            workloads,
            stack_whole: true,
            findings: Vec::new(),
            seen: HashSet::new(),
        }
    }

    /// Builds every configuration; those that could not be built are in the findings.
    pub(super) fn configurations(
        &mut self,
        combinations: &[Vec<usize>],
        names: Vec<String>,
    ) -> Vec<Configuration> {
        let mut configurations = Vec::new();
        for (levels, name) in combinations.iter().zip(names) {
            if self.findings.len() > ERRORS_MAX {
                // More than is shown; most of what further configurations would add are echoes.
                break;
            }
            let stack = self.stack(levels, &name);
            let workloads: Vec<Option<Box<dyn Workload>>> = self
                .workloads
                .iter()
                .map(|workload| self.workload(workload, levels))
                .collect();
            let workloads: Option<Vec<Box<dyn Workload>>> = workloads.into_iter().collect();
            if let (Some(stack), Some(workloads)) = (stack, workloads) {
                self.fits(&stack, &workloads, levels);
                self.data_fit(&workloads, levels);
                let chosen = self.factors.iter().zip(levels);
                let costs =
                    chosen.filter_map(|(factor, level)| factor.levels[*level].cost.as_ref());
                configurations.push(Configuration {
                    processes: 1,
                    cost: Price::sum(costs),
                    written: self.written(levels),
                    name: match name.is_empty() {
                        // A study without factors has one configuration, which no level names.
                        true => kinds_of(&stack),
                        false => name,
                    },
                    levels: self
                        .factors
                        .iter()
                        .zip(levels)
                        .map(|(factor, level)| factor.levels[*level].label.clone())
                        .collect(),
                    stack,
                    workloads,
                });
            }
        }
        configurations
    }

    /// Returns the mistakes, in the order they were found.
    pub(super) fn findings(self) -> Vec<LevelRefusal> {
        self.findings
    }

    /// All that stands in the study of one combination.
    fn written(&self, levels: &[usize]) -> Vec<WrittenEntry> {
        let workloads = self.workloads.iter().map(|workload| &workload.entry);
        let entries = self.stack.iter().chain(workloads);
        entries
            .filter(|entry| entry.when.holds(levels))
            .map(|entry| {
                let found = entry.settings_in(self.factors, levels, &[]);
                let settings = found.settings.into_iter();
                let settings = settings.map(|setting| (setting.name, setting.value));
                (found.owner, settings.collect())
            })
            .collect()
    }

    fn stack(&mut self, levels: &[usize], name: &str) -> Option<Stack> {
        let entries: Vec<&StudyEntry> = self
            .stack
            .iter()
            .filter(|entry| entry.when.holds(levels))
            .collect();
        let layers: Vec<Option<Box<dyn Layer>>> = entries
            .iter()
            .map(|entry| self.layer(entry, levels))
            .collect();
        // Collected first, so that every layer that is wrong is reported and not only the first one.
        let layers: Option<Vec<Box<dyn Layer>>> = layers.into_iter().collect();
        let layers = layers.filter(|_| self.stack_whole)?;
        if layers.is_empty() {
            let span = self.stack.first().map(|entry| entry.span.clone());
            let refusal = Refusal {
                span,
                message: format!("configuration \"{name}\" has no layer at all"),
                help: "widen a `when`, or [[exclude]] the configuration".to_owned(),
            };
            self.find(refusal, &[], levels);
            return None;
        }
        match Stack::new(layers) {
            Ok(stack) => Some(stack),
            Err((index, message)) => {
                let place = entries.get(index).or(entries.last());
                let refusal = Refusal {
                    span: place.map(|entry| entry.kind_span.clone()),
                    message,
                    help: String::new(),
                };
                // The layer that does not fit, and the one it stands on.
                let mut causes: Vec<usize> = Vec::new();
                for entry in entries.iter().take(index + 1).skip(index.saturating_sub(1)) {
                    causes.extend(entry.when.factors());
                    causes.extend(entry.kind.factors());
                }
                self.find(refusal, &causes, levels);
                None
            }
        }
    }

    /// Checks that bare devices are for workloads that work on them, and for no others.
    fn fits(&mut self, stack: &Stack, workloads: &[Box<dyn Workload>], levels: &[usize]) {
        for (entry, workload) in self.workloads.iter().zip(workloads) {
            let data = (stack.laid_out_data(), workload.data_use());
            let (message, help) = match (workload.wants_bare(), stack.is_bare()) {
                _ if data.0 == LaidOutData::OnlyRead && data.1 != DataUse::Read => (
                    format!(
                        "{} writes, and the stack can only be read once the clock runs",
                        entry.kind
                    ),
                    "use sequential or random with mode = \"read\", or another file system",
                ),
                // It would be measured on copies that have just been made, and are in memory.
                _ if data == (LaidOutData::CopiedUp, DataUse::Rewritten) => (
                    format!(
                        "{} opens its files before the clock starts, which already copies them up",
                        entry.kind
                    ),
                    "use one that opens files while the clock runs (files, postmark, git, build, sqlite, command), or leave content = \"lower\" out",
                ),
                // Checked here because it takes both: neither the stack nor the workload is wrong
                // alone.
                (true, false) => (
                    format!("{} works on bare devices", entry.kind),
                    "end the stack with bare = {}, and leave file systems out",
                ),
                (false, true) => (
                    format!(
                        "{} works in a directory, and the stack gives none",
                        entry.kind
                    ),
                    "put a file system in place of bare",
                ),
                _ => continue,
            };
            let refusal = Refusal::at(&entry.entry.kind_span, message, help);
            self.find(refusal, &[], levels);
        }
    }

    /// The data of the workload before must be what a workload with `same-data` would lay out.
    fn data_fit(&mut self, workloads: &[Box<dyn Workload>], levels: &[usize]) {
        for (index, workload) in workloads.iter().enumerate() {
            if !workload.uses_data_before() {
                continue;
            }
            let entry = &self.workloads[index].entry;
            let before = index.checked_sub(1).map(|before| &workloads[before]);
            let (message, help) = match before {
                None => (
                    "there is no workload before it whose data it could use".to_owned(),
                    "leave out same-data, or put it after one that writes or reads the same files",
                ),
                Some(before) if before.data_layout() == workload.data_layout() => continue,
                Some(before) => (
                    format!(
                        "\"{}\" leaves {}, and this workload needs {}",
                        self.workloads[index - 1].name,
                        words_of(before.data_layout()),
                        words_of(workload.data_layout())
                    ),
                    "give both the same size, files and content, and neither verify nor a new file that time cuts short, or leave out same-data",
                ),
            };
            let refusal = Refusal::at(&entry.kind_span, message, help);
            self.find(refusal, &[], levels);
        }
    }

    fn layer(&mut self, entry: &StudyEntry, levels: &[usize]) -> Option<Box<dyn Layer>> {
        let name = entry.kind_in(self.factors, levels);
        let Some(kind) = self.kinds.layers.iter().find(|kind| kind.name == name) else {
            let refusal = unknown_word(
                &entry.kind_span,
                &format!("there is no layer \"{name}\""),
                &name,
                self.kinds.layers.iter().map(|kind| kind.name),
                "layers",
            );
            self.find(refusal, &entry.kind.factors(), levels);
            return None;
        };
        self.parsed(entry, levels, kind.settings, kind.parse)
    }

    fn workload(
        &mut self,
        workload: &WorkloadEntry,
        levels: &[usize],
    ) -> Option<Box<dyn Workload>> {
        let kind = self
            .kinds
            .workloads
            .iter()
            .find(|kind| kind.name == workload.kind)?;
        self.parsed(&workload.entry, levels, kind.settings, kind.parse)
    }

    fn parsed<T>(
        &mut self,
        entry: &StudyEntry,
        levels: &[usize],
        docs: &'static [SettingDoc],
        parse: impl Fn(&Settings) -> Result<T, Refusal>,
    ) -> Option<T> {
        let settings = entry.settings_in(self.factors, levels, docs);
        // All settings at once: a user who corrects a file wants the whole list.
        let mut refusals = settings.check_all();
        if refusals.is_empty() {
            match parse(&settings) {
                Ok(parsed) => return Some(parsed),
                Err(refusal) => refusals.push(refusal),
            }
        }
        for mut refusal in refusals {
            // A refusal without a place is the entry's.
            refusal.span.get_or_insert_with(|| entry.kind_span.clone());
            let causes = entry.factors_at(refusal.span.as_ref());
            self.find(refusal, &causes, levels);
        }
        None
    }

    /// The heads of the workloads, from what they are in each configuration; every configuration then
    /// reports what its head says.
    pub(super) fn heads(&mut self, configurations: &mut [Configuration]) -> Vec<WorkloadHead> {
        let mut heads = Vec::new();
        for (index, entry) in self.workloads.iter().enumerate() {
            let lists: Vec<Vec<MetricHead>> = configurations
                .iter()
                .map(|configuration| configuration.workloads[index].metrics())
                .collect();
            let judged = self.judged((index, entry), &lists, configurations);
            let Some(mut metrics) = judged else {
                continue;
            };
            for configuration in configurations.iter_mut() {
                // Taken out and put back, because the wrapper takes it by value.
                let workload = configuration.workloads.remove(index);
                configuration
                    .workloads
                    .insert(index, aligned::aligned(workload, &metrics));
            }
            if configurations.iter().any(|it| it.stack.loaded_from() > 1) {
                metrics.extend(together::heads(&metrics));
            }
            let mut kinds = self.kinds.workloads.iter();
            let kind = kinds.find(|kind| kind.name == entry.kind);
            heads.push(WorkloadHead {
                name: entry.name.clone(),
                kind: entry.kind.clone(),
                summary: summary(configurations, index),
                weight: entry.weight,
                metrics,
                drawn_sizes: Some(draws_sizes(configurations, index)),
                imported: None,
                level: kind.map(|kind| kind.level),
                operations: kind.map(|kind| kind.operations),
                gives_commands: gives_commands(configurations, index),
                recorded: self.recorded(index, configurations),
            });
        }
        heads
    }

    /// The recorded application that a workload replays, with the configuration where it was recorded.
    fn recorded(
        &mut self,
        index: usize,
        configurations: &[Configuration],
    ) -> Option<Box<RecordedApplication>> {
        let home = match home::place(index, configurations) {
            Ok(home) => home,
            Err((message, help)) => {
                let entry = &self.workloads[index].entry;
                let refusal = Refusal::at(entry.place_of(replay::HOME), message, help);
                self.find(refusal, &[], &[]);
                return None;
            }
        };
        // Where the trace varies, the replay at home is the one that can be held against a recording.
        let one = configurations.get(home.unwrap_or(0))?;
        let recorded = one.workloads[index].recorded()?;
        Some(Box::new(RecordedApplication { home, ..recorded }))
    }

    /// The metrics of a workload in all configurations, the one that it is judged by first; none if they have none in
    /// common, which is then refused.
    fn judged(
        &mut self,
        (index, entry): (usize, &WorkloadEntry),
        lists: &[Vec<MetricHead>],
        configurations: &[Configuration],
    ) -> Option<Vec<MetricHead>> {
        let mut metrics = aligned::union(lists.iter().map(Vec::as_slice));
        let asked = match &entry.metric {
            // Without a configuration there is no workload that could have it.
            Some((name, span)) if !lists.is_empty() => match metric_at(name, span, entry, &metrics)
            {
                Ok(at) => Some(at),
                Err(refusal) => {
                    self.find(refusal, &[], &[]);
                    return None;
                }
            },
            _ => None,
        };
        // A verdict rests on one metric, so it must be the same in all configurations.
        let other = lists.iter().position(|list| match asked {
            Some(at) => !list.contains(&metrics[at]),
            None => list.first() != metrics.first(),
        });
        if let Some(other) = other {
            let (name, at) = (&entry.name, &configurations[other].name);
            let (span, message) = match &entry.metric {
                Some((metric, span)) => (
                    span,
                    format!("workload \"{name}\" has no {metric} in configuration \"{at}\""),
                ),
                None => (
                    &entry.entry.kind_span,
                    format!(
                        "workload \"{name}\" is judged by other things in configuration \"{at}\" than in \"{}\"",
                        configurations[0].name
                    ),
                ),
            };
            let help =
                "make it two workloads: configurations are compared on what all of them measure";
            self.find(Refusal::at(span, message, help), &[], &[]);
            return None;
        }
        if let (Some(at), Some((_, span))) = (asked, &entry.metric) {
            let workloads = configurations.iter();
            let workloads = workloads.filter_map(|it| it.workloads.get(index));
            if let Some(refusal) = quantile::too_few(span, (&entry.name, &metrics, at), workloads) {
                self.find(refusal, &[], &[]);
                return None;
            }
        }
        match asked {
            Some(at) => metrics[..=at].rotate_right(1),
            None if entry.entry.varies(BLOCK_SIZE) => aligned::bytes_first(&mut metrics),
            None => {}
        }
        Some(metrics)
    }

    /// Notes a refusal and the levels it came about with.
    fn find(&mut self, refusal: Refusal, causes: &[usize], levels: &[usize]) {
        // The same refusal comes from every configuration that shares the entry: it is said once.
        if !self
            .seen
            .insert((refusal.span.clone(), refusal.message.clone()))
        {
            return;
        }
        let mut causes = causes.to_vec();
        // Levels are named in the order of the factors, each once.
        causes.sort_unstable();
        causes.dedup();
        let context = causes
            .into_iter()
            .map(|cause| {
                let factor = &self.factors[cause];
                let level = &factor.levels[levels[cause]];
                (
                    level.span.clone(),
                    format!("where {} is {}", factor.name, level.label),
                )
            })
            .collect();
        self.findings.push((refusal, context));
    }
}

/// Returns true if the sizes of a workload's files are drawn in any configuration.
fn draws_sizes(configurations: &[Configuration], index: usize) -> bool {
    let mut each = configurations.iter().map(|one| &one.workloads[index]);
    each.any(|workload| workload.draws_sizes())
}

/// Place of the metric of that name.
fn metric_at(
    name: &str,
    span: &Span,
    entry: &WorkloadEntry,
    metrics: &[MetricHead],
) -> Result<usize, Refusal> {
    let found = metrics_named(name, &[(&entry.name, metrics)]);
    let found = found.map_err(|why| Refusal::at(span, why.what, why.next))?;
    // Of equal words the first is as good as any other: names of metrics differ in theirs.
    Ok(found[0].1)
}

/// Returns true if a workload runs commands that the user gives, in any configuration.
fn gives_commands(configurations: &[Configuration], index: usize) -> bool {
    let mut each = configurations.iter().map(|one| &one.workloads[index]);
    each.any(|workload| !workload.commands().is_empty())
}

/// Describes what a workload does; where that varies, in the first configuration.
fn summary(configurations: &[Configuration], workload: usize) -> String {
    let mut summaries = configurations
        .iter()
        .map(|configuration| configuration.workloads[workload].summary());
    let first = summaries.next().unwrap_or_default();
    match summaries.any(|other| other != first) {
        true => format!(
            "{first} ({}; varies with the configuration)",
            configurations[0].name
        ),
        false => first,
    }
}

fn kinds_of(stack: &Stack) -> String {
    let kinds: Vec<&str> = stack.layers.iter().map(|layer| layer.kind()).collect();
    kinds.join(" + ")
}

/// Describes a layout: `a file of 64 MiB with random bytes`, `no whole files`.
fn words_of(layout: Option<DataLayout>) -> String {
    let Some(layout) = layout else {
        return "no whole files".to_owned();
    };
    let size = unit::bytes(layout.file_bytes);
    let files = match layout.files {
        1 => format!("a file of {size}"),
        files => format!("{files} files of {size} each"),
    };
    let content = match layout.content {
        Content::Zero => "zeros",
        Content::Random => "random bytes",
        Content::Shaped { .. } => "bytes that compress or repeat",
    };
    format!("{files} with {content}")
}
