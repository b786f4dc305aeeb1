//! The work that the tool of a command says it did: the same in every run of this command, for all configurations,
//! or its figures are of other work and are not compared.
//!
//! A command line decides by its directory, its host or its environment what it does. Where a study varies a setting by
//! a factor in the command, each level has a command of its own, and only its own runs are held against each other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use crate::workload::Place;
use stackrace_base::event::Fact;
use stackrace_base::owned::held::with_real_names;
use stackrace_base::printed::{Imported, changes_no_work};
use stackrace_engine::ProgramWork;

/// Most settings that a refusal names.
const NAMED_MAX: usize = 5;
/// What another run may have otherwise: the share of reads that fell, which lies near what was asked for, and where it
/// ran, which is what is compared.
const OTHERWISE: [&str; 3] = ["reads", "prompt", "of"];
/// Where a result has the command line that a shell shows, and where the name of its work.
const COMMAND: &str = "command";
const WORK: &str = "work";

/// Names of the directory of a trial, as a command may print them.
pub(super) fn trial_names(place: &Place<'_>) -> Vec<String> {
    let named = with_real_names(&place.directory.to_string_lossy());
    // Links lead to it, too, where it is on this machine.
    let real = std::fs::canonicalize(place.directory).ok();
    let real = real.map(|real| real.to_string_lossy().into_owned());
    std::iter::once(named).chain(real).collect()
}

/// What is known of all runs of one command in this process, by that command.
pub(super) type OfCommands<T> = Mutex<Vec<(String, Weak<OnceLock<T>>)>>;

/// What is known of one command: each configuration has a workload of its own, and they share it.
pub(super) fn of_command<T>(all: &OfCommands<T>, command: String) -> Arc<OnceLock<T>> {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|(_, known)| known.strong_count() > 0);
    let known = all.iter().find(|(known, _)| *known == command);
    if let Some(known) = known.and_then(|(_, known)| known.upgrade()) {
        return known;
    }
    let own = Arc::default();
    all.push((command, Arc::downgrade(&own)));
    own
}

/// What each result of a run says of its work.
type Told = Vec<Vec<Fact>>;

/// The work of one command, as the first of its runs told it.
#[derive(Debug)]
pub(super) struct SameWork {
    command: String,
    first: Arc<OnceLock<Told>>,
    /// True once a run of this workload has told what goes on record.
    recorded: AtomicBool,
}

impl SameWork {
    /// That of a command, in words that no other one has.
    pub(super) fn of(command: String) -> Self {
        static ALL: OfCommands<Told> = Mutex::new(Vec::new());
        let first = of_command(&ALL, command.clone());
        Self {
            command,
            first,
            recorded: AtomicBool::new(false),
        }
    }

    /// Refuses a run whose results say that it did other work than the first one. `directory`: that of the trial, which
    /// differs from run to run and is no setting, by each of its names. Gives what goes on record, for executions and
    /// machines that know nothing of this process: of the first run of this workload.
    ///
    /// # Errors
    /// The settings with both values, and what to do; a clause.
    pub(super) fn check(
        &self,
        results: &[Imported],
        directory: &[String],
    ) -> Result<Option<ProgramWork>, String> {
        let own: Told = results.iter().map(|it| told(it, directory)).collect();
        let first = self.first.get_or_init(|| own.clone());
        let tool = results.first().map_or("the tool", |result| result.tool);
        if let Some(why) = other_work(tool, first, &own) {
            return Err(why);
        }
        if self.recorded.swap(true, Ordering::Relaxed) {
            return Ok(None);
        }
        let plain = |facts: Vec<Fact>| {
            let facts = facts.into_iter();
            facts.map(|fact| (fact.name, fact.value)).collect()
        };
        Ok(Some(ProgramWork {
            command: self.command.clone(),
            results: own.into_iter().map(plain).collect(),
        }))
    }
}

/// The refusal of a run that did other work than the first one of its command; `None` if it did the same. `tool`: what
/// told it.
pub fn other_work(tool: &str, first: &[Vec<Fact>], own: &[Vec<Fact>]) -> Option<String> {
    let refused = |how: &str, next: &str| {
        Some(format!(
            "{tool} did other work than in the first run of this command: {how}. Figures of other work are not compared: {next}"
        ))
    };
    if first.len() != own.len() {
        let how = format!("{} result(s) instead of {}", own.len(), first.len());
        return refused(&how, "let each trial do the same");
    }
    let pairs = first.iter().zip(own);
    let mut differing = pairs.map(|(first, own)| differing(first, own));
    let differing = differing.find(|it| !it.is_empty())?;
    let shown = differing.iter().take(NAMED_MAX).map(Differing::shown);
    let shown = shown.collect::<Vec<_>>().join(", ");
    let how = match differing.len().saturating_sub(NAMED_MAX) {
        0 => shown,
        more => format!("{shown}, and {more} more"),
    };
    refused(&how, &differing[0].next())
}

/// One setting in which a run differs from the first one.
struct Differing<'a> {
    name: &'a str,
    own: Option<&'a str>,
    first: Option<&'a str>,
}

impl Differing<'_> {
    /// `bs=64k instead of 4k`
    fn shown(&self) -> String {
        let [own, first] = [self.own, self.first].map(|value| value.unwrap_or("not told"));
        format!("{}={own} instead of {first}", self.name)
    }

    /// What to do to compare the values themselves.
    fn next(&self) -> String {
        match (self.name, self.first, self.own) {
            (COMMAND | WORK, ..) | (_, None, _) | (_, _, None) => {
                "let each trial do the same, or write a study with a factor in its command"
                    .to_owned()
            }
            (name, Some(first), Some(own)) => {
                let word = if name.contains(' ') { "value" } else { name };
                format!(
                    "let each trial have the same {name}, or compare its values in a study, with {word} = [\"{first}\", \"{own}\"] in [factors] and {{{word}}} in the command"
                )
            }
        }
    }
}

/// Everything a result says of its work, the directory of its trial left out.
fn told(result: &Imported, directory: &[String]) -> Vec<Fact> {
    let plain = |text: &str| {
        let names = directory.iter().filter(|name| !name.is_empty());
        names.fold(text.to_owned(), |text, name| text.replace(name, "{dir}"))
    };
    let settings = result.settings.iter();
    let settings = settings
        .filter(|fact| !OTHERWISE.contains(&fact.name.as_str()) && !changes_no_work(&fact.name));
    let mut told: Vec<Fact> = settings
        .map(|fact| Fact::new(&fact.name, plain(&fact.value)))
        .collect();
    if let Some(command) = &result.command {
        told.push(Fact::new(COMMAND, plain(command)));
    }
    // Behind the settings, which say the same in fewer words.
    told.push(Fact::new(WORK, plain(&result.workload)));
    told
}

/// The settings that differ; the name of the work only where no setting does.
fn differing<'a>(first: &'a [Fact], own: &'a [Fact]) -> Vec<Differing<'a>> {
    let mut names: Vec<&str> = Vec::new();
    for fact in own.iter().chain(first) {
        if !names.contains(&fact.name.as_str()) {
            names.push(&fact.name);
        }
    }
    let each = names.into_iter().map(|name| Differing {
        name,
        own: Fact::value_of(own, name),
        first: Fact::value_of(first, name),
    });
    let mut differing: Vec<Differing<'_>> = each.filter(|it| it.own != it.first).collect();
    if differing.len() > 1 {
        differing.retain(|it| it.name != WORK);
    }
    differing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::importers;
    use stackrace_import::import;

    fn results(tool: &str, text: &str) -> Vec<Imported> {
        import::read(importers(), text, Some(tool)).unwrap_or_else(|error| panic!("{error}"))
    }

    fn dd(blocks: u64, block: u64, directory: &str) -> String {
        let bytes = blocks * block;
        format!(
            "+ dd if=/dev/zero of={directory}/f bs={block} count={blocks}\n{blocks}+0 records in\n{blocks}+0 records out\n{bytes} bytes copied, 2 s, {:.1} MB/s\n",
            bytes as f64 / 2e6
        )
    }

    #[test]
    fn runs_of_one_command_did_the_same_work_or_are_refused_with_both_values() {
        let work = SameWork::of("same_work: dd".to_owned());
        let check = |work: &SameWork, text: &str, directory: &str| {
            work.check(&results("dd", text), &[directory.to_owned()])
        };
        let same = |text: &str, directory| check(&work, text, directory);
        // What goes on record is told once, with no name of a directory.
        let told = same(&dd(1000, 4096, "/mnt/1"), "/mnt/1").unwrap().unwrap();
        assert_eq!(told.command, "same_work: dd");
        assert!(!format!("{told:?}").contains("/mnt/1"), "{told:?}");
        assert_eq!(same(&dd(1000, 4096, "/mnt/1"), "/mnt/1").unwrap(), None);
        same(&dd(1000, 4096, "/mnt/2"), "/mnt/2").unwrap();
        // Another configuration has another workload, and the same command.
        let other = SameWork::of("same_work: dd".to_owned());
        let why = check(&other, &dd(1000, 65536, "/mnt/2"), "/mnt/2").unwrap_err();
        assert!(why.contains("bytes=65536000 instead of 4096000"), "{why}");
        assert!(why.contains("bs=64k instead of 4k"), "{why}");
        let next = "bytes = [\"4096000\", \"65536000\"] in [factors] and {bytes} in the command";
        assert!(why.contains(next), "{why}");
        let two = dd(1000, 4096, "/mnt/1").repeat(2);
        assert!(
            same(&two, "/mnt/1")
                .unwrap_err()
                .contains("2 result(s) instead of 1")
        );
        // A level of a factor is another command.
        let level = SameWork::of("same_work: dd bs=64k".to_owned());
        check(&level, &dd(1000, 65536, "/mnt/2"), "/mnt/2").unwrap();
    }
}
