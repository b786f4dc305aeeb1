//! `stackrace gallery`: a folder of runs as a site that needs no server.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::args::GalleryArgs;
use super::failure::Failure;
use super::gallery_site;
use super::terminal::{error, say};
use super::words::unknown;
use crate::commands::gallery::{self, Gathered};
use stackrace_base::unit::{self, ShownPath};
use stackrace_show::gallery::{
    GalleryPage, MachinePart, MachineWords, RefusedFile, index_page, run_page,
};
use stackrace_show::report::{harmless, on_one_line};

/// Words of a part of machines that are shown.
const WORDS_MAX: usize = 6;
/// Files without a log that are named.
const OTHERS_MAX: usize = 5;

/// Carries out `stackrace gallery`; gives its exit code.
pub(super) fn exec(verb: GalleryArgs) -> Result<u8, Failure> {
    let without = parts(&verb.without)?;
    if !verb.directory.is_dir() {
        let text = format!("{} is no folder", verb.directory.shown());
        return Err(
            Failure::usage(text).next("name a folder with logs of runs: stackrace gallery DIR")
        );
    }
    let output = match verb.output {
        Some(output) => output,
        None => beside(&verb.directory)?,
    };
    apart(&verb.directory, &output)?;
    let mut pages = Vec::new();
    let mut files = BTreeMap::new();
    let (mut words, mut removed) = (MachineWords::default(), MachineWords::default());
    let gathered = gallery::read(&verb.directory, &without, &mut |run| {
        let page = GalleryPage::of(&run, pages.len(), &without);
        words.add(&run.words);
        removed.add(&run.removed);
        files.insert(page.entry.page.clone(), run_page(&run));
        files.insert(page.entry.log.clone(), run.log);
        pages.push(page);
    })?;
    say(&told(&words, &removed, &without));
    report_others(&gathered);
    if pages.is_empty() {
        return Err(nothing_in(&verb.directory));
    }
    let index = output.join(gallery_site::INDEX);
    if verb.dry_run {
        let runs = unit::counted(pages.len(), "run");
        say(&format!(
            "\nnothing was written (--dry-run); {} would show {runs}\n",
            index.shown()
        ));
        return Ok(0);
    }
    files.insert(
        gallery_site::INDEX.to_owned(),
        index_page(&verb.title, &pages),
    );
    let entries = pages.into_iter().map(|page| page.entry).collect();
    gallery_site::write(&output, &files, entries)?;
    say(&format!(
        "\n{}  {}\n",
        unit::counted(gathered.runs, "run"),
        index.shown()
    ));
    Ok(0)
}

/// The parts that are cut.
fn parts(words: &[String]) -> Result<BTreeSet<MachinePart>, Failure> {
    let part = |word: &String| {
        let mut all = MachinePart::ALL.into_iter();
        let found = all.find(|part| part.word() == word.trim());
        found.ok_or_else(|| unknown("part", word, &MachinePart::ALL.map(MachinePart::word)))
    };
    words.iter().map(part).collect()
}

/// `results-site` beside `results`.
fn beside(dir: &Path) -> Result<PathBuf, Failure> {
    let whole = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let name = whole.file_name().ok_or_else(|| {
        let text = format!(
            "{} has no name that a directory could be named after",
            dir.shown()
        );
        Failure::usage(text).next("name the site: -o OUT")
    })?;
    let mut name = name.to_owned();
    name.push("-site");
    Ok(whole.with_file_name(name))
}

/// Refuses a site among its own sources: the next time, it would be one of them.
fn apart(dir: &Path, output: &Path) -> Result<(), Failure> {
    match (dir.canonicalize(), output.canonicalize()) {
        (Ok(dir), Ok(output)) if dir == output => Err(Failure::usage(format!(
            "{} is the folder of the logs: the site would lie among them",
            dir.shown()
        ))
        .next("name another directory: -o OUT")),
        _ => Ok(()),
    }
}

/// What the logs say of machines, and what was cut, a line for each part.
fn told(words: &MachineWords, removed: &MachineWords, without: &BTreeSet<MachinePart>) -> String {
    let mut text = "what is published of machines\n".to_owned();
    for part in MachinePart::ALL {
        let cut = without.contains(&part);
        let all: Vec<(&str, usize)> = match cut {
            true => removed.of(part).collect(),
            false => words.of(part).collect(),
        };
        let shown: Vec<String> = all
            .iter()
            .take(WORDS_MAX)
            .map(|(word, _)| on_one_line(word))
            .collect();
        let more = all.len().saturating_sub(shown.len());
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let places: usize = all.iter().map(|(_, places)| places).sum();
        let places = unit::counted(places, "place");
        let line = match (all.is_empty(), cut) {
            (true, false) => "nothing".to_owned(),
            (true, true) => "cut: there was nothing".to_owned(),
            (false, true) => format!("cut: {}{more}, in {places}", shown.join(", ")),
            (false, false) => format!("{}{more}, in {places}", shown.join(", ")),
        };
        text.push_str(&format!("  {:<9}{line}\n", part.word()));
    }
    text.push_str("titles, names, models of drives, processor and memory are published always\n");
    text
}

/// The failure of a folder without a log that can be shown.
pub(super) fn nothing_in(dir: &Path) -> Failure {
    Failure::refused(format!("no file in {} can be shown", dir.shown())).next(
        "put logs there: runs/ID/log.jsonl of a store (`stackrace runs` lists them), or what `--events FILE` wrote",
    )
}

/// Says on standard error which files are not shown, and why.
pub(super) fn report_others(gathered: &Gathered) {
    for RefusedFile { file, why, next } in &gathered.refused {
        error(&harmless(&format!(
            "not shown: {}: {why}\n     next: {next}\n",
            on_one_line(file)
        )));
    }
    let others = &gathered.others;
    if !others.is_empty() {
        let named: Vec<String> = others
            .iter()
            .take(OTHERS_MAX)
            .map(|name| on_one_line(name))
            .collect();
        let more = others.len().saturating_sub(named.len());
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        error(&format!("not looked at: {}{more}\n", named.join(", ")));
    }
}
