//! A trace, which may come from anywhere.

use stackrace_trace::trace::{Summary, TraceReader, cut};

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
