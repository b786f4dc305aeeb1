//! The lab, as a command line or a log asks for it.

use stackrace_base::event::LabGuests;

/// The lab, as the command line asks for it.
#[derive(Debug, Clone, Copy)]
pub struct LabOptions<'a> {
    /// System of its machines; none: the default, or those of the study.
    pub system: Option<&'a str>,
    /// Memory of each machine, bytes.
    pub memory_bytes: u64,
    /// Whether the clock is virtual.
    pub virtual_time: bool,
    /// How many guests in virtual time run side by side; none: one for each processor.
    pub jobs: Option<usize>,
}

impl LabOptions<'_> {
    /// What a log keeps of them.
    pub fn on_record(&self) -> LabGuests {
        LabGuests {
            system: self.system.map(str::to_owned),
            memory_bytes: self.memory_bytes,
        }
    }
}
