//! The drive that a study asks for: a card by its word or its text, with values of the study's own.
//!
//! It is read once, where the study is; what follows has the card. It travels to other machines as it
//! was written, and is read again where it arrives.

use serde::{Deserialize, Serialize};

use super::Card;
use crate::card::CardError;

/// A card as it was asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "(String, Vec<String>)", into = "(String, Vec<String>)")]
pub struct AskedCard {
    words: String,
    parameters: Vec<String>,
    card: Card,
}

impl AskedCard {
    /// The card that a study means: by the word of one that ships, or by the whole text of another,
    /// which has several lines. `None` if no card that ships has this word.
    ///
    /// # Errors
    /// The text is no card ([`Card::parse`]).
    pub fn meant(words: &str) -> Result<Option<Self>, CardError> {
        let card = match is_text(words) {
            true => Some(Card::parse(words)?),
            false => Card::shipped(words),
        };
        Ok(card.map(|card| Self {
            words: words.to_owned(),
            parameters: Vec::new(),
            card,
        }))
    }

    /// The same with other values, as assignments: `rpm = 5400`.
    ///
    /// # Errors
    /// As those of [`Card::with`].
    pub fn with(self, parameters: Vec<String>) -> Result<Self, CardError> {
        Ok(Self {
            card: self.card.with(&parameters)?,
            parameters,
            ..self
        })
    }

    /// The card with the values that hold here.
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// The card's word, or its text, as the study has it.
    pub fn words(&self) -> &str {
        &self.words
    }

    /// The values that are others here, as assignments.
    pub fn parameters(&self) -> &[String] {
        &self.parameters
    }

    /// Returns true if the study has a whole card, not the word of one that ships.
    pub fn is_own(&self) -> bool {
        is_text(&self.words)
    }

    /// Its name among people: its card's word, and whether the card is the user's own.
    pub fn name(&self) -> String {
        match self.is_own() {
            true => format!("{} (own card)", self.card.model()),
            false => self.words.clone(),
        }
    }
}

/// A card has several lines, and no word has.
fn is_text(words: &str) -> bool {
    words.contains('\n')
}

/// The words decide the card, whose numbers could not be compared for all values.
impl PartialEq for AskedCard {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words && self.parameters == other.parameters
    }
}

impl Eq for AskedCard {}

impl From<AskedCard> for (String, Vec<String>) {
    fn from(asked: AskedCard) -> Self {
        (asked.words, asked.parameters)
    }
}

impl TryFrom<(String, Vec<String>)> for AskedCard {
    type Error = CardError;

    fn try_from((words, parameters): (String, Vec<String>)) -> Result<Self, CardError> {
        let meant = Self::meant(&words)?;
        let missing = || CardError::at("model", format!("this program has no card \"{words}\""));
        meant.ok_or_else(missing)?.with(parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_arrives_as_it_was_asked_for_and_a_broken_one_says_why() {
        let asked = AskedCard::meant("seagate-st3000dm001").unwrap().unwrap();
        let asked = asked.with(vec!["rpm = 5400".to_owned()]).unwrap();
        let sent = toml::Value::try_from(&asked).unwrap();
        let arrived: AskedCard = sent.try_into().unwrap();
        assert_eq!(arrived, asked);
        assert_eq!(arrived.card(), asked.card());
        let own = AskedCard::meant(&asked.card().text()).unwrap().unwrap();
        assert_eq!(own.name(), "seagate-st3000dm001 (own card)");
        for (words, parameters, said) in [
            ("no-drive", "", "no card \"no-drive\""),
            ("seagate-st3000dm001", "rpm = 1", "rpm"),
            ("kind = \"disk\"\n", "", "missing"),
        ] {
            let parameters = Some(parameters.to_owned()).filter(|one| !one.is_empty());
            let sent = (words.to_owned(), parameters.into_iter().collect());
            let error = AskedCard::try_from(sent).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
