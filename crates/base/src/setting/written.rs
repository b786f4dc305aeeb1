//! The settings of one written line, such as the example of a kind of layer or workload.

#[cfg(any(test, feature = "testing"))]
use super::Kind;
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

/// The settings of a line, once for each of them that is a number, a size, a share or a time: that one
/// is 0 then. Their names come with them.
///
/// # Errors
/// As [`line`].
#[cfg(any(test, feature = "testing"))]
pub fn with_zeros(
    docs: &'static [SettingDoc],
    text: &str,
) -> Result<Vec<(&'static str, Settings)>, Refusal> {
    // Two braces stand for one, as where a study has placeholders.
    let written = line(|_| docs, &text.replace("{{", "{").replace("}}", "}"))?;
    let zero_of = |kind| match kind {
        Kind::Bytes => Some(Value::Text("0 B".to_owned())),
        Kind::Count | Kind::Number => Some(Value::Integer(0)),
        Kind::Share => Some(Value::Text("0 %".to_owned())),
        Kind::Time => Some(Value::Text("0 s".to_owned())),
        _ => None,
    };
    let with_zero = |doc: &SettingDoc| {
        let mut settings = written.clone();
        settings.settings.retain(|given| given.name != doc.name);
        settings.settings.push(GivenSetting {
            name: doc.name.to_owned(),
            value: zero_of(doc.kind)?,
            span: 0..1,
            name_span: 0..1,
        });
        Some((doc.name, settings))
    };
    Ok(docs.iter().filter_map(with_zero).collect())
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
