//! Disks of the lab: plain ones, and modelled drives with what goes wrong with them.

use serde::{Deserialize, Serialize};
use stackrace_base::unit;
use stackrace_drives::AskedCard;

/// A disk of the lab as it is asked for; the virtual machine is started with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabDisk {
    /// The guest's name for it, at most 20 characters.
    pub serial: String,
    /// Size, bytes.
    pub bytes: u64,
    /// Smallest unit it reads and writes, bytes.
    pub logical_sector: u64,
    /// Unit in which it says its media are written, bytes.
    pub physical_sector: u64,
    /// Most B/s, reads and writes together; `None` means as fast as it goes.
    pub rate: Option<u64>,
    /// Most requests per second, reads and writes together; `None` means as many as go.
    pub requests: Option<u64>,
    /// Shortest time that a request takes, ns; `None` means no longer than it does.
    pub latency_ns: Option<u64>,
    /// The model that decides how long requests take; `None` means that QEMU emulates the disk.
    pub model: Option<DiskModel>,
}

/// The drive that a modelled disk is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskModel {
    /// The card, with the values that hold here.
    pub card: AskedCard,
    /// Decides where the head and the platter are when the disk is first used: another one in each
    /// round.
    pub accident: u64,
    /// Kind of its cache; `None` means that of its card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<DriveCache>,
    /// Faults that it is to have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<DeclaredFault>,
}

impl DiskModel {
    /// The drive of a card, without faults, with the cache of its card.
    pub fn of(card: AskedCard) -> Self {
        Self {
            card,
            accident: 0,
            cache: None,
            faults: Vec::new(),
        }
    }
}

/// Place in which a modelled drive keeps what it has acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriveCache {
    /// A cache that is lost with the power, and that a flush empties.
    Volatile,
    /// A cache that survives.
    Protected,
    /// A cache that is lost with the power; flushes are acknowledged and not obeyed.
    Lying,
    /// The medium.
    Off,
}

impl DriveCache {
    /// The kind as a study writes it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Volatile => "volatile",
            Self::Protected => "protected",
            Self::Lying => "lying",
            Self::Off => "off",
        }
    }
}

/// A fault that is declared of a modelled disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeclaredFault {
    /// Requests to these bytes take so much longer, ns.
    SlowSectors {
        /// The first byte of the range.
        from: u64,
        /// The first byte behind the range.
        to: u64,
        /// Time added to each request, ns.
        longer_ns: u64,
    },
    /// Reads of these bytes fail after so long, ns, until the bytes are written again.
    ReadErrors {
        /// The first byte of the range.
        from: u64,
        /// The first byte behind the range.
        to: u64,
        /// Time until the error is reported, ns.
        longer_ns: u64,
    },
    /// The disk answers nothing any more so long after it appeared, ns.
    DiesAt {
        /// Time from the moment it appeared, ns.
        after_ns: u64,
    },
}

impl std::fmt::Display for DeclaredFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let range = |from, to| format!("{} to {}", unit::bytes(from), unit::bytes(to));
        let time = |ns: u64| unit::time_ns(ns as f64);
        match *self {
            Self::SlowSectors {
                from,
                to,
                longer_ns,
            } => write!(f, "{} slower at {}", time(longer_ns), range(from, to)),
            Self::ReadErrors {
                from,
                to,
                longer_ns,
            } => write!(
                f,
                "reads of {} fail after {}",
                range(from, to),
                time(longer_ns)
            ),
            Self::DiesAt { after_ns } => write!(f, "dies after {}", time(after_ns)),
        }
    }
}

impl LabDisk {
    /// Describes it in one line.
    pub fn described(&self) -> String {
        if let Some(model) = &self.model {
            let cache = model
                .cache
                .map_or(String::new(), |kind| format!(", cache {}", kind.word()));
            let mut text = format!(
                "{} of a modelled {}{cache}",
                unit::bytes(self.bytes),
                model.card.name()
            );
            for parameter in model.card.parameters() {
                text.push_str(&format!(", {parameter}"));
            }
            for fault in &model.faults {
                text.push_str(&format!(", {fault}"));
            }
            return text;
        }
        let mut text = format!(
            "{}, logical sector {} B, physical sector {} B",
            unit::bytes(self.bytes),
            self.logical_sector,
            self.physical_sector
        );
        if let Some(rate) = self.rate {
            let rate = unit::bytes_per_second(rate as f64);
            text.push_str(&format!(", at most {rate}"));
        }
        if let Some(requests) = self.requests {
            text.push_str(&format!(", at most {requests} requests/s"));
        }
        if let Some(latency) = self.latency_ns {
            let latency = unit::time_ns(latency as f64);
            text.push_str(&format!(", at least {latency} a request"));
        }
        text
    }
}
