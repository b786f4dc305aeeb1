//! Whether the source keeps the project's own rules; messages are `path:line: what is wrong`.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read the source has failed"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Where every path of this test begins.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust files below a folder.
fn sources(below: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// `room → rooms it may name`, from the table in docs/architecture.md.
fn rules(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    text.lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split('|');
            let room = cells.next()?.trim().trim_matches('`').to_owned();
            let may = cells
                .nth(1)?
                .split_whitespace()
                .map(|word| word.trim_matches(['`', ',']).to_owned());
            Some((
                room,
                may.filter(|word| !word.is_empty() && word != "–").collect(),
            ))
        })
        .collect()
}

/// The room a file of `src/` is in.
fn room(path: &Path) -> String {
    let inside = path.strip_prefix(root().join("src")).unwrap();
    let first = inside
        .components()
        .next()
        .unwrap()
        .as_os_str()
        .to_string_lossy()
        .into_owned();
    first.trim_end_matches(".rs").to_owned()
}

/// Rooms named by `crate::room` in a source, with their lines; comments are not code.
fn named(source: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in source.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        for part in code.split("crate::").skip(1) {
            let name: String = part
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            found.push((number + 1, name));
        }
    }
    found
}

fn violations(room: &str, source: &str, rules: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let Some(may) = rules.get(room) else {
        return vec![format!(
            "1: room '{room}' is not in the table of docs/architecture.md"
        )];
    };
    named(source)
        .into_iter()
        .filter(|(_, name)| name != room && rules.contains_key(name) && !may.contains(name))
        .map(|(line, name)| {
            format!("{line}: '{room}' may not use '{name}', see the table in docs/architecture.md")
        })
        .chain(
            named(source)
                .into_iter()
                .filter(|(_, name)| name.is_empty())
                .map(|(line, _)| format!("{line}: `use crate::{{…}}` hides which room is used")),
        )
        .collect()
}

#[test]
fn rooms_use_only_what_the_table_allows() {
    let text = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let rules = rules(&text);
    assert!(rules.len() > 10, "the table was not understood: {rules:?}");
    let mut wrong = Vec::new();
    for path in sources(&root().join("src")) {
        let room = room(&path);
        if room == "lib" || room == "main" {
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        // Tests may look anywhere: what they need is not what the product needs.
        let source = source
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default()
            .to_owned();
        if path
            .file_stem()
            .is_some_and(|stem| stem == "tests" || stem == "sample")
        {
            continue;
        }
        wrong.extend(
            violations(&room, &source, &rules)
                .into_iter()
                .map(|what| format!("{}:{what}", path.display())),
        );
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_rule_itself_can_fail() {
    let rules = rules(
        "| `verdict` | judges | `record` |\n| `record` | keeps | – |\n| `report` | shows | `verdict` |\n",
    );
    assert_eq!(rules["record"].len(), 0);
    let bad = "fn f() {}\nuse crate::report::Report;\n// crate::report in a comment is fine\n";
    assert_eq!(
        violations("verdict", bad, &rules),
        ["2: 'verdict' may not use 'report', see the table in docs/architecture.md"]
    );
    assert!(violations("verdict", "use crate::record::Record;", &rules).is_empty());
    assert_eq!(
        violations("verdict", "use crate::{record};", &rules).len(),
        1
    );
    assert_eq!(violations("new", "", &rules).len(), 1);
}

#[test]
fn every_file_says_what_it_is_for() {
    let mut wrong = Vec::new();
    for below in ["src", "crates/engine/src", "crates/stats/src", "tests"] {
        for path in sources(&root().join(below)) {
            let text = fs::read_to_string(&path).unwrap();
            if !text.lines().any(|line| line.starts_with("//! ")) {
                wrong.push(format!("{}:1: no `//!` header", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn unsafe_is_in_the_engine_alone() {
    for library in ["src/lib.rs", "src/main.rs", "crates/stats/src/lib.rs"] {
        let text = fs::read_to_string(root().join(library)).unwrap();
        assert!(
            text.contains("#![forbid(unsafe_code)]"),
            "{library}:1: no forbid(unsafe_code)"
        );
    }
}

/// Words that have another one in the glossary, and their replacement.
const BANNED: [(&str, &str); 6] = [
    ("iodepth", "queue depth"),
    ("experiment", "study"),
    ("baseline_run", "baseline"),
    ("test_run", "run"),
    ("benchmark_run", "run"),
    ("think_pause", "think time"),
];

#[test]
fn names_are_those_of_the_glossary() {
    let mut wrong = Vec::new();
    for below in ["src", "crates/engine/src", "crates/stats/src"] {
        for path in sources(&root().join(below)) {
            for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
                let code = line.split("//").next().unwrap_or_default();
                for (word, better) in BANNED {
                    if code.contains(&format!("fn {word}"))
                        || code.contains(&format!("struct {word}"))
                        || code.contains(&format!("let {word}"))
                    {
                        wrong.push(format!(
                            "{}:{}: \"{word}\" is called \"{better}\" here",
                            path.display(),
                            number + 1
                        ));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
