//! A refusal shown at its place in the study's text.

use std::fmt;
use std::sync::{Arc, OnceLock};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use stackrace_base::setting::{Refusal, Span};

/// Messages shown at once; what is behind them is mostly their echo.
pub(super) const ERRORS_MAX: usize = 20;

/// Widest source line that is shown whole; least that an excerpt is drawn in.
const COLUMNS: usize = 80;
const COLUMNS_LEAST: usize = 30;

/// Columns of the terminal that errors go to; unset: those of a page.
// Refusals are rendered where nothing is known of terminals.
static TERMINAL: OnceLock<usize> = OnceLock::new();

/// Has excerpts of studies fit into a terminal of so many columns; a second call changes nothing.
pub fn excerpts_fit(columns: usize) {
    let _ = TERMINAL.set(columns);
}

/// Columns of an excerpt on a terminal of so many.
fn drawn(columns: usize) -> usize {
    columns.clamp(COLUMNS_LEAST, COLUMNS)
}

/// A refusal and the levels that brought it about.
pub(super) type LevelRefusal = (Refusal, Vec<(Span, String)>);

/// Reason why a study is refused, and where in its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyError {
    file: Arc<str>,
    text: Arc<str>,
    /// The mistake, with its place and advice.
    pub refusal: Refusal,
    /// Other places that belong to it, and why.
    pub context: Vec<(Span, String)>,
    /// The word that it is about, behind those of the tables around it (`decide`, `margin`), of a study that was made:
    /// its user knows what was asked for, and not the text.
    pub words: Vec<String>,
}

impl StudyError {
    /// An error in `file`, which reads `text`. Spans that do not fit the text are moved to the
    /// nearest place that does.
    pub(super) fn new(
        file: &Arc<str>,
        text: &Arc<str>,
        refusal: Refusal,
        context: Vec<(Span, String)>,
    ) -> Self {
        let refusal = Refusal {
            // The crate that draws the snippet panics at a place outside the text or inside of a
            // letter.
            span: refusal.span.map(|span| within(&span, text)),
            ..refusal
        };
        let context = context
            .into_iter()
            .map(|(span, label)| (within(&span, text), label))
            .collect();
        Self {
            file: file.clone(),
            text: text.clone(),
            refusal,
            context,
            words: Vec::new(),
        }
    }

    /// The message with the lines it is about, its advice in one line; `styled`: with colours.
    pub fn render(&self, styled: bool) -> String {
        let renderer = if styled {
            Renderer::styled()
        } else {
            Renderer::plain()
        }
        .term_width(drawn(*TERMINAL.get().unwrap_or(&COLUMNS)));
        let title = Level::ERROR.primary_title(self.refusal.message.as_str());
        let mut group = match &self.refusal.span {
            None => title.element(annotate_snippets::Origin::path(&*self.file)),
            Some(span) => {
                let mut snippet = Snippet::source(&*self.text)
                    .path(&*self.file)
                    .annotation(AnnotationKind::Primary.span(span.clone()));
                for (place, label) in &self.context {
                    snippet = snippet.annotation(
                        AnnotationKind::Context
                            .span(place.clone())
                            .label(label.as_str()),
                    );
                }
                title.element(snippet)
            }
        };
        if !self.refusal.help.is_empty() {
            group = group.element(Level::HELP.message(self.refusal.help.as_str()));
        }
        renderer.render(&[group])
    }
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

fn within(span: &Span, text: &str) -> Span {
    let start = text.floor_char_boundary(span.start.min(text.len()));
    let end = text.ceil_char_boundary(span.end.min(text.len()));
    start..end.max(start)
}

/// What was found wrong with a study of this name and text: in the order of the text, and no more than
/// a reader takes in.
pub(super) fn listed(name: &str, text: &str, mut findings: Vec<LevelRefusal>) -> Vec<StudyError> {
    let (file, text): (Arc<str>, Arc<str>) = (name.into(), text.into());
    // Checks run in the order of their needs; a user reads a file from top to bottom.
    findings.sort_by_key(|(refusal, _)| refusal.span.as_ref().map(|span| span.start));
    let more = findings.len().saturating_sub(ERRORS_MAX);
    findings.truncate(ERRORS_MAX);
    // The number of the others says how far the reader is.
    if more > 0 {
        let refusal = Refusal {
            span: None,
            message: format!("and {more} more"),
            help: "correct these first".to_owned(),
        };
        findings.push((refusal, Vec::new()));
    }
    let errors = findings.into_iter();
    errors
        .map(|(refusal, context)| StudyError::new(&file, &text, refusal, context))
        .collect()
}
