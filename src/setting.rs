//! The words a layer or a workload is given in a study, each with the place it was written.
//!
//! A study's table is checked once against the list of settings its owner documents
//! ([`SettingDoc`]); after that the typed getters cannot fail on spelling or kind, only on what the
//! owner itself refuses. The same lists make `--help`, the JSON schema and the nearest-word advice.

use std::ops::Range;

/// Longest word that is compared with others, bytes.
const WORD_MAX: usize = 64;
/// Longest list in a message, bytes.
const LIST_MAX: usize = 2000;

/// Bytes of the study's text that a message points at.
pub(crate) type Span = Range<usize>;

/// Why something written in a study is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Where; none: the study as a whole.
    pub(crate) span: Option<Span>,
    /// What is wrong, in one clause that begins in lower case.
    pub(crate) message: String,
    /// What to write instead; empty: nothing helpful to say.
    pub(crate) help: String,
}

impl Refusal {
    /// A refusal at a place.
    pub(crate) fn at(span: &Span, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            span: Some(span.clone()),
            message: message.into(),
            help: help.into(),
        }
    }
}

/// A value as written, placeholders already replaced.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// `"text"`.
    Text(String),
    /// `12`.
    Integer(i64),
    /// `0.5`.
    Float(f64),
    /// `true`.
    Flag(bool),
    /// `[…]`.
    List(Vec<Value>),
}

/// What kind of value a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An amount of bytes with its unit, or a whole number of bytes.
    Bytes,
    /// A whole number ≥ 0.
    Count,
    /// A number ≥ 0.
    Number,
    /// A share: `"5 %"` or `0.05`.
    Share,
    /// A time with its unit.
    Time,
    /// `true` or `false`.
    Flag,
    /// Any text.
    Text,
    /// A list of texts; one text is a list of one.
    Texts,
    /// Amounts of bytes with weights: `"4 KiB:70, 64 KiB:30"`.
    Weights,
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// One setting as its owner documents it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SettingDoc {
    /// The word, kebab-case.
    pub(crate) name: &'static str,
    /// What it takes.
    pub(crate) kind: Kind,
    /// The default, as it would be written; empty: none (required, or absent means absent).
    pub(crate) default: &'static str,
    /// Must be given.
    pub(crate) required: bool,
    /// One sentence.
    pub(crate) doc: &'static str,
}

impl SettingDoc {
    /// A setting that may be left out.
    pub(crate) const fn optional(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        doc: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            default,
            required: false,
            doc,
        }
    }

    /// The settings of several lists, which are `N` together.
    pub(crate) const fn joined<const N: usize>(lists: &[&[Self]]) -> [Self; N] {
        let mut all = [lists[0][0]; N];
        let (mut list, mut at, mut filled) = (0, 0, 0);
        while list < lists.len() {
            if at < lists[list].len() {
                all[filled] = lists[list][at];
                (at, filled) = (at + 1, filled + 1);
            } else {
                (list, at) = (list + 1, 0);
            }
        }
        assert!(filled == N);
        all
    }
}

/// One setting as written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setting {
    /// The word.
    pub(crate) name: String,
    /// Its value.
    pub(crate) value: Value,
    /// Where the value stands.
    pub(crate) span: Span,
    /// Where the word stands.
    pub(crate) name_span: Span,
}

/// The table given to one layer or workload.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    /// Kind of layer or workload, for messages.
    pub(crate) owner: String,
    /// Where the table stands.
    pub(crate) span: Span,
    /// As written, in order.
    pub(crate) settings: Vec<Setting>,
}

impl Settings {
    /// Checks every word against the list its owner documents.
    ///
    /// # Errors
    /// The first of [`Settings::check_all`].
    #[cfg(test)]
    pub(crate) fn check(&self, docs: &[SettingDoc]) -> Result<(), Refusal> {
        match self.check_all(docs).into_iter().next() {
            Some(refusal) => Err(refusal),
            None => Ok(()),
        }
    }

    /// Everything that is wrong against the list its owner documents: words it does not know,
    /// values of another kind, words that must be given and are not.
    pub(crate) fn check_all(&self, docs: &[SettingDoc]) -> Vec<Refusal> {
        let mut refusals = Vec::new();
        for setting in &self.settings {
            match docs.iter().find(|doc| doc.name == setting.name) {
                Some(doc) => refusals.extend(fits(setting, doc.kind).err()),
                None => refusals.push(unknown_word(
                    &setting.name_span,
                    &format!("{} has no setting \"{}\"", self.owner, setting.name),
                    &setting.name,
                    docs.iter().map(|doc| doc.name),
                    &format!("settings of {}", self.owner),
                )),
            }
        }
        for doc in docs.iter().filter(|doc| doc.required) {
            if self.find(doc.name).is_none() {
                refusals.push(Refusal::at(
                    &self.span,
                    format!("{} needs \"{}\"", self.owner, doc.name),
                    format!("write {} = {}", doc.name, example(doc.kind)),
                ));
            }
        }
        refusals
    }

    /// An amount of bytes.
    ///
    /// # Errors
    /// Where the value is none.
    pub(crate) fn bytes(&self, name: &str) -> Result<Option<u64>, Refusal> {
        self.find(name).map(as_bytes).transpose()
    }

    /// A whole number.
    ///
    /// # Errors
    /// Where the value is none.
    pub(crate) fn count(&self, name: &str) -> Result<Option<u64>, Refusal> {
        self.find(name).map(as_count).transpose()
    }

    /// A number.
    ///
    /// # Errors
    /// Where the value is none.
    pub(crate) fn number(&self, name: &str) -> Result<Option<f64>, Refusal> {
        self.find(name).map(as_number).transpose()
    }

    /// A share of one.
    ///
    /// # Errors
    /// Where the value is none.
    pub(crate) fn share(&self, name: &str) -> Result<Option<f64>, Refusal> {
        self.find(name).map(as_share).transpose()
    }

    /// A time in nanoseconds.
    ///
    /// # Errors
    /// Where the value is none.
    pub(crate) fn time_ns(&self, name: &str) -> Result<Option<u64>, Refusal> {
        self.find(name).map(as_time_ns).transpose()
    }

    /// A flag.
    ///
    /// # Errors
    /// Where the value is none.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, Refusal> {
        self.find(name).map(as_flag).transpose()
    }

    /// A text, or one of the words of a choice.
    ///
    /// # Errors
    /// Where the value is none.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, Refusal> {
        self.find(name).map(as_text).transpose()
    }

    /// A list of texts.
    ///
    /// # Errors
    /// Where the value is none.
    pub(crate) fn texts(&self, name: &str) -> Result<Option<Vec<String>>, Refusal> {
        self.find(name).map(as_texts).transpose()
    }

    /// Amounts of bytes with their weights.
    ///
    /// # Errors
    /// Where the value is none.
    pub(crate) fn weights(&self, name: &str) -> Result<Option<Vec<(u64, u32)>>, Refusal> {
        self.find(name).map(as_weights).transpose()
    }

    /// Whether a word was given.
    pub(crate) fn given(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Where the value of a setting stands; the table, where it is not given.
    pub(crate) fn span_of(&self, name: &str) -> &Span {
        self.find(name).map_or(&self.span, |setting| &setting.span)
    }

    fn find(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.name == name)
    }
}

impl Value {
    /// What it is, for a message.
    pub(crate) fn what(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Integer(_) | Self::Float(_) => "a number",
            Self::Flag(_) => "a flag",
            Self::List(_) => "a list",
        }
    }

    /// Bytes of its texts and number of its elements: what it costs to hold.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Integer(_) | Self::Float(_) | Self::Flag(_) => 8,
            Self::List(values) => values.iter().map(|value| 1 + value.size()).sum(),
        }
    }

    /// The value inside a longer text: texts as they are, lists joined by a space.
    pub(crate) fn as_words(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Integer(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Flag(flag) => flag.to_string(),
            Self::List(values) => {
                let words: Vec<String> = values.iter().map(Self::as_words).collect();
                words.join(" ")
            }
        }
    }
}

/// The word of a list nearest to a misspelt one; none: nothing is near.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace(['_', ' '], "-");
    // Comparing costs the product of the lengths, and nobody misspells a word of this length.
    if word.len() > WORD_MAX {
        return None;
    }
    let word = plain(word);
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= WORD_MAX)
        .map(|candidate| (distance(&word, &plain(candidate)), candidate))
        // One letter in three may be wrong, two always: beyond that advice is noise.
        .filter(|(distance, candidate)| {
            *distance <= (candidate.chars().count() / 3).max(2)
                && *distance < candidate.chars().count()
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Letters that differ; the beginning of a word counts as one letter off the whole.
fn distance(word: &str, candidate: &str) -> usize {
    match word.len() >= 3 && candidate.starts_with(word) {
        true => usize::from(word != candidate),
        false => strsim::damerau_levenshtein(word, candidate),
    }
}

/// Words joined by commas; those that make the list longer than anybody reads are counted.
pub(crate) fn listed<'a>(mut words: impl Iterator<Item = &'a str>) -> String {
    let mut list = String::new();
    for word in words.by_ref() {
        if list.len() + word.len() > LIST_MAX {
            list.push_str(&format!(" … and {} more", 1 + words.count()));
            break;
        }
        if !list.is_empty() {
            list.push_str(", ");
        }
        list.push_str(word);
    }
    list
}

/// Refuses a word that is not in a list: names the nearest one and lists them all.
pub(crate) fn unknown_word<'a>(
    span: &Span,
    message: &str,
    word: &str,
    candidates: impl Iterator<Item = &'a str> + Clone,
    list_name: &str,
) -> Refusal {
    let list = match listed(candidates.clone()) {
        all if all.is_empty() => format!("{list_name}: none"),
        all => format!("{list_name}: {all}"),
    };
    let help = match nearest(word, candidates) {
        Some(near) => format!("did you mean \"{near}\"? {list}"),
        None => list,
    };
    Refusal::at(span, message, help)
}

fn fits(setting: &Setting, kind: Kind) -> Result<(), Refusal> {
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
            let word = as_text(setting)?;
            if words.contains(&word.as_str()) {
                return Ok(());
            }
            Err(unknown_word(
                &setting.span,
                &format!("{} cannot be \"{word}\"", setting.name),
                &word,
                words.iter().copied(),
                "it is one of",
            ))
        }
    }
}

/// How a value of a kind is written.
pub(crate) fn example(kind: Kind) -> String {
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

fn wrong_kind(setting: &Setting, takes: &str, kind: Kind) -> Refusal {
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

/// A sentence of `unit`: what follows ": write" is the advice.
fn wrong_unit(setting: &Setting, sentence: &str) -> Refusal {
    let (message, help) = match sentence.split_once(": write ") {
        Some((message, advice)) => (message, format!("write {advice}")),
        None => (sentence, String::new()),
    };
    Refusal::at(&setting.span, format!("{}: {message}", setting.name), help)
}

fn as_bytes(setting: &Setting) -> Result<u64, Refusal> {
    match &setting.value {
        Value::Text(text) => {
            crate::unit::parse_bytes(text).map_err(|sentence| wrong_unit(setting, &sentence))
        }
        Value::Integer(number) => u64::try_from(*number).map_err(|_| negative(setting)),
        _ => Err(wrong_kind(setting, "an amount of bytes", Kind::Bytes)),
    }
}

fn as_count(setting: &Setting) -> Result<u64, Refusal> {
    match &setting.value {
        Value::Integer(number) => u64::try_from(*number).map_err(|_| negative(setting)),
        _ => Err(wrong_kind(setting, "a whole number", Kind::Count)),
    }
}

fn as_number(setting: &Setting) -> Result<f64, Refusal> {
    let number = match &setting.value {
        Value::Integer(number) => *number as f64,
        Value::Float(number) => *number,
        _ => return Err(wrong_kind(setting, "a number", Kind::Number)),
    };
    finite(setting, number)
}

fn as_share(setting: &Setting) -> Result<f64, Refusal> {
    let share = match &setting.value {
        Value::Text(text) => {
            crate::unit::parse_share(text).map_err(|sentence| wrong_unit(setting, &sentence))?
        }
        Value::Integer(number) => *number as f64,
        Value::Float(number) => *number,
        Value::Flag(_) | Value::List(_) => {
            return Err(wrong_kind(setting, "a share", Kind::Share));
        }
    };
    let share = finite(setting, share)?;
    if share > 1.0 {
        return Err(Refusal::at(
            &setting.span,
            format!("{} is more than 100 %", setting.name),
            "write \"5 %\" or 0.05 for five in a hundred",
        ));
    }
    Ok(share)
}

fn as_time_ns(setting: &Setting) -> Result<u64, Refusal> {
    match &setting.value {
        Value::Text(text) => {
            crate::unit::parse_time_ns(text).map_err(|sentence| wrong_unit(setting, &sentence))
        }
        _ => Err(wrong_kind(setting, "a time with its unit", Kind::Time)),
    }
}

fn as_flag(setting: &Setting) -> Result<bool, Refusal> {
    match &setting.value {
        Value::Flag(flag) => Ok(*flag),
        _ => Err(wrong_kind(setting, "true or false", Kind::Flag)),
    }
}

/// A whole number is taken as the text it is written with: `raid = 5`, or a factor's level.
fn as_text(setting: &Setting) -> Result<String, Refusal> {
    match &setting.value {
        Value::Text(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        _ => Err(wrong_kind(setting, "a text", Kind::Text)),
    }
}

fn as_texts(setting: &Setting) -> Result<Vec<String>, Refusal> {
    let Value::List(values) = &setting.value else {
        return as_text(setting)
            .map(|text| vec![text])
            .map_err(|_| wrong_kind(setting, "a list of texts", Kind::Texts));
    };
    values
        .iter()
        .map(|value| match value {
            Value::Text(text) => Ok(text.clone()),
            Value::Integer(number) => Ok(number.to_string()),
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

fn as_weights(setting: &Setting) -> Result<Vec<(u64, u32)>, Refusal> {
    match &setting.value {
        Value::Text(text) => {
            crate::unit::parse_weights(text).map_err(|sentence| wrong_unit(setting, &sentence))
        }
        _ => Err(wrong_kind(setting, "sizes with weights", Kind::Weights)),
    }
}

fn negative(setting: &Setting) -> Refusal {
    Refusal::at(
        &setting.span,
        format!("{} cannot be negative", setting.name),
        "write 0 or more",
    )
}

fn finite(setting: &Setting, number: f64) -> Result<f64, Refusal> {
    if number < 0.0 {
        return Err(negative(setting));
    }
    if !number.is_finite() {
        return Err(Refusal::at(
            &setting.span,
            format!("{} must be finite", setting.name),
            "write an ordinary number",
        ));
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_near() {
        let words = ["size", "directory", "block-size", "fsync-every"];
        let cases = [
            ("sice", Some("size")),
            ("dir", Some("directory")),
            ("block_size", Some("block-size")),
            ("Blocksize", Some("block-size")),
            ("fsync-evry", Some("fsync-every")),
            ("queue-depth", None),
            ("", None),
            ("x", None),
        ];
        for (word, expected) in cases {
            assert_eq!(nearest(word, words), expected, "{word}");
        }
    }
}
