//! What may be done from the page, where the server was started with `--control`.
//!
//! Studies are started by the name of a file in one directory, never by a path. Devices are not
//! wiped from here: what a study may destroy has to be allowed on a command line.

use maud::{Markup, html};

use super::frame::{self, Page};
use super::http::{Request, Response};
use super::shelf::Stage;
use super::{Begun, Site};
use crate::record::RunSummary;

/// Without hands.
pub(super) fn read_only(site: &Site) -> Response {
    let why = "This server only shows what is on record. Started with --control it may do more.";
    frame::sorry(site, 403, why)
}

/// What can be started, and what was.
pub(super) fn page(site: &Site) -> Response {
    let Some(hands) = &site.hands else {
        return read_only(site);
    };
    let (studies, mut begun) = (hands.studies(), hands.begun());
    begun.reverse();
    let list = site.shelf.list().unwrap_or_default();
    let content = html! {
        h1 class="title" { "Start a study" }
        @if studies.is_empty() {
            p { "There is no study to start: name a directory of studies with " code { "--studies DIR" } "." }
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

fn item(list: &[(RunSummary, Stage)], begun: &Begun) -> Markup {
    let run = list.iter().find_map(|(run, stage)| match stage {
        Stage::Running(Some(now)) if now.pid == begun.pid => Some(&run.run),
        _ => None,
    });
    html! {
        li class="run" {
            p class="badge" { @if begun.ended.is_some() { "ended" } @else { "running" } }
            h2 { (begun.what) }
            @match (&begun.ended, run) {
                (Some(ended), _) => p { (ended) },
                (None, Some(run)) => p { a href={ "/run/" (run) } { "Watch it: " (run) } },
                (None, None) => p { "It is getting ready; look again in a moment." },
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

/// Starts a study.
pub(super) fn start(site: &Site, request: &Request) -> Response {
    let Some(hands) = &site.hands else {
        return read_only(site);
    };
    match hands.start(request.filled("study").unwrap_or_default()) {
        Ok(()) => Response::see("/start"),
        Err(why) => frame::sorry(site, 409, &why),
    }
}

/// Stops a run.
pub(super) fn stop(site: &Site, run: &str) -> Response {
    act(site, run, |hands| hands.stop(run), format!("/run/{run}"))
}

/// Goes on with a run.
pub(super) fn resume(site: &Site, run: &str) -> Response {
    act(site, run, |hands| hands.resume(run), "/start".to_owned())
}

fn act(
    site: &Site,
    run: &str,
    act: impl Fn(&dyn super::Hands) -> Result<(), String>,
    then: String,
) -> Response {
    let Some(hands) = &site.hands else {
        return read_only(site);
    };
    if !site.shelf.holds(run) {
        return frame::sorry(site, 404, "There is no such run.");
    }
    match act(hands.as_ref()) {
        Ok(()) => Response::see(then),
        Err(why) => frame::sorry(site, 409, &why),
    }
}
