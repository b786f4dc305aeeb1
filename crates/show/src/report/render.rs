//! A page that is no report of a run, in the form its reader asked for.

use super::screen::Screen;
use super::sheet::Sheet;
use super::{markdown, terminal};

/// The page as Markdown where `form` is `markdown`, else as text for a terminal.
pub(super) fn render(sheet: &Sheet, form: &str, screen: Screen) -> String {
    match form {
        "markdown" => markdown::sheet(sheet),
        _ => terminal::sheet(sheet, screen),
    }
}
