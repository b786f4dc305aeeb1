//! Where an option of fio stands, and why a job is refused.

/// Place of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionPlace {
    /// In a job file.
    Line {
        /// Name of the file, as it was given.
        file: String,
        /// Number of the line, from 1.
        line: usize,
    },
    /// On the command line.
    Argument,
}

/// Reason why a job cannot be done as it is written; nothing was touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobError {
    /// The section and line it stands in.
    pub place: OptionPlace,
    /// The mistake there.
    pub what: String,
    /// Advice for the user: it begins with a verb.
    pub next: String,
}

impl JobError {
    /// A refusal of what stands at a place.
    pub fn at(place: &OptionPlace, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            place: place.clone(),
            what: what.into(),
            next: next.into(),
        }
    }
}

impl std::fmt::Display for JobError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            OptionPlace::Line { file, line } => write!(f, "{file}:{line}: {}", self.what),
            OptionPlace::Argument => write!(f, "command line: {}", self.what),
        }
    }
}
