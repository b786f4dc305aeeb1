//! One Rust file, split into code, comments and tests.

use std::fs;
use std::path::{Path, PathBuf};

/// A file, its text with comments and literals blanked out, and which of its lines are tests.
#[derive(Debug)]
pub struct SourceFile {
    /// The path below the root of the checkout.
    pub path: PathBuf,
    /// The text as it is.
    pub text: String,
    /// The text with comments and the contents of literals replaced by spaces; offsets stay.
    pub code: String,
    /// For each line: what a comment on it is, if there is one.
    pub comments: Vec<Option<Comment>>,
    /// For each line: does it belong to the tests?
    pub test_lines: Vec<bool>,
    /// Files and folders of modules that exist only for tests.
    pub test_modules: Vec<PathBuf>,
}

/// Whom a comment is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comment {
    /// `///`, `//!` and their block forms: for those who use the item.
    Doc,
    /// `//` and `/* */`: for those who change the code.
    Inline,
}

impl SourceFile {
    /// Splits a text.
    pub fn new(path: PathBuf, text: String) -> Self {
        let lines = text.lines().count();
        let (code, comments) = mask(&text, lines);
        let mut file = Self {
            path,
            text,
            code,
            comments,
            test_lines: vec![false; lines],
            test_modules: Vec::new(),
        };
        file.mark_tests();
        file
    }

    /// Marks what follows `#[cfg(test)]` and `#[test]`, and collects modules declared that way.
    fn mark_tests(&mut self) {
        let code = self.code.clone();
        let starts = LineStarts::of(&code);
        // What the tests of other packages use, too, is code of tests.
        let attributes = [
            "#[cfg(test)]",
            "#[cfg(all(test",
            "#[cfg(any(test",
            "#[test]",
        ];
        for attribute in attributes {
            for (start, _) in code.match_indices(attribute) {
                let (end, header) = item_end(&code, skip_attributes(&code, start));
                self.note_test_module(start, header, end);
                let first = starts.line(start);
                let last = starts
                    .line(end.saturating_sub(1))
                    .min(self.test_lines.len() - 1);
                self.test_lines[first..=last].fill(true);
            }
        }
    }

    /// Notes the file of `mod name;`, if that is what a test attribute stands before.
    fn note_test_module(&mut self, start: usize, header: usize, end: usize) {
        let declared = self.code[header..end]
            .trim()
            .strip_suffix(';')
            .and_then(|item| item.split("mod ").nth(1));
        let Some(name) = declared else { return };
        if let Some(path) = self.text[start..header].split("path = \"").nth(1) {
            let name = path.split('"').next().unwrap_or_default();
            self.test_modules.push(self.path.with_file_name(name));
            return;
        }
        let folder = module_folder(&self.path);
        self.test_modules.push(folder.join(format!("{name}.rs")));
        self.test_modules.push(folder.join(name));
    }

    /// Marks every line as a test, for files that exist only for tests.
    pub fn mark_all_as_tests(&mut self) {
        self.test_lines.fill(true);
    }

    /// Lines that hold code of the product: no tests, no blanks, no comments.
    pub fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code
            .lines()
            .enumerate()
            .filter(|(at, line)| !self.test_lines[*at] && !line.trim().is_empty())
    }

    /// The code with the tests blanked out; offsets stay.
    pub fn product_code(&self) -> String {
        let mut left = String::with_capacity(self.code.len());
        for (at, line) in self.code.split_inclusive('\n').enumerate() {
            match self.test_lines.get(at) {
                Some(true) => left.extend(
                    line.bytes()
                        .map(|byte| if byte == b'\n' { '\n' } else { ' ' }),
                ),
                _ => left.push_str(line),
            }
        }
        left
    }
}

/// Where the lines of a text begin, to tell which line an offset is on.
pub struct LineStarts(Vec<usize>);

impl LineStarts {
    /// Finds the lines.
    pub fn of(text: &str) -> Self {
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Self(std::iter::once(0).chain(breaks).collect())
    }

    /// The line an offset is on, from 0.
    pub fn line(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset) - 1
    }
}

/// Reads the Rust files below some folders of a checkout, and marks files that exist only for tests.
pub fn read(root: &Path, folders: &[&str]) -> std::io::Result<Vec<SourceFile>> {
    let mut paths = Vec::new();
    for folder in folders {
        collect(&root.join(folder), "rs", &mut paths)?;
    }
    let mut files = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path)?;
        let inside = path.strip_prefix(root).unwrap_or(&path).to_owned();
        files.push(SourceFile::new(inside, text));
    }
    mark_test_files(&mut files);
    Ok(files)
}

/// All files below a folder whose name ends that way; a folder that is missing holds none.
pub fn collect(folder: &Path, ending: &str, into: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    entries.sort();
    for path in entries {
        // Build directories of nested packages would drown everything else.
        if path.ends_with("target") || path.ends_with("node_modules") {
            continue;
        }
        if path.is_dir() {
            collect(&path, ending, into)?;
        } else if path.extension().is_some_and(|have| have == ending) {
            into.push(path);
        }
    }
    Ok(())
}

/// Marks `tests/`, `benches/`, `examples/`, the room `testing`, and modules under `#[cfg(test)]`.
fn mark_test_files(files: &mut [SourceFile]) {
    let only_tests: Vec<PathBuf> = files
        .iter()
        .flat_map(|file| file.test_modules.clone())
        .collect();
    for file in files {
        let by_place = file.path.components().any(|part| {
            ["tests", "benches", "examples", "testing", "fuzz"]
                .iter()
                .any(|name| part.as_os_str() == *name)
        });
        let by_place = by_place || file.path.file_stem().is_some_and(|stem| stem == "testing");
        if by_place || only_tests.iter().any(|path| file.path.starts_with(path)) {
            file.mark_all_as_tests();
        }
    }
}

/// The folder in which the modules declared in a file lie.
pub fn module_folder(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default();
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    if stem == "mod" || stem == "lib" || stem == "main" {
        folder
    } else {
        folder.join(stem)
    }
}

/// The first offset behind the attributes that begin here.
fn skip_attributes(code: &str, mut at: usize) -> usize {
    loop {
        let rest = &code[at..];
        let blank = rest.len() - rest.trim_start().len();
        if !rest[blank..].starts_with("#[") {
            return at + blank;
        }
        at += blank + 1;
        at = matching(code, at);
    }
}

/// The offset behind the bracket that closes the one here.
pub fn matching(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// Where the item that begins at an offset ends, and where it begins.
fn item_end(code: &str, start: usize) -> (usize, usize) {
    let rest = &code[start..];
    let keyword = [
        "pub",
        "fn",
        "impl",
        "mod",
        "use",
        "struct",
        "enum",
        "const",
        "static",
        "type",
        "trait",
        "unsafe",
        "async",
        "let",
        "extern",
        "macro_rules",
    ]
    .iter()
    .any(|word| rest.starts_with(word));
    let mut at = start;
    let bytes = code.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            b';' => return (at + 1, start),
            // A field, a variant or an arm of a match ends at a comma; a generic item does not.
            b',' if !keyword => return (at + 1, start),
            b'}' => return (at, start),
            b'{' if rest.starts_with("use") || rest.starts_with("pub use") => {
                at = matching(code, at);
                continue;
            }
            b'{' => return (matching(code, at), start),
            b'(' | b'[' => {
                at = matching(code, at);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    (code.len(), start)
}

/// Blanks out comments and the contents of literals, and says which lines have comments.
fn mask(text: &str, lines: usize) -> (String, Vec<Option<Comment>>) {
    let bytes = text.as_bytes();
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut comments = vec![None; lines];
    let starts = LineStarts::of(text);
    let mut at = 0;
    while at < bytes.len() {
        let end = if bytes[at..].starts_with(b"//") {
            let end = text[at..].find('\n').map_or(bytes.len(), |more| at + more);
            let rest = &text[at..end];
            let doc =
                rest.starts_with("//!") || (rest.starts_with("///") && !rest.starts_with("////"));
            comments[starts.line(at)] = Some(if doc { Comment::Doc } else { Comment::Inline });
            blank(&mut out, &bytes[at..end], 0);
            end
        } else if bytes[at..].starts_with(b"/*") {
            let end = block_end(bytes, at);
            for line in comments
                .iter_mut()
                .take(starts.line(end) + 1)
                .skip(starts.line(at))
            {
                *line = Some(Comment::Inline);
            }
            blank(&mut out, &bytes[at..end], 0);
            end
        } else if let Some((end, edge)) = literal_end(bytes, at) {
            blank(&mut out, &bytes[at..end], edge);
            end
        } else {
            out.push(bytes[at]);
            at + 1
        };
        at = end;
    }
    // Outside of literals and comments Rust is nearly always ASCII; anything else is kept as it is.
    (String::from_utf8_lossy(&out).into_owned(), comments)
}

/// Writes spaces in place of some bytes but keeps line breaks and `edge` bytes at either end.
fn blank(out: &mut Vec<u8>, bytes: &[u8], edge: usize) {
    for (at, byte) in bytes.iter().enumerate() {
        let keep = *byte == b'\n' || at < edge || at + edge >= bytes.len();
        out.push(if keep { *byte } else { b' ' });
    }
}

/// The offset behind a block comment; they nest.
fn block_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// If a literal begins here: the offset behind it, and how many bytes are its quotes.
fn literal_end(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let inside_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    match bytes[at] {
        b'"' => Some((string_end(bytes, at + 1), 1)),
        b'r' if !inside_word => raw_end(bytes, at + 1).map(|end| (end, 1)),
        b'b' | b'c' if !inside_word && bytes.get(at + 1) == Some(&b'r') => {
            raw_end(bytes, at + 2).map(|end| (end, 1))
        }
        b'\'' => {
            // A lifetime has no closing quote right behind its first letter.
            if bytes.get(at + 1) == Some(&b'\\') {
                let close = bytes[at + 3..].iter().position(|byte| *byte == b'\'')?;
                return Some((at + 3 + close + 1, 1));
            }
            let width = match *bytes.get(at + 1)? {
                lead if lead < 0x80 => 1,
                lead if lead < 0xe0 => 2,
                lead if lead < 0xf0 => 3,
                _ => 4,
            };
            (bytes.get(at + 1 + width) == Some(&b'\'')).then_some((at + 2 + width, 1))
        }
        _ => None,
    }
}

fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The end of `r"…"` or `r#"…"#`; none if no raw string begins here.
fn raw_end(bytes: &[u8], after_r: usize) -> Option<usize> {
    let hashes = bytes[after_r..]
        .iter()
        .take_while(|byte| **byte == b'#')
        .count();
    if bytes.get(after_r + hashes) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.extend(std::iter::repeat_n(b'#', hashes));
    let body = after_r + hashes + 1;
    let found = bytes[body..]
        .windows(close.len())
        .position(|window| window == close)?;
    Some(body + found + close.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> SourceFile {
        SourceFile::new(PathBuf::from("src/a.rs"), text.to_owned())
    }

    #[test]
    fn comments_and_literals_are_not_code() {
        let file =
            file("let a = \"// no {\"; // why\n/// doc\nlet b = r#\"\"}\"#;\nlet c = '{';\n");
        assert!(!file.code.contains(['{', '}']), "{}", file.code);
        assert_eq!(file.code.len(), file.text.len());
        assert_eq!(
            file.comments,
            [Some(Comment::Inline), Some(Comment::Doc), None, None]
        );
    }

    #[test]
    fn lifetimes_are_not_characters() {
        let file = file("fn f<'a>(x: &'a str) { g('x', '\\'') } // end\n");
        assert!(file.code.contains("{ g("), "{}", file.code);
        assert!(file.code.contains('}'));
    }

    #[test]
    fn tests_are_not_product() {
        let file = file(
            "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n#[cfg(test)]\n#[path = \"t.rs\"]\nmod t;\nfn c() {}\n",
        );
        let lines: Vec<usize> = file.product_lines().map(|(at, _)| at).collect();
        assert_eq!(lines, [0, 8]);
        assert_eq!(file.test_modules, [PathBuf::from("src/t.rs")]);
        let file =
            self::file("#[cfg(any(test, feature = \"testing\"))]\npub mod sample;\nfn a() {}\n");
        let lines: Vec<usize> = file.product_lines().map(|(at, _)| at).collect();
        assert_eq!(lines, [2]);
        assert_eq!(file.test_modules[0], PathBuf::from("src/a/sample.rs"));
    }
}
