//! What is around every page: its head, the way to the other pages, the style and the script.

use maud::{DOCTYPE, Markup, html};

use super::http::HttpResponse;
use super::site::WebSite;
use crate::report;

/// The script; see its own head.
const SCRIPT: &str = include_str!("page.js");
/// Style sheet of the pages, beyond that of a report.
const STYLE: &str = include_str!("page.css");

/// The pages one can go to: address and name.
const PAGES: [(&str, &str); 5] = [
    ("/", "Runs"),
    ("/history", "History"),
    ("/beside", "Side by side"),
    ("/import", "Import"),
    ("/start", "Start"),
];

/// A page, without what all pages share.
pub(super) struct Page<'a> {
    /// The address of the one of [`PAGES`] it belongs to; empty if none.
    pub(super) here: &'a str,
    /// Shown by the browser, in its tabs and its history.
    pub(super) title: &'a str,
    /// Address where the script hears what has changed; empty if nothing changes.
    pub(super) events: String,
    /// Content of the page, a heading of the first level in it.
    pub(super) content: Markup,
}

/// The page as an answer.
pub(super) fn page(site: &WebSite, status: u16, page: &Page<'_>) -> HttpResponse {
    // An address that would only be refused is not offered.
    let shown = PAGES.iter();
    let shown = shown.filter(|(address, _)| *address != "/start" || site.control.is_some());
    let whole = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (page.title) " · stackrace" }
                // Without it, browsers ask for `/favicon.ico` with every page.
                link rel="icon" href="data:,";
                link rel="stylesheet" href="/style.css";
                script src="/page.js" defer {}
            }
            body data-events=[(!page.events.is_empty()).then_some(&page.events)] {
                a class="skip" href="#main" { "To the content" }
                header class="top" {
                    strong { "stackrace" }
                    nav aria-label="Pages" {
                        ul {
                            @for (address, name) in shown {
                                li {
                                    a href=(address)
                                        aria-current=[(*address == page.here).then_some("page")] {
                                        (name)
                                    }
                                }
                            }
                        }
                    }
                }
                main id="main" tabindex="-1" { (page.content) }
                footer {
                    p {
                        @if site.control.is_some() {
                            "This server may start, stop and resume runs (--control)."
                        } @else {
                            "This server is read-only."
                        }
                    }
                }
            }
        }
    };
    HttpResponse::new(status, "text/html; charset=utf-8", report::written(whole))
}

/// A page that says why there is none.
pub(super) fn sorry(site: &WebSite, status: u16, why: &str) -> HttpResponse {
    let content = html! {
        h1 class="title" { "This cannot be shown" }
        p { (why) }
    };
    let title = "This cannot be shown";
    page(
        site,
        status,
        &Page {
            here: "",
            title,
            events: String::new(),
            content,
        },
    )
}

/// Style sheet of all pages.
pub(super) fn style() -> HttpResponse {
    HttpResponse::new(
        200,
        "text/css; charset=utf-8",
        format!("{}{STYLE}", report::STYLE),
    )
}

/// The script of all pages.
pub(super) fn script() -> HttpResponse {
    HttpResponse::new(200, "text/javascript; charset=utf-8", SCRIPT)
}

/// Time since something happened, both RFC 3339: `5 min ago`, `3 days ago`.
pub(super) fn ago(then: &str, now: &str) -> String {
    let (Ok(then), Ok(now)) = (
        then.parse::<jiff::Timestamp>(),
        now.parse::<jiff::Timestamp>(),
    ) else {
        return "at an unknown time".to_owned();
    };
    let seconds = now.duration_since(then).as_secs();
    // Clocks of two machines may differ: what is in the future is just now, too.
    match seconds {
        ..60 => "just now".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        86_400..172_800 => "yesterday".to_owned(),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_in_the_unit_people_use() {
        let now = "2026-11-21T12:00:00.000Z";
        for (then, text) in [
            ("2026-11-21T11:59:30.000Z", "just now"),
            ("2026-11-21T11:01:00.000Z", "59 min ago"),
            ("2026-11-21T09:00:00.000Z", "3 h ago"),
            ("2026-11-20T09:00:00.000Z", "yesterday"),
            ("2026-11-01T12:00:00.000Z", "20 days ago"),
            ("2026-11-22T12:00:00.000Z", "just now"),
            ("soon", "at an unknown time"),
        ] {
            assert_eq!(ago(then, now), text, "{then}");
        }
    }

    #[test]
    fn the_pages_load_nothing_from_elsewhere() {
        for text in [SCRIPT, STYLE, report::STYLE] {
            assert!(
                !text.contains("http:") && !text.contains("https:") && !text.contains("@import")
            );
            assert!(!text.contains("url("));
        }
    }
}
