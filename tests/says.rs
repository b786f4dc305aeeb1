//! Everything that the program can say, in one file to be read: every sentence in its source, and what it says of runs.
#![expect(clippy::unwrap_used, reason = "a test's helpers are tests too")]

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::Ground;
use stackrace_test_needs as needs;

/// Words that readers had to read twice, or that mean nothing to them.
const READ_TWICE: [&str; 12] = [
    "if the drive is honest",
    "the colour is its own",
    "from work after an own turn",
    "what one still has to write",
    "would have ended",
    "next verdict comes after",
    "costs less than a ring",
    "emptied by advice",
    "notes more, ",
    "; median of ",
    "respectively",
    "thereof",
];

/// Most words of a sentence, or of the part before a colon or semicolon.
const WORDS_MAX: usize = 30;
/// A text of fewer words is a name, not a sentence.
const WORDS_LEAST: usize = 4;

/// A text of the source: its file, and what it says.
struct SourceText {
    file: PathBuf,
    says: String,
}

/// The texts of a source, without those of its tests.
fn texts(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]\nmod tests").next().unwrap();
    let (mut texts, mut rest) = (Vec::new(), code);
    while let Some(at) = rest.find(['"', '\'', '/']) {
        let (sign, after) = (rest.as_bytes()[at], &rest[at + 1..]);
        rest = match sign {
            b'/' if after.starts_with('/') => after.split_once('\n').map_or("", |(_, rest)| rest),
            // A quotation mark as a letter begins no text.
            b'\'' if after.starts_with("\"'") => &after[2..],
            b'\'' if after.starts_with("\\\"'") => &after[3..],
            b'"' => {
                let (text, rest) = literal(after);
                texts.push(text);
                rest
            }
            _ => after,
        };
    }
    texts
}

/// A text up to its closing mark, and what stands behind it.
fn literal(source: &str) -> (String, &str) {
    let (mut text, mut letters) = (String::new(), source.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (text, &source[at + 1..]),
            '\\' => match letters.next().map_or(' ', |(_, letter)| letter) {
                'n' => text.push('\n'),
                // A line that goes on: its indentation is none of the text.
                '\n' => {
                    let rest = letters.as_str();
                    let indented = rest.len() - rest.trim_start().len();
                    let _ = indented.checked_sub(1).and_then(|last| letters.nth(last));
                }
                other => text.push(other),
            },
            letter => text.push(letter),
        }
    }
    (text, "")
}

/// Every sentence of the product below a folder.
fn collect(folder: &Path, all: &mut Vec<SourceText>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_str().unwrap();
        if [
            "tests", "testing", "tests.rs", "examples", "benches", "target",
        ]
        .contains(&name)
        {
            continue;
        }
        if path.is_dir() {
            collect(&path, all);
        } else if name.ends_with(".rs") && path.components().any(|part| part.as_os_str() == "src") {
            let texts = texts(&fs::read_to_string(&path).unwrap());
            let sentences = texts
                .into_iter()
                .filter(|text| text.split_whitespace().count() >= WORDS_LEAST);
            all.extend(sentences.map(|says| SourceText {
                file: path.clone(),
                says,
            }));
        }
    }
}

/// What the program prints of its commands and of a run.
fn said() -> String {
    let ground = Ground::new();
    ground.make_dir("data");
    let study = "[factors]\nblock-size = [\"4 KiB\", \"8 KiB\"]\n[[stack]]\ndir = { path = \"data\" }\n[[workload]]\n\
        random = { mode = \"write\", size = \"1 MiB\", block-size = \"{block-size}\", time = \"10 ms\" }\n[decide]\nrounds-at-most = 3\n";
    ground.write("study.toml", study);
    let mut all = String::new();
    for words in [
        &[][..],
        &["--help"],
        &["compare", "--help"],
        &["run", "--help"],
        &["check", "--help"],
        &["resume", "--help"],
        &["plan", "study.toml"],
        &["run", "study.toml"],
        &["report"],
        &["verdict"],
        &["gate", "--worse-than", "5%"],
        &["runs"],
        &["resume", "--rounds", "1"],
        &["compare"],
        &["compare", "nowhere", "data"],
        &["compare", "data", "data"],
        &["check", "data", "--require", "speed > 3"],
        &["check", "data", "--for", "etdc"],
        &["run", "nowhere.toml"],
        &["load", "data", "randm"],
        &["report", "nothing"],
        &["diff", "a", "b"],
        &["show", "layer", "nothing"],
    ] {
        let said = ground.stackrace(words);
        all.push_str(&format!(
            "$ stackrace {}\n{}{}\n",
            words.join(" "),
            said.out,
            said.err
        ));
    }
    all
}

fn every_sentence_is_short_and_none_has_to_be_read_twice() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    collect(&root.join("crates"), &mut all);
    collect(&root.join("src"), &mut all);
    assert!(all.len() > 3000, "only {} sentences were found", all.len());
    let said = said();
    let mut page = String::new();
    for text in &all {
        let file = text.file.strip_prefix(root).unwrap();
        page.push_str(&format!("{}: {}\n", file.display(), text.says));
    }
    page.push_str(&said);
    // Kept to be read as a whole: no rule knows what a person stumbles over. Another user than the one who built this
    // has a place of their own.
    let kept = [env!("CARGO_TARGET_TMPDIR").into(), std::env::temp_dir()];
    let kept = kept.map(|folder| fs::write(folder.join("says.txt"), &page));
    assert!(kept.iter().any(Result::is_ok), "{kept:?}");
    for words in READ_TWICE {
        assert!(
            !page.contains(words),
            "{words:?} had to be read twice; it is in {}",
            place(&all, words)
        );
    }
    let long = all
        .iter()
        .flat_map(|text| text.says.split(['\n', ';', ':', '.', ',']));
    let long: Vec<&str> = long
        .filter(|part| {
            part.split_whitespace().count() > WORDS_MAX && !part.contains(['=', '<', '$'])
        })
        .collect();
    assert!(long.is_empty(), "longer than {WORDS_MAX} words: {long:#?}");
}

/// Where a text has these words.
fn place(all: &[SourceText], words: &str) -> String {
    let found = all.iter().find(|text| text.says.contains(words));
    found.map_or("what the program prints".to_owned(), |text| {
        text.file.display().to_string()
    })
}

/// The tests of this file.
pub(crate) fn tests() -> Vec<needs::Test> {
    needs::tests![every_sentence_is_short_and_none_has_to_be_read_twice]
}
