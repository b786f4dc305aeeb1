//! A log without what its owner does not publish: values are taken out or replaced, and the log says so itself.

use std::collections::BTreeSet;

use super::part::MachinePart;
use super::told::{self, MachineWords, WordFinder};
use stackrace_base::event::{Event, LogLine, RunStarted};
use stackrace_base::unit;
use stackrace_results::record::Record;

/// Stands for a word of a command that may say anything.
const CUT: &str = "…";
/// Commands that make runs: words of ours, whatever follows them.
const VERBS: [&str; 7] = ["check", "compare", "import", "lab", "load", "resume", "run"];

/// What a log says of machines.
pub(super) fn words(record: &Record) -> Result<MachineWords, String> {
    let mut finder = WordFinder::new(record, &BTreeSet::new());
    for line in &record.lines {
        // Of the values, and not of the text of the line: there a name may be written with escapes.
        finder.value(&mut value_of(line)?);
    }
    Ok(finder.into_found())
}

/// The log without these parts. `lines` is how many lines the whole log has: those that were not understood are left
/// out, since they cannot be looked through.
///
/// # Errors
/// A value that is cut is also a word without which the log cannot be read.
pub(super) fn without(
    record: &Record,
    parts: &BTreeSet<MachinePart>,
    lines: usize,
) -> Result<Vec<u8>, String> {
    let mut finder = WordFinder::new(record, parts);
    let mut bytes = Vec::new();
    for (at, line) in record.lines.iter().enumerate() {
        let mut line = line.clone();
        strip(&mut line.event, parts);
        if let (Event::RunStarted(head), true) = (&mut line.event, record.imported()) {
            // Other tools print the names of machines under names of their own.
            head.environment.clear();
        }
        let mut value = value_of(&line)?;
        finder.value(&mut value);
        let mut line: LogLine = serde_json::from_value(value)
            .map_err(|why| format!("line {} cannot be read without its names: {why}", at + 1))?;
        if let Event::RunStarted(head) = &mut line.event {
            // The hash is that of the text as it stands.
            head.study_hash = blake3::hash(head.study.as_bytes()).to_hex().to_string();
        }
        write(&line, &mut bytes)?;
        if at == 0 {
            let unread = lines.saturating_sub(record.lines.len());
            let event = Event::Warned {
                text: said(parts, unread),
            };
            write(&LogLine { event, ..line }, &mut bytes)?;
        }
    }
    Ok(bytes)
}

fn value_of(line: &LogLine) -> Result<serde_json::Value, String> {
    serde_json::to_value(line).map_err(|why| why.to_string())
}

fn write(line: &LogLine, bytes: &mut Vec<u8>) -> Result<(), String> {
    serde_json::to_writer(&mut *bytes, line).map_err(|why| why.to_string())?;
    bytes.push(b'\n');
    Ok(())
}

/// The sentence that a log has of what was cut from it.
fn said(parts: &BTreeSet<MachinePart>, unread: usize) -> String {
    let words: Vec<&str> = parts.iter().map(|part| part.word()).collect();
    let unread = match unread {
        0 => String::new(),
        several => format!(
            "; {} that this stackrace does not know were left out",
            unit::counted(several, "line")
        ),
    };
    format!(
        "this log was cut before it was published: without {}, and without what commands and other tools printed{unread}",
        unit::listed(&words)
    )
}

/// Takes out what is no word within a value: whole fields, and texts in which anything may stand.
fn strip(event: &mut Event, parts: &BTreeSet<MachinePart>) {
    let serials = parts.contains(&MachinePart::Serials);
    match event {
        Event::RunStarted(head) => strip_head(head, parts),
        Event::Command(command) => {
            command.stdout.clear();
            command.stderr.clear();
        }
        Event::Imported(text) => {
            // Other tools print the machine and its files in places of their own.
            text.text.clear();
            text.file = last_part(&text.file).to_owned();
        }
        Event::StackSetUp {
            layers, lies_on, ..
        } => {
            if parts.contains(&MachinePart::Kernel) {
                for layer in layers {
                    layer.facts.retain(|fact| !told::is_system(fact));
                }
            }
            // By these numbers a storage is known again, which is what they are for.
            for it in lies_on.iter_mut().filter(|_| serials) {
                it.uuid = None;
                it.boot = None;
                it.zfs = None;
                it.file_system_id = None;
                it.made_ns = None;
            }
        }
        _ => {}
    }
}

fn strip_head(head: &mut RunStarted, parts: &BTreeSet<MachinePart>) {
    head.command = command(&head.command);
    head.study_name = last_part(&head.study_name).to_owned();
    if parts.contains(&MachinePart::Kernel) {
        head.environment.retain(|fact| !told::is_system(fact));
    }
}

/// A command without the words that are not ours: a relative path or a host looks like any other word.
fn command(words: &[String]) -> Vec<String> {
    // How the program was called is a path.
    let mut rest = words.iter().skip(1);
    let own = rest.by_ref().take_while(|word| *word != "--");
    let own = own.map(|word| match word.split('=').next() {
        Some(name) if name.starts_with("--") => name.to_owned(),
        _ if VERBS.contains(&&**word) => word.clone(),
        _ => CUT.to_owned(),
    });
    let own: Vec<String> = own.collect();
    let others = rest.next().map(|_| format!("-- {CUT}"));
    let begin = words.first().map(|_| "stackrace".to_owned());
    begin.into_iter().chain(own).chain(others).collect()
}

/// The name of a file without its directories.
fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_keeps_its_options_and_none_of_the_users_words() {
        let cut = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            command(&words).join(" ")
        };
        assert_eq!(
            cut(&[
                "/home/ann/bin/stackrace",
                "--store=/s",
                "compare",
                "ann-disk",
                "./b",
                "--time",
                "20s"
            ]),
            "stackrace --store compare … … --time …"
        );
        assert_eq!(
            cut(&["stackrace", "compare", "a", "--", "tool", "--ann"]),
            "stackrace compare … -- …"
        );
        assert_eq!(cut(&[]), "");
    }
}
