//! How far a path is filled ahead of its share.

use marline_base::{Duration, Instant};
use smallvec::SmallVec;

use crate::wire::PathId;

/// Paths that are remembered: those that were used first are forgotten.
const MOST_PATHS: usize = 16;
/// So much of a share may be ahead: what was sent before a change is forgotten then.
const MOST: Duration = Duration::from_millis(100);

/// Bytes that a path took beyond its share.
#[derive(Debug)]
struct Ahead {
    path: PathId,
    bytes: f64,
    at: Instant,
}

/// A queue as it would stand on each path if that served no more than its share. Of one whose delay
/// varies nobody sees the real one before it has grown.
#[derive(Debug, Default)]
pub(super) struct Shares(SmallVec<[Ahead; 4]>);

impl Shares {
    /// Bytes that the path has taken beyond its share (bytes/µs).
    pub(super) fn ahead(&mut self, now: Instant, path: PathId, share: f64) -> f64 {
        let Some(ahead) = self.0.iter_mut().find(|ahead| ahead.path == path) else {
            return 0.0;
        };
        let most = share * 1e6 * MOST.as_secs_f64();
        let passed = 1e6 * now.since(ahead.at).as_secs_f64();
        ahead.bytes = (ahead.bytes - share * passed).clamp(0.0, most);
        ahead.at = now;
        ahead.bytes
    }

    /// The path takes so many bytes more.
    pub(super) fn took(&mut self, now: Instant, path: PathId, len: u32) {
        let len = f64::from(len);
        if let Some(ahead) = self.0.iter_mut().find(|ahead| ahead.path == path) {
            ahead.bytes += len;
            return;
        }
        if self.0.len() >= MOST_PATHS {
            self.0.remove(0);
        }
        self.0.push(Ahead {
            path,
            bytes: len,
            at: now,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: f64 = 0.5;

    #[test]
    fn what_a_path_takes_beyond_its_share_is_ahead() {
        let mut shares = Shares::default();
        let at = Instant::from_millis;
        let path = PathId(1);
        assert_eq!(shares.ahead(at(0), path, SHARE), 0.0);
        shares.took(at(0), path, 1_200);
        shares.took(at(1), PathId(2), 700);
        // 500 bytes in a millisecond.
        assert_eq!(shares.ahead(at(1), path, SHARE), 700.0);
        shares.took(at(1), path, 1_200);
        assert_eq!(shares.ahead(at(2), path, SHARE), 1_400.0);
        assert_eq!(shares.ahead(at(2), path, SHARE), 1_400.0);
        assert_eq!(shares.ahead(at(9), path, SHARE), 0.0);
        shares.took(at(10), path, 1_200);
        assert_eq!(
            shares.ahead(at(10), path, SHARE),
            700.0,
            "unused, it is lost"
        );
        assert_eq!(shares.ahead(at(2), PathId(2), SHARE), 200.0);
    }

    #[test]
    fn what_was_sent_before_a_change_is_forgotten() {
        let mut shares = Shares::default();
        let path = PathId(1);
        for _ in 0..1_000 {
            shares.took(Instant::ZERO, path, 1_200);
        }
        assert_eq!(shares.ahead(Instant::ZERO, path, SHARE), 50_000.0);
    }

    #[test]
    fn few_paths_are_remembered() {
        let mut shares = Shares::default();
        for path in 0..100 {
            shares.took(Instant::ZERO, PathId(path), 1);
        }
        assert_eq!(shares.0.len(), MOST_PATHS);
        assert_eq!(shares.ahead(Instant::ZERO, PathId(99), SHARE), 1.0);
        assert_eq!(shares.ahead(Instant::ZERO, PathId(0), SHARE), 0.0);
    }
}
