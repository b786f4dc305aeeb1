//! What a careful reader would say of the figures, each found by a check over the data.
//!
//! A check is asked of every study: it looks at figures, at the names of factors and at stated
//! numbers, and is silent where they give it no reason to speak.

mod figures;
mod limit;
mod obtained;
mod sense;

use super::card::Card;
use super::table::PublishedTable;

pub use obtained::unfit;

/// A remark, and the check that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Name of the check: `single-run`.
    pub check: &'static str,
    /// One or two sentences.
    pub text: String,
}

type Check = fn(&Card, &PublishedTable) -> Vec<String>;

/// Every check, in the order a reader needs them.
const ALL: &[(&str, Check)] = &[
    ("no-figures", obtained::no_figures),
    ("single-run", obtained::single_run),
    ("contradiction", obtained::contradiction),
    ("stated-size", obtained::stated_size),
    ("confounded", obtained::confounded),
    ("order", sense::order),
    ("cpu", limit::cpu),
    ("outlier", limit::outlier),
    ("too-short", limit::too_short),
    ("brief", limit::brief),
    ("memory", limit::memory),
    ("size", limit::size),
    ("line", limit::line),
    ("below-line", limit::below_line),
    ("rounding", sense::rounding),
    ("control", sense::control),
    ("placement", sense::placement),
    ("resilver", sense::resilver),
    ("rotation", sense::rotation),
];

/// Everything the checks find.
pub fn remarks(card: &Card, table: &PublishedTable) -> Vec<Remark> {
    ALL.iter()
        .flat_map(|(check, find)| {
            find(card, table)
                .into_iter()
                .map(|text| Remark { check, text })
        })
        .collect()
}
