//! The tables of the page.

use maud::{Markup, html};

use crate::report::ReportOptions;
use crate::report::asked;
use crate::report::chart::swatch;
use crate::report::clients;
use crate::report::content::{self, TextRow, TextTable};
use crate::report::cost;
use crate::report::figure;
use stackrace_base::event::{Ended, Observation, WorkloadHead};
use stackrace_base::unit;
use stackrace_judge::verdict::Verdict;
use stackrace_results::record::Record;

/// A table with more columns than this, and with no more rows, is turned: a page grows downwards.
const COLUMNS_MAX: usize = 5;

/// A cell of a table of the page.
pub(super) struct GridCell<'a> {
    /// Words (`text`) or a number (`figure`), with what else the cell is.
    pub(super) class: &'static str,
    /// The row is about a configuration that is out of the race.
    pub(super) dropped: bool,
    /// Address of the row, at its name; `None` if it has none.
    pub(super) id: Option<&'a str>,
    /// Explanation that a pointer brings up; `None` if there is none.
    pub(super) title: Option<String>,
    /// Content of the cell.
    pub(super) content: Markup,
}

impl GridCell<'_> {
    pub(super) fn of(class: &'static str, content: Markup) -> Self {
        Self {
            class,
            dropped: false,
            id: None,
            title: None,
            content,
        }
    }
}

/// A table that scrolls in its own frame where the page is narrower. The first line names the columns, and the
/// first cell of each line names that line.
pub(super) fn grid(title: &str, class: &str, mut lines: Vec<Vec<GridCell<'_>>>) -> Markup {
    let columns = lines.first().map_or(0, Vec::len);
    // The first line is none of its rows.
    let turned = columns > COLUMNS_MAX && lines.len() <= COLUMNS_MAX + 1;
    if turned {
        let mut cells: Vec<_> = lines.into_iter().map(Vec::into_iter).collect();
        lines = (0..columns)
            .map(|_| cells.iter_mut().filter_map(Iterator::next).collect())
            .collect();
    }
    let class = match (turned, class) {
        (false, class) => class.to_owned(),
        (true, class) => format!("{class} turned").trim_start().to_owned(),
    };
    let mut lines = lines.iter();
    html! {
        div class="scroll" tabindex="0" role="region" aria-label=(title) {
            table class=[some(&class)] {
                thead {
                    tr { @for cell in lines.next().into_iter().flatten() { (named("col", cell)) } }
                }
                tbody {
                    @for line in lines {
                        tr {
                            @for (at, cell) in line.iter().enumerate() {
                                @if at == 0 { (named("row", cell)) } @else {
                                    td class={ (cell.class) @if cell.dropped { " dropped" } } title=[&cell.title] {
                                        (cell.content)
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A cell that names its row or column.
fn named(scope: &str, cell: &GridCell<'_>) -> Markup {
    html! {
        th scope=(scope) id=[cell.id] class={ (cell.class) @if cell.dropped { " dropped" } } title=[&cell.title] {
            (cell.content)
        }
    }
}

/// A table of any report on the page.
pub(super) fn table(table: &TextTable) -> Markup {
    let class = |at: usize| match at == 0 || table.text.contains(&at) {
        true => "text",
        false => "figure",
    };
    let head = table.head.iter().enumerate().map(|(at, name)| {
        let content = html! {
            // Screen readers need a heading for every column.
            @if name.is_empty() { span class="unseen" { "remark" } }
            (name)
        };
        GridCell::of(class(at), content)
    });
    let rows = table.rows.iter().map(|row| {
        let cells = row.cells.iter().enumerate();
        let cells = cells.map(|(at, cell)| GridCell {
            dropped: row.dropped,
            id: some(&row.id).filter(|_| at == 0),
            ..GridCell::of(
                class(at),
                html! {
                    @if let Some(at) = row.configuration.filter(|_| at == 0) { (swatch(at)) }
                    @if at > 0 || row.href.is_empty() { (cell) } @else { a href=(row.href) { (cell) } }
                },
            )
        });
        cells.collect()
    });
    grid(
        &table.title,
        "",
        std::iter::once(head.collect()).chain(rows).collect(),
    )
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// Work of each of several clients, folded: there may be thousands.
pub(super) fn clients(record: &Record) -> Markup {
    let Some(clients) = clients::table(record, usize::MAX) else {
        return html! {};
    };
    html! {
        p { (clients.note) }
        details {
            summary { (figure::counted(clients.rows.len(), "client")) ", the smallest share first" }
            (table(&clients))
        }
    }
}

/// Own ratios beside published ones, where asked for.
pub(super) fn beside(verdict: &Verdict, options: &ReportOptions) -> Markup {
    let Some(beside) = &options.beside else {
        return html! {};
    };
    html! {
        @for comparison in content::beside(beside, verdict) {
            h3 { (comparison.title) }
            p { (comparison.note) }
            (table(&comparison))
        }
        ul {
            @for note in content::beside_notes(beside) {
                li { (note) }
            }
        }
    }
}

/// Configurations, workloads, comparisons: what the charts show, as tables that can be opened.
pub(super) fn figures(record: &Record, verdict: &Verdict) -> Markup {
    html! {
        @if let Some(required) = asked::required(verdict) {
            h3 { (required.title) }
            (table(&required))
        }
        @if let Some(overall) = content::overall(&record.head, verdict) { (folded(&overall, &html! {})) }
        @for (at, head) in record.head.workloads.iter().enumerate() {
            @let more = html! {
                @if head.metrics.len() > 1 {
                    h3 { "All " (head.metrics.len()) " metrics" }
                    (all_metrics(verdict, at, head))
                }
            };
            (folded(&content::workload(verdict, at, head), &more))
        }
        @if let Some(costs) = cost::table(&record.head, verdict) {
            h3 { (costs.title) }
            p { (costs.note) }
            (table(&costs))
        }
        @for formats in content::video_tables(verdict) {
            h3 { (formats.title) }
            p { (formats.note) }
            (table(&formats))
        }
        @if let Some(comparisons) = content::comparisons(verdict) {
            (folded(&comparisons, &html! {}))
        }
    }
}

/// A table below its name, to be opened, with what belongs to it.
fn folded(content: &TextTable, more: &Markup) -> Markup {
    html! {
        details {
            summary { (content.title) }
            p { (content.note) }
            (table(content))
            (more)
        }
    }
}

/// Every metric of one workload, under a name that its primary metric does not have already.
fn all_metrics(verdict: &Verdict, at: usize, head: &WorkloadHead) -> Markup {
    table(&TextTable {
        title: format!("{}: all metrics", head.name),
        ..content::metrics(verdict, at, head)
    })
}

/// A larger share of a trial was counted over more than the trial: the kernel counts in steps, and begins and ends
/// with the work around what is timed.
const SHARE_MAX: f64 = 1.1;

/// Means over complete trials of one configuration on one workload.
struct Means<'a>(Vec<&'a Observation>);

impl Means<'_> {
    /// Mean of what can be had; `None` if not one trial has it.
    fn of(&self, value: impl Fn(&Observation) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.0.iter().filter_map(|trial| value(trial)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    fn seconds(&self, ns: impl Fn(&Observation) -> Option<u64>) -> String {
        text(
            self.of(|trial| ns(trial).map(|ns| ns as f64)),
            unit::time_ns,
        )
    }

    /// A time as a share of the measured part, of `cpus` processors.
    fn share(&self, ns: impl Fn(&Observation) -> Option<u64>, machine: Machine) -> String {
        text(
            self.of(|trial| {
                // Times of the whole machine add up over its processors.
                let cpus = match machine {
                    Machine::Whole => f64::from(trial.counted.cpus.max(1)),
                    Machine::One => 1.0,
                };
                let whole = trial.elapsed_ns as f64 * cpus;
                ns(trial)
                    .filter(|_| whole > 0.0)
                    .map(|ns| ns as f64 / whole)
            })
            .filter(|share| *share < SHARE_MAX)
            .map(|share| share.min(1.0)),
            unit::percent,
        )
    }

    fn bytes(&self, bytes: impl Fn(&Observation) -> Option<u64>) -> String {
        text(
            self.of(|trial| bytes(trial).map(|b| b as f64)),
            unit::si_bytes,
        )
    }
}

/// Whole that a time is a share of.
#[derive(Clone, Copy)]
enum Machine {
    /// All processors.
    Whole,
    /// The clock on the wall.
    One,
}

fn text(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or(figure::MISSING.to_owned(), show)
}

/// Bytes the operations moved.
fn moved(trial: &Observation) -> u64 {
    trial
        .phases
        .iter()
        .flat_map(|phase| &phase.operations)
        .map(|op| op.bytes)
        .sum()
}

/// Resources that each configuration used on each workload.
pub(super) fn resources(record: &Record) -> Markup {
    let mut rows = Vec::new();
    for (w, workload) in record.head.workloads.iter().enumerate() {
        for (t, configuration) in record.head.configurations.iter().enumerate() {
            let trials: Vec<&Observation> = record
                .trials()
                .filter(|trial| (trial.configuration, trial.workload) == (t, w))
                .filter(|trial| trial.ended == Ended::Complete)
                .collect();
            if !trials.is_empty() {
                rows.push(resource_row(
                    &configuration.name,
                    &workload.name,
                    &Means(trials),
                ));
            }
        }
    }
    if rows.is_empty() {
        return html! {};
    }
    let head = [
        "configuration",
        "workload",
        "CPU user",
        "CPU system",
        "machine busy",
        "stolen",
        "device",
        "device read",
        "device written",
        "amplification",
        "device busy",
        "from cache",
        "waiting for I/O",
        "waiting for CPU",
        "trials",
    ];
    html! {
        p {
            "Means over complete trials, measured part only. Amplification: bytes the device moved over bytes "
            "the workload moved. From cache: share of the bytes read that no device had to deliver. Waiting: "
            "share of the time in which some task was stalled (PSI). A share is missing where the trials were too "
            "short for it."
        }
        (table(&TextTable {
            title: "What each configuration used on each workload".to_owned(),
            head: head.map(str::to_owned).to_vec(),
            text: vec![1, 6],
            rows,
            ..TextTable::default()
        }))
    }
}

fn resource_row(configuration: &str, workload: &str, means: &Means<'_>) -> TextRow {
    // The first device is the one the file system lies on; those below it see the same bytes.
    let mut names: Vec<&str> = means
        .0
        .iter()
        .filter_map(|trial| trial.counted.devices.first())
        .map(|device| device.device.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    let amplification = means.of(|trial| {
        let device = trial.counted.devices.first()?;
        // Creating and removing files moves no bytes: no ratio then.
        let asked = moved(trial);
        (asked > 0).then(|| (device.read_bytes + device.written_bytes) as f64 / asked as f64)
    });
    let cached = means.of(|trial| {
        let asked = trial.counted.asked_read_bytes;
        let hits = trial.counted.cache_hit_bytes?;
        (asked > 0).then(|| hits as f64 / asked as f64)
    });
    TextRow::of(vec![
        configuration.to_owned(),
        workload.to_owned(),
        means.seconds(|trial| Some(trial.counted.cpu_user_ns)),
        means.seconds(|trial| Some(trial.counted.cpu_system_ns)),
        means.share(
            |trial| Some(trial.counted.cpu_machine_busy_ns),
            Machine::Whole,
        ),
        means.share(|trial| Some(trial.counted.cpu_steal_ns), Machine::Whole),
        if names.is_empty() {
            figure::MISSING.to_owned()
        } else {
            names.join(", ")
        },
        means.bytes(|trial| trial.counted.devices.first().map(|d| d.read_bytes)),
        means.bytes(|trial| trial.counted.devices.first().map(|d| d.written_bytes)),
        text(amplification, |ratio| format!("{} ×", figure::ratio(ratio))),
        means.share(
            |trial| trial.counted.devices.first().map(|d| d.busy_ns),
            Machine::One,
        ),
        text(cached, unit::percent),
        means.share(|trial| trial.counted.pressure_io_ns, Machine::One),
        means.share(|trial| trial.counted.pressure_cpu_ns, Machine::One),
        means.0.len().to_string(),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(columns: usize, rows: usize) -> String {
        let line = |start: usize| {
            (0..columns)
                .map(|at| format!("{}", start * 10 + at))
                .collect()
        };
        table(&TextTable {
            head: line(0),
            rows: (1..=rows).map(|row| TextRow::of(line(row))).collect(),
            ..TextTable::default()
        })
        .into_string()
    }

    #[test]
    fn a_share_of_a_trial_is_never_more_than_all_of_it() {
        let trial = Observation {
            elapsed_ns: 1_000_000,
            ..Observation::unmeasured(Ended::Complete)
        };
        let shown = |ns| Means(vec![&trial]).share(|_| Some(ns), Machine::One);
        assert_eq!(shown(500_000), "50 %");
        // Ticks of the kernel, and work around what is timed.
        assert_eq!(shown(1_050_000), "100 %");
        assert_eq!(
            shown(32_000_000),
            figure::MISSING,
            "counted over more than the trial"
        );
    }

    #[test]
    fn a_table_grows_downwards_where_it_would_be_wider_than_long() {
        // Six columns and one row: six rows and one column of figures.
        let turned = of(6, 1);
        assert!(turned.contains(r#"<table class="turned">"#), "{turned}");
        assert_eq!(turned.matches("<tr>").count(), 6, "{turned}");
        assert!(
            turned.contains(r#"<th scope="row" class="figure">5</th><td class="figure">15</td>"#),
            "{turned}"
        );
        // Few columns, or as many rows, stay as they are.
        for straight in [of(5, 1), of(6, 6)] {
            assert!(!straight.contains("turned"), "{straight}");
        }
    }
}
