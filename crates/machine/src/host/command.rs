//! A command: its words, as it is shown, and what it left behind.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;

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

/// A command as it would be typed into a shell.
pub fn shown(argv: &[OsString]) -> String {
    let words = argv.iter().map(|word| {
        let word = word.to_string_lossy();
        let plain = |c: char| c.is_alphanumeric() || "-_=+./,:@%{}".contains(c);
        // A shell would make several words of `{a,b}` and of `{1..3}`.
        let braces = word.contains('{') && (word.contains(',') || word.contains(".."));
        if !word.is_empty() && word.chars().all(plain) && !braces {
            word.into_owned()
        } else {
            // What is shown can be pasted into a shell and means the same there.
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        let command = argv([
            "mount",
            "-o",
            "noatime,commit=5",
            "a b",
            "it's",
            "",
            "{a,b}",
        ]);
        assert_eq!(
            shown(&command),
            r"mount -o noatime,commit=5 'a b' 'it'\''s' '' '{a,b}'"
        );
    }
}
