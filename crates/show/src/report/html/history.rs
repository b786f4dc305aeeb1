//! The runs of one study over time: a chart and a table per workload, changes marked.

use maud::{Markup, html};

use super::plots::facet_title;
use super::tables::table;
use crate::report::chart::{Axis, ChartLine, Gallery, LineChart, Plot, SERIES_MAX, Scale, line};
use crate::report::content::{TextRow, TextTable};
use crate::report::figure::{self, MISSING};
use stackrace_judge::published::distinct;
use stackrace_judge::verdict::{HistoryLine, HistoryPoint};
use stackrace_results::record::Record;

/// Changes over these runs, oldest first; `courses` are of the same runs.
pub fn history(runs: &[&Record], courses: &[HistoryLine]) -> Markup {
    // A page without pictures of its own.
    let gallery = Gallery::default();
    let workloads = distinct(courses.iter().map(|course| course.workload.as_str()));
    html! {
        p {
            "A ring marks a change: this run and the next two differ from the three before it (Welch's 95 % "
            "interval of the ratio excludes 1). Without any real change, about one in twenty is ringed. "
            "Runs at different times are not paired: any other change between them is in the figures."
        }
        @for (at, workload) in workloads.iter().enumerate() {
            @let mine: Vec<&HistoryLine> = courses.iter().filter(|c| c.workload == *workload).collect();
            h2 { (workload) }
            @for (part, few) in mine.chunks(SERIES_MAX).enumerate() {
                (gallery.captioned(chart(&format!("history-{at}-{part}"), workload, part, mine.len(), few, runs)))
            }
            (table(&figures(workload, runs, &mine)))
        }
        @if workloads.is_empty() {
            p { "No run of this study has a figure yet." }
        }
    }
}

fn chart(
    id: &str,
    workload: &str,
    part: usize,
    all: usize,
    courses: &[&HistoryLine],
    runs: &[&Record],
) -> Plot {
    let place = |point: &HistoryPoint| (point.run + 1) as f64;
    let points = || courses.iter().flat_map(|course| &course.points);
    let ends = points().flat_map(|point| {
        [point.value.estimate, point.value.low, point.value.high]
            .into_iter()
            // An open end, or one at 0, would widen the axis without end.
            .filter(|end| end.is_finite() && *end > 0.0)
    });
    let ends: Vec<f64> = ends.collect();
    let unit = courses
        .first()
        .map_or("", |course| course.metric.unit.as_str());
    let metric = courses.first().map(|course| figure::metric(&course.metric));
    let lines = courses.iter().map(|course| ChartLine {
        label: course.configuration.clone(),
        series: series(runs, course),
        points: course
            .points
            .iter()
            .map(|p| (place(p), p.value.estimate))
            .collect(),
        band: course
            .points
            .iter()
            .filter(|point| point.value.low.is_finite() && point.value.high.is_finite())
            .map(|point| (place(point), point.value.low, point.value.high))
            .collect(),
        marked: true,
        change: None,
        rings: course
            .points
            .iter()
            .filter(|point| point.change.is_some_and(|change| change.differs))
            .map(|point| (place(point), point.value.estimate))
            .collect(),
    });
    line(&LineChart {
        id: id.to_owned(),
        title: facet_title(workload, part, all <= SERIES_MAX),
        desc: format!("{workload}: one point per run, one line per configuration, changes ringed."),
        x: Axis::over(Scale::Linear, [0.5, runs.len() as f64 + 0.5].into_iter()),
        x_name: "began (UTC)".to_owned(),
        x_label: &|value| began(runs, value),
        y: Axis::from_zero(ends.into_iter()),
        y_name: metric.unwrap_or_default(),
        y_label: &|value| figure::tick(unit, value),
        lines: lines.collect(),
        limits: Vec::new(),
    })
}

/// The day on which the run at a place of the axis began; its time where all began on one day. Half a run is none.
fn began(runs: &[&Record], place: f64) -> String {
    let date = |run: &&Record| run.started_at().get(..10).unwrap_or_default().to_owned();
    let day = runs.first().map(date);
    let one_day = runs.iter().all(|run| Some(date(run)) == day);
    let run = match (place - place.round()).abs() < 1e-9 && place >= 1.0 {
        true => runs.get(place.round() as usize - 1),
        false => None,
    };
    let of_it = |run: &&Record| {
        let part = if one_day { 11..16 } else { 2..10 };
        run.started_at().get(part).unwrap_or_default().to_owned()
    };
    run.map(of_it).unwrap_or_default()
}

/// The index that the newest run with this configuration gives it: it has the colour of that page.
fn series(runs: &[&Record], course: &HistoryLine) -> usize {
    let named = |run: &&Record| {
        let mut configurations = run.head.configurations.iter();
        configurations.position(|one| one.name == course.configuration)
    };
    // The newest run decides, so the colour is that of the page people look at.
    runs.iter().rev().find_map(named).unwrap_or(0)
}

/// A row per run, a column per configuration.
fn figures(workload: &str, runs: &[&Record], courses: &[&HistoryLine]) -> TextTable {
    let rows = runs.iter().enumerate().map(|(run, record)| {
        let mut cells = vec![
            (run + 1).to_string(),
            record
                .started_at()
                // To the minute: `2026-11-21T14:05`.
                .get(..16)
                .unwrap_or_default()
                .replace('T', " "),
        ];
        cells.extend(courses.iter().map(|course| {
            let point = course.points.iter().find(|point| point.run == run);
            point.map_or(MISSING.to_owned(), |point| cell(&course.metric.unit, point))
        }));
        TextRow::of(cells)
    });
    TextTable {
        title: workload.to_owned(),
        head: ["run", "began (UTC)"]
            .map(str::to_owned)
            .into_iter()
            .chain(courses.iter().map(|course| course.configuration.clone()))
            .collect(),
        rows: rows.collect(),
        ..TextTable::default()
    }
}

/// `240 MB/s [231, 250] ◯ × 0.81 [0.76, 0.88]`
fn cell(unit: &str, point: &HistoryPoint) -> String {
    let mut text = format!(
        "{} {}",
        figure::value(unit, point.value.estimate),
        figure::range(unit, point.value)
    );
    if let Some(change) = point.change.filter(|change| change.differs) {
        text.push_str(&format!(
            " ◯ × {} {}",
            figure::ratio(change.ratio.estimate),
            figure::ratio_range(change.ratio)
        ));
    }
    text
}
