//! A view that is drawn on standard error, also where the terminal is gone.
//!
//! A run goes on when its terminal is closed (nohup, disown, a connection that is lost). What cannot be drawn then is
//! forgotten: indicatif would keep it, more with each drawing, and panic where it wipes the view.

use std::io::{self, Write};

use indicatif::{MultiProgress, ProgressDrawTarget, TermLike};
use parking_lot::Mutex;
use rustix::termios::{Winsize, tcgetwinsize};

/// Most drawings in a second.
const DRAWINGS: u8 = 20;

/// A view with nothing in it.
pub(super) fn new() -> MultiProgress {
    let terminal = Box::new(FadingTerminal::default());
    MultiProgress::with_draw_target(ProgressDrawTarget::term_like_with_hz(terminal, DRAWINGS))
}

/// The terminal of standard error, and what is to be drawn next on it.
#[derive(Debug, Default)]
struct FadingTerminal {
    next: Mutex<Vec<u8>>,
}

impl FadingTerminal {
    fn add(&self, words: &str) -> io::Result<()> {
        self.next.lock().extend_from_slice(words.as_bytes());
        Ok(())
    }

    /// Moves the cursor (ECMA-48); 0 places would be taken for 1.
    fn moved(&self, places: usize, way: char) -> io::Result<()> {
        match places {
            0 => Ok(()),
            places => self.add(&format!("\x1b[{places}{way}")),
        }
    }

    fn size(&self, of: fn(&Winsize) -> u16, unknown: u16) -> u16 {
        let size = tcgetwinsize(io::stderr());
        size.map(|size| of(&size))
            .ok()
            .filter(|size| *size > 0)
            .unwrap_or(unknown)
    }
}

impl TermLike for FadingTerminal {
    fn width(&self) -> u16 {
        self.size(|size| size.ws_col, 80)
    }

    fn height(&self) -> u16 {
        self.size(|size| size.ws_row, 24)
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.moved(n, 'A')
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.moved(n, 'B')
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.moved(n, 'C')
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.moved(n, 'D')
    }

    fn write_line(&self, words: &str) -> io::Result<()> {
        self.add(words)?;
        self.add("\n")
    }

    fn write_str(&self, words: &str) -> io::Result<()> {
        self.add(words)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.add("\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        let next = std::mem::take(&mut *self.next.lock());
        // Where standard error is closed, there is no other place to report that.
        let _ = io::stderr().write_all(&next);
        Ok(())
    }
}
