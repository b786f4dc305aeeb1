//! What verification costs per operation.
//!
//! `cargo run --release --example verification -p stackrace-engine`; 4 KiB operations on a file in
//! the page cache, with verification and without, in turn: medians of CPU time of the process per
//! operation, ns, and of the difference. No figure is asserted: this is for reading.

use rustix::time::{ClockId, clock_gettime};
use stackrace_engine::spec::{Content, IoEngine, IoTarget, Spec, Stop};
use stackrace_engine::{ContentLedger, Control, PhaseEnd, lay_out_verified, run, run_verified};

const BYTES: u64 = 16 << 20;
const OPERATIONS: u64 = 50_000;
const ROUNDS: usize = 9;

type PhaseOutcome<T> = Result<T, Box<dyn std::error::Error>>;

fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// CPU time per operation, and the mean latency, ns.
fn measured(spec: &Spec, ledger: Option<&ContentLedger>) -> PhaseOutcome<(f64, f64)> {
    let control = Control::default();
    let begun = cpu_ns();
    let outcome = match ledger {
        Some(ledger) => run_verified(spec, ledger, &control)?,
        None => run(spec, &control)?,
    };
    let cpu = (cpu_ns() - begun) / OPERATIONS as f64;
    if let (PhaseEnd::Failed, Some(error)) = (outcome.ended, outcome.error) {
        return Err(error.into());
    }
    let sum: u128 = outcome.ops.iter().map(|op| op.latency_sum_ns).sum();
    Ok((cpu, sum as f64 / OPERATIONS as f64))
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

#[expect(clippy::print_stdout, reason = "an example's output is its purpose")]
fn main() -> PhaseOutcome<()> {
    let file = tempfile::NamedTempFile::new()?;
    let target = IoTarget {
        path: file.path().into(),
        bytes: BYTES,
    };
    println!(
        "per operation, ns:           plain    verified  difference   latency: plain, verified"
    );
    for (name, engine, queue_depth) in [
        ("sync", IoEngine::Sync, 1),
        ("io_uring, 32", IoEngine::Uring, 32),
    ] {
        for (op, read_share) in [("read", 1.0), ("write", 0.0)] {
            let spec = Spec {
                read_share,
                queue_depth,
                stop: Stop {
                    ops: Some(OPERATIONS),
                    time_ns: None,
                },
                engine,
                ..Spec::reads(vec![target.clone()], 4096)
            };
            let ledger = ContentLedger::new(&spec.targets, 4096, Content::Random, 1)?;
            lay_out_verified(&ledger, &Control::default())?;
            let mut figures = [const { Vec::new() }; 5];
            for _ in 0..ROUNDS {
                let (plain, plain_latency) = measured(&spec, None)?;
                // What the plain phase wrote was not stamped.
                lay_out_verified(&ledger, &Control::default())?;
                let (verified, latency) = measured(&spec, Some(&ledger))?;
                let round = [plain, verified, verified - plain, plain_latency, latency];
                for (figures, figure) in figures.iter_mut().zip(round) {
                    figures.push(figure);
                }
            }
            let [plain, verified, difference, plain_latency, latency] = figures.map(median);
            println!(
                "{name:<14} {op:<8} {plain:>10.0} {verified:>11.0} {difference:>11.0}   \
                 {plain_latency:>14.0} {latency:>9.0}"
            );
        }
    }
    Ok(())
}
