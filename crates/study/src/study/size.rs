//! Amounts a study has twice: scaled to any machine, and full, as the question was asked.
//!
//! `[sizes] data = { scaled = "512 MiB", full = "16 GiB" }` makes `"{data}"` one of the two. They
//! are replaced before anything else is read, so that the rest of the program knows no sizes.

use super::document::{Field, Item, ItemKind};
use stackrace_base::setting::{Refusal, Value};

/// Tables in which sizes are replaced.
const WHERE: [&str; 3] = ["stack", "workload", "decide"];
/// Longest size that stands within a longer text, bytes.
const WORDS_MAX: usize = 64;
const EXAMPLE: &str = "[sizes] data = { scaled = \"512 MiB\", full = \"16 GiB\" }";
/// The word that asks for full size, and the text that is written before a study's own.
const FULL: &str = "full";
const ASKED: &str = "scale = \"full\"\n";
const WORD: &str = "\"full\"";

/// The text of a study, asked for at full size.
pub fn full_size(text: &[u8]) -> Vec<u8> {
    let said: Option<SaidScale> = std::str::from_utf8(text)
        .ok()
        .and_then(|text| toml::from_str(text).ok());
    match said.map(|said| said.scale.span()) {
        // In place of the size that the study says.
        Some(at) => [&text[..at.start], WORD.as_bytes(), &text[at.end..]].concat(),
        None => [ASKED.as_bytes(), text].concat(),
    }
}

/// The size that a study says.
#[derive(serde::Deserialize)]
struct SaidScale {
    scale: toml::Spanned<String>,
}

/// Replaces every size by the one that is asked for.
pub(super) fn replace(fields: &mut [Field], refusals: &mut Vec<Refusal>) {
    let full = fields.iter().any(|field| {
        field.name == "scale"
            && matches!(&field.item.node, ItemKind::Value(Value::Text(word)) if word == FULL)
    });
    // Without sizes there is nothing to replace.
    let Some(at) = fields.iter().position(|field| field.name == "sizes") else {
        if let Some(field) = fields.iter().find(|field| field.name == "scale" && full) {
            refusals.push(Refusal::at(
                &field.item.span,
                "the study has one size only: full size cannot be asked for",
                format!("leave scale (or --full) out, or write {EXAMPLE}"),
            ));
        }
        return;
    };
    let named = |name: &str| fields.iter().find(|field| field.name == name);
    let factors = named("factors").map_or(&[][..], |field| match &field.item.node {
        ItemKind::Table(factors) => factors,
        _ => &[],
    });
    let mut sizes = Vec::new();
    match fields[at].item.table("[sizes]", EXAMPLE) {
        Err(refusal) => refusals.push(refusal),
        Ok(table) => {
            for field in table {
                // Both are written "{name}", and only one of them could be meant.
                if factors.iter().any(|factor| factor.name == field.name) {
                    refusals.push(Refusal::at(
                        &field.name_span,
                        format!("\"{}\" is a factor too", field.name),
                        "give the size another name",
                    ));
                }
                let value = chosen(field, full).unwrap_or_else(|refusal| {
                    refusals.push(refusal);
                    stand_in(field)
                });
                sizes.push((format!("{{{}}}", field.name), value, false));
            }
        }
    }
    for field in fields
        .iter_mut()
        .filter(|field| WHERE.contains(&field.name.as_str()))
    {
        walk(&mut field.item, &mut sizes);
    }
    for (name, _, used) in sizes {
        if !used && refusals.is_empty() {
            refusals.push(Refusal::at(
                &fields[at].name_span,
                format!("no layer and no workload uses the size {name}"),
                format!("write \"{name}\" where it belongs, or take it out"),
            ));
        }
    }
}

fn chosen(field: &Field, full: bool) -> Result<Value, Refusal> {
    let wrong = || {
        Refusal::at(
            &field.item.span,
            format!(
                "the size \"{}\" needs the words scaled and full",
                field.name
            ),
            format!("write it like {EXAMPLE}"),
        )
    };
    let words = field.item.table("a size", EXAMPLE)?;
    let of = |name: &str| words.iter().find(|word| word.name == name);
    let (Some(scaled), Some(whole), 2) = (of("scaled"), of(FULL), words.len()) else {
        return Err(wrong());
    };
    let (scaled, whole) = (scaled.item.value()?, whole.item.value()?);
    Ok(if full { whole } else { scaled })
}

/// A value for a size that is refused, so that the places which use it are not refused as well.
fn stand_in(field: &Field) -> Value {
    let written = match &field.item.node {
        ItemKind::Table(words) => words.iter().find_map(|word| word.item.value().ok()),
        _ => field.item.value().ok(),
    };
    written.unwrap_or(Value::Integer(1))
}

fn walk(item: &mut Item, sizes: &mut [(String, Value, bool)]) {
    match &mut item.node {
        ItemKind::Value(value) => {
            let size = sizes
                .iter_mut()
                .find(|(name, _, _)| matches!(value, Value::Text(text) if text == name));
            if let Some((_, size, used)) = size {
                *value = size.clone();
                *used = true;
                return;
            }
            let Value::Text(text) = value else { return };
            // Within a text, as in an option of a tool: the size as it is written.
            for (name, size, used) in sizes {
                let words = size.as_words();
                // A text that holds sizes itself could make this one as long as it likes.
                let short = words.len() <= WORDS_MAX && !words.contains('{');
                if short && text.contains(name.as_str()) {
                    *text = text.replace(name.as_str(), &words);
                    *used = true;
                }
            }
        }
        ItemKind::List(items) => items.iter_mut().for_each(|item| walk(item, sizes)),
        ItemKind::Table(fields) => fields
            .iter_mut()
            .for_each(|field| walk(&mut field.item, sizes)),
        ItemKind::Unusable(_) => {}
    }
}
