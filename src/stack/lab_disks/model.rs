//! `lab-disks = { model = "CARD" }`: drives whose service times a model decides.

use super::common::{SIZE_MIN, disk_count, serial};
use crate::host::{DiskModel, DriveCache, LabDisk};
use crate::setting::{Refusal, Settings, unknown_word};
use crate::unit;
use stackrace_drives::{CARDS, Card};

/// Settings that a card answers.
const OF_THE_CARD: [&str; 5] = [
    "logical-sector",
    "physical-sector",
    "rate",
    "requests",
    "latency",
];

/// Sector that modelled drives read and write, bytes.
const LOGICAL_SECTOR: u64 = 512;

/// The disks of a card.
///
/// # Errors
/// There is no such card, it says already what the study says, or it has no such size.
pub(super) fn disks(settings: &Settings, word: &str) -> Result<Vec<LabDisk>, Refusal> {
    let span = settings.span_of("model");
    let Some(card) = Card::shipped(word) else {
        let cards: Vec<Card> = CARDS.iter().flat_map(|text| Card::parse(text)).collect();
        let names = cards.iter().map(Card::model);
        let message = format!("there is no drive model \"{word}\"");
        return Err(unknown_word(span, &message, word, names, "models"));
    };
    // A measurement of the card with another speed would bear the card's name.
    if let Some(name) = OF_THE_CARD.iter().find(|name| settings.given(name)) {
        return Err(Refusal::at(
            settings.span_of(name),
            format!("the model {word} decides \"{name}\""),
            format!("leave \"{name}\" out: stackrace show drives {word} lists what the model does"),
        ));
    }
    // Other words were refused when the settings were checked.
    let cache = settings
        .optional_text("cache")?
        .and_then(|word| DriveCache::of(&word));
    let physical_sector = card.identity().physical_sector;
    let bytes = size(settings, &card, physical_sector)?;
    let like = u64::from_le_bytes(
        // Cards differ by their words, and a serial is made of numbers.
        *blake3::hash(word.as_bytes())
            .as_bytes()
            .first_chunk()
            .unwrap_or(&[0; 8]),
    );
    let kind = cache.map_or(0, |kind| 1 + kind as u64);
    let likes: &[u64] = match cache {
        // Disks of studies that say nothing of a cache keep their serials.
        None => &[bytes, like],
        Some(_) => &[bytes, like, kind],
    };
    let disks = (1..=disk_count(settings)?).map(|number| LabDisk {
        serial: serial(likes, number),
        bytes,
        logical_sector: LOGICAL_SECTOR,
        physical_sector,
        rate: None,
        requests: None,
        latency_ns: None,
        model: Some(DiskModel {
            card: word.to_owned(),
            accident: 0,
            cache,
        }),
    });
    Ok(disks.collect())
}

/// As much of the drive as the study asks for, bytes; all of it unless it says so.
fn size(settings: &Settings, card: &Card, sector: u64) -> Result<u64, Refusal> {
    let (span, word) = (settings.span_of("size"), card.model());
    let whole = card.capacity().map_err(|error| {
        Refusal::at(
            settings.span_of("model"),
            format!("the model {word} cannot be used: {error}"),
            "name another model",
        )
    })?;
    let asked = settings.optional_bytes("size")?;
    let Some(bytes) = asked.or(whole) else {
        return Err(Refusal::at(
            span,
            format!("the size of a {word} must be given"),
            "write a size, like size = \"16 GiB\"",
        ));
    };
    if let Some(whole) = whole.filter(|whole| bytes > *whole) {
        let whole = unit::bytes(whole);
        return Err(Refusal::at(
            span,
            format!("a {word} has {whole}"),
            "write less, or leave size out: it is then the whole drive",
        ));
    }
    if bytes < SIZE_MIN {
        return Err(Refusal::at(
            span,
            format!("{bytes} bytes are too few for a drive"),
            "write a size of at least 1 MiB, like \"16 GiB\"",
        ));
    }
    // A card made from rates may end within a sector.
    Ok(bytes / sector * sector)
}
