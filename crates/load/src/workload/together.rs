//! What machines that do the same at once carry together.
//!
//! Only rates add up: the work of all machines in the time that each of them took. Latencies and
//! times are those of one machine, and are left to it.

use super::metric;
use stackrace_base::event::{ClientPhase, ClientsTogether, MetricHead};

/// Suffix of the name of a rate that is meant of all machines.
const ALL_NODES: &str = ", all nodes";

fn is_rate(head: &MetricHead) -> bool {
    head.unit.ends_with("/s")
}

/// The rates among the metrics of a workload, of all machines together: `throughput, all nodes`.
pub fn heads(metrics: &[MetricHead]) -> Vec<MetricHead> {
    let rates = metrics.iter().filter(|head| is_rate(head));
    rates
        .map(|head| MetricHead {
            name: format!("{}{ALL_NODES}", head.name),
            ..head.clone()
        })
        .collect()
}

/// Values of [`heads`]: the sum over machines, given the values of `metrics` on each; none where one
/// of them has none.
pub fn values(metrics: &[MetricHead], machines: &[&[Option<f64>]]) -> Vec<Option<f64>> {
    let rates = metrics.iter().enumerate().filter(|(_, head)| is_rate(head));
    rates
        .map(|(at, _)| {
            let of_each = machines.iter().map(|values| values.get(at).copied()?);
            // None if one machine has no value: a sum of the others would look like a slower
            // storage.
            of_each.sum()
        })
        .collect()
}

/// Suffix of the name of a rate while all clients were at work.
const COMMON_WINDOW: &str = ", all at work";

/// The rates of a phase that can be told for the time in which all clients were at work alone:
/// `throughput, all at work`. The metrics themselves are from the first start to the last end.
pub fn window_heads(metrics: &[MetricHead]) -> Vec<MetricHead> {
    let rates = metrics.iter().filter(|head| in_window(head).is_some());
    rates
        .map(|head| MetricHead {
            name: format!("{}{COMMON_WINDOW}", head.name),
            ..head.clone()
        })
        .collect()
}

/// Values of [`window_heads`], of the first phase.
pub fn window_values(metrics: &[MetricHead], clients: &ClientsTogether) -> Vec<Option<f64>> {
    let rate = |of: fn(&ClientPhase) -> f64| {
        let seconds = clients.phases.first()?.window_ns as f64 / 1e9;
        let each = clients.each.iter().map(|part| part.phases.first().map(of));
        // A time too short to be one has no rate.
        (seconds > 0.0).then_some(())?;
        each.sum::<Option<f64>>().map(|sum| sum / seconds)
    };
    metrics.iter().filter_map(in_window).map(rate).collect()
}

/// Returns the count for a rate while all were at work; `None` if it is not one of those that can
/// be told.
fn in_window(head: &MetricHead) -> Option<fn(&ClientPhase) -> f64> {
    if *head == metric::throughput_head() {
        Some(|phase| phase.window_bytes)
    } else if *head == metric::operations_head() {
        Some(|phase| phase.window_operations)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_base::event::{Better, ClientPart, CommonPhase};

    #[test]
    fn rates_while_all_were_at_work_are_sums_over_that_time() {
        let part = |window_bytes| ClientPart {
            phases: vec![ClientPhase {
                window_bytes,
                ..ClientPhase::default()
            }],
            ..ClientPart::default()
        };
        let mut clients = ClientsTogether {
            each: vec![part(3e6), part(1e6)],
            phases: vec![CommonPhase {
                window_ns: 2_000_000_000,
                ..CommonPhase::default()
            }],
        };
        let metrics = [metric::throughput_head(), metric::elapsed_head()];
        let names: Vec<String> = window_heads(&metrics)
            .into_iter()
            .map(|it| it.name)
            .collect();
        assert_eq!(names, ["throughput, all at work"]);
        assert_eq!(window_values(&metrics, &clients), [Some(2e6)]);
        clients.phases[0].window_ns = 0;
        assert_eq!(window_values(&metrics, &clients), [None]);
    }

    #[test]
    fn rates_add_up_and_nothing_else_does() {
        let metrics = [("throughput", "B/s"), ("elapsed", "s"), ("files", "op/s")];
        let metrics = metrics.map(|(name, unit)| MetricHead {
            name: name.to_owned(),
            unit: unit.to_owned(),
            better: Better::Higher,
        });
        let names: Vec<String> = heads(&metrics).into_iter().map(|head| head.name).collect();
        assert_eq!(names, ["throughput, all nodes", "files, all nodes"]);
        let first = [Some(3.0), Some(10.0), Some(7.0)];
        let second = [Some(1.5), Some(20.0), None];
        assert_eq!(values(&metrics, &[&first]), [Some(3.0), Some(7.0)]);
        assert_eq!(values(&metrics, &[&first, &second]), [Some(4.5), None]);
    }
}
