//! Where a run is made, as a value of its log.

use serde::{Deserialize, Serialize};

/// Place a run is made at: all that `resume` needs to go on there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunPlace {
    /// A run on this machine.
    Here {
        /// The directory that it was begun in: relative paths of the study mean what they meant there. `None` if it has
        /// no name.
        directory: Option<String>,
    },
    /// A run on other machines over SSH, with this program on them.
    Ssh(OtherMachines),
    /// A run on other machines over SSH that have nothing but a shell.
    Shell(OtherMachines),
    /// A run by several clients of one storage.
    Clients {
        /// The clients as `--clients` named them.
        started: String,
        /// Processes on each of them.
        processes: u32,
    },
    /// A run in guests of the lab, in real time.
    Lab(LabGuests),
    /// A run in guests of the lab, in virtual time.
    Virtual(LabGuests),
    /// A run on a machine over SSH whose power is really cut.
    RealCut(OtherMachines),
}

/// Machines of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherMachines {
    /// The only one, as `--on` named it; `None` for those that the study names, or this one with its peers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Its peers, from number 2 on, each with the address of the line to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<String>,
    /// The directory that it was begun in, where the only machine is this one with its peers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
}

/// Guests of the lab that a run is made in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabGuests {
    /// Their system; `None` for those that the study names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Memory of each of them, bytes.
    pub memory_bytes: u64,
}

impl RunPlace {
    /// The directory that it was begun in, if it is measured on this machine: relative paths of the study mean
    /// what they meant there.
    pub fn directory(&self) -> Option<&str> {
        match self {
            Self::Here { directory } => directory.as_deref(),
            Self::Ssh(there) | Self::Shell(there) | Self::RealCut(there) => {
                there.directory.as_deref()
            }
            Self::Clients { .. } | Self::Lab(_) | Self::Virtual(_) => None,
        }
    }

    /// Returns true if its clock is simulated.
    pub fn in_virtual_time(&self) -> bool {
        matches!(self, Self::Virtual(_))
    }
}
