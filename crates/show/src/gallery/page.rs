//! The pages of a gallery: one with all studies, and the report of each run as it is.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::catalogue::{CATALOGUE, CatalogueEntry};
use super::entry::{GalleryRun, drives};
use super::part::MachinePart;
use crate::report::{self, ReportOptions};
use stackrace_base::event::{Event, Fact};
use stackrace_base::unit;
use stackrace_judge::verdict::State;
use stackrace_results::record::Record;

/// Folder of the logs and the pages of runs.
const RUNS: &str = "runs";
/// Characters of a hash in the name of a file: enough to tell two logs apart.
const SHORT: usize = 12;
/// Characters of a moment that are its date.
const DATE: usize = 10;
/// Configurations that are named.
const NAMES_MAX: usize = 6;
/// Style of this page alone: headings of runs below those of studies, charts on the colour of a card.
const STYLE: &str = "
h1.title { font-size: 1.6rem; color: var(--ink); margin-top: 20px; }
.answer svg text { stroke: none; }
.answer svg .under { fill: none; }
.answer .verdict { font-size: 1.15rem; }
.answer h3 { margin: 0; }
.answer figure { max-width: 420px; margin: .8rem 0 0; }
@media print { .answer { break-inside: avoid; } }
";

/// A run as the page of all runs shows it.
pub struct GalleryPage {
    /// Its line in the list for programs.
    pub entry: CatalogueEntry,
    study_hash: String,
    class: &'static str,
    grade: &'static str,
    facts: Vec<String>,
    names: Vec<String>,
    configurations: usize,
    picture: Option<Markup>,
}

impl GalleryPage {
    /// What is shown of a run; `number` is its own among all.
    pub fn of(run: &GalleryRun, number: usize, without: &BTreeSet<MachinePart>) -> Self {
        let (record, verdict) = (&run.record, &run.verdict);
        let head = &record.head;
        // Named after the content: a log that changes is another file, and an old address never shows it.
        let begin = format!(
            "{RUNS}/{}-{}",
            head.run,
            &run.hash[..SHORT.min(run.hash.len())]
        );
        let words = drives(record, None);
        let words: BTreeSet<String> = words.iter().map(|drive| drive.words()).collect();
        let drives: Vec<String> = words.into_iter().collect();
        let names = head.configurations.iter().take(NAMES_MAX);
        Self {
            study_hash: head.study_hash.clone(),
            class: match verdict.state {
                State::Decided => "decided",
                State::Undecided if verdict.hints() => "hint",
                State::Undecided | State::TooFew | State::Unpaired => "open",
            },
            grade: verdict.grade(),
            facts: facts(record, &drives),
            names: names.map(|one| one.name.clone()).collect(),
            configurations: head.configurations.len(),
            picture: report::small(record, verdict, &format!("run-{number}")),
            entry: CatalogueEntry {
                run: head.run.clone(),
                title: head.title.clone(),
                log: format!("{begin}.jsonl"),
                page: format!("{begin}.html"),
                blake3: run.hash.clone(),
                started_at: record.started_at().to_owned(),
                verdict: verdict.sentence.clone(),
                drives,
                without: without.iter().map(|part| part.word().to_owned()).collect(),
            },
        }
    }
}

/// Date, drives and versions of a run.
fn facts(record: &Record, drives: &[String]) -> Vec<String> {
    let date: String = record.started_at().chars().take(DATE).collect();
    let drives = match drives {
        [] => "no drive told".to_owned(),
        drives => unit::listed(drives),
    };
    let mut facts = vec![date, drives, format!("stackrace {}", record.head.stackrace)];
    facts.extend(versions(record));
    facts.dedup();
    facts
}

/// Versions of the software that was measured on and with, each once.
fn versions(record: &Record) -> Vec<String> {
    let mut all = BTreeSet::new();
    // Imported figures are those of another program.
    let of_tools = record.origins().map(|text| {
        let version = text.version.as_deref().unwrap_or("of an untold version");
        format!("{} {version}", text.tool)
    });
    all.extend(of_tools);
    for name in ["kernel", "distribution"] {
        let value = Fact::value_of(&record.head.environment, name);
        all.extend(value.map(str::to_owned));
    }
    for event in record.events() {
        let Event::StackSetUp { layers, .. } = event else {
            continue;
        };
        let facts = layers.iter().flat_map(|layer| &layer.facts);
        let versions = facts.filter(|fact| fact.name.split(' ').next() == Some("version"));
        all.extend(versions.map(|fact| format!("{}: {}", fact.name, fact.shown())));
    }
    all.into_iter().collect()
}

/// The whole report of a run, as `report --html` writes it.
pub fn run_page(run: &GalleryRun) -> Vec<u8> {
    let form = report::by_name("html");
    let render = |form: &report::ReportForm| {
        form.render(&run.record, &run.verdict, &ReportOptions::default())
    };
    form.map(render).unwrap_or_default()
}

/// The page of all runs, the newest study first.
pub fn index_page(title: &str, runs: &[GalleryPage]) -> Vec<u8> {
    let studies = studies(runs);
    let content = html! {
        main {
            h1 class="title" { (title) }
            p {
                (unit::counted(runs.len(), "run")) " of " (counted_studies(studies.len())) ". "
                "Each verdict was judged anew from the log beside it. "
                "A log is no proof: a log that contradicts itself is left out, one that was invented as a whole is not noticed."
            }
            @if runs.is_empty() { p { "No runs yet." } }
            @for study in &studies { (self::study(study)) }
        }
        footer {
            p {
                "To check a log: " code { "b3sum LOG" } " gives its BLAKE3 hash. For programs: "
                a href=(CATALOGUE) { (CATALOGUE) } "."
            }
        }
    };
    let page = report::alone(title, env!("CARGO_PKG_VERSION"), STYLE, &content);
    report::written(page).into_bytes()
}

fn counted_studies(count: usize) -> String {
    match count {
        1 => "1 study".to_owned(),
        several => format!("{several} studies"),
    }
}

/// Runs of one study together, the newest first.
fn studies(runs: &[GalleryPage]) -> Vec<Vec<&GalleryPage>> {
    let mut sorted: Vec<&GalleryPage> = runs.iter().collect();
    sorted.sort_by(|a, b| {
        b.entry
            .started_at
            .cmp(&a.entry.started_at)
            .then_with(|| a.entry.run.cmp(&b.entry.run))
    });
    let mut studies: Vec<Vec<&GalleryPage>> = Vec::new();
    let mut places = BTreeMap::new();
    for run in sorted {
        // A title alone may stand above two studies, and a hash says nothing to people.
        let place = *places
            .entry((&run.study_hash, &run.entry.title))
            .or_insert_with(|| {
                studies.push(Vec::new());
                studies.len() - 1
            });
        studies[place].push(run);
    }
    studies
}

fn study(runs: &[&GalleryPage]) -> Markup {
    html! {
        @if let Some(first) = runs.first() {
            section {
                h2 { (first.entry.title) }
                @for run in runs { (self::run(run)) }
            }
        }
    }
}

fn run(run: &GalleryPage) -> Markup {
    let entry = &run.entry;
    let more = run.configurations.saturating_sub(run.names.len());
    html! {
        article class={ "answer " (run.class) } {
            p class="badge" { (run.grade) }
            h3 { a href=(entry.page) { (entry.run) } }
            p class="verdict" { (report::prose(&entry.verdict)) }
            p class="faint" {
                (unit::listed_names(&run.names))
                @if more > 0 { " and " (more) " more" }
            }
            ul class="facts" { @for fact in &run.facts { li { (fact) } } }
            @if let Some(picture) = &run.picture { (picture) }
            @if !entry.without.is_empty() {
                p { "Cut before it was published: " (unit::listed(&entry.without)) ", and what commands printed." }
            }
            p class="faint" {
                a href=(entry.page) aria-label={ "Whole page of " (entry.run) } { "whole page" } ", "
                a href=(entry.log) aria-label={ "Log of " (entry.run) } { "log" } ", BLAKE3 "
                code { (entry.blake3) }
            }
        }
    }
}
