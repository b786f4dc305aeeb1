//! One open loop on one file: offered and achieved load, response time, service time and lateness.
//!
//! `cargo run --release --example open_loop -p stackrace-engine -- FILE [WORD=VALUE]…` with
//! `bytes` (size of the file, laid out if it is shorter), `rate` (op/s), `seconds`, `threads`,
//! `depth`, `arrivals` (`fixed`, `poisson`), `engine` (`sync`, `io_uring`, `null`), `do` (`read`,
//! `write`), `direct` (`yes`, `no`). Prints one `name value` a line; times in ns. This is what
//! `bench/accuracy` measures.

use rustix::time::{ClockId, clock_gettime};
use stackrace_engine::spec::{IoEngine, IoTarget, Pacing, Spec, Stop};
use stackrace_engine::{Control, Op, PhaseOutcome, Timing, lay_out, run};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn parse(mut words: impl Iterator<Item = String>) -> Result<Spec> {
    let path = words.next().ok_or("name a file")?.into();
    let (mut rate, mut poisson) = (1_000.0, false);
    let mut spec = Spec {
        pacing: Pacing::Fixed(rate),
        stop: Stop {
            ops: None,
            time_ns: Some(5_000_000_000),
        },
        engine: IoEngine::Sync,
        ..Spec::reads(
            vec![IoTarget {
                path,
                bytes: 64 << 20,
            }],
            4096,
        )
    };
    for word in words {
        let (name, value) = word.split_once('=').ok_or("give words as NAME=VALUE")?;
        match (name, value) {
            ("bytes", bytes) => spec.targets[0].bytes = bytes.parse()?,
            ("rate", per_second) => rate = per_second.parse()?,
            ("seconds", seconds) => {
                spec.stop.time_ns = Some((seconds.parse::<f64>()? * 1e9) as u64);
            }
            ("threads", threads) => spec.threads = threads.parse()?,
            ("depth", depth) => spec.queue_depth = depth.parse()?,
            ("arrivals", arrivals) => poisson = arrivals == "poisson",
            ("engine", "io_uring") => spec.engine = IoEngine::Uring,
            ("engine", "null") => spec.engine = IoEngine::Null,
            ("engine", "sync") => spec.engine = IoEngine::Sync,
            ("do", what) => spec.read_share = if what == "write" { 0.0 } else { 1.0 },
            ("direct", direct) => spec.direct = direct == "yes",
            _ => return Err(format!("{word} means nothing here").into()),
        }
    }
    spec.pacing = if poisson {
        Pacing::Poisson(rate)
    } else {
        Pacing::Fixed(rate)
    };
    Ok(spec)
}

#[expect(clippy::print_stdout, reason = "an example's output is its purpose")]
fn show(outcome: &PhaseOutcome, cpu_ns: f64) {
    let times = |name: &str, timing: &Timing| {
        let at = |quantile| timing.histogram.value_at_quantile(quantile);
        let mean = timing.sum_ns as f64 / timing.histogram.len().max(1) as f64;
        println!("{name}_mean {mean:.0}");
        println!("{name}_p50 {}", at(0.5));
        println!("{name}_p99 {}", at(0.99));
        println!("{name}_max {}", timing.histogram.max());
    };
    let seconds = outcome.elapsed_ns as f64 / 1e9;
    for kind in outcome.ops.iter().filter(|kind| kind.op != Op::Fsync) {
        println!("operations {}", kind.count);
        println!("achieved {:.1}", kind.count as f64 / seconds);
        println!(
            "offered {:.1}",
            (kind.count + outcome.unissued) as f64 / seconds
        );
        let response = Timing {
            sum_ns: kind.latency_sum_ns,
            histogram: kind.latency.clone(),
        };
        times("response", &response);
        kind.service
            .iter()
            .for_each(|service| times("service", service));
        println!("cpu {:.0}", cpu_ns / kind.count.max(1) as f64);
    }
    outcome
        .lateness
        .iter()
        .for_each(|lateness| times("lateness", lateness));
    println!("unissued {}", outcome.unissued);
    println!("seconds {seconds:.6}");
}

fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn main() -> Result<()> {
    let spec = parse(std::env::args().skip(1))?;
    let control = Control::default();
    let target = &spec.targets[0];
    let laid_out = || std::fs::metadata(&target.path).is_ok_and(|m| m.len() >= target.bytes);
    if spec.engine != IoEngine::Null && !laid_out() {
        lay_out(&spec.targets, spec.content, spec.seed, &control)?;
    }
    let begun_ns = cpu_ns();
    let outcome = run(&spec, &control)?;
    show(&outcome, cpu_ns() - begun_ns);
    match outcome.error {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}
