//! Words of the command line: one of several, a share, or a run.

use std::ops::Range;

use super::failure::Failure;
use stackrace_base::setting::nearest;
use stackrace_base::unit;
use stackrace_results::record::{Record, RecordError, Store};

/// A name that is not one of the valid ones, with the nearest of them.
pub(super) fn unknown(what: &str, name: &str, valid: &[&str]) -> Failure {
    // Of several that are as near, the one that begins like it.
    let like = |one: &&str, other: &&str| {
        strsim::jaro_winkler(name, one).total_cmp(&strsim::jaro_winkler(name, other))
    };
    let near =
        nearest(name, valid.iter().copied()).and_then(|_| valid.iter().copied().max_by(like));
    no_such(what, name, near, valid)
}

/// A name that is not one of the valid ones, with the one that is most likely meant; none: nothing is
/// near.
pub(super) fn no_such(what: &str, name: &str, meant: Option<&str>, valid: &[&str]) -> Failure {
    let meant = match meant {
        Some(meant) => format!("did you mean \"{meant}\"? There are: "),
        None => "choose one of: ".to_owned(),
    };
    Failure::usage(format!("there is no {what} \"{name}\""))
        .next(format!("{meant}{}", valid.join(", ")))
}

/// One of several by its name, or by a beginning that only one of them has.
pub(super) fn named(what: &str, name: &str, valid: &[&str]) -> Result<usize, Failure> {
    let exact = valid.iter().position(|valid| *valid == name);
    let mut begin = (0..valid.len()).filter(|at| valid[*at].starts_with(name));
    // A beginning is enough where it is clear, as with ids of runs.
    let only = begin.next().filter(|_| begin.next().is_none());
    exact.or(only).ok_or_else(|| unknown(what, name, valid))
}

/// A share that an option gives, above 0 and within what is valid.
pub(super) fn share(
    option: &str,
    text: Option<&String>,
    valid: Range<f64>,
) -> Result<Option<f64>, Failure> {
    let Some(text) = text else { return Ok(None) };
    match unit::parse_share(text) {
        Ok(value) if valid.contains(&value) && value > 0.0 => Ok(Some(value)),
        Ok(_) => Err(
            Failure::usage(format!("{option} {text} is out of range")).next(format!(
                "write a share such as 5 %: above 0 and below {}",
                unit::percent(valid.end)
            )),
        ),
        Err(why) => Err(Failure::usage(format!("{option}: {why}"))),
    }
}

/// The run that a word names: an id, its beginning, or `last`.
pub(super) fn run(store: &Store, word: &str) -> Result<Record, Failure> {
    store.read(word).map_err(not_read)
}

/// The runs that these words name, in that order.
pub(super) fn runs(store: &Store, words: &[String]) -> Result<Vec<Record>, Failure> {
    words.iter().map(|word| run(store, word)).collect()
}

/// The failure of a store that is asked for a run.
pub(super) fn not_read(error: RecordError) -> Failure {
    Failure::usage(error.to_string()).next(error.next())
}
