//! Latency: the share of operations that took at least this long.

use hdrhistogram::Histogram;
use libm::log10;
use maud::{Markup, html};

use super::plots::facet_title;
use super::tables::table;
use crate::report::chart::{Axis, ChartLine, Gallery, LineChart, Plot, SERIES_MAX, Scale, line};
use crate::report::figure;
use crate::report::latencies;
#[cfg(any(test, feature = "testing"))]
use stackrace_base::event::histogram;
use stackrace_base::unit;
use stackrace_judge::verdict::Verdict;
use stackrace_results::record::Record;

/// Charts that are shown without opening anything.
const OPEN_MAX: usize = 4;

/// One chart per workload and kind of operation, at most eight configurations in each.
pub(super) fn latency(record: &Record, verdict: &Verdict, gallery: &Gallery) -> Markup {
    let mut charts = Vec::new();
    for ((workload, _, op), histograms) in &latencies::merged(record) {
        let lines: Vec<ChartLine> = verdict
            .configurations
            .iter()
            .filter_map(|row| {
                let histogram = histograms.get(&row.configuration)?;
                Some(ChartLine {
                    label: row.name.clone(),
                    series: row.configuration,
                    points: tail(histogram),
                    band: Vec::new(),
                    marked: false,
                    change: None,
                    rings: Vec::new(),
                })
            })
            // One point is no curve.
            .filter(|line| line.points.len() > 1)
            .collect();
        let Some(head) = record.head.workloads.get(*workload) else {
            continue;
        };
        charts.extend(facets(
            &format!("latency-{workload}-{}", charts.len()),
            &format!("{}: {op}", head.name),
            lines,
        ));
    }
    if charts.is_empty() {
        return html! {};
    }
    let more = charts.split_off(charts.len().min(OPEN_MAX));
    html! {
        p {
            "Share of operations that took at least this long. Lower and further left is better; a bend to "
            "the right shows slow outliers. All complete trials together; both axes are logarithmic."
        }
        div class="facets" { @for chart in charts { (gallery.captioned(chart)) } }
        @if !more.is_empty() {
            details {
                summary { (figure::counted(more.len(), "further chart")) }
                div class="facets" { @for chart in more { (gallery.captioned(chart)) } }
            }
        }
        details {
            summary { "Mean, deviation and percentiles" }
            @for of_one in latencies::tables(record, verdict, true) {
                h3 { (of_one.title) }
                (table(&of_one))
            }
        }
    }
}

/// The curve of a histogram as a log holds it; `None` if it holds nothing that can be read.
#[cfg(any(test, feature = "testing"))]
pub fn latency_tail(text: &str) -> Option<Vec<(f64, f64)>> {
    histogram::decoded(text).map(|histogram| tail(&histogram))
}

/// Points (latency, share that took at least so long), as many as the eye can tell apart.
fn tail(histogram: &Histogram<u64>) -> Vec<(f64, f64)> {
    let total = histogram.len() as f64;
    let mut before = 0u64;
    let mut points: Vec<(f64, f64)> = Vec::new();
    let buckets: Vec<(u64, u64)> = histogram
        .iter_recorded()
        .map(|bucket| {
            (
                bucket.value_iterated_to(),
                bucket.count_since_last_iteration(),
            )
        })
        .collect();
    for (at, &(value, count)) in buckets.iter().enumerate() {
        // 0 ns, below what the clock resolves, has no place on a logarithmic axis.
        let point = ((value.max(1)) as f64, (total - before as f64) / total);
        before += count;
        // Steps too small to be seen make the page larger and show nothing. The last one is the
        // maximum and always stays.
        let far = points
            .last()
            .is_none_or(|last| log10(point.0 / last.0) > 0.02 || log10(last.1 / point.1) > 0.04);
        if far || at + 1 == buckets.len() {
            points.push(point);
        }
    }
    points
}

fn facets(id: &str, title: &str, mut lines: Vec<ChartLine>) -> Vec<Plot> {
    let points = || lines.iter().flat_map(|line| line.points.iter().copied());
    let x = Axis::over(Scale::Log10, points().map(|point| point.0)).widened(0.02);
    // Every operation took at least the shortest time, so curves begin at 1.
    let y = Axis::over(Scale::Log10, points().map(|point| point.1).chain([1.0]));
    let mut charts = Vec::new();
    while !lines.is_empty() {
        let rest = lines.split_off(lines.len().min(SERIES_MAX));
        charts.push(line(&LineChart {
            id: format!("{id}-{}", charts.len()),
            title: facet_title(title, charts.len(), rest.is_empty()),
            desc: format!("{title}: share of operations that took at least this long."),
            x,
            x_name: "latency".to_owned(),
            x_label: &|value| figure::tick("ns", value),
            y,
            y_name: "share of operations at least this slow".to_owned(),
            y_label: &share,
            lines,
            limits: Vec::new(),
        }));
        lines = rest;
    }
    charts
}

/// `100 %`, `1 %`, `0.01 %`: as many digits as it takes.
fn share(value: f64) -> String {
    let percent = value * 100.0;
    if percent >= 1.0 {
        unit::percent((percent).round() / 100.0).replace(".0 ", " ")
    } else {
        format!("{} %", (percent * 1e8).round() / 1e8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_falls_from_all_to_the_slowest() {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        for value in 1..=10_000u64 {
            histogram.record(value * 1000).unwrap();
        }
        let points = tail(&histogram);
        assert_eq!(points[0].1, 1.0);
        assert!(points.len() < 200);
        assert!(
            points
                .windows(2)
                .all(|p| p[0].0 < p[1].0 && p[0].1 > p[1].1)
        );
        // Half of the operations take at least 5 ms.
        let half = points.iter().find(|point| point.1 <= 0.5).unwrap();
        assert!((half.0 / 5e6 - 1.0).abs() < 0.1, "{half:?}");
    }
}
