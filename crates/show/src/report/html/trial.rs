//! Every trial: a table of all, and a card of each that a point of a chart or a row leads to.
//!
//! A card is shown when its address is followed (`#trial-12`), which needs no script. The number is
//! the trial's position in the log, as in `stackrace export`.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::report::content::{TextRow, TextTable};
use crate::report::figure::{self, MISSING};
use stackrace_base::event::histogram::has_quantile;
use stackrace_base::event::{Ended, Event, LayerFacts, Observation, OperationObservation};
use stackrace_base::unit;
use stackrace_results::record::Record;

/// More trials have no cards: their points lead to the rows of the table, which is then open.
const CARDS_MAX: usize = 300;

/// Address of the trial of each place in the design: round, configuration, workload. The first
/// complete one, as the verdict takes it.
pub(super) struct Addresses(BTreeMap<(u32, usize, usize), usize>);

impl Addresses {
    pub(super) fn of(record: &Record) -> Self {
        let mut places = BTreeMap::new();
        for (at, trial) in record.trials().enumerate() {
            if trial.ended == Ended::Complete {
                let place = (trial.round, trial.configuration, trial.workload);
                places.entry(place).or_insert(at);
            }
        }
        Self(places)
    }

    /// `#trial-12`; empty if it is not there.
    pub(super) fn href(&self, round: u32, configuration: usize, workload: usize) -> String {
        let at = self.0.get(&(round, configuration, workload));
        at.map_or(String::new(), |at| format!("#{}", id(*at)))
    }
}

fn id(at: usize) -> String {
    format!("trial-{at}")
}

fn ended(trial: &Observation) -> (&'static str, Option<&str>) {
    match &trial.ended {
        Ended::Complete => ("complete", None),
        Ended::Interrupted => ("interrupted", None),
        Ended::Failed { error } => ("failed", Some(error)),
    }
}

/// Name of a configuration or workload by index.
fn named<T>(of: &[T], at: usize, name: impl Fn(&T) -> &String) -> String {
    // A log is read from a file: an index in it may point nowhere.
    of.get(at)
        .map_or_else(|| MISSING.to_owned(), |of| name(of).clone())
}

/// Every trial, complete or not, in the order they ended.
pub(super) fn trials(record: &Record) -> Markup {
    let trials: Vec<&Observation> = record.trials().collect();
    if trials.is_empty() {
        return html! {};
    }
    // Above that, cards would make the page too large to open; rows carry the addresses instead.
    let cards = trials.len() <= CARDS_MAX;
    let rows = trials
        .iter()
        .enumerate()
        .map(|(at, trial)| row(record, at, trial, cards))
        .collect();
    let names = [
        "round.position",
        "configuration",
        "workload",
        "primary metric",
        "measured",
        "ended",
        "caches before",
        "started",
        "notes",
    ];
    let set_up = set_up(record);
    html! {
        @if cards {
            @for (at, trial) in trials.iter().enumerate() { (card(record, at, trial, &set_up)) }
        }
        details open[!cards] {
            summary { (figure::counted(trials.len(), "trial")) ", in the order they ended" }
            (super::tables::table(&TextTable {
                title: "Every trial".to_owned(),
                head: names.map(str::to_owned).to_vec(),
                text: vec![1, 2, 5, 6, 7, 8],
                rows,
                ..TextTable::default()
            }))
        }
    }
}

fn row(record: &Record, at: usize, trial: &Observation, cards: bool) -> TextRow {
    let head = &record.head;
    let workload = head.workloads.get(trial.workload);
    let metric = workload.and_then(|workload| workload.metrics.first());
    let value = trial.metrics.first().copied().flatten();
    let (ended, error) = ended(trial);
    TextRow {
        configuration: Some(trial.configuration),
        cells: vec![
            format!("{}.{}", trial.round, trial.position + 1),
            named(&head.configurations, trial.configuration, |t| &t.name),
            named(&head.workloads, trial.workload, |w| &w.name),
            value.map_or(MISSING.to_owned(), |value| {
                figure::value(metric.map_or("", |metric| &metric.unit), value)
            }),
            // Nothing was timed here.
            match record.imported() || trial.elapsed_ns == 0 {
                true => MISSING.to_owned(),
                false => unit::time_ns(trial.elapsed_ns as f64),
            },
            ended.to_owned(),
            settled(trial),
            trial.started_at.clone(),
            notes(error, trial),
        ],
        dropped: false,
        // A link leads to the card where there is one, so only one of both has the address.
        id: if cards { String::new() } else { id(at) },
        href: if cards {
            format!("#{}", id(at))
        } else {
            String::new()
        },
    }
}

fn notes(error: Option<&str>, trial: &Observation) -> String {
    let notes = trial.notes.iter().map(String::as_str);
    error
        .into_iter()
        .chain(notes)
        .collect::<Vec<_>>()
        .join("; ")
}

/// `drop_caches, remounted, 0 of 2 GiB left`.
fn settled(trial: &Observation) -> String {
    let settled = &trial.settled;
    let mut text = settled.caches.clone();
    if settled.remounted {
        text.push_str(", remounted");
    }
    if let (Some(resident), Some(prepared)) = (settled.resident_bytes, settled.prepared_bytes) {
        text.push_str(&format!(
            ", {} of {} left",
            unit::bytes(resident),
            unit::bytes(prepared)
        ));
    }
    text
}

/// Facts that the layers got, by round and configuration.
type SetUp<'a> = BTreeMap<(u32, usize), &'a [LayerFacts]>;

fn set_up(record: &Record) -> SetUp<'_> {
    let events = record.lines.iter().map(|line| &line.event);
    events
        // Kept by round: stacks that are set up anew may get other facts each time.
        .filter_map(|event| match event {
            Event::StackSetUp {
                round,
                configuration,
                layers,
                ..
            } => Some(((*round, *configuration), layers.as_slice())),
            _ => None,
        })
        .collect()
}

fn card(record: &Record, at: usize, trial: &Observation, set_up: &SetUp<'_>) -> Markup {
    let head = &record.head;
    let (ended, error) = ended(trial);
    let title = format!(
        "Round {}, position {}: {}, {}",
        trial.round,
        trial.position + 1,
        named(&head.configurations, trial.configuration, |t| &t.name),
        named(&head.workloads, trial.workload, |w| &w.name)
    );
    let notes = notes(error, trial);
    let layers = set_up.get(&(trial.round, trial.configuration));
    html! {
        article class="trial" id=(id(at)) tabindex="-1" aria-label=(title) {
            h3 { (title) }
            p {
                (ended) ", started " (trial.started_at)
                @if !record.imported() {
                    "; measured " (unit::time_ns(trial.elapsed_ns as f64))
                    @if let Some(sliced) = &trial.sliced {
                        " in " (sliced.slices) " slices of " (unit::time_ns(sliced.slice_ns as f64))
                        ", in turn with the other configurations,"
                    }
                    " after preparing for " (unit::time_ns(trial.prepare_ns as f64))
                    " and settling for " (unit::time_ns(trial.settle_ns as f64))
                    " (caches: " (settled(trial)) ")"
                    @if let Some(before) = &trial.preconditioned {
                        "; preconditioned for " (unit::time_ns(before.elapsed_ns as f64)) ", "
                        (before.passes.len()) " passes"
                        @if before.steady { ", steady" } @else { ", never steady" }
                    }
                }
                "."
            }
            @if !notes.is_empty() { p class="warning" { (notes) } }
            (metrics(record, trial))
            (operations(trial))
            @if !record.imported() { (counted(trial)) }
            @for layer in layers.copied().unwrap_or_default() {
                p {
                    strong { (layer.layer) } " as it was set up: "
                    (layer.facts.iter().map(|fact| format!("{} {}", fact.name, fact.shown()))
                        .collect::<Vec<_>>().join(", ")) "."
                }
            }
            (super::again::trial(record, trial))
            p {
                a href="#trials" { "all trials" } " · "
                @if record.head.environment.is_empty() { "" } @else { a href="#environment" { "environment" } " · " }
                a href="#figures" { "figures" }
            }
        }
    }
}

fn metrics(record: &Record, trial: &Observation) -> Markup {
    let metrics = record.head.workloads.get(trial.workload);
    let metrics = metrics.map_or(&[][..], |workload| &workload.metrics);
    html! {
        ul class="facts" {
            @for (metric, value) in metrics.iter().zip(&trial.metrics) {
                @if let Some(value) = value { li { (metric.name) " " strong { (figure::value(&metric.unit, *value)) } } }
            }
        }
    }
}

fn operations(trial: &Observation) -> Markup {
    let row = |phase: &str, op: &OperationObservation| {
        let ns = |ns: u64| unit::time_ns(ns as f64);
        let tail = |value, share| match has_quantile(op.count, share) {
            true => ns(value),
            false => MISSING.to_owned(),
        };
        TextRow::of(vec![
            phase.to_owned(),
            op.op.clone(),
            unit::count(op.count),
            unit::bytes(op.bytes),
            ns(op.latency_ns_min),
            ns(op.latency_ns_p50),
            tail(op.latency_ns_p95, 0.95),
            tail(op.latency_ns_p99, 0.99),
            op.latency_ns_p999.map_or(MISSING.to_owned(), ns),
            ns(op.latency_ns_max),
        ])
    };
    let rows: Vec<TextRow> = trial
        .phases
        .iter()
        .flat_map(|phase| phase.operations.iter().map(|op| row(&phase.name, op)))
        .collect();
    if rows.is_empty() {
        return html! {};
    }
    let head = [
        "phase",
        "operation",
        "count",
        "bytes",
        "min",
        "p50",
        "p95",
        "p99",
        "p99.9",
        "max",
    ];
    let engines: Vec<String> = trial
        .phases
        .iter()
        .map(|phase| format!("{}: {}, clock {}", phase.name, phase.engine, phase.clock))
        .collect();
    html! {
        (super::tables::table(&TextTable {
            title: "Operations of this trial".to_owned(),
            head: head.map(str::to_owned).to_vec(),
            text: vec![1],
            rows,
            ..TextTable::default()
        }))
        p class="faint" { (engines.join("; ")) }
    }
}

/// Counters of the system meanwhile.
fn counted(trial: &Observation) -> Markup {
    let counted = &trial.counted;
    let ns = |ns: u64| unit::time_ns(ns as f64);
    html! {
        p {
            "CPU: " (ns(counted.cpu_user_ns)) " user, " (ns(counted.cpu_system_ns)) " system; machine busy "
            (ns(counted.cpu_machine_busy_ns)) ", stolen " (ns(counted.cpu_steal_ns)) "."
            @for device in &counted.devices {
                " " (device.device) ": read " (unit::bytes(device.read_bytes)) " in " (device.reads)
                ", wrote " (unit::bytes(device.written_bytes)) " in " (device.writes)
                @if let Some(flushes) = device.flushes { ", " (flushes) " flushes" }
                ", busy " (ns(device.busy_ns)) "."
            }
        }
    }
}
