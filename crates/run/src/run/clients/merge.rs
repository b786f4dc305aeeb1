//! What all clients did, put together as if one program had done it.

use hdrhistogram::Histogram;
use stackrace_engine::{Op, OpOutcome, PhaseEnd, PhaseOutcome, Slice, Timing};

use super::process::ClientMeasured;
use stackrace_base::event::histogram::decoded;
use stackrace_base::event::{
    ClientPart, ClientPhase, CommonPhase, Counted, OperationObservation, PhaseObservation,
    TimingObservation,
};
use stackrace_machine::observe;

/// A phase of all clients.
pub(super) struct CommonOutcome {
    /// Outcome of all together, from the first start to the last end.
    pub outcome: PhaseOutcome,
    /// Figures of how well they did it at the same time.
    pub phase: CommonPhase,
    /// Part of each client, in their order.
    pub each: Vec<ClientPhase>,
}

/// Time in which all were at work, ns of one clock.
#[derive(Clone, Copy)]
struct Window {
    from: i64,
    to: i64,
}

/// Puts a phase together.
///
/// # Errors
/// What a client says of it cannot be read, or none took part.
pub(super) fn common(name: &str, measured: Vec<ClientMeasured>) -> Result<CommonOutcome, String> {
    let ended = |it: &ClientMeasured| {
        it.began_ns
            .saturating_add_unsigned(it.observation.elapsed_ns)
    };
    let starts = || measured.iter().map(|it| it.began_ns);
    let ends = || measured.iter().map(ended);
    let (Some(first), Some(last), Some(early), Some(late)) =
        (starts().min(), starts().max(), ends().min(), ends().max())
    else {
        return Err("no client took part".to_owned());
    };
    let window = Window {
        from: last,
        to: early,
    };
    let phase = CommonPhase {
        name: name.to_owned(),
        skew_ns: last.abs_diff(first),
        window_ns: u64::try_from(early.saturating_sub(last)).unwrap_or(0),
        elapsed_ns: late.abs_diff(first),
    };
    let each = measured.iter().map(|it| part(it, first, window));
    let each = each.collect();
    let observations = measured.iter().map(|it| &it.observation);
    let mut outcome = merged(observations).ok_or("a histogram of a client cannot be read")?;
    outcome.elapsed_ns = phase.elapsed_ns;
    Ok(CommonOutcome {
        outcome,
        phase,
        each,
    })
}

/// Returns what one process did.
fn part(measured: &ClientMeasured, first: i64, window: Window) -> ClientPhase {
    let observed = &measured.observation;
    let work = observed
        .operations
        .iter()
        .filter(|op| op.op != Op::Fsync.name());
    let (mut operations, mut bytes) = (0_u64, 0_u64);
    for op in work.clone() {
        // What another machine says may be anything.
        operations = op.count.saturating_add(operations);
        bytes = op.bytes.saturating_add(bytes);
    }
    let (window_operations, window_bytes) = within(observed, measured.began_ns, window);
    ClientPhase {
        began_ns: measured.began_ns.abs_diff(first),
        elapsed_ns: observed.elapsed_ns,
        operations,
        bytes,
        window_operations,
        window_bytes,
        latency_ns_p99: work
            .max_by_key(|op| op.count)
            .map_or(0, |op| op.latency_ns_p99),
    }
}

/// Operations and bytes of the steps that lie in a window; of a step that lies in it in part, its share.
fn within(observed: &PhaseObservation, began_ns: i64, window: Window) -> (f64, f64) {
    let mut sums = (0.0, 0.0);
    let ended = began_ns.saturating_add_unsigned(observed.elapsed_ns);
    for (at, (operations, bytes)) in observed.series.iter().enumerate() {
        let from = began_ns.saturating_add_unsigned((at as u64).saturating_mul(observed.step_ns));
        // The last step ends with the phase.
        let to = from.saturating_add_unsigned(observed.step_ns).min(ended);
        let inside = to.min(window.to).saturating_sub(from.max(window.from));
        let share = inside.max(0) as f64 / (to.saturating_sub(from).max(1) as f64);
        sums.0 += *operations as f64 * share.min(1.0);
        sums.1 += *bytes as f64 * share.min(1.0);
    }
    sums
}

/// Merges all observations of a phase into one outcome: everything adds up, histograms too.
fn merged<'a>(
    observations: impl Iterator<Item = &'a PhaseObservation> + Clone,
) -> Option<PhaseOutcome> {
    let first = observations.clone().next()?;
    let mut series: Vec<Slice> = Vec::new();
    let mut lateness: Option<Timing> = None;
    let (mut depth, mut unissued, mut cpu) = (0.0, 0_u64, (0_u64, 0_u64));
    for one in observations.clone() {
        series.resize(series.len().max(one.series.len()), Slice::default());
        for (sum, (ops, bytes)) in series.iter_mut().zip(&one.series) {
            sum.ops = sum.ops.saturating_add(*ops);
            sum.bytes = sum.bytes.saturating_add(*bytes);
        }
        if let Some(more) = &one.lateness {
            add_timing(&mut lateness, more)?;
        }
        depth += one.depth_achieved;
        unissued = one.unissued.unwrap_or(0).saturating_add(unissued);
        cpu.0 = one.cpu_user_ns.unwrap_or(0).saturating_add(cpu.0);
        cpu.1 = one.cpu_system_ns.unwrap_or(0).saturating_add(cpu.1);
    }
    let kinds = Op::ALL.into_iter();
    let ops = kinds.filter_map(|op| {
        let of_each = observations.clone().flat_map(|one| &one.operations);
        let mut same = of_each.filter(|known| known.op == op.name()).peekable();
        same.peek()?;
        Some(together(op, same))
    });
    Some(PhaseOutcome {
        ended: PhaseEnd::Complete,
        elapsed_ns: 0,
        cpu_user_ns: cpu.0,
        cpu_system_ns: cpu.1,
        ops: ops.collect::<Option<Vec<_>>>()?,
        threads: Vec::new(),
        lateness,
        unissued,
        verified_bytes: 0,
        slice_ns: first.step_ns,
        series,
        promised: Vec::new(),
        replayed: None,
        reported: Vec::new(),
        reported_steps: Vec::new(),
        printed: [String::new(), String::new()],
        told: Vec::new(),
        stopped: None,
        work: None,
        stretches: Vec::new(),
        parts: Vec::new(),
        error: None,
        short: 0,
        engine: "clients",
        engine_why: format!("each: {}", first.engine),
        depth_achieved: depth,
        clock: "monotonic",
        clock_error: 0.0,
        clock_back: 0,
    })
}

/// Merges one kind of operation of all clients.
fn together<'a>(op: Op, each: impl Iterator<Item = &'a OperationObservation>) -> Option<OpOutcome> {
    let mut sum: Option<OpOutcome> = None;
    for one in each {
        let histogram = decoded(&one.histogram)?;
        let latency_sum_ns = (one.latency_ns_mean * one.count as f64) as u128;
        let outcome = sum.get_or_insert_with(|| OpOutcome {
            op,
            count: 0,
            bytes: 0,
            latency_sum_ns: 0,
            latency: Histogram::new_from(&histogram),
            saturated: 0,
            service: None,
        });
        outcome.count = outcome.count.saturating_add(one.count);
        outcome.bytes = outcome.bytes.saturating_add(one.bytes);
        outcome.latency_sum_ns = outcome.latency_sum_ns.saturating_add(latency_sum_ns);
        outcome.latency.add(&histogram).ok()?;
        if let Some(service) = &one.service {
            add_timing(&mut outcome.service, service)?;
        }
    }
    sum
}

fn add_timing(sum: &mut Option<Timing>, more: &TimingObservation) -> Option<()> {
    let histogram = decoded(&more.histogram)?;
    let sum = sum.get_or_insert_with(|| Timing {
        sum_ns: 0,
        histogram: Histogram::new_from(&histogram),
    });
    sum.sum_ns += (more.ns_mean * histogram.len() as f64) as u128;
    sum.histogram.add(&histogram).ok()
}

/// Returns what the systems of all clients counted. Processes add up; a machine is counted once, by the first of its
/// processes.
pub(super) fn counted(each: &[ClientPart]) -> Counted {
    let mut sum = Counted::default();
    let mut cpus = 0_u32;
    let mut window_ns = None;
    for part in each {
        let mut more = part.counted.clone();
        if part.process == 1 {
            cpus = more.cpus.saturating_add(cpus);
        } else {
            more.cpu_machine_busy_ns = 0;
            more.cpu_steal_ns = 0;
            more.kernel_threads_ns = more.kernel_threads_ns.map(|_| 0);
        }
        // Interfaces of different machines have the same names: they are looked at with each machine.
        more.interfaces.clear();
        window_ns = window_ns.max(more.window_ns);
        observe::add(&mut sum, &more);
    }
    Counted {
        cpus,
        // They ran side by side, and not one after the other.
        window_ns,
        // A pause is one of a single machine: it is looked for there.
        paused_ns: Some(0),
        suspended_ns: Some(0),
        ..sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackrace_base::event::histogram::encoded;
    use stackrace_base::time::{Clock, SystemClock};

    /// Imagines what a client measured that read blocks with these latencies, beginning at a time.
    fn client(began_ns: i64, elapsed_ns: u64, latencies: &[u64]) -> ClientMeasured {
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
        latencies
            .iter()
            .for_each(|ns| histogram.record(*ns).unwrap());
        let slices = elapsed_ns.div_ceil(100_000_000);
        let (count, bytes) = (latencies.len() as u64, latencies.len() as u64 * 4096);
        let operation = OperationObservation {
            op: "read".to_owned(),
            count,
            bytes,
            latency_ns_min: histogram.min(),
            latency_ns_mean: latencies.iter().sum::<u64>() as f64 / count as f64,
            latency_ns_p50: histogram.value_at_quantile(0.5),
            latency_ns_p95: histogram.value_at_quantile(0.95),
            latency_ns_p99: histogram.value_at_quantile(0.99),
            latency_ns_p999: None,
            latency_ns_max: histogram.max(),
            histogram: encoded(&histogram),
            service: None,
        };
        let observation = PhaseObservation {
            name: "read".to_owned(),
            elapsed_ns,
            cpu_user_ns: Some(1),
            cpu_system_ns: Some(1),
            engine: "sync".to_owned(),
            clock: "tsc".to_owned(),
            depth_achieved: 1.0,
            offered_per_s: None,
            operations: vec![operation],
            step_ns: 100_000_000,
            series: vec![(count / slices, bytes / slices); slices as usize],
            lateness: None,
            unissued: None,
            threads: Vec::new(),
            told: Vec::new(),
            work: None,
            replayed: None,
        };
        ClientMeasured {
            observation,
            began_ns,
        }
    }

    /// Latencies of a client: each has a middle of its own, and a long tail.
    fn latencies(of: u64, count: u64) -> Vec<u64> {
        let drawn = |at: u64| {
            let hash = blake3::hash(format!("{of} {at}").as_bytes());
            u32::from_le_bytes(hash.as_bytes()[..4].try_into().unwrap()) as f64
                / f64::from(u32::MAX)
        };
        let middle = 20_000.0 * (1 + of % 7) as f64;
        let each = (0..count).map(|at| (middle / (1.001 - drawn(at)).powf(0.7)) as u64);
        each.collect()
    }

    #[test]
    fn merged_percentiles_are_those_of_all_latencies() {
        let each: Vec<Vec<u64>> = (0..16).map(|of| latencies(of, 2000)).collect();
        let measured = each.iter().map(|each| client(0, 1_000_000_000, each));
        let merged = common("read", measured.collect()).unwrap().outcome;
        let mut raw: Vec<u64> = each.concat();
        raw.sort_unstable();
        let op = &merged.ops[0];
        assert_eq!(op.count, raw.len() as u64);
        for part in [0.5, 0.9, 0.95, 0.99, 0.999, 1.0] {
            let at = ((raw.len() as f64 * part).ceil() as usize).max(1) - 1;
            let (exact, said) = (raw[at] as f64, op.latency.value_at_quantile(part) as f64);
            assert!(
                (said / exact - 1.0).abs() < 0.01,
                "{part}: {said} for {exact}"
            );
        }
        // The mean of the clients' own percentiles is another figure, which is why it is never taken.
        let own = each.iter().map(|each| {
            let mut each = each.clone();
            each.sort_unstable();
            each[each.len() * 99 / 100] as f64
        });
        let averaged = own.sum::<f64>() / 16.0;
        let exact = raw[raw.len() * 99 / 100] as f64;
        assert!(
            (averaged / exact - 1.0).abs() > 0.02,
            "{averaged} for {exact}"
        );
    }

    #[test]
    fn the_window_is_the_time_in_which_all_were_at_work() {
        let latencies = vec![1000; 1000];
        // One begins 100 ms late, the other one ends 500 ms early.
        let late = client(100_000_000, 900_000_000, &latencies);
        let early = client(0, 500_000_000, &latencies);
        let common = common("read", vec![late, early]).unwrap();
        assert_eq!(common.phase.skew_ns, 100_000_000);
        assert_eq!(common.phase.window_ns, 400_000_000);
        assert_eq!(common.phase.elapsed_ns, 1_000_000_000);
        assert_eq!(common.outcome.elapsed_ns, 1_000_000_000);
        let within: Vec<f64> = common
            .each
            .iter()
            .map(|each| each.window_operations)
            .collect();
        // 4 of its 9 steps, and 4 of its 5.
        assert!(
            (within[0] - 444.0).abs() < 1.0 && (within[1] - 800.0).abs() < 1.0,
            "{within:?}"
        );
        assert_eq!(common.each[0].began_ns, 100_000_000);
    }

    #[test]
    fn clients_that_were_never_at_work_together_have_no_window() {
        let first = client(0, 100_000_000, &[1000]);
        let second = client(200_000_000, 100_000_000, &[1000]);
        let common = common("read", vec![first, second]).unwrap();
        assert_eq!(common.phase.window_ns, 0);
        assert!(common.each.iter().all(|each| each.window_operations == 0.0));
    }

    #[test]
    fn a_histogram_that_cannot_be_read_is_an_error_and_not_a_smaller_figure() {
        let mut broken = client(0, 100_000_000, &[1000]);
        broken.observation.operations[0].histogram = "AAAA".to_owned();
        let whole = client(0, 100_000_000, &[1000]);
        assert!(common("read", vec![whole, broken]).is_err());
        assert!(common("read", Vec::new()).is_err());
    }

    /// `bench/clients reduce` shows the time that this prints.
    #[test]
    fn a_thousand_clients_are_merged() {
        let each: Vec<Vec<u64>> = (0..8).map(|of| latencies(of, 2000)).collect();
        let measured = (0..1000).map(|at| client(at, 1_000_000_000, &each[at as usize % 8]));
        let measured: Vec<_> = measured.collect();
        let began_ns = SystemClock.now_ns();
        let common = common("read", measured).unwrap();
        let took_ns = SystemClock.now_ns() - began_ns;
        println!(
            "1,000 records merged in {}",
            stackrace_base::unit::time_ns(took_ns as f64)
        );
        assert_eq!(common.outcome.ops[0].count, 1000 * 2000);
        assert_eq!(common.outcome.ops[0].latency.len(), 1000 * 2000);
    }

    #[test]
    fn a_machine_with_several_processes_is_counted_once() {
        let part = |process| ClientPart {
            process,
            counted: Counted {
                cpus: 4,
                cpu_machine_busy_ns: 100,
                cpu_user_ns: 10,
                window_ns: Some(50),
                ..Counted::default()
            },
            ..ClientPart::default()
        };
        let sum = counted(&[part(1), part(2)]);
        assert_eq!(
            (sum.cpus, sum.cpu_machine_busy_ns, sum.cpu_user_ns),
            (4, 100, 20)
        );
        assert_eq!(sum.window_ns, Some(50));
    }
}
