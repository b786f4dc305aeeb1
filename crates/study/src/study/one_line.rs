//! Names that a study gives: each stays on one line, wherever it is shown.

use stackrace_base::setting::{Refusal, Span};

/// Line breaks, of whatever system.
const BREAKS: [char; 7] = [
    '\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}',
];

/// Refuses a name that holds a line break or a tab; `what` names it in a sentence. Other characters that are no text are
/// shown as signs.
pub(super) fn check(name: &str, what: &str, span: &Span) -> Result<(), Refusal> {
    let letter = match (name.contains(BREAKS), name.contains('\t')) {
        (true, _) => "a line break",
        (false, true) => "a tab",
        (false, false) => return Ok(()),
    };
    let message = format!("{what} holds {letter}, and stands on one line in every table");
    Err(Refusal::at(span, message, "write blanks there"))
}
