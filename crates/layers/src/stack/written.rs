//! A layer of one written line, such as the example of its kind.

use stackrace_base::setting::written::line;
use stackrace_base::setting::{Refusal, Settings};
use stackrace_foundation::foundation::{Layer, LayerKind};

/// Settings of a layer from one line of TOML.
///
/// # Errors
/// As [`line()`].
pub(super) fn settings(kinds: &[LayerKind], text: &str) -> Result<Settings, Refusal> {
    let docs = |owner: &str| {
        let kind = kinds.iter().find(|kind| kind.name == owner);
        kind.map_or(&[][..], |kind| kind.settings)
    };
    line(docs, text)
}

/// The layer of one line of TOML.
///
/// # Errors
/// Its kind does not exist, or does not take these settings.
pub(super) fn layer(kinds: &[LayerKind], line: &str) -> Result<Box<dyn Layer>, Refusal> {
    let settings = settings(kinds, line)?;
    let kind = kinds.iter().find(|kind| kind.name == settings.owner);
    let kind = kind.ok_or_else(|| Refusal::at(&(0..1), "there is no such layer", ""))?;
    settings
        .check_all()
        .into_iter()
        .next()
        .map_or(Ok(()), Err)?;
    (kind.parse)(&settings)
}
