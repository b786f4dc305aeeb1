//! One text and what was read from it.

use std::path::Path;

use super::importers::read;
use crate::printed::{ImportError, Imported};

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
    /// Reads a text as that of a file of this name, by the importer that is named, or by all that
    /// recognise it.
    ///
    /// # Errors
    /// It is not understood: see [`read`].
    pub(crate) fn read(
        name: Option<String>,
        file: &str,
        text: String,
        tool: Option<&str>,
    ) -> Result<Self, ImportError> {
        let results = read(&text, tool)?;
        let stem = Path::new(file).file_stem();
        Ok(Self {
            name,
            file: file.to_owned(),
            stem: stem.map_or_else(
                || file.to_owned(),
                |stem| stem.to_string_lossy().into_owned(),
            ),
            hash: blake3::hash(text.as_bytes()).to_hex().to_string(),
            text,
            results,
        })
    }
}
