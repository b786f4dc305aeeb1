//! Quantiles that too few operations would stand for.

use stackrace_base::event::{MetricHead, NamedQuantile};
use stackrace_base::setting::{Refusal, Span};
use stackrace_base::unit;
use stackrace_load::workload::Workload;

/// The refusal of a quantile that too few operations of a trial stand for, with the one that they are enough for.
/// `judged`: the name of the workload, its metrics, and which of them is meant; `workloads`: it in each configuration.
pub(super) fn too_few<'a>(
    span: &Span,
    judged: (&str, &[MetricHead], usize),
    workloads: impl Iterator<Item = &'a Box<dyn Workload>>,
) -> Option<Refusal> {
    let (name, metrics, at) = judged;
    let quantile = NamedQuantile::of(&metrics[at].name)?;
    // None where only the storage tells how many there are.
    let count = workloads
        .filter_map(|it| it.operations_most(quantile.op))
        .min()?;
    if count >= quantile.needed {
        return None;
    }
    let others = metrics.iter().filter_map(|it| NamedQuantile::of(&it.name));
    let fits = others.filter(|it| it.op == quantile.op && it.needed <= count);
    let enough = format!("give it {} operations", quantile.needed);
    Some(Refusal::at(
        span,
        format!(
            "a trial of {name} has {} operations, and {} takes {}",
            unit::count(count),
            quantile.word,
            unit::count(quantile.needed)
        ),
        match fits.max_by_key(|it| it.needed) {
            Some(fit) => format!("take {}, or {enough}", fit.word),
            None => enough,
        },
    ))
}
