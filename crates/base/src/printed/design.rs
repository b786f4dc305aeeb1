//! Imported results as a run: configurations, workloads, and trials in rounds.
//!
//! Each name is a configuration; each further result of the same name and workload is a further round.
//! Rounds of an import only count repetitions: nothing in different configurations happened in the same
//! round, and no order was drawn.

use std::collections::BTreeSet;

use super::alike;
use super::repeated;
use super::source::ImportSource;
use super::{Imported, PrintedFigure};
use crate::event::{
    ConfigurationHead, Decide, Ended, Event, FORMAT, Fact, ImportedText as Origin, MetricHead,
    Observation, Precision, RunStarted, Settled, Until, WorkloadHead,
};

/// `Imported from fio-3.39, IOR-4.0.0`.
pub fn title(sources: &[ImportSource]) -> String {
    let tools: BTreeSet<&str> = sources
        .iter()
        .flat_map(|source| &source.results)
        .map(|result| result.version.as_deref().unwrap_or(result.tool))
        .collect();
    let tools: Vec<&str> = tools.into_iter().collect();
    format!("Imported from {}", tools.join(", "))
}

/// A run without a study.
pub struct Design {
    /// Study text of a run without a study: a comment that names the sources.
    pub study: String,
    /// Names in the order of the files.
    pub configurations: Vec<ConfigurationHead>,
    /// Workloads, of which those that all configurations have come into the overall figure.
    pub workloads: Vec<WorkloadHead>,
    /// Facts the texts give on the machines.
    pub environment: Vec<Fact>,
    /// Nothing is left to be decided.
    pub decide: Decide,
    /// The texts themselves.
    pub origins: Vec<Origin>,
    /// Warnings that must be known before the figures are compared.
    pub warnings: Vec<String>,
    /// Ordered by round.
    pub trials: Vec<Observation>,
}

/// One result with its place in the design.
struct Placed<'a> {
    configuration: usize,
    workload: usize,
    round: u32,
    result: &'a Imported,
}

impl Design {
    /// Lays results out as a run. `at` is when they are imported, RFC 3339.
    pub fn of(sources: &[ImportSource], at: &str) -> Self {
        let names = names(sources);
        let titles = alike::workloads(sources, &names);
        let repeated = repeated::find(sources);
        let mut configurations: Vec<String> = Vec::new();
        let mut workloads: Vec<(&str, &str)> = Vec::new();
        let mut placed: Vec<Placed<'_>> = Vec::new();
        let called = names.iter().zip(&titles);
        let results = sources.iter().zip(called).zip(&repeated.counts);
        let results = results
            .flat_map(|((source, (names, titles)), counts)| {
                let called = names.iter().zip(titles);
                source.results.iter().zip(called).zip(counts)
            })
            .filter_map(|(result, counts)| counts.then_some(result));
        for (result, (name, title)) in results {
            let configuration = position_or_add(&mut configurations, name.clone());
            let workload = (title.as_str(), result.kind.as_str());
            let workload = position_or_add(&mut workloads, workload);
            // Repetitions of one configuration and workload are its rounds, in the order of the
            // files.
            let before = placed
                .iter()
                .filter(|known| (known.configuration, known.workload) == (configuration, workload))
                .count();
            placed.push(Placed {
                configuration,
                workload,
                round: u32::try_from(before + 1).unwrap_or(u32::MAX),
                result,
            });
        }
        placed.sort_by_key(|placed| (placed.round, placed.configuration, placed.workload));
        let rounds_max = placed.iter().map(|placed| placed.round).max().unwrap_or(1);
        let (heads, differing) = heads(&placed, &workloads, &configurations);
        Self {
            study: study(sources),
            environment: environment(&placed, &configurations),
            decide: Decide {
                comparison: None,
                margin: 0.05,
                confidence: 0.95,
                rounds_max,
                // Nothing was limited or stopped: the fields of a decision are filled with what
                // keeps every round.
                time_max_ns: 0,
                until: Until::Never,
                precision: Precision::Direction,
                required: Vec::new(),
            },
            origins: sources.iter().map(origin).collect(),
            warnings: repeated.warnings.into_iter().chain(differing).collect(),
            trials: placed
                .iter()
                .enumerate()
                .map(|(position, placed)| trial(placed, &heads, position, at))
                .collect(),
            workloads: heads,
            configurations: configurations
                .into_iter()
                .map(|name| ConfigurationHead {
                    cost: None,
                    levels: Vec::new(),
                    name,
                })
                .collect(),
        }
    }

    /// The first event of its run.
    pub fn head(&self, run: String, title: String, command: Vec<String>) -> RunStarted {
        RunStarted {
            format: FORMAT,
            run,
            stackrace: env!("CARGO_PKG_VERSION").to_owned(),
            command,
            study_hash: blake3::hash(self.study.as_bytes()).to_hex().to_string(),
            study: self.study.clone(),
            study_name: "import".to_owned(),
            title,
            factors: Vec::new(),
            configurations: self.configurations.clone(),
            workloads: self.workloads.clone(),
            decide: self.decide.clone(),
            seed: 0,
            place: None,
            environment: self.environment.clone(),
        }
    }

    /// The events that follow, as they would have come while it went on.
    pub fn events(self) -> Vec<Event> {
        let origins = self.origins.into_iter();
        let origins = origins.map(|origin| Event::Imported(Box::new(origin)));
        let warnings = self.warnings.into_iter();
        let warnings = warnings.map(|text| Event::Warned { text });
        let mut events: Vec<Event> = origins.chain(warnings).collect();
        let mut trials = self.trials.into_iter().peekable();
        while let Some(round) = trials.peek().map(|trial| trial.round) {
            let mut of_round = Vec::new();
            while let Some(trial) = trials.next_if(|trial| trial.round == round) {
                of_round.push(trial);
            }
            let mut order: Vec<usize> = of_round.iter().map(|trial| trial.configuration).collect();
            // A configuration has several workloads in a round, one after the other, and stands in
            // the order once.
            order.dedup();
            events.push(Event::RoundStarted {
                round,
                order,
                orders: Vec::new(),
            });
            let trials = of_round.into_iter();
            events.extend(trials.map(|trial| Event::Trial(Box::new(trial))));
            events.push(Event::RoundFinished {
                round,
                trials: None,
            });
        }
        events
    }
}

/// The workloads as a run has them, and warnings of settings that differ between configurations.
fn heads(
    placed: &[Placed<'_>],
    workloads: &[(&str, &str)],
    configurations: &[String],
) -> (Vec<WorkloadHead>, Vec<String>) {
    let (mut heads, mut warnings) = (Vec::new(), Vec::new());
    for (workload, (name, kind)) in workloads.iter().enumerate() {
        let of_workload = placed.iter().filter(|placed| placed.workload == workload);
        let mine: Vec<&Placed<'_>> = of_workload.collect();
        let (same, differing) = settings(&mine, configurations);
        warnings.extend(differing.into_iter().map(|text| format!("{name}: {text}")));
        let everywhere = (0..configurations.len()).all(|configuration| {
            mine.iter()
                .any(|placed| placed.configuration == configuration)
        });
        heads.push(WorkloadHead {
            name: (*name).to_owned(),
            kind: (*kind).to_owned(),
            summary: summary(&mine, &words(&same)),
            // The overall figure needs a value of every configuration.
            weight: if everywhere { 1.0 } else { 0.0 },
            metrics: metrics(&mine),
            drawn_sizes: None,
            level: Some(false),
            operations: None,
            gives_commands: false,
            imported: Some(words(&same)),
            recorded: None,
        });
    }
    (heads, warnings)
}

fn position_or_add<T: PartialEq>(all: &mut Vec<T>, one: T) -> usize {
    all.iter()
        .position(|known| *known == one)
        .unwrap_or_else(|| {
            all.push(one);
            all.len() - 1
        })
}

/// Name of the configuration that each result of each source belongs to.
fn names(sources: &[ImportSource]) -> Vec<Vec<String>> {
    let labels = |source: &ImportSource| -> Vec<Option<String>> {
        let mut labels = Vec::new();
        for result in &source.results {
            position_or_add(&mut labels, result.label.clone());
        }
        labels
    };
    sources
        .iter()
        .enumerate()
        .map(|(at, source)| {
            let own = labels(source);
            // A label that other files have too (the same machine) does not tell them apart.
            let elsewhere = |label: &Option<String>| {
                let mut others = sources.iter().enumerate().filter(|(other, _)| *other != at);
                others.any(|(_, other)| labels(other).contains(label))
            };
            let base = source.name.clone().unwrap_or_else(|| source.stem.clone());
            let name = |result: &Imported| match &result.label {
                // A name that the user gave goes before what the file says of itself.
                Some(label) if source.name.is_none() && !elsewhere(&result.label) => label.clone(),
                Some(label) if own.len() > 1 => format!("{base} {label}"),
                _ => base.clone(),
            };
            source.results.iter().map(name).collect()
        })
        .collect()
}

/// The settings all results of a workload have, and one sentence for each that differs.
fn settings(mine: &[&Placed<'_>], configurations: &[String]) -> (Vec<Fact>, Vec<String>) {
    let mut names: Vec<&str> = Vec::new();
    for fact in mine.iter().flat_map(|placed| &placed.result.settings) {
        position_or_add(&mut names, fact.name.as_str());
    }
    let (mut same, mut differing) = (Vec::new(), Vec::new());
    for name in names {
        let mut values: Vec<(&str, Vec<&str>)> = Vec::new();
        for placed in mine {
            // A setting that only some files mention differs, too: its absence may mean another
            // default.
            let value = Fact::value_of(&placed.result.settings, name).unwrap_or("not told");
            let at = match values.iter().position(|(known, _)| *known == value) {
                Some(at) => at,
                None => {
                    values.push((value, Vec::new()));
                    values.len() - 1
                }
            };
            position_or_add(
                &mut values[at].1,
                configurations[placed.configuration].as_str(),
            );
        }
        if let [(value, _)] = values.as_slice() {
            same.push(Fact::new(name, *value));
        } else {
            let each: Vec<String> = values
                .iter()
                .map(|(value, of)| format!("\"{value}\" ({})", of.join(", ")))
                .collect();
            differing.push(format!(
                "{name} is not the same in all: {}",
                each.join(", ")
            ));
        }
    }
    (same, differing)
}

/// `imported from fio-3.39: rw=randread, bs=4k`
fn summary(mine: &[&Placed<'_>], settings: &str) -> String {
    let mut tools: Vec<&str> = Vec::new();
    for placed in mine {
        let version = placed.result.version.as_deref();
        position_or_add(&mut tools, version.unwrap_or(placed.result.tool));
    }
    let colon = if settings.is_empty() { "" } else { ": " };
    format!("imported from {}{colon}{settings}", tools.join(", "))
}

/// `rw=randread, bs=4k`
fn words(settings: &[Fact]) -> String {
    let words = settings.iter().map(|fact| match fact.value.as_str() {
        "" => fact.name.clone(),
        value => format!("{}={value}", fact.name),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Every metric of a workload's results, those of the first result first.
fn metrics(mine: &[&Placed<'_>]) -> Vec<MetricHead> {
    let mut metrics: Vec<MetricHead> = Vec::new();
    for metric in mine.iter().flat_map(|placed| &placed.result.metrics) {
        position_or_add(&mut metrics, metric.clone());
    }
    metrics
}

fn trial(placed: &Placed<'_>, heads: &[WorkloadHead], position: usize, at: &str) -> Observation {
    let result = placed.result;
    let own = &heads[placed.workload].metrics;
    let figure = |metric: &MetricHead| {
        let at = result.metrics.iter().position(|known| known == metric)?;
        result.values.get(at).copied().flatten()
    };
    let figures: Vec<Option<PrintedFigure>> = own.iter().map(figure).collect();
    let each = |part: fn(PrintedFigure) -> f64| {
        let parts = figures.iter().map(|figure| figure.map(part));
        parts.collect::<Vec<Option<f64>>>()
    };
    Observation {
        round: placed.round,
        position,
        configuration: placed.configuration,
        workload: placed.workload,
        started_at: at.to_owned(),
        settled: Settled {
            caches: "unknown".to_owned(),
            ..Settled::default()
        },
        metrics: each(|figure| figure.value),
        resolution: each(|figure| figure.step),
        notes: result.notes.clone(),
        against: result.against.clone(),
        ..Observation::unmeasured(Ended::Complete)
    }
}

/// Facts of the texts, with the configuration where they do not all say the same.
fn environment(placed: &[Placed<'_>], configurations: &[String]) -> Vec<Fact> {
    let mut told: Vec<(Fact, Vec<usize>)> = Vec::new();
    for placed in placed {
        let version = placed.result.version.as_ref();
        let version = version.map(|version| Fact::new(placed.result.tool, version));
        for fact in placed.result.environment.iter().cloned().chain(version) {
            match told.iter_mut().find(|(known, _)| *known == fact) {
                Some((_, of)) => drop(position_or_add(of, placed.configuration)),
                None => told.push((fact, vec![placed.configuration])),
            }
        }
    }
    told.into_iter()
        .map(|(fact, of)| {
            // What holds for all is said once, without names.
            if of.len() == configurations.len() {
                return fact;
            }
            let names: Vec<&str> = of.iter().map(|t| configurations[*t].as_str()).collect();
            Fact::new(format!("{} ({})", fact.name, names.join(", ")), fact.value)
        })
        .collect()
}

fn origin(source: &ImportSource) -> Origin {
    let first = source.results.first();
    Origin {
        file: source.file.clone(),
        tool: first.map_or("", |result| result.tool).to_owned(),
        version: first.and_then(|result| result.version.clone()),
        hash: source.hash.clone(),
        text: source.text.clone(),
    }
}

/// The study of a run that has none.
fn study(sources: &[ImportSource]) -> String {
    let mut study =
        "# Imported: other tools measured this, stackrace only read what they printed.\n"
            .to_owned();
    for source in sources {
        let file = source.file.escape_debug();
        // Enough digits to recognise the file; the whole hash is in the record.
        let hash = source.hash.get(..16).unwrap_or_default();
        study.push_str(&format!("# {file} (BLAKE3 {hash}…)\n"));
    }
    study
}
