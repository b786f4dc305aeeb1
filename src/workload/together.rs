//! What machines that do the same at once carry together.
//!
//! Only rates add up: the work of all machines in the time that each of them took. Latencies and
//! times are those of one machine, and are left to it.

use crate::event::MetricHead;

/// What follows the name of a rate that is meant of all machines.
const ALL_NODES: &str = ", all nodes";

fn is_rate(head: &MetricHead) -> bool {
    head.unit.ends_with("/s")
}

/// The rates among the metrics of a workload, of all machines together: `throughput, all nodes`.
pub(crate) fn heads(metrics: &[MetricHead]) -> Vec<MetricHead> {
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
pub(crate) fn values(metrics: &[MetricHead], machines: &[&[Option<f64>]]) -> Vec<Option<f64>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Better;

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
