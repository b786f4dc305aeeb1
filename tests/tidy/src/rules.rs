//! The rules that are counted: what breaks one, as a line of `exceptions.txt`.

use std::collections::BTreeSet;

use crate::docs;
use crate::figures::{Checkout, FILE_LINES, FUNCTION_LINES};
use crate::texts;

/// Inline comments per hundred product lines that a room must have.
pub const COMMENTS: f64 = 3.0;

/// Rooms with fewer product lines than this may do without comments.
const SMALL_ROOM: usize = 60;

/// Everything that breaks a rule, sorted, each once.
pub fn broken(checkout: &Checkout) -> Vec<String> {
    let mut found = BTreeSet::new();
    found.extend(circles(checkout));
    found.extend(sizes(checkout));
    found.extend(twins(checkout));
    found.extend(words(checkout));
    found.extend(comments(checkout));
    found.extend(empty_docs(checkout));
    found.extend(checkout.product().flat_map(texts::words_compared));
    found.extend(checkout.product().flat_map(texts::words_cut));
    found.extend(checkout.product().flat_map(texts::paths_raw));
    found.into_iter().collect()
}

/// Rooms and files that use each other in a circle.
pub fn circles(checkout: &Checkout) -> Vec<String> {
    let rooms = checkout.room_circles().into_iter().flatten();
    let files = checkout.file_circles().into_iter().flatten();
    rooms
        .map(|room| format!("room in a circle: {room}"))
        .chain(files.map(|file| format!("file in a circle: {file}")))
        .collect()
}

/// Functions and files that are too long to be read at once.
pub fn sizes(checkout: &Checkout) -> Vec<String> {
    let functions = checkout
        .functions()
        .into_iter()
        .filter(|function| function.lines > FUNCTION_LINES)
        .map(|function| {
            let at = function.at;
            format!(
                "more than {FUNCTION_LINES} lines: {} in {}",
                at.what, at.path
            )
        });
    let files = checkout
        .long_files()
        .into_iter()
        .map(|(path, _, _)| format!("more than {FILE_LINES} lines: {path}"));
    functions.chain(files).collect()
}

/// Names that two visible types of one crate have.
pub fn twins(checkout: &Checkout) -> Vec<String> {
    let names = checkout.twin_types().into_keys();
    names
        .map(|name| format!("name of two types: {name}"))
        .collect()
}

/// Files with words that point at people who are not there.
pub fn words(checkout: &Checkout) -> Vec<String> {
    let found = checkout.vague_words().into_iter();
    found
        .map(|at| format!("vague word: {} in {}", at.what.to_lowercase(), at.path))
        .collect()
}

/// Rooms whose code says too seldom why it is as it is.
pub fn comments(checkout: &Checkout) -> Vec<String> {
    let rooms = checkout.rooms().into_iter();
    rooms
        .filter(|(_, lines)| lines.product >= SMALL_ROOM && lines.density() < COMMENTS)
        .map(|(room, _)| format!("fewer than {COMMENTS} comments per 100 lines: {room}"))
        .collect()
}

/// Doc comments that say no more than the name of their item.
pub fn empty_docs(checkout: &Checkout) -> Vec<String> {
    let found = checkout.product().flat_map(docs::empty);
    found
        .map(|at| format!("empty doc comment: {}:{}: {}", at.path, at.line, at.what))
        .collect()
}

/// What is wrong with the list of exceptions: lines it lacks, and lines that are needed no more.
pub fn compare(broken: &[String], exceptions: &str) -> Vec<String> {
    let listed: BTreeSet<&str> = exceptions
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let found: BTreeSet<&str> = broken.iter().map(String::as_str).collect();
    let new = found
        .difference(&listed)
        .map(|line| format!("breaks a rule: {line}"));
    let done = listed
        .difference(&found)
        .map(|line| format!("no longer an exception, remove it from the list: {line}"));
    new.chain(done).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::source::SourceFile;

    fn checkout(path: &str, text: String) -> Checkout {
        Checkout {
            files: vec![SourceFile::new(PathBuf::from(path), text)],
            prose: Vec::new(),
        }
    }

    #[test]
    fn a_long_function_breaks_a_rule() {
        let lines = "    go();\n".repeat(FUNCTION_LINES);
        let text = format!("fn long() {{\n{lines}}}\n");
        assert_eq!(
            sizes(&checkout("src/a.rs", text)),
            ["more than 70 lines: long in src/a.rs"]
        );
        let lines = "    go();\n".repeat(FUNCTION_LINES - 2);
        let text = format!("fn short() {{\n{lines}}}\n");
        assert!(sizes(&checkout("src/a.rs", text)).is_empty());
    }

    #[test]
    fn a_long_file_breaks_a_rule() {
        assert_eq!(
            sizes(&checkout("src/a.rs", "// a\n".repeat(601))),
            ["more than 600 lines: src/a.rs"]
        );
        assert!(sizes(&checkout("src/a.rs", "// a\n".repeat(600))).is_empty());
        assert_eq!(
            sizes(&checkout("crates/base/src/a.rs", "// a\n".repeat(601))),
            ["more than 600 lines: crates/base/src/a.rs"]
        );
    }

    #[test]
    fn a_room_without_comments_breaks_a_rule() {
        let code = "fn a() {}\n".repeat(100);
        assert_eq!(
            comments(&checkout("src/a/mod.rs", code.clone())),
            ["fewer than 3 comments per 100 lines: a"]
        );
        assert_eq!(
            comments(&checkout("crates/base/src/b.rs", code.clone())),
            ["fewer than 3 comments per 100 lines: b"]
        );
        let commented = format!("{code}{}", "// Why.\n".repeat(3));
        assert!(comments(&checkout("src/a/mod.rs", commented)).is_empty());
    }

    #[test]
    fn a_name_and_a_word_break_rules() {
        let text = "pub struct A;\npub(crate) enum A {}\n// whoever comes\n".to_owned();
        assert_eq!(
            broken(&checkout("src/a.rs", text)),
            ["name of two types: A", "vague word: whoever in src/a.rs"]
        );
    }

    #[test]
    fn prose_is_read_for_vague_words() {
        let found = words(&Checkout {
            files: Vec::new(),
            prose: vec![("docs/a.md".to_owned(), "Somebody did.".to_owned())],
        });
        assert_eq!(found, ["vague word: somebody in docs/a.md"]);
    }

    #[test]
    fn an_exception_that_is_needed_no_more_is_found() {
        let broken = ["a".to_owned(), "b".to_owned()];
        assert_eq!(
            compare(&broken, "# kept\nb\nc\n"),
            [
                "breaks a rule: a",
                "no longer an exception, remove it from the list: c"
            ]
        );
        assert!(compare(&broken, "a\nb\n").is_empty());
    }
}
