//! What the engine adds to a bare loop of the same system calls.
//!
//! `cargo run --release --example floor -p stackrace-engine`; prints the median of interleaved
//! rounds: CPU time of the process per operation, ns. No figure is asserted: this is for reading.

use std::hint::black_box;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::time::{ClockId, clock_gettime};
use stackrace_engine::spec::{Access, Content, Durability, Engine, Pacing, Spec, Stop, Target};
use stackrace_engine::{Control, lay_out, memory::Memory, run, self_cost};

const BYTES: u64 = 16 << 20;
const OPERATIONS: u64 = 1_000_000;
const ROUNDS: usize = 7;

fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Uniform 4 KiB reads and nothing else.
fn bare(path: &Path) -> Outcome<f64> {
    // Without access times, as the engine opens it.
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::NOATIME, Mode::empty())?;
    let mut memory = Memory::new(4096)?;
    let buffer = &mut memory.bytes_mut()[..4096];
    let mut state = 1u64;
    let begun = cpu_ns();
    for _ in 0..OPERATIONS {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let block = (u128::from(state) * u128::from(BYTES / 4096)) >> 64;
        black_box(rustix::io::pread(&file, &mut *buffer, block as u64 * 4096)?);
    }
    Ok((cpu_ns() - begun) / OPERATIONS as f64)
}

fn engine(path: &Path, engine: Engine, queue_depth: u32) -> Outcome<f64> {
    let spec = Spec {
        targets: vec![Target {
            path: path.into(),
            bytes: BYTES,
        }],
        block_sizes: vec![(4096, 1)],
        access: Access::Uniform,
        align: None,
        read_share: 1.0,
        threads: 1,
        queue_depth,
        direct: false,
        preallocate: false,
        durability: Durability::default(),
        pacing: Pacing::Closed { think_time_ns: 0 },
        content: Content::Zero,
        stop: Stop {
            ops: Some(OPERATIONS),
            time_ns: None,
        },
        engine,
        seed: 1,
        slice_ns: 100_000_000,
    };
    let begun = cpu_ns();
    run(&spec, &Control::default())?;
    Ok((cpu_ns() - begun) / OPERATIONS as f64)
}

type Case<'a> = (&'a str, Box<dyn Fn() -> Outcome<f64> + 'a>);

#[expect(clippy::print_stdout, reason = "an example's output is its purpose")]
fn main() -> Outcome<()> {
    let file = tempfile::NamedTempFile::new()?;
    let path = file.path();
    let target = Target {
        path: path.into(),
        bytes: BYTES,
    };
    lay_out(&[target], Content::Random, 1, &Control::default())?;
    let cases: [Case<'_>; 5] = [
        ("bare pread loop", Box::new(|| bare(path))),
        ("engine, sync", Box::new(|| engine(path, Engine::Sync, 1))),
        (
            "engine, io_uring depth 32",
            Box::new(|| engine(path, Engine::Uring, 32)),
        ),
        (
            "engine, null (CPU)",
            Box::new(|| engine(path, Engine::Null, 1)),
        ),
        ("engine, null (elapsed)", Box::new(|| Ok(self_cost()))),
    ];
    let mut figures = vec![Vec::new(); cases.len()];
    for _ in 0..ROUNDS {
        for ((_, measure), figures) in cases.iter().zip(&mut figures) {
            figures.push(measure()?);
        }
    }
    for ((name, _), figures) in cases.iter().zip(&mut figures) {
        figures.sort_by(f64::total_cmp);
        println!("{name:<28} {:8.1} ns", figures[ROUNDS / 2]);
    }
    Ok(())
}
