//! The history of a study: all runs of one title over time, changes marked.

use std::sync::Arc;

use maud::{Markup, html};

use super::frame::{self, Page, ago};
use super::http::{HttpRequest, HttpResponse};
use super::site::WebSite;
use crate::report;
use stackrace_base::unit::counted;
use stackrace_judge::verdict::{self, Verdict};
use stackrace_results::record::{Record, RunSummary};

/// Runs that are shown, the newest of them.
const RUNS_MAX: usize = 20;

/// Address of the history of a title.
pub(super) fn address(title: &str) -> String {
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("study", title)
        .finish();
    format!("/history?{query}")
}

/// The page: of one study, or which there are.
pub(super) fn page(site: &WebSite, request: &HttpRequest) -> HttpResponse {
    let runs: Vec<Arc<RunSummary>> = match site.cache.list() {
        Ok(list) => list.into_iter().map(|(run, _)| run).collect(),
        Err(error) => return frame::sorry(site, 500, &error.to_string()),
    };
    let runs = || runs.iter().filter(|run| run.unreadable.is_none());
    let (title, content) = match request.asked("study") {
        None => ("History", studies(site, runs().map(Arc::as_ref))),
        Some(study) => {
            let mine = runs().filter(|run| run.title == study);
            let mine: Vec<&RunSummary> = mine.map(Arc::as_ref).collect();
            if mine.is_empty() {
                return frame::sorry(site, 404, "There is no run of this study.");
            }
            (study, one(site, study, &mine))
        }
    };
    let page = Page {
        here: "/history",
        title,
        events: String::new(),
        content,
    };
    frame::page(site, 200, &page)
}

/// Every study with how often it was run; `runs` newest first.
fn studies<'a>(site: &WebSite, runs: impl Iterator<Item = &'a RunSummary>) -> Markup {
    let mut studies: Vec<(&str, &str, usize)> = Vec::new();
    for run in runs {
        match studies.iter_mut().find(|(title, ..)| *title == run.title) {
            Some((.., count)) => *count += 1,
            None => studies.push((&run.title, &run.started_at, 1)),
        }
    }
    let today = site.clock.today();
    html! {
        h1 class="title" { "History" }
        @if studies.is_empty() { p { "No runs on record yet." } }
        ul class="runs" {
            @for (title, last, count) in studies {
                li class="run" {
                    h2 { a href=(address(title)) { (title) } }
                    ul class="facts" {
                        li { (counted(count, "run")) }
                        li { "the last began " (ago(last, &today)) }
                    }
                }
            }
        }
    }
}

/// One study; `runs` newest first.
fn one(site: &WebSite, title: &str, runs: &[&RunSummary]) -> Markup {
    // Oldest first, as time goes in a chart.
    let newest = runs.iter().take(RUNS_MAX).rev();
    let newest: Vec<&str> = newest.map(|run| run.run.as_str()).collect();
    // Those that were removed or damaged since the list was read are left out.
    let shown = site.cache.outlines(&newest);
    let records: Vec<&Record> = shown.iter().map(|judged| &judged.record).collect();
    let pairs: Vec<(&Record, &Verdict)> = shown
        .iter()
        .map(|judged| (&judged.record, &judged.verdict))
        .collect();
    let courses = verdict::history(&pairs);
    html! {
        h1 class="title" { (title) }
        @if runs.len() > RUNS_MAX {
            p { "The newest " (RUNS_MAX) " of " (runs.len()) " runs." }
        }
        (report::history(&records, &courses))
        h2 { "The runs" }
        ol {
            @for (at, judged) in shown.iter().enumerate() {
                li {
                    a href={ "/run/" (judged.record.head.run) } { (judged.record.head.run) }
                    ": " (report::prose(&judged.verdict.sentence))
                    @if at > 0 && judged.record.head.study_hash != shown[at - 1].record.head.study_hash {
                        " " mark { "The study's text differs from the previous run's." }
                    }
                }
            }
        }
    }
}
