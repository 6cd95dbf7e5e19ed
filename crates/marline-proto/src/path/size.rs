//! How long a path's datagrams may be: what its carrier takes, unless long ones vanish.
//!
//! A carrier searches for the largest size that passes (RFC 8899), and finds that a path has shrunk
//! by what it learns of losses: late, as it knows neither timers nor probes of the session. Here
//! a path has *shrunk* when several long datagrams in a row were lost over a round trip while a
//! short one that left after the first of them arrived. From then on datagrams are no longer than
//! what the path began with, which always passes. A padded ping of the full size goes now and then:
//! if one arrives it was a false alarm, which costs next to nothing; if they are lost the carrier
//! learns from them that the path has shrunk, and says what it takes now.
//!
//! Where a path goes dark short ones are lost, too, and nothing is concluded.

use core::ops::RangeInclusive;

use marline_base::{Duration, Instant};
use smallvec::SmallVec;

/// Long datagrams lost in a row before the path counts as shrunk: where three of ten
/// packets are lost, less than one in a hundred rows of four.
const LOST_IN_A_ROW: u32 = 4;
/// Time between the first [`QUICK_PINGS`] padded pings: a round trip of most paths, so that each is
/// lost for itself.
const QUICK: Duration = Duration::from_millis(50);
/// quinn takes four separate losses of long packets for a path that has shrunk; twice that and
/// some, since a few may fall together.
const QUICK_PINGS: u32 = 10;
/// After these each waits twice as long as the one before, up to this time: the carrier should have
/// known by then, and a full packet a minute is 2 MB a day.
const RARE: Duration = Duration::from_secs(60);
/// A short datagram that leaves so soon after a long one may go in one piece with it (GSO), and is
/// lost with it: more than a turn of the driver takes, and less than lies between two probes.
const ONE_PIECE: Duration = Duration::from_millis(2);
/// Padded pings whose answers are looked for: those of the last 800 ms at the quick pace, longer
/// than nearly all round trips.
const REMEMBERED: usize = 16;

/// Long datagrams lost in a row.
#[derive(Clone, Copy, Debug)]
struct Row {
    lost: u32,
    /// Length of the shortest of them.
    shortest: u32,
    /// When the first and the last of them left.
    first: Instant,
    last: Instant,
    /// Datagrams that are shorter than any of them, left after the first, and have arrived; and
    /// those of a length that always passes that were lost, each for itself.
    shorter_arrived: u32,
    short_lost: u32,
}

/// The path is taken to have shrunk.
#[derive(Clone, Debug)]
struct Shrunk {
    /// Datagrams that left before show nothing.
    since: Instant,
    /// When the next padded ping goes.
    next: Instant,
    pings: u32,
    wait: Duration,
    /// Their packet numbers.
    sent: SmallVec<[u64; REMEMBERED]>,
}

/// A path's largest datagram (bytes).
#[derive(Clone, Debug)]
pub(crate) struct DatagramSize {
    /// What it began with, and what always passes.
    least: usize,
    /// What its carrier takes.
    carrier: usize,
    row: Option<Row>,
    shrunk: Option<Shrunk>,
    /// A probe that carries nothing long is still to go.
    short_probe: bool,
}

impl DatagramSize {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            least: bytes,
            carrier: bytes,
            row: None,
            shrunk: None,
            short_probe: false,
        }
    }

    /// The longest that may leave.
    pub(crate) fn max(&self) -> usize {
        match self.shrunk {
            Some(_) => self.least.min(self.carrier),
            None => self.carrier,
        }
    }

    /// The carrier takes this many bytes from now on, and knows better than what was seen here.
    pub(crate) fn set_carrier(&mut self, bytes: usize) {
        self.carrier = bytes;
        self.least = self.least.min(bytes);
        self.row = None;
        self.shrunk = None;
    }

    fn is_long(&self, bytes: u32) -> bool {
        bytes as usize > self.least
    }

    /// Are there longer datagrams than those that always pass?
    fn may_shrink(&self) -> bool {
        self.max() > self.least
    }

    pub(crate) fn on_lost(&mut self, sent: Instant, bytes: u32) {
        if !self.is_long(bytes) {
            if let Some(row) = &mut self.row
                && sent.since(row.last) > ONE_PIECE
            {
                row.short_lost += 1;
            }
            return;
        }
        let row = self.row.get_or_insert(Row {
            lost: 0,
            shortest: bytes,
            first: sent,
            last: sent,
            shorter_arrived: 0,
            short_lost: 0,
        });
        row.lost += 1;
        row.shortest = row.shortest.min(bytes);
        row.first = row.first.min(sent);
        row.last = row.last.max(sent);
    }

    pub(crate) fn on_arrived(&mut self, sent: Instant, bytes: u32) {
        let passes = bytes as usize >= self.carrier;
        if passes && self.shrunk.as_ref().is_some_and(|s| sent > s.since) {
            self.shrunk = None;
        }
        match &mut self.row {
            Some(row) if sent >= row.first && bytes >= row.shortest => self.row = None,
            Some(row) if sent >= row.first => row.shorter_arrived += 1,
            _ => {}
        }
    }

    /// Packets of these numbers have arrived: are padded pings among them?
    pub(crate) fn on_acked(&mut self, ranges: &[RangeInclusive<u64>]) {
        let passed = self.shrunk.as_ref().is_some_and(|shrunk| {
            let mut pings = shrunk.sent.iter();
            pings.any(|ping| ranges.iter().any(|range| range.contains(ping)))
        });
        if passed {
            self.shrunk = None;
            self.row = None;
        }
    }

    /// Concludes what was seen; `trip` is the smoothed round-trip time. True if the path has just
    /// shrunk.
    pub(crate) fn conclude(&mut self, now: Instant, trip: Duration) -> bool {
        let shrinks = self.row.is_some_and(|row| {
            let long_enough = row.last.since(row.first) >= trip;
            let passes = row.shorter_arrived > row.short_lost;
            row.lost >= LOST_IN_A_ROW && passes && long_enough
        });
        if !shrinks || !self.may_shrink() {
            return false;
        }
        self.row = None;
        self.shrunk = Some(Shrunk {
            since: now,
            next: now,
            pings: 0,
            wait: QUICK,
            sent: SmallVec::new(),
        });
        true
    }

    /// The path is asked for a sign of life. True if a probe that carries nothing long has to go
    /// beside those that may: without it a path that has shrunk would seem dark.
    pub(crate) fn ask(&mut self) -> bool {
        self.short_probe = self.may_shrink();
        self.short_probe
    }

    /// The longest that the next probe may be, if it is to be short.
    pub(crate) fn take_short_probe(&mut self) -> Option<usize> {
        core::mem::take(&mut self.short_probe).then_some(self.least)
    }

    /// When the next padded ping goes.
    pub(crate) fn next_ping(&self) -> Option<Instant> {
        self.shrunk.as_ref().map(|shrunk| shrunk.next)
    }

    /// The length of the padded ping that goes now, as packet `number`.
    pub(crate) fn ping(&mut self, now: Instant, number: u64) -> Option<usize> {
        let shrunk = self.shrunk.as_mut().filter(|s| s.next <= now)?;
        shrunk.pings += 1;
        if shrunk.pings > QUICK_PINGS {
            shrunk.wait = (shrunk.wait * 2).min(RARE);
        }
        shrunk.next = now + shrunk.wait;
        if shrunk.sent.len() == REMEMBERED {
            shrunk.sent.remove(0);
        }
        shrunk.sent.push(number);
        Some(self.carrier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIP: Duration = Duration::from_millis(40);

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// A path that began with 1162 bytes and takes 1434.
    fn grown() -> DatagramSize {
        let mut size = DatagramSize::new(1_162);
        size.set_carrier(1_434);
        assert_eq!(size.max(), 1_434);
        size
    }

    fn lose(size: &mut DatagramSize, times: &[u64]) {
        for &ms in times {
            size.on_lost(at(ms), 1_434);
        }
    }

    #[test]
    fn long_ones_lost_over_a_round_trip_while_a_short_one_arrives_shrink_it() {
        let mut size = grown();
        lose(&mut size, &[0, 15, 30]);
        size.on_arrived(at(50), 60);
        assert!(!size.conclude(at(90), TRIP), "three may be chance");
        lose(&mut size, &[40]);
        assert!(size.conclude(at(90), TRIP));
        assert_eq!(size.max(), 1_162);
        // Not before a round trip is over.
        let mut size = grown();
        lose(&mut size, &[0, 1, 2, 3, 4, 5, 39]);
        size.on_arrived(at(50), 60);
        assert!(!size.conclude(at(90), TRIP));
    }

    #[test]
    fn what_is_lost_for_another_reason_shrinks_nothing() {
        let all = [0, 10, 20, 30, 40, 50];
        let mut dark = grown();
        lose(&mut dark, &all);
        dark.on_lost(at(55), 60);
        dark.on_arrived(at(60), 60);
        assert!(!dark.conclude(at(90), TRIP), "short ones were lost, too");
        dark.on_arrived(at(61), 60);
        assert!(dark.conclude(at(90), TRIP), "but more have arrived");
        let mut lossy = grown();
        lose(&mut lossy, &all);
        lossy.on_arrived(at(45), 1_434);
        lossy.on_arrived(at(46), 60);
        assert!(!lossy.conclude(at(90), TRIP), "a long one arrived");
        let mut pieces = grown();
        lose(&mut pieces, &all);
        pieces.on_lost(at(51), 60);
        pieces.on_arrived(at(60), 60);
        assert!(
            pieces.conclude(at(90), TRIP),
            "it was in one piece with long ones"
        );
        // One that is longer than what always passes, and still fits, exonerates no length.
        let mut shrunk = grown();
        lose(&mut shrunk, &all);
        shrunk.on_arrived(at(45), 1_200);
        assert!(shrunk.conclude(at(90), TRIP));
        let mut silent = grown();
        lose(&mut silent, &all);
        assert!(!silent.conclude(at(90), TRIP), "nothing arrived");
        // A carrier of one size has nothing to fall back to.
        let mut fixed = DatagramSize::new(1_434);
        lose(&mut fixed, &all);
        fixed.on_arrived(at(60), 60);
        assert!(!fixed.conclude(at(90), TRIP) && !fixed.ask());
    }

    #[test]
    fn a_padded_ping_that_arrives_ends_a_false_alarm_and_so_does_the_carriers_word() {
        let shrunk = || {
            let mut size = grown();
            lose(&mut size, &[0, 20, 40, 60]);
            size.on_arrived(at(70), 60);
            assert!(size.conclude(at(100), TRIP));
            size
        };
        let mut size = shrunk();
        assert_eq!(size.next_ping(), Some(at(100)));
        assert_eq!(size.ping(at(100), 7), Some(1_434));
        assert_eq!(size.ping(at(100), 8), None);
        size.on_acked(&[8..=9, 0..=6]);
        assert_eq!(size.max(), 1_162);
        size.on_acked(&[3..=7]);
        assert_eq!((size.max(), size.next_ping()), (1_434, None));
        let mut size = shrunk();
        size.set_carrier(1_162);
        assert_eq!((size.max(), size.next_ping()), (1_162, None));
        size.set_carrier(1_262);
        assert_eq!(size.max(), 1_262);
    }

    #[test]
    fn padded_pings_grow_rare() {
        let mut size = grown();
        lose(&mut size, &[0, 20, 40, 60]);
        size.on_arrived(at(70), 60);
        assert!(size.conclude(at(100), TRIP));
        let mut count = 0;
        while let Some(next) = size.next_ping().filter(|next| *next < at(600_000)) {
            assert_eq!(size.ping(next, count), Some(1_434));
            count += 1;
        }
        assert!((25..35).contains(&count), "{count} in ten minutes");
    }

    #[test]
    fn of_the_probes_one_is_short_where_long_ones_could_vanish() {
        let mut size = grown();
        assert!(size.ask());
        assert_eq!(size.take_short_probe(), Some(1_162));
        assert_eq!(size.take_short_probe(), None);
    }
}
