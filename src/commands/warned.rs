//! What the reader of a result must know, said before it is measured and kept with it.

use stackrace_base::unit;
use stackrace_machine::observe;
use stackrace_study::study::Study;

/// Warns the reader of a result of `--quick`.
pub(crate) fn first_impression(time_ns: u64) -> String {
    format!(
        "this is a first impression from {}: few rounds of short trials",
        unit::long_time(time_ns as f64 / 1e9)
    )
}

/// Warns where the data fit into memory and may be read from there.
pub(crate) fn cache_warning(study: &Study, warm: bool) -> Option<String> {
    let memory = observe::memory_bytes()?;
    let largest = study.working_set_bytes();
    if largest >= memory {
        return None;
    }
    let fits = format!(
        "the data of each trial ({} at most) fit into memory ({})",
        unit::bytes(largest),
        unit::bytes(memory)
    );
    if warm {
        return Some(format!(
            "{fits}, and caches are kept warm: reads come from memory, not from storage"
        ));
    }
    // Root drops all caches, and each trial records what stayed: there is nothing to warn of.
    (!rustix::process::geteuid().is_root()).then(|| format!(
        "{fits}. Without root, the file system's metadata stay in memory. The report counts what was read from there"
    ))
}
