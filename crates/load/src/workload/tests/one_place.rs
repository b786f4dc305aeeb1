//! A workload's word is said in its own file or folder and in the one list, and the how-to is true.

use crate::programs;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Words of workloads that are also words of settings, of other tools and of English: in this package, which has the
/// settings of all workloads and the readers of all tools, they say nothing.
const ORDINARY: [&str; 4] = ["command", "files", "fio", "random"];

/// Words that other files say, and why they have to. Only to be shortened: what a kind is stands on it.
const ELSEWHERE: [(&str, &[&str], &str); 30] = [
    (
        "src/cli/other_tools.rs",
        &["files"],
        "the setting that fio calls nrfiles",
    ),
    (
        "src/commands/compare/typed.rs",
        &["command", "fio"],
        "settings that options of `compare` become, so that a refusal names the option",
    ),
    (
        "crates/layers/src/stack/aged/mod.rs",
        &["files"],
        "what a file system is filled with, in its facts",
    ),
    (
        "crates/base/src/printed/alike.rs",
        &["command"],
        "the setting of a printed result with its command line",
    ),
    (
        "crates/places/src/place/options.rs",
        &["find-rate"],
        "the option --find-rate",
    ),
    (
        "src/cli/placed.rs",
        &["find-rate"],
        "the option --find-rate",
    ),
    (
        "crates/options/src/options/own_program.rs",
        &["fio", "replay"],
        "the options --fio and --replay",
    ),
    (
        "crates/base/src/event/older.rs",
        &[
            "bonnie++",
            "command",
            "copy-file",
            "copy-tree",
            "delete-tree",
            "extract-tar",
            "fileio",
            "files",
            "fio",
            "postmark",
            "promises",
            "random",
            "read-file",
            "sequential",
            "stream-video",
        ],
        "logs from before their properties were kept",
    ),
    (
        "crates/judge/src/published",
        &[
            "bonnie++",
            "copy-file",
            "delete-tree",
            "extract-tar",
            "postmark",
            "stream-video",
        ],
        "the loads of published studies, and what of ours stands beside them",
    ),
    (
        "crates/import/src/import/importers/pgbench.rs",
        &["postgresql"],
        "a kind that pgbench measures as well",
    ),
    (
        "crates/import/src/import/account.rs",
        &["bonnie++", "postmark"],
        "names of tools",
    ),
    (
        "crates/import/src/import/shell/line.rs",
        &["bonnie++"],
        "the name of a tool",
    ),
    (
        "crates/import/src/import/signs.rs",
        &["bonnie++"],
        "the name of a tool",
    ),
    (
        "crates/fio/src/fio/import.rs",
        &["sequential"],
        "a kind that fio measures as well",
    ),
    (
        "crates/load/src/workload/postgres_server.rs",
        &["postgresql"],
        "the name of a package",
    ),
    (
        "crates/load/src/workload/promises",
        &["postgresql", "sqlite"],
        "the words of idioms",
    ),
    (
        "crates/load/src/workload/promises.rs",
        &["postgresql", "sqlite"],
        "the words of idioms",
    ),
    (
        "crates/remote/src/lab/postgresql.rs",
        &["postgresql"],
        "the name of a package",
    ),
    (
        "crates/show/src/export/around.rs",
        &["command"],
        "the name of a column",
    ),
    (
        "crates/show/src/report",
        &["command", "promises"],
        "heads of tables",
    ),
    (
        "crates/show/src/web/import.rs",
        &["files"],
        "the name of an element of a page",
    ),
    (
        "crates/study/src/purpose/meant.rs",
        &["build", "files", "postgresql", "sqlite"],
        "the names of purposes, and what people call them",
    ),
    (
        "crates/study/src/purpose/mod.rs",
        &["build", "files", "postgresql"],
        "the names of purposes",
    ),
    (
        "crates/options/src/options/own_program.rs",
        &["command"],
        "the name of an argument",
    ),
    (
        "crates/options/src/options/record.rs",
        &["command"],
        "the name of an argument",
    ),
    (
        "src/cli/trace.rs",
        &["files"],
        "the name of a count in JSON",
    ),
    (
        "src/cli/placed.rs",
        &["files", "git", "random"],
        "a test of all options, with a value of each",
    ),
    ("src/cli/show.rs", &["files"], "the head of a table"),
    (
        "crates/places/src/place/options.rs",
        &["fio", "replay"],
        "the names of options",
    ),
    (
        "src/commands/own_program.rs",
        &["command"],
        "what a command without a name is called",
    ),
];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// Files of code below a folder, as paths from the root.
fn sources(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path.strip_prefix(root()).unwrap().to_path_buf()),
            }
        }
    }
    found.retain(|path| path.extension().is_some_and(|ending| ending == "rs"));
    found
}

/// Code without comments, unit tests and features of the build.
fn code(source: &str) -> impl Iterator<Item = &str> {
    let product = source.split("#[cfg(test)]\nmod tests {").next();
    let lines = product.unwrap_or_default().lines();
    let code = lines.filter_map(|line| line.split("//").next());
    code.filter(|line| !line.contains("feature = \""))
}

/// Texts in double quotes.
fn quoted(source: &str) -> BTreeSet<&str> {
    code(source)
        .flat_map(|line| line.split('"').skip(1).step_by(2))
        .collect()
}

/// The files that have a kind of workload, with its word: each its own, and what lies in a folder with it.
fn kinds() -> Vec<(PathBuf, &'static str)> {
    let all = programs::workloads();
    let files = sources("crates/load/src").into_iter().filter_map(|path| {
        let text = text(&path);
        let (_, kind) = text.split_once("KIND: WorkloadKind = WorkloadKind {")?;
        let word = kind.split(',').next()?.trim();
        let word = word.strip_prefix("name: ")?.trim_matches('"');
        // One of them has its word in a constant.
        let named = |kind: &&crate::workload::WorkloadKind| {
            kind.name == word || kind.name.to_uppercase() == word
        };
        // Not there where the program was built without it.
        Some((path, all.iter().find(named)?.name))
    });
    files.collect()
}

/// Whether a file may say the word of a workload: its own file, one in its folder, or in that of a tool.
fn owns(kind: &Path, path: &Path) -> bool {
    let folder = kind.parent().unwrap();
    let is_own_folder = kind.ends_with("mod.rs") || folder.parent().unwrap().ends_with("tools");
    path == kind || is_own_folder && path.starts_with(folder)
}

#[test]
fn a_workloads_word_is_said_in_its_own_place_only() {
    let kinds = kinds();
    let (mut used, mut misplaced) = (BTreeSet::new(), Vec::new());
    let packages = std::fs::read_dir(root().join("crates")).unwrap();
    let packages = packages.map(|package| package.unwrap().file_name());
    let packages = packages.map(|name| format!("crates/{}/src", name.display()));
    let folders =
        packages.filter(|folder| folder != "crates/engine/src" && root().join(folder).exists());
    for path in folders
        .chain(["src".to_owned()])
        .flat_map(|folder| sources(&folder))
    {
        let is_test = |part: &Path| part.ends_with("tests") || part.ends_with("testing");
        let name = path.file_name().unwrap();
        if name == "tests.rs" || name == "sample.rs" || path.ancestors().any(is_test) {
            continue;
        }
        let source = text(&path);
        let quoted = quoted(&source);
        for (own, word) in kinds.iter().filter(|(_, word)| quoted.contains(word)) {
            let ordinary = ORDINARY.contains(word)
                && ["crates/fio", "crates/load", "crates/import"]
                    .iter()
                    .any(|own| path.starts_with(own));
            if ordinary || owns(own, &path) {
                continue;
            }
            let known = ELSEWHERE
                .iter()
                .find(|(place, allowed, _)| path.starts_with(place) && allowed.contains(word));
            match known {
                Some((place, ..)) => drop(used.insert((*place, *word))),
                None => misplaced.push(format!("{}: \"{word}\"", path.display())),
            }
        }
    }
    assert!(
        misplaced.is_empty(),
        "these belong to a workload, make what needs them there a property of it: {misplaced:#?}"
    );
    for (place, allowed, _) in ELSEWHERE {
        for word in allowed {
            let built = kinds.iter().any(|(_, kind)| kind == word);
            assert!(
                !built || used.contains(&(place, word)),
                "{place} says \"{word}\" no more"
            );
        }
    }
}

/// A file with a workload that is in no list could not be named in a study.
#[test]
fn every_workload_has_a_file_of_its_name_and_a_line_in_a_list() {
    let kinds = kinds();
    assert_eq!(kinds.len(), programs::workloads().len());
    for (path, word) in kinds {
        let name = word.replace('-', "_");
        let folder = path.parent().unwrap();
        let named = path.ends_with(format!("{name}.rs")) || folder.ends_with(&name);
        let of_a_tool = folder.parent().unwrap().ends_with("tools");
        assert!(named || of_a_tool, "{word} is in {}", path.display());
    }
}

#[test]
fn the_how_to_names_files_that_are_there_and_every_field_of_a_workload() {
    let page = text(Path::new("docs/howto/add-a-workload.md"));
    for path in page.split('`').skip(1).step_by(2) {
        let is_path = path.contains('/') && !path.contains([' ', '\n']);
        if is_path && !path.contains("NAME") {
            assert!(root().join(path).exists(), "{path} does not exist");
        }
    }
    let source = text(Path::new("crates/load/src/workload/kind.rs"));
    let (_, kind) = source.split_once("pub struct WorkloadKind {").unwrap();
    let (kind, _) = kind.split_once("\n}").unwrap();
    let fields = kind
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub "));
    for field in fields.filter_map(|line| line.split(':').next()) {
        assert!(
            page.contains(&format!("`{field}`")),
            "the how-to does not tell of {field}"
        );
    }
}
