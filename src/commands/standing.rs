//! Where one directory stands: against its own earlier runs, and beside modelled drives and what their makers publish.

use libm::log as ln;
use stackrace_base::setting::Value;
use stackrace_base::unit;
use stackrace_drives::{Card, Claim, Load, Origin};
use stackrace_judge::verdict::{
    AgainstPast, AmongDrives, Evidence, MetricCell, ModelledDrive, Placed, Verdict, judge,
};
use stackrace_results::record::Record;
use stackrace_run::prepare::context::Context;
use stackrace_stats::{mean, median, t_quantile, variance};
use stackrace_study::purpose::{Purpose, PurposeWorkload, SizedBy, WorkloadSize};

use crate::sizes::memory;

/// Earlier runs without which nothing is certain.
const RUNS_LEAST: usize = 3;
/// Error of all statements on the past together.
const ERROR: f64 = 0.05;
/// Bytes of a modelled SSD: its timing does not depend on them.
const SSD_BYTES: u64 = 4 << 30;
const KIB: u64 = 1024;

/// Each workload against the runs before that asked the same.
pub(crate) fn past(context: &Context, record: &Record, verdict: &Verdict) -> Placed {
    let earlier = memory::earlier(context, record);
    let oldest: Option<String> = earlier
        .last()
        .map(|it| it.head.run.chars().take(DATE).collect());
    let Some(oldest) = oldest else {
        return Placed {
            first: true,
            ..Placed::default()
        };
    };
    let judged: Vec<Verdict> = earlier.iter().map(|it| judge(&Evidence::of(it))).collect();
    let cells: Vec<&MetricCell> = primary(verdict).collect();
    let error = ERROR / cells.len().max(1) as f64;
    let past = cells.iter().filter_map(|cell| {
        let same = |other: &&MetricCell| other.workload_name == cell.workload_name;
        let before = judged.iter().filter_map(|it| primary(it).find(same)?.value);
        let before: Vec<f64> = before.map(|value| value.estimate).collect();
        against(cell, &before, &oldest, error)
    });
    Placed {
        past: past.collect(),
        ..Placed::default()
    }
}

/// Characters of a date at the beginning of a run's id.
const DATE: usize = 10;

pub(super) fn primary(verdict: &Verdict) -> impl Iterator<Item = &MetricCell> {
    let row = verdict.configurations.first();
    let cells = row.into_iter().flat_map(|row| &row.cells);
    cells.filter(|cell| cell.primary)
}

fn against(cell: &MetricCell, before: &[f64], since: &str, error: f64) -> Option<AgainstPast> {
    let value = cell.value?.estimate;
    Some(AgainstPast {
        workload: cell.workload_name.clone(),
        unit: cell.metric.unit.clone(),
        better: cell.metric.better,
        value,
        median: median(before)?,
        runs: before.len(),
        since: since.to_owned(),
        certain: is_another(value, before, error),
    })
}

/// Returns true if a value is none that the earlier ones let one expect of a further run.
fn is_another(now: f64, before: &[f64], error: f64) -> bool {
    if before.len() < RUNS_LEAST {
        return false;
    }
    let logs: Vec<f64> = before.iter().map(|value| ln(*value)).collect();
    let count = logs.len() as f64;
    // Of one more run, not of their mean: that run has a noise of its own.
    let spread = (variance(&logs) * (1.0 + 1.0 / count)).sqrt();
    let reach = t_quantile(1.0 - error / 2.0, count - 1.0) * spread;
    (ln(now) - mean(&logs)).abs() > reach
}

/// Each workload that drives are described by, among their models.
pub(crate) fn among_drives(verdict: &Verdict, purpose: &Purpose) -> Vec<AmongDrives> {
    let placed = primary(verdict).filter_map(|cell| {
        let mut parts = purpose.parts.iter();
        let part = parts.find(|it| it.name == cell.workload_name)?;
        among(cell, load_of(part)?)
    });
    placed.collect()
}

/// Requests of a workload as a claim names them, with the KiB of each; `None` if no claim is about such work.
fn load_of(part: &PurposeWorkload) -> Option<(Load, u64)> {
    let settings = part.settings(&WorkloadSize::LEAST);
    let given = |name: &str| settings.settings.iter().find(|it| it.name == name);
    let text = |name| match &given(name)?.value {
        Value::Text(text) => Some(text.as_str()),
        _ => None,
    };
    let block = text("block-size").map_or(Some(KIB * KIB), |it| unit::parse_bytes(it).ok())?;
    // Streams end with their data, and what ends by the clock reads anywhere.
    let load = match (part.sized_by, text("mode")?) {
        (SizedBy::Clock, "read") => Load::RandomRead,
        (SizedBy::Bytes, "read") => Load::SequentialRead,
        (SizedBy::Bytes, "write") => Load::SequentialWrite,
        // What is made durable block by block is no figure of a drive.
        _ => return None,
    };
    Some((load, block / KIB))
}

/// The drives next to a figure: those whose models are just slower and just faster.
fn among(cell: &MetricCell, (load, block): (Load, u64)) -> Option<AmongDrives> {
    let asked = Claim {
        load,
        block: u32::try_from(block).ok()?,
        queue_depth: 1,
        value: 0.0,
        from: Origin::Fitted,
        source: String::new(),
    };
    // Claims have MB/s and requests a second.
    let times = if cell.metric.unit == "B/s" { 1e6 } else { 1.0 };
    let value = cell.value?.estimate;
    let models = Card::all_shipped().filter_map(|card| {
        let published = card.claims().iter().find(|claim| {
            claim.load == load && claim.queue_depth == 1 && u64::from(claim.block) == block
        });
        Some(ModelledDrive {
            value: card.modelled(&asked, SSD_BYTES).ok()? * times,
            published: published.map(|it| it.source.clone()),
            drive: card.model().to_owned(),
        })
    });
    let mut models: Vec<ModelledDrive> = models.collect();
    models.sort_by(|a, b| a.value.total_cmp(&b.value));
    let faster = models.partition_point(|it| it.value <= value);
    Some(AmongDrives {
        workload: cell.workload_name.clone(),
        unit: cell.metric.unit.clone(),
        value,
        slower: faster.checked_sub(1).and_then(|at| models.get(at)).cloned(),
        faster: models.get(faster).cloned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_base::event::{Better, MetricHead};
    use stackrace_judge::verdict::Interval;
    use stackrace_study::purpose;

    fn cell(name: &str, unit: &str, value: f64) -> MetricCell {
        let interval = Interval {
            estimate: value,
            low: value,
            high: value,
        };
        MetricCell {
            workload: 0,
            workload_name: name.to_owned(),
            metric: MetricHead::new("figure", unit, Better::Higher),
            primary: true,
            value: Some(interval),
            rounds: Vec::new(),
            log_step: 0.0,
        }
    }

    #[test]
    fn a_run_is_another_one_only_beyond_what_earlier_runs_differ_by() {
        let since = "2026-06-01".to_owned();
        let said = |now: f64, before: &[f64]| {
            let against = against(&cell("streams", "B/s", now), before, &since, 0.05);
            let placed = Placed {
                past: vec![against.unwrap()],
                ..Placed::default()
            };
            placed.sentences().remove(0)
        };
        let before = [212e6, 208e6, 217e6, 211e6, 214e6];
        assert_eq!(
            said(204e6, &before),
            "streams: 3.8 % slower than the median of 5 runs since 2026-06-01 (212 MB/s): not certain"
        );
        assert!(said(150e6, &before).ends_with(": certain"));
        assert!(said(300e6, &before).contains("42 % faster"));
        assert!(
            said(1e6, &before[..2]).ends_with("2 runs since 2026-06-01 (210 MB/s): not certain")
        );
        assert_eq!(
            against(&cell("streams", "B/s", 1.0), &[], &since, 0.05),
            None
        );
    }

    #[test]
    fn a_figure_stands_between_two_models() {
        let general = purpose::find("general").unwrap();
        let of = |name: &str| load_of(general.parts.iter().find(|it| it.name == name).unwrap());
        assert_eq!(of("random read 4 KiB"), Some((Load::RandomRead, 4)));
        assert_eq!(of("streaming write"), Some((Load::SequentialWrite, 1024)));
        assert_eq!(of("small files"), None);
        assert_eq!(of("random write 4 KiB"), None);
        let read = |value| {
            let among = among(&cell("reads", "op/s", value), (Load::RandomRead, 4));
            let placed = Placed {
                drives: vec![among.unwrap()],
                ..Placed::default()
            };
            placed.sentences().remove(0)
        };
        assert!(
            read(95.0).starts_with("reads: 95.0/s, between the models of "),
            "{}",
            read(95.0)
        );
        assert!(
            read(1.0).contains("below all models; the slowest is "),
            "{}",
            read(1.0)
        );
        assert!(
            read(1e9).contains("above all models; the fastest is nvme-ssd"),
            "{}",
            read(1e9)
        );
        // A maker's figure has its source.
        assert!(read(5000.0).contains("sata-ssd ("), "{}", read(5000.0));
    }
}
