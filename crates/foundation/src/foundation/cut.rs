//! What a power cut hits where a stack stands on two machines.

/// The part that loses its power, or its line, in a cut of a study with `[crash]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CutOf {
    /// Every machine of the stack, at the same instant.
    #[default]
    Machines,
    /// This machine alone; the peer keeps its power.
    This {
        /// Time for which a packet is on the way to the peer, ns: what had left arrives all the same.
        on_the_way_ns: u64,
    },
    /// The line between the machines: both keep their power, and nothing on the way arrives.
    Line,
}

impl CutOf {
    /// Time until which a drive that keeps its power goes on doing what it was asked because of
    /// what had happened before the cut, ns after the cut; `None` if it is cut, too.
    pub fn goes_on_for(self, drive_of_peer: bool) -> Option<u64> {
        match self {
            Self::Machines => None,
            Self::This { on_the_way_ns } => drive_of_peer.then_some(on_the_way_ns),
            Self::Line => Some(0),
        }
    }

    /// Its word in a record.
    pub fn word(self) -> &'static str {
        match self {
            Self::Machines => "all machines",
            Self::This { .. } => "this machine",
            Self::Line => "the line",
        }
    }
}
