//! `lab-disks = { model = "CARD" }`: drives whose service times a model decides.

use super::common::{SIZE_MIN, disk_count, serial};
use super::faults;
use stackrace_base::setting::{ChoiceDoc, Refusal, Settings, choice, unknown_word};
use stackrace_base::unit;
use stackrace_drives::{AskedCard, Card, CardError};
use stackrace_machine::host::{DiskModel, DriveCache, LabDisk};

/// Settings that a card answers.
const OF_THE_CARD: [&str; 5] = [
    "logical-sector",
    "physical-sector",
    "rate",
    "requests",
    "latency",
];

/// The setting for the write cache.
pub(super) const CACHE: ChoiceDoc<DriveCache> = choice!(
    "cache",
    [
        "volatile" => DriveCache::Volatile,
        "protected" => DriveCache::Protected,
        "lying" => DriveCache::Lying,
        "off" => DriveCache::Off,
    ],
    "",
    "Of a modelled disk: its write cache is volatile (a flush empties it), protected (it survives a power cut), lying (flushes are acknowledged and not obeyed) or off; as its model has it unless given.",
);

/// Sector that modelled drives read and write, bytes.
const LOGICAL_SECTOR: u64 = 512;

/// The disks of a card.
///
/// # Errors
/// There is no such card, it says already what the study says, or it has no such size.
pub(super) fn disks(settings: &Settings, word: &str) -> Result<Vec<LabDisk>, Refusal> {
    let parameters = settings.optional_texts("parameters")?.unwrap_or_default();
    let card = changed(settings, named(settings, "model", word)?, parameters)?;
    decided(settings, card.card().model(), &OF_THE_CARD)?;
    let cache = settings.optional_choice(CACHE)?;
    let bytes = size(settings, "size", &card)?;
    let count = disk_count(settings)?;
    let declared = faults::declared(settings, count, bytes)?;
    let last = last(settings)?;
    let disks = (1..=count).map(|number| {
        let here = declared.iter().filter(|(disk, _)| *disk == number);
        let faults = here.map(|(_, fault)| *fault).collect();
        match &last {
            // Cache and values are those of its own model: the study's words are about the others.
            Some((card, bytes)) if number == count => {
                let model = DiskModel {
                    faults,
                    ..DiskModel::of(card.clone())
                };
                one(*bytes, model, number)
            }
            _ => {
                let model = DiskModel {
                    cache,
                    faults,
                    ..DiskModel::of(card.clone())
                };
                one(bytes, model, number)
            }
        }
    });
    Ok(disks.collect())
}

/// A disk of a layer's own: settings of these names say its model and its size; those of others are
/// the card's to answer.
///
/// # Errors
/// As [`disks`].
pub(super) fn own(
    settings: &Settings,
    [model, bytes]: [&str; 2],
    word: &str,
    of_the_card: &[&str],
    number: u64,
) -> Result<LabDisk, Refusal> {
    let card = named(settings, model, word)?;
    decided(settings, card.card().model(), of_the_card)?;
    let bytes = size(settings, bytes, &card)?;
    Ok(one(bytes, DiskModel::of(card), number))
}

/// Refuses what a card decides: a measurement of it with another speed would bear the card's name.
fn decided(settings: &Settings, word: &str, of_the_card: &[&str]) -> Result<(), Refusal> {
    let Some(name) = of_the_card.iter().find(|name| settings.given(name)) else {
        return Ok(());
    };
    Err(Refusal::at(
        settings.span_of(name),
        format!("the model {word} decides \"{name}\""),
        format!("leave \"{name}\" out: `stackrace show drives {word}` lists what the model does"),
    ))
}

/// The card that a setting names, or whose text it has.
fn named(settings: &Settings, name: &str, word: &str) -> Result<AskedCard, Refusal> {
    let refused = |message: String, help: &str| Refusal::at(settings.span_of(name), message, help);
    let meant = AskedCard::meant(word).map_err(|error| {
        refused(
            format!("this text is no card of a drive: {error}"),
            "compare it with one that is known to work: stackrace show drives seagate-st3000dm001",
        )
    })?;
    if let Some(card) = meant {
        let (own, called) = (card.is_own(), card.card().model());
        // Its figures would bear the name of another drive.
        if own && Card::shipped(called).is_some() {
            return Err(refused(
                format!("a card that ships is called {called} already"),
                "give your card another name, in its line model = \"...\"",
            ));
        }
        if own && !is_word(called) {
            return Err(refused(
                format!("no drive is called {called:?}"),
                "write the model of a card in small letters, digits and -, at most 40 of them",
            ));
        }
        return Ok(card);
    }
    let cards: Vec<Card> = Card::all_shipped().collect();
    let names = cards.iter().map(Card::model);
    let message = format!("there is no drive model \"{word}\"");
    Err(unknown_word(
        settings.span_of(name),
        &message,
        word,
        names,
        "models",
    ))
}

/// Returns true if this can be the word of a card: it is shown wherever its figures are.
fn is_word(text: &str) -> bool {
    let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=40).contains(&text.len()) && text.chars().all(known)
}

/// Card and size of the last disk, where it is another one than the rest.
fn last(settings: &Settings) -> Result<Option<(AskedCard, u64)>, Refusal> {
    let Some(word) = settings.optional_text("last-model")? else {
        return match settings.given("last-size") {
            true => Err(Refusal::at(
                settings.span_of("last-size"),
                "\"last-size\" is the size of another model, and there is none",
                "write last-model too, or leave last-size out",
            )),
            false => Ok(None),
        };
    };
    let card = named(settings, "last-model", &word)?;
    let bytes = size(settings, "last-size", &card)?;
    Ok(Some((card, bytes)))
}

/// A card with the values that the study gives it.
fn changed(
    settings: &Settings,
    card: AskedCard,
    parameters: Vec<String>,
) -> Result<AskedCard, Refusal> {
    let (word, at) = (
        card.card().model().to_owned(),
        settings.span_of("parameters"),
    );
    // Which values a model has, its card alone knows: it says what it does not take.
    match card.with(parameters) {
        Ok(changed) => Ok(changed),
        Err(CardError::Unknown { name, known }) => {
            let message = format!("a {word} has no value \"{name}\"");
            let known = known.iter().map(String::as_str);
            Err(unknown_word(at, &message, &name, known, "values"))
        }
        Err(error) => Err(Refusal::at(
            at,
            format!("a {word} cannot have these values: {error}"),
            format!("`stackrace show drives {word}` lists its values as they are written here"),
        )),
    }
}

/// One disk of a model.
fn one(bytes: u64, model: DiskModel, number: u64) -> LabDisk {
    LabDisk {
        serial: serial(&kind_of(bytes, &model), number),
        bytes,
        logical_sector: LOGICAL_SECTOR,
        physical_sector: model.card.card().identity().physical_sector,
        rate: None,
        requests: None,
        latency_ns: None,
        model: Some(model),
    }
}

/// Numbers that tell this disk from others. Disks of studies that say nothing of a cache, of values
/// or of faults keep their serials.
fn kind_of(bytes: u64, model: &DiskModel) -> Vec<u64> {
    // Cards differ by their words.
    let mut like = vec![bytes, hash(model.card.words())];
    if let Some(kind) = model.cache {
        like.push(1 + kind as u64);
    }
    if !model.card.parameters().is_empty() {
        like.push(hash(&model.card.parameters().join("\n")));
    }
    if !model.faults.is_empty() {
        like.push(hash(&format!("{:?}", model.faults)));
    }
    like
}

/// A number for words: serials are made of numbers.
fn hash(words: &str) -> u64 {
    let hash = blake3::hash(words.as_bytes());
    u64::from_le_bytes(*hash.as_bytes().first_chunk().unwrap_or(&[0; 8]))
}

/// The part of the drive that the study asks for, bytes; all of it unless it says so.
fn size(settings: &Settings, name: &str, card: &AskedCard) -> Result<u64, Refusal> {
    let card = card.card();
    let (span, word) = (settings.span_of(name), card.model());
    let sector = card.identity().physical_sector;
    let whole = card.capacity().map_err(|error| {
        Refusal::at(
            settings.span_of("model"),
            format!("the model {word} cannot be used: {error}"),
            "name another model",
        )
    })?;
    let asked = settings.optional_bytes(name)?;
    let Some(bytes) = asked.or(whole) else {
        return Err(Refusal::at(
            span,
            format!("the size of a {word} must be given"),
            format!("write a size, like {name} = \"16 GiB\""),
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
