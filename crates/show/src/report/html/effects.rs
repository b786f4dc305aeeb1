//! What each factor does, and whether it does so everywhere.

use maud::{Markup, html};

use super::tables;
use crate::report::effects;
use stackrace_judge::verdict::Verdict;

/// A table for the overall figure and each workload; empty where fewer than two factors vary.
pub(super) fn effects(verdict: &Verdict) -> Markup {
    let found = effects::tables(verdict);
    if found.is_empty() {
        return html! {};
    }
    html! {
        p {
            "An effect is the ratio of two levels of a factor, averaged over everything else or at one level "
            "of another factor. An interaction compares two effects. Where they differ, read the effects "
            "within levels, not their mean."
        }
        @for (table, of) in found.iter().zip(&verdict.effects) {
            h3 { "On " (effects::place(of)) }
            p { (table.note) }
            (tables::table(table))
        }
    }
}
