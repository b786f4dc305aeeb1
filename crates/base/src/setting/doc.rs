//! What an owner says of its settings: word, kind, default, one sentence.

use super::convert::fits;
use super::value::{GivenSetting, Kind, Refusal, Span, Value};

/// Value of a setting where a study leaves it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
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
/// of [`Settings`](super::Settings) return it where a study leaves the setting out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingDoc {
    /// The word, kebab-case.
    pub name: &'static str,
    /// Kind of value it takes.
    pub kind: Kind,
    /// Value where it is left out.
    pub fallback: Fallback,
    /// One sentence.
    pub doc: &'static str,
}

/// A constructor for each kind: `SettingDoc::bytes("size", "1 GiB", "Size of the file.")`.
/// An empty default says that absent means absent.
macro_rules! constructors {
    ($($name:ident $kind:ident,)*) => {$(
        #[doc = concat!("A setting of kind [`Kind::", stringify!($kind), "`].")]
        pub const fn $name(
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

    /// A setting that is one of `words`, which are passed on as they are. Words that mean something
    /// to this program are a [`choice`](super::choice).
    pub const fn choice(
        name: &'static str,
        words: &'static [&'static str],
        default: &'static str,
        doc: &'static str,
    ) -> Self {
        Self::new(name, Kind::Choice(words), default, doc)
    }

    const fn new(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Self {
        let fallback = match default.is_empty() {
            // An empty text stands for none, because the lists of settings are easier to read that
            // way.
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
    pub const fn required(self) -> Self {
        Self {
            fallback: Fallback::Required,
            ..self
        }
    }

    /// The same, with a default that `words` describe and the owner works out.
    pub const fn computed(self, words: &'static str) -> Self {
        Self {
            fallback: Fallback::Computed(words),
            ..self
        }
    }

    /// The default, as it is shown; `None` if there is none.
    pub fn default_words(&self) -> Option<&'static str> {
        match self.fallback {
            Fallback::Value(words) | Fallback::Computed(words) => Some(words),
            Fallback::Required | Fallback::Absent => None,
        }
    }

    /// The default, as if it were written at `span`; `None` if there is none, or the owner works it out.
    ///
    /// # Errors
    /// The documented default is not of the setting's kind.
    pub(super) fn default_setting(&self, span: &Span) -> Result<Option<GivenSetting>, Refusal> {
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
    #[cfg(any(test, feature = "testing"))]
    pub fn check_default(&self) -> Result<(), Refusal> {
        self.default_setting(&(0..0)).map(drop)
    }

    /// The settings of several lists, which are `N` together.
    pub const fn joined<const N: usize>(lists: &[&[Self]]) -> [Self; N] {
        // Written out with loops: iterators cannot run in a `const`.
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
