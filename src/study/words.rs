//! The words a study has outside its layers and workloads.

use crate::setting::{Kind, SettingDoc};

/// Words before the first table.
pub(super) const TOP_DOCS: &[SettingDoc] = &[
    SettingDoc::optional("title", Kind::Text, "", "The question in a few words."),
    SettingDoc::optional("question", Kind::Text, "", "The question at length."),
    SettingDoc::optional(
        "scale",
        Kind::Choice(&["scaled", "full"]),
        "scaled",
        "Which of its [sizes] the study has; --full asks for full.",
    ),
    SettingDoc::optional(
        "seed",
        Kind::Count,
        "",
        "Everything random follows from it; by default it follows from the study's text.",
    ),
];
/// Words of `[[workload]]` beside the kind.
pub(super) const WORKLOAD_DOCS: &[SettingDoc] = &[
    SettingDoc::optional(
        "name",
        Kind::Text,
        "",
        "Unique in the study; by default the kind.",
    ),
    SettingDoc::optional(
        "weight",
        Kind::Number,
        "1",
        "Weight in the overall figure; 0: not in it.",
    ),
];
/// Words of `[decide]`.
pub(super) const DECIDE_DOCS: &[SettingDoc] = &[
    SettingDoc::optional(
        "compare",
        Kind::Text,
        "",
        "Factor whose levels are compared with its first; absent: which configuration is best.",
    ),
    SettingDoc::optional(
        "margin",
        Kind::Share,
        "5 %",
        "Smaller differences do not matter.",
    ),
    SettingDoc::optional(
        "confidence",
        Kind::Share,
        "95 %",
        "All statements hold together with at least this probability.",
    ),
    SettingDoc::optional(
        "rounds-at-most",
        Kind::Count,
        "30",
        "No more rounds than this.",
    ),
    SettingDoc::optional(
        "at-most",
        Kind::Time,
        "1 h",
        "No round is begun that would end later.",
    ),
    SettingDoc::optional(
        "until",
        Kind::Choice(&["overall", "each", "never"]),
        "overall",
        "Stop when the overall figure is decided, when each workload is too, or never early.",
    ),
];
/// Words of `[trial]`.
pub(super) const TRIAL_DOCS: &[SettingDoc] = &[
    SettingDoc::optional(
        "drop-caches",
        Kind::Flag,
        "true",
        "Drop the page cache before the clock starts.",
    ),
    SettingDoc::optional(
        "remount",
        Kind::Flag,
        "true",
        "Mount anew before the clock starts.",
    ),
    SettingDoc::optional(
        "provision",
        Kind::Choice(&["each-round", "once"]),
        "each-round",
        "Build the stacks anew in each round, or once.",
    ),
    SettingDoc::optional(
        "precondition",
        Kind::Choice(&["none", "snia"]),
        "none",
        "Bring each stack to its steady state after it was built: for flash, whose rate falls when it is worn in.",
    ),
];
