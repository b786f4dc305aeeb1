//! What can be counted in a checkout.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

use crate::imports::{self, Crate, Edge};
use crate::packages::{self, Package, room};
use crate::source::{self, Comment, LineStarts, SourceFile, matching};

/// Folders with Rust files.
const FOLDERS: [&str; 4] = ["src", "crates", "tests", "fuzz"];

/// Folders and files in which people read sentences, besides the Rust files.
const PROSE: [&str; 9] = [
    "docs",
    "studies",
    "bench",
    ".ci",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "tests",
    "Cargo.toml",
];

/// The longest a function may be, and the longest a file may be.
pub const FUNCTION_LINES: usize = 70;
/// See [`FUNCTION_LINES`].
pub const FILE_LINES: usize = 600;
/// How many lines of code make a duplicate.
pub const DUPLICATE_LINES: usize = 6;

/// A checkout, read once.
pub struct Checkout {
    /// The Rust files.
    pub files: Vec<SourceFile>,
    /// Path and text of everything else that people read.
    pub prose: Vec<(String, String)>,
}

/// A place in a file and what is there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The path below the root of the checkout.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// What is there.
    pub what: String,
}

/// Lines of one room.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoomLines {
    /// Code without tests, blanks and comments.
    pub product: usize,
    /// All lines of its files.
    pub all: usize,
    /// Lines of the product with a comment that is not documentation.
    pub inline_comments: usize,
}

impl RoomLines {
    /// Inline comments per hundred lines of code.
    pub fn density(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "counts of lines are small")]
        let (comments, code) = (self.inline_comments as f64, self.product.max(1) as f64);
        100.0 * comments / code
    }
}

/// A function and how long it is.
#[derive(Debug)]
pub struct Function {
    /// Where it is, and its name.
    pub at: Finding,
    /// From `fn` to the closing brace.
    pub lines: usize,
}

impl Checkout {
    /// Reads a checkout.
    pub fn read(root: &Path) -> io::Result<Self> {
        let files = source::read(root, &FOLDERS)?;
        let mut prose = Vec::new();
        let packages = packages::all(root)?;
        let readmes = packages
            .iter()
            .map(|package| format!("{}README.md", package.folder()))
            .filter(|path| !PROSE.contains(&path.as_str()));
        for place in PROSE.into_iter().map(str::to_owned).chain(readmes) {
            let path = root.join(place);
            let mut paths = Vec::new();
            if path.is_file() {
                paths.push(path);
            } else {
                collect_all(&path, &mut paths)?;
            }
            for path in paths {
                let inside = path.strip_prefix(root).unwrap_or(&path);
                // What other tools printed is kept as they printed it.
                let kept =
                    inside.starts_with("tests/golden") || inside.starts_with("bench/results");
                if kept || inside.extension().is_some_and(|ending| ending == "rs") {
                    continue;
                }
                if let Ok(text) = fs::read_to_string(&path) {
                    prose.push((inside.to_string_lossy().into_owned(), text));
                }
            }
        }
        Ok(Self { files, prose })
    }

    /// Files of the product: those with at least one line of it.
    pub fn product(&self) -> impl Iterator<Item = &SourceFile> {
        self.files
            .iter()
            .filter(|file| file.product_lines().next().is_some())
    }

    /// Lines by room.
    pub fn rooms(&self) -> BTreeMap<String, RoomLines> {
        let mut rooms: BTreeMap<String, RoomLines> = BTreeMap::new();
        for file in &self.files {
            let lines = rooms.entry(room(&file.path)).or_default();
            lines.all += file.test_lines.len();
            lines.product += file.product_lines().count();
            lines.inline_comments += file
                .comments
                .iter()
                .zip(&file.test_lines)
                .filter(|(comment, test)| **comment == Some(Comment::Inline) && !**test)
                .count();
        }
        rooms
    }

    /// All functions, those of tests too.
    pub fn functions(&self) -> Vec<Function> {
        self.files.iter().flat_map(functions).collect()
    }

    /// Files with more lines than a file may have, with their product lines and all their lines.
    pub fn long_files(&self) -> Vec<(String, usize, usize)> {
        self.files
            .iter()
            .map(|file| {
                (
                    file.path.to_string_lossy().into_owned(),
                    file.product_lines().count(),
                    file.test_lines.len(),
                )
            })
            .filter(|(_, _, all)| *all > FILE_LINES)
            .collect()
    }

    /// Which product file uses which, crate by crate.
    pub fn edges(&self) -> Vec<Edge> {
        // Cargo allows no circle of packages: files of two packages cannot use each other.
        packages::of_files(&self.files)
            .iter()
            .flat_map(|package| Crate::read(&self.files, &package.sources()).edges())
            .collect()
    }

    /// Groups of files that use each other in a circle.
    pub fn file_circles(&self) -> Vec<Vec<String>> {
        let edges: Vec<_> = self
            .edges()
            .into_iter()
            .map(|edge| (edge.from, edge.to))
            .collect();
        imports::circles(&edges)
    }

    /// Groups of rooms that use each other in a circle.
    pub fn room_circles(&self) -> Vec<Vec<String>> {
        let edges: BTreeSet<_> = self
            .edges()
            .into_iter()
            .map(|edge| (room(Path::new(&edge.from)), room(Path::new(&edge.to))))
            .filter(|(from, to)| from != to)
            .collect();
        imports::circles(&edges.into_iter().collect::<Vec<_>>())
    }

    /// Types that are visible in their package, by name, where a name is there more than once. The packages
    /// with rooms count as one: a reader of the program meets the types of all of them.
    pub fn twin_types(&self) -> BTreeMap<String, Vec<Finding>> {
        let mut found: BTreeMap<(String, String), Vec<Finding>> = BTreeMap::new();
        for file in self.product() {
            let path = file.path.to_string_lossy().into_owned();
            let owner = match Package::of(&file.path) {
                Some(package) if package.has_rooms() => String::new(),
                Some(package) => package.folder(),
                None => path.split("src/").next().unwrap_or_default().to_owned(),
            };
            // `no_x.rs` replaces `x.rs` where a feature is off: only one of them is compiled.
            if file
                .path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("no_"))
            {
                continue;
            }
            for (number, line) in file.product_lines() {
                if let Some(name) = visible_type(line) {
                    found
                        .entry((owner.clone(), name.to_owned()))
                        .or_default()
                        .push(Finding {
                            path: path.clone(),
                            line: number + 1,
                            what: name.to_owned(),
                        });
                }
            }
        }
        found
            .into_iter()
            .filter(|(_, places)| places.len() > 1)
            .map(|((owner, name), places)| (format!("{owner}{name}"), places))
            .collect()
    }

    /// Lines with words that point at people who are not there.
    pub fn vague_words(&self) -> Vec<Finding> {
        let rust = self.files.iter().map(|file| {
            let path = file.path.to_string_lossy().into_owned();
            (path, file.text.as_str())
        });
        let prose = self
            .prose
            .iter()
            .map(|(path, text)| (path.clone(), text.as_str()));
        rust.chain(prose)
            .filter(|(path, _)| !path.starts_with("tests/tidy/"))
            .flat_map(|(path, text)| {
                text.lines()
                    .enumerate()
                    .filter_map(|(number, line)| {
                        Some(Finding {
                            path: path.clone(),
                            line: number + 1,
                            what: vague_word(line)?.to_owned(),
                        })
                    })
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    /// Runs of product lines that are somewhere else, too: (place, lines of code).
    pub fn duplicates(&self) -> Vec<(Finding, usize)> {
        duplicates(self.product())
    }
}

/// Everything that is counted, with its place.
pub fn list(checkout: &Checkout) -> Vec<String> {
    let mut lines = Vec::new();
    for function in checkout.functions() {
        if function.lines > FUNCTION_LINES {
            let Finding { path, line, what } = &function.at;
            lines.push(format!(
                "{path}:{line}: fn {what} has {} lines",
                function.lines
            ));
        }
    }
    for (path, product, all) in checkout.long_files() {
        lines.push(format!("{path}:1: {all} lines, {product} of them product"));
    }
    for group in checkout.room_circles() {
        lines.push(format!("circle of rooms: {}", group.join(" ")));
    }
    let edges = checkout.edges();
    for group in checkout.file_circles() {
        lines.push(format!("circle of {} files:", group.len()));
        let inside = edges
            .iter()
            .filter(|edge| group.contains(&edge.from) && group.contains(&edge.to));
        lines.extend(inside.map(|edge| format!("  {}:{}: uses {}", edge.from, edge.line, edge.to)));
    }
    for Finding { path, line, what } in checkout.vague_words() {
        lines.push(format!("{path}:{line}: \"{what}\""));
    }
    for (name, places) in checkout.twin_types() {
        let twins = places
            .iter()
            .map(|at| format!("{}:{}: one of the types called {name}", at.path, at.line));
        lines.extend(twins);
    }
    for (Finding { path, line, .. }, length) in checkout.duplicates() {
        lines.push(format!(
            "{path}:{line}: {length} lines that are elsewhere, too"
        ));
    }
    for (room, count) in checkout.rooms() {
        lines.push(format!(
            "{room}: {:.1} inline comments per 100 product lines",
            count.density()
        ));
    }
    lines
}

fn collect_all(folder: &Path, into: &mut Vec<std::path::PathBuf>) -> io::Result<()> {
    for ending in [
        "md", "toml", "sh", "mjs", "json", "trycmd", "py", "html", "yml", "rs", "css", "js", "supp",
    ] {
        source::collect(folder, ending, into)?;
    }
    // Scripts without an ending.
    if folder.is_dir() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_file() && path.extension().is_none() {
                into.push(path);
            }
        }
    }
    into.sort();
    Ok(())
}

/// All functions of a file.
pub fn functions(file: &SourceFile) -> Vec<Function> {
    let code = &file.code;
    let starts = LineStarts::of(code);
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let name: String = code[at + 3..]
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        let Some(open) = body_of(code, at) else {
            continue;
        };
        if name.is_empty() {
            continue;
        }
        let first = starts.line(at);
        let last = starts.line(matching(code, open) - 1);
        found.push(Function {
            at: Finding {
                path: file.path.to_string_lossy().into_owned(),
                line: first + 1,
                what: name,
            },
            lines: last - first + 1,
        });
    }
    found
}

/// The brace that opens the body of the function at an offset; none for a declaration.
fn body_of(code: &str, mut at: usize) -> Option<usize> {
    loop {
        match code.as_bytes().get(at)? {
            b'{' => return Some(at),
            b';' => return None,
            b'(' | b'[' => at = matching(code, at),
            _ => at += 1,
        }
    }
}

/// The name of the type that a line declares for its crate, or for a part of it.
pub fn visible_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(inner) => inner.split_once(')')?.1,
        None => rest,
    };
    let mut words = rest.split_whitespace();
    let mut kind = words.next()?;
    if kind == "unsafe" {
        kind = words.next()?;
    }
    if !["struct", "enum", "trait", "type", "union"].contains(&kind) {
        return None;
    }
    let name = words.next()?;
    let end = name
        .find(|c: char| !(c.is_alphanumeric() || c == '_'))
        .unwrap_or(name.len());
    Some(&name[..end])
}

/// The first vague word of a line. The user `nobody` of Unix stands in quotes and is a name.
pub fn vague_word(line: &str) -> Option<&str> {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '"'))
        .find(|word| {
            ["whoever", "nobody", "somebody"]
                .iter()
                .any(|vague| word.trim_matches('"').eq_ignore_ascii_case(vague))
                && *word != "\"nobody\""
        })
        .map(|word| word.trim_matches('"'))
}

/// Runs of at least [`DUPLICATE_LINES`] lines of code that are found elsewhere, imports left out.
fn duplicates<'a>(files: impl Iterator<Item = &'a SourceFile>) -> Vec<(Finding, usize)> {
    struct Line {
        file: usize,
        number: usize,
        text: String,
    }
    let mut lines: Vec<Line> = Vec::new();
    let mut names = Vec::new();
    for (file, source) in files.enumerate() {
        names.push(source.path.to_string_lossy().into_owned());
        let whole: Vec<&str> = source.text.lines().collect();
        let mut in_use = false;
        for (number, code) in source.product_lines() {
            let code = code.trim();
            in_use |= code.starts_with("use ") || code.starts_with("pub use ");
            let skip = in_use || !code.contains(|c: char| c.is_alphanumeric());
            in_use &= !code.ends_with(';');
            if !skip {
                // The whole line, so that two that differ only in a literal are not the same.
                let text = whole[number].trim().to_owned();
                lines.push(Line { file, number, text });
            }
        }
    }
    let mut windows: BTreeMap<Vec<&str>, Vec<usize>> = BTreeMap::new();
    for (at, window) in lines.windows(DUPLICATE_LINES).enumerate() {
        if window.iter().all(|line| line.file == window[0].file) {
            let key = window.iter().map(|line| line.text.as_str()).collect();
            windows.entry(key).or_default().push(at);
        }
    }
    let mut twice = vec![false; lines.len()];
    for places in windows.values().filter(|places| places.len() > 1) {
        for at in places {
            twice[*at..*at + DUPLICATE_LINES].fill(true);
        }
    }
    let mut found: Vec<(Finding, usize)> = Vec::new();
    let mut before: Option<usize> = None;
    for (at, line) in lines.iter().enumerate().filter(|(at, _)| twice[*at]) {
        let goes_on = before.is_some_and(|last| last + 1 == at && lines[last].file == line.file);
        match found.last_mut() {
            Some((_, length)) if goes_on => *length += 1,
            _ => found.push((
                Finding {
                    path: names[line.file].clone(),
                    line: line.number + 1,
                    what: line.text.clone(),
                },
                1,
            )),
        }
        before = Some(at);
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn checkout(files: &[(&str, &str)]) -> Checkout {
        let files = files
            .iter()
            .map(|(path, text)| SourceFile::new(PathBuf::from(path), (*text).to_owned()))
            .collect();
        Checkout {
            files,
            prose: Vec::new(),
        }
    }

    #[test]
    fn lines_and_comments_are_counted_by_room() {
        let checkout = checkout(&[(
            "src/a/b.rs",
            "//! Doc.\n\n/// Doc.\nfn f() {\n    // Why.\n    go(); // because\n}\n#[cfg(test)]\nmod tests {\n    // no\n}\n",
        )]);
        let lines = checkout.rooms()["a"];
        assert_eq!(
            (lines.product, lines.all, lines.inline_comments),
            (3, 11, 2)
        );
    }

    #[test]
    fn a_function_is_as_long_as_from_its_name_to_its_end() {
        let checkout = checkout(&[(
            "src/a.rs",
            "trait T {\n    fn none(&self);\n}\nfn f(x: [u8; 2])\nwhere\n{\n    let s = \"}\";\n}\n",
        )]);
        let found = checkout.functions();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].at.what.as_str(), found[0].lines), ("f", 5));
    }

    #[test]
    fn two_types_with_one_name_are_found() {
        let found = checkout(&[
            ("src/a.rs", "pub struct Report;\nstruct Line;\n"),
            (
                "src/b.rs",
                "pub(crate) enum Report {}\npub(super) struct Line<T>(T);\n",
            ),
            ("crates/stats/src/lib.rs", "pub type Report = u8;\n"),
            ("crates/base/src/c.rs", "pub struct Moved;\n"),
            ("crates/show/src/d.rs", "pub struct Moved;\n"),
            ("src/index.rs", "pub struct Index;\n"),
            ("src/no_index.rs", "pub struct Index;\n"),
        ])
        .twin_types();
        assert_eq!(found.keys().collect::<Vec<_>>(), ["Moved", "Report"]);
        assert_eq!(found["Moved"][1].path, "crates/show/src/d.rs");
        assert_eq!(found["Report"].len(), 2);
    }

    #[test]
    fn vague_words_are_found_and_the_user_of_unix_is_not() {
        assert_eq!(vague_word("and Nobody's here"), Some("Nobody"));
        assert_eq!(vague_word("\"whoever comes\""), Some("whoever"));
        assert_eq!(vague_word("const GUEST: &str = \"nobody\";"), None);
        assert_eq!(vague_word("everybody"), None);
    }

    #[test]
    fn six_lines_that_are_there_twice_are_a_duplicate() {
        let six = "one();\ntwo();\nthree();\n}\nfour();\nfive();\nsix();\n";
        let found = checkout(&[
            ("src/a.rs", &format!("use a;\n{six}seven();\n")),
            ("src/b.rs", six),
            ("src/c.rs", "one();\ntwo();\nthree();\nfour();\nfive();\n"),
        ])
        .duplicates();
        let places: Vec<_> = found
            .iter()
            .map(|(at, lines)| (at.path.as_str(), at.line, *lines))
            .collect();
        assert_eq!(places, [("src/a.rs", 2, 6), ("src/b.rs", 1, 6)]);
    }

    #[test]
    fn rooms_in_a_circle_are_found() {
        let found = checkout(&[
            ("src/lib.rs", "pub mod a;\npub mod b;\n"),
            ("src/a/mod.rs", "pub mod x;\n"),
            ("src/a/x.rs", "use crate::b::y;\n"),
            ("src/b.rs", "use crate::a::x::z;\npub fn y() {}\n"),
        ])
        .room_circles();
        assert_eq!(found, [["a", "b"]]);
    }

    #[test]
    fn circles_in_another_package_are_found() {
        let checkout = checkout(&[
            ("crates/base/src/lib.rs", "pub mod a;\npub mod b;\n"),
            ("crates/base/src/a.rs", "use crate::b::y;\n"),
            (
                "crates/base/src/b/mod.rs",
                "use crate::a::z;\npub fn y() {}\n",
            ),
        ]);
        assert_eq!(checkout.room_circles(), [["a", "b"]]);
        assert_eq!(
            checkout.file_circles(),
            [["crates/base/src/a.rs", "crates/base/src/b/mod.rs"]]
        );
    }
}
