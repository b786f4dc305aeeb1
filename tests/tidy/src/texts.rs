//! Values that travel as text: words of settings that are compared, and texts that are taken apart.

use crate::source::SourceFile;

/// Files that read a setting as text and tell its words apart: a word that is added would fall to
/// whatever the rest of the words falls to, and no compiler says so. `setting::choice` gives values.
pub fn words_compared(file: &SourceFile) -> Vec<String> {
    let code = file.product_code();
    let ends = |c: char| matches!(c, ';' | '{' | '}');
    let mut found = Vec::new();
    for getter in [".text(", ".optional_text("] {
        for (at, _) in code.match_indices(getter) {
            let start = code[..at].rfind(ends).map_or(0, |end| end + 1);
            let end = code[at..].find(ends).map_or(code.len(), |end| at + end);
            let statement = &code[start..end];
            let borrowed = [".as_str()", ".as_deref()"]
                .iter()
                .any(|way| statement.contains(way));
            let compared = ["== \"", "!= \"", "== Some(\"", "!= Some(\""];
            if (statement.contains("match") && borrowed)
                || compared.iter().any(|sign| statement.contains(sign))
            {
                found.push(format!(
                    "word of a setting compared as text: {}",
                    file.path.display()
                ));
            }
        }
    }
    found
}

/// Places whose job is text that others wrote, with what it is. Everything there may be taken apart.
const FOREIGN: [(&str, &str); 15] = [
    (
        "crates/base/src/event/figure.rs",
        "facts of logs from before facts had values",
    ),
    (
        "crates/base/src/event/older.rs",
        "what older logs say in words",
    ),
    ("crates/base/src/printed", "what measuring tools print"),
    ("crates/base/src/unit", "amounts as people write them"),
    ("crates/drives/src", "cards and traces of drives"),
    ("crates/engine/src", "what the kernel and its tools print"),
    ("crates/fio/src", "jobs and reports of fio"),
    ("crates/foundation/src", "what tools of storage print"),
    ("crates/layers/src/stack", "what tools of storage print"),
    ("crates/import/src/import", "files of other tools"),
    ("crates/load/src/programs", "what other programs print"),
    (
        "crates/load/src/tools",
        "command lines and outputs of the originals",
    ),
    (
        "crates/machine/src",
        "files of the kernel, outputs of commands",
    ),
    ("crates/remote/src", "what other machines answer"),
    ("crates/system/src", "what the kernel prints"),
];

/// Methods that look for words in a text, or cut it at them.
const CUTTING: [&str; 11] = [
    "contains",
    "ends_with",
    "find",
    "rsplit",
    "rsplit_once",
    "split",
    "split_once",
    "starts_with",
    "strip_prefix",
    "strip_suffix",
    "trim_start_matches",
];

/// Texts that are taken apart by words outside of the places for it, one line each: a value was made
/// a sentence, and the sentence is read back, which falls silent the day its words change. Single
/// marks (`/`, `,`, `:`) are no words; those are how people write lists and paths.
pub fn words_cut(file: &SourceFile) -> Vec<String> {
    if FOREIGN
        .iter()
        .any(|(place, _)| file.path.starts_with(place))
    {
        return Vec::new();
    }
    let code = file.product_code();
    let mut found = Vec::new();
    for method in CUTTING {
        let call = format!(".{method}(\"");
        for (at, _) in code.match_indices(&call) {
            // Offsets of the code are those of the text, where the literal stands.
            let literal = &file.text[at + call.len()..];
            let literal = literal.split('"').next().unwrap_or_default();
            if literal.chars().any(char::is_alphabetic) {
                found.push(format!(
                    "text cut at words: {method}(\"{literal}\") in {}",
                    file.path.display()
                ));
            }
        }
    }
    found
}

/// Places that take paths as they are, with the reason. Everywhere else a path is for people, and is shown by
/// `ShownPath`: a line break in a name begins a line that looks like one of ours.
const RAW: [(&str, &str); 19] = [
    ("crates/afp/src", "options of mounts"),
    ("crates/drives", "uses no other package"),
    ("crates/layers/src/stack/afp", "files of the server"),
    ("crates/layers/src/stack/btrfs", "options of mounts"),
    ("crates/layers/src/stack/drbd", "files of the resource"),
    ("crates/layers/src/stack/gfs2", "files of the cluster"),
    ("crates/layers/src/stack/smb", "files of the server"),
    (
        "crates/load/src/tools/postmark",
        "names as the original has them",
    ),
    ("crates/load/src/workload/pools.rs", "lists of files"),
    ("crates/machine/src/host/plan.rs", "commands"),
    ("crates/places/src/place/clients/mod.rs", "a manifest"),
    ("crates/remote/src/agent/shell/program.rs", "scripts"),
    ("crates/remote/src/lab", "command lines of guests"),
    ("crates/run/src/run", "names on record"),
    ("src/cli/report.rs", "an answer for programs"),
    ("src/cli/serve.rs", "a value of a page"),
    ("src/commands/compare.rs", "names on record"),
    ("src/commands/doctor.rs", "an answer for programs"),
    ("src/commands/load.rs", "names on record"),
];

/// Files in which a path goes into a text as it is, though the text is for people.
pub fn paths_raw(file: &SourceFile) -> Vec<String> {
    let imagined = file.path.ends_with("imagined.rs");
    if imagined || RAW.iter().any(|(place, _)| file.path.starts_with(place)) {
        return Vec::new();
    }
    match file.product_code().contains(".display()") {
        true => vec![format!("path shown as it is: {}", file.path.display())],
        false => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn file(text: &str) -> SourceFile {
        SourceFile::new(PathBuf::from("src/a.rs"), text.to_owned())
    }

    #[test]
    fn a_word_of_a_setting_that_is_compared_as_text_is_found() {
        for bad in [
            "fn f() { match settings.text(\"a\")?.as_str() { \"b\" => 1, _ => 2 } }\n",
            "fn f() { let x = settings.text(A)? == \"b\"; }\n",
            "fn f() { if s.optional_text(\"a\")?.as_deref() == Some(\"b\") { g() } }\n",
            "fn f() { matches!(s.optional_text(\"a\")?\n        .as_deref(), Some(\"b\")) }\n",
        ] {
            let found = ["word of a setting compared as text: src/a.rs"];
            assert_eq!(words_compared(&file(bad)), found, "{bad}");
        }
        for good in [
            "fn f() { match settings.optional_text(\"a\")? { Some(a) => a, None => b } }\n",
            "fn f() { let a = settings.text(\"a\")?; }\n",
            "#[test]\nfn f() { assert!(s.text(\"a\")? == \"b\"); }\n",
        ] {
            assert!(words_compared(&file(good)).is_empty(), "{good}");
        }
    }

    #[test]
    fn a_text_that_is_cut_at_words_is_found_outside_of_the_places_for_it() {
        let bad = "fn f(said: &str) { said.split_once(\" % of \"); said.split(','); }\n";
        let found = ["text cut at words: split_once(\" % of \") in src/a.rs"];
        assert_eq!(words_cut(&file(bad)), found);
        let foreign = PathBuf::from("crates/import/src/import/a.rs");
        assert!(words_cut(&SourceFile::new(foreign, bad.to_owned())).is_empty());
    }

    #[test]
    fn a_path_that_is_shown_as_it_is_is_found() {
        let bad = "fn f(p: &Path) -> String { format!(\"no {}\", p.display()) }\n";
        assert_eq!(paths_raw(&file(bad)), ["path shown as it is: src/a.rs"]);
        let of = |path: &str, text: &str| {
            paths_raw(&SourceFile::new(PathBuf::from(path), text.to_owned()))
        };
        assert_eq!(
            of("crates/show/src/a.rs", bad),
            ["path shown as it is: crates/show/src/a.rs"]
        );
        let shown = bad.replace("display", "shown");
        assert_eq!(of("crates/show/src/a.rs", &shown), [""; 0]);
        let test = format!("#[test]\n{bad}");
        assert_eq!(of("crates/show/src/a.rs", &test), [""; 0]);
    }
}
