//! One text and what was read from it.

use std::path::Path;

use super::Imported;

/// One text and what was read from it.
#[derive(Debug, Clone)]
pub struct ImportSource {
    /// The name it was given on the command line; `None` for what the text says, or the file's name.
    pub name: Option<String>,
    /// The file as it was named.
    pub file: String,
    /// The file's name without folder and ending.
    pub stem: String,
    /// BLAKE3 of the text, hex.
    pub hash: String,
    /// The whole text.
    pub text: String,
    /// Results that were read from it.
    pub results: Vec<Imported>,
}

impl ImportSource {
    /// Results of a text, as those of a file of this name.
    pub fn of(name: Option<String>, file: &str, text: String, results: Vec<Imported>) -> Self {
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
