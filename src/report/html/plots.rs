//! Ratios, rounds and time: what is drawn of them, chosen so that it stays readable.

use maud::{Markup, html};

use crate::event::{Ended, Observation, PhaseObservation};
use crate::record::Record;
use crate::report::chart::{
    Axis, ForestGroup, ForestRow, Line, LineChart, RoundsRow, SERIES_MAX, Scale, forest, legend,
    line, rounds as rounds_chart,
};
use crate::report::{content, figure};
use crate::verdict::{Contrast, Verdict};

/// Rows of the first chart; further contrasts are in one that can be opened.
const HERO_ROWS: usize = 12;
/// Points of a line over time; more are averaged.
const TIME_POINTS: usize = 150;

/// The ratios: the overall ones, and those of the workloads where there is room.
pub(super) fn hero(verdict: &Verdict) -> Markup {
    let groups = groups(verdict);
    let all: usize = groups.iter().map(|group| group.rows.len()).sum();
    if all == 0 {
        return html! {};
    }
    let title = "Ratios with their intervals";
    let (first, rest) = if all <= HERO_ROWS {
        (groups, Vec::new())
    } else if verdict.overall.is_empty() {
        (Vec::new(), groups)
    } else {
        let mut groups = groups.into_iter();
        (groups.by_ref().take(1).collect(), groups.collect())
    };
    html! {
        @if !first.is_empty() {
            figure class="hero" {
                figcaption { (title) ". The band is what the study calls no difference that matters." }
                div class="chart" { (forest("forest", title, verdict.margin, &first)) }
            }
        }
        @for (at, group) in rest.into_iter().enumerate() {
            details {
                summary { (group.heading) ": " (figure::counted(group.rows.len(), "contrast")) }
                @let title = format!("{title}: {}", group.heading);
                div class="chart" {
                    (forest(&format!("forest-{at}"), &title, verdict.margin, &[group]))
                }
            }
        }
    }
}

/// Overall first, then one group per workload, in the record's order.
fn groups(verdict: &Verdict) -> Vec<ForestGroup> {
    let mut groups = Vec::new();
    if !verdict.overall.is_empty() {
        groups.push(ForestGroup {
            heading: "Over all workloads".to_owned(),
            rows: verdict.overall.iter().map(row).collect(),
        });
    }
    for contrast in &verdict.workloads {
        let heading = match contrast.workload.as_str() {
            "" => "Over all workloads, within levels of other factors",
            workload => workload,
        };
        match groups.iter_mut().find(|g| g.heading == heading) {
            Some(group) => group.rows.push(row(contrast)),
            None => groups.push(ForestGroup {
                heading: heading.to_owned(),
                rows: vec![row(contrast)],
            }),
        }
    }
    groups
}

fn row(contrast: &Contrast) -> ForestRow {
    ForestRow {
        label: content::contrast_name(contrast),
        ratio: contrast.ratio,
        text: contrast.text.clone(),
        word: content::word(contrast),
    }
}

/// Every round's value of the primary metric of each workload.
pub(super) fn rounds(record: &Record, verdict: &Verdict) -> Markup {
    let charts: Vec<(String, Markup)> = record
        .head
        .workloads
        .iter()
        .enumerate()
        .filter_map(|(at, head)| {
            let metric = head.metrics.first()?;
            let rows: Vec<RoundsRow> = verdict
                .treatments
                .iter()
                .filter_map(|treatment| {
                    let cell = content::primary(treatment, at)?;
                    (!cell.rounds.is_empty()).then(|| RoundsRow {
                        label: treatment.name.clone(),
                        mean: cell.value,
                        rounds: cell.rounds.clone(),
                    })
                })
                .collect();
            let title = format!("{}: {}", head.name, figure::metric(metric));
            (!rows.is_empty()).then(|| {
                let chart = rounds_chart(&format!("rounds-{at}"), &title, &metric.unit, &rows);
                (title, chart)
            })
        })
        .collect();
    if charts.is_empty() {
        return html! {};
    }
    let long = verdict.treatments.len() > SERIES_MAX;
    html! {
        p {
            "One dot per round; a line joins the values of one round. The bar is the interval of the mean."
        }
        @if long {
            @for (title, chart) in charts {
                details { summary { (title) } div class="chart" { (chart) } }
            }
        } @else {
            div class="facets" {
                @for (title, chart) in charts {
                    figure { figcaption { (title) } div class="chart" { (chart) } }
                }
            }
        }
    }
}

/// One chart with its legend.
pub(super) fn with_legend(chart: &LineChart<'_>) -> Markup {
    let names: Vec<&str> = chart.lines.iter().map(|line| line.label.as_str()).collect();
    html! {
        figure {
            figcaption { (chart.title) }
            div class="chart" { (line(chart)) }
            (legend(&names))
        }
    }
}

/// The series of each treatment's median trial, a chart per workload and phase.
pub(super) fn time(record: &Record, verdict: &Verdict) -> Markup {
    let mut charts = Vec::new();
    for (w, workload) in record.head.workloads.iter().enumerate() {
        let medians: Vec<(&str, &Observation)> = verdict
            .treatments
            .iter()
            .filter_map(|row| {
                let trial = median_trial(record, row.treatment, w)?;
                Some((row.name.as_str(), trial))
            })
            .collect();
        let phases = medians.iter().map(|(_, trial)| trial.phases.len()).max();
        for at in 0..phases.unwrap_or(0) {
            // Phases of one workload are the same in all treatments, as far as they got.
            let found: Vec<(&str, &PhaseObservation)> = medians
                .iter()
                .filter_map(|(name, trial)| Some((*name, trial.phases.get(at)?)))
                .collect();
            let name = match (phases, found.first()) {
                (Some(2..), Some((_, phase))) => format!("{}: {}", workload.name, phase.name),
                _ => workload.name.clone(),
            };
            charts.extend(time_charts(&format!("time-{w}-{at}"), &name, &found));
        }
    }
    if charts.is_empty() {
        return html! {};
    }
    html! {
        p { "The trial of the median value of each treatment, start to end of the measured part." }
        @if charts.len() > 4 {
            details {
                summary { (figure::counted(charts.len(), "chart")) }
                div class="facets" { @for chart in &charts { (chart) } }
            }
        } @else {
            div class="facets" { @for chart in &charts { (chart) } }
        }
    }
}

fn time_charts(id: &str, name: &str, phases: &[(&str, &PhaseObservation)]) -> Vec<Markup> {
    let bytes = phases
        .iter()
        .any(|(_, phase)| phase.series.iter().any(|&(_, bytes)| bytes > 0));
    let (unit, y_name) = if bytes {
        ("B/s", "bytes moved")
    } else {
        ("op/s", "operations")
    };
    let mut lines: Vec<Line> = phases
        .iter()
        .filter_map(|(name, phase)| time_line(name, phase, bytes))
        .collect();
    let points = || lines.iter().flat_map(|line| line.points.iter().copied());
    // One scale for all charts of a phase, or they could not be compared.
    let y = Axis::from_zero(points().map(|point| point.1));
    let x = Axis::over(Scale::Linear, points().map(|point| point.0).chain([0.0]));
    let mut charts = Vec::new();
    while !lines.is_empty() {
        let rest = lines.split_off(lines.len().min(SERIES_MAX));
        charts.push(with_legend(&LineChart {
            id: format!("{id}-{}", charts.len()),
            title: facet_title(name, charts.len(), rest.is_empty()),
            desc: format!("{name}: rate over time, one line per treatment."),
            x,
            x_name: "time".to_owned(),
            x_label: &|value| figure::tick("s", value),
            y,
            y_name: y_name.to_owned(),
            y_label: &|value| figure::tick(unit, value),
            lines,
            rings: Vec::new(),
        }));
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

/// The complete trial whose primary metric is the median of the treatment's.
fn median_trial(record: &Record, treatment: usize, workload: usize) -> Option<&Observation> {
    let mut trials: Vec<(f64, &Observation)> = record
        .trials()
        .filter(|trial| (trial.treatment, trial.workload) == (treatment, workload))
        .filter(|trial| trial.ended == Ended::Complete)
        .filter_map(|trial| Some((trial.metrics.first().copied().flatten()?, trial)))
        .collect();
    trials.sort_by(|a, b| a.0.total_cmp(&b.0));
    trials
        .get(trials.len().saturating_sub(1) / 2)
        .map(|pair| pair.1)
}

/// Rate in each slice of a phase, s and bytes (or operations) per second; none: too short a phase.
fn time_line(label: &str, phase: &PhaseObservation, bytes: bool) -> Option<Line> {
    let width = phase.slice_ns as f64 / 1e9;
    let elapsed = phase.elapsed_ns as f64 / 1e9;
    if width <= 0.0 {
        return None;
    }
    let points: Vec<(f64, f64)> = phase
        .series
        .iter()
        .enumerate()
        .map(|(at, &(ops, moved))| {
            let amount = if bytes { moved } else { ops };
            ((at as f64 + 0.5) * width, amount as f64 / width)
        })
        // A last slice that the phase did not fill would look like a slump.
        .take_while(|(middle, _)| middle + width / 2.0 <= elapsed + width * 0.01)
        .collect();
    (points.len() >= 2).then(|| Line {
        label: label.to_owned(),
        points: thinned(&points),
        band: Vec::new(),
        marked: false,
    })
}

/// Means of neighbours, so that no more than [`TIME_POINTS`] are left.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
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
