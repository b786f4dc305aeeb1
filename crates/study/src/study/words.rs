//! The words a study has outside its layers and workloads.

use stackrace_base::event::{Precision, Until};
use stackrace_base::setting::{ChoiceDoc, SettingDoc, choice};

use super::design::{Provision, RoundOrder};
use super::together::TOGETHER;

/// Words before the first table.
pub(super) const TOP_DOCS: &[SettingDoc] = &[
    SettingDoc::text("title", "", "The question in a few words."),
    SettingDoc::text("question", "", "The question at length."),
    SettingDoc::choice(
        "scale",
        &["scaled", "full"],
        "scaled",
        "Which of its [sizes] the study has; --full asks for full.",
    ),
    SettingDoc::count(
        "seed",
        "",
        "Everything random follows from it; by default it follows from the study's text.",
    ),
    SettingDoc::texts(
        TOGETHER,
        "",
        "Names of workloads that are measured at the same time; all end with the first of them.",
    ),
];
/// Words of `[[workload]]` beside the kind.
pub(super) const WORKLOAD_DOCS: &[SettingDoc] = &[
    SettingDoc::text("name", "", "Unique in the study; by default the kind."),
    SettingDoc::number("weight", "1", "Weight in the overall figure; 0: not in it."),
    SettingDoc::text(
        "metric",
        "",
        "The metric that it is judged by, as \"read latency p99\"; by default its first.",
    ),
];
pub(super) const UNTIL: ChoiceDoc<Until> = choice!(
    "until",
    ["overall" => Until::Overall, "each" => Until::Each, "never" => Until::Never],
    "overall",
    "Stop when the overall figure is decided, when each workload is too, or never early.",
);
pub(super) const PRECISION: ChoiceDoc<Precision> = choice!(
    "precision",
    ["size" => Precision::Size, "direction" => Precision::Direction],
    "size",
    "Go on until it is known how large a difference is, or stop when it is sure which one is faster.",
);
/// Words of `[decide]`.
pub(super) const DECIDE_DOCS: &[SettingDoc] = &[
    SettingDoc::text(
        "compare",
        "",
        "Factor whose levels are compared with its first; absent: which configuration is best.",
    ),
    SettingDoc::share("margin", "5 %", "Smaller differences do not matter."),
    SettingDoc::share(
        "confidence",
        "95 %",
        "All statements hold together with at least this probability.",
    ),
    SettingDoc::count("rounds-at-most", "30", "No more rounds than this."),
    SettingDoc::time(
        "at-most",
        "1 h",
        "No round is begun that would end more than 3 % later.",
    ),
    UNTIL.doc,
    PRECISION.doc,
    SettingDoc::share(
        "within",
        "",
        "Go on until the upper end of the interval is at most this much above the lower one.",
    ),
];
/// Words of `[crash]`.
pub(super) const CRASH_DOCS: &[SettingDoc] = &[
    SettingDoc::count(
        "cuts",
        "20",
        "Power cuts of each trial. Every round makes a new trial of each configuration, and cuts it as often.",
    ),
    SettingDoc::share(
        "enough",
        "5 %",
        "A configuration that breaks no promise is cut until fewer cuts than this share break one, with the study's confidence. When that is so, and those that break promises are told from it, the run ends, unless [decide] says until = \"never\".",
    ),
];
pub(super) const PROVISION: ChoiceDoc<Provision> = choice!(
    "provision",
    ["each-round" => Provision::EachRound, "once" => Provision::Once],
    "each-round",
    "Build the stacks anew in each round, or once.",
);
pub(super) const ORDER: ChoiceDoc<RoundOrder> = choice!(
    "order",
    ["adjacent" => RoundOrder::Adjacent, "turns" => RoundOrder::Turns],
    "",
    "Go workload by workload, the configurations one right after the other, or let each configuration do all workloads in its turn. Adjacent needs all stacks to stand at the same time, and is the default where they are built once.",
);
/// True if a stack is brought to its steady state first.
pub(super) const PRECONDITION: ChoiceDoc<bool> = choice!(
    "precondition",
    ["none" => false, "snia" => true],
    "none",
    "Bring each stack to its steady state after it was built: for flash, whose rate falls when it is worn in.",
);
/// Words of `[trial]`.
pub(super) const TRIAL_DOCS: &[SettingDoc] = &[
    SettingDoc::flag(
        "drop-caches",
        "true",
        "Drop the page cache before the clock starts.",
    ),
    SettingDoc::flag("remount", "true", "Mount anew before the clock starts."),
    PROVISION.doc,
    ORDER.doc,
    SettingDoc::text(
        "slice",
        "",
        "How long a configuration works within a workload before the next one has its turn, from 10 ms to 1 s, or \"off\". With order = \"adjacent\", workloads that only read without a cache take turns of 50 ms by default; a time written here also tries it for steady writes, and keeps to it where the run shows that it changes nothing.",
    ),
    PRECONDITION.doc,
];
