//! Why a stack could not be set up, settled or torn down.

use stackrace_base::event::{FailureCause, again};
use stackrace_machine::host::HostError;
use stackrace_machine::journal::JournalError;
use std::fmt;

/// The reason why one layer could not do its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayerError {
    /// The machine refused a command or a file.
    Host(HostError),
    /// The journal could not be written: nothing was created.
    Journal(JournalError),
    /// The layer itself refused.
    Refused {
        /// The error, in one clause that begins in lower case.
        message: String,
        /// Advice: one sentence that begins with a verb; empty if there is nothing helpful.
        next: String,
    },
}

impl LayerError {
    /// A refusal by the layer itself: `message` and `next` as [`Self::Refused`] has them.
    pub fn refused(message: impl Into<String>, next: impl Into<String>) -> Self {
        Self::Refused {
            message: message.into(),
            next: next.into(),
        }
    }
}

impl LayerError {
    /// Advice to the user about it; empty if there is nothing better than what the system said.
    pub fn next(&self) -> String {
        match self {
            Self::Host(error) => error.next(),
            Self::Journal(error) => error.next(),
            Self::Refused { next, .. } => next.clone(),
        }
    }
}

impl LayerError {
    /// Its cause as a value of the system's; `None` if that is none.
    pub fn cause(&self) -> Option<FailureCause> {
        match self {
            Self::Host(error) => error.cause(),
            // The store's disk, which is none of the configuration's.
            Self::Journal(_) | Self::Refused { .. } => None,
        }
    }
}

impl From<HostError> for LayerError {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

impl From<JournalError> for LayerError {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

impl fmt::Display for LayerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(error) => error.fmt(f),
            Self::Journal(error) => error.fmt(f),
            Self::Refused { message, .. } => f.write_str(message),
        }
    }
}

/// The reason why a stack could not be set up, settled or torn down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackError {
    /// The layer, from 0 at the bottom; `None` means the stack as a whole.
    pub layer: Option<usize>,
    /// Kind of that layer; `stack` for the whole.
    pub kind: String,
    /// The error of the layer.
    pub cause: Box<LayerError>,
    /// Things that could not be undone, each with why; they stay in the journal.
    pub left: Vec<String>,
}

impl StackError {
    /// An error of the stack as a whole, which no single layer is to blame for; nothing was left behind.
    pub fn whole(cause: impl Into<LayerError>) -> Self {
        Self {
            layer: None,
            kind: "stack".to_string(),
            cause: Box::new(cause.into()),
            left: Vec::new(),
        }
    }

    /// Advice to the user about it; empty if there is nothing better than what the system said.
    pub fn next(&self) -> String {
        // First what is left behind: it may keep any other stack from being set up.
        if !self.left.is_empty() {
            return format!("end what holds it, then run: {}", again(&["clean"]));
        }
        self.cause.next()
    }
}

impl fmt::Display for StackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.cause)?;
        for left in &self.left {
            write!(f, "; left behind: {left}")?;
        }
        Ok(())
    }
}

impl std::error::Error for StackError {}
