//! Doc comments that say nothing: they repeat the name of the item, or are too short for one.
//!
//! Only the words count, not whether they are good: a rule can tell that `/// The name.` on `name`
//! adds nothing, and it cannot tell that a long sentence is true.

use std::path::Path;

use crate::figures::Finding;
use crate::source::{Comment, SourceFile};

/// A function or type with so few words says neither what it gives nor when it gives nothing.
const FEW_WORDS: usize = 3;

/// Words that stand in any sentence and add no meaning to a name.
const FILLERS: [&str; 28] = [
    "a", "all", "an", "and", "are", "as", "at", "be", "by", "for", "from", "here", "if", "in",
    "is", "it", "its", "of", "on", "or", "that", "the", "them", "there", "this", "to", "what",
    "with",
];

/// What a doc comment stands on.
struct Item<'a> {
    name: &'a str,
    /// A function or a type that other files can use: its comment is all they see of it.
    visible: bool,
}

/// The doc comments of a file that say nothing. Tests are left out: their names are the comment.
pub fn empty(file: &SourceFile) -> Vec<Finding> {
    let text: Vec<&str> = file.text.lines().collect();
    let code: Vec<&str> = file.code.lines().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let first = at;
        let mut words = Vec::new();
        while at < text.len() && is_outer_doc(file, at, text[at]) {
            let line = text[at].trim_start().trim_start_matches('/');
            words.extend(words_of(line));
            at += 1;
        }
        if first == at {
            at += 1;
            continue;
        }
        let Some(item) = code.get(at..).and_then(item_behind) else {
            continue;
        };
        if !file.test_lines[first] && says_nothing(&words, &item) {
            found.push(finding(&file.path, first, item.name, text[first]));
        }
    }
    found
}

fn is_outer_doc(file: &SourceFile, at: usize, line: &str) -> bool {
    file.comments[at] == Some(Comment::Doc) && line.trim_start().starts_with("///")
}

fn finding(path: &Path, line: usize, name: &str, text: &str) -> Finding {
    Finding {
        path: path.to_string_lossy().into_owned(),
        line: line + 1,
        what: format!("`{name}` {}", text.trim()),
    }
}

/// Whether a comment adds nothing to the name it stands on, or too little for a visible item.
fn says_nothing(words: &[String], item: &Item) -> bool {
    let name: Vec<String> = name_parts(item.name)
        .iter()
        .map(|part| stem(part))
        .collect();
    let adds = |word: &&String| !FILLERS.contains(&word.as_str()) && !name.contains(&stem(word));
    let repeats = !words.iter().any(|word| adds(&word));
    repeats || (item.visible && words.len() <= FEW_WORDS)
}

/// The item that begins in these lines, behind its attributes.
fn item_behind<'a>(lines: &[&'a str]) -> Option<Item<'a>> {
    let mut depth = 0_usize;
    for line in lines {
        let line = line.trim();
        // An attribute may go over several lines.
        if depth > 0 || line.starts_with("#[") {
            depth += line.matches(['[', '(', '{']).count();
            depth = depth.saturating_sub(line.matches([']', ')', '}']).count());
            continue;
        }
        if !line.is_empty() {
            return item_of(line);
        }
    }
    None
}

/// The item that a line of code declares: a type, a function, a value, a field or a variant.
fn item_of(line: &str) -> Option<Item<'_>> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut visible = line.starts_with("pub");
    let mut rest = line;
    if let Some(inner) = line.strip_prefix("pub(") {
        rest = inner.split_once(')')?.1.trim_start();
    }
    loop {
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        match word {
            "pub" | "unsafe" | "async" | "extern" | "mut" | "ref" => {}
            "fn" | "struct" | "enum" | "trait" | "type" | "union" | "mod" | "static" => {}
            "const" if !behind.trim_start().starts_with(':') => {}
            "" => return None,
            name => {
                let before = &line[..line.len() - rest.len()];
                let kinds = ["fn ", "struct ", "enum ", "trait ", "type ", "union "];
                visible &= kinds.iter().any(|kind| before.ends_with(kind));
                return Some(Item { name, visible });
            }
        }
        rest = behind.trim_start();
    }
}

/// The words of a sentence, in small letters and without marks.
fn words_of(sentence: &str) -> Vec<String> {
    sentence
        .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '\'' || c == '%'))
        .flat_map(name_parts)
        .collect()
}

/// The words of a name in snake or camel case, in small letters.
fn name_parts(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut small = false;
    for letter in name.chars() {
        let begins = letter.is_uppercase() && small;
        small = letter.is_lowercase();
        if letter == '_' {
            parts.push(String::new());
            continue;
        }
        match parts.last_mut() {
            Some(part) if !begins => part.extend(letter.to_lowercase()),
            _ => parts.push(letter.to_lowercase().collect()),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// A word without the endings that a sentence gives to a name: `reads`, `reading` and `read`.
fn stem(word: &str) -> String {
    let word = word.trim_end_matches("'s");
    for ending in ["ing", "ed", "es", "s", "e"] {
        if let Some(short) = word.strip_suffix(ending)
            && short.len() > 2
        {
            return short.to_owned();
        }
    }
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn found(text: &str) -> Vec<String> {
        let file = SourceFile::new(PathBuf::from("src/a.rs"), text.to_owned());
        empty(&file).into_iter().map(|at| at.what).collect()
    }

    #[test]
    fn a_comment_that_repeats_the_name_is_found() {
        assert_eq!(
            found("struct A {\n    /// The name.\n    name: String,\n}\n"),
            ["`name` /// The name."]
        );
        assert_eq!(
            found("/// Reads all the rows.\nfn read_rows() {}\n").len(),
            1
        );
        assert_eq!(
            found("enum A {\n    /// Read errors.\n    ReadError(u8),\n}\n").len(),
            1
        );
    }

    #[test]
    fn a_visible_function_or_type_needs_more_than_three_words() {
        assert_eq!(
            found("/// Opens the file.\npub(crate) fn start() {}\n").len(),
            1
        );
        assert_eq!(
            found("/// One plain line.\n#[derive(Debug)]\npub struct Row;\n").len(),
            1
        );
        assert!(found("/// Opens the file, or makes it.\npub fn start() {}\n").is_empty());
        assert!(found("/// Opens the file.\nfn start() {}\n").is_empty());
    }

    #[test]
    fn a_short_comment_that_adds_something_is_good() {
        assert!(found("struct A {\n    /// Bytes a second.\n    pub rate: u64,\n}\n").is_empty());
        assert!(found("/// In nanoseconds.\npub const LIMIT: u64 = 1;\n").is_empty());
    }

    #[test]
    fn tests_and_headers_are_left_out() {
        assert!(
            found("//! A.\n#[cfg(test)]\nmod tests {\n    /// Name.\n    fn name() {}\n}\n")
                .is_empty()
        );
    }
}
