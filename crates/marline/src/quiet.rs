//! Log lines that somebody else can cause.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::Instant;

/// The shortest time between two lines.
const APART: Duration = Duration::from_secs(1);

/// At most one line a second, so that strangers cannot fill the disk with log lines.
#[derive(Debug, Default)]
pub(crate) struct QuietLog {
    last: Option<Instant>,
    suppressed: u64,
}

impl QuietLog {
    /// Logs a warning, or counts it.
    pub(crate) fn warn(&mut self, line: &impl Display) {
        match self.due() {
            None => {}
            Some(0) => tracing::warn!("{line}"),
            Some(suppressed) => tracing::warn!("{line} (and {suppressed} others before it)"),
        }
    }

    /// How many lines were suppressed since the last one, when it is time for the next.
    fn due(&mut self) -> Option<u64> {
        let now = Instant::now();
        if self.last.is_some_and(|last| now - last < APART) {
            self.suppressed += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_one_line_a_second_with_a_count() {
        let mut log = QuietLog::default();
        let mut flood = || (0..1_000).filter_map(|_| log.due()).collect::<Vec<_>>();
        assert_eq!(flood(), [0]);
        assert!(flood().is_empty());
        advance(APART).await;
        assert_eq!(flood(), [1_999]);
    }
}
