//! What went wrong, for the user: what was tried, what to do next, and of what kind it is.

/// The exit code of what was interrupted.
pub const INTERRUPTED: u8 = 130;

/// Advice where the system starts neither a thread nor a process any more.
pub const THREADS: &str = "raise the limit on processes (ulimit -u; in a container its pids limit), or end other processes of this user";

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

/// The line that says what to do, behind so many blanks; empty where there is no advice.
pub fn next_line(blanks: usize, next: &str) -> String {
    match next {
        "" => String::new(),
        next => format!("{:blanks$}next: {next}\n", ""),
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

    /// Returns true if it says what to do.
    pub fn is_advised(&self) -> bool {
        !self.next.is_empty()
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
        text.push_str(&next_line(2, &self.next));
        // Another machine that refused has written this line itself.
        if self.exit_code() == FailureKind::Refused.exit_code() && !text.ends_with(UNCHANGED) {
            text.push_str(UNCHANGED);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_advice_is_no_line() {
        assert_eq!(next_line(2, ""), "");
        assert_eq!(next_line(2, "try again"), "  next: try again\n");
        assert_eq!(Failure::internal("broken").render(), "error: broken\n");
    }
}
