//! Cards of drives that the command line names: one that ships, by its word, or a file.

use stackrace_base::unit::{InWords, ShownPath};
use std::path::{Path, PathBuf};

use stackrace_drives::Card;

use super::words::unknown;
use stackrace_base::bounded::ByteLimit;
use stackrace_base::failure::Failure;
use stackrace_study::study::AskedDrive;

/// Bytes of a modelled SSD.
pub(super) const SSD_BYTES: u64 = 4 << 30;
/// Largest card that is read, bytes; those that ship have 4 KiB. A study holds it whole.
const CARD_MAX: ByteLimit = ByteLimit::new(32 << 10);

/// A card, and where it is from.
pub(super) struct NamedCard {
    pub(super) card: Card,
    /// The text of its file; none: it ships with the program.
    own: Option<String>,
}

/// The card of this name, or the one in this file.
///
/// # Errors
/// There is neither, the file cannot be read, or it is no card.
pub(super) fn read(named: &Path) -> Result<NamedCard, Failure> {
    let word = named.to_string_lossy();
    let cards: Vec<Card> = Card::all_shipped().collect();
    // A name goes before a file: a file is said with a path, ./ in front.
    if let Some(card) = cards.iter().find(|card| card.model() == word) {
        let card = card.clone();
        return Ok(NamedCard { card, own: None });
    }
    if !named.exists() {
        let names: Vec<&str> = cards.iter().map(Card::model).collect();
        return Err(unknown("drive or file", &word, &names));
    }
    let text = text(named, CARD_MAX)?;
    let card = Card::parse(&text);
    let card = card.and_then(|card| card.drive(0, SSD_BYTES).map(|_| card)).map_err(|error| {
        Failure::usage(format!("{word}: {error}"))
            .next("compare it with a card that is known to work: stackrace show drives seagate-st3000dm001")
    })?;
    let own = Some(text);
    Ok(NamedCard { card, own })
}

/// The drives that a run is asked to be on.
///
/// # Errors
/// As [`read`].
pub(super) fn asked(named: &[PathBuf]) -> Result<Vec<AskedDrive>, Failure> {
    let read = named.iter().map(|named| {
        read(named).map(|NamedCard { card, own }| AskedDrive {
            name: card.model().to_owned(),
            own,
        })
    });
    read.collect()
}

/// A text file of bounded size.
///
/// # Errors
/// It cannot be read, or is no text.
pub(super) fn text(path: &Path, most: ByteLimit) -> Result<String, Failure> {
    // By what is read, not by the size it says: a device says 0 and never ends.
    let bytes = most.read(path);
    let bytes = bytes.map_err(|error| {
        Failure::usage(format!(
            "{}: {error}",
            path.shown(),
            error = error.in_words()
        ))
    })?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("{}: this is not UTF-8 text", path.shown())))
}
