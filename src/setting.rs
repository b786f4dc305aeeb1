//! The words a layer or a workload is given in a study, each with the place it was written.
//!
//! A study's table is checked once against the list of settings its owner documents
//! ([`SettingDoc`]); after that the typed getters cannot fail on spelling or kind, only on what the
//! owner itself refuses. The same lists make `--help`, the JSON schema and the nearest-word advice.

use std::borrow::Cow;
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

/// What a setting is where a study leaves it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fallback {
    /// A study must not leave it out.
    Required,
    /// Absent means absent.
    Absent,
    /// This value, as a study would write it (texts without quotes).
    Value(&'static str),
    /// A value that depends on the machine or on other settings, in words.
    Computed(&'static str),
}

/// One setting as its owner documents it. Its default is written here and nowhere else: the getters
/// of [`Settings`] return it where a study leaves the setting out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SettingDoc {
    /// The word, kebab-case.
    pub(crate) name: &'static str,
    /// What it takes.
    pub(crate) kind: Kind,
    /// What it is where it is left out.
    pub(crate) fallback: Fallback,
    /// One sentence.
    pub(crate) doc: &'static str,
}

/// A constructor for each kind: `SettingDoc::bytes("size", "1 GiB", "Size of the file.")`.
/// An empty default says that absent means absent.
macro_rules! constructors {
    ($($name:ident $kind:ident,)*) => {$(
        #[doc = concat!("A setting of kind [`Kind::", stringify!($kind), "`].")]
        pub(crate) const fn $name(
            name: &'static str,
            default: &'static str,
            doc: &'static str,
        ) -> Self {
            Self::new(name, Kind::$kind, default, doc)
        }
    )*};
}

impl SettingDoc {
    constructors! {
        bytes Bytes,
        count Count,
        number Number,
        share Share,
        time Time,
        flag Flag,
        text Text,
        texts Texts,
        weights Weights,
    }

    /// A setting that is one of `words`.
    pub(crate) const fn choice(
        name: &'static str,
        words: &'static [&'static str],
        default: &'static str,
        doc: &'static str,
    ) -> Self {
        Self::new(name, Kind::Choice(words), default, doc)
    }

    const fn new(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Self {
        let fallback = match default.is_empty() {
            true => Fallback::Absent,
            false => Fallback::Value(default),
        };
        Self {
            name,
            kind,
            fallback,
            doc,
        }
    }

    /// The same, but a study must give it.
    pub(crate) const fn required(self) -> Self {
        Self {
            fallback: Fallback::Required,
            ..self
        }
    }

    /// The same, with a default that `words` describe and the owner works out.
    pub(crate) const fn computed(self, words: &'static str) -> Self {
        Self {
            fallback: Fallback::Computed(words),
            ..self
        }
    }

    /// The default, as it is shown; none: there is none.
    pub(crate) fn default_words(&self) -> Option<&'static str> {
        match self.fallback {
            Fallback::Value(words) | Fallback::Computed(words) => Some(words),
            Fallback::Required | Fallback::Absent => None,
        }
    }

    /// The default, as if it were written at `span`; none: there is none, or the owner works it out.
    ///
    /// # Errors
    /// The documented default is not of the setting's kind.
    fn default_setting(&self, span: &Span) -> Result<Option<GivenSetting>, Refusal> {
        let Fallback::Value(text) = self.fallback else {
            return Ok(None);
        };
        let value = match self.kind {
            Kind::Count => text.parse().ok().map(Value::Integer),
            Kind::Number => text.parse().ok().map(Value::Float),
            Kind::Flag => text.parse().ok().map(Value::Flag),
            Kind::Texts => serde_json::from_str(text).ok().map(|words: Vec<String>| {
                Value::List(words.into_iter().map(Value::Text).collect())
            }),
            _ => None,
        };
        let setting = GivenSetting {
            name: self.name.to_owned(),
            // The other kinds are written as text; `fits` then refuses what is none of them.
            value: value.unwrap_or_else(|| Value::Text(text.to_owned())),
            span: span.clone(),
            name_span: span.clone(),
        };
        fits(&setting, self.kind)?;
        Ok(Some(setting))
    }

    /// Checks that the documented default is of the setting's kind.
    #[cfg(test)]
    pub(crate) fn check_default(&self) -> Result<(), Refusal> {
        self.default_setting(&(0..0)).map(drop)
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
pub(crate) struct GivenSetting {
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
    pub(crate) settings: Vec<GivenSetting>,
    /// What the owner documents: the getters take the defaults from here.
    pub(crate) docs: &'static [SettingDoc],
}

/// The setting that a getter is asked for: by its name, or by a documentation that also counts where
/// the owner of the settings does not offer it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SettingKey<'a> {
    /// Its word.
    pub(crate) name: &'a str,
    doc: Option<SettingDoc>,
}

impl<'a> From<&'a str> for SettingKey<'a> {
    fn from(name: &'a str) -> Self {
        Self { name, doc: None }
    }
}

impl From<SettingDoc> for SettingKey<'static> {
    fn from(doc: SettingDoc) -> Self {
        Self {
            name: doc.name,
            doc: Some(doc),
        }
    }
}

/// Getters that fall back to the documented default.
macro_rules! getters {
    ($($(#[doc = $doc:literal])* $name:ident $read:ident -> $value:ty,)*) => {$(
        $(#[doc = $doc])*
        /// As the study gives it, or as documented.
        ///
        /// # Errors
        /// The value is of another kind, or there is neither a value nor a default.
        pub(crate) fn $name<'a>(
            &self,
            key: impl Into<SettingKey<'a>>,
        ) -> Result<$value, Refusal> {
            $read(self.or_default(key.into())?.as_ref())
        }
    )*};
}

/// Getters for settings without a documented value.
macro_rules! optional_getters {
    ($($(#[doc = $doc:literal])* $name:ident $read:ident -> $value:ty,)*) => {$(
        $(#[doc = $doc])*
        /// As the study gives it; none where it does not.
        ///
        /// # Errors
        /// The value is of another kind.
        pub(crate) fn $name(&self, name: &str) -> Result<Option<$value>, Refusal> {
            self.find(name).map($read).transpose()
        }
    )*};
}

impl Settings {
    /// Everything that is wrong against the list its owner documents: words it does not know,
    /// values of another kind, words that must be given and are not.
    pub(crate) fn check_all(&self) -> Vec<Refusal> {
        let docs = self.docs;
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
        for doc in docs {
            if doc.fallback == Fallback::Required && !self.given(doc.name) {
                refusals.push(Refusal::at(
                    &self.span,
                    format!("{} needs \"{}\"", self.owner, doc.name),
                    format!("write {} = {}", doc.name, example(doc.kind)),
                ));
            }
        }
        refusals
    }

    getters! {
        /// An amount of bytes.
        bytes as_bytes -> u64,
        /// A whole number.
        count as_count -> u64,
        /// A number.
        number as_number -> f64,
        /// A share of one.
        share as_share -> f64,
        /// A time in nanoseconds.
        time_ns as_time_ns -> u64,
        /// A flag.
        flag as_flag -> bool,
        /// A text, or one of the words of a choice.
        text as_text -> String,
        /// A list of texts.
        texts as_texts -> Vec<String>,
    }

    optional_getters! {
        /// An amount of bytes.
        optional_bytes as_bytes -> u64,
        /// A whole number.
        optional_count as_count -> u64,
        /// A number.
        optional_number as_number -> f64,
        /// A time in nanoseconds.
        optional_time_ns as_time_ns -> u64,
        /// A text, or one of the words of a choice.
        optional_text as_text -> String,
        /// A list of texts.
        optional_texts as_texts -> Vec<String>,
        /// Amounts of bytes with their weights.
        optional_weights as_weights -> Vec<(u64, u32)>,
    }

    /// The setting as the study gives it, or as it is documented.
    fn or_default(&self, key: SettingKey<'_>) -> Result<Cow<'_, GivenSetting>, Refusal> {
        if let Some(setting) = self.find(key.name) {
            return Ok(Cow::Borrowed(setting));
        }
        // The owner's documentation comes first: a shared setting may have its own default there.
        let own = self.docs.iter().find(|doc| doc.name == key.name).copied();
        let default = match own.or(key.doc) {
            Some(doc) => doc.default_setting(&self.span)?,
            None => None,
        };
        default.map(Cow::Owned).ok_or_else(|| {
            let message = format!("{} needs \"{}\"", self.owner, key.name);
            Refusal::at(&self.span, message, "")
        })
    }

    /// Whether a word was given.
    pub(crate) fn given(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Whether a getter without `optional` finds something: a value given, or a documented one.
    pub(crate) fn has_value(&self, name: &str) -> bool {
        let documented = |doc: &SettingDoc| matches!(doc.fallback, Fallback::Value(_));
        let mut own = self.docs.iter().filter(|doc| doc.name == name);
        self.given(name) || own.any(documented)
    }

    /// Where the value of a setting stands; the table, where it is not given.
    pub(crate) fn span_of(&self, name: &str) -> &Span {
        self.find(name).map_or(&self.span, |setting| &setting.span)
    }

    fn find(&self, name: &str) -> Option<&GivenSetting> {
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
    // Comparing costs the product of the lengths, and a word of this length is no misspelt name.
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

fn fits(setting: &GivenSetting, kind: Kind) -> Result<(), Refusal> {
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

fn wrong_kind(setting: &GivenSetting, takes: &str, kind: Kind) -> Refusal {
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
fn wrong_unit(setting: &GivenSetting, sentence: &str) -> Refusal {
    let (message, help) = match sentence.split_once(": write ") {
        Some((message, advice)) => (message, format!("write {advice}")),
        None => (sentence, String::new()),
    };
    Refusal::at(&setting.span, format!("{}: {message}", setting.name), help)
}

fn as_bytes(setting: &GivenSetting) -> Result<u64, Refusal> {
    match &setting.value {
        Value::Text(text) => {
            crate::unit::parse_bytes(text).map_err(|sentence| wrong_unit(setting, &sentence))
        }
        Value::Integer(number) => u64::try_from(*number).map_err(|_| negative(setting)),
        _ => Err(wrong_kind(setting, "an amount of bytes", Kind::Bytes)),
    }
}

fn as_count(setting: &GivenSetting) -> Result<u64, Refusal> {
    match &setting.value {
        Value::Integer(number) => u64::try_from(*number).map_err(|_| negative(setting)),
        _ => Err(wrong_kind(setting, "a whole number", Kind::Count)),
    }
}

fn as_number(setting: &GivenSetting) -> Result<f64, Refusal> {
    let number = match &setting.value {
        Value::Integer(number) => *number as f64,
        Value::Float(number) => *number,
        _ => return Err(wrong_kind(setting, "a number", Kind::Number)),
    };
    finite(setting, number)
}

fn as_share(setting: &GivenSetting) -> Result<f64, Refusal> {
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

fn as_time_ns(setting: &GivenSetting) -> Result<u64, Refusal> {
    match &setting.value {
        Value::Text(text) => {
            crate::unit::parse_time_ns(text).map_err(|sentence| wrong_unit(setting, &sentence))
        }
        _ => Err(wrong_kind(setting, "a time with its unit", Kind::Time)),
    }
}

fn as_flag(setting: &GivenSetting) -> Result<bool, Refusal> {
    match &setting.value {
        Value::Flag(flag) => Ok(*flag),
        _ => Err(wrong_kind(setting, "true or false", Kind::Flag)),
    }
}

/// A whole number is taken as the text it is written with: `raid = 5`, or a factor's level.
fn as_text(setting: &GivenSetting) -> Result<String, Refusal> {
    match &setting.value {
        Value::Text(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        _ => Err(wrong_kind(setting, "a text", Kind::Text)),
    }
}

fn as_texts(setting: &GivenSetting) -> Result<Vec<String>, Refusal> {
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

fn as_weights(setting: &GivenSetting) -> Result<Vec<(u64, u32)>, Refusal> {
    match &setting.value {
        Value::Text(text) => {
            crate::unit::parse_weights(text).map_err(|sentence| wrong_unit(setting, &sentence))
        }
        _ => Err(wrong_kind(setting, "sizes with weights", Kind::Weights)),
    }
}

fn negative(setting: &GivenSetting) -> Refusal {
    Refusal::at(
        &setting.span,
        format!("{} cannot be negative", setting.name),
        "write 0 or more",
    )
}

fn finite(setting: &GivenSetting, number: f64) -> Result<f64, Refusal> {
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

    /// A default of the owner's own counts more than that of a shared documentation.
    #[test]
    fn a_getter_returns_what_is_given_then_the_owners_default_then_the_shared_one() {
        const SHARED: SettingDoc = SettingDoc::bytes("block-size", "4 KiB", "");
        const OWN: &[SettingDoc] = &[SettingDoc::bytes("block-size", "1 MiB", "")];
        let mut settings = Settings {
            owner: "w".to_owned(),
            span: 0..0,
            settings: Vec::new(),
            docs: &[],
        };
        assert_eq!(settings.bytes(SHARED), Ok(4096));
        let why = settings.bytes("block-size").unwrap_err();
        assert_eq!(why.message, "w needs \"block-size\"");
        settings.docs = OWN;
        assert_eq!(settings.bytes(SHARED), Ok(1 << 20));
        assert_eq!(settings.optional_bytes("block-size"), Ok(None));
        settings.settings.push(GivenSetting {
            name: "block-size".to_owned(),
            value: Value::Integer(512),
            span: 0..0,
            name_span: 0..0,
        });
        assert_eq!(settings.bytes(SHARED), Ok(512));
    }

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
