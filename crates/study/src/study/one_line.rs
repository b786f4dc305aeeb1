//! Names that a study gives: each stays on one line, wherever it is shown, and commands no terminal.

use stackrace_base::setting::{Refusal, Span};

/// Refuses a name that holds a line break, a tab or another control character; `what` names it in a sentence.
pub(super) fn check(name: &str, what: &str, span: &Span) -> Result<(), Refusal> {
    // Both are line breaks too, and no control characters.
    let breaks = |letter: char| letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}');
    let Some(letter) = name.chars().find(|letter| breaks(*letter)) else {
        return Ok(());
    };
    let letter = match letter {
        '\n' | '\r' | '\u{2028}' | '\u{2029}' => "a line break".to_owned(),
        '\t' => "a tab".to_owned(),
        other => format!("the control character U+{:04X}", u32::from(other)),
    };
    let message = format!("{what} holds {letter}, and stands on one line in every table");
    Err(Refusal::at(span, message, "write blanks there"))
}
