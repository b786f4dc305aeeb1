//! What the documentation names exists: files, links, anchors, studies, commands.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders whose names begin a path of this repository.
const FOLDERS: [&str; 8] = [
    ".ci/", "bench/", "crates/", "docs/", "fuzz/", "src/", "studies/", "tests/",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every page, below the root of the repository.
fn pages() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "fuzz/README.md",
    ]
    .map(PathBuf::from)
    .into();
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let path = folder.join(entry.unwrap().file_name());
            if root().join(&path).is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A line of a page.
struct PageLine<'a> {
    number: usize,
    text: &'a str,
    /// Whether it stands in a block of code.
    code: bool,
}

fn lines(text: &str) -> Vec<PageLine<'_>> {
    let mut fenced = false;
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        found.push(PageLine {
            number: at + 1,
            text: line,
            code: fenced || line.starts_with("    "),
        });
    }
    found
}

/// What stands between backticks in a line.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// What is wrong on a page, each with its line.
fn wrong_on(page: &Path, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for line in lines(text) {
        let mut add =
            |what: String| wrong.push(format!("{}:{}: {what}", page.display(), line.number));
        let mut commands = Vec::new();
        if line.code {
            let bare = line.text.trim().trim_start_matches("$ ");
            commands.push(bare.trim_start_matches("sudo "));
        } else {
            commands.extend(spans(line.text).map(|span| span.trim_start_matches("sudo ")));
            for target in links(line.text) {
                if let Err(why) = resolves(page, target) {
                    add(why);
                }
            }
            for path in spans(line.text).filter(|span| is_path(span)) {
                if !root().join(path).exists() {
                    add(format!("there is no {path}"));
                }
            }
        }
        for command in commands {
            if let Some(words) = command.strip_prefix("stackrace ")
                && let Err(why) = accepted(words)
            {
                add(format!("`stackrace {words}`: {why}"));
            }
        }
    }
    wrong
}

/// The targets of the links in a line, without those that lead to other sites.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|target| !target.contains("://"))
}

/// Whether a link leads to a file that exists and, behind `#`, to a heading in it.
fn resolves(page: &Path, target: &str) -> Result<(), String> {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() {
        root().join(page)
    } else {
        root().join(page).parent().unwrap().join(file)
    };
    if !path.exists() {
        return Err(format!("the link to {target} leads nowhere"));
    }
    if anchor.is_empty() || anchors(&fs::read_to_string(path).unwrap()).contains(anchor) {
        return Ok(());
    }
    Err(format!("the link to {target}: there is no such heading"))
}

/// The anchors of a page's headings, as code hosts make them.
fn anchors(text: &str) -> BTreeSet<String> {
    lines(text)
        .into_iter()
        .filter(|line| !line.code && line.text.starts_with('#'))
        .map(|line| {
            line.text
                .trim_start_matches('#')
                .trim()
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect()
        })
        .collect()
}

/// Whether a span names a path of this repository; one with a word in capitals (`NAME.rs`) stands
/// for many.
fn is_path(span: &str) -> bool {
    let capitals = |part: &str| {
        let stem = part.split('.').next().unwrap_or_default();
        stem.len() > 2 && stem.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    };
    FOLDERS.iter().any(|folder| span.starts_with(folder))
        && !span.contains([' ', '*', '<', '{', '…'])
        && (!span.split('/').any(capitals) || span.ends_with("README.md"))
}

/// Whether the program understands these words, up to the first that stands for others (`[RUN…]`).
fn accepted(text: &str) -> Result<(), String> {
    let mut words = shell_words(text);
    let whole = words.len();
    let cut = words
        .iter()
        .position(|word| word.contains(['…', '[', '<', '|']))
        .unwrap_or(whole);
    words.truncate(cut);
    // An option whose value is cut off, or a word for any command, says nothing that can be checked.
    while words.last().is_some_and(|word| word.starts_with("--")) && cut < whole {
        words.pop();
    }
    if words.first().is_some_and(|verb| verb == "COMMAND") {
        return Ok(());
    }
    if let [verb, study, ..] = words.as_slice()
        && (verb == "run" || verb == "plan")
        && study.starts_with(|c: char| c.is_ascii_lowercase())
        && !study.ends_with(".toml")
        && !root().join(format!("studies/{study}.toml")).exists()
    {
        return Err(format!("there is no study {study}"));
    }
    let mut understood = stackrace::testing::is_understood(&words);
    if !understood && (cut < whole || words.len() <= 3) {
        // A command that is only named, without what it needs.
        words.push("--help".to_owned());
        understood = stackrace::testing::is_understood(&words);
    }
    if understood {
        Ok(())
    } else {
        Err("the program does not understand it".to_owned())
    }
}

/// Words as a shell splits them, up to a comment, a pipe or a redirection.
fn shell_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (None, '#' | '>' | ';' | '&') if word.is_none() => return words,
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if let Some(pipe) = words.iter().position(|word| word == "|") {
        words.truncate(pipe);
    }
    words
}

fn what_the_pages_name_exists() {
    let pages = pages();
    assert!(pages.len() > 20, "the pages were not found");
    let wrong: Vec<String> = pages
        .iter()
        .flat_map(|page| wrong_on(page, &fs::read_to_string(root().join(page)).unwrap()))
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn what_does_not_exist_is_found() {
    let text = "See [a](docs/none.md), [b](README.md#no-such-heading), `src/none.rs`, `src/lib.rs:12`\n\
        and `stackrace frobnicate`, `stackrace report --no-such-option`.\n\
        ```\n$ stackrace run no-such-study   # why\n$ stackrace load\n```\n";
    let wrong = wrong_on(Path::new("README.md"), text);
    let about = [
        "README.md:1: the link to docs/none.md leads nowhere",
        "README.md:1: the link to README.md#no-such-heading: there is no such heading",
        "README.md:1: there is no src/none.rs",
        "README.md:1: there is no src/lib.rs:12",
        "README.md:2: `stackrace frobnicate`: the program does not understand it",
        "README.md:2: `stackrace report --no-such-option`: the program does not understand it",
        "README.md:4: `stackrace run no-such-study   # why`: there is no study no-such-study",
    ];
    assert_eq!(wrong, about);
}

fn what_exists_is_accepted() {
    let text = "# A heading, `with` code\n[a](#a-heading-with-code) `src/lib.rs` `crates/layers/src/stack/NAME.rs`\n\
        `stackrace lab build|list` `stackrace import [NAME=]FILE…` `stackrace show workload \"bonnie++\"`\n\
        \n    stackrace load /mnt stream-video size=\"2 GB\"\n";
    let page = Path::new("docs/none.md");
    let wrong: Vec<String> = wrong_on(page, text)
        .into_iter()
        .filter(|line| !line.contains("#a-heading"))
        .collect();
    assert_eq!(wrong, [""; 0]);
    assert!(anchors(text).contains("a-heading-with-code"));
}

/// Source files of the product, without tests.
fn sources() -> Vec<PathBuf> {
    let mut folders = vec![PathBuf::from("src")];
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        folders.push(
            Path::new("crates")
                .join(entry.unwrap().file_name())
                .join("src"),
        );
    }
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let path = folder.join(entry.unwrap().file_name());
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let test = name.ends_with("tests") || name.starts_with("testing") || name == "tried";
            if root().join(&path).is_dir() && !test {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") && !test {
                found.push(path);
            }
        }
    }
    found
}

/// The texts that a source file prints: its strings, without comments and tests, each in one line. `help`: its doc
/// comments are shown by `--help`.
fn printed(source: &str, help: bool) -> String {
    let product = source
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    let lines = product.lines().map(str::trim_start);
    let lines = lines.filter(|line| !line.starts_with("//") || (help && line.starts_with("/// ")));
    let text = lines.collect::<Vec<_>>().join("\n");
    text.replace("\\\n", "")
        .replace("\\n", "\n")
        .replace("\\\"", "'")
}

/// What a source file of the product prints.
fn text_of(path: &Path) -> String {
    let help = path.starts_with("crates/options/src");
    printed(&fs::read_to_string(root().join(path)).unwrap(), help)
}

/// Each command of this program in a text that is printed, with a value in the place of each that is filled in.
fn commands_in(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("stackrace ") {
        let quoted = rest[..at].ends_with('`');
        let begins = rest[..at]
            .chars()
            .next_back()
            .is_none_or(|c| !c.is_alphanumeric() && c != '-' && c != '/');
        rest = &rest[at + "stackrace ".len()..];
        // A span ends with its mark; elsewhere the sentence goes on behind a command.
        let ends: &[char] = match quoted {
            true => &['`', '"', '\n'],
            false => &['`', '"', '\n', ';', ',', ')', '…'],
        };
        let command = rest.split(ends).next().unwrap_or_default();
        let verb = command.split(' ').next().unwrap_or_default();
        // Behind a name that is filled in there is no command to be tried.
        let named = verb.starts_with(|c: char| c.is_ascii_lowercase());
        if begins
            && named
            && (quoted || stackrace::testing::is_understood(&[verb, "--help"].map(str::to_owned)))
        {
            found.push(filled(command.trim_end_matches(['.', ' '])));
        }
    }
    found
}

/// Each command of this program that is put together from words, `again(&["clean", "--on", host])`, with `1` in the
/// place of each that is filled in.
fn commands_of_words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for begin in ["again(&[", "again_in(&[", "clean: &["] {
        for (at, _) in text.match_indices(begin) {
            let words = text[at + begin.len()..]
                .split(']')
                .next()
                .unwrap_or_default();
            let words = words
                .split(',')
                .map(str::trim)
                .filter(|word| !word.is_empty());
            let given = |word: &str| match word.strip_prefix('"') {
                Some(word) => word.trim_end_matches('"').to_owned(),
                None => "1".to_owned(),
            };
            let words: Vec<String> = words.map(given).collect();
            // A list of lists, or a test's own.
            if words.first().is_some_and(|verb| verb != "1") {
                found.push(words.join(" "));
            }
        }
    }
    found
}

/// A text with `1` in the place of what is filled in; what is glued to a word adds options to it, or nothing.
fn filled(command: &str) -> String {
    let mut text = String::new();
    let mut rest = command;
    while let Some((before, behind)) = rest.split_once('{') {
        text.push_str(before);
        if !text.ends_with(|c: char| c.is_ascii_alphanumeric()) {
            text.push('1');
        }
        rest = behind.split_once('}').map_or("", |(_, rest)| rest);
    }
    text + rest
}

fn commands_that_the_program_prints_are_understood_by_it() {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for path in sources() {
        let text = text_of(&path);
        for command in commands_in(&text)
            .into_iter()
            .chain(commands_of_words(&text))
        {
            tried += 1;
            if let Err(why) = accepted(&command) {
                wrong.push(format!("{}: `stackrace {command}`: {why}", path.display()));
            }
        }
    }
    assert!(tried > 60, "only {tried} commands were found");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// What is filled into a command may have blanks and quotes: only `shell` writes it as one word.
fn no_command_is_glued_together_from_paths() {
    const GLUED: [&str; 9] = [
        "--store {",
        " rm {",
        " rm -r {",
        " mv {",
        " rmdir {",
        " mkdir -p {",
        " umount {",
        " chmod go-w {",
        " ls -l {",
    ];
    let mut wrong = Vec::new();
    for path in sources() {
        let text = text_of(&path);
        let lines = text.lines().filter(|line| line.contains('"'));
        // Lines of a script for another machine have their paths quoted before.
        let glued =
            |line: &&str| !line.contains("[ ") && GLUED.iter().any(|words| line.contains(words));
        let told = |line: &str| format!("{}: {}", path.display(), line.trim());
        wrong.extend(lines.filter(glued).map(told));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn a_printed_command_that_is_misspelt_is_found() {
    let text = "format!(\"undo it: stackrace clean --onn {host}; then\") \"`stackrace resum` goes on\" \"the stackrace that wrote it\"";
    let found = commands_in(&printed(text, false));
    assert_eq!(found, ["clean --onn 1", "resum"]);
    assert!(found.iter().all(|command| accepted(command).is_err()));
    assert_eq!(
        filled("clean --on {to}{peers} --keep {}"),
        "clean --on 1 --keep 1"
    );
    assert_eq!(filled("clean{peers}"), "clean");
    let words = "next(again(&[\"clean\", \"--onn\", &to, \"--agent\", \"none\"])) again_in(&[&[\"x\"], y].concat(), s)";
    let found = commands_of_words(words);
    assert_eq!(found, ["clean --onn 1 --agent none"]);
    assert!(accepted(&found[0]).is_err());
}

/// Words of a study with their settings in braces, in a text that is printed: `files = { count = 4 }`.
fn entries_in(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(" = { ") {
        let before = &text[..at];
        let name =
            |c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '+');
        let word = before.rsplit(name).next().unwrap_or_default();
        let Some(end) = text[at..].find('}') else {
            continue;
        };
        // In format strings braces stand twice, and what is filled in is not known here.
        let entry = &text[at - word.len()..=at + end];
        if !word.is_empty()
            && !entry.contains(['…', '\n'])
            && !entry[word.len() + 4..].contains('{')
        {
            found.push(entry.replace('\'', "\""));
        }
    }
    found
}

fn layers_and_workloads_that_advice_names_are_read_as_such() {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for path in sources() {
        let text = text_of(&path);
        for entry in entries_in(&text) {
            match stackrace::testing::is_entry(&entry) {
                None => continue,
                Some(Ok(())) => tried += 1,
                Some(Err(why)) => wrong.push(format!("{}: {entry}: {why}", path.display())),
            }
        }
    }
    assert!(tried > 40, "only {tried} were found");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<stackrace_test_needs::Test> {
    stackrace_test_needs::tests![
        what_the_pages_name_exists,
        what_does_not_exist_is_found,
        what_exists_is_accepted,
        commands_that_the_program_prints_are_understood_by_it,
        no_command_is_glued_together_from_paths,
        a_printed_command_that_is_misspelt_is_found,
        layers_and_workloads_that_advice_names_are_read_as_such
    ]
}
