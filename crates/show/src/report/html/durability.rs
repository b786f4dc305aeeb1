//! Speed beside the measured guarantee: sentences, a plot of both, tables.

use maud::{Markup, html};

use super::tables;
use crate::report::chart::{Axis, ChartLine, Gallery, LineChart, Plot, SERIES_MAX, line};
use crate::report::durability;
use crate::report::figure;
use stackrace_judge::verdict::{DurabilityRow, Verdict};
use stackrace_results::record::Record;

/// The section; empty where no power was cut.
pub(super) fn durability(record: &Record, verdict: &Verdict, gallery: &Gallery) -> Markup {
    let rows = durability::rows(record, verdict);
    if rows.is_empty() {
        return html! {};
    }
    let guarantees = durability::guarantees(&rows, verdict);
    html! {
        ul {
            @for (sentence, command) in durability::sentences(&rows, record) {
                li {
                    (sentence)
                    @if let Some(command) = command { " The first loss: " code { (command) } }
                }
            }
        }
        (plots(&rows, gallery))
        h3 { (guarantees.title) }
        p { (guarantees.note) }
        (tables::table(&guarantees))
        @for kinds in durability::kinds(&rows) {
            h3 { (kinds.title) }
            p { (kinds.note) }
            (tables::table(&kinds))
        }
        @if let Some(losses) = durability::losses(record) {
            details {
                summary { (losses.title) }
                p { (losses.note) }
                (tables::table(&losses))
            }
        }
        p {
            "The unit is the cut: losses of one cut are not counted as several. No broken promise is a bound, "
            "not a proof: the share of cuts that break one may be as large as the upper end. Looks after 10, 20, "
            "40, 80, 160 and 320 cuts share the error (Clopper and Pearson; Fisher's exact test between "
            "configurations). Cuts of one run see the same operations at other instants."
        }
    }
}

/// One plot for each workload, of so many configurations as can be told apart.
fn plots(rows: &[DurabilityRow], gallery: &Gallery) -> Markup {
    let mut workloads: Vec<usize> = rows.iter().map(|row| row.workload).collect();
    workloads.dedup();
    html! {
        @for workload in workloads {
            @let of: Vec<&DurabilityRow> = rows.iter().filter(|row| row.workload == workload).collect();
            @for (number, part) in of.chunks(SERIES_MAX).enumerate() {
                @if let Some(plot) = plot(&format!("guarantee-{workload}-{number}"), part) {
                    (gallery.captioned(plot))
                }
            }
        }
    }
}

/// Speed to the right, the share of cuts that break a promise upwards.
fn plot(id: &str, rows: &[&DurabilityRow]) -> Option<Plot> {
    let measured: Vec<&&DurabilityRow> = rows.iter().filter(|row| row.speed.is_some()).collect();
    let first = measured.first()?;
    let speeds = measured.iter().filter_map(|row| row.speed);
    let lines: Vec<ChartLine> = measured
        .iter()
        .map(|row| {
            let speed = row.speed.unwrap_or(0.0);
            let share = f64::from(row.broken) / f64::from(row.cuts.max(1));
            ChartLine {
                label: row.name.clone(),
                series: row.configuration,
                points: vec![(speed, share)],
                band: vec![(speed, row.at_least, row.at_most)],
                marked: true,
                rings: Vec::new(),
                change: None,
            }
        })
        .collect();
    let said: Vec<String> = measured.iter().map(|row| row.sentence.clone()).collect();
    let unit = first.speed_unit.clone();
    let chart = LineChart {
        id: id.to_owned(),
        title: format!("Speed and guarantee: {}", first.workload_name),
        desc: said.join(" "),
        x: Axis::from_zero(speeds),
        x_name: format!("speed of {}, {unit}", first.workload_name),
        x_label: &|value| figure::tick(&unit, value),
        y: Axis::up_to([1.0].into_iter()),
        y_name: "share of power cuts that break a promise, with its bounds".to_owned(),
        y_label: &durability::percent,
        lines,
        limits: Vec::new(),
    };
    Some(line(&chart))
}
