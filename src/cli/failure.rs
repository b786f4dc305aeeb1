//! What went wrong, for the user: what was tried, what to do next, and the exit code.

/// Usage.
pub(super) const USAGE: u8 = 2;
/// Refused; nothing was touched.
pub(super) const REFUSED: u8 = 3;
/// This machine cannot.
pub(super) const CANNOT: u8 = 4;
/// A trial failed.
pub(super) const TRIAL_FAILED: u8 = 5;
/// Undecided (only with `--decide`, and `gate`).
pub(super) const UNDECIDED: u8 = 6;
/// Shown to be worse than allowed (only `gate`).
pub(super) const WORSE: u8 = 7;
/// Interrupted.
pub(super) const INTERRUPTED: u8 = 130;

/// Ends a refusal.
const UNCHANGED: &str = "nothing was changed\n";

/// One failure.
#[derive(Debug)]
pub(super) struct Failure {
    /// The exit code.
    pub(super) code: u8,
    text: String,
    next: String,
}

impl Failure {
    /// With an exit code.
    pub(super) fn new(code: u8, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
            next: String::new(),
        }
    }

    /// The command line makes no sense.
    pub(super) fn usage(text: impl Into<String>) -> Self {
        Self::new(USAGE, text)
    }

    /// Refused before anything was touched.
    pub(super) fn refused(text: impl Into<String>) -> Self {
        Self::new(REFUSED, text)
    }

    /// Something the program cannot mend.
    pub(super) fn internal(text: impl Into<String>) -> Self {
        Self::new(1, text)
    }

    /// Adds what to do.
    pub(super) fn next(mut self, next: impl Into<String>) -> Self {
        self.next = next.into();
        self
    }

    /// As it is printed.
    pub(super) fn render(&self) -> String {
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
        // What another machine refused it has said itself.
        if self.code == REFUSED && !text.ends_with(UNCHANGED) {
            text.push_str(UNCHANGED);
        }
        text
    }
}
