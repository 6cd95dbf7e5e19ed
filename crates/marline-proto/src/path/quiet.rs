//! How long a path in reserve may be quiet before an address translator on it forgets it.
//!
//! A translator keeps a mapping for a time that it does not announce, 30 s or 300 (RFC 4787 asks
//! for 120 s at least in section 4.3, and many do not heed it). What the client sends opens a
//! mapping again and so shows nothing of its age. Only what the server sends, unasked and after the
//! whole quiet time, shows that the mapping has lived for that time. So the client asks its peer
//! for a ping after a quiet time (PATH_QUIET), a longer one each time it is heard.
//!
//! While a longer time is tried, the path may be forgotten and nobody knows. So the client also
//! pings as soon as it hears nothing any more of traffic that was there: the server may need the
//! path now.
//!
//! If it is not heard in time, the client's own ping opens the mapping again: the path is only
//! asleep, and nothing else happens to it. The peer's ping counts neither as in flight nor as lost,
//! so that it is no evidence against the path either. Only if it hears nothing at all then, the
//! peer asks in earnest.

use marline_base::{Duration, Instant};

/// The next quiet time to try is longer by the half: three tries from 25 s to a minute and more.
const GROWTH: (u32, u32) = (3, 2);
/// The client waits this much longer than it asked for: the ping is on its way, perhaps through a
/// queue.
const LATE: Duration = Duration::from_secs(2);
/// A ping may come sooner than asked for by this part of the quiet time, and shows it all the same:
/// the two ends count from moments that are a one-way delay apart, and that varies.
const EARLY: u32 = 8;
/// Pings in a row that are not heard before the mapping counts as lost: one may be lost like any
/// other packet.
const MISSES: u32 = 2;
/// After a quiet time was too long, no longer one is tried for this time. Each try makes the
/// carrier prove the path and search its packet size again, some 10 kB, and a translator seldom
/// changes while a path lives.
const REST: Duration = Duration::from_secs(86_400);
/// The peer asks in earnest when this part of the quiet time has passed since its ping and nothing
/// has come.
const EARNEST: u32 = 4;

/// From which quiet time to which is learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// What no translator is expected to forget within.
    pub(crate) usual: Duration,
    /// What the carriers of both ends bear.
    pub(crate) most: Duration,
}

/// What is known of a path's quiet time, at the end that learns it and at the one that is asked.
#[derive(Debug, Default)]
pub(crate) struct Quiet {
    /// Times that the usual quiet time has been made longer; 0: this end sends the pings.
    step: u32,
    /// The steps after which the peer's ping was last heard.
    proved: u32,
    missed: u32,
    /// No longer quiet time is tried before.
    rest_until: Instant,
    /// Sequence numbers of the last PATH_QUIET sent and of the newest received, plus one.
    pub(crate) sent: u64,
    seen: u64,
    /// What the peer asked for; zero: nothing.
    asked: Duration,
    /// A ping that the peer asked for has left, and nothing came since.
    waits: bool,
    /// Such a ping is to leave.
    due: bool,
}

impl Range {
    /// The quiet time after `step` steps, and whether there is a longer one.
    fn at(self, step: u32) -> (Duration, bool) {
        let mut quiet = self.usual;
        for _ in 0..step {
            quiet = quiet * GROWTH.0 / GROWTH.1;
            if quiet >= self.most {
                return (self.most.max(self.usual), false);
            }
        }
        (quiet, quiet < self.most)
    }
}

impl Quiet {
    /// What to ask the peer for; zero: nothing.
    pub(crate) fn wanted(&self, range: Range) -> Duration {
        match self.step {
            0 => Duration::ZERO,
            step => range.at(step).0,
        }
    }

    /// How long the end that learns waits before it pings itself.
    pub(crate) fn patience(&self, range: Range) -> Duration {
        match self.step {
            0 => range.usual,
            step => range.at(step).0 + LATE,
        }
    }

    /// While a longer time is tried: after which one the path may be forgotten.
    pub(crate) fn proved(&self, range: Range) -> Option<Duration> {
        (self.step > self.proved).then(|| range.at(self.proved).0)
    }

    /// This end pings, since nothing was heard. True if the peer is to be asked for another time.
    pub(crate) fn on_own_ping(&mut self, now: Instant, range: Range) -> bool {
        if self.step == 0 {
            return now >= self.rest_until && self.try_longer(range);
        }
        self.missed += 1;
        if self.missed < MISSES {
            return false;
        }
        self.missed = 0;
        self.step -= 1;
        self.proved = self.proved.min(self.step);
        self.rest_until = now + REST;
        true
    }

    /// The peer's packet came after a quiet time of this length. True if the peer is to be asked
    /// for another one.
    pub(crate) fn on_heard(&mut self, now: Instant, quiet: Duration, range: Range) -> bool {
        if self.step == 0 {
            return false;
        }
        let (expected, _) = range.at(self.step);
        if quiet < expected - expected / EARLY {
            return false;
        }
        self.missed = 0;
        self.proved = self.step;
        now >= self.rest_until && self.try_longer(range)
    }

    fn try_longer(&mut self, range: Range) -> bool {
        let (_, longer) = range.at(self.step);
        self.step += u32::from(longer);
        longer
    }

    /// The peer asks for a ping after this quiet time, with its frame of this number. False if the
    /// frame is out of date.
    pub(crate) fn on_asked(&mut self, sequence: u64, quiet: Duration) -> bool {
        if sequence < self.seen {
            return false;
        }
        self.seen = sequence.saturating_add(1);
        self.asked = quiet;
        self.waits = false;
        true
    }

    /// How long the end that is asked waits before it pings, if it is.
    pub(crate) fn pause(&self, range: Range) -> Option<Duration> {
        if self.asked <= range.usual {
            return None;
        }
        let quiet = self.asked.min(range.most.max(range.usual));
        Some(if self.waits { quiet / EARNEST } else { quiet })
    }

    /// The pause is over. True if the ping on which nothing depends is next, false if the peer is
    /// to be asked in earnest.
    pub(crate) fn begin_ping(&mut self) -> bool {
        self.due = !self.waits;
        self.waits = !self.waits;
        self.due
    }

    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// The ping left.
    pub(crate) fn on_ping_sent(&mut self) {
        self.due = false;
    }

    /// Something came on the path. True if a ping that the peer asked for is answered so.
    pub(crate) fn on_received(&mut self) -> bool {
        core::mem::take(&mut self.waits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: Range = Range {
        usual: Duration::from_secs(25),
        most: Duration::from_secs(50),
    };

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(1_000 * seconds)
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_quiet_time_grows_while_pings_are_heard() {
        let mut quiet = Quiet::default();
        assert_eq!(quiet.wanted(RANGE), Duration::ZERO);
        assert_eq!(quiet.patience(RANGE), ms(25_000));
        assert!(quiet.on_own_ping(at(25), RANGE));
        assert_eq!(quiet.wanted(RANGE), ms(37_500));
        assert_eq!(quiet.patience(RANGE), ms(39_500));
        assert_eq!(quiet.proved(RANGE), Some(ms(25_000)));
        assert!(!quiet.on_heard(at(40), ms(25_000), RANGE), "too soon");
        assert!(quiet.on_heard(at(63), ms(37_400), RANGE), "a little early");
        assert_eq!(quiet.wanted(RANGE), ms(50_000));
        assert_eq!(quiet.proved(RANGE), Some(ms(37_500)));
        assert!(!quiet.on_heard(at(113), ms(50_000), RANGE), "the most");
        assert_eq!(quiet.proved(RANGE), None);
        assert_eq!(quiet.wanted(RANGE), ms(50_000));
    }

    #[test]
    fn two_misses_in_a_row_make_it_shorter_for_a_day() {
        let mut quiet = Quiet::default();
        quiet.on_own_ping(at(25), RANGE);
        assert!(!quiet.on_own_ping(at(65), RANGE), "one may be lost");
        assert!(quiet.on_heard(at(105), ms(37_500), RANGE));
        assert!(!quiet.on_own_ping(at(160), RANGE));
        assert!(quiet.on_own_ping(at(212), RANGE));
        assert_eq!(quiet.wanted(RANGE), ms(37_500), "what worked last");
        assert!(!quiet.on_heard(at(250), ms(37_500), RANGE), "it rests");
        assert!(!quiet.on_own_ping(at(290), RANGE));
        assert!(quiet.on_own_ping(at(330), RANGE));
        assert_eq!(quiet.wanted(RANGE), Duration::ZERO, "another translator");
        assert!(!quiet.on_own_ping(at(355), RANGE));
        assert!(quiet.on_own_ping(at(330 + 86_400), RANGE));
    }

    #[test]
    fn carriers_that_bear_no_longer_quiet_time_are_not_tried() {
        for most in [0, 25] {
            let range = Range {
                most: Duration::from_secs(most),
                ..RANGE
            };
            let mut quiet = Quiet::default();
            assert!(!quiet.on_own_ping(at(25), range));
            assert_eq!(quiet.patience(range), range.usual);
            assert!(quiet.on_asked(0, ms(60_000)));
            assert_eq!(quiet.pause(range), Some(range.usual), "{most}");
        }
    }

    #[test]
    fn who_is_asked_pings_once_and_then_in_earnest() {
        let mut quiet = Quiet::default();
        assert_eq!(quiet.pause(RANGE), None);
        assert!(quiet.on_asked(1, ms(40_000)));
        assert!(!quiet.on_asked(0, ms(25_000)), "overtaken");
        assert_eq!(quiet.pause(RANGE), Some(ms(40_000)));
        assert!(quiet.begin_ping() && quiet.is_due());
        quiet.on_ping_sent();
        assert!(!quiet.is_due());
        assert_eq!(quiet.pause(RANGE), Some(ms(10_000)));
        assert!(!quiet.begin_ping() && !quiet.is_due());
        assert_eq!(quiet.pause(RANGE), Some(ms(40_000)));
        assert!(quiet.begin_ping());
        assert!(quiet.on_received() && !quiet.on_received());
        assert_eq!(quiet.pause(RANGE), Some(ms(40_000)));
        for quiet_ms in [0, 1, 25_000] {
            let sequence = quiet.seen;
            assert!(quiet.on_asked(sequence, ms(quiet_ms)));
            assert_eq!(quiet.pause(RANGE), None, "no more often than usual");
        }
        assert!(quiet.on_asked(u64::MAX, ms(u64::MAX)));
        assert_eq!(quiet.pause(RANGE), Some(RANGE.most));
    }
}
