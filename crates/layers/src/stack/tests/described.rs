//! A layer's description says every setting that makes it another layer.

use crate::stack::ALL;
use crate::stack::testing::settings;
use stackrace_base::setting::{GivenSetting, Kind, SettingDoc, Settings, Value};
use std::collections::BTreeSet;

/// Settings that leave the layer what it is, each with the reason.
const NOT_THE_LAYER: &[(&str, &str, &str)] = &[
    ("age", "within", "a limit of time"),
    ("dir", "bound-within", "a limit of time"),
    (
        "dir",
        "line",
        "what the user knows of the line, for the audit",
    ),
    ("fill", "within", "a limit of time"),
    (
        "gfs2",
        "mounted-on",
        "said; two machines take other settings, too",
    ),
    (
        "loop",
        "physical-sector",
        "the logical one; another is refused",
    ),
    ("script", "describe", "prints what is recorded"),
    (
        "script",
        "drop-caches",
        "a command, which is recorded as such",
    ),
    ("script", "limit", "a limit of time"),
];

/// Values that a setting may take: amounts of all kinds, and the words of its own documentation.
fn candidates(doc: &SettingDoc) -> Vec<Value> {
    let amounts = [
        "1 GiB", "64 KiB", "4 KiB", "512 B", "64 MiB", "100 MB", "50 %", "1 ms", "10 s", "a=b",
        "/tmp",
    ];
    let words = doc
        .doc
        .split(|letter: char| !letter.is_alphanumeric() && !"-_".contains(letter));
    let choices = match doc.kind {
        Kind::Choice(choices) => choices,
        _ => &[],
    };
    let texts = amounts
        .into_iter()
        .chain(words)
        .chain(choices.iter().copied());
    let texts: Vec<Value> = texts
        .filter(|text| !text.is_empty())
        .map(Value::from)
        .collect();
    let lists = texts.iter().map(|text| Value::List(vec![text.clone()]));
    let numbers = [1, 2, 3, 5, 9, 12, 4096].map(Value::Integer);
    let floats = [0.5, 1.0, 1.2].map(Value::Float);
    let flags = [true, false].map(Value::Flag);
    let others = lists.chain(numbers).chain(floats).chain(flags);
    others.chain(texts.clone()).collect()
}

/// The same settings with another value for one, or without it.
fn with(settings: &Settings, doc: &SettingDoc, value: Option<Value>) -> Settings {
    let mut all = settings.clone();
    all.settings.retain(|setting| setting.name != doc.name);
    let given = value.map(|value| GivenSetting::new(doc.name, value));
    all.settings.extend(given);
    all
}

/// Two stacks that differ would be called the same, and the log would not say what was measured.
#[test]
fn every_setting_is_in_the_description_of_its_layer() {
    let (mut silent, mut said) = (BTreeSet::new(), BTreeSet::new());
    for kind in ALL {
        let shapes = kind.shapes.iter().flat_map(|shape| shape.iter()).copied();
        let lines = shapes.chain([kind.example]).map(settings);
        let describe = |settings: &Settings| {
            let layer = (kind.parse)(settings).ok()?;
            Some(layer.describe_asked())
        };
        for whole in lines.filter(|settings| settings.owner == kind.name) {
            for doc in kind.settings {
                let mut others = candidates(doc)
                    .into_iter()
                    .filter_map(|value| describe(&with(&whole, doc, Some(value))))
                    .peekable();
                let (Some(without), Some(_)) = (describe(&with(&whole, doc, None)), others.peek())
                else {
                    continue;
                };
                let list = match others.any(|text| text != without) {
                    true => &mut said,
                    false => &mut silent,
                };
                list.insert((kind.name, doc.name));
            }
        }
    }
    let known = NOT_THE_LAYER.iter();
    let known: BTreeSet<_> = known.map(|(layer, name, _)| (*layer, *name)).collect();
    let silent: BTreeSet<_> = silent.difference(&said).copied().collect();
    assert_eq!(silent, known);
}
