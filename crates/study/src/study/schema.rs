//! A JSON schema of study files, for editors that complete and check while one types.
//!
//! It is made from the same lists of settings the program checks with. A schema cannot know which
//! factors a study has, so every value may also be a text with a `{placeholder}` in it.

use serde_json::{Map, Value, json};

use stackrace_base::setting::{Fallback, Kind, SettingDoc};
use stackrace_base::unit::{BYTE_UNITS, TIME_UNITS};

use super::design::Kinds;
use super::words::{CRASH_DOCS, DECIDE_DOCS, TOP_DOCS, TRIAL_DOCS, WORKLOAD_DOCS};

/// The schema (JSON Schema, draft 2020-12).
pub fn schema(kinds: &Kinds<'_>) -> Value {
    let mut properties = words(TOP_DOCS, Placeholders::No);
    let level = json!({ "type": ["string", "number", "boolean", "array", "object"] });
    let choice = json!({ "type": "object", "description": "Levels by factor: one, or a list." });
    properties.insert(
        "factors".to_owned(),
        json!({
            "type": "object",
            "description": "What is varied: each factor with its levels.",
            "additionalProperties": { "type": "array", "minItems": 1, "items": level },
        }),
    );
    properties.insert("sizes".to_owned(), sizes());
    properties.insert(
        "exclude".to_owned(),
        json!({
            "type": "array",
            "description": "Combinations of levels left out.",
            "items": choice,
        }),
    );
    properties.insert("stack".to_owned(), stack(kinds, choice));
    properties.insert("workload".to_owned(), workload(kinds));
    let asked = "What is asked, and when to stop.";
    properties.insert(
        "decide".to_owned(),
        table(asked, DECIDE_DOCS, Placeholders::Yes),
    );
    let bound = json!({
        "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }],
    });
    properties.insert(
        "require".to_owned(),
        json!({
            "type": "object",
            "description": "What is enough: a bound for a metric, like \"fsync latency p99\" = \"<= 10 ms\".",
            "additionalProperties": bound,
        }),
    );
    let trial = table("How a trial is prepared.", TRIAL_DOCS, Placeholders::No);
    properties.insert("trial".to_owned(), trial);
    // No placeholder: how often is cut is the same for all configurations.
    let crash = "The power of each trial is cut, and what it was promised is looked for.";
    properties.insert(
        "crash".to_owned(),
        table(crash, CRASH_DOCS, Placeholders::No),
    );
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "stackrace study",
        "type": "object",
        "properties": properties,
        "required": ["stack", "workload"],
        "additionalProperties": false,
    })
}

fn stack(kinds: &Kinds<'_>, choice: Value) -> Value {
    let layers = kinds.layers.iter();
    let mut layer = entry(layers.map(|kind| (kind.name, kind.summary, kind.settings)));
    layer.insert("when".to_owned(), choice);
    json!({
        "type": "array",
        "minItems": 1,
        "description": "The layers, from the bottom up.",
        "items": {
            "type": "object",
            "properties": layer,
            // A factor may vary the kind of layer: `"{filesystem}" = {}`.
            "patternProperties": { "\\{": { "type": "object" } },
            "additionalProperties": false,
        },
    })
}

fn workload(kinds: &Kinds<'_>) -> Value {
    let workloads = kinds.workloads.iter();
    let mut workload = entry(workloads.map(|kind| (kind.name, kind.summary, kind.settings)));
    workload.extend(words(WORKLOAD_DOCS, Placeholders::No));
    json!({
        "type": "array",
        "minItems": 1,
        "description": "What every configuration goes through, in order.",
        "items": { "type": "object", "properties": workload, "additionalProperties": false },
    })
}

fn sizes() -> Value {
    let amount = json!({ "type": ["string", "number", "boolean", "array"] });
    json!({
        "type": "object",
        "description": "Amounts for any machine, and as the question was asked (--full).",
        "additionalProperties": {
            "type": "object",
            "properties": { "scaled": amount, "full": amount },
            "required": ["scaled", "full"],
            "additionalProperties": false,
        },
    })
}

/// Permission for a value to be a text with a placeholder.
#[derive(Clone, Copy, PartialEq)]
enum Placeholders {
    Yes,
    No,
}

fn entry<'a>(
    kinds: impl Iterator<Item = (&'a str, &'a str, &'a [SettingDoc])>,
) -> Map<String, Value> {
    kinds
        .map(|(name, summary, docs)| (name.to_owned(), table(summary, docs, Placeholders::Yes)))
        .collect()
}

fn table(description: &str, docs: &[SettingDoc], placeholders: Placeholders) -> Value {
    let required: Vec<&str> = docs
        .iter()
        .filter(|doc| doc.fallback == Fallback::Required)
        .map(|doc| doc.name)
        .collect();
    json!({
        "type": "object",
        "description": description,
        "properties": words(docs, placeholders),
        "required": required,
        "additionalProperties": false,
    })
}

fn words(docs: &[SettingDoc], placeholders: Placeholders) -> Map<String, Value> {
    docs.iter()
        .map(|doc| (doc.name.to_owned(), word(doc, placeholders)))
        .collect()
}

fn word(doc: &SettingDoc, placeholders: Placeholders) -> Value {
    let mut kind = of_kind(doc.kind);
    if placeholders == Placeholders::Yes {
        // What a placeholder becomes is known only when the study is read.
        kind = json!({ "anyOf": [kind, { "type": "string", "pattern": "\\{" }] });
    }
    let described = match doc.default_words() {
        None => doc.doc.to_owned(),
        Some(default) => format!("{} Default: {default}.", doc.doc),
    };
    kind["description"] = Value::String(described);
    kind
}

fn of_kind(kind: Kind) -> Value {
    match kind {
        Kind::Bytes => json!({
            "anyOf": [
                { "type": "string", "pattern": format!("^{}$", amount(BYTE_UNITS)) },
                { "type": "integer", "minimum": 0 },
            ],
        }),
        Kind::Count => json!({ "type": "integer", "minimum": 0 }),
        Kind::Number => json!({ "type": "number", "minimum": 0 }),
        Kind::Share => json!({
            "anyOf": [
                { "type": "string", "pattern": format!("^ *{NUMBER} *%? *$") },
                { "type": "number", "minimum": 0, "maximum": 1 },
            ],
        }),
        Kind::Time => json!({
            "type": "string",
            "pattern": format!("^{}$", amount(TIME_UNITS)),
        }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Text => json!({ "type": ["string", "integer"] }),
        Kind::Texts => json!({
            "anyOf": [
                { "type": ["string", "integer"] },
                { "type": "array", "items": { "type": ["string", "integer"] } },
            ],
        }),
        Kind::Weights => {
            let weighted = format!("{}(: *\\+?0*[1-9][0-9]* *)?", amount(BYTE_UNITS));
            json!({ "type": "string", "pattern": format!("^{weighted}(,{weighted})*$") })
        }
        Kind::Choice(words) => {
            let spelled = words.iter().copied().map(Value::from);
            json!({ "enum": spelled.chain(words.iter().filter_map(|word| number(word))).collect::<Vec<_>>() })
        }
    }
}

/// Digits as amounts begin with; one point at most.
const NUMBER: &str = "([0-9]+\\.?[0-9]*|\\.[0-9]+)";

/// Pattern of a number with one of some units.
fn amount(units: &[(&[&str], f64)]) -> String {
    let words = units.iter().flat_map(|(words, _)| *words);
    let words: Vec<&str> = words.copied().collect();
    format!(" *{NUMBER} *({}) *", words.join("|"))
}

/// The number that a word of a choice may be written as: `raid = 5`, `metadata = 1.2`.
fn number(word: &str) -> Option<Value> {
    let number: Value = match word.parse::<i64>() {
        Ok(whole) => whole.into(),
        Err(_) => word.parse::<f64>().ok()?.into(),
    };
    // "010" is no way to write 10, and 1.20 is read as 1.2.
    let spelled = number.to_string();
    (spelled == word).then_some(number)
}
