//! The packages: their table in docs/architecture.md, their README, and the crate that finds unused code.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read the source has failed"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use stackrace_tidy::packages::{self, Declared, Package};
use stackrace_tidy::source::SourceFile;

/// Where every path of this test begins.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A file by its path below the root.
fn file(path: &str) -> SourceFile {
    let text = fs::read_to_string(root().join(path)).unwrap();
    SourceFile::new(PathBuf::from(path), text)
}

/// The modules that a package's `lib.rs` declares.
fn modules(package: &Package) -> Vec<Declared> {
    packages::declared(&file(&format!("{}/lib.rs", package.sources())))
}

/// What tests/whole is to declare for a module of a package.
fn wanted(package: &Package, module: Declared) -> Declared {
    let sources = package.sources();
    let single = format!("{sources}/{}.rs", module.name);
    let path = if root().join(&single).is_file() {
        single
    } else {
        format!("{sources}/{}/mod.rs", module.name)
    };
    Declared {
        name: module.name,
        condition: module.condition,
        path: format!("../../../{path}"),
    }
}

#[test]
fn unused_code_is_looked_for_in_the_rooms_of_all_packages() {
    let packages = packages::all(root()).unwrap();
    let rooms: BTreeSet<Declared> = packages
        .iter()
        .filter(|package| package.has_rooms())
        .flat_map(|package| modules(package).into_iter().map(|at| wanted(package, at)))
        .collect();
    assert!(rooms.len() > 30, "the rooms were not found: {rooms:?}");
    let whole = file("tests/whole/src/lib.rs");
    let listed: BTreeSet<Declared> = packages::declared(&all_product(&whole))
        .into_iter()
        .collect();
    let missing: Vec<_> = rooms.difference(&listed).collect();
    let strange: Vec<_> = listed.difference(&rooms).collect();
    assert!(
        missing.is_empty() && strange.is_empty(),
        "tests/whole/src/lib.rs:1: it lacks {missing:#?}\nand has {strange:#?}"
    );
    for package in packages.iter().filter(|package| package.has_rooms()) {
        let line = format!("extern crate self as {};", package.code_name());
        let is_there = package.name.is_empty() || whole.text.contains(&line);
        assert!(is_there, "tests/whole/src/lib.rs:1: it lacks `{line}`");
    }
}

/// A file of `tests/` read as if it were one of the product.
fn all_product(file: &SourceFile) -> SourceFile {
    SourceFile::new(PathBuf::from("src/lib.rs"), file.text.clone())
}

/// A row of the table of packages.
#[derive(Debug, Default, PartialEq, Eq)]
struct Row {
    rooms: BTreeSet<String>,
    may_use: BTreeSet<String>,
}

/// `package → rooms, packages it may use` from a table whose cells are name, line, rooms, uses.
fn table(text: &str) -> BTreeMap<String, Row> {
    let words = |cell: &str| -> BTreeSet<String> {
        let quoted = cell.split('`').skip(1).step_by(2);
        quoted.map(str::to_owned).collect()
    };
    text.lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.strip_prefix("| `")?.split('|').collect();
            let [name, _, rooms, may_use, ..] = cells.as_slice() else {
                return None;
            };
            let row = Row {
                rooms: words(rooms),
                may_use: words(may_use),
            };
            Some((name.trim().trim_matches('`').to_owned(), row))
        })
        .collect()
}

/// Packages of this workspace that a manifest names for the product, not for tests.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut product = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            let of_system = line.starts_with("[target.") && line.ends_with(".dependencies]");
            product = of_system || line == "[dependencies]";
        } else if product && let Some(name) = line.strip_prefix("stackrace-") {
            let end = name.find(['.', ' ', '=']).unwrap_or(name.len());
            found.insert(name[..end].to_owned());
        }
    }
    found
}

#[test]
fn the_table_of_packages_says_what_they_have_and_use() {
    let text = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let section = text
        .split("\n## ")
        .find_map(|part| part.strip_prefix("The packages"))
        .unwrap();
    let rows = table(section);
    let mut wanted = BTreeMap::new();
    for package in packages::all(root()).unwrap() {
        let manifest = root().join(package.folder()).join("Cargo.toml");
        let mut row = Row {
            may_use: dependencies(&fs::read_to_string(manifest).unwrap()),
            ..Row::default()
        };
        if package.has_rooms() {
            row.rooms = modules(&package).into_iter().map(|at| at.name).collect();
        }
        let name = package.folder().trim_end_matches('/').to_owned();
        wanted.insert(if name.is_empty() { "src".into() } else { name }, row);
    }
    for (name, row) in &wanted {
        assert_eq!(
            rows.get(name),
            Some(row),
            "the row of {name} in docs/architecture.md"
        );
    }
    assert_eq!(rows.len(), wanted.len(), "{rows:?}");
}

#[test]
fn every_package_says_in_its_readme_how_to_test_it_alone() {
    for package in packages::all(root()).unwrap() {
        if package.name.is_empty() {
            continue;
        }
        let folder = package.folder();
        let read = |name: &str| fs::read_to_string(root().join(&folder).join(name)).unwrap();
        let line = format!("cargo test -p stackrace-{}", package.name);
        assert!(
            read("README.md").contains(&line),
            "{folder}README.md: `{line}`"
        );
        assert!(
            read("Cargo.toml").contains("readme = \"README.md\""),
            "{folder}Cargo.toml"
        );
    }
}

#[test]
fn a_package_that_uses_another_one_is_seen() {
    let manifest = "[workspace.dependencies]\nstackrace-y = { path = \"y\" }\n\n[dependencies]\nstackrace-base.workspace = true\nstackrace-x = { path = \"x\" }\n\n[dev-dependencies]\nstackrace-judge.workspace = true\n";
    assert_eq!(
        dependencies(manifest).into_iter().collect::<Vec<_>>(),
        ["base", "x"]
    );
    let rows = table("| `crates/a` | does | `b` `c` | `base` |\n| `crates/d` | does | – | – |\n");
    assert_eq!(
        rows["crates/a"].may_use,
        BTreeSet::from(["base".to_owned()])
    );
    assert_eq!(rows["crates/a"].rooms.len(), 2);
    assert_eq!(rows["crates/d"], Row::default());
}
