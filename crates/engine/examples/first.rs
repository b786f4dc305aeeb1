//! The smallest phase there is: what it takes until the first I/O, and how much memory.
//!
//! `first FILE [THREADS [QUEUE_DEPTH [OPERATIONS]]]` reads 4 KiB blocks of a file with a ring (by
//! plain calls at queue depth 1) and prints the largest resident set the process ever had. Its
//! time from start to end is what `bench/floor` shows; `strace -f -r` shows where it goes.

use std::path::PathBuf;

use stackrace_engine::spec::{Content, IoEngine, IoTarget, Spec, Stop};
use stackrace_engine::{Control, run};

#[expect(clippy::print_stdout, reason = "an example's output is its purpose")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let path: PathBuf = words.next().ok_or("name a file to read")?.into();
    let mut number = |otherwise: u32| words.next().map_or(Ok(otherwise), |word| word.parse());
    let (threads, queue_depth) = (number(1)?, number(1)?);
    let operations = number(threads * queue_depth)?;
    let bytes = std::fs::metadata(&path)?.len();
    let spec = Spec {
        threads,
        queue_depth,
        content: Content::Zero,
        stop: Stop {
            ops: Some(operations.into()),
            time_ns: None,
        },
        engine: if queue_depth > 1 {
            IoEngine::Uring
        } else {
            IoEngine::Sync
        },
        ..Spec::reads(vec![IoTarget { path, bytes }], 4096)
    };
    let outcome = run(&spec, &Control::default())?;
    if let Some(error) = outcome.error {
        return Err(error.into());
    }
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM"));
    println!("{}", peak.unwrap_or("VmHWM: not known"));
    Ok(())
}
