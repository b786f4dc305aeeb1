//! What power cuts took: tables and sentences, before they have a form.

use super::content::{TextRow, TextTable, share};
use super::figure::{self, MISSING};
use stackrace_base::event::{Loss, again};
use stackrace_base::unit;
use stackrace_judge::audit;
use stackrace_judge::verdict::{DurabilityRow, Verdict, durability};
use stackrace_results::record::Record;

/// Speed, guarantee and work lost, one row for each configuration and workload that was cut.
pub(super) fn guarantees(rows: &[DurabilityRow], verdict: &Verdict) -> TextTable {
    let cells = |row: &DurabilityRow| {
        vec![
            name(rows, row),
            row.speed.map_or(MISSING.to_owned(), |speed| {
                figure::value(&row.speed_unit, speed)
            }),
            format!("{} of {}", row.broken, row.cuts),
            match row.broken == row.cuts {
                true => format!(
                    "at least {}",
                    unit::percent_rounded(row.at_least, unit::Rounded::Down)
                ),
                false => format!("{} to {}", percent(row.at_least), percent(row.at_most)),
            },
            work_lost(row),
            row.rto_ns
                .map_or(MISSING.to_owned(), |ns| unit::time_ns(ns as f64)),
        ]
    };
    TextTable {
        title: "What a power cut takes".to_owned(),
        note: format!(
            "Cuts after which an acknowledged promise was broken; in which share of all cuts that happens ({} certainty, all looks together); the most acknowledged work that one cut took (RPO); the longest time to be mounted again (RTO).",
            share(verdict.confidence)
        ),
        head: [
            "configuration",
            "speed",
            "cuts with loss",
            "share",
            "work lost",
            "back after",
        ]
        .map(str::to_owned)
        .to_vec(),
        // Beside six columns a narrow screen has no room for whole figures.
        text: vec![2, 3, 4, 5],
        rows: rows.iter().map(|row| of(row, cells(row))).collect(),
    }
}

/// Count taken of a row.
type Count<'a> = &'a dyn Fn(&DurabilityRow) -> u64;

/// Tables of how promises were broken, and of what it took to come back; empty if none was broken.
pub(super) fn kinds(rows: &[DurabilityRow]) -> Vec<TextTable> {
    let broken = broken(rows).filter(|_| rows.iter().any(|row| row.broken > 0));
    let back = counts(
        rows,
        "What it took to come back",
        "Cuts after which nothing could be mounted, or an operator was needed.",
        &[
            ("unmountable", &|row| row.unmountable.into()),
            ("operator", &|row| row.needed_operator.into()),
        ],
    );
    broken.into_iter().chain(back).collect()
}

/// Number of promises of all cuts that were broken in each way.
fn broken(rows: &[DurabilityRow]) -> Option<TextTable> {
    let of_kind = |kind: Loss| move |row: &DurabilityRow| row.counts.of(kind);
    let kinds = Loss::ALL.map(|kind| (kind.word(), of_kind(kind)));
    let reordered = |row: &DurabilityRow| row.counts.reordered;
    let mut columns: Vec<(&str, Count<'_>)> = vec![("promises", &|row| row.promised)];
    columns.extend(
        kinds
            .iter()
            .map(|(word, count)| (*word, count as Count<'_>)),
    );
    columns.push(("reordered", &reordered));
    counts(
        rows,
        "Promises, and what was broken",
        match rows.iter().any(|row| reordered(row) > 0) {
            true => {
                "Operations over all cuts. Reordered: of the broken ones, a later one survived."
            }
            false => "Operations over all cuts.",
        },
        &columns,
    )
}

/// A table of counts. Those that are 0 everywhere would only make it wider than a screen; `None` if all are.
fn counts(
    rows: &[DurabilityRow],
    title: &str,
    note: &str,
    columns: &[(&str, Count<'_>)],
) -> Option<TextTable> {
    let counted = columns.iter();
    let counted = counted.filter(|(_, count)| rows.iter().any(|row| count(row) > 0));
    let counted: Vec<_> = counted.collect();
    let head = counted.iter().map(|(word, _)| (*word).to_owned());
    let head: Vec<String> = std::iter::once("configuration".to_owned())
        .chain(head)
        .collect();
    let cells = |row: &DurabilityRow| {
        let counts = counted.iter().map(|(_, count)| count(row).to_string());
        std::iter::once(name(rows, row)).chain(counts).collect()
    };
    (!counted.is_empty()).then(|| TextTable {
        title: title.to_owned(),
        note: note.to_owned(),
        text: (1..head.len()).collect(),
        head,
        rows: rows.iter().map(|row| of(row, cells(row))).collect(),
    })
}

/// One sentence for each configuration, with the command that shows its first loss.
pub(super) fn sentences(rows: &[DurabilityRow], record: &Record) -> Vec<(String, Option<String>)> {
    let show = |number| record.loss_command(number);
    let said = |row: &DurabilityRow| (row.sentence.clone(), row.first_loss.map(show));
    rows.iter().map(said).collect()
}

/// The command that lists every loss with its own command; `None` if nothing was lost.
pub(super) fn all_losses(record: &Record) -> Option<String> {
    let count = record.losses().len();
    (count > 0).then(|| {
        let losses = if count == 1 { "loss" } else { "losses" };
        format!(
            "{count} {losses}, each with its command: {}",
            list_command(record)
        )
    })
}

fn list_command(record: &Record) -> String {
    again(&["crash", "show", &record.head.run])
}

/// Losses that a page lists; of more, the command that lists all of them.
const LISTED: usize = 500;

/// Every loss with the command that makes it again; `None` if nothing was lost.
pub(super) fn losses(record: &Record) -> Option<TextTable> {
    let all = record.losses();
    let name = |names: Option<&String>| names.cloned().unwrap_or_else(|| MISSING.to_owned());
    let rows = (1..).zip(all.iter().take(LISTED)).map(|(number, loss)| {
        let cut = loss.cut;
        let configuration = record.head.configurations.get(cut.configuration);
        let workload = record.head.workloads.get(cut.workload);
        TextRow {
            cells: vec![
                record.loss_command(number),
                name(configuration.map(|head| &head.name)),
                name(workload.map(|head| &head.name)),
                format!("{} ({})", cut.number, cut.stratum),
                loss.what(),
            ],
            configuration: Some(cut.configuration),
            ..TextRow::default()
        }
    });
    (!all.is_empty()).then(|| TextTable {
        title: format!("Every loss: {}", all.len()),
        note: match all.len() > LISTED {
            // A page of tens of thousands of lines opens in no browser.
            true => format!("The first {LISTED}; all of them: {}", list_command(record)),
            false => "Each command makes the loss again, and shows the promise, the drives' requests before the cut and what was found.".to_owned(),
        },
        head: ["command", "configuration", "workload", "cut", "what was found"]
            .map(str::to_owned)
            .to_vec(),
        text: vec![1, 2, 3, 4],
        rows: rows.collect(),
    })
}

/// Promises of the stack of each configuration by its settings, one sentence each; stacks of which nothing is known are
/// left out. Alike stacks share a sentence.
pub(super) fn promised(record: &Record) -> Vec<String> {
    let mut said: Vec<(Vec<String>, Vec<&str>)> = Vec::new();
    for (at, head) in record.head.configurations.iter().enumerate() {
        // The last set-up: settings may have been repaired by hand since the first.
        let layers = record.layer_facts(at);
        let clauses = layers
            .last()
            .map_or(Vec::new(), |layers| audit::promised(layers));
        if clauses.is_empty() {
            continue;
        }
        match said.iter_mut().find(|(known, _)| *known == clauses) {
            Some((_, names)) => names.push(&head.name),
            None => said.push((clauses, vec![&head.name])),
        }
    }
    let sentence = |(clauses, names): (Vec<String>, Vec<&str>)| {
        let whom = match names.len() {
            // A sweep of many configurations would fill the page with names.
            all if all == record.head.configurations.len() && all > 1 => "all".to_owned(),
            1..=3 => names.join(", "),
            more => format!("{} and {} more", names[..2].join(", "), more - 2),
        };
        format!("{whom}: {}", clauses.join("; "))
    };
    said.into_iter().map(sentence).collect()
}

/// Results of the cuts of a record.
pub(super) fn rows(record: &Record, verdict: &Verdict) -> Vec<DurabilityRow> {
    durability(record, verdict)
}

/// A share of cuts: `7.7 %`.
pub(super) fn percent(value: f64) -> String {
    match value * 100.0 {
        percent if percent >= 10.0 || percent == 0.0 => format!("{percent:.0} %"),
        percent => format!("{percent:.1} %"),
    }
}

/// Name of a row: with its workload, where several were cut.
pub(super) fn name(rows: &[DurabilityRow], row: &DurabilityRow) -> String {
    match rows.iter().any(|other| other.workload != row.workload) {
        true => format!("{}, {}", row.name, row.workload_name),
        false => row.name.clone(),
    }
}

fn work_lost(row: &DurabilityRow) -> String {
    match (row.unmountable, row.rpo_operations) {
        // What cannot be mounted has lost all there was.
        (1.., 0) => "everything".to_owned(),
        (_, 0) => "none seen".to_owned(),
        // It was acknowledged at the very instant of the cut.
        (_, 1) if row.rpo_ns == 0 => "the last op".to_owned(),
        (_, operations) => format!("{} ({operations} op)", unit::time_ns(row.rpo_ns as f64)),
    }
}

fn of(row: &DurabilityRow, cells: Vec<String>) -> TextRow {
    TextRow {
        cells,
        configuration: Some(row.configuration),
        ..TextRow::default()
    }
}
