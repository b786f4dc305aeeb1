//! Which file uses which: `use` and paths in code, followed through re-exports to where the item is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::source::SourceFile;

/// The modules of one crate.
#[derive(Debug)]
pub struct Crate {
    /// Module path → module; the root is the empty path.
    modules: BTreeMap<Vec<String>, Module>,
}

#[derive(Debug)]
struct Module {
    /// The file, below the root of the checkout.
    file: String,
    /// Names this file brings into scope, and the paths they stand for.
    names: BTreeMap<String, Vec<String>>,
    /// Paths of `use …::*`.
    globs: Vec<Vec<String>>,
    /// Paths the code names, with their lines; `pub use` of what the code does not use is not among them.
    uses: Vec<(usize, Vec<String>)>,
    /// Items defined here.
    items: BTreeSet<String>,
}

/// One file uses another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The file that uses.
    pub from: String,
    /// The file that is used.
    pub to: String,
    /// The first line that says so, from 1.
    pub line: usize,
}

impl Crate {
    /// Reads the modules of the crate whose sources lie in `folder`. Tests do not count.
    pub fn read(files: &[SourceFile], folder: &str) -> Self {
        let mut modules = BTreeMap::new();
        for file in files {
            let Ok(inside) = file.path.strip_prefix(folder) else {
                continue;
            };
            // main.rs is a crate of its own, which uses the library by its name.
            if inside == Path::new("main.rs") || file.test_lines.iter().all(|test| *test) {
                continue;
            }
            let mut path: Vec<String> = inside
                .with_extension("")
                .iter()
                .map(|part| part.to_string_lossy().into_owned())
                .collect();
            if path.last().is_some_and(|last| last == "mod") || path == ["lib"] {
                path.pop();
            }
            modules.insert(path, Module::read(file));
        }
        Self { modules }
    }

    /// Who uses whom, each pair once.
    pub fn edges(&self) -> Vec<Edge> {
        let mut found: BTreeMap<(String, String), usize> = BTreeMap::new();
        for (path, module) in &self.modules {
            for (line, used) in &module.uses {
                if let Some(target) = self.file_of(path, used, 0)
                    && target != module.file
                {
                    let first = found
                        .entry((module.file.clone(), target.to_owned()))
                        .or_insert(*line);
                    *first = (*first).min(*line);
                }
            }
        }
        found
            .into_iter()
            .map(|((from, to), line)| Edge { from, to, line })
            .collect()
    }

    /// The file in which a path, named in a module, is defined.
    fn file_of(&self, from: &[String], path: &[String], depth: usize) -> Option<&str> {
        // Re-exports may go round in circles.
        if depth > 8 {
            return None;
        }
        let mut at: Vec<String> = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => from.to_vec(),
            first => {
                let mut child = from.to_vec();
                child.push(first.to_owned());
                self.modules.contains_key(&child).then(|| from.to_vec())?
            }
        };
        let mut rest = path;
        while let Some(first) = rest.first() {
            match first.as_str() {
                "crate" | "self" => {}
                "super" => {
                    at.pop();
                }
                _ => break,
            }
            rest = &rest[1..];
        }
        while let Some(first) = rest.first() {
            at.push(first.clone());
            if !self.modules.contains_key(&at) {
                at.pop();
                break;
            }
            rest = &rest[1..];
        }
        let module = self.modules.get(&at)?;
        let Some(item) = rest.first() else {
            return Some(&module.file);
        };
        if at == from || module.items.contains(item) {
            return Some(&module.file);
        }
        if let Some(named) = module.names.get(item) {
            let mut full = named.clone();
            full.extend(rest[1..].iter().cloned());
            return self.file_of(&at, &full, depth + 1);
        }
        for glob in &module.globs {
            let mut full = glob.clone();
            full.push(item.clone());
            if let Some(file) = self.file_of(&at, &full, depth + 1)
                && self
                    .modules
                    .values()
                    .any(|module| module.file == file && module.items.contains(item))
            {
                return Some(file);
            }
        }
        Some(&module.file)
    }
}

impl Module {
    fn read(file: &SourceFile) -> Self {
        let code = file.product_code();
        let tokens = tokens(&code);
        let mut module = Self {
            file: file.path.to_string_lossy().into_owned(),
            names: BTreeMap::new(),
            globs: Vec::new(),
            uses: Vec::new(),
            items: BTreeSet::new(),
        };
        let mut published = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let (line, word) = (tokens[at].line, tokens[at].text);
            if word == "use" {
                let mut paths = Vec::new();
                let public = is_public(&tokens, at);
                at = use_tree(&tokens, at + 1, &[], &mut paths);
                for (path, alias) in paths {
                    match alias {
                        Some(name) => {
                            module.names.insert(name.clone(), path.clone());
                            if public {
                                published.push((line, name, path));
                                continue;
                            }
                        }
                        None => module.globs.push(path.clone()),
                    }
                    module.uses.push((line, path));
                }
                continue;
            }
            if matches!(
                word,
                "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union"
            ) && let Some(next) = tokens.get(at + 1)
            {
                module.items.insert(next.text.to_owned());
            }
            if word == "macro_rules"
                && let Some(next) = tokens.get(at + 2)
            {
                module.items.insert(next.text.to_owned());
            }
            let (path, next) = path_here(&tokens, at);
            // The path of `pub(in …)` says who may see an item: it is no use.
            let visibility = at > 2 && tokens[at - 1].text == "in" && tokens[at - 3].text == "pub";
            if path.len() > 1 && !visibility {
                module.uses.push((line, path));
            }
            at = next;
        }
        // A name that is only handed on is no use of it; one that the code mentions is.
        for (line, name, path) in published {
            let mentions = tokens.iter().filter(|token| token.text == name).count();
            if mentions > 1 {
                module.uses.push((line, path));
            }
        }
        module
    }
}

struct Token<'a> {
    line: usize,
    text: &'a str,
}

/// Words, `::`, and single signs.
fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let width = if first.is_alphanumeric() || first == '_' {
                rest.find(|c: char| !(c.is_alphanumeric() || c == '_'))
                    .unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            if !first.is_whitespace() {
                found.push(Token {
                    line: number + 1,
                    text: &rest[..width],
                });
            }
            rest = &rest[width..];
        }
    }
    found
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Whether `pub` or `pub(…)` stands before the token.
fn is_public(tokens: &[Token], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).map(|at| tokens[at].text);
    match before(1) {
        Some("pub") => true,
        Some(")") => (2..8).any(|back| before(back) == Some("pub")),
        _ => false,
    }
}

/// `a::b::c` at a token, and the token behind it.
fn path_here(tokens: &[Token], start: usize) -> (Vec<String>, usize) {
    if !is_word(tokens[start].text) {
        return (Vec::new(), start + 1);
    }
    let mut path = vec![tokens[start].text.to_owned()];
    let mut at = start + 1;
    while at + 1 < tokens.len() && tokens[at].text == "::" && is_word(tokens[at + 1].text) {
        path.push(tokens[at + 1].text.to_owned());
        at += 2;
    }
    (path, at)
}

/// The paths of one `use`, each with the name it gets (none for `*`); returns the token behind.
fn use_tree(
    tokens: &[Token],
    mut at: usize,
    prefix: &[String],
    into: &mut Vec<(Vec<String>, Option<String>)>,
) -> usize {
    let mut path = prefix.to_vec();
    while let Some(token) = tokens.get(at) {
        match token.text {
            "::" => at += 1,
            "*" => {
                into.push((path, None));
                return at + 1;
            }
            "{" => {
                at += 1;
                while let Some(token) = tokens.get(at) {
                    match token.text {
                        "}" => return at + 1,
                        "," => at += 1,
                        _ => at = use_tree(tokens, at, &path, into),
                    }
                }
                return at;
            }
            "as" => {
                let name = tokens.get(at + 1).map_or("_", |token| token.text);
                into.push((path, Some(name.to_owned())));
                return at + 2;
            }
            word if is_word(word) => {
                path.push(word.to_owned());
                at += 1;
            }
            _ => break,
        }
    }
    if path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let name = path.last().cloned();
    into.push((path, name));
    at
}

/// Groups that use each other in a circle, the largest first; a group of one is no circle.
pub fn circles(edges: &[(String, String)]) -> Vec<Vec<String>> {
    let mut reach: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, _) in edges {
        let mut seen = BTreeSet::new();
        let mut open = vec![from.as_str()];
        while let Some(here) = open.pop() {
            for (_, to) in edges.iter().filter(|(from, _)| from == here) {
                if seen.insert(to.as_str()) {
                    open.push(to);
                }
            }
        }
        reach.insert(from, seen);
    }
    let mut groups: BTreeSet<Vec<String>> = BTreeSet::new();
    for (from, seen) in &reach {
        if seen.contains(from) {
            let group = seen
                .iter()
                .filter(|other| reach.get(*other).is_some_and(|back| back.contains(from)))
                .map(|other| (*other).to_owned())
                .collect();
            groups.insert(group);
        }
    }
    let mut groups: Vec<_> = groups.into_iter().filter(|group| group.len() > 1).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    groups
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn pairs(files: &[(&str, &str)]) -> Vec<(String, String)> {
        let files: Vec<SourceFile> = files
            .iter()
            .map(|(path, text)| SourceFile::new(PathBuf::from(path), (*text).to_owned()))
            .collect();
        Crate::read(&files, "src")
            .edges()
            .into_iter()
            .map(|edge| (edge.from, edge.to))
            .collect()
    }

    #[test]
    fn a_child_that_uses_a_parent_that_uses_it_is_a_circle() {
        let edges = pairs(&[
            (
                "src/a/mod.rs",
                "mod b;\npub struct T;\nfn f() { b::go(); }\n",
            ),
            ("src/a/b.rs", "use super::T;\npub fn go() {}\n"),
        ]);
        assert_eq!(circles(&edges), [["src/a/b.rs", "src/a/mod.rs"]]);
    }

    #[test]
    fn a_re_export_is_followed_to_the_file_that_defines_the_item() {
        let edges = pairs(&[
            (
                "src/a/mod.rs",
                "mod b;\nmod c;\npub use b::{B, go};\nuse c::C;\n",
            ),
            ("src/a/b.rs", "pub struct B;\npub fn go() {}\n"),
            (
                "src/a/c.rs",
                "use super::B;\nuse crate::a::go as run;\npub struct C;\n",
            ),
        ]);
        assert_eq!(
            edges,
            [
                ("src/a/c.rs".to_owned(), "src/a/b.rs".to_owned()),
                ("src/a/mod.rs".to_owned(), "src/a/c.rs".to_owned()),
            ]
        );
        assert!(circles(&edges).is_empty());
    }

    #[test]
    fn a_path_that_only_says_who_may_see_an_item_makes_no_circle() {
        let edges = pairs(&[
            (
                "src/a/mod.rs",
                "mod b;\npub struct T;\nfn f() { b::go(); }\n",
            ),
            ("src/a/b.rs", "pub(in crate::a) fn go() {}\n"),
        ]);
        assert!(circles(&edges).is_empty(), "{edges:?}");
    }

    #[test]
    fn tests_make_no_circle() {
        let edges = pairs(&[
            (
                "src/a/mod.rs",
                "mod b;\npub struct T;\nfn f() { b::go(); }\n",
            ),
            (
                "src/a/b.rs",
                "pub fn go() {}\n#[cfg(test)]\nmod tests {\n    use crate::a::T;\n}\n",
            ),
        ]);
        assert!(circles(&edges).is_empty(), "{edges:?}");
    }
}
