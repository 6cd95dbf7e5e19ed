//! One line at the bottom of a terminal that is rewritten again and again, above which logs appear.

use crate::platform::terminal_width;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Back to the first column, and whatever stands there gone.
const CLEAR: &str = "\r\x1b[K";

static SHOWN: Mutex<String> = Mutex::new(String::new());

fn shown() -> MutexGuard<'static, String> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Is there a terminal whose last line can be kept?
pub(super) fn possible() -> bool {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stderr().is_terminal() && !dumb
}

/// Shows `text`, cut to the terminal's width, instead of what the line showed.
pub(super) fn show(text: &str) {
    let width = terminal_width(&io::stderr()).unwrap_or(80);
    let mut shown = shown();
    *shown = text.chars().take(width.saturating_sub(1)).collect();
    // A terminal that is gone takes no line; the program goes on without.
    let _ = write!(io::stderr(), "{CLEAR}{shown}");
}

/// Takes the line away.
pub(super) fn clear() {
    let mut shown = shown();
    if !shown.is_empty() {
        shown.clear();
        let _ = write!(io::stderr(), "{CLEAR}");
    }
}

/// Standard error for logs, which stand above the line.
#[derive(Debug)]
pub(super) struct Logs;

impl Write for Logs {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.write_all(text)?;
        Ok(text.len())
    }

    fn write_all(&mut self, text: &[u8]) -> io::Result<()> {
        let shown = shown();
        let mut stderr = io::stderr().lock();
        if shown.is_empty() {
            return stderr.write_all(text);
        }
        stderr.write_all(CLEAR.as_bytes())?;
        stderr.write_all(text)?;
        stderr.write_all(shown.as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
