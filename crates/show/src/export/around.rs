//! Tables of what is around the trials: the runs, the machine and its layers, the commands.

use super::table::ExportTable;
use stackrace_base::event::{CommandRun, Event, shell};
use stackrace_judge::verdict::{self, Evidence, Verdict};
use stackrace_results::record::Record;
use stackrace_results::tables::ColumnOf::{Flag, Made, Real, Text, Time, Whole};
use stackrace_results::tables::{ColumnOf, DataTable, columns};

/// One row per run.
pub(super) const RUNS: ExportTable = ExportTable {
    name: "runs",
    summary: "one row per run: what was asked, what came out",
    of: runs,
};

/// One row per fact.
pub(super) const ENVIRONMENT: ExportTable = ExportTable {
    name: "environment",
    summary: "one row per fact of the machine, and of each layer at each set-up",
    of: environment,
};

/// One row per command.
pub(super) const COMMANDS: ExportTable = ExportTable {
    name: "commands",
    summary: "one row per command that set up, settled or tore down a stack",
    of: commands,
};

fn runs(records: &[Record]) -> DataTable {
    type Row<'a> = (&'a Record, Verdict);
    let rows: Vec<Row<'_>> = records
        .iter()
        .map(|record| (record, verdict::judge(&Evidence::of(record))))
        .collect();
    let of: &[(&str, ColumnOf<Row<'_>>)] = &[
        ("run", Text(|(r, _)| &r.head.run)),
        ("study", Text(|(r, _)| &r.head.study_name)),
        ("study_hash", Text(|(r, _)| &r.head.study_hash)),
        ("title", Text(|(r, _)| &r.head.title)),
        ("stackrace", Text(|(r, _)| &r.head.stackrace)),
        ("command", Made(|(r, _)| shell(&r.head.command))),
        // Text: it may exceed what a signed number of 64 bits holds.
        ("seed", Made(|(r, _)| r.head.seed.to_string())),
        ("imported", Flag(|(r, _)| Some(r.imported()))),
        ("started_at", Time(|(r, _)| r.started_at())),
        (
            "ended_at",
            Time(|(r, _)| r.ended().map_or("", |ended| ended.at)),
        ),
        (
            "ended",
            Text(|(r, _)| r.ended().map_or("", |ended| ended.reason)),
        ),
        ("elapsed_s", Real(|(r, _)| Some(r.elapsed_seconds()))),
        ("rounds", Whole(|(_, v)| Some(v.rounds.into()))),
        ("confidence", Real(|(_, v)| Some(v.confidence))),
        ("margin", Real(|(_, v)| Some(v.margin))),
        ("state", Text(|(_, v)| v.state.name())),
        ("sentence", Text(|(_, v)| &v.sentence)),
    ];
    DataTable {
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

fn environment(records: &[Record]) -> DataTable {
    // The machine of a run first, then what each set-up found.
    let mut rows = Vec::new();
    for record in records {
        // A fact of the machine belongs to no round and no layer; each layer's fact fills in the
        // rest.
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
            let Event::StackSetUp {
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
    let of: &[(&str, ColumnOf<Told<'_>>)] = &[
        ("run", Text(|t| t.run)),
        ("round", Whole(|t| t.round.map(Into::into))),
        ("configuration", Text(|t| t.configuration)),
        ("height", Whole(|t| t.height.map(|height| height as u64))),
        ("layer", Text(|t| t.layer)),
        ("fact", Text(|t| t.fact)),
        ("value", Text(|t| t.value)),
    ];
    DataTable {
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

fn commands(records: &[Record]) -> DataTable {
    let mut rows = Vec::new();
    for record in records {
        // A command carries no round in the log: it belongs to the one that began last before it,
        // and a command before the first round to none.
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
    // Output is kept as text although it may be long: a failed command cannot be understood without
    // it.
    let of: &[(&str, ColumnOf<Ran<'_>>)] = &[
        ("run", Text(|r| r.run)),
        ("round", Whole(|r| r.round.map(Into::into))),
        ("logged_at", Time(|r| r.logged_at)),
        ("host", Text(|r| &r.command.host)),
        ("command", Made(|r| shell(&r.command.argv))),
        // A status is never below 0: a signal has none.
        (
            "status",
            Whole(|r| r.command.status.and_then(|status| status.try_into().ok())),
        ),
        ("elapsed_ns", Whole(|r| Some(r.command.elapsed_ns))),
        ("stdout", Text(|r| &r.command.stdout)),
        ("stderr", Text(|r| &r.command.stderr)),
    ];
    DataTable {
        columns: columns(&rows, of),
    }
}
