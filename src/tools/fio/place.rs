//! Where an option of fio stands, and why a job is refused.

/// Where an option stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a job file.
    Line {
        /// As it was named.
        file: String,
        /// From 1.
        line: usize,
    },
    /// On the command line.
    Argument,
}

/// Why a job cannot be done as it is written; nothing was touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Where.
    pub(crate) place: Place,
    /// What is wrong there.
    pub(crate) what: String,
    /// What to do.
    pub(crate) next: String,
}

impl Refusal {
    /// A refusal of what stands at a place.
    pub(crate) fn at(place: &Place, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            place: place.clone(),
            what: what.into(),
            next: next.into(),
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            Place::Line { file, line } => write!(f, "{file}:{line}: {}", self.what),
            Place::Argument => write!(f, "command line: {}", self.what),
        }
    }
}
