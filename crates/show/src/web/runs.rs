//! The list of all runs.

use maud::{Markup, html};

use super::cache::Stage;
use super::frame::{self, Page, ago};
use super::http::HttpResponse;
use super::site::WebSite;
use crate::report;
use stackrace_base::unit::counted;
use stackrace_results::record::RunSummary;

/// Runs that are listed.
const RUNS_MAX: usize = 200;

/// The page with the list of runs.
pub(super) fn page(site: &WebSite) -> HttpResponse {
    let content = html! {
        h1 class="title" { "Runs" }
        div data-part="runs" { (list(site)) }
        p id="status" role="status" class="faint" {}
    };
    let page = Page {
        here: "/",
        title: "Runs",
        events: "/events".to_owned(),
        content,
    };
    frame::page(site, 200, &page)
}

/// The list of runs without the rest of the page, for updates.
pub(super) fn list(site: &WebSite) -> Markup {
    let runs = match site.cache.list() {
        Ok(runs) => runs,
        Err(error) => return html! { p { "The runs cannot be listed: " (error) } },
    };
    let today = site.clock.today();
    html! {
        @if runs.is_empty() {
            @if site.cache.shared() {
                p { "No runs here yet. " code { "stackrace push" } " enters them." }
            } @else {
                p { "No runs on record yet. " code { "stackrace run demo" } " makes one in a minute." }
            }
        }
        ul class="runs" {
            @for (run, stage) in runs.iter().take(RUNS_MAX) { (item(run, stage, &today)) }
        }
        @if runs.len() > RUNS_MAX {
            p {
                "And " (runs.len() - RUNS_MAX) " older ones"
                @if site.cache.shared() { ": the history has those of each study." } @else {
                    ": " code { "stackrace runs" } " lists them all."
                }
            }
        }
    }
}

fn item(run: &RunSummary, stage: &Stage, today: &str) -> Markup {
    let title = match run.title.as_str() {
        "" => run.run.as_str(),
        title => title,
    };
    html! {
        li class={ "run " (stage.word()) } {
            p class="badge" { (stage.word()) }
            h2 {
                @if run.unreadable.is_some() { (title) } @else {
                    a href={ "/run/" (run.run) } { (title) }
                }
            }
            @if let Some(why) = &run.unreadable { p { (why) } }
            @if let Some(sentence) = &run.sentence { p { (report::prose(sentence)) } }
            @if run.unreadable.is_none() {
                ul class="facts" {
                    li { (run.run) }
                    li { (counted(run.rounds, "round")) ", " (counted(run.trials, "trial")) }
                    li { "began " (ago(&run.started_at, today)) }
                    @if let Some(ended) = &run.ended { li { "ended: " (ended) } }
                    li { a href=(super::past::address(&run.title)) aria-label={ "History of " (title) ", " (run.run) } { "history" } }
                }
            }
        }
    }
}
