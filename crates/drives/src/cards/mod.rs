//! The cards that come with the program: the drives of the published studies, and today's classes.

mod array;
mod asked;
mod changed;
mod claim;
mod ssd;
#[cfg(test)]
mod tests;
mod volume;

pub use array::ArrayCard;
pub use asked::AskedCard;
pub use claim::{Claim, Load};
pub use ssd::SsdCard;
pub use volume::VolumeCard;

use crate::card::{CardError, DiskCard, Origin};
use crate::{Drive, Nanos, SECTOR};

/// A card of any kind of drive.
#[derive(Debug, Clone, PartialEq)]
pub enum Card {
    /// A hard disk.
    Disk(Box<DiskCard>),
    /// A solid-state drive.
    Ssd(Box<SsdCard>),
    /// A volume of a cloud provider.
    Volume(Box<VolumeCard>),
    /// A RAID controller with its disks.
    Array(Box<ArrayCard>),
}

/// The properties that a drive tells the operating system of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriveIdentity {
    /// Bytes of the sectors its media are written in.
    pub physical_sector: u64,
    /// Set if it turns.
    pub rotational: bool,
    /// Set if what was not flushed is lost when the power fails.
    pub volatile_cache: bool,
    /// Set if it takes discards.
    pub discards: bool,
}

/// One value of a card.
#[derive(Debug, Clone, PartialEq)]
pub struct CardValue {
    /// The word of the card.
    pub name: String,
    /// The value as a card spells it.
    pub value: String,
    /// Kind of its source.
    pub from: Origin,
    /// Source of the value, as the card says it.
    pub source: String,
}

/// The card of an array's disks.
fn disks_of(array: &ArrayCard) -> Result<Box<DiskCard>, CardError> {
    let wanted = &array.disks.value;
    let disk = Card::all_shipped().find_map(|card| match card {
        Card::Disk(card) if card.model == *wanted => Some(card),
        _ => None,
    });
    disk.ok_or_else(|| CardError::at("disks", format!("there is no hard disk {wanted}")))
}

/// Expected values of the key `kind` of a card.
const KINDS: &str = "disk, ssd, volume or array is expected";

/// The texts of all cards.
pub const CARDS: &[&str] = &[
    include_str!("../../cards/hitachi-hts725050a9a364.toml"),
    include_str!("../../cards/hgst-hts721010a9e630.toml"),
    include_str!("../../cards/hitachi-hds721010kla330.toml"),
    include_str!("../../cards/hitachi-hdp725050gla360.toml"),
    include_str!("../../cards/wd-wd30efrx.toml"),
    include_str!("../../cards/seagate-st973451ss.toml"),
    include_str!("../../cards/seagate-st3000dm001.toml"),
    include_str!("../../cards/seagate-st16000nm001g.toml"),
    include_str!("../../cards/seagate-st8000as0002.toml"),
    include_str!("../../cards/hp-p400.toml"),
    include_str!("../../cards/sata-ssd.toml"),
    include_str!("../../cards/sata-ssd-protected.toml"),
    include_str!("../../cards/nvme-ssd.toml"),
    include_str!("../../cards/aws-gp2-100gib.toml"),
    include_str!("../../cards/aws-gp3.toml"),
];

impl Card {
    /// Reads a card; its key `kind` says which: `disk`, `ssd`, `volume` or `array`.
    ///
    /// # Errors
    /// When the kind, or a value, is missing, unknown or of the wrong type.
    pub fn parse(text: &str) -> Result<Self, CardError> {
        let table: toml::Table = text.parse()?;
        // The text is read again without this line, so that errors can say where they are.
        let is_kind = |line: &str| {
            line.split('=')
                .next()
                .is_some_and(|key| key.trim() == "kind")
        };
        let text: String = text
            .lines()
            .flat_map(|line| [if is_kind(line) { "" } else { line }, "\n"])
            .collect();
        Ok(match table.get("kind").and_then(toml::Value::as_str) {
            Some("disk") => Self::Disk(Box::new(toml::from_str(&text)?)),
            Some("ssd") => Self::Ssd(Box::new(toml::from_str(&text)?)),
            Some("volume") => Self::Volume(Box::new(toml::from_str(&text)?)),
            Some("array") => Self::Array(Box::new(toml::from_str(&text)?)),
            _ => return Err(CardError::at("kind", KINDS)),
        })
    }

    /// The cards that come with the program.
    pub fn all_shipped() -> impl Iterator<Item = Self> {
        CARDS.iter().filter_map(|text| Self::parse(text).ok())
    }

    /// The card that comes with the program under this word.
    pub fn shipped(model: &str) -> Option<Self> {
        Self::all_shipped().find(|card| card.model() == model)
    }

    /// The properties that the drive tells the operating system of itself.
    pub fn identity(&self) -> DriveIdentity {
        match self {
            Self::Disk(card) => DriveIdentity {
                physical_sector: card.physical_sector.value,
                rotational: true,
                volatile_cache: card.write_cache.value > 0.0,
                discards: false,
            },
            Self::Ssd(card) => DriveIdentity {
                physical_sector: 4096,
                rotational: false,
                // A protected buffer survives, and such drives say so.
                volatile_cache: !card.protected.value,
                discards: true,
            },
            Self::Volume(_) => DriveIdentity {
                physical_sector: 4096,
                rotational: false,
                volatile_cache: false,
                discards: false,
            },
            // Its battery keeps what is in the cache.
            Self::Array(_) => DriveIdentity {
                physical_sector: 512,
                rotational: true,
                volatile_cache: false,
                discards: false,
            },
        }
    }

    /// Sectors of [`SECTOR`] bytes that its write cache holds; 0: it has none.
    pub fn cache_sectors(&self) -> u64 {
        let bytes = match self {
            Self::Disk(card) => card.write_cache.value * 1024.0,
            Self::Ssd(card) => (card.buffer.value << 10) as f64,
            Self::Array(card) => (card.memory.value << 10) as f64,
            Self::Volume(_) => 0.0,
        };
        bytes as u64 / SECTOR
    }

    /// Bytes of the whole drive. `None` means that an SSD is as large as it is asked to be.
    ///
    /// # Errors
    /// When values contradict each other.
    pub fn capacity(&self) -> Result<Option<u64>, CardError> {
        match self {
            Self::Ssd(_) => Ok(None),
            // An SSD alone asks for a size.
            _ => Ok(Some(self.drive(0, 0)?.sectors() * SECTOR)),
        }
    }

    /// The word a study names it by.
    pub fn model(&self) -> &str {
        match self {
            Self::Disk(card) => &card.model,
            Self::Ssd(card) => &card.model,
            Self::Volume(card) => &card.model,
            Self::Array(card) => &card.model,
        }
    }

    /// Maker and product, in words.
    pub fn name(&self) -> &str {
        match self {
            Self::Disk(card) => &card.name,
            Self::Ssd(card) => &card.name,
            Self::Volume(card) => &card.name,
            Self::Array(card) => &card.name,
        }
    }

    /// Kind of the drive, in words.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Disk(card) if card.shingled.is_some() => "SMR disk",
            Self::Disk(_) => "hard disk",
            Self::Ssd(_) => "SSD",
            Self::Volume(_) => "cloud volume",
            Self::Array(_) => "RAID controller",
        }
    }

    /// The units of its values, in words.
    pub fn units(&self) -> &'static str {
        match self {
            Self::Disk(_) => "times in ms, rates in MB/s (10^6 bytes), memory in KiB",
            Self::Ssd(_) => "times in us, rates in MB/s (10^6 bytes), page and buffer in KiB",
            Self::Array(_) => "time in ms, rate in MB/s (10^6 bytes), memory and chunk in KiB",
            Self::Volume(_) => "times in ms, rate in MiB/s, capacity in GiB, request in KiB",
        }
    }

    /// The card as the text of a file: a value a line.
    #[must_use]
    pub fn text(&self) -> String {
        let mut table = self.table();
        let claims = table.remove("claims");
        let (stated, plain): (Vec<_>, Vec<_>) = table
            .into_iter()
            .partition(|(_, value)| value.get("source").is_some());
        let lines = plain.into_iter().chain(stated);
        let mut text: String = lines
            .map(|(name, value)| format!("{name} = {value}\n"))
            .collect();
        let claims = claims.as_ref().and_then(toml::Value::as_array);
        for claim in claims
            .into_iter()
            .flatten()
            .filter_map(toml::Value::as_table)
        {
            text.push_str("\n[[claims]]\n");
            text.push_str(&claim.to_string());
        }
        text
    }

    /// The values of the card by name, with its `kind`.
    fn table(&self) -> toml::Table {
        let (kind, table) = match self {
            Self::Disk(card) => ("disk", toml::Table::try_from(card)),
            Self::Ssd(card) => ("ssd", toml::Table::try_from(card)),
            Self::Volume(card) => ("volume", toml::Table::try_from(card)),
            Self::Array(card) => ("array", toml::Table::try_from(card)),
        };
        // A card holds nothing that TOML cannot: numbers, words, lists and tables.
        let mut table = table.unwrap_or_default();
        table.insert("kind".to_owned(), kind.into());
        table
    }

    /// Every value of the card with its source, by name.
    pub fn values(&self) -> Vec<CardValue> {
        let stated = self.table().into_iter().filter_map(|(name, mut entry)| {
            let entry = entry.as_table_mut()?;
            Some(CardValue {
                name,
                value: entry.remove("value")?.to_string(),
                from: entry.remove("from")?.try_into().ok()?,
                source: entry.remove("source")?.as_str()?.to_owned(),
            })
        });
        stated.collect()
    }

    /// Figures of the whole drive that test the card.
    pub fn claims(&self) -> &[Claim] {
        match self {
            Self::Disk(card) => &card.claims,
            Self::Ssd(card) => &card.claims,
            Self::Volume(card) => &card.claims,
            Self::Array(card) => &card.claims,
        }
    }

    /// The drive, its platter turned by `phase` ns at instant 0. An SSD has `capacity` bytes; the
    /// others have the size of their card.
    ///
    /// # Errors
    /// When values contradict each other.
    pub fn drive(&self, phase: Nanos, capacity: u64) -> Result<Box<dyn Drive>, CardError> {
        Ok(match self {
            Self::Disk(card) => match card.smr(phase)? {
                Some(smr) => Box::new(smr),
                None => Box::new(card.disk(phase)?),
            },
            Self::Array(card) => Box::new(card.controller(disks_of(card)?.as_ref(), phase)?),
            Self::Ssd(card) => Box::new(card.ssd(capacity / SECTOR)?),
            Self::Volume(card) => Box::new(card.volume()?),
        })
    }

    /// The same drive, holding data everywhere: flash answers at once what was never written.
    ///
    /// # Errors
    /// When values contradict each other.
    pub fn drive_with_data(
        &self,
        phase: Nanos,
        capacity: u64,
    ) -> Result<Box<dyn Drive>, CardError> {
        match self {
            Self::Ssd(card) => Ok(Box::new(card.ssd(capacity / SECTOR)?.holding_data())),
            _ => self.drive(phase, capacity),
        }
    }

    /// The figure of a claim that the model of this card reaches, in the unit of [`Claim::value`];
    /// an SSD has `capacity` bytes.
    ///
    /// # Errors
    /// When values of the card contradict each other.
    pub fn modelled(&self, claim: &Claim, capacity: u64) -> Result<f64, CardError> {
        let mut drive = self.drive(0, capacity)?;
        // Only flash is faster or slower for what it holds.
        Ok(claim.modelled(&mut *drive, matches!(self, Self::Ssd(_))))
    }
}

/// A card of the values in a table; its key `kind` says which.
fn from_table(mut table: toml::Table) -> Result<Card, CardError> {
    let kind = table.remove("kind");
    Ok(match kind.as_ref().and_then(toml::Value::as_str) {
        Some("disk") => Card::Disk(Box::new(table.try_into()?)),
        Some("ssd") => Card::Ssd(Box::new(table.try_into()?)),
        Some("volume") => Card::Volume(Box::new(table.try_into()?)),
        Some("array") => Card::Array(Box::new(table.try_into()?)),
        _ => return Err(CardError::at("kind", KINDS)),
    })
}
