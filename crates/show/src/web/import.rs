//! What other tools printed, dropped onto the page or pasted, and read here.
//!
//! The texts go to this server and no further, and nothing of them is stored: the answer is a page.
//! Only with `--control`, and only when the visitor says so, they are kept as a run.

use maud::{Markup, html};

use super::frame::{self, Page};
use super::http::{HttpRequest, HttpResponse};
use super::site::WebSite;
use crate::report;
use stackrace_base::event::{Event, LogLine};
use stackrace_base::printed::{self, ImportSource};
use stackrace_judge::verdict::{self, Evidence};
use stackrace_results::record::Record;

/// Texts that are read at a time.
const TEXTS_MAX: usize = 32;

/// The form that takes results of other tools.
pub(super) fn page(site: &WebSite) -> HttpResponse {
    show(site, 200, &form(site))
}

fn show(site: &WebSite, status: u16, content: &Markup) -> HttpResponse {
    let page = Page {
        here: "/import",
        title: "Import",
        events: String::new(),
        content: content.clone(),
    };
    frame::page(site, status, &page)
}

fn form(site: &WebSite) -> Markup {
    let names = (site.reader.tools)();
    html! {
        h1 class="title" { "Read the output of other tools" }
        p {
            "Nothing leaves this machine: this server reads the text, shows it and forgets it"
            @if site.control.is_some() { " unless you keep it." } @else { "." }
        }
        p { "Known: " (names.join(", ")) "." }
        form method="post" action="/import" id="import" class="import" {
            div class="drop" id="drop" hidden {
                p { label for="files" { "Drop files here, or choose them" } }
                input type="file" id="files" multiple;
                ul id="chosen" aria-live="polite" {}
            }
            p class="field" {
                label for="name" { "Name of the pasted result" }
                input type="text" id="name" name="name" value="pasted" maxlength="200" autocomplete="off";
            }
            p class="field" {
                label for="text" { "Text as the tool printed it" }
                textarea id="text" name="text" rows="10" spellcheck="false" autocomplete="off" {}
            }
            button { "Read" }
        }
    }
}

/// The texts of a form: pairs of `name` and `text`, in order; empty ones are left out.
fn sources(site: &WebSite, request: &HttpRequest) -> Result<Vec<ImportSource>, String> {
    let of = |name: &'static str| {
        let pairs = request.form.iter().filter(move |(known, _)| known == name);
        pairs.map(|(_, value)| value.as_str())
    };
    let texts: Vec<(&str, &str)> = of("name")
        .zip(of("text"))
        .filter(|(_, text)| !text.trim().is_empty())
        .collect();
    if texts.is_empty() {
        return Err("No text to read: drop a file, or paste the output of a tool.".to_owned());
    }
    if texts.len() > TEXTS_MAX {
        return Err(format!("At most {TEXTS_MAX} texts at a time."));
    }
    let read = |(name, text): (&str, &str)| {
        // A form's text has the line breaks of the network.
        let text = text.replace("\r\n", "\n");
        (site.reader.read)(name, text).map_err(|misread| {
            format!(
                "{name}, line {}: {}. Next: {}.",
                misread.line, misread.what, misread.next
            )
        })
    };
    texts.into_iter().map(read).collect()
}

/// Shows what was read; nothing is stored.
pub(super) fn read(site: &WebSite, request: &HttpRequest) -> HttpResponse {
    let sources = match sources(site, request) {
        Ok(sources) => sources,
        Err(why) => return refused(site, &why),
    };
    let Some(record) = record(site, &sources) else {
        return frame::sorry(site, 500, "These results cannot form a run.");
    };
    let verdict = verdict::judge(&Evidence::of(&record));
    let content = html! {
        (keeping(site, &sources))
        (report::body(&record, &verdict, &report::ReportOptions::default()))
    };
    show(site, 200, &content)
}

/// The sources as the run they would be.
fn record(site: &WebSite, sources: &[ImportSource]) -> Option<Record> {
    let at = site.clock.today();
    let design = printed::Design::of(sources, &at);
    let head = design.head("not kept".to_owned(), printed::title(sources), Vec::new());
    let line = |event| LogLine {
        at: at.clone(),
        since_ns: None,
        event,
    };
    let mut record = Record::begin(line(Event::RunStarted(Box::new(head))))?;
    for event in design.events() {
        record.push(line(event));
    }
    Some(record)
}

/// Says that nothing is stored, and offers to keep it where that is allowed.
fn keeping(site: &WebSite, sources: &[ImportSource]) -> Markup {
    html! {
        div class="stage" {
            p { strong { "Not kept" } ": it exists on this page only." }
            p { a href="/import" { "Read something else" } }
            @if site.control.is_some() {
                form method="post" action="/import/keep" {
                    @for source in sources {
                        input type="hidden" name="name" value=(source.file);
                        textarea name="text" hidden aria-label={ "Text of " (source.file) } {
                            // HTML leaves out a line break that follows the tag.
                            "\n" (source.text)
                        }
                    }
                    button { "Keep this as a run" }
                }
            } @else {
                p { code { "stackrace import FILE…" } " keeps results as a run." }
            }
        }
    }
}

fn refused(site: &WebSite, why: &str) -> HttpResponse {
    let content = html! {
        section class="notes" role="alert" {
            h2 { "This is not understood" }
            p { (why) }
        }
        (form(site))
    };
    show(site, 422, &content)
}

/// Keeps what was read as a run.
pub(super) fn keep(site: &WebSite, request: &HttpRequest) -> HttpResponse {
    let Some(control) = &site.control else {
        return super::start::read_only(site);
    };
    let kept = sources(site, request).and_then(|sources| {
        let title = printed::title(&sources);
        control.keep(&sources, title)
    });
    match kept {
        Ok(run) => HttpResponse::see(format!("/run/{run}")),
        Err(why) => refused(site, &why),
    }
}
