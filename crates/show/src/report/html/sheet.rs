//! A page that is no report of a run, as HTML.

use maud::{Markup, html};

use super::tables::table;
use crate::report::sheet::{Sheet, SheetPart};

/// Content of the page, its heading first, with a drawing before the facts.
pub(in crate::report) fn sheet(sheet: &Sheet, drawn: &Markup) -> Markup {
    html! {
        h1 class="title" { (sheet.title) }
        @for paragraph in &sheet.lead { p { (paragraph) } }
        (drawn)
        @if !sheet.facts.is_empty() {
            dl {
                @for (name, value) in &sheet.facts {
                    @if !name.is_empty() { dt { (name) } }
                    dd { (value) }
                }
            }
        }
        @for part in &sheet.parts {
            @match part {
                SheetPart::Table(content) => {
                    h2 { (content.title) }
                    @if !content.note.is_empty() { p { (content.note) } }
                    @if !content.rows.is_empty() { (table(content)) }
                }
                SheetPart::List(title, sentences) => {
                    h2 { (title) }
                    ul { @for sentence in sentences { li { (sentence) } } }
                }
            }
        }
    }
}
