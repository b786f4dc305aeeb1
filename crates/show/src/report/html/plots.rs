//! Ratios, rounds and time: what is drawn of them, chosen so that it stays readable.

use maud::{Markup, html};

use super::trial::Addresses;
use super::view::{self, Chart};
use crate::report::chart::{
    self, Axis, BarGroup, BarRow, ChartLine, ForestGroup, ForestRow, Gallery, LegendEntry,
    LineChart, RoundsRow, SERIES_MAX, Scale, bars, forest, line, rounds as rounds_chart,
};
use crate::report::{audited, content, cost, figure};
use stackrace_base::event::{Ended, MetricHead, Observation, PhaseObservation};
use stackrace_base::unit;
use stackrace_judge::verdict::{Comparison, ConfigurationRow, Interval, RateChange, Verdict};
use stackrace_results::record::Record;

/// Rows of the first chart; further comparisons are in one that can be opened.
const HERO_ROWS: usize = 12;
/// Meanings of the verdicts' shapes, by the name of the verdict.
const SHAPES: [(&str, &str); 5] = [
    ("better", "better"),
    ("worse", "worse"),
    ("probably", "probably, not certain"),
    ("no-difference", "no difference that matters"),
    ("undecided", "undecided"),
];
/// Points of a line over time; more are averaged.
const TIME_POINTS: usize = 150;

/// The values of all configurations and their ratios: the overall ones, and those of the workloads
/// where there is room.
pub(super) fn hero(record: &Record, verdict: &Verdict, gallery: &Gallery) -> Markup {
    let groups = groups(record, verdict);
    let all: usize = groups.iter().map(|group| group.rows.len()).sum();
    let title = "Ratios with their intervals";
    // What does not fit beside the verdict is folded, the overall comparisons last.
    let (first, rest) = if all <= HERO_ROWS {
        (groups, Vec::new())
    } else if verdict.overall.is_empty() {
        (Vec::new(), groups)
    } else {
        let mut groups = groups.into_iter();
        (groups.by_ref().take(1).collect(), groups.collect())
    };
    let (values, more_values) = values(record, verdict);
    html! {
        @if !first.is_empty() || !values.is_empty() {
            div class="hero" {
                @if !first.is_empty() {
                    figure {
                        figcaption {
                            (title) ". Above 1 the one named first is better. The band marks "
                            "differences too small to matter (the margin)."
                        }
                        (gallery.hang(forest("forest", title, verdict.margin, &first).with(shapes(&first))))
                    }
                }
                @if !values.is_empty() {
                    figure {
                        figcaption { "Mean of each configuration with its own interval." }
                        (gallery.hang(bars("values", "Means with their intervals", &values)))
                    }
                }
            }
        }
        @for (at, group) in rest.into_iter().enumerate() {
            details {
                summary { (group.heading) ": " (figure::counted(group.rows.len(), "comparison")) }
                @let title = format!("{title}: {}", group.heading);
                (gallery.hang(forest(&format!("forest-{at}"), &title, verdict.margin, &[group])))
            }
        }
        @for (at, group) in more_values.into_iter().enumerate() {
            details {
                summary { (group.heading) ": " (figure::counted(group.rows.len(), "value")) }
                @let title = format!("Means with their intervals: {}", group.heading);
                (gallery.hang(bars(&format!("values-{at}"), &title, &[group])))
            }
        }
    }
}

/// Rows of a small picture.
const SMALL_ROWS: usize = 4;

/// A small picture of the answer: the first ratios, or the first values where nothing is compared; `id` is unique in the
/// page. `None` if there is nothing to draw.
pub fn small(record: &Record, verdict: &Verdict, id: &str) -> Option<Markup> {
    let few = |all: usize| match all > SMALL_ROWS {
        true => format!(" The first {SMALL_ROWS} of {all}."),
        false => String::new(),
    };
    let mut ratios = groups(record, verdict);
    let (words, all, plot) = if ratios.is_empty() {
        let mut group = values(record, verdict).0.into_iter().next()?;
        let all = group.rows.len();
        group.rows.truncate(SMALL_ROWS);
        let title = "Means with their intervals";
        (title, all, bars(id, title, &[group]))
    } else {
        let mut group = ratios.swap_remove(0);
        let all = group.rows.len();
        group.rows.truncate(SMALL_ROWS);
        let title = "Ratios with their intervals";
        (title, all, forest(id, title, verdict.margin, &[group]))
    };
    Some(html! {
        figure {
            figcaption { (words) "." (few(all)) }
            (plot)
        }
    })
}

/// Meanings of the shapes in a chart of ratios, as far as they are in it.
fn shapes(groups: &[ForestGroup]) -> Vec<LegendEntry> {
    let drawn = |word: &str| {
        groups
            .iter()
            .flat_map(|group| &group.rows)
            .any(|row| row.word == word)
    };
    let known = SHAPES.into_iter().filter(|(word, _)| drawn(word));
    known
        .map(|(word, text)| chart::verdict_entry(word, text))
        .collect()
}

/// Costs beside the figures, and what there is for the money; empty if the study has no costs.
fn money<'a>(record: &'a Record, verdict: &'a Verdict) -> impl Iterator<Item = BarGroup> + 'a {
    let head = &record.head;
    let group =
        |heading: String, unit: String, value: &dyn Fn(&ConfigurationRow) -> Option<Interval>| {
            let rows = verdict.configurations.iter().map(|row| BarRow {
                label: row.name.clone(),
                configuration: row.configuration,
                value: value(row),
            });
            BarGroup {
                heading,
                unit,
                rows: rows.collect(),
            }
        };
    let exact = |row: &ConfigurationRow| {
        let amount = cost::of(head, row)?.amount;
        Some(Interval {
            estimate: amount,
            // A price has no interval.
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
        })
    };
    let first = verdict.configurations.first();
    let unit = first.and_then(|row| Some(cost::of(head, row)?.unit()));
    unit.into_iter().flat_map(move |unit| {
        let money = |row: &ConfigurationRow| cost::for_money(head, verdict, row);
        [
            group(format!("Cost, {unit}"), unit, &exact),
            group(
                "Performance for the money, 1 is the baseline".to_owned(),
                String::new(),
                &money,
            ),
        ]
    })
}

/// What is required, a group for each figure.
fn required(verdict: &Verdict) -> Vec<BarGroup> {
    let mut groups: Vec<BarGroup> = Vec::new();
    for one in &verdict.required {
        let heading = figure::metric_on(&one.workload, &one.metric);
        let row = BarRow {
            label: one.name.clone(),
            configuration: one.configuration,
            value: one.value,
        };
        match groups.iter_mut().find(|group| group.heading == heading) {
            Some(group) => group.rows.push(row),
            None => groups.push(BarGroup {
                heading,
                unit: one.metric.unit.clone(),
                rows: vec![row],
            }),
        }
    }
    groups
}

/// What is required, then the first metric of each workload, a group each: those there is room for, and the others.
fn values(record: &Record, verdict: &Verdict) -> (Vec<BarGroup>, Vec<BarGroup>) {
    let workloads = record.head.workloads.iter().enumerate();
    let asked = required(verdict);
    let headings: Vec<String> = asked.iter().map(|group| group.heading.clone()).collect();
    let firsts = workloads
        .filter_map(|(at, workload)| {
            let metric = workload.metrics.first()?;
            // In the verdict's order: best first where a ranking is asked.
            let rows = verdict.configurations.iter().map(|row| BarRow {
                label: row.name.clone(),
                configuration: row.configuration,
                value: content::primary(row, at).and_then(|cell| cell.value),
            });
            Some(BarGroup {
                heading: figure::metric_on(&workload.name, metric),
                unit: metric.unit.clone(),
                rows: rows.collect(),
            })
        })
        // One that is required is there already.
        .filter(|group| !headings.contains(&group.heading));
    let mut groups: Vec<BarGroup> = asked
        .into_iter()
        .chain(firsts)
        .chain(money(record, verdict))
        .filter(|group| group.rows.iter().any(|row| row.value.is_some()))
        .collect();
    let mut rows = 0;
    // From the front, and no further than the first one that has no room.
    let fits = groups.iter().take_while(|group| {
        rows += group.rows.len();
        rows <= HERO_ROWS
    });
    let more = groups.split_off(fits.count());
    (groups, more)
}

/// Overall first, then one group per workload, in the record's order.
fn groups(record: &Record, verdict: &Verdict) -> Vec<ForestGroup> {
    let mut groups = Vec::new();
    if !verdict.overall.is_empty() {
        groups.push(ForestGroup {
            heading: content::over_all(&record.head),
            rows: verdict
                .overall
                .iter()
                .map(|one| row(verdict, one))
                .collect(),
        });
    }
    for comparison in &verdict.workloads {
        let heading = match comparison.workload.as_str() {
            "" => "Over all workloads, within levels of other factors",
            workload => workload,
        };
        match groups.iter_mut().find(|g| g.heading == heading) {
            Some(group) => group.rows.push(row(verdict, comparison)),
            None => groups.push(ForestGroup {
                heading: heading.to_owned(),
                rows: vec![row(verdict, comparison)],
            }),
        }
    }
    groups
}

fn row(verdict: &Verdict, comparison: &Comparison) -> ForestRow {
    ForestRow {
        label: content::comparison_name(comparison),
        configuration: content::configuration_of(verdict, &comparison.b),
        ratio: comparison.ratio,
        text: comparison.text.clone(),
        word: comparison.word.name(),
    }
}

/// Every round's value of each workload's primary metric, and of its rates and latencies where
/// there are few enough configurations.
pub(super) fn rounds(record: &Record, verdict: &Verdict, gallery: &Gallery) -> Markup {
    let few = verdict.configurations.len() <= SERIES_MAX;
    let addresses = Addresses::of(record);
    let mut charts = Vec::new();
    for (w, head) in record.head.workloads.iter().enumerate() {
        for (m, metric) in head.metrics.iter().enumerate() {
            // Of further metrics, rates and latencies alone, and those only while colours suffice.
            let drawn = m == 0 || few && view::has_view(&metric.unit);
            let rows: Vec<RoundsRow> = verdict
                .configurations
                .iter()
                .filter_map(|row| rounds_row(row, (w, metric), &addresses))
                .collect();
            if !drawn || rows.is_empty() {
                continue;
            }
            let title = figure::metric_on(&head.name, metric);
            let chart = rounds_chart(&format!("rounds-{w}-{m}"), &title, &metric.unit, &rows);
            charts.push(Chart {
                primary: m == 0,
                unit: metric.unit.clone(),
                plot: chart,
            });
        }
    }
    if charts.is_empty() {
        return html! {};
    }
    html! {
        p {
            "One mark per round" span.screen { "; click it for its trial" } ". A line joins the values of one "
            "round. The bar is the interval of the mean."
        }
        (view::charts("rounds", charts, gallery))
    }
}

/// A configuration's values of a metric; `None` if there are none.
fn rounds_row(
    row: &ConfigurationRow,
    (workload, metric): (usize, &MetricHead),
    addresses: &Addresses,
) -> Option<RoundsRow> {
    let mut cells = row.cells.iter();
    let cell = cells.find(|cell| cell.workload == workload && cell.metric == *metric)?;
    let rounds = cell.rounds.iter().map(|&(round, value)| {
        let href = addresses.href(round, row.configuration, workload);
        (round, value, href)
    });
    (!cell.rounds.is_empty()).then(|| RoundsRow {
        label: row.name.clone(),
        configuration: row.configuration,
        mean: cell.value,
        rounds: rounds.collect(),
    })
}

/// The series of each configuration's median trial, a chart per workload and phase.
pub(super) fn time(record: &Record, verdict: &Verdict, gallery: &Gallery) -> Markup {
    let addresses = Addresses::of(record);
    let mut charts = Vec::new();
    let mut trials = Vec::new();
    for (w, workload) in record.head.workloads.iter().enumerate() {
        let before = charts.len();
        let medians: Vec<(&ConfigurationRow, &Observation)> = verdict
            .configurations
            .iter()
            .filter_map(|row| Some((row, median_trial(record, row.configuration, w)?)))
            .collect();
        let phases = medians.iter().map(|(_, trial)| trial.phases.len()).max();
        for at in 0..phases.unwrap_or(0) {
            // Phases of one workload are the same in all configurations, as far as they got.
            let found = timed(verdict, w, &medians, at);
            let name = match (phases, found.first()) {
                (Some(2..), Some(one)) => format!("{}: {}", workload.name, one.phase.name),
                _ => workload.name.clone(),
            };
            let id = format!("time-{w}-{at}");
            // Phases that only touch metadata move no bytes; their operations are what is judged.
            let moved = |one: &Timed<'_>| one.phase.series.iter().any(|&(_, bytes)| bytes > 0);
            let bytes = found.iter().any(moved);
            if bytes {
                charts.extend(time_charts(&id, &name, &found, record, Amount::Bytes, true));
            }
            charts.extend(time_charts(
                &id,
                &name,
                &found,
                record,
                Amount::Operations,
                !bytes,
            ));
        }
        if charts.len() > before {
            trials.push((workload.name.as_str(), w, medians));
        }
    }
    if charts.is_empty() {
        return html! {};
    }
    html! {
        p {
            "The median trial of each configuration, from start to end of the measured part. A vertical line "
            "marks a change of rate in at least half of a configuration's trials; its label gives size, time "
            "and bytes moved (medians of these trials)."
        }
        (view::charts("time", charts, gallery))
        details {
            summary { "Which trials these are" }
            @for (name, workload, medians) in &trials {
                p {
                    (name) ":"
                    @for (row, trial) in medians {
                        " " a href=(addresses.href(trial.round, row.configuration, *workload)) {
                            (row.name) ", round " (trial.round)
                        } "."
                    }
                }
            }
        }
    }
}

/// One phase of one configuration's median trial.
struct Timed<'a> {
    /// Name of the configuration.
    name: &'a str,
    /// Index of the configuration.
    configuration: usize,
    phase: &'a PhaseObservation,
    /// The change midway that most trials of the configuration show: of bytes where any were moved.
    change: Option<&'a RateChange>,
}

/// The phase at a position of each median trial that has it.
fn timed<'a>(
    verdict: &'a Verdict,
    workload: usize,
    medians: &[(&'a ConfigurationRow, &'a Observation)],
    at: usize,
) -> Vec<Timed<'a>> {
    let phases = medians.iter().filter_map(|(row, trial)| {
        let phase = trial.phases.get(at)?;
        let mut courses = verdict.courses.iter();
        let course = courses.find(|course| {
            (course.configuration, course.workload) == (row.configuration, workload)
                && course.phase == phase.name
        });
        Some(Timed {
            name: &row.name,
            configuration: row.configuration,
            phase,
            change: course.and_then(|course| course.change.as_ref()),
        })
    });
    phases.collect()
}

/// `−60 % at 12.0 s, 114 MiB`.
fn changed(change: &RateChange) -> (f64, String) {
    let sign = if change.ratio < 1.0 { "−" } else { "+" };
    let size = unit::percent((change.ratio - 1.0).abs());
    let mut words = format!("{sign}{size} at {}", unit::time_ns(change.after_s * 1e9));
    if change.after_bytes > 0.0 {
        words.push_str(&format!(", {}", unit::bytes(change.after_bytes as u64)));
    }
    if change.times > 1.0 {
        words.push_str(&format!(" (largest of {:.0})", change.times));
    }
    (change.after_s, words)
}

/// The amount counted over time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Amount {
    Bytes,
    Operations,
}

fn time_charts(
    id: &str,
    name: &str,
    phases: &[Timed<'_>],
    record: &Record,
    amount: Amount,
    primary: bool,
) -> Vec<Chart> {
    let (unit, y_name, kind) = match amount {
        Amount::Bytes => ("B/s", "bytes moved", "bytes"),
        Amount::Operations => ("op/s", "operations", "operations"),
    };
    let mut lines: Vec<ChartLine> = phases
        .iter()
        .filter_map(|one| {
            // The change was found in the primary amount; at the other it might not be there.
            let change = one.change.filter(|_| primary).map(changed);
            Some(ChartLine {
                change,
                ..time_line(one, amount)?
            })
        })
        .collect();
    let points = || lines.iter().flat_map(|line| line.points.iter().copied());
    // One scale for all charts of a phase, or they could not be compared.
    let limits = audited::limits_near(record, unit, points().map(|point| point.1));
    let middles = lines.iter().filter_map(|line| {
        let values: Vec<f64> = line.points.iter().map(|point| point.1).collect();
        stackrace_stats::median(&values)
    });
    let y = Axis::from_zero_but(
        points()
            .map(|point| point.1)
            .chain(limits.iter().map(|limit| limit.0)),
        // Of no lines there is nothing to draw.
        middles.reduce(f64::min).unwrap_or(0.0),
    );
    let x = Axis::over(Scale::Linear, points().map(|point| point.0).chain([0.0]));
    let mut charts = Vec::new();
    while !lines.is_empty() {
        let rest = lines.split_off(lines.len().min(SERIES_MAX));
        let plot = line(&LineChart {
            id: format!("{id}-{kind}-{}", charts.len()),
            title: facet_title(name, charts.len(), rest.is_empty()),
            desc: format!("{name}: {y_name} over time, one line per configuration."),
            x,
            x_name: "time".to_owned(),
            x_label: &|value| figure::tick("s", value),
            y,
            y_name: y_name.to_owned(),
            y_label: &|value| figure::tick(unit, value),
            lines,
            limits: limits.clone(),
        });
        charts.push(Chart {
            primary,
            unit: unit.to_owned(),
            plot,
        });
        lines = rest;
    }
    charts
}

/// Numbered where a workload needs more than one chart.
pub(super) fn facet_title(name: &str, part: usize, last: bool) -> String {
    if part == 0 && last {
        name.to_owned()
    } else {
        format!("{name} ({})", part + 1)
    }
}

/// The complete trial whose primary metric is the median of the configuration's.
fn median_trial(record: &Record, configuration: usize, workload: usize) -> Option<&Observation> {
    let mut trials: Vec<(f64, &Observation)> = record
        .trials()
        .filter(|trial| (trial.configuration, trial.workload) == (configuration, workload))
        .filter(|trial| trial.ended == Ended::Complete)
        .filter_map(|trial| Some((trial.metrics.first().copied().flatten()?, trial)))
        .collect();
    trials.sort_by(|a, b| a.0.total_cmp(&b.0));
    trials
        // Of an even number the lower one: a trial that took place, not the mean of two.
        .get(trials.len().saturating_sub(1) / 2)
        .map(|pair| pair.1)
}

/// Rate in each slice of a phase, s and bytes (or operations) per second; `None` if the phase is too short.
fn time_line(one: &Timed<'_>, amount: Amount) -> Option<ChartLine> {
    let phase = one.phase;
    let width = phase.step_ns as f64 / 1e9;
    let elapsed = phase.elapsed_ns as f64 / 1e9;
    if width <= 0.0 {
        return None;
    }
    let points: Vec<(f64, f64)> = phase
        .series
        .iter()
        .enumerate()
        .map(|(at, &(ops, moved))| {
            let counted = match amount {
                Amount::Bytes => moved,
                Amount::Operations => ops,
            };
            ((at as f64 + 0.5) * width, counted as f64 / width)
        })
        // A last slice that the phase did not fill would look like a slump.
        .take_while(|(middle, _)| middle + width / 2.0 <= elapsed + width * 0.01)
        .collect();
    (points.len() >= 2).then(|| ChartLine {
        label: one.name.to_owned(),
        series: one.configuration,
        points: thinned(&points),
        band: Vec::new(),
        marked: false,
        change: None,
        rings: Vec::new(),
    })
}

/// Means of neighbours, so that no more than [`TIME_POINTS`] are left.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    // Means of neighbours and not every n-th value, so that a short stall stays visible.
    let size = points.len().div_ceil(TIME_POINTS).max(1);
    points
        .chunks(size)
        .map(|chunk| {
            let count = chunk.len() as f64;
            (
                chunk.iter().map(|point| point.0).sum::<f64>() / count,
                chunk.iter().map(|point| point.1).sum::<f64>() / count,
            )
        })
        .collect()
}
