use crate::outage::Cursor;
use marline_base::{Instant, Rate};

/// A constant rate behind a token bucket, as `tc-tbf` and most shapers and policers have it
/// (RFC 2697 §3): after silence, as much as the bucket holds passes at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bucket {
    /// In the long run, at least 1 kbit/s.
    pub rate: Rate,
    /// Bytes that pass at once, at least one.
    pub depth: u64,
}

/// [`Bucket`] at work; full at the start.
#[derive(Clone, Debug)]
pub(super) struct Tokens {
    bucket: Bucket,
    /// Bytes that may pass at once as of `at`.
    left: u64,
    at: Instant,
}

impl Tokens {
    pub(super) const fn new(bucket: Bucket) -> Self {
        Self {
            bucket,
            left: bucket.depth,
            at: Instant::ZERO,
        }
    }

    /// When a packet of `size` bytes has left that is taken up at `start`.
    pub(super) fn take(&mut self, start: Instant, size: u32, dark: &mut Cursor) -> Instant {
        let Bucket { rate, depth } = self.bucket;
        let earned = rate.bytes_in(start.since(self.at));
        let size = u64::from(size);
        self.left = self.left.saturating_add(earned).min(depth);
        let short = size.saturating_sub(self.left);
        self.left = self.left.saturating_sub(size);
        self.at = dark.after(start, rate.time_for(short));
        self.at
    }
}
