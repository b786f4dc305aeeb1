//! The words a layer or a workload is given in a study, each with the place it was written.
//!
//! A study's table is checked once against the list of settings its owner documents
//! ([`SettingDoc`]); after that the typed getters cannot fail on spelling or kind, only on what the
//! owner itself refuses. The same lists make `--help`, the JSON schema and the nearest-word advice.

mod choice;
mod convert;
mod doc;
mod over_shell;
mod value;
mod words;
pub mod written;

pub use choice::{ChoiceDoc, choice};
pub use convert::example;
pub use doc::{Fallback, SettingDoc};
pub use over_shell::OverShell;
pub use value::{GivenSetting, Kind, Refusal, Span, Value};
pub use words::{listed, nearest, unknown_word};

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::unit;
use convert::*;

/// The table given to one layer or workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Kind of layer or workload, for messages.
    pub owner: String,
    /// Position of the table.
    pub span: Span,
    /// Settings as written, in order.
    pub settings: Vec<GivenSetting>,
    /// Documentation by the owner: the getters take the defaults from here.
    pub docs: &'static [SettingDoc],
}

/// The setting that a getter is asked for: by its name, or by a documentation that also counts where
/// the owner of the settings does not offer it.
#[derive(Debug, Clone, Copy)]
pub struct SettingKey<'a> {
    /// Its word.
    pub name: &'a str,
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

/// Bytes of data that are advised where so many are free: a quarter of them at most, as a power of two.
pub fn advised_size(free: u64) -> u64 {
    const LEAST: u64 = 1 << 20;
    const MOST: u64 = 1 << 30;
    let quarter = (free / 4).clamp(LEAST, MOST);
    1 << quarter.ilog2()
}

/// Getters that fall back to the documented default.
macro_rules! getters {
    ($($(#[doc = $doc:literal])* $name:ident $read:ident -> $value:ty,)*) => {$(
        $(#[doc = $doc])*
        /// As the study gives it, or as documented.
        ///
        /// # Errors
        /// The value is of another kind, or there is neither a value nor a default.
        pub fn $name<'a>(
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
        pub fn $name(&self, name: &str) -> Result<Option<$value>, Refusal> {
            self.find(name).map($read).transpose()
        }
    )*};
}

impl Settings {
    /// Everything that is wrong against the list its owner documents: words it does not know,
    /// values of another kind, words that must be given and are not.
    pub fn check_all(&self) -> Vec<Refusal> {
        self.check_all_in(u64::MAX)
    }

    /// The same where the data go to a place with so many bytes free: the size that is advised fits there.
    pub fn check_all_in(&self, free: u64) -> Vec<Refusal> {
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
        // After the words that are given: a misspelt word may be the one that seems to be missing.
        for doc in docs {
            if doc.fallback == Fallback::Required && !self.given(doc.name) {
                refusals.push(Refusal::at(
                    &self.span,
                    format!("{} needs \"{}\"", self.owner, doc.name),
                    // Data as small as one request are refused by whatever does larger ones.
                    match doc.name {
                        "size" => format!("write size = \"{}\"", unit::bytes(advised_size(free))),
                        name => format!("write {name} = {}", example(doc.kind)),
                    },
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
        /// A number, whole or not.
        number as_number -> f64,
        /// A share of one.
        share as_share -> f64,
        /// A time in nanoseconds.
        time_ns as_time_ns -> u64,
        /// How long something lasts, in nanoseconds; 0 is refused.
        lasting_ns as_lasting_ns -> u64,
        /// Yes or no.
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
        /// A number, whole or not.
        optional_number as_number -> f64,
        /// A share of one.
        optional_share as_share -> f64,
        /// A time in nanoseconds.
        optional_time_ns as_time_ns -> u64,
        /// How long something lasts, in nanoseconds; 0 is refused.
        optional_lasting_ns as_lasting_ns -> u64,
        /// A text, or one of the words of a choice.
        optional_text as_text -> String,
        /// A list of texts.
        optional_texts as_texts -> Vec<String>,
        /// Amounts of bytes with their weights.
        optional_weights as_weights -> Vec<(u64, u32)>,
    }

    /// The value of the word of a choice, as the study gives it, or as documented.
    ///
    /// # Errors
    /// It is none of the words, or there is neither a word nor a default.
    pub fn choice<T: Copy>(&self, choice: ChoiceDoc<T>) -> Result<T, Refusal> {
        choice.value(self.or_default(choice.doc.into())?.as_ref())
    }

    /// The value of the word of a choice, as the study gives it; none where it does not.
    ///
    /// # Errors
    /// It is none of the words.
    pub fn optional_choice<T: Copy>(&self, choice: ChoiceDoc<T>) -> Result<Option<T>, Refusal> {
        let given = self.find(choice.doc.name);
        given.map(|setting| choice.value(setting)).transpose()
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

    /// Returns true if a word was given.
    pub fn given(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Returns true if a getter without `optional` finds something: a value given, or a documented one.
    pub fn has_value(&self, name: &str) -> bool {
        // A computed default counts as none: only its owner knows the value.
        let documented = |doc: &SettingDoc| matches!(doc.fallback, Fallback::Value(_));
        let mut own = self.docs.iter().filter(|doc| doc.name == name);
        self.given(name) || own.any(documented)
    }

    /// Position of the value of a setting; the table, where it is not given.
    pub fn span_of(&self, name: &str) -> &Span {
        self.find(name).map_or(&self.span, |setting| &setting.span)
    }

    /// The refusal of the value of a setting.
    pub fn refuse(
        &self,
        name: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Refusal {
        Refusal::at(self.span_of(name), message, help)
    }

    /// The value that was found for a setting, as a number of the type that its limits have.
    ///
    /// # Errors
    /// It lies outside of the limits.
    pub fn within<T>(&self, name: &str, found: u64, limits: RangeInclusive<T>) -> Result<T, Refusal>
    where
        T: TryFrom<u64> + PartialOrd + Display,
    {
        // What does not fit into the type lies outside of any limits that it can have.
        let fitting = T::try_from(found)
            .ok()
            .filter(|found| limits.contains(found));
        fitting.ok_or_else(|| {
            let (low, high) = (limits.start(), limits.end());
            self.refuse(name, format!("{name} must be between {low} and {high}"), "")
        })
    }

    /// A whole number within limits.
    ///
    /// # Errors
    /// Those of [`Settings::count`] and of [`Settings::within`].
    pub fn count_within<'a, T>(
        &self,
        key: impl Into<SettingKey<'a>>,
        limits: RangeInclusive<T>,
    ) -> Result<T, Refusal>
    where
        T: TryFrom<u64> + PartialOrd + Display,
    {
        let key = key.into();
        self.within(key.name, self.count(key)?, limits)
    }

    fn find(&self, name: &str) -> Option<&GivenSetting> {
        self.settings.iter().find(|setting| setting.name == name)
    }
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
            ("szie", Some("size")),
            ("dircetroy", Some("directory")),
            ("ai", None),
            ("", None),
            ("x", None),
        ];
        for (word, expected) in cases {
            assert_eq!(nearest(word, words), expected, "{word}");
        }
        let layers = ["native", "ext4", "nfs", "nilfs2", "smb", "xfs"];
        for foreign in ["s3", "cifs", "ai", "ceph"] {
            assert_eq!(nearest(foreign, layers), None, "{foreign}");
        }
        // Both are one letter off: the one that begins like it.
        assert_eq!(nearest("nfx", layers), Some("nfs"));
    }
}
