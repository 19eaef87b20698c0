//! The terminal itself: raw mode, its size, and painting what has changed.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
};

use anyhow::Context as _;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use super::{
    text::Line,
    view::{Frame, Size},
};

/// Another screen, no cursor, no wrapping, and pastes marked as such.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h\x1b[2J";
const LEAVE: &str = "\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[0m\x1b[?1049l";

/// A terminal in raw mode; dropping it puts everything back.
pub(super) struct Screen {
    before: Termios,
    painted: Vec<Line>,
    has_colours: bool,
}

impl Screen {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// When stdin is none, or cannot be switched.
    pub(super) fn enter(has_colours: bool) -> anyhow::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin).context("the terminal's settings cannot be read")?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&stdin, OptionalActions::Now, &raw)
            .context("the terminal cannot be switched to single keys")?;
        let screen = Self { before, painted: Vec::new(), has_colours };
        write(ENTER)?;
        Ok(screen)
    }

    /// Its size; a usual one where it does not tell.
    pub(super) fn size() -> Size {
        let told = tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
        told.map_or(Size { columns: 80, rows: 24 }, |size| Size {
            columns: usize::from(size.ws_col),
            rows: usize::from(size.ws_row),
        })
    }

    /// Forgets what is on it, so that everything is painted anew.
    pub(super) fn clear(&mut self) {
        self.painted.clear();
    }

    /// Paints a frame: the lines that have changed.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(super) fn paint(&mut self, frame: &Frame) -> io::Result<()> {
        let mut text = String::from("\x1b[?2026h\x1b[?25l");
        if self.painted.len() != frame.lines.len() {
            self.painted.clear();
            text += "\x1b[2J";
        }
        for (row, line) in frame.lines.iter().enumerate() {
            if self.painted.get(row) != Some(line) {
                // Writing to a string cannot fail.
                let _ = write!(text, "\x1b[{};1H{}\x1b[K", row + 1, line.written(self.has_colours));
            }
        }
        if let Some((column, row)) = frame.cursor {
            // Writing to a string cannot fail.
            let _ = write!(text, "\x1b[{};{}H\x1b[?25h", row + 1, column + 1);
        }
        text += "\x1b[?2026l";
        write(&text)?;
        self.painted.clone_from(&frame.lines);
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nothing is left to be done where it fails: the terminal is gone.
        let _ = write(LEAVE);
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.before);
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
