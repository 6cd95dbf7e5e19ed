//! What arrived on one path, and when the peer must receive an acknowledgement of it.
//!
//! Where packets overtake each other, late packets lie below hundreds of gaps. These gaps are
//! remembered, and what arrived late is reported before what was reported long ago, because a
//! packet that is never acknowledged counts as lost: a link of 50 Mb/s with 80 ms ±40 carried 28
//! Mb/s without this.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use marline_base::{Duration, Instant};

use super::silence::Silence;
use crate::law::ReversePath;
use crate::ranges::RangeSet;
use crate::wire::{Ack, Arrival, PathId};

/// Packets that elicit an acknowledgement until one is written: RFC 9000 §13.2.2 has two; every
/// eighth costs the way back a quarter of that, and the timer bounds the delay.
const ELICITING_PER_ACK: u32 = 8;
/// The first packets of a path are acknowledged at once, so that the peer learns it quickly.
const EAGER: u64 = 16;
/// Ranges of packet numbers remembered; older packets count as duplicates. Where packets overtake
/// each other, about half of the packets that leave within the spread of their delays lie between
/// gaps: 500 at 100 Mb/s and 100 ms.
const MAX_RANGES: usize = 1024;
/// Ranges in one acknowledgement. What arrived last goes first, however low its number: where many
/// packets that overtake each other are in flight, the late ones lie below more gaps than that.
const RANGES_REPORTED: usize = 32;
/// Acknowledgements that report each packet. A packet that was reported this often is not reported
/// again, so that a path that once lost much does not report it for ever. Fewer, where what arrived
/// since fills [`RANGES_REPORTED`].
const TIMES_REPORTED: usize = 16;
/// Arrival times kept until the next acknowledgement; further ones are acknowledged without time.
const MAX_ARRIVALS: usize = 256;

/// Received packet numbers of one path, with arrival times not yet reported.
#[derive(Debug, Default)]
pub(crate) struct Received {
    ranges: RangeSet,
    /// Packets below it are not tracked any more and count as received.
    floor: u64,
    largest: Option<(u64, Instant)>,
    unreported: Vec<(u64, Instant)>,
    /// Packets that were new in each of the last acknowledgements, in a ring.
    new: [RangeSet; TIMES_REPORTED],
    /// Place of the coming acknowledgement in `new`.
    coming: usize,
    eliciting: u32,
    seen: u64,
    due: Option<Instant>,
    /// The coming acknowledgement is the first that shows that something is missing.
    shows_gap: bool,
    /// The peer asked whether its packets arrive: another path carries the acknowledgement, too.
    asked: bool,
    /// The last acknowledgement left on another path and has not left on this one.
    echo: bool,
    /// Another path acknowledged all packets up to this one.
    reported_elsewhere: Option<u64>,
    silence: Silence,
}

impl Received {
    /// Did the packet arrive before (or is it too old to tell)?
    pub(crate) fn is_duplicate(&self, packet: u64) -> bool {
        let is_newest = self.largest.is_none_or(|(largest, _)| packet > largest);
        packet < self.floor || !is_newest && self.ranges.contains(packet)
    }

    /// Notes a packet; false if it is a duplicate.
    pub(crate) fn insert(&mut self, packet: u64, now: Instant) -> bool {
        if packet < self.floor || self.ranges.insert(packet..packet + 1) == 0 {
            return false;
        }
        // Whatever it carries: the next ack-eliciting packet leaves no gap of its own.
        let is_next = self
            .largest
            .is_some_and(|(largest, _)| packet == largest + 1);
        if !is_next && self.gap_below(packet) {
            self.shows_gap = true;
            self.due = self.due.map(|due| due.min(now));
        }
        if self.ranges.len() > MAX_RANGES {
            self.ranges.drop_lowest_above(MAX_RANGES);
            self.floor = self.ranges.first().map_or(0, |r| r.start);
        }
        self.seen += 1;
        let new = &mut self.new[self.coming];
        new.insert(packet..packet + 1);
        new.drop_lowest_above(RANGES_REPORTED);
        if self.largest.is_none_or(|(largest, _)| packet > largest) {
            self.largest = Some((packet, now));
            let has = |number| number < self.floor || self.ranges.contains(number);
            self.silence.on_number(now, packet, has);
        }
        if self.unreported.len() < MAX_ARRIVALS {
            self.unreported.push((packet, now));
        }
        true
    }

    /// The packet just inserted asks for an acknowledgement, within `max_delay`, or at once if it
    /// shows a gap: the sender's loss detection waits for it.
    pub(crate) fn on_eliciting(&mut self, packet: u64, now: Instant, max_delay: Duration) {
        self.eliciting += 1;
        self.silence.on_eliciting(now);
        let out_of_order =
            self.shows_gap || self.largest.is_some_and(|(largest, _)| packet < largest);
        let at = if out_of_order || self.eliciting >= ELICITING_PER_ACK || self.seen <= EAGER {
            now
        } else {
            now + max_delay
        };
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    fn gap_below(&self, packet: u64) -> bool {
        packet > self.floor && !self.ranges.contains(packet - 1)
    }

    /// A PING arrived: the peer may have received nothing for long, and not because of its own
    /// direction.
    pub(crate) fn on_ping(&mut self, now: Instant) {
        self.due = Some(now);
        // The first round trips that the peer measures should be the path's own.
        self.asked = self.seen > EAGER;
    }

    /// Must another path acknowledge what arrived here?
    pub(crate) fn is_asked(&self) -> bool {
        self.asked
    }

    /// Another path acknowledged it, or there is none.
    pub(crate) fn on_relayed(&mut self) {
        self.asked = false;
    }

    /// When the acknowledgement must leave; `None` if nothing asks for one.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The acknowledgement to send now; [`Received::on_ack_sent`] must follow once it left.
    pub(crate) fn ack(&self, path: PathId, now: Instant) -> Option<Ack> {
        let (largest, at) = self.largest?;
        let ranges = self.reported(largest);
        let is_reported = |packet| ranges.iter().any(|range| range.contains(&packet));
        let arrival = |packet, at: Instant| Arrival {
            packet,
            at_us: at.as_micros(),
        };
        let mut arrivals = Vec::with_capacity(self.unreported.len() + 1);
        if !self.unreported.iter().any(|(packet, _)| *packet == largest) {
            arrivals.push(arrival(largest, at));
        }
        // Nearly always that is their order.
        let latest_first = self.unreported.iter().rev();
        let reported = latest_first.filter(|(packet, _)| is_reported(*packet));
        arrivals.extend(reported.map(|(packet, at)| arrival(*packet, *at)));
        arrivals.sort_unstable_by_key(|a| core::cmp::Reverse(a.packet));
        Some(Ack {
            path,
            delay_us: now.since(at).as_micros() as u64,
            ranges,
            arrivals,
        })
    }

    /// The ranges that the next acknowledgement reports, descending: the range of the `largest`
    /// packet, and those with anything that was new in one of the last acknowledgements, the latest
    /// first.
    fn reported(&self, largest: u64) -> Vec<RangeInclusive<u64>> {
        let mut reported: Vec<RangeInclusive<u64>> = Vec::with_capacity(1);
        let newest = self
            .ranges
            .range_of(largest)
            .map_or(largest, |range| range.start);
        // One range without a gap holds all that is new.
        let times = if self.ranges.len() > 1 {
            TIMES_REPORTED
        } else {
            0
        };
        let ages = (0..times).map(|age| (self.coming + TIMES_REPORTED - age) % TIMES_REPORTED);
        // What the range of the largest packet holds is reported with it.
        let older = |new: &&RangeSet| new.first().is_some_and(|range| range.start < newest);
        let fresh = ages.map(|place| &self.new[place]).filter(older);
        let fresh = fresh.flat_map(RangeSet::iter_descending);
        for packet in core::iter::once(largest).chain(fresh.map(|range| range.start)) {
            if reported.len() == RANGES_REPORTED {
                break;
            }
            // What is below the floor is not reported.
            if !reported.iter().any(|range| range.contains(&packet))
                && let Some(range) = self.ranges.range_of(packet)
            {
                reported.push(range.start..=range.end - 1);
            }
        }
        reported.sort_unstable_by_key(|range| core::cmp::Reverse(*range.start()));
        reported
    }

    /// An acknowledgement was written, `elsewhere` than on the path itself.
    pub(crate) fn on_ack_sent(&mut self, elsewhere: bool) {
        self.unreported.clear();
        self.coming = (self.coming + 1) % TIMES_REPORTED;
        self.new[self.coming].drop_lowest_above(0);
        self.eliciting = 0;
        self.due = None;
        self.shows_gap = false;
        self.echo = elsewhere;
    }

    /// The next acknowledgement is the first that shows a gap, and the one before it went this
    /// path's own way back: this one should take a quicker way. Not twice in a row, so that round
    /// trips of the path are still measured where much is lost.
    pub(crate) fn is_urgent(&self) -> bool {
        self.shows_gap && !self.echo
    }

    /// Did something arrive since another path acknowledged this one? For the first packets no
    /// other path does: the first round trips that the peer measures should be the path's own.
    pub(crate) fn is_unreported_elsewhere(&self) -> bool {
        self.seen > EAGER && self.largest.map(|(largest, _)| largest) > self.reported_elsewhere
    }

    /// Another path acknowledged all that arrived.
    pub(crate) fn on_reported_elsewhere(&mut self) {
        self.reported_elsewhere = self.largest.map(|(largest, _)| largest);
    }

    /// When the peer must learn, by the quickest way back, that nothing arrives any more; `None` if
    /// there is nothing to report.
    pub(crate) fn silence_due(&self) -> Option<Instant> {
        self.silence.due().filter(|_| self.seen > EAGER)
    }

    /// When the last packet arrived that asks for an acknowledgement, and how long a silence after
    /// it is no burst of losses; `None` before there were enough to know their pace.
    pub(crate) fn outage(&self) -> Option<(Instant, Duration)> {
        self.silence.outage().filter(|_| self.seen > EAGER)
    }

    /// How the peer's packets are lost, and how many are missing now, if any arrived after `since`.
    pub(crate) fn reverse(&self, now: Instant, since: Instant) -> ReversePath<'_> {
        let missing = match self.seen > EAGER {
            true => self.silence.missing_since(now, since),
            false => 0,
        };
        ReversePath {
            loss: &self.silence.lost,
            missing,
        }
    }

    /// The silence was reported to the peer.
    pub(crate) fn on_silence_reported(&mut self) {
        self.silence.on_report();
    }

    /// The last acknowledgement went another way only; it has to go this one, too.
    pub(crate) fn is_echo_due(&self) -> bool {
        self.echo
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_millis(5);

    fn warm() -> Received {
        let mut received = Received::default();
        for packet in 0..EAGER {
            assert!(received.insert(packet, Instant::ZERO));
            received.on_eliciting(packet, Instant::ZERO, DELAY);
            assert_eq!(received.due(), Some(Instant::ZERO));
        }
        received.on_ack_sent(false);
        received
    }

    #[test]
    fn waits_for_eight_packets_or_the_delay() {
        let mut received = warm();
        let now = Instant::from_millis(3);
        for packet in EAGER..EAGER + 7 {
            received.insert(packet, now);
            received.on_eliciting(packet, now, DELAY);
            assert_eq!(received.due(), Some(now + DELAY));
        }
        received.insert(EAGER + 7, now);
        received.on_eliciting(EAGER + 7, now, DELAY);
        assert_eq!(received.due(), Some(now));
    }

    #[test]
    fn a_gap_is_reported_at_once_and_a_duplicate_never() {
        let mut received = warm();
        let now = Instant::from_millis(3);
        assert!(received.insert(EAGER + 1, now));
        received.on_eliciting(EAGER + 1, now, DELAY);
        assert_eq!(received.due(), Some(now));
        assert!(!received.insert(EAGER + 1, now));
        let ack = received.ack(PathId(4), now + DELAY).unwrap();
        assert_eq!(ack.ranges, [EAGER + 1..=EAGER + 1, 0..=EAGER - 1]);
        assert_eq!(ack.delay_us, 5_000);
        assert_eq!(ack.arrivals.len(), 1);
        assert_eq!(ack.arrivals[0].at_us, 3_000);
    }

    #[test]
    fn a_gap_is_reported_at_once_whatever_packet_showed_it() {
        let mut received = warm();
        let now = Instant::from_millis(3);
        received.insert(EAGER + 1, now);
        assert_eq!(received.due(), None, "it asks for nothing");
        received.insert(EAGER + 2, now);
        received.on_eliciting(EAGER + 2, now, DELAY);
        assert_eq!(received.due(), Some(now));
        assert!(received.is_urgent());
        received.on_ack_sent(false);

        received.insert(EAGER + 3, now);
        received.on_eliciting(EAGER + 3, now, DELAY);
        assert_eq!(received.due(), Some(now + DELAY));
        received.insert(EAGER + 5, now);
        assert_eq!(received.due(), Some(now), "one is due already");
    }

    #[test]
    fn a_gap_is_urgent_once_and_never_twice_in_a_row() {
        let mut received = warm();
        let arrive = |received: &mut Received, packet: u64| {
            received.insert(packet, Instant::ZERO);
            received.on_eliciting(packet, Instant::ZERO, DELAY);
            received.is_urgent()
        };
        assert!(!arrive(&mut received, EAGER));
        assert!(arrive(&mut received, EAGER + 2));
        assert!(arrive(&mut received, EAGER + 3), "it was not reported yet");
        received.on_ack_sent(true);
        assert!(!arrive(&mut received, EAGER + 4), "it was reported");
        assert!(!arrive(&mut received, EAGER + 6), "the own way's turn");
        received.on_ack_sent(false);
        assert!(arrive(&mut received, EAGER + 8));
    }

    #[test]
    fn every_packet_is_reported_some_times_and_then_no_more() {
        let mut received = warm();
        let tells = |received: &Received, packet: u64| {
            let ack = received.ack(PathId(0), Instant::ZERO).unwrap();
            ack.ranges.iter().any(|r| r.contains(&packet))
        };
        // Every second packet is lost, one comes late.
        let (early, late) = (EAGER + 1, EAGER + 20);
        let (mut early_reports, mut late_reports) = (0, 0);
        for n in 0..60 {
            received.insert(early + 2 * n, Instant::ZERO);
            if n == 15 {
                received.insert(late, Instant::ZERO);
            }
            early_reports += usize::from(tells(&received, early));
            late_reports += usize::from(tells(&received, late));
            received.on_ack_sent(false);
        }
        assert_eq!(
            (early_reports, late_reports),
            (TIMES_REPORTED, TIMES_REPORTED)
        );
        assert!(received.is_duplicate(early), "it is still known");
    }

    #[test]
    fn what_comes_late_is_reported_before_what_was_reported_often() {
        let mut received = warm();
        let arrive = |received: &mut Received, packet: u64| {
            assert!(received.insert(packet, Instant::ZERO), "{packet} is new");
            received.on_eliciting(packet, Instant::ZERO, DELAY);
            let ack = received.ack(PathId(0), Instant::ZERO).unwrap();
            assert!(ack.ranges.len() <= RANGES_REPORTED);
            assert!(ack.ranges.is_sorted_by(|a, b| a.start() > b.end()));
            let reported = |packet| ack.ranges.iter().any(|range| range.contains(&packet));
            assert!(ack.arrivals.iter().all(|arrival| reported(arrival.packet)));
            assert!(reported(packet) && Some(ack.arrivals[0].packet) == ack.largest());
            received.on_ack_sent(false);
        };
        // Every second packet overtakes 800 others, so that 400 gaps are open all the time.
        for n in (EAGER + 1..4_000).step_by(2) {
            arrive(&mut received, n);
            if let Some(late) = (n - 1).checked_sub(800).filter(|late| *late >= EAGER) {
                arrive(&mut received, late);
            }
        }
    }

    #[test]
    fn of_many_gaps_the_latest_go_first() {
        let mut received = warm();
        let alone: Vec<u64> = (0..60).map(|n| EAGER + 1 + 2 * n).collect();
        for packet in &alone[..30] {
            received.insert(*packet, Instant::ZERO);
        }
        received.on_ack_sent(false);
        for packet in &alone[30..] {
            received.insert(*packet, Instant::ZERO);
        }
        let ack = received.ack(PathId(0), Instant::ZERO).unwrap();
        let tells = |packet: &u64| ack.ranges.iter().any(|range| range.contains(packet));
        assert!(alone[30..].iter().all(tells), "the latest");
        let reported = alone[..30].iter().filter(|packet| tells(packet)).count();
        assert_eq!(reported, RANGES_REPORTED - 30);
    }

    #[test]
    fn memory_stays_bounded_whatever_arrives() {
        let mut received = Received::default();
        for packet in (0..100_000).step_by(2) {
            received.insert(packet, Instant::ZERO);
        }
        assert_eq!(received.ranges.len(), MAX_RANGES);
        assert_eq!(received.unreported.len(), MAX_ARRIVALS);
        assert!(received.new.iter().all(|new| new.len() <= RANGES_REPORTED));
        assert!(!received.insert(1, Instant::ZERO), "too old to tell");
    }
}
