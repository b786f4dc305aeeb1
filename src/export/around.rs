//! Tables of what is around the trials: the runs, the machine and its layers, the commands.

use super::Kind;
use super::column::{Get, Table, columns};
use super::comparisons::state;
use crate::event::{CommandRun, Event, shell};
use crate::record::Record;
use crate::verdict::{self, Evidence, Verdict};

/// One row per run.
pub(super) const RUNS: Kind = Kind {
    name: "runs",
    summary: "one row per run: what was asked, what came out",
    of: runs,
};

/// One row per fact.
pub(super) const ENVIRONMENT: Kind = Kind {
    name: "environment",
    summary: "one row per fact of the machine, and of each layer each time it was raised",
    of: environment,
};

/// One row per command.
pub(super) const COMMANDS: Kind = Kind {
    name: "commands",
    summary: "one row per command that raised, settled or lowered a stack",
    of: commands,
};

fn runs(records: &[Record]) -> Table {
    type Row<'a> = (&'a Record, Verdict);
    let rows: Vec<Row<'_>> = records
        .iter()
        .map(|record| (record, verdict::judge(&Evidence::of(record))))
        .collect();
    let of: &[(&str, Get<Row<'_>>)] = &[
        ("run", Get::Text(|(r, _)| &r.head.run)),
        ("study", Get::Text(|(r, _)| &r.head.study_name)),
        ("study_hash", Get::Text(|(r, _)| &r.head.study_hash)),
        ("title", Get::Text(|(r, _)| &r.head.title)),
        ("stackrace", Get::Text(|(r, _)| &r.head.stackrace)),
        ("command", Get::Made(|(r, _)| shell(&r.head.command))),
        // Text: it may exceed what a signed number of 64 bits holds.
        ("seed", Get::Made(|(r, _)| r.head.seed.to_string())),
        ("imported", Get::Flag(|(r, _)| Some(r.imported()))),
        ("started_at", Get::Time(|(r, _)| r.started_at())),
        (
            "ended_at",
            Get::Time(|(r, _)| r.ended().map_or("", |ended| ended.at)),
        ),
        (
            "ended",
            Get::Text(|(r, _)| r.ended().map_or("", |ended| ended.reason)),
        ),
        ("elapsed_s", Get::Real(|(r, _)| Some(r.elapsed_seconds()))),
        ("rounds", Get::Whole(|(_, v)| Some(v.rounds.into()))),
        ("confidence", Get::Real(|(_, v)| Some(v.confidence))),
        ("margin", Get::Real(|(_, v)| Some(v.margin))),
        ("state", Get::Text(|(_, v)| state(v))),
        ("sentence", Get::Text(|(_, v)| &v.sentence)),
    ];
    Table {
        columns: columns(&rows, of),
    }
}

/// A fact; of the machine where it is of no configuration.
struct Told<'a> {
    run: &'a str,
    round: Option<u32>,
    configuration: &'a str,
    height: Option<usize>,
    layer: &'a str,
    fact: &'a str,
    value: &'a str,
}

fn environment(records: &[Record]) -> Table {
    let mut rows = Vec::new();
    for record in records {
        let machine = Told {
            run: &record.head.run,
            round: None,
            configuration: "",
            height: None,
            layer: "",
            fact: "",
            value: "",
        };
        for fact in &record.head.environment {
            rows.push(Told {
                fact: &fact.name,
                value: &fact.value,
                ..machine
            });
        }
        for line in &record.lines {
            let Event::StackRaised {
                round,
                configuration,
                layers,
                ..
            } = &line.event
            else {
                continue;
            };
            let name = record.head.configurations.get(*configuration);
            for (height, layer) in layers.iter().enumerate() {
                rows.extend(layer.facts.iter().map(|fact| Told {
                    round: Some(*round),
                    configuration: name.map_or("", |configuration| &configuration.name),
                    height: Some(height),
                    layer: &layer.layer,
                    fact: &fact.name,
                    value: &fact.value,
                    ..machine
                }));
            }
        }
    }
    let of: &[(&str, Get<Told<'_>>)] = &[
        ("run", Get::Text(|t| t.run)),
        ("round", Get::Whole(|t| t.round.map(Into::into))),
        ("configuration", Get::Text(|t| t.configuration)),
        (
            "height",
            Get::Whole(|t| t.height.map(|height| height as u64)),
        ),
        ("layer", Get::Text(|t| t.layer)),
        ("fact", Get::Text(|t| t.fact)),
        ("value", Get::Text(|t| t.value)),
    ];
    Table {
        columns: columns(&rows, of),
    }
}

/// A command, the round it was run in, and when its end was written down.
struct Ran<'a> {
    run: &'a str,
    round: Option<u32>,
    logged_at: &'a str,
    command: &'a CommandRun,
}

fn commands(records: &[Record]) -> Table {
    let mut rows = Vec::new();
    for record in records {
        let mut round = None;
        for line in &record.lines {
            match &line.event {
                Event::RoundStarted { round: begun, .. } => round = Some(*begun),
                Event::Command(command) => rows.push(Ran {
                    run: &record.head.run,
                    round,
                    logged_at: &line.at,
                    command,
                }),
                _ => {}
            }
        }
    }
    let of: &[(&str, Get<Ran<'_>>)] = &[
        ("run", Get::Text(|r| r.run)),
        ("round", Get::Whole(|r| r.round.map(Into::into))),
        ("logged_at", Get::Time(|r| r.logged_at)),
        ("host", Get::Text(|r| &r.command.host)),
        ("command", Get::Made(|r| shell(&r.command.argv))),
        // A status is never below 0: a signal has none.
        (
            "status",
            Get::Whole(|r| r.command.status.and_then(|status| status.try_into().ok())),
        ),
        ("elapsed_ns", Get::Whole(|r| Some(r.command.elapsed_ns))),
        ("stdout", Get::Text(|r| &r.command.stdout)),
        ("stderr", Get::Text(|r| &r.command.stderr)),
    ];
    Table {
        columns: columns(&rows, of),
    }
}
