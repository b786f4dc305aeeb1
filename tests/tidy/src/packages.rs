//! The packages of the product, found from the folders of a checkout: the only list of them.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

use crate::source::SourceFile;

/// Packages whose modules are no rooms. Each is one thing, and names its parts as it likes.
const WITHOUT_ROOMS: [&str; 5] = ["drives", "engine", "stats", "system", "ublk"];

/// A package of the product: the program itself, or a folder of `crates/`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Package {
    /// The name of its folder below `crates/`; empty for the program.
    pub name: String,
}

impl Package {
    /// The package in `crates/<name>`; without a name, the program.
    pub fn named(name: &str) -> Self {
        let name = name.to_owned();
        Self { name }
    }

    /// The package that a file belongs to; none for `tests/`, `fuzz/` and other folders.
    pub fn of(path: &Path) -> Option<Self> {
        let mut parts = path.iter().map(|part| part.to_string_lossy());
        match parts.next()?.as_ref() {
            "src" => Some(Self::named("")),
            "crates" => Some(Self::named(&parts.next()?)),
            _ => None,
        }
    }

    /// Its folder, with a slash behind it; empty for the program.
    pub fn folder(&self) -> String {
        match self.name.as_str() {
            "" => String::new(),
            name => format!("crates/{name}/"),
        }
    }

    /// The folder of its Rust files.
    pub fn sources(&self) -> String {
        format!("{}src", self.folder())
    }

    /// The name by which code of other packages uses it, such as `stackrace_base`.
    pub fn code_name(&self) -> String {
        match self.name.as_str() {
            "" => "stackrace".to_owned(),
            name => format!("stackrace_{name}"),
        }
    }

    /// Its modules are rooms of `docs/architecture.md`. A new package has rooms.
    pub fn has_rooms(&self) -> bool {
        !WITHOUT_ROOMS.contains(&self.name.as_str())
    }
}

/// All packages of a checkout. One from before there were packages is the program alone.
pub fn all(root: &Path) -> io::Result<Vec<Package>> {
    let mut found = vec![Package::named("")];
    let crates = root.join("crates");
    if crates.is_dir() {
        for entry in fs::read_dir(crates)? {
            let path = entry?.path();
            if path.join("Cargo.toml").is_file() {
                let name = path.file_name().unwrap_or_default();
                found.push(Package::named(&name.to_string_lossy()));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The packages that some files belong to.
pub fn of_files(files: &[SourceFile]) -> BTreeSet<Package> {
    files
        .iter()
        .filter_map(|file| Package::of(&file.path))
        .collect()
}

/// The room of a file: the first part below the `src/` of its package. What is in no room is counted
/// with its package, or with its folder.
pub fn room(path: &Path) -> String {
    let first = || {
        path.iter().next().map_or(String::new(), |part| {
            part.to_string_lossy().trim_end_matches(".rs").to_owned()
        })
    };
    let Some(package) = Package::of(path) else {
        return first();
    };
    let inside = path.strip_prefix(package.sources()).ok();
    match inside.and_then(|inside| inside.iter().next()) {
        Some(room) if package.has_rooms() => {
            room.to_string_lossy().trim_end_matches(".rs").to_owned()
        }
        _ => package.folder().trim_end_matches('/').to_owned(),
    }
}

/// A module that a package's `lib.rs` declares.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Declared {
    /// The module.
    pub name: String,
    /// The condition before it, such as `#[cfg(feature = "sqlite")]`; empty without one.
    pub condition: String,
    /// The file that `#[path = …]` names; empty without one.
    pub path: String,
}

/// The modules that a `lib.rs` declares, those of tests left out.
pub fn declared(library: &SourceFile) -> Vec<Declared> {
    let mut found = Vec::new();
    let (mut condition, mut path) = (String::new(), String::new());
    for (number, code) in library.product_lines() {
        let text = library.text.lines().nth(number).unwrap_or_default().trim();
        if text.starts_with("#[cfg(") {
            text.clone_into(&mut condition);
        } else if let Some(named) = text.strip_prefix("#[path = \"") {
            named.trim_end_matches("\"]").clone_into(&mut path);
        } else if !text.starts_with("#[") {
            let item = code.trim().strip_prefix("pub ").unwrap_or(code.trim());
            if let Some(name) = item
                .strip_prefix("mod ")
                .and_then(|item| item.strip_suffix(';'))
            {
                found.push(Declared {
                    name: name.to_owned(),
                    condition: std::mem::take(&mut condition),
                    path: std::mem::take(&mut path),
                });
            }
            condition.clear();
            path.clear();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn the_folder_says_which_package_a_file_belongs_to() {
        let of = |path: &str| Package::of(Path::new(path)).map(|package| package.sources());
        assert_eq!(of("src/cli/mod.rs").as_deref(), Some("src"));
        assert_eq!(
            of("crates/base/src/unit.rs").as_deref(),
            Some("crates/base/src")
        );
        assert_eq!(of("tests/run/main.rs"), None);
        assert!(Package::named("").has_rooms() && Package::named("new").has_rooms());
        assert!(!Package::named("engine").has_rooms());
        assert_eq!(Package::named("base").code_name(), "stackrace_base");
    }

    #[test]
    fn declared_modules_keep_their_condition_and_path() {
        let text = "mod a;\n#[cfg(feature = \"x\")]\npub mod b;\n#[cfg(test)]\nmod tests;\n#[path = \"../c.rs\"]\nmod c;\npub use a::A;\n";
        let file = SourceFile::new(PathBuf::from("src/lib.rs"), text.to_owned());
        let found: Vec<_> = declared(&file)
            .into_iter()
            .map(|at| (at.name, at.condition, at.path))
            .collect();
        let of = |name: &str, condition: &str, path: &str| {
            (name.to_owned(), condition.to_owned(), path.to_owned())
        };
        assert_eq!(
            found,
            [
                of("a", "", ""),
                of("b", "#[cfg(feature = \"x\")]", ""),
                of("c", "", "../c.rs")
            ]
        );
    }

    #[test]
    fn a_room_is_the_same_in_any_package() {
        let room = |path: &str| room(Path::new(path));
        assert_eq!(room("src/unit.rs"), "unit");
        assert_eq!(room("crates/base/src/unit.rs"), "unit");
        assert_eq!(room("crates/judge/src/verdict/mod.rs"), "verdict");
        assert_eq!(room("crates/base/tests/a.rs"), "crates/base");
        assert_eq!(room("crates/engine/src/spec.rs"), "crates/engine");
        assert_eq!(room("tests/run/main.rs"), "tests");
    }
}
