//! A page that is no report of a run, in the form its reader asked for.

use super::screen::Screen;
use super::sheet::Sheet;
use super::styled::Styled;
use super::{markdown, terminal};

/// The page as Markdown where `form` is `markdown`, else as text for a terminal.
pub(super) fn render(sheet: &Sheet, form: &str, screen: Screen) -> Styled {
    match form {
        "markdown" => Styled::from(&markdown::sheet(sheet)),
        _ => terminal::sheet(sheet, screen),
    }
}
