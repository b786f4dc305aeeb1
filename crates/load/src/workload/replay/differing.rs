//! Results that are not the recorded ones, in words.

use stackrace_base::unit::InWords;
use stackrace_engine::replay::ReplayResults;

/// How many results differ, and the first of them.
pub(super) fn words(results: &ReplayResults) -> String {
    let all = format!(
        "{} of {} results differ from the recorded ones",
        results.differing, results.calls
    );
    // Of threads at once, the first that was seen.
    let Some(first) = &results.first else {
        return all;
    };
    let name = match first.name.as_str() {
        "" => String::new(),
        name => format!(" of {name}"),
    };
    format!(
        "{all}; the first: {}{name} gave {}, recorded was {}",
        first.op.name(),
        result_words(first.replayed),
        result_words(first.recorded)
    )
}

/// A result of the kernel, in words.
fn result_words(result: i64) -> String {
    match result.checked_neg().map(i32::try_from) {
        Some(Ok(errno @ 1..)) => std::io::Error::from_raw_os_error(errno).in_words(),
        _ => result.to_string(),
    }
}
