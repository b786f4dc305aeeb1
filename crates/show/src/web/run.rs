//! One run: its report, and while it goes on what it is doing.

use maud::{Markup, html};

use super::cache::Stage;
use super::frame::{self, Page};
use super::http::HttpResponse;
use super::site::WebSite;
use crate::report;
use stackrace_results::record::{Record, RecordError};

/// The page of one run.
pub(super) fn page(site: &WebSite, run: &str) -> HttpResponse {
    let judged = match site.cache.judged(run) {
        Ok(judged) => judged,
        Err(error) => return missing(site, &error),
    };
    let record = &judged.record;
    let ended = record.ended().map(|ended| ended.reason);
    let stage = site.cache.stage(run, ended);
    let events = match stage {
        // What changed before the script listens is told too: it says what it has seen.
        Stage::Running(_) => {
            let seen = site.cache.version(run).map_or(0, |(bytes, _)| bytes);
            format!("/run/{run}/events?seen={seen}")
        }
        _ => String::new(),
    };
    let content = html! {
        div class="stage" data-part="stage" { (stage_line(site, record, &stage)) }
        @if let Stage::Running(now) = &stage {
            section id="live" class="live" aria-label="What is running now" {
                div data-part="doing" { (report::doing(record, now.as_deref())) }
                div data-part="race" { (report::race(record, &judged.verdict)) }
            }
        }
        p id="status" role="status" class="faint" {}
        div id="record" data-part="record" { (judged.body()) }
    };
    let page = Page {
        here: "/",
        title: &record.head.title,
        events,
        content,
    };
    frame::page(site, 200, &page)
}

/// Line on the stage of the run, the other places it is shown, and what may be done.
pub(super) fn stage_line(site: &WebSite, record: &Record, stage: &Stage) -> Markup {
    let run = &record.head.run;
    // A visitor permits no commands: that is for who can type the option.
    let may_resume = site.control.is_some() && !record.head.gives_commands();
    html! {
            p { "This run is " strong { (stage.word()) } "." }
            p { a href={ "/run/" (run) "/report.html" } download={ (run) ".html" } { "Report as one file" } }
            // `RUN/0`, its slash escaped: the first configuration.
            p { a href={ "/beside?b=" (run) "%2F0" } { "Put it beside another" } }
            @if *stage == Stage::NotEnded {
                p { "It had not ended when it was pushed. Pushing it again brings what came since." }
            }
            @match stage {
                Stage::Running(_) if site.control.is_some() => {
                    form method="post" action={ "/run/" (run) "/stop" } {
                        button { "Stop this run" }
                    }
                }
                Stage::Interrupted if may_resume => {
                    form method="post" action={ "/run/" (run) "/resume" } {
                        button { "Continue this run" }
                    }
                }
                Stage::Interrupted => {
                    p { code { (record.head.resume_command()) } " continues it." }
                }
                _ => {}
            }
    }
}

/// The report as a file of its own.
pub(super) fn report(site: &WebSite, run: &str) -> HttpResponse {
    let judged = match site.cache.judged(run) {
        Ok(judged) => judged,
        Err(error) => return missing(site, &error),
    };
    // One file has its style within.
    HttpResponse::new(200, "text/html; charset=utf-8", judged.file()).with(
        "Content-Security-Policy",
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    )
}

/// Page for a run that is not there, or cannot be read.
pub(super) fn missing(site: &WebSite, error: &RecordError) -> HttpResponse {
    let status = match error {
        RecordError::Unknown { .. } | RecordError::NoRuns { .. } | RecordError::NoStore { .. } => {
            404
        }
        _ => 500,
    };
    frame::sorry(site, status, &error.to_string())
}
