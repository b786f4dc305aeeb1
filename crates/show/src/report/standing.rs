//! How the configurations of a run stand so far, for the live views: one figure each, with its interval.

use super::{content, figure};
use stackrace_judge::verdict::{Comparison, ConfigurationRow, Left};
use stackrace_results::record::Record;

/// Standings of all configurations.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Standings {
    /// Name of the figure: `ratio over all workloads`, `throughput of random write`.
    pub of: String,
    /// `95 % interval`.
    pub interval: String,
    /// Every configuration, in the verdict's order.
    pub rows: Vec<Standing>,
}

/// Standing of one configuration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Standing {
    /// Configuration by index.
    pub configuration: usize,
    /// Name in reports.
    pub name: String,
    /// The figure; `–` where there is none yet.
    pub figure: String,
    /// Its interval; `–` alike.
    pub interval: String,
    /// The way it left the race; `None` if it is in.
    pub left: Option<Left>,
}

/// The ratios over all workloads; before they can be had, the first workload's primary metric. `rows` and `overall` are
/// those of a verdict.
pub fn standings(record: &Record, rows: &[ConfigurationRow], overall: &[Comparison]) -> Standings {
    let interval = content::interval_name(record.head.decide.confidence);
    // The one the others are compared with has a ratio from the beginning: it alone says nothing.
    let ratios = overall.iter().any(|one| one.ratio.is_some());
    let first = record.head.workloads.first();
    let metric = first.and_then(|workload| workload.metrics.first());
    let of = match (ratios, first, metric) {
        (true, ..) => "ratio over all workloads; above 1 is better".to_owned(),
        (false, Some(workload), Some(metric)) => figure::metric_on(&workload.name, metric),
        _ => String::new(),
    };
    let unit = metric.map_or("", |metric| metric.unit.as_str());
    let rows = rows.iter().map(|row| {
        // Until there are ratios, the first workload stands for all.
        let cell = content::primary(row, 0);
        let value = cell.and_then(|cell| cell.value);
        let missing = figure::MISSING.to_owned();
        let [figure, interval] = match (value, cell.and_then(|cell| cell.rounds.last())) {
            _ if ratios => content::overall_texts(row),
            (Some(value), _) => [
                figure::value(unit, value.estimate),
                figure::range(unit, value),
            ],
            // One round has a value and no interval.
            (None, Some((_, value))) => [figure::value(unit, *value), missing],
            (None, None) => [missing.clone(), missing],
        };
        Standing {
            configuration: row.configuration,
            name: figure::plain(&row.name),
            figure,
            interval,
            left: row.left(),
        }
    });
    Standings {
        of,
        interval,
        rows: rows.collect(),
    }
}
