//! How far a path is filled ahead of its share.

use marline_base::{Duration, Instant};

use crate::sched::per_path::PerPath;
use crate::wire::PathId;

/// So much of a share may be ahead: what was sent before a change is forgotten then.
const MOST: Duration = Duration::from_millis(100);

/// Bytes that a path took beyond its share.
#[derive(Debug)]
struct Ahead {
    bytes: f64,
    at: Instant,
}

/// A queue as it would stand on each path if that served no more than its share. Of one whose delay
/// varies nobody sees the real one before it has grown.
#[derive(Debug, Default)]
pub(super) struct Shares(PerPath<Ahead>);

impl Shares {
    /// Bytes that the path has taken beyond its share (bytes/µs).
    pub(super) fn ahead(&mut self, now: Instant, path: PathId, share: f64) -> f64 {
        let Some(ahead) = self.0.get_mut(path) else {
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
        let none = || Ahead {
            bytes: 0.0,
            at: now,
        };
        self.0.of(path, none).bytes += f64::from(len);
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
}
