//! Why a trace is refused.

/// Why a trace cannot be read or written. Each says what is wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The first bytes are not those of a trace.
    #[error("it is no trace of stackrace: its first bytes differ")]
    NoTrace,
    /// A trace of another version.
    #[error("its format is version {found}, and this program reads version {known} and older")]
    Version {
        /// That of the file.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// The file ends too early.
    #[error("it ends in the middle: the recorder was killed, or the file was cut off")]
    CutOff,
    /// Something stands behind the end.
    #[error("it goes on behind its end: something was appended to it")]
    GoesOn,
    /// A part differs from its check sum.
    #[error("part {0} is damaged: its BLAKE3 sum differs")]
    Damaged(u64),
    /// What a part says cannot be.
    #[error("part {part} cannot be: {why}")]
    Impossible {
        /// The part, counted from 0.
        part: u64,
        /// What cannot be.
        why: String,
    },
    /// The system could not read or write.
    #[error("{0}")]
    System(#[from] std::io::Error),
}
