//! A trace, which may come from anywhere.

use stackrace_trace::trace::{
    Code, DeviceTotal, Ending, Names, Operation, StopReason, Summary, TraceOrigin, TraceReader,
    TraceWriter, cut,
};

/// A trace is refused with a reason, or counts what it holds; and its parts can be read as well.
pub fn trace(data: &[u8]) {
    let read = || TraceReader::new(data);
    let summary = match read().and_then(Summary::of) {
        Ok(summary) => summary,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert!((0.0..=1.0).contains(&summary.coverage()));
    assert!((0.0..=1.0).contains(&summary.bound.storage_share()));
    assert!(summary.bound.at_most().is_none_or(|at_most| at_most >= 1.0));
    let Ok((part, _)) = read().and_then(|reader| cut(reader, 1000..1 << 40, Vec::new())) else {
        panic!("a trace that can be read cannot be cut");
    };
    let again = TraceReader::new(&*part).and_then(Summary::of);
    assert!(again.is_ok(), "{again:?}");
}

/// A trace of a moment: reads, writes and waits of one thread, some of which could not be followed.
pub fn small_trace() -> Vec<u8> {
    let origin = TraceOrigin {
        program: "test".to_owned(),
        kernel: "6.12.0-with-a-long-name+deb13-amd64".to_owned(),
        architecture: "x86_64".to_owned(),
        file_system: "ext4".to_owned(),
        processors: 4,
        cost_limit: 500,
        cut: false,
    };
    let names = Names::default();
    let mut writer = TraceWriter::new(Vec::new(), &origin).expect("memory takes it");
    let codes = [Code::Read, Code::Write, Code::Fsync, Code::Other];
    for (code, at) in codes.into_iter().cycle().take(40).zip(0..) {
        let operation = Operation {
            duration: 700_000,
            queued: 100_000,
            blocked: 500_000,
            result: 65_536,
            length: 65_536,
            ..Operation::of(code, 0, at * 1_000_000)
        };
        writer.push(&names, operation).expect("memory takes it");
    }
    let ending = Ending {
        stopped: Some(StopReason::Ended),
        operations: 40,
        threads: 1,
        events: 80,
        lost: 3,
        not_followed: 2,
        unresolved: 1,
        elsewhere: 0,
        cost_ns: 1_000_000,
        processor_ns: 30_000_000,
        elapsed_ns: 40_000_000,
        device: Some(DeviceTotal {
            read_bytes: 1 << 20,
            written_bytes: 2 << 20,
            flushes: Some(3),
        }),
    };
    writer.finish(&names, &ending).expect("memory takes it")
}
