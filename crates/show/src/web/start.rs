//! What may be done from the page, where the server was started with `--control`.
//!
//! Studies are started by the name of a file in one directory, never by a path. Devices are not
//! wiped from here: what a study may destroy has to be allowed on a command line.

use std::sync::Arc;

use maud::{Markup, html};

use super::cache::Stage;
use super::frame::{self, Page};
use super::http::{HttpRequest, HttpResponse};
use super::site::{Begun, RunControl, WebSite};
use stackrace_results::record::RunSummary;

/// Page without control over runs.
pub(super) fn read_only(site: &WebSite) -> HttpResponse {
    let why = "This server is read-only. Start it with --control to allow this.";
    frame::sorry(site, 403, why)
}

/// Page of the studies that can be started, and of those that were.
pub(super) fn page(site: &WebSite) -> HttpResponse {
    let Some(control) = &site.control else {
        return read_only(site);
    };
    let (studies, mut begun) = (control.studies(), control.begun());
    begun.reverse();
    let list = site.cache.list().unwrap_or_default();
    let content = html! {
        h1 class="title" { "Start a study" }
        @if studies.is_empty() {
            p { "There is no study to start. Name a directory of studies with " code { "--studies DIR" } "." }
        }
        ul class="runs" {
            @for study in &studies {
                li class="run" {
                    h2 { (study) }
                    form method="post" action="/start" {
                        input type="hidden" name="study" value=(study);
                        button aria-label={ "Start " (study) } { "Start" }
                    }
                }
            }
        }
        @if !begun.is_empty() {
            h2 { "Started from here" }
            ul class="runs" { @for begun in &begun { (item(&list, begun)) } }
        }
    };
    let page = Page {
        here: "/start",
        title: "Start",
        events: String::new(),
        content,
    };
    frame::page(site, 200, &page)
}

fn item(list: &[(Arc<RunSummary>, Stage)], begun: &Begun) -> Markup {
    // A run tells its process, which is how one that was started here is found.
    let run = list.iter().find_map(|(run, stage)| match stage {
        Stage::Running(Some(now)) if begun.pids.contains(&now.pid) => Some(&run.run),
        _ => None,
    });
    html! {
        li class="run" {
            p class="badge" { @if begun.ended.is_some() { "ended" } @else { "running" } }
            h2 { (begun.what) }
            @match (&begun.ended, run) {
                (Some(ended), _) => p { (ended) },
                (None, Some(run)) => p { a href={ "/run/" (run) } { "Watch it: " (run) } },
                (None, None) => p { "It is starting; check again in a moment." },
            }
            @if !begun.said.is_empty() {
                details {
                    summary { "What it said" }
                    pre tabindex="0" { (begun.said) }
                }
            }
        }
    }
}

/// Starts a study from the form, and leads back to it; where that is not allowed, says so.
pub(super) fn start(site: &WebSite, request: &HttpRequest) -> HttpResponse {
    let Some(control) = &site.control else {
        return read_only(site);
    };
    match control.start(request.filled("study").unwrap_or_default()) {
        Ok(()) => HttpResponse::see("/start"),
        Err(why) => frame::sorry(site, 409, &why),
    }
}

/// Asks a run to stop, as Ctrl-C does, and leads back to its page.
pub(super) fn stop(site: &WebSite, run: &str) -> HttpResponse {
    act(
        site,
        run,
        |control| control.stop(run),
        format!("/run/{run}"),
    )
}

/// Goes on with a run.
pub(super) fn resume(site: &WebSite, run: &str) -> HttpResponse {
    act(
        site,
        run,
        |control| control.resume(run),
        "/start".to_owned(),
    )
}

fn act(
    site: &WebSite,
    run: &str,
    act: impl Fn(&dyn RunControl) -> Result<(), String>,
    then: String,
) -> HttpResponse {
    let Some(control) = &site.control else {
        return read_only(site);
    };
    // An id becomes part of a path only if a run has exactly this one.
    if !site.cache.holds(run) {
        return frame::sorry(site, 404, "There is no such run.");
    }
    match act(control.as_ref()) {
        Ok(()) => HttpResponse::see(then),
        Err(why) => frame::sorry(site, 409, &why),
    }
}
