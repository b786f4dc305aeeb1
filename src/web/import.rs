//! What other tools printed, dropped onto the page or pasted, and read here.
//!
//! The texts go to this server and no further, and nothing of them is stored: the answer is a page.
//! Only with `--control`, and only when the visitor says so, they are kept as a run.

use maud::{Markup, html};

use super::Site;
use super::frame::{self, Page};
use super::http::{Request, Response};
use crate::event::{Event, Line};
use crate::import::{self, Source};
use crate::record::Record;
use crate::report;
use crate::verdict::{self, Evidence};

/// Texts that are read at a time.
const TEXTS_MAX: usize = 32;

/// The page.
pub(super) fn page(site: &Site) -> Response {
    show(site, 200, &form(site))
}

fn show(site: &Site, status: u16, content: &Markup) -> Response {
    let page = Page {
        here: "/import",
        title: "Import",
        events: String::new(),
        content: content.clone(),
    };
    frame::page(site, status, &page)
}

fn form(site: &Site) -> Markup {
    let names: Vec<&str> = import::all().iter().map(|importer| importer.name).collect();
    html! {
        h1 class="title" { "Read what other tools printed" }
        p {
            "Nothing leaves this machine: the text is read by this server, shown, and forgotten"
            @if site.hands.is_some() { " unless you keep it." } @else { "." }
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
fn sources(request: &Request) -> Result<Vec<Source>, String> {
    let of = |name: &'static str| {
        let pairs = request.form.iter().filter(move |(known, _)| known == name);
        pairs.map(|(_, value)| value.as_str())
    };
    let texts: Vec<(&str, &str)> = of("name")
        .zip(of("text"))
        .filter(|(_, text)| !text.trim().is_empty())
        .collect();
    if texts.is_empty() {
        return Err(
            "There is no text to be read: drop a file, or paste what a tool printed.".to_owned(),
        );
    }
    if texts.len() > TEXTS_MAX {
        return Err(format!("At most {TEXTS_MAX} texts are read at a time."));
    }
    let read = |(name, text): (&str, &str)| {
        // A form's text has the line breaks of the network.
        let text = text.replace("\r\n", "\n");
        Source::read(None, name, text, None).map_err(|misread| {
            format!(
                "{name}, line {}: {}. Next: {}.",
                misread.line, misread.what, misread.next
            )
        })
    };
    texts.into_iter().map(read).collect()
}

/// Shows what was read; nothing is stored.
pub(super) fn read(site: &Site, request: &Request) -> Response {
    let sources = match sources(request) {
        Ok(sources) => sources,
        Err(why) => return refused(site, &why),
    };
    let Some(record) = record(site, &sources) else {
        return frame::sorry(site, 500, "What was read makes no run.");
    };
    let verdict = verdict::judge(&Evidence::of(&record));
    let content = html! {
        (keeping(site, &sources))
        (report::body(&record, &verdict, &report::ReportOptions::default()))
    };
    show(site, 200, &content)
}

/// The sources as the run they would be.
fn record(site: &Site, sources: &[Source]) -> Option<Record> {
    let at = site.clock.today();
    let design = import::design(sources, &at);
    let head = design.head("not kept".to_owned(), import::title(sources), Vec::new());
    let line = |event| Line {
        at: at.clone(),
        event,
    };
    let mut record = Record::begin(line(Event::RunStarted(Box::new(head))))?;
    for event in design.events() {
        record.push(line(event));
    }
    Some(record)
}

/// Says that nothing is stored, and offers to keep it where that is allowed.
fn keeping(site: &Site, sources: &[Source]) -> Markup {
    html! {
        div class="stage" {
            p { strong { "Not kept" } ": this page is all there is of it." }
            p { a href="/import" { "Read something else" } }
            @if site.hands.is_some() {
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

fn refused(site: &Site, why: &str) -> Response {
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
pub(super) fn keep(site: &Site, request: &Request) -> Response {
    let Some(hands) = &site.hands else {
        return super::start::read_only(site);
    };
    let kept = sources(request).and_then(|sources| {
        let title = import::title(&sources);
        hands.keep(&sources, title)
    });
    match kept {
        Ok(run) => Response::see(format!("/run/{run}")),
        Err(why) => refused(site, &why),
    }
}
