//! The words of an imagined command: what it is asked, and what it answers.

use super::command::Output;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// A command that succeeds and prints something.
pub fn said(text: impl Into<String>) -> Output {
    Output {
        status: Some(0),
        stdout: text.into(),
        stderr: String::new(),
    }
}

/// A command that fails.
pub fn complained(status: i32, text: &str) -> Output {
    Output {
        status: Some(status),
        stdout: String::new(),
        stderr: text.to_string(),
    }
}

/// The word after an option.
pub fn after<'a>(words: &'a [OsString], option: &str) -> Option<&'a OsString> {
    let at = words.iter().position(|word| word == option)?;
    words.get(at + 1)
}

/// The word after an option, as text.
pub fn text_after(words: &[OsString], option: &str) -> Option<String> {
    after(words, option).map(|word| word.to_string_lossy().into_owned())
}

/// The word at a place, as text; empty if there is none.
pub fn word(words: &[OsString], at: usize) -> String {
    let word = words.get(at).map(|word| word.to_string_lossy());
    word.unwrap_or_default().into_owned()
}

/// The last word, as text.
pub fn last(words: &[OsString]) -> String {
    word(words, words.len().saturating_sub(1))
}

/// Values that words like `-o name=value`, `--name value` and `--name=value` ask for.
pub fn asked(words: &[OsString]) -> BTreeMap<String, String> {
    let pair = |(name, value): (&str, &str)| (name.to_string(), value.to_string());
    let of = |at: usize| {
        let (text, next) = (word(words, at), word(words, at + 1));
        match text.strip_prefix("--") {
            Some(name) => Some(pair(name.split_once('=').unwrap_or((name, &next)))),
            None if text == "-o" || text == "-O" => next.split_once('=').map(pair),
            None => None,
        }
    };
    (0..words.len()).filter_map(of).collect()
}
