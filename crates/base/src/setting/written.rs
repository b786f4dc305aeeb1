//! The settings of one written line, such as the example of a kind of layer or workload.

use super::{GivenSetting, Refusal, SettingDoc, Settings, Value};

/// Settings of one line of TOML, the way a study gives them, of the kind with these settings.
///
/// # Errors
/// The line is not `KIND = { NAME = VALUE, … }` with values that settings can have.
pub fn line(
    docs: impl FnOnce(&str) -> &'static [SettingDoc],
    line: &str,
) -> Result<Settings, Refusal> {
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
    Ok(Settings {
        docs: docs(&owner),
        owner,
        span: 0..1,
        settings,
    })
}

/// A value as a study has it; `None` if no setting has a value like this.
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
