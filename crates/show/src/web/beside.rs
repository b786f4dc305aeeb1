//! Any two stored results side by side.

use std::sync::Arc;

use maud::{Markup, html};

use super::frame::{self, Page};
use super::http::{HttpRequest, HttpResponse};
use super::site::WebSite;
use crate::report;
use stackrace_judge::verdict;
use stackrace_results::record::RunSummary;

/// Runs one can choose from, the newest.
const RUNS_MAX: usize = 100;

/// The page. `a` and `b` in the address are `RUN/CONFIGURATION`, the configuration by index.
pub(super) fn page(site: &WebSite, request: &HttpRequest) -> HttpResponse {
    let (a, b) = (request.asked("a"), request.asked("b"));
    let runs: Vec<Arc<RunSummary>> = match site.cache.list() {
        Ok(list) => list
            .into_iter()
            .map(|(run, _)| run)
            .filter(|run| run.unreadable.is_none())
            .collect(),
        Err(error) => return frame::sorry(site, 500, &error.to_string()),
    };
    let compared = match (a, b) {
        (Some(a), Some(b)) => match difference(site, a, b) {
            Ok(difference) => Some(difference),
            Err(refused) => return *refused,
        },
        _ => None,
    };
    let content = html! {
        @if compared.is_none() {
            h1 class="title" { "Two results side by side" }
            p {
                "Results of different runs were not measured in turn: any other change between them is in "
                "the ratios, so there is no verdict."
            }
        }
        (form(&runs, a.unwrap_or_default(), b.unwrap_or_default()))
        @if let Some(difference) = compared { (difference) }
    };
    let page = Page {
        here: "/beside",
        title: "Side by side",
        events: String::new(),
        content,
    };
    frame::page(site, 200, &page)
}

fn form(runs: &[Arc<RunSummary>], a: &str, b: &str) -> Markup {
    let choice = |name: &str, label: &str, chosen: &str| {
        html! {
            p class="field" {
                label for=(name) { (label) }
                select id=(name) name=(name) required {
                    @for run in runs.iter().take(RUNS_MAX) {
                        optgroup label={ (run.title) " (" (run.run) ")" } {
                            @for (at, configuration) in run.configurations.iter().enumerate() {
                                @let value = format!("{}/{at}", run.run);
                                option value=(value) selected[value == chosen] {
                                    (configuration) ", " (run.run)
                                }
                            }
                        }
                    }
                }
            }
        }
    };
    html! {
        @if runs.is_empty() {
            p { "No runs on record yet." }
        } @else {
            form method="get" action="/beside" class="beside" {
                (choice("a", "The baseline (A)", a))
                (choice("b", "Beside it (B)", b))
                button { "Show them side by side" }
            }
        }
    }
}

/// The two, or why they cannot be shown.
fn difference(site: &WebSite, a: &str, b: &str) -> Result<Markup, Box<HttpResponse>> {
    let side = |word: &str| {
        let refused = |status, why: &str| Box::new(frame::sorry(site, status, why));
        let Some((run, at)) = word.split_once('/') else {
            return Err(refused(400, "Name a run and one of its configurations."));
        };
        let judged = site.cache.judged(run);
        let judged = judged.map_err(|error| Box::new(super::run::missing(site, &error)))?;
        let at = at.parse::<usize>().ok();
        let at = at.filter(|at| *at < judged.record.head.configurations.len());
        let at = at.ok_or_else(|| refused(404, "This run has no such configuration."))?;
        Ok((judged, at))
    };
    let ((a, configuration_a), (b, configuration_b)) = (side(a)?, side(b)?);
    // As without `--anyway`: other work and other machines are named and not compared.
    let difference = verdict::difference(
        &[(&a.record, configuration_a)],
        &[(&b.record, configuration_b)],
        false,
    );
    Ok(report::diff_html(&difference))
}
