//! A command: its words, as it is shown, and what it left behind.

use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};

/// Result of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Exit status; `None` if it was ended by a signal.
    pub status: Option<i32>,
    /// Standard output, cut at [`super::local::OUTPUT_MAX`], lossy where it is not UTF-8.
    pub stdout: String,
    /// Standard error, cut and lossy alike.
    pub stderr: String,
}

/// A command from its words.
pub fn argv<I, S>(words: I) -> Vec<OsString>
where
    I: IntoIterator<Item = S>,
    S: Into<OsString>,
{
    words.into_iter().map(Into::into).collect()
}

/// A command from its words, and the path behind them.
pub fn argv_at<I, S>(words: I, path: impl AsRef<OsStr>) -> Vec<OsString>
where
    I: IntoIterator<Item = S>,
    S: Into<OsString>,
{
    let path = std::iter::once(path.as_ref().to_owned());
    words.into_iter().map(Into::into).chain(path).collect()
}
