//! The machine, what the layers really got, and every command that was run.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::report::content::{TextRow, TextTable};
use crate::report::figure;
use stackrace_base::event::{CommandRun, Event, Fact, shell};
use stackrace_base::unit;
use stackrace_results::record::Record;

/// A fact of the layers at one height: which values it had, and in which configurations each.
struct LayerFact {
    /// Kinds of layer that have it, in the order first seen.
    layers: Vec<String>,
    name: String,
    /// Value with the configurations that had it, in the order first seen.
    values: Vec<(String, Vec<usize>)>,
}

impl LayerFact {
    fn layer(&self) -> String {
        self.layers.join(", ")
    }

    /// All configurations have the one value.
    fn same(&self, set_up: &[usize]) -> bool {
        matches!(self.values.as_slice(), [(_, configurations)] if configurations == set_up)
    }

    /// Some configuration had more than one value: what changes with every set-up (the number of a
    /// loop device) is no difference between configurations.
    fn fleeting(&self) -> bool {
        let mut seen = std::collections::BTreeSet::new();
        self.values
            .iter()
            .flat_map(|(_, configurations)| configurations)
            .any(|configuration| !seen.insert(configuration))
    }
}

/// The machine and the layers.
pub(super) fn environment(record: &Record) -> Markup {
    let machine = TextTable {
        title: "The machine".to_owned(),
        head: vec!["fact".to_owned(), "value".to_owned()],
        text: vec![1],
        rows: record
            .head
            .environment
            .iter()
            .map(|fact| TextRow::of(vec![fact.name.clone(), fact.shown()]))
            .collect(),
        ..TextTable::default()
    };
    // A run that ended early has configurations that never stood: they make no fact differ.
    let set_up: Vec<usize> = (0..record.head.configurations.len())
        .filter(|&configuration| !record.layer_facts(configuration).is_empty())
        .collect();
    let (same, rest): (Vec<LayerFact>, Vec<LayerFact>) = layer_facts(record)
        .into_iter()
        .partition(|fact| fact.same(&set_up));
    let (fleeting, different): (Vec<LayerFact>, Vec<LayerFact>) =
        rest.into_iter().partition(LayerFact::fleeting);
    html! {
        @if !machine.rows.is_empty() { h3 { (machine.title) } (super::tables::table(&machine)) }
        @if !different.is_empty() {
            h3 { "Where the configurations differ" }
            p { "As the system reports it, not as the study asked." }
            (facts_table("Where the configurations differ", record, &different))
        }
        @if !fleeting.is_empty() {
            details {
                summary { (figure::counted(fleeting.len(), "fact")) " that changed from one set-up to the next" }
                (facts_table("What changed from one set-up to the next", record, &fleeting))
            }
        }
        @if !same.is_empty() {
            details {
                summary { (figure::counted(same.len(), "fact")) " the same in all configurations" }
                (facts_table("The same in all configurations", record, &same))
            }
        }
    }
}

fn facts_table(title: &str, record: &Record, facts: &[LayerFact]) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label=(title) {
            table class="differences" {
                thead {
                    tr {
                        th scope="col" class="text" { "layer" }
                        th scope="col" class="text" { "fact" }
                        th scope="col" class="text" { "value" }
                        th scope="col" class="text" { "configurations" }
                    }
                }
                @for fact in facts {
                    tbody {
                        @for (at, (value, configurations)) in fact.values.iter().enumerate() {
                            tr {
                                @if at == 0 {
                                    th scope="rowgroup" class="text" rowspan=(fact.values.len()) { (fact.layer()) }
                                    th scope="rowgroup" class="text" rowspan=(fact.values.len()) { (fact.name) }
                                }
                                td class="text" {
                                    @if fact.values.len() > 1 { mark { (value) } } @else { (value) }
                                }
                                td class="text" { (names(record, configurations)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn names(record: &Record, configurations: &[usize]) -> Markup {
    let name = |&at: &usize| {
        record
            .head
            .configurations
            .get(at)
            .map_or("", |configuration| configuration.name.as_str())
    };
    // With one configuration its name says more than "all".
    if configurations.len() == record.head.configurations.len() && configurations.len() > 1 {
        return html! { "all" };
    }
    html! {
        ul class="names" { @for at in configurations { li { (name(at)) } } }
    }
}

/// Facts of all layers in the order first seen; layers are matched by their height, so that two
/// file systems are compared fact by fact.
fn layer_facts(record: &Record) -> Vec<LayerFact> {
    let mut facts: Vec<LayerFact> = Vec::new();
    // By height and not by layer: XFS and ext4 at one height are compared with each other.
    let mut known: BTreeMap<(usize, String), usize> = BTreeMap::new();
    for configuration in 0..record.head.configurations.len() {
        for layers in record.layer_facts(configuration) {
            for (height, layer) in layers.iter().enumerate() {
                let kind = Fact::new("kind of layer", layer.layer.as_str());
                for fact in std::iter::once(&kind).chain(&layer.facts) {
                    let key = (height, fact.name.clone());
                    let at = *known.entry(key).or_insert_with(|| {
                        facts.push(LayerFact {
                            layers: Vec::new(),
                            name: fact.name.clone(),
                            values: Vec::new(),
                        });
                        facts.len() - 1
                    });
                    if !facts[at].layers.contains(&layer.layer) {
                        facts[at].layers.push(layer.layer.clone());
                    }
                    enter(&mut facts[at].values, &fact.shown(), configuration);
                }
            }
        }
    }
    facts
}

fn enter(values: &mut Vec<(String, Vec<usize>)>, value: &str, configuration: usize) {
    match values.iter_mut().find(|(known, _)| known == value) {
        // Configurations come one after the other, so what was set up again is the last of the
        // list.
        Some((_, configurations)) if configurations.last() == Some(&configuration) => {}
        Some((_, configurations)) => configurations.push(configuration),
        None => values.push((value.to_owned(), vec![configuration])),
    }
}

/// Every command, complete, round by round.
pub(super) fn commands(record: &Record) -> Markup {
    let mut groups: Vec<(String, Vec<&CommandRun>)> =
        // Commands of a log stand between its rounds, the first of them before any.
        vec![("Before the first round".to_owned(), Vec::new())];
    for line in &record.lines {
        match &line.event {
            Event::RoundStarted { round, .. } => {
                groups.push((format!("Round {round}"), Vec::new()));
            }
            Event::Command(command) => {
                if let Some((_, commands)) = groups.last_mut() {
                    commands.push(command);
                }
            }
            _ => {}
        }
    }
    groups.retain(|(_, commands)| !commands.is_empty());
    html! {
        @for (name, commands) in groups {
            details {
                summary { (name) ": " (figure::counted(commands.len(), "command")) }
                pre tabindex="0" { @for command in commands { (self::command(command)) } }
            }
        }
    }
}

fn command(command: &CommandRun) -> Markup {
    let host = if command.host == "local" {
        String::new()
    } else {
        format!("{}: ", command.host)
    };
    let status = command
        // Ended by a signal, or never started.
        .status
        .map_or("no status".to_owned(), |status| format!("status {status}"));
    html! {
        span class="command" { (host) "$ " (shell(&command.argv)) }
        span class="faint" { "   # " (status) ", " (unit::time_ns(command.elapsed_ns as f64)) "\n" }
        @for output in [&command.stdout, &command.stderr] {
            @if !output.trim().is_empty() { (output.trim_end()) "\n" }
        }
    }
}
