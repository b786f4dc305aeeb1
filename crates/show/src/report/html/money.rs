//! Cost and performance as points: what lies further up costs no more and does more.

use maud::{Markup, html};

use crate::report::chart::{Axis, ChartLine, Gallery, LineChart, SERIES_MAX, Scale, line};
use crate::report::{cost, figure};
use stackrace_base::event::Price;
use stackrace_judge::verdict::{ConfigurationRow, Verdict};
use stackrace_results::record::Record;

/// The points; empty unless two configurations have a cost and a figure.
pub(super) fn scatter(record: &Record, verdict: &Verdict, gallery: &Gallery) -> Markup {
    let price = |row: &ConfigurationRow| cost::of(&record.head, row);
    let mut lines = Vec::new();
    for row in verdict.configurations.iter().take(SERIES_MAX) {
        let (Some(price), Some(ratio)) = (price(row), row.overall) else {
            continue;
        };
        let ends = ratio.low.is_finite() && ratio.high.is_finite();
        lines.push(ChartLine {
            label: row.name.clone(),
            series: row.configuration,
            points: vec![(price.amount, ratio.estimate)],
            band: ends
                .then_some((price.amount, ratio.low, ratio.high))
                .into_iter()
                .collect(),
            marked: true,
            change: None,
            rings: Vec::new(),
        });
    }
    let unit = verdict
        .configurations
        .iter()
        .find_map(price)
        .map(Price::unit);
    let (Some(unit), true) = (unit, lines.len() > 1) else {
        return html! {};
    };
    let points = || lines.iter().flat_map(|line| line.points.iter().copied());
    let bands = || {
        lines
            .iter()
            .flat_map(|line| line.band.iter().flat_map(|it| [it.1, it.2]))
    };
    let x = Axis::over(Scale::Linear, points().map(|point| point.0).chain([0.0]));
    let y = Axis::from_zero(points().map(|point| point.1).chain(bands()));
    let plot = line(&LineChart {
        id: "money-0".to_owned(),
        title: "Performance by cost".to_owned(),
        desc: "One point for each configuration: its cost, and its ratio to the baseline."
            .to_owned(),
        x,
        x_name: format!("cost, {unit}"),
        x_label: &|value| format!("{value:.0}"),
        y,
        y_name: "ratio".to_owned(),
        y_label: &|value| figure::tick("", value),
        lines,
        limits: Vec::new(),
    });
    html! {
        p { "Further left costs less, further up does more. 1 is the baseline." }
        div class="facets" { (gallery.captioned(plot)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_judge::verdict::{Evidence, judge};
    use stackrace_results::record::sample;

    #[test]
    fn costs_are_points_and_no_costs_are_no_plot() {
        let mut record = sample::record(&sample::small());
        let plain = judge(&Evidence::of(&record));
        assert!(scatter(&record, &plain, &Gallery::default()).0.is_empty());
        let amounts = ["200 EUR", "100 EUR", "400 EUR"];
        for (configuration, amount) in record.head.configurations.iter_mut().zip(amounts) {
            configuration.cost = Some(Price::read(amount).unwrap());
        }
        let verdict = judge(&Evidence::of(&record));
        let shown = scatter(&record, &verdict, &Gallery::default()).0;
        assert!(shown.contains("cost, EUR"), "{shown}");
    }
}
