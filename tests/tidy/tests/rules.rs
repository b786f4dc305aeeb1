//! Whether the source keeps the project's own rules; messages are `path:line: what is wrong`.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read the source has failed"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use stackrace_tidy::figures::Checkout;
use stackrace_tidy::packages::{self, Package};
use stackrace_tidy::rules;
use stackrace_tidy::source::{self, SourceFile};

/// Where every path of this test begins.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The Rust files of the product and its tests.
fn sources(folders: &[&str]) -> Vec<SourceFile> {
    source::read(root(), folders).unwrap()
}

/// The packages, and the Rust files in the `src/` of those that are wanted.
fn sources_of(wanted: impl Fn(&Package) -> bool) -> Vec<SourceFile> {
    let packages = packages::all(root()).unwrap();
    assert!(packages.len() > 10, "the packages were not found");
    let folders: Vec<String> = packages
        .iter()
        .filter(|package| wanted(package))
        .map(Package::sources)
        .collect();
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    sources(&folders)
}

/// The section of docs/architecture.md below a heading.
fn section(heading: &str) -> String {
    let text = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let found = text
        .split("\n## ")
        .find_map(|part| part.strip_prefix(heading));
    found.unwrap_or_default().to_owned()
}

/// `room → rooms it may name`, from the table in docs/architecture.md.
fn table(text: &str) -> BTreeMap<String, BTreeSet<String>> {
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

/// Rooms named in the code of the product, with their lines: by `crate::room`, and by `stackrace_x::room` if
/// they are in another package. An empty name stands for one that cannot be seen.
fn named(file: &SourceFile) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let word = |text: &str| text.chars().take_while(|c| is_name(*c)).collect::<String>();
    for (number, code) in file.product_lines() {
        for part in code.split("crate::").skip(1) {
            found.push((number + 1, word(part)));
        }
        for (at, _) in code.match_indices("stackrace_") {
            let name = word(&code[at..]);
            let package = Package::named(name.trim_start_matches("stackrace_"));
            if package.has_rooms() && !code[..at].ends_with(is_name) {
                let behind = code[at + name.len()..].strip_prefix("::");
                found.push((number + 1, word(behind.unwrap_or_default())));
            }
        }
    }
    found
}

fn violations(
    room: &str,
    source: &SourceFile,
    rules: &BTreeMap<String, BTreeSet<String>>,
) -> Vec<String> {
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
                .map(|(line, _)| {
                    format!("{line}: `use crate::{{…}}` or `stackrace_x::{{…}}` hides which room is used")
                }),
        )
        .collect()
}

#[test]
fn rooms_use_only_what_the_table_allows() {
    let rules = table(&section("The rooms"));
    assert!(rules.len() > 10, "the table was not understood: {rules:?}");
    let mut wrong = Vec::new();
    // Tests may look anywhere: what they need is not what the product needs.
    for file in sources_of(Package::has_rooms) {
        let room = packages::room(&file.path);
        if room == "lib" || room == "main" {
            continue;
        }
        wrong.extend(
            violations(&room, &file, &rules)
                .into_iter()
                .map(|what| format!("{}:{what}", file.path.display())),
        );
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Rooms and files that work on what is below the store.
const IN_THE_STORE: [&str; 9] = [
    "crates/base/src/appendlog.rs",
    "crates/machine/src/journal/",
    "crates/results/src/record/",
    "crates/run/src/prepare/clean.rs",
    "crates/run/src/prepare/context.rs",
    "crates/run/src/execute/mod.rs",
    "src/commands/leftovers.rs",
    "crates/run/src/execute/resume.rs",
    "crates/run/src/prepare/temporary.rs",
];

/// What opens, reads, makes or removes a file by its path.
const BY_PATH: [&str; 12] = [
    "std::fs::read",
    "std::fs::write",
    "std::fs::remove",
    "std::fs::create",
    "std::fs::metadata",
    "std::fs::OpenOptions",
    "std::fs::{",
    "fs::open",
    "File::open",
    "File::create",
    "OpenOptions",
    ".is_file()",
];

/// Files of the store that are reached by another way than `crates/base/src/owned/mod.rs`.
fn around_the_owned(file: &SourceFile) -> Vec<String> {
    let path = file.path.to_string_lossy();
    if !IN_THE_STORE.iter().any(|place| path.starts_with(place)) {
        return Vec::new();
    }
    file.product_lines()
        .filter_map(|(number, code)| {
            let begins = |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric());
            let is_there = |word: &&&str| code.match_indices(**word).any(|(at, _)| begins(at));
            let word = BY_PATH.iter().find(is_there)?;
            let line = number + 1;
            Some(format!(
                "{path}:{line}: {word}: files of the store are opened by crates/base/src/owned/mod.rs alone"
            ))
        })
        .collect()
}

#[test]
fn files_of_the_store_are_opened_in_one_place() {
    let sources = sources_of(|_| true);
    let wrong: Vec<String> = sources.iter().flat_map(around_the_owned).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    for place in IN_THE_STORE {
        let found = |file: &SourceFile| file.path.to_string_lossy().starts_with(place);
        assert!(sources.iter().any(found), "{place} is there no more");
    }
}

#[test]
fn a_file_of_the_store_opened_elsewhere_breaks_the_rule() {
    let file = |path: &str, text: &str| SourceFile::new(PathBuf::from(path), text.to_owned());
    let bad = "fn f() {}\nfn g() { std::fs::read(path); }\n// std::fs::read in a comment is fine\n";
    let found = around_the_owned(&file("crates/results/src/record/a.rs", bad));
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("crates/results/src/record/a.rs:2: "),
        "{found:?}"
    );
    let named = "fn f() { NowFile::create(dir); }\n";
    assert!(around_the_owned(&file("crates/results/src/record/a.rs", named)).is_empty());
    assert!(around_the_owned(&file("src/cli/a.rs", bad)).is_empty());
    let tests = "#[cfg(test)]\nmod tests {\n    fn f() { std::fs::read(path); }\n}\n";
    assert!(around_the_owned(&file("crates/results/src/record/a.rs", tests)).is_empty());
}

/// Functions of the C library, whose last digit depends on the processor and on the library.
const BY_THE_LIBRARY: &[&str] = &[
    ".ln()",
    ".ln_1p()",
    ".log2()",
    ".log10()",
    ".exp()",
    ".exp2()",
    ".exp_m1()",
    ".powf(",
    ".sin()",
    ".cos()",
    ".tan()",
    "f64::ln",
    "f64::log",
    "f64::exp",
    "f64::powf",
];

/// Figures whose last digit depends on where they are computed.
fn not_the_same_everywhere(file: &SourceFile) -> Vec<String> {
    let path = file.path.display();
    file.product_lines()
        .filter_map(|(number, code)| {
            let word = BY_THE_LIBRARY.iter().find(|word| code.contains(**word))?;
            let line = number + 1;
            Some(format!(
                "{path}:{line}: {word}: not the same on every processor, take libm's"
            ))
        })
        .collect()
}

// Not the engine: its times differ from machine to machine anyway, and a draw must cost little.
#[test]
fn figures_are_computed_the_same_on_every_processor() {
    let sources = sources_of(|package| package.name != "engine");
    let is_read = |place: &str| sources.iter().any(|file| file.path.starts_with(place));
    for place in ["src/cli", "crates/judge/src/verdict", "crates/stats/src"] {
        assert!(is_read(place), "{place} was not read");
    }
    let wrong: Vec<String> = sources.iter().flat_map(not_the_same_everywhere).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    let bad = "fn f(x: f64) -> f64 { x.ln() }\nfn g() { table.ln(a, b); }\n// x.exp() in a comment is fine\n";
    let found =
        not_the_same_everywhere(&SourceFile::new(PathBuf::from("src/a.rs"), bad.to_owned()));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("src/a.rs:1: .ln()"), "{found:?}");
}

#[test]
fn the_rule_itself_can_fail() {
    let rules = table(
        "| `verdict` | judges | `record` |\n| `record` | keeps | – |\n| `report` | shows | `verdict` |\n",
    );
    assert_eq!(rules["record"].len(), 0);
    let file = |text: &str| {
        SourceFile::new(
            PathBuf::from("crates/judge/src/verdict/a.rs"),
            text.to_owned(),
        )
    };
    let bad = "fn f() {}\nuse crate::report::Report;\n// crate::report in a comment is fine\n";
    assert_eq!(
        violations("verdict", &file(bad), &rules),
        ["2: 'verdict' may not use 'report', see the table in docs/architecture.md"]
    );
    assert!(violations("verdict", &file("use crate::record::Record;"), &rules).is_empty());
    assert_eq!(
        violations("verdict", &file("use crate::{record};"), &rules).len(),
        1
    );
    assert_eq!(violations("new", &file(""), &rules).len(), 1);
}

#[test]
fn a_room_of_another_package_breaks_the_rule_too() {
    let rules = table(
        "| `verdict` | judges | `unit` |\n| `unit` | counts | – |\n| `report` | shows | `verdict` |\n",
    );
    let found = |text: &str| {
        let path = PathBuf::from("crates/judge/src/verdict/a.rs");
        violations(
            &packages::room(&path),
            &SourceFile::new(path, text.to_owned()),
            &rules,
        )
    };
    assert!(found("use stackrace_base::unit::bytes;\nuse stackrace_engine::{Spec};\n").is_empty());
    let wrong = ["1: 'verdict' may not use 'report', see the table in docs/architecture.md"];
    assert_eq!(found("fn f() { stackrace_show::report::html() }\n"), wrong);
    assert_eq!(found("pub use stackrace_show::report;\n"), wrong);
    for hidden in [
        "use stackrace_base::{report};\n",
        "use stackrace_show as show;\n",
        "use stackrace_show::*;\n",
    ] {
        assert_eq!(found(hidden).len(), 1, "{hidden}");
    }
}

#[test]
fn every_file_says_what_it_is_for() {
    let mut wrong = Vec::new();
    for file in sources(&["src", "crates", "tests"]) {
        if !file.text.lines().any(|line| line.starts_with("//! ")) {
            wrong.push(format!("{}:1: no `//!` header", file.path.display()));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Packages with unsafe code: the load generator, and what stands between it and the kernel.
const UNSAFE: [&str; 3] = ["engine", "system", "ublk"];

#[test]
fn unsafe_is_in_the_engine_alone() {
    let mut libraries = vec!["src/main.rs".to_owned()];
    let packages = packages::all(root()).unwrap().into_iter();
    libraries.extend(
        packages
            .filter(|package| !UNSAFE.contains(&package.name.as_str()))
            .map(|package| format!("{}/lib.rs", package.sources())),
    );
    assert!(libraries.len() > 10, "{libraries:?}");
    for library in libraries {
        let text = fs::read_to_string(root().join(&library)).unwrap();
        assert!(
            text.lines().any(|line| line == "#![forbid(unsafe_code)]"),
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
    for file in sources(&["src", "crates"]) {
        for (number, code) in file.product_lines() {
            for (word, better) in BANNED {
                if ["fn", "struct", "let"]
                    .iter()
                    .any(|kind| code.contains(&format!("{kind} {word}")))
                {
                    wrong.push(format!(
                        "{}:{}: \"{word}\" is called \"{better}\" here",
                        file.path.display(),
                        number + 1
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn sizes_circles_names_words_and_comments_are_as_agreed() {
    let checkout = Checkout::read(root()).unwrap();
    assert!(checkout.files.len() > 300, "the checkout was not read");
    let exceptions = fs::read_to_string(root().join("tests/tidy/exceptions.txt")).unwrap();
    let wrong = rules::compare(&rules::broken(&checkout), &exceptions);
    assert!(
        wrong.is_empty(),
        "`bench/house --list` says where:\n{}",
        wrong.join("\n")
    );
}

/// Test targets with a `main` of their own: their paths, from a package's `Cargo.toml`.
fn own_harness(manifest: &str) -> Vec<String> {
    manifest
        .split("[[test]]")
        .skip(1)
        .filter(|target| {
            let target = target.split("\n[").next().unwrap_or_default();
            target.contains("harness = false")
        })
        .filter_map(|target| target.split('"').nth(1))
        .map(|name| format!("tests/{name}"))
        .collect()
}

/// What a file of tests does so that a test is not run and nothing says so.
fn silently_not_run(file: &SourceFile, own_harness: bool) -> Vec<String> {
    let path = file.path.display();
    let mut wrong = Vec::new();
    for (number, (code, line)) in file.code.lines().zip(file.text.lines()).enumerate() {
        // Without Rust's harness the attribute means nothing, and the function is no test.
        if own_harness && code.contains("#[test]") {
            wrong.push(format!(
                "{path}:{}: `#[test]` in a target with `harness = false`",
                number + 1
            ));
        }
        if line.to_lowercase().contains(concat!("\"skip", "ped: ")) {
            wrong.push(format!(
                "{path}:{}: a test says that it is skipped, and passes",
                number + 1
            ));
        }
    }
    wrong
}

#[test]
fn a_test_that_does_not_run_is_reported_as_ignored() {
    let mut wrong = Vec::new();
    let mut targets = 0;
    for package in packages::all(root()).unwrap() {
        let folder = package.folder();
        let manifest = root().join(&folder).join("Cargo.toml");
        let own = own_harness(&fs::read_to_string(manifest).unwrap());
        targets += own.len();
        for path in &own {
            let target = root().join(&folder).join(path);
            let is_there = target.with_extension("rs").exists() || target.join("main.rs").exists();
            assert!(is_there, "{folder}{path}");
        }
        // A target is a file, or a folder with everything in it; `all` has every file beside it.
        let is_own = |path: &Path| {
            own.iter().any(|target| {
                let target = PathBuf::from(format!("{folder}{target}"));
                let all = target.ends_with("all") && path.starts_with(format!("{folder}tests"));
                // Packages of their own stand there, too.
                let own_package = ["needs", "tidy", "whole"]
                    .iter()
                    .any(|name| path.starts_with(format!("tests/{name}")));
                let beside = all && !own_package;
                beside || path == target.with_extension("rs") || path.starts_with(&target)
            })
        };
        let below = [package.sources(), format!("{folder}tests")];
        for file in sources(&below.each_ref().map(String::as_str)) {
            wrong.extend(silently_not_run(&file, is_own(&file.path)));
        }
    }
    assert!(targets > 0, "the target was not found");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// A file that is no module of the one program is not even compiled.
#[test]
fn every_file_of_tests_belongs_to_the_one_program() {
    let all = fs::read_to_string(root().join("tests/all.rs")).unwrap();
    let mut found = 0;
    for entry in fs::read_dir(root().join("tests")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let has_tests =
            path.join("mod.rs").exists() || path.extension().is_some_and(|it| it == "rs");
        if !has_tests || ["all", "support"].contains(&name.as_str()) {
            continue;
        }
        found += 1;
        assert!(
            all.contains(&format!("mod {name};\n")),
            "tests/all.rs lacks mod {name}"
        );
        let group = format!("needs::group(\"{name}\", {name}::tests())");
        assert!(all.contains(&group), "tests/all.rs does not run {name}");
    }
    assert!(found > 20, "{found}");
}

#[test]
fn a_test_that_is_silently_not_run_is_found() {
    let manifest = "[[test]]\nname = \"a\"\nharness = false\n\n[[test]]\nname = \"b\"\n[lib]\n";
    assert_eq!(own_harness(manifest), ["tests/a"]);
    let text = concat!(
        "#[test]\nfn a() {\n    println!(\"skip",
        "ped: no tar\");\n}\n"
    );
    let file = SourceFile::new(PathBuf::from("tests/a.rs"), text.to_owned());
    assert_eq!(silently_not_run(&file, true).len(), 2);
    assert_eq!(silently_not_run(&file, false).len(), 1);
}
