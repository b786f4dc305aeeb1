//! One text and what was read from it.

use std::path::Path;

use super::Imported;

/// One text and what was read from it.
#[derive(Debug, Clone)]
pub(crate) struct ImportSource {
    /// The name it was given on the command line; none: what the text says, or the file's name.
    pub(crate) name: Option<String>,
    /// The file as it was named.
    pub(crate) file: String,
    /// The file's name without folder and ending.
    pub(crate) stem: String,
    /// BLAKE3 of the text, hex.
    pub(crate) hash: String,
    /// The whole text.
    pub(crate) text: String,
    /// What was read from it.
    pub(crate) results: Vec<Imported>,
}

impl ImportSource {
    /// What was read from a text, as that of a file of this name.
    pub(crate) fn of(
        name: Option<String>,
        file: &str,
        text: String,
        results: Vec<Imported>,
    ) -> Self {
        let stem = Path::new(file).file_stem();
        Self {
            name,
            file: file.to_owned(),
            stem: stem.map_or_else(
                || file.to_owned(),
                |stem| stem.to_string_lossy().into_owned(),
            ),
            hash: blake3::hash(text.as_bytes()).to_hex().to_string(),
            text,
            results,
        }
    }
}
