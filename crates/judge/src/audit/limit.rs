//! What a device or line cannot exceed, from the facts of a run's environment.

use serde::Serialize;

use stackrace_base::event::{Fact, FactFigure};

/// The most that a device or a network line can carry.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limit {
    /// `nvme0n1`; of a network line, its name.
    pub device: String,
    /// B/s.
    pub bytes_per_s: f64,
    /// `PCIe 8.0 GT/s x4`.
    pub words: String,
    /// True if it is a network line that the data take, not the link of a device.
    pub line: bool,
}

/// All limits a run has on record: facts `limit DEVICE` and `line NAME` with a rate (memory has none).
pub fn limits(environment: &[Fact]) -> Vec<Limit> {
    environment.iter().filter_map(limit).collect()
}

/// The limit a fact states.
pub(super) fn limit(fact: &Fact) -> Option<Limit> {
    let (kind, device) = fact.name.split_once(' ')?;
    let line = match kind {
        "limit" => false,
        "line" => true,
        _ => return None,
    };
    // Anything else of that name is a fact in prose.
    let Some(FactFigure::Rate {
        bytes_per_s,
        known_by,
    }) = &fact.figure
    else {
        return None;
    };
    (*bytes_per_s > 0).then(|| Limit {
        device: device.to_owned(),
        bytes_per_s: *bytes_per_s as f64,
        words: known_by.clone(),
        line,
    })
}

impl Limit {
    /// Returns true if it is the limit of this device: the disk itself, or a partition of it.
    pub fn is_of(&self, device: &str) -> bool {
        device == self.device || is_partition(device, &self.device)
    }
}

/// Returns true if a name is that of a partition of a disk: `sda1`, `nvme0n1p2`.
pub(super) fn is_partition(name: &str, disk: &str) -> bool {
    let Some(rest) = name.strip_prefix(disk) else {
        return false;
    };
    // Names that end with a digit have a letter between: nvme0n10 is no partition of nvme0n1.
    let number = match disk.ends_with(|c: char| c.is_ascii_digit()) {
        true => rest.strip_prefix('p').unwrap_or(""),
        false => rest,
    };
    !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_facts_with_a_rate_are_limits() {
        let facts = [
            Fact::of_older_log("limit nvme0n1", "3938461538 B/s, PCIe 8.0 GT/s x4"),
            Fact::of_older_log("limit zram0", "memory: no bus, no seeks"),
            Fact::of_older_log("line eth0", "125000000 B/s, 1 Gbit/s"),
            Fact::of_older_log("limit sda", "NaN B/s, x"),
            Fact::of_older_log("memory", "8 B/s, x"),
        ];
        let found = limits(&facts);
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].bytes_per_s, found[0].line),
            (3_938_461_538.0, false)
        );
        assert!(found[1].line && found[1].words == "1 Gbit/s");
    }

    #[test]
    fn a_partition_has_the_limit_of_its_disk_and_a_sibling_has_not() {
        let limit = |device: &str| Limit {
            device: device.to_owned(),
            bytes_per_s: 1.0,
            words: String::new(),
            line: false,
        };
        assert!(limit("sda").is_of("sda") && limit("sda").is_of("sda12"));
        assert!(limit("nvme0n1").is_of("nvme0n1p2"));
        assert!(!limit("nvme0n1").is_of("nvme0n10") && !limit("sda").is_of("sdab"));
        assert!(!limit("sda").is_of("sdb"));
    }
}
