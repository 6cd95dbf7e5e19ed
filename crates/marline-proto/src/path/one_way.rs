//! Forward delay and spacing of one path, from arrival times at the receiver.
//!
//! The peer's clock has its own epoch, so only differences mean anything: the smallest
//! (arrival − sent) of the last 10 to 20 s stands for the empty path, and what a packet took beyond
//! it is its forward queueing delay. The window is short enough that skew (below 100 ppm) stays
//! below 2 ms.

use marline_base::{Duration, Instant};

/// The smallest delay is that of the last one or two of these: as long as the smallest round
/// trip lasts with BBR (`RTpropFilterLen`).
const WINDOW: Duration = Duration::from_secs(10);
/// Where the two ways' minima add up to less (µs), a clock stood still between them. Skew alone
/// makes no such sum.
const JUMP_US: i64 = -100_000;
/// Weight of a new spacing or delay in its running mean, as 1/n: half of what RFC 6298 §2 gives
/// a round-trip time, since there is one for each packet.
const SMOOTHING: f64 = 16.0;
/// What the quickest of this number of acknowledgements, or of as many before them, met on the way
/// back stands there (as CoDel sees a queue, RFC 8289 §3.1): the others may only be late.
const STANDS: u32 = 8;
/// A queue has grown where this number of packets took longer than any since the delay began to
/// rise, by this much in all (µs), and none in between fell back by more than a part of that. Delay
/// that is drawn again for each packet hardly ever does that; what rises by as much at once is a
/// step, and what takes longer than a second drifts.
const RISING: u32 = 8;
const RISEN: f64 = 5e3;
const FALLEN: f64 = 0.25;
const SWIFT: Duration = Duration::from_secs(1);
/// Falling back by less is nothing (µs): packets leave in pairs, and are not all of a size.
const LEVEL: f64 = 500.0;

/// Running estimates; times in microseconds where not [`Duration`].
#[derive(Debug, Default)]
pub(crate) struct OneWay {
    /// Smallest difference of this window and of the last.
    min: [Option<i64>; 2],
    /// The same for the way back, from when the peer wrote its acknowledgements.
    back: [Option<i64>; 2],
    window_start: Instant,
    /// Smoothed forward queueing delay (µs).
    queueing: f64,
    /// Least queueing delay of the running number of acknowledgements and of those before (µs).
    back_queueing: [i64; 2],
    acks: u32,
    /// Smoothed spacing of consecutive packets at the receiver (µs).
    spacing: Option<f64>,
    last: Option<(u64, u64)>,
    rise: Option<Rise>,
    /// A clock stood still since that was asked last.
    jumped: bool,
}

/// A delay that rises.
#[derive(Debug)]
struct Rise {
    /// Packets that took longer than all before.
    records: u32,
    since: Instant,
    /// Delay at the beginning, and the longest since (µs).
    from: f64,
    peak: f64,
}

impl Rise {
    const fn from(now: Instant, delay: f64) -> Self {
        Self {
            records: 0,
            since: now,
            from: delay,
            peak: delay,
        }
    }

    fn on_delay(&mut self, now: Instant, delay: f64) {
        let fallen = self.peak - delay;
        let is_step = fallen < -RISEN;
        let is_slow = now.since(self.since) > SWIFT;
        if is_step || is_slow || fallen > LEVEL.max(FALLEN * (self.peak - self.from)) {
            *self = Self::from(now, delay);
        } else if fallen < 0.0 {
            self.records += 1;
            self.peak = delay;
        }
    }

    fn is_queue(&self) -> bool {
        self.records >= RISING && self.peak - self.from > RISEN
    }
}

impl OneWay {
    /// Packet `number`, sent at `sent`, arrived at `at_us` on the peer's clock. Calls in ascending
    /// order of numbers within one acknowledgement. Returns how much longer it took than the
    /// quickest packet (µs).
    pub(crate) fn on_arrival(
        &mut self,
        now: Instant,
        number: u64,
        sent: Instant,
        at_us: u64,
    ) -> f64 {
        self.roll(now);
        let difference = at_us as i64 - sent.as_micros() as i64;
        if least(self.back).is_some_and(|back| difference.saturating_add(back) < JUMP_US) {
            self.forget();
        }
        self.min[0] = Some(self.min[0].map_or(difference, |m| m.min(difference)));
        let base = self.min[1].map_or(difference, |m| m.min(difference));
        let base = self.min[0].map_or(base, |m| m.min(base));
        let beyond = (difference - base) as f64;
        self.queueing += (beyond - self.queueing) / SMOOTHING;
        let delay = difference as f64;
        let rise = self.rise.get_or_insert(Rise::from(now, delay));
        rise.on_delay(now, delay);
        if let Some((last_number, last_at)) = self.last
            && number == last_number + 1
            && at_us >= last_at
        {
            let gap = (at_us - last_at) as f64;
            let mean = self.spacing.get_or_insert(gap);
            *mean += (gap - *mean) / SMOOTHING;
        }
        if self.last.is_none_or(|(n, _)| number > n) {
            self.last = Some((number, at_us));
        }
        beyond
    }

    /// A clock stood still: what was seen before says nothing about it.
    fn forget(&mut self) {
        (self.min, self.back) = ([None; 2], [None; 2]);
        self.back_queueing = [0; 2];
        self.jumped = true;
    }

    /// Has a clock stood still since the last call, so that no difference of both clocks holds any
    /// more?
    pub(crate) fn take_jump(&mut self) -> bool {
        core::mem::take(&mut self.jumped)
    }

    fn roll(&mut self, now: Instant) {
        let age = now.since(self.window_start);
        if age > WINDOW {
            let is_last = age <= 2 * WINDOW;
            self.min = [None, self.min[0].filter(|_| is_last)];
            self.back = [None, self.back[0].filter(|_| is_last)];
            self.window_start = now;
        }
    }

    /// An acknowledgement came over the path that the peer wrote at `written_us` of its clock.
    pub(crate) fn on_way_back(&mut self, now: Instant, written_us: u64) {
        self.roll(now);
        let difference = now.as_micros() as i64 - written_us as i64;
        if least(self.min).is_some_and(|there| there.saturating_add(difference) < JUMP_US) {
            self.forget();
        }
        self.back[0] = Some(self.back[0].map_or(difference, |m| m.min(difference)));
        let beyond = difference - least(self.back).unwrap_or(difference);
        if self.acks.is_multiple_of(STANDS) {
            self.back_queueing = [beyond, self.back_queueing[0]];
        }
        self.acks = self.acks.wrapping_add(1);
        self.back_queueing[0] = self.back_queueing[0].min(beyond);
    }

    /// How long a queue stands on the path's own way back. Packets do not meet it.
    pub(crate) fn back_queueing(&self) -> Duration {
        let least = self.back_queueing[0].min(self.back_queueing[1]);
        Duration::from_micros(least.max(0) as u64)
    }

    /// When the path's own way back would bring, at its quickest, what the peer wrote at
    /// `written_us` of its clock; `None` if it brought nothing lately.
    pub(crate) fn by_own_way(&self, written_us: u64) -> Option<Instant> {
        let back = least(self.back)?;
        let us = u64::try_from((written_us as i64).saturating_add(back)).ok()?;
        Some(Instant::from_micros(us))
    }

    /// The smallest round trip, and the peer's clock less ours, taken that the empty path is as
    /// long there as back (µs). The two ways have their minima at different times, so that jitter
    /// does no harm. `None` before something came each way.
    pub(crate) fn clock_us(&self) -> Option<(i64, i64)> {
        let (there, back) = (least(self.min)?, least(self.back)?);
        Some((there.saturating_add(back), there.saturating_sub(back) / 2))
    }

    /// Do packets come at last in a queue that grows? That is seen long before their delay is alike
    /// again.
    pub(crate) fn shows_growing_queue(&self) -> bool {
        self.rise.as_ref().is_some_and(Rise::is_queue)
    }

    /// Smoothed forward delay beyond the smallest seen.
    pub(crate) fn queueing(&self) -> Duration {
        Duration::from_nanos((self.queueing.max(0.0) * 1e3) as u64)
    }

    /// Smoothed time between arrivals of consecutive packets.
    pub(crate) fn spacing(&self) -> Option<Duration> {
        self.spacing
            .map(|us| Duration::from_nanos((us.max(0.0) * 1e3) as u64))
    }
}

/// The least of a window and the one before it.
fn least(windows: [Option<i64>; 2]) -> Option<i64> {
    match windows {
        [Some(this), Some(last)] => Some(this.min(last)),
        [this, last] => this.or(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_an_hour_old_is_no_minimum() {
        let mut one_way = OneWay::default();
        let mut beyond = |n: u64, ms: u64| {
            let sent = Instant::from_millis(ms);
            // The peer's clock is fast by 100 ppm.
            let at = 20_000 + sent.as_micros() + sent.as_micros() / 10_000;
            one_way.on_arrival(sent, n, sent, at)
        };
        (0..100).for_each(|n| assert!(beyond(n, n) < 100.0));
        for n in 100..300 {
            let beyond = beyond(n, 3_600_000 + 10 * n);
            assert!(beyond < 2_000.0, "{n}: {beyond}");
        }
    }

    /// The clock of a machine that is suspended stands still on many systems, and so does a process
    /// that is stopped.
    #[test]
    fn a_clock_that_stood_still_is_compared_anew() {
        for [ours, theirs] in [[20_000_000, 0], [0, 20_000_000]] {
            let mut one_way = OneWay::default();
            for n in 0..600_u64 {
                let [ours, theirs] = if n < 100 { [0; 2] } else { [ours, theirs] };
                // 20 ms each way, on a clock that never stood.
                let at = 30_000_000 + 10_000 * n;
                let sent = Instant::from_micros(at - ours);
                let back = Instant::from_micros(at + 40_000 - ours);
                one_way.on_arrival(back, n, sent, at + 20_000 - theirs);
                one_way.on_way_back(back, at + 20_000 - theirs);
                assert_eq!(one_way.take_jump(), n == 100, "{n}");
                let ahead = ours as i64 - theirs as i64;
                // Where the way back shows it, the next packet there shows how long it stood.
                if n != 100 {
                    assert_eq!(one_way.clock_us(), Some((40_000, ahead)), "{n}");
                }
            }
        }
    }

    #[test]
    fn a_queue_on_the_way_back_stands_if_the_quickest_meets_it() {
        let mut one_way = OneWay::default();
        let mut after = |count: u64, back: fn(u64) -> u64| {
            for n in 0..count {
                let written = 1_000_000 + 10_000 * n;
                one_way.on_way_back(Instant::from_micros(written + 1_000 * back(n)), written);
            }
            one_way.back_queueing().as_millis()
        };
        assert_eq!(after(16, |_| 20), 0);
        assert_eq!(
            after(32, |n| if n % 8 == 7 { 20 } else { 90 }),
            0,
            "some are late"
        );
        assert_eq!(after(8, |_| 90), 0, "not for long enough");
        assert_eq!(after(8, |_| 90), 70);
        assert_eq!(after(1, |_| 25), 5);
    }

    #[test]
    fn clocks_are_compared_by_the_quickest_packet_each_way() {
        let mut one_way = OneWay::default();
        assert_eq!(one_way.clock_us(), None);
        // The peer's clock is 5 s ahead; 20 ms each way, but never both at once.
        let epoch = 5_000_000;
        for n in 0..100_u64 {
            let sent = Instant::from_millis(100 * n);
            let (there, back) = if n % 2 == 0 { (20, 33) } else { (31, 20) };
            let arrived = sent.as_micros() + epoch + 1_000 * there;
            let now = sent + Duration::from_millis(there + 3 + back);
            one_way.on_arrival(now, n, sent, arrived);
            one_way.on_way_back(now, arrived + 3_000);
        }
        assert_eq!(one_way.clock_us(), Some((40_000, 5_000_000)));
    }

    /// Does it see a queue in packets that take these times (ms)?
    fn sees_queue(delays: impl IntoIterator<Item = f64>) -> bool {
        let mut one_way = OneWay::default();
        delays.into_iter().enumerate().any(|(n, delay)| {
            let sent = Instant::from_millis(n as u64);
            let at_us = sent.as_micros() + (1e3 * delay) as u64;
            one_way.on_arrival(sent, n as u64, sent, at_us);
            one_way.shows_growing_queue()
        })
    }

    #[test]
    fn a_queue_is_seen_while_it_grows() {
        // 0.8 ms a packet; every fourth left together with the one before, and every tenth is
        // small.
        let ramp = |n: u32| {
            let early = if n.is_multiple_of(4) { 0.3 } else { 0.0 };
            let small = if n % 10 == 9 { 1.4 } else { 0.0 };
            20.0 + 0.8 * f64::from(n) - early - small
        };
        assert!(!sees_queue((0..7).map(ramp)));
        assert!(sees_queue((0..16).map(ramp)));
        // 4 ms of a queue, and a swing of 10 ms that rises for six packets.
        assert!(!sees_queue((0..20).map(|n| 20.0 + 0.2 * f64::from(n))));
        let wave = |n: u32| 25.0 + 5.0 * (f64::from(n) / 2.0).sin();
        assert!(!sees_queue((0..1_000).map(wave)));
    }

    #[test]
    fn delay_that_is_drawn_for_each_packet_and_steps_are_no_queue() {
        let mut rng = marline_base::Rng::new(1);
        let jitter: alloc::vec::Vec<f64> = (0..20_000).map(|_| 40.0 * rng.uniform()).collect();
        assert!(!sees_queue(jitter.iter().copied()));
        // In order: a packet arrives with the latest of those before it.
        let mut latest = 0.0;
        let in_order = jitter.iter().enumerate().map(|(n, delay)| {
            latest = f64::max(latest, n as f64 + delay);
            latest - n as f64
        });
        assert!(!sees_queue(in_order));
        let step = |n: u32| f64::from(20 + 40 * (n / 50).min(1));
        assert!(!sees_queue((0..100).map(step)));
        let varied = (0..20_000).map(|n| step(n) + 5.0 * rng.uniform());
        assert!(!sees_queue(varied));
        // A clock that is slow by half a thousandth.
        assert!(!sees_queue((0..20_000).map(|n| 0.0005 * f64::from(n))));
    }

    #[test]
    fn queueing_is_what_exceeds_the_emptiest_packet_whatever_the_epoch() {
        let mut one_way = OneWay::default();
        let epoch = 77_000_000;
        for n in 0..200_u64 {
            let sent = Instant::from_millis(n);
            // The queue grows by 10 ms after packet 50.
            let delay = if n < 50 { 20_000 } else { 30_000 };
            one_way.on_arrival(sent, n, sent, epoch + n * 1_000 + delay);
        }
        let queueing = one_way.queueing().as_secs_f64();
        assert!((queueing - 0.010).abs() < 1e-5, "{queueing}");
        let spacing = one_way.spacing().unwrap().as_secs_f64();
        assert!((spacing - 0.001).abs() < 1e-6, "{spacing}");
    }
}
