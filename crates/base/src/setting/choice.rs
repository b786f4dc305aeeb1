//! A setting that takes one of several words, each of which stands for a value of the program.
//!
//! Word and value are written once, as a pair. From the pairs come what a study may write, what
//! `stackrace show` lists and the value that the program works with, so that a match on the value
//! is exhaustive and a new word without a meaning does not compile.

use super::convert::{as_word, none_of};
use super::doc::SettingDoc;
use super::value::{GivenSetting, Refusal};

/// A documented setting whose words stand for values of one type; made by [`choice`].
#[derive(Debug, Clone, Copy)]
pub struct ChoiceDoc<T: 'static> {
    /// The setting as the list of its owner has it.
    pub doc: SettingDoc,
    words: &'static [&'static str],
    values: &'static [T],
}

/// A setting with its words and what each stands for:
/// `choice!("order", ["random" => VisitOrder::Random, "creation" => VisitOrder::Creation], "random", "Order of visits.")`.
/// The text after the pairs is the default, as [`SettingDoc::choice`] takes it.
#[macro_export]
#[doc(hidden)]
macro_rules! __choice {
    ($name:expr, [$($word:literal => $value:expr),+ $(,)?], $default:expr, $doc:expr $(,)?) => {
        $crate::setting::ChoiceDoc::new($name, &[$($word),+], &[$($value),+], $default, $doc)
    };
}

pub use __choice as choice;

impl<T: Copy> ChoiceDoc<T> {
    /// A setting whose words stand for the values at the same places; [`choice`] writes them in pairs.
    #[doc(hidden)]
    pub const fn new(
        name: &'static str,
        words: &'static [&'static str],
        values: &'static [T],
        default: &'static str,
        doc: &'static str,
    ) -> Self {
        assert!(words.len() == values.len());
        Self {
            doc: SettingDoc::choice(name, words, default, doc),
            words,
            values,
        }
    }

    /// The words, in their order.
    pub fn words(&self) -> &'static [&'static str] {
        self.words
    }

    /// The values, in the order of their words.
    pub fn values(&self) -> &'static [T] {
        self.values
    }

    /// The value that a word stands for; `None` if it is none of them.
    pub fn of_word(&self, word: &str) -> Option<T> {
        let at = self.words.iter().position(|known| *known == word)?;
        self.values.get(at).copied()
    }

    /// The value that a setting's word stands for.
    ///
    /// # Errors
    /// It is none of the words.
    pub(super) fn value(&self, setting: &GivenSetting) -> Result<T, Refusal> {
        let word = as_word(setting)?;
        let value = self.of_word(&word);
        value.ok_or_else(|| none_of(setting, &word, self.words))
    }
}

impl<T: Copy + PartialEq> ChoiceDoc<T> {
    /// The word of a value, as a study writes it; empty for a value that no word stands for.
    pub fn word(&self, value: T) -> &'static str {
        let at = self.values.iter().position(|known| *known == value);
        at.and_then(|at| self.words.get(at)).unwrap_or(&"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::{Settings, Value};

    const SIDE: ChoiceDoc<char> = choice!("side", ["left" => 'l', "right" => 'r'], "right", "");

    #[test]
    fn a_word_becomes_its_value_and_a_value_its_word() {
        let mut settings = Settings {
            owner: "w".to_owned(),
            span: 0..0,
            settings: Vec::new(),
            docs: &[],
        };
        assert_eq!(settings.choice(SIDE), Ok('r'));
        assert_eq!(settings.optional_choice(SIDE), Ok(None));
        for (word, value) in [("left", Ok('l')), ("right", Ok('r')), ("lft", Err("left"))] {
            settings.settings = vec![GivenSetting {
                name: "side".to_owned(),
                value: Value::Text(word.to_owned()),
                span: 0..0,
                name_span: 0..0,
            }];
            match value {
                Ok(value) => {
                    assert_eq!(settings.choice(SIDE), Ok(value));
                    assert_eq!(settings.optional_choice(SIDE), Ok(Some(value)));
                    assert_eq!(SIDE.word(value), word);
                }
                Err(near) => assert!(settings.choice(SIDE).unwrap_err().help.contains(near)),
            }
        }
    }

    #[test]
    fn a_word_with_a_point_may_be_a_number() {
        let version = choice!("version", ["1.0" => 0, "1.2" => 2], "1.2", "");
        for (number, value) in [(1.0, Ok(0)), (1.2, Ok(2)), (1.5, Err(()))] {
            let given = GivenSetting {
                name: "version".to_owned(),
                value: Value::Float(number),
                span: 0..0,
                name_span: 0..0,
            };
            assert_eq!(version.value(&given).map_err(drop), value, "{number}");
        }
    }
}
