//! What the engine measured, in the figures sysbench prints.

use libm::{exp, log as ln};
use stackrace_base::printed::PrintedFigure;
use stackrace_engine::sysbench::{
    BUCKETS, LiveCounters, SysbenchOutcome, SysbenchVersion, Transfer, bucket_ms, bucket_of,
};
use stackrace_engine::{Op, OpOutcome, PhaseOutcome};

use super::options::SysbenchOptions;
use super::print::banner;
use super::report::{
    Done, Head, Intermediate, Results, SysbenchLatency, SysbenchLayout, SysbenchReport,
};

/// Latency histogram of version 0.4: so many logarithmic buckets up to 10^13 ns.
const BUCKETS_0_4: f64 = 100_000.0;
const HIGH_0_4: f64 = 1e13;

pub(super) fn layout(version: SysbenchVersion) -> SysbenchLayout {
    match version {
        SysbenchVersion::V0_4 => SysbenchLayout::V0_4,
        SysbenchVersion::V1_0 => SysbenchLayout::V1_0,
    }
}

/// Extra flags as they are printed: words in 1.0, the bits of open(2) in 0.4.
pub(super) fn flags(options: &SysbenchOptions) -> String {
    let plan = &options.plan;
    let all = [
        // O_SYNC, O_DSYNC and O_DIRECT of Linux on x86-64, as 0.4 prints them. The blanks behind
        // the words are those of 1.0.
        (plan.open_sync, "sync ", 0o4_010_000),
        (plan.open_dsync, "dsync ", 0o10_000),
        (plan.direct, "directio", 0o40_000),
    ];
    let given = all.iter().filter(|flag| flag.0);
    match plan.version {
        SysbenchVersion::V0_4 => given.fold(0, |bits, flag| bits | flag.2).to_string(),
        SysbenchVersion::V1_0 if given.clone().count() == 0 => "(none)".to_owned(),
        SysbenchVersion::V1_0 => given.map(|flag| flag.1).collect(),
    }
}

/// Makes the head that is printed before the run.
pub(super) fn head(options: &SysbenchOptions) -> Head {
    let plan = &options.plan;
    let mode = options.mode.map(super::report::printed);
    let bytes = |bytes: u64| bytes as f64;
    let block = u64::from(plan.block_size);
    let merged = plan.mode.sequential() && plan.merged > 0;
    Head {
        layout: layout(plan.version),
        banner: banner(layout(plan.version)),
        threads: u64::from(plan.threads),
        // It was given as a whole number.
        rate: plan.rate.map(|rate| rate as u64),
        interval_s: (options.interval_s > 0).then_some(options.interval_s),
        validate: plan.validate,
        seed: match (plan.version, options.seed) {
            (SysbenchVersion::V0_4, _) if options.seeded => {
                "Initializing random number generator from timer.".to_owned()
            }
            (SysbenchVersion::V0_4, _) => String::new(),
            (SysbenchVersion::V1_0, 0) => {
                "Initializing random number generator from current time".to_owned()
            }
            (SysbenchVersion::V1_0, seed) => {
                format!("Initializing random number generator from seed ({seed}).")
            }
        },
        flags: flags(options),
        files: u64::from(plan.files),
        file_bytes: bytes(plan.file_bytes()),
        total_bytes: bytes(plan.total_bytes),
        block_bytes: bytes(block),
        merged_bytes: merged.then(|| bytes(block * u64::from(plan.merged))),
        random: (!plan.mode.sequential()).then_some((plan.events, plan.ratio)),
        // fsync after each write stands in for bursts, and for the end.
        fsync_every: (plan.fsync_every > 0 && !plan.fsync_each)
            .then(|| u64::from(plan.fsync_every)),
        fsync_each: plan.fsync_each,
        fsync_at_end: plan.fsync_at_end && !plan.fsync_each,
        transfer: match plan.transfer {
            Transfer::Sync => "synchronous",
            Transfer::Async { .. } => "asynchronous",
            Transfer::Mmap => "fast mmaped",
        }
        .to_owned(),
        mode: mode.unwrap_or_default().to_owned(),
    }
}

/// Makes the line about the last `seconds`, up to second `second`.
pub(super) fn step(
    options: &SysbenchOptions,
    live: &LiveCounters,
    second: u64,
    seconds: f64,
) -> Intermediate {
    let seen = live.take();
    let rate = |count: u64| count as f64 / seconds;
    Intermediate {
        second,
        read: rate(seen.read_bytes),
        written: rate(seen.written_bytes),
        fsyncs: rate(seen.fsyncs),
        percentile: (
            options.percentile,
            percentile(&seen.latencies, options.percentile),
        ),
    }
}

/// The bucket in which the counts reach the rank, as sysbench rounds it.
fn percentile(counts: &[u64], rank: u64) -> f64 {
    let all: u64 = counts.iter().sum();
    if all == 0 {
        return 0.0;
    }
    let needed = (all as f64 * rank as f64 / 100.0 + 0.5).floor() as u64;
    let mut sum = 0;
    let reached = counts.iter().position(|count| {
        sum += count;
        sum >= needed
    });
    bucket_ms(reached.unwrap_or(counts.len() - 1))
}

/// Makes the report that is printed after the run.
pub(super) fn report(options: &SysbenchOptions, run: &SysbenchOutcome) -> SysbenchReport {
    let events: Vec<Vec<&OpOutcome>> = run
        .threads
        .iter()
        .map(|ops| ops.iter().filter(|it| is_event(options, it.op)).collect())
        .collect();
    let all: Vec<&OpOutcome> = events.iter().flatten().copied().collect();
    let buckets = buckets(&all);
    let rows = buckets.iter().enumerate().filter(|row| *row.1 > 0);
    SysbenchReport {
        head: head(options),
        intermediate: Vec::new(),
        histogram: match options.histogram {
            true => rows.map(|(at, count)| (bucket_ms(at), *count)).collect(),
            false => Vec::new(),
        },
        cut_off: false,
        results: Results {
            done: done(options, &run.outcome),
            total_s: PrintedFigure::exact(run.outcome.elapsed_ns as f64 / 1e9),
            events: all.iter().map(|it| it.count).sum(),
            latency: latency(options, &all, &buckets),
            fairness: fairness(&events),
        },
    }
}

/// Returns true if operations of this kind are events.
fn is_event(options: &SysbenchOptions, op: Op) -> bool {
    // 1.0 counts the fsyncs of bursts as events; one after each write is inside the write's event.
    op != Op::Fsync || (options.plan.version == SysbenchVersion::V1_0 && !options.plan.fsync_each)
}

/// Events in the buckets of version 1.0. Latencies are known to a tenth of a percent, of which
/// a bucket has 1.8: one in twenty may count for the neighbour.
fn buckets(events: &[&OpOutcome]) -> Vec<u64> {
    let mut counts = vec![0; BUCKETS];
    for kind in events {
        for step in kind.latency.iter_recorded() {
            counts[bucket_of(step.value_iterated_to())] += step.count_since_last_iteration();
        }
    }
    counts
}

fn latency(options: &SysbenchOptions, events: &[&OpOutcome], buckets: &[u64]) -> SysbenchLatency {
    let count: u64 = events.iter().map(|it| it.count).sum();
    let sum = events.iter().map(|it| it.latency_sum_ns).sum::<u128>() as f64 / 1e6;
    let rank = options.percentile;
    let value = match options.plan.version {
        SysbenchVersion::V1_0 => percentile(buckets, rank),
        SysbenchVersion::V0_4 => percentile_0_4(events, count, rank),
    };
    SysbenchLatency {
        min: events.iter().map(|it| it.latency.min()).min().unwrap_or(0) as f64 / 1e6,
        mean: PrintedFigure::exact(sum / count.max(1) as f64),
        max: events.iter().map(|it| it.latency.max()).max().unwrap_or(0) as f64 / 1e6,
        percentile: (rank > 0).then(|| (rank, PrintedFigure::exact(value))),
        sum,
    }
}

/// The percentile rounded to the nearest bucket of version 0.4, ms.
fn percentile_0_4(events: &[&OpOutcome], count: u64, rank: u64) -> f64 {
    let mut all: Vec<(u64, u64)> = events
        .iter()
        .flat_map(|it| it.latency.iter_recorded())
        .map(|step| (step.value_iterated_to(), step.count_since_last_iteration()))
        .collect();
    // Each kind of operation has a histogram of its own; one after the other they are in no order.
    all.sort_unstable();
    let needed = (count as f64 * rank as f64 / 100.0 + 0.5).floor() as u64;
    let mut sum = 0;
    let reached = all.iter().find(|(_, count)| {
        sum += count;
        sum >= needed
    });
    let per_step = (BUCKETS_0_4 - 1.0) / ln(HIGH_0_4);
    let ns = reached.map_or(1, |(ns, _)| *ns).max(1) as f64;
    exp((ln(ns) * per_step).round() / per_step) / 1e6
}

fn done(options: &SysbenchOptions, outcome: &PhaseOutcome) -> Done {
    let of = |op| outcome.ops.iter().find(|it| it.op == op);
    let count = |op| of(op).map_or(0, |it| it.count);
    let bytes = |op| of(op).map_or(0, |it| it.bytes) as f64;
    let seconds = outcome.elapsed_ns.max(1) as f64 / 1e9;
    let (reads, writes, fsyncs) = (count(Op::Read), count(Op::Write), count(Op::Fsync));
    let (read, written) = (bytes(Op::Read), bytes(Op::Write));
    let exact = PrintedFigure::exact;
    match options.plan.version {
        SysbenchVersion::V0_4 => Done::Counted {
            reads,
            writes,
            other: fsyncs,
            read: exact(read),
            written: exact(written),
            transferred: exact(read + written),
            bytes_per_s: exact((read + written) / seconds),
            // 0.4 does not count fsyncs as requests.
            requests_per_s: exact((reads + writes) as f64 / seconds),
        },
        SysbenchVersion::V1_0 => Done::Rated {
            reads: exact(reads as f64 / seconds),
            writes: exact(writes as f64 / seconds),
            fsyncs: exact(fsyncs as f64 / seconds),
            read: exact(read / seconds),
            written: exact(written / seconds),
        },
    }
}

/// Mean and standard deviation (of the population) of events, then of seconds at work.
fn fairness(threads: &[Vec<&OpOutcome>]) -> [f64; 4] {
    let spread = |of: &dyn Fn(&OpOutcome) -> f64| {
        let sums = threads
            .iter()
            .map(|ops| ops.iter().map(|it| of(it)).sum::<f64>());
        let number = threads.len().max(1) as f64;
        let mean = sums.clone().sum::<f64>() / number;
        let square = sums.map(|sum| (sum - mean).powi(2)).sum::<f64>() / number;
        (mean, square.sqrt())
    };
    let events = spread(&|it| it.count as f64);
    let seconds = spread(&|it| it.latency_sum_ns as f64 / 1e9);
    [events.0, events.1, seconds.0, seconds.1]
}
