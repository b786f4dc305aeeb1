//! The schema beside the parser: an editor takes what the program takes, and underlines what it refuses.

use super::*;
use boon::{Compiler, SchemaIndex, Schemas};
use std::path::{Path, PathBuf};

/// A schema, ready to be asked.
struct Checker {
    schemas: Schemas,
    schema: SchemaIndex,
}

impl Checker {
    fn of(kinds: &Kinds<'_>) -> Self {
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        let place = "http://localhost/study.json";
        compiler.add_resource(place, schema(kinds)).unwrap();
        let schema = compiler.compile(place, &mut schemas).unwrap();
        Self { schemas, schema }
    }

    /// The faults of a study as an editor would underline them.
    fn faults(&self, study: &str) -> Result<(), String> {
        let study: toml::Table = study.parse().expect("a study is TOML");
        let study = serde_json::to_value(study).unwrap();
        let valid = self.schemas.validate(&study, self.schema);
        valid.map_err(|error| format!("{error:#}"))
    }
}

#[test]
fn every_study_that_ships_is_valid() {
    let checker = Checker::of(&Kinds::real());
    for (name, text) in SHIPPED {
        if let Err(faults) = checker.faults(text) {
            panic!("{name}: {faults}");
        }
    }
}

#[test]
fn every_whole_study_in_the_documentation_is_valid() {
    let checker = Checker::of(&Kinds::real());
    let mut checked = 0;
    for page in pages(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")) {
        let text = std::fs::read_to_string(&page).unwrap();
        let blocks = text.split("```toml\n").skip(1);
        for block in blocks.filter_map(|rest| rest.split("```").next()) {
            let whole = ["[[stack]]", "[[workload]]"]
                .iter()
                .all(|it| block.contains(it));
            if whole {
                checked += 1;
                if let Err(faults) = checker.faults(block) {
                    panic!("{}: {faults}\n{block}", page.display());
                }
            }
        }
    }
    assert!(checked >= 5, "{checked}");
}

fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap());
    let found = entries.flat_map(|entry| match entry.path() {
        path if path.is_dir() => pages(&path),
        path => vec![path],
    });
    found
        .filter(|path| path.extension().is_some_and(|it| it == "md"))
        .collect()
}

#[test]
fn values_are_spelled_as_the_parser_takes_them() {
    let checker = Checker::of(&KINDS);
    let at = |setting: &str, value: &str| match setting {
        "bytes" => GOOD.replace("\"2 GiB\"", value),
        decide => format!("{GOOD}{decide} = {value}\n"),
    };
    let taken = [
        ("bytes", "\"2GiB\""),
        ("bytes", "\" 2.5 G \""),
        ("bytes", "\"3000 MB\""),
        ("bytes", "4294967296"),
        ("bytes", "\"4294967296\""),
        ("at-most", "\"90 minutes\""),
        ("at-most", "\"1.5h\""),
        ("at-most", "\"100 seconds\""),
        ("margin", "\"5 %\""),
        ("margin", "0.05"),
        ("rounds-at-most", "12"),
        ("until", "\"each\""),
    ];
    let refused = [
        ("bytes", "\"2 GigaB\""),
        ("bytes", "\"1.2.3 GiB\""),
        ("bytes", "\"\""),
        ("bytes", "-1"),
        ("bytes", "true"),
        ("at-most", "\"90\""),
        ("at-most", "90"),
        ("at-most", "\"5 parsecs\""),
        ("margin", "5"),
        ("margin", "\"5 percent\""),
        ("rounds-at-most", "\"12\""),
        ("rounds-at-most", "1.5"),
        ("until", "\"always\""),
    ];
    for (setting, value) in taken {
        let study = at(setting, value);
        good(&study);
        assert_eq!(checker.faults(&study), Ok(()), "{setting} = {value}");
    }
    for (setting, value) in refused {
        let study = at(setting, value);
        bad(&study);
        let faults = checker.faults(&study).unwrap_err();
        // At its place, not at the head of the file.
        let place = match setting {
            "bytes" => "/stack/0/loop/size",
            decide => &format!("/decide/{decide}"),
        };
        assert!(faults.contains(place), "{setting} = {value}: {faults}");
    }
}

#[test]
fn a_misspelled_word_is_blamed_on_its_own_table() {
    let checker = Checker::of(&KINDS);
    let study = GOOD.replace("name = \"random write\"", "wieght = 2");
    let faults = checker.faults(&study).unwrap_err();
    assert!(faults.contains("/workload/0"), "{faults}");
    assert!(faults.contains("wieght"), "{faults}");
    assert!(!faults.contains("/stack"), "{faults}");
}

#[test]
fn a_word_that_is_a_number_may_be_written_as_one() {
    let checker = Checker::of(&Kinds::real());
    let study = |md: &str| {
        format!(
            "[[stack]]\nloop = {{ size = \"1 GiB\", count = 2 }}\n[[stack]]\nmd = {{ {md} }}\n\
             [[workload]]\nrandom = {{ mode = \"read\", size = \"1 MiB\", time = \"1 s\" }}\n"
        )
    };
    for md in [
        "raid = 1",
        "raid = \"1\"",
        "raid = 1, metadata = 1.2",
        "raid = 1, metadata = \"1.2\"",
    ] {
        assert_eq!(checker.faults(&study(md)), Ok(()), "{md}");
    }
    for md in ["raid = 7", "raid = 1, metadata = 3.0", "raid = true"] {
        assert!(checker.faults(&study(md)).is_err(), "{md}");
    }
}
