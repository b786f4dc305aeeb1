//! The metrics every workload speaks of, and how they follow from an engine's outcome.

use hdrhistogram::Histogram;
use stackrace_engine::{Op, OpOutcome, PhaseOutcome};

use stackrace_base::event::histogram::p999;
use stackrace_base::event::{Better, MetricHead};

/// A metric of a workload of one phase, and how it follows from the outcome: the two stand together,
/// so that heads and values cannot come apart.
pub struct Figure<'a> {
    head: MetricHead,
    value: Box<Value<'a>>,
}

/// Function that takes a figure from an outcome; `None` if the outcome has none.
type Value<'a> = dyn Fn(&PhaseOutcome) -> Option<f64> + 'a;

impl<'a> Figure<'a> {
    /// A metric of its own.
    pub fn of(head: MetricHead, value: impl Fn(&PhaseOutcome) -> Option<f64> + 'a) -> Self {
        let value = Box::new(value);
        Self { head, value }
    }

    /// Bytes moved per second, SI.
    pub fn throughput() -> Self {
        Self::of(throughput_head(), throughput)
    }

    /// Operations per second, fsyncs not counted.
    pub fn operations() -> Self {
        Self::of(operations_head(), operations)
    }

    /// Operations of these kinds per second, under a name for them.
    pub fn rate(name: &str, kinds: &'static [Op]) -> Self {
        let head = MetricHead::new(name, "op/s", Better::Higher);
        Self::of(head, |outcome| operations_of(outcome, kinds))
    }

    /// Wall time of fixed work.
    pub fn elapsed() -> Self {
        Self::of(elapsed_head(), elapsed)
    }

    /// Processor time of the process, in user mode and in the kernel.
    pub fn cpu() -> [Self; 2] {
        let [user, system] = cpu_heads();
        [
            Self::of(user, |outcome| cpu(outcome)[0]),
            Self::of(system, |outcome| cpu(outcome)[1]),
        ]
    }

    /// A latency of one kind of operation.
    pub fn latency(op: Op, which: Latency) -> Self {
        let value = move |outcome: &PhaseOutcome| latency(outcome, op, which);
        Self::of(latency_head(op, which), value)
    }

    /// A service time of one kind of operation: from its issue, where an open loop counts latency
    /// from the intended start. A closed loop has none, as its latency is just that.
    pub fn service(op: Op, which: Latency) -> Self {
        let name = format!("{} service time {}", op.name(), which.name());
        Self::of(MetricHead::new(name, "ns", Better::Lower), move |outcome| {
            let service = of(outcome, op)?.service.as_ref()?;
            figure_of(&service.histogram, service.sum_ns, which)
        })
    }
}

/// The heads of figures.
pub fn heads(figures: Vec<Figure<'_>>) -> Vec<MetricHead> {
    figures.into_iter().map(|figure| figure.head).collect()
}

/// The values of figures; without an outcome, none.
pub fn values(figures: &[Figure<'_>], outcomes: &[PhaseOutcome]) -> Vec<Option<f64>> {
    let value = |figure: &Figure<'_>| outcomes.first().and_then(|outcome| (figure.value)(outcome));
    figures.iter().map(value).collect()
}

/// Returns the figures that the program of a trial reported; all `None` without an outcome.
pub fn reported(outcomes: &[PhaseOutcome], metrics: usize) -> Vec<Option<f64>> {
    let reported = outcomes.first().map(|outcome| outcome.reported.clone());
    let whole = reported.filter(|reported| reported.len() == metrics);
    whole.unwrap_or_else(|| vec![None; metrics])
}

/// Returns how finely values are known: what a program said of its own, one operation more or less where
/// time ended the phase (`timed`), the classes of a histogram.
pub fn resolution(
    heads: &[MetricHead],
    values: &[Option<f64>],
    outcomes: &[PhaseOutcome],
    timed: bool,
) -> Vec<Option<f64>> {
    /// Classes of a histogram of three significant digits, between a power of 2 and the next.
    const CLASSES: f64 = 1024.0;
    if let Some(program) = outcomes.iter().find(|outcome| !outcome.reported.is_empty()) {
        return program.reported_steps.clone();
    }
    // The shortest phase is the one in which an operation weighs most.
    let one = |bytes: bool| {
        let of = outcomes.iter().filter_map(|outcome| {
            let kinds = outcome.ops.iter();
            let (count, moved) =
                kinds.fold((0, 0), |sum, kind| (sum.0 + kind.count, sum.1 + kind.bytes));
            let amount = match bytes {
                true => moved as f64 / count.max(1) as f64,
                false => 1.0,
            };
            (outcome.elapsed_ns > 0).then(|| amount * 1e9 / outcome.elapsed_ns as f64)
        });
        of.reduce(f64::max).filter(|_| timed)
    };
    let step = |(head, value): (&MetricHead, &Option<f64>)| match head.unit.as_str() {
        "op/s" => one(false),
        "B/s" => one(true),
        "ns" if !head.name.ends_with("mean") => value.map(|value| value / CLASSES),
        _ => None,
    };
    heads.iter().zip(values).map(step).collect()
}

/// Bytes moved per second, SI.
pub fn throughput_head() -> MetricHead {
    MetricHead::new("throughput", "B/s", Better::Higher)
}

/// The metric of operations completed per second.
pub fn operations_head() -> MetricHead {
    MetricHead::new("operations", "op/s", Better::Higher)
}

/// Wall time of fixed work.
pub fn elapsed_head() -> MetricHead {
    MetricHead::new("elapsed", "s", Better::Lower)
}

/// Processor time of the process, in user mode and in the kernel.
pub fn cpu_heads() -> [MetricHead; 2] {
    ["user time", "system time"].map(|name| MetricHead::new(name, "s", Better::Lower))
}

/// A latency of one kind of operation.
pub fn latency_head(op: Op, which: Latency) -> MetricHead {
    named_latency_head(op.name(), which)
}

/// A latency of what goes by this name.
pub fn named_latency_head(name: &str, which: Latency) -> MetricHead {
    let name = format!("{name} latency {}", which.name());
    MetricHead::new(name, "ns", Better::Lower)
}

/// A figure of a latency distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Latency {
    /// Smallest.
    Min,
    /// Arithmetic mean.
    Mean,
    /// Median.
    P50,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
}

impl Latency {
    fn name(self) -> &'static str {
        match self {
            Self::Min => "min",
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
        }
    }
}

/// The entry of one kind of operation.
pub fn of(outcome: &PhaseOutcome, op: Op) -> Option<&OpOutcome> {
    outcome
        .ops
        .iter()
        .find(|entry| entry.op == op && entry.count > 0)
}

/// Bytes per second over the whole phase.
pub fn throughput(outcome: &PhaseOutcome) -> Option<f64> {
    let bytes: u64 = outcome.ops.iter().map(|entry| entry.bytes).sum();
    per_second(bytes, outcome.elapsed_ns)
}

/// Operations per second over the whole phase, fsyncs not counted.
pub fn operations(outcome: &PhaseOutcome) -> Option<f64> {
    let count: u64 = outcome
        .ops
        .iter()
        // An fsync ends operations; it is none that the workload was asked for.
        .filter(|entry| entry.op != Op::Fsync)
        .map(|entry| entry.count)
        .sum();
    per_second(count, outcome.elapsed_ns)
}

/// Operations of these kinds per second over the whole phase.
pub fn operations_of(outcome: &PhaseOutcome, kinds: &[Op]) -> Option<f64> {
    let counted = outcome.ops.iter().filter(|entry| kinds.contains(&entry.op));
    per_second(counted.map(|entry| entry.count).sum(), outcome.elapsed_ns)
}

/// Processor time, s, user and system; less than the kernel can count is a microsecond, as ratios
/// are taken on the log scale.
pub fn cpu(outcome: &PhaseOutcome) -> [Option<f64>; 2] {
    // At least 1 µs: a ratio needs a figure above 0, and the kernel counts no finer.
    [outcome.cpu_user_ns, outcome.cpu_system_ns].map(|ns| Some(ns.max(1000) as f64 / 1e9))
}

/// Duration of the phase, s; `None` if it took no time that could be measured.
pub fn elapsed(outcome: &PhaseOutcome) -> Option<f64> {
    (outcome.elapsed_ns > 0).then(|| outcome.elapsed_ns as f64 / 1e9)
}

/// A latency figure, ns.
pub fn latency(outcome: &PhaseOutcome, op: Op, which: Latency) -> Option<f64> {
    let entry = of(outcome, op)?;
    figure_of(&entry.latency, entry.latency_sum_ns, which)
}

/// A latency figure of several kinds of operation taken together, ns.
pub fn latency_of_all(outcome: &PhaseOutcome, ops: &[Op], which: Latency) -> Option<f64> {
    let (all, sum_ns) = latencies_of_all(outcome, ops)?;
    figure_of(&all, sum_ns, which)
}

/// The latencies of several kinds of operation taken together, and their sum, ns; `None` if there was none.
pub fn latencies_of_all(outcome: &PhaseOutcome, ops: &[Op]) -> Option<(Histogram<u64>, u128)> {
    let mut entries = ops.iter().filter_map(|op| of(outcome, *op));
    let first = entries.next()?;
    let (mut all, mut sum_ns) = (first.latency.clone(), first.latency_sum_ns);
    for entry in entries {
        sum_ns += entry.latency_sum_ns;
        // Histograms of one engine have equal bounds, so that adding them loses nothing.
        all.add(&entry.latency).ok()?;
    }
    Some((all, sum_ns))
}

/// A figure of a distribution of times, ns; `None` if too few operations stand behind it.
fn figure_of(histogram: &Histogram<u64>, sum_ns: u128, which: Latency) -> Option<f64> {
    let enough = which != Latency::P999 || p999(histogram).is_some();
    enough.then(|| figure(histogram, sum_ns, which))
}

/// A figure of a distribution of times, ns.
pub fn figure(histogram: &Histogram<u64>, sum_ns: u128, which: Latency) -> f64 {
    let value = match which {
        Latency::Min => histogram.min() as f64,
        Latency::Mean => sum_ns as f64 / histogram.len().max(1) as f64,
        Latency::P50 => histogram.value_at_quantile(0.50) as f64,
        Latency::P95 => histogram.value_at_quantile(0.95) as f64,
        Latency::P99 => histogram.value_at_quantile(0.99) as f64,
        Latency::P999 => histogram.value_at_quantile(0.999) as f64,
    };
    // Ratios are taken on the log scale: a latency below the clock's resolution counts as 1 ns.
    value.max(1.0)
}

/// Rate of so much in so many ns, per second; `None` if nothing, or in no time.
pub fn per_second(amount: u64, elapsed_ns: u64) -> Option<f64> {
    // Nothing done is no rate of 0: it has no logarithm and no place in a ratio.
    (amount > 0 && elapsed_ns > 0).then(|| amount as f64 * 1e9 / elapsed_ns as f64)
}
