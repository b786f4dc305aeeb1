//! Ratios, rounds and time: what is drawn of them, chosen so that it stays readable.

use maud::{Markup, html};

use crate::event::{Ended, Observation};
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
        match groups.iter_mut().find(|g| g.heading == contrast.workload) {
            Some(group) => group.rows.push(row(contrast)),
            None => groups.push(ForestGroup {
                heading: contrast.workload.clone(),
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

/// The series of each treatment's median trial, workload by workload.
pub(super) fn time(record: &Record, verdict: &Verdict) -> Markup {
    let mut facets = Vec::new();
    for workload in 0..record.head.workloads.len() {
        let lines: Vec<Line> = verdict
            .treatments
            .iter()
            .filter_map(|row| {
                let trial = median_trial(record, row.treatment, workload)?;
                time_line(&row.name, trial)
            })
            .collect();
        facets.extend(time_charts(record, verdict, workload, lines));
    }
    if facets.is_empty() {
        return html! {};
    }
    html! {
        p { "The trial of the median value of each treatment, start to end of the measured part." }
        @if facets.len() > 4 {
            details {
                summary { (figure::counted(facets.len(), "chart")) }
                div class="facets" { @for facet in &facets { (facet) } }
            }
        } @else {
            div class="facets" { @for facet in &facets { (facet) } }
        }
    }
}

fn time_charts(
    record: &Record,
    verdict: &Verdict,
    workload: usize,
    lines: Vec<Line>,
) -> Vec<Markup> {
    let name = &record.head.workloads[workload].name;
    let values = lines
        .iter()
        .flat_map(|line| line.points.iter().map(|&(_, value)| value));
    // One scale for all charts of a workload, or they could not be compared.
    let y = Axis::from_zero(values);
    let x = Axis::over(
        Scale::Linear,
        lines
            .iter()
            .flat_map(|line| line.points.iter().map(|&(at, _)| at))
            .chain([0.0]),
    );
    let unit = if in_bytes(record, workload) {
        "B/s"
    } else {
        "op/s"
    };
    let marks = verdict
        .treatments
        .first()
        .and_then(|row| median_trial(record, row.treatment, workload))
        .map_or(Vec::new(), phase_marks);
    let mut lines = lines;
    let mut charts = Vec::new();
    let mut part = 0;
    while !lines.is_empty() {
        let rest = lines.split_off(lines.len().min(SERIES_MAX));
        charts.push(with_legend(&LineChart {
            id: format!("time-{workload}-{part}"),
            title: facet_title(name, part, rest.is_empty()),
            desc: format!("{name}: rate over time, one line per treatment."),
            x,
            x_name: "time".to_owned(),
            x_label: &|value| figure::tick("s", value),
            y,
            y_name: if unit == "B/s" {
                "bytes moved"
            } else {
                "operations"
            }
            .to_owned(),
            y_label: &|value| figure::tick(unit, value),
            lines,
            // Phases take different times in different treatments.
            marks: if part == 0 && rest.is_empty() && verdict.treatments.len() == 1 {
                marks.clone()
            } else {
                Vec::new()
            },
        }));
        lines = rest;
        part += 1;
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

fn phase_marks(trial: &Observation) -> Vec<(f64, String)> {
    let mut began = 0.0;
    let mut marks = Vec::new();
    for phase in &trial.phases {
        marks.push((began, phase.name.clone()));
        began += phase.elapsed_ns as f64 / 1e9;
    }
    marks
}

/// Whether the workload moves bytes at all.
fn in_bytes(record: &Record, workload: usize) -> bool {
    record
        .trials()
        .filter(|trial| trial.workload == workload)
        .flat_map(|trial| &trial.phases)
        .any(|phase| phase.series.iter().any(|&(_, bytes)| bytes > 0))
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

/// Rate in each slice, s and bytes (or operations) per second; phases one after the other.
fn time_line(label: &str, trial: &Observation) -> Option<Line> {
    let bytes = trial
        .phases
        .iter()
        .any(|phase| phase.series.iter().any(|&(_, bytes)| bytes > 0));
    let mut points = Vec::new();
    let mut began = 0.0;
    for phase in &trial.phases {
        let width = phase.slice_ns as f64 / 1e9;
        let elapsed = phase.elapsed_ns as f64 / 1e9;
        if width > 0.0 {
            for (at, &(ops, moved)) in phase.series.iter().enumerate() {
                let end = (at + 1) as f64 * width;
                // A slice the phase did not fill would look like a slump.
                if end <= elapsed + width * 0.01 {
                    let amount = if bytes { moved } else { ops };
                    points.push((began + end - width / 2.0, amount as f64 / width));
                }
            }
        }
        began += elapsed;
    }
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
