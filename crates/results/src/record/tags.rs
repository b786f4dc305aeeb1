//! Words that a user puts on runs, to find and to keep them: `before-upgrade`.
//!
//! One a line in the file `tags` of the run's directory. The log stays as it was measured.

use std::collections::BTreeSet;

use super::error::RecordError;
use stackrace_base::owned::OwnDir;

/// Name of the file.
pub(super) const TAGS: &str = "tags";
/// Characters of a tag at most.
const LENGTH_MAX: usize = 64;

/// The tags of the run in `dir`, sorted. What is no tag in the file is passed over.
pub(super) fn read(dir: &OwnDir) -> BTreeSet<String> {
    // Most runs have none: one question is faster than the reason why nothing could be opened.
    if !dir.has(TAGS) {
        return BTreeSet::new();
    }
    let bytes = dir.read_all(TAGS).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    // An edit by hand must not break the list of all runs.
    let tags = text.lines().filter(|line| check(line).is_ok());
    tags.map(str::to_owned).collect()
}

/// Writes the tags of the run in `dir`.
pub(super) fn write(dir: &OwnDir, tags: &BTreeSet<String>) -> Result<(), RecordError> {
    let text: String = tags.iter().map(|tag| format!("{tag}\n")).collect();
    Ok(dir.replace(TAGS, text.as_bytes())?)
}

/// Checks that a word can be a tag: it must be usable wherever a run is named.
pub(super) fn check(tag: &str) -> Result<(), RecordError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let begins_well = tag.starts_with(|c: char| c.is_ascii_alphanumeric());
    // `last` is the newest run already.
    if begins_well && tag.len() <= LENGTH_MAX && tag.chars().all(fits) && tag != "last" {
        return Ok(());
    }
    Err(RecordError::BadTag {
        tag: tag.to_owned(),
    })
}
