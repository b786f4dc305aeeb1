//! What a shell ran, where a text shows it: results of other command lines, or behind something that changed the
//! machine, are no repetitions of each other, and neither are those of a loop over what the shell fills in.

mod line;

use std::collections::BTreeMap;

use line::PromptedCommand;
use stackrace_base::event::Fact;
use stackrace_base::printed::{Imported, Importer};

/// The importers that read the options of their own command lines.
const READ_COMMANDS: [&str; 2] = ["dd", "fio"];

/// Note on a command with `&` behind it.
const IN_BACKGROUND: &str =
    "its command line has something run in the background: it may have run at the same time";

/// What stands before a result.
#[derive(Debug, Clone, Default)]
struct Circumstances {
    /// Words of the command line; empty if none is shown, or the importer has read them.
    words: Vec<String>,
    /// The commands that changed the machine, by what they change.
    state: BTreeMap<String, String>,
    /// The place among the results of a command that may be of different work each.
    place: Option<(usize, usize)>,
    /// That command.
    filled_in: String,
    /// Set if the shell did not wait for its end.
    in_background: bool,
}

/// Adds settings to the results of a text that tell those apart which are no repetitions.
pub(super) fn tell_apart(importer: &Importer, text: &str, results: &mut [Imported]) {
    let sections = line::sections(text);
    if sections.iter().all(|section| section.0.is_none()) {
        return;
    }
    let Some(found) = circumstances(importer, &sections, results) else {
        note_unclear(importer, &sections, results);
        return;
    };
    let work = |result: &Imported| {
        let settings = result.settings.iter();
        let settings = settings.filter(|fact| fact.name != "prompt" && fact.name != "of");
        let settings = settings.map(|fact| format!("{}={}", fact.name, fact.value));
        (
            result.workload.clone(),
            result.kind.clone(),
            settings.collect::<Vec<String>>(),
        )
    };
    let works: Vec<_> = results.iter().map(work).collect();
    for at in 0..results.len() {
        let same = (0..works.len()).filter(|other| works[*other] == works[at]);
        let same: Vec<&Circumstances> = same.map(|other| &found[other]).collect();
        describe(&mut results[at], &found[at], &same);
    }
    for (result, _) in results
        .iter_mut()
        .zip(&found)
        .filter(|(_, own)| own.in_background)
    {
        result.notes.push(IN_BACKGROUND.to_owned());
    }
    // In another text may be another command line: there, too, it says what was done.
    for (result, own) in results.iter_mut().zip(&found) {
        result.command = (!own.words.is_empty()).then(|| own.words.join(" "));
    }
}

/// The command lines that a text shows, in their order.
pub fn commands(text: &str) -> Vec<ShownCommand> {
    let mut first = 0;
    let mut all = Vec::new();
    for (line, printed) in line::sections(text) {
        let lines = printed.matches('\n').count();
        if let Some(line) = line {
            all.push(ShownCommand {
                line: first,
                words: line.split(),
                rows: line.rows,
                printed,
            });
        }
        first += lines;
    }
    all
}

/// A command line with what it printed.
#[derive(Debug, Clone)]
pub struct ShownCommand {
    /// Number of its line in the text, from 0.
    pub line: usize,
    /// Its words, and the signs between commands (`|`, `;`, `>`, `&`).
    pub words: Vec<String>,
    /// How many lines it has.
    pub rows: usize,
    /// Its own lines, and those up to the next command.
    pub printed: String,
}

/// What stands before each result; `None` if the parts of the text alone do not give the same results.
fn circumstances(
    importer: &Importer,
    sections: &[(Option<PromptedCommand>, String)],
    results: &[Imported],
) -> Option<Vec<Circumstances>> {
    let mut found: Vec<Circumstances> = Vec::new();
    let (mut state, mut dropped) = (BTreeMap::new(), false);
    for (line, text) in sections {
        if let Some(line) = line {
            line.change(&mut state);
            dropped |= line.drops_caches();
        }
        let read = match (importer.recognises)(text) {
            true => (importer.read)(text).ok()?,
            false => Vec::new(),
        };
        let mut words = line.as_ref().map_or(Vec::new(), PromptedCommand::words);
        if READ_COMMANDS.contains(&importer.name) {
            without_options(&mut words, importer.name);
        }
        if std::mem::take(&mut dropped) && !read.is_empty() {
            words.push("(caches emptied before)".to_owned());
        } else if read.is_empty() {
            dropped = line.as_ref().is_some_and(PromptedCommand::drops_caches) || dropped;
        }
        for (at, result) in read.iter().enumerate() {
            let own = results.get(found.len())?;
            (own.values == result.values).then_some(())?;
            let filled_in = line.as_ref().filter(|line| line.is_filled_in());
            let same =
                |other: &&Imported| other.workload == result.workload && other.kind == result.kind;
            let all = read.iter().filter(same).count();
            let before = read[..at].iter().filter(same).count();
            found.push(Circumstances {
                words: words.clone(),
                state: state.clone(),
                place: filled_in.filter(|_| all > 1).map(|_| (before + 1, all)),
                filled_in: filled_in.map_or(String::new(), |line| line.shown()),
                in_background: line.as_ref().is_some_and(PromptedCommand::is_in_background),
            });
        }
    }
    (found.len() == results.len()).then_some(found)
}

/// Leaves of a command line what stands before the tool, as `taskset -c 0` or the name of a machine.
fn without_options(words: &mut Vec<String>, tool: &str) {
    let own = words
        .iter()
        .position(|word| word.rsplit('/').next() == Some(tool));
    words.truncate(own.unwrap_or(0));
}

/// Says of a result what tells it apart from those that do the same work otherwise.
fn describe(result: &mut Imported, own: &Circumstances, same: &[&Circumstances]) {
    if let Some(other) = same.iter().find(|other| other.words != own.words) {
        result.notes.push(format!(
            "run by `{}`, and another one of this text by `{}`: they are not repetitions of each other",
            own.words.join(" "),
            other.words.join(" ")
        ));
    }
    let mut tell = |name: &str, value: String, note: String| {
        result.settings.push(Fact::new(name, value));
        result.notes.push(note);
    };
    if same.iter().any(|other| other.state != own.state) {
        let differs = |(key, value): &(&String, &String)| {
            !same
                .iter()
                .all(|other| other.state.get(*key) == Some(*value))
        };
        let changes: Vec<&str> = own
            .state
            .iter()
            .filter(differs)
            .map(|(_, value)| value.as_str())
            .collect();
        let value = match changes.is_empty() {
            true => "nothing of what came later".to_owned(),
            false => changes.join("; "),
        };
        let note = format!(
            "run after: {value}. Results on the other side of such a command are not repetitions of this one"
        );
        tell("after", value, note);
    }
    if let Some((place, all)) = own.place {
        let note = format!(
            "`{}` has what the shell fills in, so that its {all} results may be of different work: they are not repetitions of each other",
            own.filled_in
        );
        tell("result", format!("{place} of {all}"), note);
    }
}

/// Where it is not clear which result is of which command, and they differ, says so.
fn note_unclear(
    importer: &Importer,
    sections: &[(Option<PromptedCommand>, String)],
    results: &mut [Imported],
) {
    let commands = sections.iter().filter_map(|(line, _)| line.as_ref());
    let own = commands.filter(|line| line.runs(importer.name));
    let mut all: Vec<String> = own.map(|line| line.words().join(" ")).collect();
    all.dedup();
    if let [first, second, ..] = all.as_slice() {
        let note = format!(
            "the text shows `{first}` and `{second}`, and not which result is of which: they may be no repetitions"
        );
        for result in results {
            result.notes.push(note.clone());
        }
    }
}
