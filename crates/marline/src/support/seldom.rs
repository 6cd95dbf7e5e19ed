//! Log lines that somebody else can cause: a few at once, one a minute after that, and a count of
//! those left out.

use crate::support::lock;
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// Lines that may follow each other at once: enough for the beginning and the end of two events.
const BURST: u32 = 4;
/// The time after which one more may be written.
const PAUSE: Duration = Duration::from_secs(60);

/// Bounds the lines of one kind.
#[derive(Debug)]
pub struct Seldom(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Lines that may be written at once, as of `since`.
    left: u32,
    since: Instant,
    left_out: u64,
}

/// Lines of the kind that were not written since the last one that was; shown behind the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut(u64);

impl Default for Seldom {
    fn default() -> Self {
        Seldom(Mutex::new(State {
            left: BURST,
            since: Instant::now(),
            left_out: 0,
        }))
    }
}

impl Seldom {
    /// Writes a line with `write`, or counts it.
    pub fn say(&self, write: impl FnOnce(LeftOut)) {
        if let Some(left_out) = lock(&self.0).take(Instant::now()) {
            write(left_out);
        }
    }
}

impl State {
    fn take(&mut self, now: Instant) -> Option<LeftOut> {
        let pauses = now.duration_since(self.since).as_secs() / PAUSE.as_secs();
        if pauses > 0 {
            let more = u32::try_from(pauses).unwrap_or(u32::MAX);
            self.left = self.left.saturating_add(more).min(BURST);
            self.since += PAUSE * more;
        }
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Some(LeftOut(std::mem::take(&mut self.left_out)))
            }
            None => {
                self.left_out += 1;
                None
            }
        }
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            count => write!(f, " (and {count} more like it)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_a_few_lines_and_one_a_minute_with_a_count() {
        let seldom = Seldom::default();
        let mut lines = Vec::new();
        for _ in 0..10_000 {
            seldom.say(|left_out| lines.push(left_out.to_string()));
        }
        assert_eq!(lines, ["", "", "", ""]);
        advance(PAUSE).await;
        for _ in 0..10 {
            seldom.say(|left_out| lines.push(left_out.to_string()));
        }
        assert_eq!(lines[4..], [" (and 9996 more like it)"]);
        // After an hour there is no more than at the beginning.
        advance(60 * PAUSE).await;
        for _ in 0..10 {
            seldom.say(|left_out| lines.push(left_out.to_string()));
        }
        assert_eq!(lines[5..], [" (and 9 more like it)", "", "", ""]);
    }
}
