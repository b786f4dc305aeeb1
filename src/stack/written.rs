//! A layer of one written line, such as the example of its kind.

use super::layer::{Layer, LayerKind};
use crate::setting::{GivenSetting, Refusal, Settings, Value};

/// Settings from one line of TOML, the way a study gives them.
///
/// # Errors
/// The line is not `KIND = { NAME = VALUE, … }` with values that settings can have.
pub(super) fn settings(kinds: &[LayerKind], line: &str) -> Result<Settings, Refusal> {
    let wrong = || {
        Refusal::at(
            &(0..line.len()),
            "this is not a layer: write KIND = { NAME = VALUE }",
            "",
        )
    };
    let table: toml::Table = line.parse().map_err(|_| wrong())?;
    let (owner, inner) = table.into_iter().next().ok_or_else(wrong)?;
    let mut settings = Vec::new();
    for (name, value) in inner.as_table().ok_or_else(wrong)? {
        settings.push(GivenSetting {
            name: name.clone(),
            value: value_of(value).ok_or_else(wrong)?,
            span: 0..1,
            name_span: 0..1,
        });
    }
    let kind = kinds.iter().find(|kind| kind.name == owner);
    Ok(Settings {
        docs: kind.map_or(&[], |kind| kind.settings),
        owner,
        span: 0..1,
        settings,
    })
}

/// A value as a study has it; none: no setting has a value like this.
fn value_of(value: &toml::Value) -> Option<Value> {
    Some(match value {
        toml::Value::String(text) => Value::Text(text.clone()),
        toml::Value::Integer(number) => Value::Integer(*number),
        toml::Value::Float(number) => Value::Float(*number),
        toml::Value::Boolean(flag) => Value::Flag(*flag),
        toml::Value::Array(values) => {
            Value::List(values.iter().map(value_of).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// The layer of one line of TOML.
///
/// # Errors
/// Its kind does not exist, or does not take these settings.
pub(super) fn layer(kinds: &[LayerKind], line: &str) -> Result<Box<dyn Layer>, Refusal> {
    let settings = settings(kinds, line)?;
    let kind = kinds.iter().find(|kind| kind.name == settings.owner);
    let kind = kind.ok_or_else(|| Refusal::at(&(0..1), "there is no such layer", ""))?;
    settings
        .check_all()
        .into_iter()
        .next()
        .map_or(Ok(()), Err)?;
    (kind.parse)(&settings)
}
