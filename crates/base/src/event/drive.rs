//! The drive that a fact is about, as values: runs on drives of one class and model are comparable.

use serde::{Deserialize, Serialize};

/// Class of a drive, as far as the system tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriveClass {
    /// It has discs that turn.
    HardDisk,
    /// Flash behind SATA, SAS or USB.
    Ssd,
    /// Flash behind NVMe.
    Nvme,
    /// A memory card.
    Card,
    /// A drive of a virtual machine: what lies below it is not told.
    Virtual,
    /// The system tells too little, or the log is of a newer program.
    #[serde(other)]
    Untold,
}

/// First letters of the kernel's names of block devices that have a class of their own.
const NAMED: [(&str, DriveClass); 5] = [
    ("nvme", DriveClass::Nvme),
    ("mmcblk", DriveClass::Card),
    ("vd", DriveClass::Virtual),
    ("xvd", DriveClass::Virtual),
    ("ublk", DriveClass::Virtual),
];

impl DriveClass {
    /// The class of a device by the kernel's name for it, and by whether the kernel says that it turns.
    pub fn of(device: &str, rotational: Option<bool>) -> Self {
        let named = NAMED.iter().find(|(begin, _)| device.starts_with(begin));
        match (named, rotational) {
            (Some((_, class)), _) => *class,
            (None, Some(true)) => Self::HardDisk,
            (None, Some(false)) => Self::Ssd,
            (None, None) => Self::Untold,
        }
    }

    /// The class in words: `hard disk`.
    pub fn words(self) -> &'static str {
        match self {
            Self::HardDisk => "hard disk",
            Self::Ssd => "SSD",
            Self::Nvme => "NVMe SSD",
            Self::Card => "memory card",
            Self::Virtual => "virtual disk",
            Self::Untold => "drive",
        }
    }
}

/// A drive as its system tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriveTold {
    /// Class, which says how fast it can be.
    pub class: DriveClass,
    /// Its model; `None` if it tells none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its size, bytes; `None` if it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

impl DriveTold {
    /// Class and model: `NVMe SSD ACME 900`; the class alone where no model is told.
    pub fn words(&self) -> String {
        match &self.model {
            Some(model) => format!("{} {model}", self.class.words()),
            None => self.class.words().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Fact;
    use super::*;

    #[test]
    fn the_class_of_a_drive_follows_from_its_name_and_from_whether_it_turns() {
        for (device, rotational, class) in [
            ("nvme0n1", Some(false), DriveClass::Nvme),
            ("sda", Some(true), DriveClass::HardDisk),
            ("sda", Some(false), DriveClass::Ssd),
            ("sda", None, DriveClass::Untold),
            // Drives of virtual machines say that they turn, whatever they lie on.
            ("vda", Some(true), DriveClass::Virtual),
            ("mmcblk0", Some(false), DriveClass::Card),
        ] {
            assert_eq!(DriveClass::of(device, rotational), class, "{device}");
        }
    }

    #[test]
    fn a_drive_is_known_from_a_log_of_before_it_was_kept_as_a_value() {
        let read = |name: &str, value: &str| {
            let line = serde_json::json!({ "name": name, "value": value });
            serde_json::from_value::<Fact>(line).unwrap().drive
        };
        let words = "model ACME 900, 1 TiB, logical sector 512 B, scheduler none, not rotational";
        let told = read("disk sda", words).unwrap();
        assert_eq!(told.words(), "SSD ACME 900");
        assert_eq!(told.bytes, Some(1 << 40));
        let turns = read("disk sdb on far", "4 TiB, rotational, cache write back").unwrap();
        assert_eq!(turns.words(), "hard disk");
        assert_eq!(read("disks", words), None);
        assert_eq!(read("model", "ACME 900"), None);
    }

    #[test]
    fn a_drive_is_read_back_as_it_was_kept() {
        let drive = DriveTold {
            class: DriveClass::Nvme,
            model: Some("A, B".to_owned()),
            bytes: None,
        };
        let fact = Fact::new("disk nvme0n1", "model A, B").of_drive(drive.clone());
        let text = serde_json::to_string(&fact).unwrap();
        let read: Fact = serde_json::from_str(&text).unwrap();
        assert_eq!(read.drive, Some(drive));
        let newer = text.replace("\"nvme\"", "\"cxl\"");
        let read: Fact = serde_json::from_str(&newer).unwrap();
        assert_eq!(read.drive.unwrap().class, DriveClass::Untold);
    }
}
