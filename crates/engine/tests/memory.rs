//! What a phase keeps in memory besides its buffers does not grow with anything that can be large.
//!
//! Alone in its file, with one test, because the peak is the whole process's.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test's helpers are tests too"
)]

use std::process::ExitCode;

use stackrace_engine::spec::{AccessPattern, IoEngine, IoTarget, Spec, Stop};
use stackrace_engine::{Control, PhaseEnd, StartError, run};
use stackrace_test_needs as needs;

const THREADS: u32 = 16;
const QUEUE_DEPTH: u32 = 128;
const BLOCK: u32 = 4096;
/// What everything else together may take, bytes.
const ALLOWANCE: u64 = 12 << 20;

/// The largest resident set this process ever had, bytes; `None`: the system does not say.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

fn a_deep_queue_of_many_threads_on_a_huge_file_takes_little_memory() {
    let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
    let bytes = 1 << 40;
    // A hole: no file system stores it, and all of them can read it.
    if let Err(error) = file.as_file().set_len(bytes) {
        needs::skip(format!("needs a file system for files of 1 TiB: {error}"));
    }
    let spec = |access| Spec {
        access,
        threads: THREADS,
        queue_depth: QUEUE_DEPTH,
        stop: Stop {
            ops: Some(u64::from(THREADS * QUEUE_DEPTH)),
            time_ns: None,
        },
        engine: IoEngine::Uring,
        ..Spec::reads(
            vec![IoTarget {
                path: file.path().into(),
                bytes,
            }],
            BLOCK,
        )
    };
    let buffers = u64::from(THREADS * QUEUE_DEPTH * BLOCK);
    for access in [
        AccessPattern::Uniform,
        AccessPattern::OncePerPass,
        AccessPattern::Zipf(1.1),
        AccessPattern::Sequential,
    ] {
        let outcome = match run(&spec(access), &Control::default()) {
            Err(error @ StartError::Ring { .. }) => needs::skip(error),
            other => other.unwrap(),
        };
        assert_eq!(outcome.ended, PhaseEnd::Complete, "{:?}", outcome.error);
        let peak = peak().unwrap();
        println!("{access:?}: {} KiB", peak >> 10);
        assert!(
            peak <= buffers + ALLOWANCE,
            "{access:?}: {} KiB",
            peak >> 10
        );
    }
}

fn main() -> ExitCode {
    needs::run(vec![needs::group(
        "memory",
        needs::tests![a_deep_queue_of_many_threads_on_a_huge_file_takes_little_memory,],
    )])
}
