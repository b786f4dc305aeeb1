//! A figure over the block size (or any amount of bytes), or over the queue depth (or any number),
//! where the study sweeps one.
//!
//! Either a factor's levels are amounts of bytes or whole numbers, or workloads differ in nothing but
//! an amount of bytes in their names.

use maud::{Markup, html};

use super::plots::facet_title;
use super::view::{self, Chart};
use crate::report::chart::{Axis, ChartLine, Gallery, LineChart, SERIES_MAX, Scale, line};
use crate::report::{audited, figure};
use stackrace_base::event::MetricHead;
use stackrace_base::unit;
use stackrace_judge::verdict::{ConfigurationRow, Verdict};
use stackrace_results::record::Record;

/// Fewer sizes make no curve.
const SIZES_MIN: usize = 3;

/// The curves; empty if nothing is swept.
pub(super) fn sweep(record: &Record, verdict: &Verdict, gallery: &Gallery) -> Markup {
    let mut charts = Vec::new();
    for factor in 0..record.head.factors.len() {
        by_factor(record, verdict, factor, &mut charts);
    }
    by_workload(record, verdict, &mut charts);
    if charts.is_empty() {
        return html! {};
    }
    html! {
        p { "Each point is the mean of one configuration with its own interval." }
        (view::charts("sweep", charts, gallery))
    }
}

/// Metrics worth a curve: rates, latencies, and whatever is primary.
fn drawn(metrics: &[MetricHead]) -> impl Iterator<Item = (usize, &MetricHead)> {
    metrics
        .iter()
        .enumerate()
        .filter(|(at, metric)| *at == 0 || view::has_view(&metric.unit))
}

/// Kind of amount along the axis.
#[derive(Clone, Copy)]
pub(super) struct Along {
    /// A level's place; `None` if it has none there.
    pub(super) place: fn(&str) -> Option<u64>,
    /// Label of a place.
    pub(super) label: fn(f64) -> String,
}

const BYTES: Along = Along {
    place: bytes,
    label: |value| unit::bytes(value.round() as u64),
};
const COUNT: Along = Along {
    place: count,
    label: |value| format!("{value:.0}"),
};

/// Kind of amount that the levels of a factor are; `None` if they are no amounts, or fewer than `least`.
pub(super) fn along_of(verdict: &Verdict, factor: usize, least: usize) -> Option<Along> {
    [BYTES, COUNT].into_iter().find(|along| {
        let rows = verdict.configurations.iter();
        let places = rows.map(|row| (along.place)(row.levels.get(factor)?));
        // A level that is no amount (`default` beside `4 KiB`) has no place on the axis.
        let Some(mut places) = places.collect::<Option<Vec<u64>>>() else {
            return false;
        };
        places.sort_unstable();
        places.dedup();
        places.len() >= least
    })
}

fn by_factor(record: &Record, verdict: &Verdict, factor: usize, charts: &mut Vec<Chart>) {
    let Some(along) = along_of(verdict, factor, SIZES_MIN) else {
        return;
    };
    let size = |row: &ConfigurationRow| (along.place)(row.levels.get(factor)?);
    for (w, workload) in record.head.workloads.iter().enumerate() {
        for (at, metric) in drawn(&workload.metrics) {
            let mut lines: Vec<ChartLine> = Vec::new();
            for row in &verdict.configurations {
                let others: Vec<String> = row
                    .levels
                    .iter()
                    .enumerate()
                    .filter(|&(at, _)| at != factor)
                    // A number alone says nothing.
                    .map(|(at, level)| match count(level) {
                        Some(_) => format!("{}={level}", record.head.factors[at]),
                        None => level.clone(),
                    })
                    .collect();
                let label = if others.is_empty() {
                    metric.name.clone()
                } else {
                    others.join(", ")
                };
                add(&mut lines, label, size(row), row, w, metric);
            }
            finish(
                (&record.head.factors[factor], along),
                &format!("{}: {}", workload.name, figure::metric(metric)),
                (at == 0, metric),
                lines,
                record,
                charts,
            );
        }
    }
}

/// Workloads whose names differ in nothing but an amount.
struct Group<'a> {
    /// The name without it.
    name: String,
    kind: &'a str,
    /// Each amount with its workload.
    sizes: Vec<(u64, usize)>,
}

fn by_workload(record: &Record, verdict: &Verdict, charts: &mut Vec<Chart>) {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (at, workload) in record.head.workloads.iter().enumerate() {
        if let Some((size, name)) = amount(&workload.name) {
            let kind = workload.kind.as_str();
            match groups.iter_mut().find(|g| g.name == name && g.kind == kind) {
                Some(group) => group.sizes.push((size, at)),
                None => groups.push(Group {
                    name,
                    kind,
                    sizes: vec![(size, at)],
                }),
            }
        }
    }
    for Group {
        name, mut sizes, ..
    } in groups
    {
        // By size: names in the study may stand in any order.
        sizes.sort_unstable();
        sizes.dedup_by_key(|size| size.0);
        if sizes.len() < SIZES_MIN {
            continue;
        }
        let metrics = &record.head.workloads[sizes[0].1].metrics;
        for (at, metric) in drawn(metrics) {
            let mut lines = Vec::new();
            for row in &verdict.configurations {
                for &(size, workload) in &sizes {
                    add(
                        &mut lines,
                        row.name.clone(),
                        Some(size),
                        row,
                        workload,
                        metric,
                    );
                }
            }
            let title = format!("{name}: {}", figure::metric(metric));
            finish(
                ("block size", BYTES),
                &title,
                (at == 0, metric),
                lines,
                record,
                charts,
            );
        }
    }
}

fn add(
    lines: &mut Vec<ChartLine>,
    label: String,
    size: Option<u64>,
    row: &ConfigurationRow,
    workload: usize,
    metric: &MetricHead,
) {
    let value = row
        .cells
        .iter()
        .find(|cell| cell.workload == workload && cell.metric == *metric)
        .and_then(|cell| cell.value);
    let (Some(size), Some(value)) = (size, value) else {
        return;
    };
    let at = size as f64;
    // A line of one configuration has its colour; one of several has that of its place.
    let series = match label == row.name {
        true => row.configuration,
        false => lines.len(),
    };
    let line = match lines.iter_mut().position(|line| line.label == label) {
        Some(known) => &mut lines[known],
        None => {
            lines.push(ChartLine {
                label,
                series,
                points: Vec::new(),
                band: Vec::new(),
                marked: true,
                change: None,
                rings: Vec::new(),
            });
            let last = lines.len() - 1;
            &mut lines[last]
        }
    };
    line.points.push((at, value.estimate));
    line.band.push((at, value.low, value.high));
}

fn finish(
    (x_name, along): (&str, Along),
    title: &str,
    (primary, metric): (bool, &MetricHead),
    mut lines: Vec<ChartLine>,
    record: &Record,
    charts: &mut Vec<Chart>,
) {
    // Levels come in the study's order; a line drawn in that order would go back and forth.
    for line in &mut lines {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        line.band.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let x = Axis::over(
        Scale::Log2,
        lines
            .iter()
            .flat_map(|line| line.points.iter().map(|point| point.0)),
    )
    .widened(0.03);
    let ends = || {
        let bands = lines.iter().flat_map(|line| &line.band);
        bands.flat_map(|&(_, low, high)| [low, high])
    };
    let limits = audited::limits_near(record, &metric.unit, ends());
    let y = Axis::from_zero(ends().chain(limits.iter().map(|limit| limit.0)));
    let mut part = 0;
    while !lines.is_empty() {
        let rest = lines.split_off(lines.len().min(SERIES_MAX));
        let plot = line(&LineChart {
            id: format!("sweep-{}", charts.len()),
            title: facet_title(title, part, rest.is_empty()),
            desc: format!("{title}, over {x_name}."),
            x,
            x_name: x_name.to_owned(),
            x_label: &along.label,
            y,
            y_name: metric.name.clone(),
            y_label: &|value| figure::tick(&metric.unit, value),
            lines,
            limits: limits.clone(),
        });
        charts.push(Chart {
            primary,
            unit: metric.unit.clone(),
            plot,
        });
        lines = rest;
        part += 1;
    }
}

/// A level that is a number of something: a queue depth, threads, files.
fn count(level: &str) -> Option<u64> {
    level.parse().ok().filter(|&count| count > 0)
}

/// A level that is an amount of bytes with its unit; a bare number is a count.
fn bytes(level: &str) -> Option<u64> {
    // `parse_bytes` also takes bare numbers, and a level `3` may be a count or a version.
    level
        .ends_with('B')
        .then(|| unit::parse_bytes(level).ok())
        .flatten()
        .filter(|&bytes| bytes > 0)
}

/// The first amount of bytes in a name, and the name without it.
fn amount(name: &str) -> Option<(u64, String)> {
    // At a digit that nothing of a word precedes: not the 3 of `zstd3` nor the 5 of `1.5`.
    let starts = name.char_indices().filter(|&(at, c)| {
        let before = name[..at].chars().next_back();
        c.is_ascii_digit() && before.is_none_or(|c| !c.is_alphanumeric() && c != '.')
    });
    for (start, _) in starts {
        let rest = &name[start..];
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let space = usize::from(rest[digits..].starts_with(' '));
        let letters = rest[digits + space..]
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(rest.len() - digits - space);
        let end = digits + space + letters;
        if let Some(size) = bytes(&rest[..end]) {
            let without = format!("{} {}", name[..start].trim_end(), rest[end..].trim_start());
            return Some((size, without.trim().to_owned()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_an_amount_of_bytes_or_a_number_or_neither() {
        for (level, bytes_of, count_of) in [
            ("4 KiB", Some(4096), None),
            ("16", None, Some(16)),
            ("0", None, None),
            ("6.1", None, None),
            ("zstd3", None, None),
            ("-1", None, None),
        ] {
            assert_eq!(
                (bytes(level), count(level)),
                (bytes_of, count_of),
                "{level}"
            );
        }
    }

    #[test]
    fn an_amount_is_found_in_a_name() {
        assert_eq!(
            amount("random write 4 KiB"),
            Some((4096, "random write".to_owned()))
        );
        assert_eq!(
            amount("read-64KiB-depth 3"),
            Some((65_536, "read- -depth 3".to_owned()))
        );
        assert_eq!(amount("512 B, größer"), Some((512, ", größer".to_owned())));
        assert_eq!(amount("photos 2026"), None);
        assert_eq!(amount("x4KiB"), None);
        assert_eq!(amount("größe ١"), None);
    }
}
