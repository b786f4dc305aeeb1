//! Values as their types: amounts, shares, times, lists.

use super::value::{GivenSetting, Kind, Refusal, Value};
use super::words::unknown_word;
use crate::unit::{self, UnitError};

pub(super) fn fits(setting: &GivenSetting, kind: Kind) -> Result<(), Refusal> {
    match kind {
        Kind::Bytes => as_bytes(setting).map(drop),
        Kind::Count => as_count(setting).map(drop),
        Kind::Number => as_number(setting).map(drop),
        Kind::Share => as_share(setting).map(drop),
        Kind::Time => as_time_ns(setting).map(drop),
        Kind::Flag => as_flag(setting).map(drop),
        Kind::Text => as_text(setting).map(drop),
        Kind::Texts => as_texts(setting).map(drop),
        Kind::Weights => as_weights(setting).map(drop),
        Kind::Choice(words) => {
            let word = as_word(setting)?;
            match words.contains(&word.as_str()) {
                true => Ok(()),
                false => Err(none_of(setting, &word, words)),
            }
        }
    }
}

/// Refuses a word that is none of a choice.
pub(super) fn none_of(setting: &GivenSetting, word: &str, words: &[&str]) -> Refusal {
    // The only kind whose valid values are known one by one: the nearest of them is named.
    unknown_word(
        &setting.span,
        &format!("{} cannot be \"{word}\"", setting.name),
        word,
        words.iter().copied(),
        "it is one of",
    )
}

/// Spelling of a value of a kind.
pub fn example(kind: Kind) -> String {
    match kind {
        Kind::Bytes => "\"4 KiB\"".to_owned(),
        Kind::Count => "4".to_owned(),
        Kind::Number => "1.5".to_owned(),
        Kind::Share => "\"5 %\"".to_owned(),
        Kind::Time => "\"5 s\"".to_owned(),
        Kind::Flag => "true".to_owned(),
        Kind::Text => "\"text\"".to_owned(),
        Kind::Texts => "[\"text\", \"text\"]".to_owned(),
        Kind::Weights => "\"4 KiB:70, 64 KiB:30\"".to_owned(),
        Kind::Choice(words) => {
            let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            quoted.join(" or ")
        }
    }
}

pub(super) fn wrong_kind(setting: &GivenSetting, takes: &str, kind: Kind) -> Refusal {
    Refusal::at(
        &setting.span,
        format!(
            "{} takes {takes}, not {}",
            setting.name,
            setting.value.what()
        ),
        format!("write it like {}", example(kind)),
    )
}

/// What is no amount, time or share, with its advice on a line of its own.
fn wrong_unit(setting: &GivenSetting, UnitError { what, next }: UnitError) -> Refusal {
    Refusal::at(&setting.span, format!("{}: {what}", setting.name), next)
}

pub(super) fn as_bytes(setting: &GivenSetting) -> Result<u64, Refusal> {
    match &setting.value {
        Value::Text(text) => unit::parse_bytes(text).map_err(|error| wrong_unit(setting, error)),
        // A number without a unit is bytes; TOML has no unsigned numbers.
        Value::Integer(number) => u64::try_from(*number).map_err(|_| negative(setting)),
        _ => Err(wrong_kind(setting, "an amount of bytes", Kind::Bytes)),
    }
}

pub(super) fn as_count(setting: &GivenSetting) -> Result<u64, Refusal> {
    match &setting.value {
        Value::Integer(number) => u64::try_from(*number).map_err(|_| negative(setting)),
        _ => Err(wrong_kind(setting, "a whole number", Kind::Count)),
    }
}

pub(super) fn as_number(setting: &GivenSetting) -> Result<f64, Refusal> {
    let number = match &setting.value {
        Value::Integer(number) => *number as f64,
        Value::Float(number) => *number,
        _ => return Err(wrong_kind(setting, "a number", Kind::Number)),
    };
    finite(setting, number)
}

pub(super) fn as_share(setting: &GivenSetting) -> Result<f64, Refusal> {
    let share = match &setting.value {
        Value::Text(text) => unit::parse_share(text).map_err(|error| wrong_unit(setting, error))?,
        Value::Integer(number) => *number as f64,
        Value::Float(number) => *number,
        Value::Flag(_) | Value::List(_) => {
            return Err(wrong_kind(setting, "a share", Kind::Share));
        }
    };
    let share = finite(setting, share)?;
    // `margin = 5` most likely means 5 %, and would otherwise be taken as 500 %.
    if share > 1.0 {
        return Err(Refusal::at(
            &setting.span,
            format!("{} is more than 100 %", setting.name),
            "write \"5 %\" or 0.05 for five in a hundred",
        ));
    }
    Ok(share)
}

pub(super) fn as_time_ns(setting: &GivenSetting) -> Result<u64, Refusal> {
    as_time_of(setting, unit::parse_time_ns)
}

pub(super) fn as_lasting_ns(setting: &GivenSetting) -> Result<u64, Refusal> {
    as_time_of(setting, unit::parse_lasting_ns)
}

fn as_time_of(
    setting: &GivenSetting,
    parse: fn(&str) -> Result<u64, UnitError>,
) -> Result<u64, Refusal> {
    match &setting.value {
        Value::Text(text) => parse(text).map_err(|error| wrong_unit(setting, error)),
        // A bare number is refused: seconds and milliseconds are both usual.
        _ => Err(wrong_kind(setting, "a time with its unit", Kind::Time)),
    }
}

pub(super) fn as_flag(setting: &GivenSetting) -> Result<bool, Refusal> {
    match &setting.value {
        Value::Flag(flag) => Ok(*flag),
        _ => Err(wrong_kind(setting, "true or false", Kind::Flag)),
    }
}

/// A whole number is taken as the text it is written with: `raid = 5`, or a factor's level.
pub(super) fn as_text(setting: &GivenSetting) -> Result<String, Refusal> {
    match &setting.value {
        Value::Text(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        _ => Err(wrong_kind(setting, "a text", Kind::Text)),
    }
}

/// The word of a choice; `1.2` is as good as `"1.2"`, because the words are known.
pub(super) fn as_word(setting: &GivenSetting) -> Result<String, Refusal> {
    match setting.value {
        // With a point, also where nothing stands behind it.
        Value::Float(number) => Ok(format!("{number:?}")),
        _ => as_text(setting),
    }
}

pub(super) fn as_texts(setting: &GivenSetting) -> Result<Vec<String>, Refusal> {
    let Value::List(values) = &setting.value else {
        // A list of one may be written without brackets.
        return as_text(setting)
            .map(|text| vec![text])
            .map_err(|_| wrong_kind(setting, "a list of texts", Kind::Texts));
    };
    values
        .iter()
        .map(|value| match value {
            Value::Text(text) => Ok(text.clone()),
            Value::Integer(number) => Ok(number.to_string()),
            // A float has more than one spelling, so the words that a tool would get are not known.
            Value::Float(_) | Value::Flag(_) | Value::List(_) => Err(Refusal::at(
                &setting.span,
                format!(
                    "{} takes a list of texts, and {} is in it",
                    setting.name,
                    value.what()
                ),
                format!("write it like {}", example(Kind::Texts)),
            )),
        })
        .collect()
}

pub(super) fn as_weights(setting: &GivenSetting) -> Result<Vec<(u64, u32)>, Refusal> {
    match &setting.value {
        Value::Text(text) => unit::parse_weights(text).map_err(|error| wrong_unit(setting, error)),
        _ => Err(wrong_kind(setting, "sizes with weights", Kind::Weights)),
    }
}

pub(super) fn negative(setting: &GivenSetting) -> Refusal {
    Refusal::at(
        &setting.span,
        format!("{} cannot be negative", setting.name),
        "write it without the minus",
    )
}

pub(super) fn finite(setting: &GivenSetting, number: f64) -> Result<f64, Refusal> {
    if number < 0.0 {
        return Err(negative(setting));
    }
    // TOML has `inf` and `nan`.
    if !number.is_finite() {
        return Err(Refusal::at(
            &setting.span,
            format!("{} must be finite", setting.name),
            "write an ordinary number",
        ));
    }
    Ok(number)
}
