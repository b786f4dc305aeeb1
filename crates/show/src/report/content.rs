//! What every report says, before it has a form: tables, notes, the facts of the run.

use super::{figure, told};
use stackrace_base::event::{Ended, Preconditioned, RunStarted, WorkloadHead};
use stackrace_base::unit;
use stackrace_base::video::{self, StreamRates};
use stackrace_judge::published::distinct;
use stackrace_judge::verdict::{
    Beside, BesideRow, Comparison, ConfigurationRow, MetricCell, Verdict,
};
use stackrace_results::record::Record;

/// A table without a form.
#[derive(Debug, Clone, Default)]
pub(super) struct TextTable {
    /// Heading; may be empty.
    pub(super) title: String,
    /// A sentence below the heading; may be empty.
    pub(super) note: String,
    /// Names of the columns; the first names the row.
    pub(super) head: Vec<String>,
    /// Columns that are text, not figures, by position.
    pub(super) text: Vec<usize>,
    /// Rows, as many as there are; each has a cell for every column.
    pub(super) rows: Vec<TextRow>,
}

/// Columns that a table's first one has at least where none of the others gives way.
const NAME_WIDTH: usize = 14;

/// Blanks around the text of a cell.
const PADDING: usize = 2;

impl TextTable {
    /// Returns true if all columns but the first fit into so many of a terminal without giving way.
    pub(super) fn counts_fit(&self, width: usize) -> bool {
        let widest = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| row.cells.get(at));
            let texts = cells.chain(self.head.get(at));
            texts.map(|text| text.chars().count()).max().unwrap_or(0)
        };
        let others = (1..self.head.len()).map(|at| widest(at) + PADDING);
        others.sum::<usize>() + NAME_WIDTH + PADDING < width
    }

    /// Returns true if one word names a column, and nothing below it is longer.
    pub(super) fn head_is_widest(&self, at: usize) -> bool {
        let long = |text: &str| text.chars().count();
        let head = self.head.get(at).filter(|head| !head.contains(' '));
        let cells = || self.rows.iter().filter_map(|row| row.cells.get(at));
        head.is_some_and(|head| cells().all(|cell| long(cell) <= long(head)))
    }
}

/// A row of a table, and what it is about.
#[derive(Debug, Clone, Default)]
pub(super) struct TextRow {
    /// One text per column.
    pub(super) cells: Vec<String>,
    /// The configuration is out of the race.
    pub(super) dropped: bool,
    /// The configuration the row is about, by index: its colour. `None` if no single one.
    pub(super) configuration: Option<usize>,
    /// Address of the row on a page, and of the place its first cell leads to; empty if none.
    pub(super) id: String,
    pub(super) href: String,
}

impl TextRow {
    pub(super) fn of(cells: Vec<String>) -> Self {
        Self {
            cells,
            ..Self::default()
        }
    }

    /// A row about one configuration.
    fn of_configuration(row: &ConfigurationRow, cells: Vec<String>) -> Self {
        Self {
            cells,
            configuration: Some(row.configuration),
            dropped: row.left().is_some_and(|left| !left.answered),
            ..Self::default()
        }
    }
}

/// Heading of a column of intervals, with the confidence: `95 % interval`.
pub(super) fn interval_name(confidence: f64) -> String {
    format!("{} interval", share(confidence))
}

/// A share that is mostly a round number: `95 %`, `99.5 %`.
pub(super) fn share(value: f64) -> String {
    // Rounded first: 0.07 is shown as 7 %, not as 7.000000000000001 %.
    let percent = (value * 1e4).round() / 1e2;
    format!("{percent} %")
}

/// Confidence, margin, rounds, trials, time: one line of facts, separated by dots.
pub(super) fn facts(record: &Record, verdict: &Verdict) -> Vec<String> {
    let trials = record.trials().count();
    // Confidence, margin and time of a run mean nothing for what another tool measured.
    if record.imported() {
        return vec![
            "imported".to_owned(),
            figure::counted(trials, "result"),
            format!(
                "at most {} for each workload and configuration",
                verdict.rounds
            ),
        ];
    }
    let complete = record
        .trials()
        .filter(|trial| trial.ended == Ended::Complete)
        .count();
    let confidence = format!("{} confidence", share(verdict.confidence));
    // The answer says it where it claims something.
    let said = verdict.sentence.contains(&confidence);
    let mut facts: Vec<String> = (!said).then_some(confidence).into_iter().collect();
    facts.extend([
        format!("margin {}", share(verdict.margin)),
        rounds_of(verdict.rounds, record.head.decide.rounds_max),
        if complete == trials {
            figure::counted(trials, "trial")
        } else {
            format!(
                "{}, {complete} of them complete",
                figure::counted(trials, "trial")
            )
        },
        unit::long_time(record.elapsed_seconds()),
    ]);
    if let Some(ended) = record.ended() {
        facts.push(format!("ended: {}", ended.reason));
    }
    facts
}

/// Title of [`order_effects`].
pub(super) const ORDER_EFFECTS: &str = "Order of turns";

/// Effects of the order of turns on each workload that was measured in slices, a sentence each.
pub(super) fn order_effects(record: &Record, verdict: &Verdict) -> Vec<String> {
    let effects = verdict.order_effects.iter();
    effects
        .filter_map(|effect| {
            let workload = record.head.workloads.get(effect.workload)?;
            Some(format!("{}: {}.", workload.name, effect.sentence))
        })
        .collect()
}

/// Everything the reader must know before believing the figures, each once.
pub(super) fn notes(record: &Record, verdict: &Verdict) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    let mut add = |note: String| {
        if !note.is_empty() && !notes.contains(&note) {
            notes.push(note);
        }
    };
    // Where room is short, the first note alone is shown: an error of what was measured is worth more than any other.
    told::of(record).into_iter().for_each(&mut add);
    // What the question lacks comes before what disturbed its answer.
    let before = record.warnings_before().into_iter();
    before.map(str::to_owned).for_each(&mut add);
    verdict.notes.iter().cloned().for_each(&mut add);
    record
        .warnings()
        .into_iter()
        .map(str::to_owned)
        .for_each(&mut add);
    record.notes.iter().cloned().for_each(&mut add);
    notes
}

/// Ways that stacks were brought to rest, over all trials; `None` if the study did not ask for it.
pub(super) fn preconditioning(record: &Record) -> Option<String> {
    let done: Vec<&Preconditioned> = record
        .trials()
        .filter_map(|trial| trial.preconditioned.as_ref())
        .collect();
    let written = done.iter().map(|before| before.written_bytes).max()?;
    let passes = || done.iter().map(|before| before.passes.len());
    let (fewest, most) = (passes().min()?, passes().max()?);
    let passes = match fewest == most {
        true => format!("{most} passes"),
        false => format!("{fewest} to {most} passes"),
    };
    let rested = done.iter().filter(|before| before.steady).count();
    let state = match done.len() - rested {
        0 => "This was always reached".to_owned(),
        restless => format!(
            "In {restless} of {} cases this was never reached",
            done.len()
        ),
    };
    Some(format!(
        "New stacks were preconditioned as the SNIA performance test specification says: {} were written \
         from beginning to end, in two passes. Then the workload was repeated ({passes}, {} in all) \
         until the last five values of its primary metric were steady (within 20 % of their mean, rising or \
         falling by at most 10 %). {state}. None of this is in the figures.",
        unit::bytes(written),
        unit::time_ns(done.iter().map(|before| before.elapsed_ns as f64).sum())
    ))
}

/// Name of a configuration with what must be said beside it.
pub(super) fn configuration_name(row: &ConfigurationRow) -> String {
    match row.left() {
        Some(left) => format!("{} ({left})", row.name),
        None => row.name.clone(),
    }
}

/// The index of the configuration of that name; `None` if there is none (a level of a factor).
pub(super) fn configuration_of(verdict: &Verdict, name: &str) -> Option<usize> {
    let mut rows = verdict.configurations.iter();
    rows.find(|row| row.name == name)
        .map(|row| row.configuration)
}

/// A configuration's figure on the primary metric of a workload.
pub(super) fn primary(row: &ConfigurationRow, workload: usize) -> Option<&MetricCell> {
    row.cells
        .iter()
        .find(|cell| cell.workload == workload && cell.primary)
}

/// All configurations over all workloads; `None` if there is no overall figure.
pub(super) fn overall(head: &RunStarted, verdict: &Verdict) -> Option<TextTable> {
    // One configuration, or imported ones without a common metric: a table of nothing but dashes.
    if verdict
        .configurations
        .iter()
        .all(|row| row.overall.is_none())
    {
        return None;
    }
    Some(TextTable {
        title: over_all(head),
        note: "Relative to the baseline; above 1 is better.".to_owned(),
        head: vec![
            "configuration".to_owned(),
            "ratio".to_owned(),
            interval_name(verdict.confidence),
        ],
        text: Vec::new(),
        rows: verdict
            .configurations
            .iter()
            .map(|row| {
                let [ratio, interval] = overall_texts(row);
                TextRow::of_configuration(row, vec![configuration_name(row), ratio, interval])
            })
            .collect(),
    })
}

/// The heading of figures over all workloads: the name of the workload where there is one.
pub(super) fn over_all(head: &RunStarted) -> String {
    match &head.workloads[..] {
        [one] => format!("Compared: {}", one.name),
        _ => "Over all workloads".to_owned(),
    }
}

/// The ratio of a configuration over all workloads, and its interval. The baseline has none, and of one that
/// cannot be compared yet it is said why.
pub(super) fn overall_texts(row: &ConfigurationRow) -> [String; 2] {
    match row.overall {
        Some(_) if row.baseline => ["1", "baseline"].map(str::to_owned),
        // After one or two rounds there is an estimate, and no interval.
        overall => match row.lacking {
            Some(lacking) => {
                let so_far = overall.map(|so_far| figure::ratio(so_far.estimate));
                let so_far = so_far.unwrap_or_else(|| figure::MISSING.to_owned());
                [so_far, lacking.brief().to_owned()]
            }
            None => figure::ratio_texts(overall),
        },
    }
}

/// All configurations on the primary metric of one workload.
pub(super) fn workload(verdict: &Verdict, at: usize, head: &WorkloadHead) -> TextTable {
    let metric = head.metrics.first();
    let rows = verdict
        .configurations
        .iter()
        .map(|row| {
            let cell = primary(row, at);
            let interval = cell.and_then(|cell| cell.value);
            let unit = metric.map_or("", |metric| metric.unit.as_str());
            let cells = vec![
                configuration_name(row),
                interval.map_or(figure::MISSING.to_owned(), |i| {
                    figure::value(unit, i.estimate)
                }),
                interval.map_or(figure::MISSING.to_owned(), |i| figure::range(unit, i)),
                cell.map_or(0, |cell| cell.rounds.len()).to_string(),
            ];
            TextRow::of_configuration(row, cells)
        })
        .collect();
    TextTable {
        title: head.name.clone(),
        note: format!(
            "{} ({}).",
            described(&head.summary),
            metric.map_or(String::new(), figure::metric)
        ),
        head: vec![
            "configuration".to_owned(),
            "value".to_owned(),
            interval_name(verdict.confidence),
            "rounds".to_owned(),
        ],
        text: Vec::new(),
        rows,
    }
}

/// Every metric of one workload, all configurations.
pub(super) fn metrics(verdict: &Verdict, at: usize, head: &WorkloadHead) -> TextTable {
    let rows = verdict
        .configurations
        .iter()
        .map(|row| {
            let mut cells = vec![configuration_name(row)];
            for metric in &head.metrics {
                let value = row
                    .cells
                    .iter()
                    .find(|cell| cell.workload == at && cell.metric.name == metric.name)
                    .and_then(|cell| cell.value);
                cells.push(value.map_or(figure::MISSING.to_owned(), |interval| {
                    format!(
                        "{} {}",
                        figure::value(&metric.unit, interval.estimate),
                        figure::range(&metric.unit, interval)
                    )
                }));
            }
            TextRow::of_configuration(row, cells)
        })
        .collect();
    TextTable {
        title: head.name.clone(),
        note: String::new(),
        head: std::iter::once("configuration".to_owned())
            .chain(head.metrics.iter().map(figure::metric))
            .collect(),
        text: Vec::new(),
        rows,
    }
}

/// Per configuration and workload that streamed video, which formats it can hold: judged by the slowest
/// second of all rounds and the mean of their means.
pub(super) fn video_tables(verdict: &Verdict) -> Vec<TextTable> {
    let mut tables = Vec::new();
    for row in &verdict.configurations {
        let mut workloads: Vec<(usize, &str)> = Vec::new();
        for cell in &row.cells {
            if !workloads.iter().any(|(at, _)| *at == cell.workload) {
                workloads.push((cell.workload, &cell.workload_name));
            }
        }
        for (at, name) in workloads {
            let rounds = |name: &str| {
                let here = |cell: &&MetricCell| cell.workload == at && cell.metric.name == name;
                let cell = row.cells.iter().find(here)?;
                let values = cell.rounds.iter().map(|(_, value)| *value);
                // The slowest second is that of all rounds; of rates the mean counts.
                match values.len() {
                    0 => None,
                    _ if name.ends_with("slowest second") => values.reduce(f64::min),
                    rounds => Some(values.sum::<f64>() / rounds as f64),
                }
            };
            // Only workloads that play or record streams have these metrics.
            if let Some(rates) = StreamRates::of(rounds) {
                tables.push(TextTable {
                    title: format!("Video formats on {}: {name}", configuration_name(row)),
                    note: rates.words(),
                    head: video::columns(),
                    text: Vec::new(),
                    rows: video::rows(Some(&rates))
                        .into_iter()
                        .map(TextRow::of)
                        .collect(),
                });
            }
        }
    }
    tables
}

/// Name of a comparison: `xfs against ext4, 4 KiB`.
pub(super) fn comparison_name(comparison: &Comparison) -> String {
    let mut name = format!("{} against {}", comparison.b, comparison.a);
    if !comparison.within.is_empty() {
        name.push_str(", ");
        name.push_str(&comparison.within);
    }
    name
}

/// Place where a comparison was measured.
pub(super) fn comparison_place(comparison: &Comparison) -> String {
    match (&comparison.metric, comparison.workload.as_str()) {
        (_, "") => "all workloads".to_owned(),
        (Some(metric), workload) => metric.on(workload),
        (None, workload) => workload.to_owned(),
    }
}

/// Every comparison, the overall ones first; `None` if there is none.
pub(super) fn comparisons(verdict: &Verdict) -> Option<TextTable> {
    let rows: Vec<TextRow> = verdict
        .overall
        .iter()
        .chain(&verdict.workloads)
        .map(|comparison| {
            let mut cells = vec![comparison_name(comparison), comparison_place(comparison)];
            cells.extend(ratio_cells(comparison));
            TextRow::of(cells)
        })
        .collect();
    (!rows.is_empty()).then(|| TextTable {
        title: "Comparisons".to_owned(),
        note: "A ratio above 1: the first named is better.".to_owned(),
        head: vec![
            "comparison".to_owned(),
            "on".to_owned(),
            "ratio".to_owned(),
            interval_name(verdict.confidence),
            "verdict".to_owned(),
        ],
        text: vec![1, 4],
        rows,
    })
}

/// Names a comparison by one of its sides.
type Naming = fn(&Comparison) -> String;

/// The comparisons for narrow pages: a table per comparison where there are few, else per place, so
/// that no column repeats what a heading can say.
pub(super) fn comparison_tables(verdict: &Verdict) -> Vec<TextTable> {
    let all: Vec<&Comparison> = verdict.overall.iter().chain(&verdict.workloads).collect();
    let names = |name: Naming| distinct(all.iter().map(|comparison| name(comparison)));
    let (comparisons, places) = (names(comparison_name), names(comparison_place));
    // The shorter list gives the headings: fewer tables, each with more rows.
    let by_comparison = comparisons.len() < places.len();
    let (headings, heading, row): (Vec<String>, Naming, Naming) = if by_comparison {
        (comparisons, comparison_name, comparison_place)
    } else {
        (places, comparison_place, comparison_name)
    };
    headings
        .into_iter()
        .map(|title| TextTable {
            head: vec![
                if by_comparison { "on" } else { "comparison" }.to_owned(),
                "ratio".to_owned(),
                interval_name(verdict.confidence),
                "verdict".to_owned(),
            ],
            text: vec![3],
            rows: all
                .iter()
                .filter(|comparison| heading(comparison) == title)
                .map(|comparison| {
                    let mut cells = vec![row(comparison)];
                    cells.extend(ratio_cells(comparison));
                    TextRow::of(cells)
                })
                .collect(),
            title: if by_comparison {
                format!("Comparison: {title}")
            } else {
                format!("Comparisons on {title}")
            },
            note: "A ratio above 1: the first named is better.".to_owned(),
        })
        .collect()
}

/// The cells of a comparison: ratio, interval, verdict.
pub(super) fn ratio_cells(comparison: &Comparison) -> [String; 3] {
    let [ratio, interval] = figure::ratio_texts(comparison.ratio);
    [ratio, interval, comparison.text.clone()]
}

/// Own ratios beside published ones, a table per comparison.
pub(super) fn beside(beside: &Beside, verdict: &Verdict) -> Vec<TextTable> {
    let key = |row: &BesideRow| (row.own.clone(), row.published.clone(), row.within.clone());
    distinct(beside.rows.iter().map(key))
        .into_iter()
        .map(|named| {
            let rows: Vec<&BesideRow> =
                beside.rows.iter().filter(|row| key(row) == named).collect();
            let (own, published, within) = named;
            let place = if within.is_empty() {
                String::new()
            } else {
                format!(", {within}")
            };
            let mark = match rows.iter().any(|row| row.remarked) {
                true => format!(
                    " *: not a storage figure, see `stackrace published {}`.",
                    beside.study
                ),
                false => String::new(),
            };
            TextTable {
                title: format!("Beside {}: {own}{place}", beside.study),
                note: format!(
                    "Published: {published}, without interval; above 1 is better. Each interval \
                     holds on its own.{mark}"
                ),
                head: [
                    "on",
                    "ratio",
                    &interval_name(verdict.confidence),
                    "published",
                    "inside",
                ]
                .map(str::to_owned)
                .to_vec(),
                text: vec![4],
                rows: rows.into_iter().map(beside_row).collect(),
            }
        })
        .collect()
}

fn beside_row(row: &BesideRow) -> TextRow {
    let mark = if row.remarked { "*" } else { "" };
    let inside = match row.inside {
        Some(true) => "yes",
        Some(false) => "no",
        None => "no interval",
    };
    let [ratio, interval] = figure::ratio_texts(row.ratio);
    TextRow::of(vec![
        row.own_on.clone(),
        ratio,
        interval,
        format!("{}{mark}", figure::ratio(row.published_ratio)),
        inside.to_owned(),
    ])
}

/// Notes on parts without a published partner, and what stands in for what.
pub(super) fn beside_notes(beside: &Beside) -> Vec<String> {
    let mut notes = vec![beside.stands_in.clone()];
    notes.extend(beside.unmatched.iter().cloned());
    notes
}

/// `5 of at most 12 rounds`; of a run that was continued beyond the limit it began with, `14 rounds`.
fn rounds_of(done: u32, most: u32) -> String {
    match done <= most {
        true => format!(
            "{done} of at most {}",
            figure::counted(most as usize, "round")
        ),
        false => figure::counted(done as usize, "round"),
    }
}

/// What a workload does, as a sentence begins. The name of a program keeps its case: `git: clone`, `bonnie++ 2.00: …`.
fn described(summary: &str) -> String {
    let first = summary.split(' ').next().unwrap_or_default();
    match first.ends_with(':') || first.contains('+') {
        true => summary.to_owned(),
        false => capital(summary),
    }
}

/// With a capital letter at the beginning.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(letters).collect()
    })
}
