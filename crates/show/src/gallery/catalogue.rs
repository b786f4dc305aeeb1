//! The list of a gallery for programs: which runs it has, the hash of each log, and the files that were made for it.
//!
//! A reader of a gallery compares each log with this list. The program that makes the site replaces and
//! removes only files that are in it, and only with the content that they had when they were made.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Name of the file.
pub const CATALOGUE: &str = "gallery.json";
/// Version of its format.
const FORMAT: u32 = 1;

/// The runs of a gallery, and the files that were made for it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Catalogue {
    /// Version of the format of this list.
    pub gallery: u32,
    /// Version of the program that wrote it.
    pub stackrace: String,
    /// The runs, the newest first.
    pub runs: Vec<CatalogueEntry>,
    /// Files that were made: each by its path, with the hashes (BLAKE3, hex) of contents it may have. Several while the
    /// site is written: the old content and the new one.
    pub files: BTreeMap<String, Vec<String>>,
}

/// One run of a gallery.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CatalogueEntry {
    /// Its id.
    pub run: String,
    /// Title of its study.
    pub title: String,
    /// Its log, a path in the gallery.
    pub log: String,
    /// Its page, alike.
    pub page: String,
    /// Hash of the log as it is published (BLAKE3, hex).
    pub blake3: String,
    /// Start of the run, RFC 3339.
    pub started_at: String,
    /// The verdict, judged from the trials.
    pub verdict: String,
    /// Drives, each with its class and model.
    pub drives: Vec<String>,
    /// Parts that were cut.
    pub without: Vec<String>,
}

impl Catalogue {
    /// A list of runs and files.
    pub fn new(runs: Vec<CatalogueEntry>, files: BTreeMap<String, Vec<String>>) -> Self {
        Self {
            gallery: FORMAT,
            stackrace: env!("CARGO_PKG_VERSION").to_owned(),
            runs,
            files,
        }
    }

    /// Reads a list.
    ///
    /// # Errors
    /// It is none, or of a newer program; a clause.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let read: Self =
            serde_json::from_slice(bytes).map_err(|_| "it is no list of a gallery".to_owned())?;
        // A newer list may say in another way which files are whose.
        match read.gallery <= FORMAT {
            true => Ok(read),
            false => Err(format!(
                "it has format {}, and this stackrace reads format {FORMAT}",
                read.gallery
            )),
        }
    }

    /// The list as a file.
    ///
    /// # Errors
    /// A value that JSON cannot hold.
    pub fn written(&self) -> Result<Vec<u8>, String> {
        let text = serde_json::to_string_pretty(self).map_err(|why| why.to_string())?;
        Ok(format!("{text}\n").into_bytes())
    }

    /// The hash that the list has for a log; `None` if the log is not in it.
    pub fn hash_of(&self, log: &str) -> Option<&str> {
        let entry = self.runs.iter().find(|entry| entry.log == log)?;
        Some(&entry.blake3)
    }
}
