//! The format in which a guest sends the log of its drives before a power cut: a head in JSON,
//! then the data of all writes.

use serde::{Deserialize, Serialize};
use stackrace_drives::power::Logged;
use stackrace_drives::{Operation, Request, SECTOR};
use stackrace_ublk::DeviceLog;
use std::sync::Arc;

use super::told::LedgerStream;
use stackrace_base::event::Promised;
use stackrace_machine::host::drives;

/// The drives of a stack with all that was written to them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capture {
    /// Mark under which the stack was set up.
    pub mark: String,
    /// Every drive that this guest was served.
    pub drives: Vec<DriveCapture>,
}

impl Capture {
    /// Captures what the drives of this guest were told to write until now.
    pub fn now(mark: &str) -> Self {
        let drives = drives::logs().into_iter();
        Self {
            mark: mark.to_owned(),
            drives: drives
                .map(|(serial, log)| DriveCapture { serial, log })
                .collect(),
        }
    }
}

/// A drive, and all that was written to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriveCapture {
    /// Serial number as the guest names it.
    pub serial: String,
    /// Log of what was written to it.
    pub log: DeviceLog,
}

/// Data that a fresh guest needs to bring a stack back and to check promises.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CrashPackage {
    /// The ledgers, one for each trial of the turn.
    pub promised: Vec<Promised>,
    /// Writes that the drives were told to do.
    pub capture: Capture,
}

/// The part of power cuts in a guest: before them, or after.
#[derive(Default)]
pub struct CrashSide {
    /// Package for a guest whose power was cut; `None` if this is no such guest.
    pub package: Option<CrashPackage>,
    /// Writes that the drives of the last turn were told to do, where the study cuts their power.
    pub captured: Option<Capture>,
    /// Stream to which the ledger goes while it grows; `None` if the power of this machine is not really cut.
    pub told: Option<Arc<LedgerStream>>,
    /// True if it goes there in the turn under way.
    pub telling: bool,
}

/// Head that stands in front of the data.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Head {
    mark: String,
    drives: Vec<DriveHead>,
    promised: Vec<Promised>,
}

#[derive(Debug, Serialize, Deserialize)]
struct DriveHead {
    serial: String,
    entries: Vec<EntryHead>,
}

/// Operation, first sector, sectors, submitted, completed, and whether data follow (else zeros).
#[derive(Debug, Serialize, Deserialize)]
struct EntryHead(u8, u64, u32, u64, Option<u64>, bool);

impl CrashPackage {
    /// The package as it is sent to the fresh guest.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut data = Vec::new();
        let drives = self.capture.drives.iter().map(|drive| DriveHead {
            serial: drive.serial.clone(),
            entries: drive
                .log
                .entries
                .iter()
                .zip(&drive.log.contents)
                .map(|(entry, content)| {
                    data.extend_from_slice(content);
                    EntryHead(
                        word(entry.request.operation),
                        entry.request.first,
                        entry.request.sectors,
                        entry.submitted,
                        entry.completed,
                        !content.is_empty(),
                    )
                })
                .collect(),
        });
        let head = Head {
            drives: drives.collect(),
            mark: self.capture.mark.clone(),
            promised: self.promised.clone(),
        };
        // Plain numbers and texts: there is nothing in it that JSON could not hold.
        let head = serde_json::to_vec(&head).unwrap_or_default();
        let mut bytes = (head.len() as u64).to_le_bytes().to_vec();
        bytes.extend(head);
        bytes.extend(data);
        bytes
    }

    /// Reads what [`CrashPackage::to_bytes`] wrote.
    ///
    /// # Errors
    /// It is something else, or a part of it is missing.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, String> {
        let short = || "what came out of the guest is not whole".to_owned();
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(short)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let (head, mut data) = rest.split_at_checked(length).ok_or_else(short)?;
        let head: Head = serde_json::from_slice(head).map_err(|error| error.to_string())?;
        let mut drives = Vec::new();
        for drive in head.drives {
            let mut log = DeviceLog::default();
            for entry in drive.entries {
                let length = u64::from(entry.2) * SECTOR;
                let length = if entry.5 { length as usize } else { 0 };
                let (content, after) = data.split_at_checked(length).ok_or_else(short)?;
                data = after;
                log.contents.push(Arc::from(content));
                log.entries.push(logged(&entry)?);
            }
            let serial = drive.serial;
            drives.push(DriveCapture { serial, log });
        }
        let capture = Capture {
            mark: head.mark,
            drives,
        };
        let promised = head.promised;
        Ok(Self { promised, capture })
    }
}

fn word(operation: Operation) -> u8 {
    match operation {
        Operation::Write { durable: false } => 0,
        Operation::Write { durable: true } => 1,
        // A log holds nothing else.
        Operation::Flush | Operation::Read | Operation::Discard => 2,
    }
}

fn logged(entry: &EntryHead) -> Result<Logged, String> {
    let operation = match entry.0 {
        0 => Operation::Write { durable: false },
        1 => Operation::Write { durable: true },
        2 => Operation::Flush,
        other => return Err(format!("a drive is not asked for {other}")),
    };
    Ok(Logged {
        request: Request {
            // Numbers are of use only while a request is under way.
            id: 0,
            operation,
            first: entry.1,
            sectors: entry.2,
        },
        submitted: entry.3,
        completed: entry.4,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package() -> CrashPackage {
        let entry = |operation, first, sectors, completed| Logged {
            request: Request {
                id: 0,
                operation,
                first,
                sectors,
            },
            submitted: 5,
            completed,
        };
        let log = DeviceLog {
            entries: vec![
                entry(Operation::Write { durable: false }, 8, 1, Some(7)),
                entry(Operation::Flush, 0, 0, Some(9)),
                entry(Operation::Write { durable: true }, 9, 2, None),
            ],
            contents: vec![[3; 512].into(), [].into(), [].into()],
        };
        let drive = DriveCapture {
            serial: "disk-1".to_owned(),
            log,
        };
        CrashPackage {
            promised: Vec::new(),
            capture: Capture {
                mark: ".stackrace-0123".to_owned(),
                drives: vec![drive.clone(), drive],
            },
        }
    }

    #[test]
    fn a_package_is_read_as_it_was_written_and_no_part_of_it_is_taken_for_the_whole() {
        let bytes = package().to_bytes();
        assert_eq!(CrashPackage::of_bytes(&bytes).unwrap(), package());
        for end in 0..bytes.len() {
            assert!(CrashPackage::of_bytes(&bytes[..end]).is_err(), "{end}");
        }
    }
}
