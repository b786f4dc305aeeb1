//! What went wrong, for the user: what was tried, what to do next, and of what kind it is.

/// The exit code of what was interrupted.
pub const INTERRUPTED: u8 = 130;

/// Ends a refusal.
const UNCHANGED: &str = "nothing was changed\n";

/// Kind of a failure; each has an exit code of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The program cannot go on, through no fault of the command line.
    Internal,
    /// The command line makes no sense.
    Usage,
    /// Refused before anything was touched.
    Refused,
    /// This machine cannot do it: it lacks rights, a tool or a kernel module.
    Unable,
    /// A trial did not end, or ended with an error.
    TrialFailed,
    /// The program on another machine ended with this exit code.
    Remote(u8),
}

impl FailureKind {
    /// The exit code it is reported with.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Internal => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Unable => 4,
            Self::TrialFailed => 5,
            // Scripts see the same exit code wherever the study runs.
            Self::Remote(code) => code,
        }
    }
}

/// A failure, and what to do next.
#[derive(Debug)]
pub struct Failure {
    kind: FailureKind,
    text: String,
    next: String,
}

impl Failure {
    /// A failure of a kind.
    pub fn new(kind: FailureKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
            next: String::new(),
        }
    }

    /// The command line makes no sense.
    pub fn usage(text: impl Into<String>) -> Self {
        Self::new(FailureKind::Usage, text)
    }

    /// Refused before anything was touched.
    pub fn refused(text: impl Into<String>) -> Self {
        Self::new(FailureKind::Refused, text)
    }

    /// A failure because this machine cannot do it.
    pub fn unable(text: impl Into<String>) -> Self {
        Self::new(FailureKind::Unable, text)
    }

    /// A trial did not end, or ended with an error.
    pub fn trial(text: impl Into<String>) -> Self {
        Self::new(FailureKind::TrialFailed, text)
    }

    /// The program cannot go on.
    pub fn internal(text: impl Into<String>) -> Self {
        Self::new(FailureKind::Internal, text)
    }

    /// Adds what to do.
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = next.into();
        self
    }

    /// The exit code it is reported with.
    pub fn exit_code(&self) -> u8 {
        self.kind.exit_code()
    }

    /// Error text, and what to do.
    pub fn into_parts(self) -> (String, String) {
        (self.text, self.next)
    }

    /// The text as it is printed.
    pub fn render(&self) -> String {
        // A refused study is rendered already, with its lines and carets.
        let mut text = if self.text.starts_with("error") {
            self.text.clone()
        } else {
            format!("error: {}", self.text)
        };
        if !text.ends_with('\n') {
            text.push('\n');
        }
        if !self.next.is_empty() {
            text.push_str(&format!("  next: {}\n", self.next));
        }
        // Another machine that refused has written this line itself.
        if self.exit_code() == FailureKind::Refused.exit_code() && !text.ends_with(UNCHANGED) {
            text.push_str(UNCHANGED);
        }
        text
    }
}
