//! What is left after a power cut, against a ledger.

use std::path::Path;

use stackrace_base::event::Promised;
use stackrace_run::crash::Remains;

/// How many promises of a ledger (the JSON of a `promised` line) are broken in a directory when the
/// power goes at `at_ns`; and how many if nothing of it can be read.
///
/// # Errors
/// The text is no ledger, or the server of a database does not end.
pub fn broken_promises(directory: &Path, ledger: &str, at_ns: u64) -> Result<(u64, u64), String> {
    let promised: Promised = serde_json::from_str(ledger).map_err(|error| error.to_string())?;
    let remains = Remains::open(directory, &promised, None);
    let checked = remains.check(at_ns);
    remains.close()?;
    let nothing = stackrace_run::crash::check_nothing(&promised, at_ns);
    Ok((checked.counts.all(), nothing.counts.all()))
}
