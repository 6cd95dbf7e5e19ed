//! Token-bucket pacing without a timer of its own.
//!
//! Credit accrues with time at the set rate, up to a burst, and every packet sent spends it.
//! Packets that must not wait (probes, acknowledgements) may overdraw; the debt is paid before
//! anything else leaves, so the long-run rate is the set rate to the bit.

use marline_base::{Duration, Instant, Rate};

/// Longest time for which unspent credit accrues. A driver whose timer ticks once in a
/// millisecond is up to two late, so this carries the full rate on any link, while a burst delays
/// the next flow's packet by no more than these two milliseconds.
const BURST_TIME: Duration = Duration::from_millis(2);

/// Packets that may always leave together: the burst at rates where [`BURST_TIME`] is less.
const BURST_PACKETS: u64 = 2;

/// RFC 9002 §7.7: pace slightly faster than a window a round trip, so that a late timer does not
/// leave the window unused.
const WINDOW_GAIN: (u64, u64) = (5, 4);

/// Credit is counted in billionths of a bit: rate (bit/s) times time (ns), without rounding.
const UNITS_PER_BYTE: i128 = 8_000_000_000;

/// Pacing of one path: spends, accrues and says when the next packet may leave.
#[derive(Clone, Debug)]
pub struct Pacer {
    rate: Rate,
    mtu: u64,
    /// The burst in units of credit.
    capacity: i128,
    /// Credit at `updated`; negative when overdrawn.
    credit: i128,
    updated: Instant,
    /// When a packet of `mtu` bytes may leave: asked several times for each that does.
    ready: Instant,
}

impl Pacer {
    /// A pacer with a full bucket for a path that carries datagrams of up to `mtu` bytes.
    pub fn new(now: Instant, mtu: u64, rate: Rate) -> Self {
        let mut pacer = Self {
            rate,
            mtu,
            capacity: 0,
            credit: 0,
            updated: now,
            ready: now,
        };
        pacer.resize();
        pacer.credit = pacer.capacity;
        pacer.ready = now;
        pacer
    }

    /// The pacing rate for a controller that names none: 1.25 windows a smoothed round-trip time
    /// (RFC 9002 §7.7).
    pub fn rate_for_window(window: u64, srtt: Duration) -> Rate {
        let (over, under) = WINDOW_GAIN;
        Rate::from_bytes_over(window.saturating_mul(over) / under, srtt)
    }

    /// The rate that is set.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Paces at `rate` from `now` on. Rate zero stops the path; `u64::MAX` bit/s paces nothing.
    pub fn set_rate(&mut self, now: Instant, rate: Rate) {
        if rate != self.rate {
            self.accrue(now);
            self.rate = rate;
            self.resize();
        }
    }

    /// The path carries datagrams of up to `mtu` bytes from `now` on.
    pub fn set_mtu(&mut self, now: Instant, mtu: u64) {
        self.accrue(now);
        self.mtu = mtu;
        self.resize();
    }

    /// Bytes that may leave together after a pause.
    pub fn burst(&self) -> u64 {
        (self.mtu.saturating_mul(BURST_PACKETS)).max(self.rate.bytes_in(BURST_TIME))
    }

    /// Bytes that may leave at `now`.
    pub fn budget(&self, now: Instant) -> u64 {
        let bytes = self.credit_at(now).max(0) / UNITS_PER_BYTE;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// `bytes` leave at `now`, whether the budget covers them or not.
    pub fn on_sent(&mut self, now: Instant, bytes: u64) {
        self.accrue(now);
        self.credit = self.credit.saturating_sub(units(bytes));
        self.ready = self.ready_at();
    }

    /// When a packet of `bytes` may leave; `None` means now. [`Instant::FAR_FUTURE`] at rate zero
    /// with the credit spent.
    ///
    /// A packet larger than the burst waits for a full bucket, not for ever.
    #[inline]
    pub fn next_send(&self, now: Instant, bytes: u64) -> Option<Instant> {
        let at = match bytes == self.mtu {
            true => self.ready,
            false => self.enough_at(bytes),
        };
        (at > now).then_some(at)
    }

    /// When there is credit for a packet of `bytes`, from when it was updated last on. That does
    /// not depend on when it is asked: credit accrues by whole units a nanosecond.
    fn enough_at(&self, bytes: u64) -> Instant {
        let missing = units(bytes).min(self.capacity) - self.credit;
        if missing <= 0 {
            return self.updated;
        }
        let rate = self.rate.as_bps();
        if rate == 0 {
            return Instant::FAR_FUTURE;
        }
        // Rounded up: a nanosecond early would find the budget a bit short.
        let nanos = match u64::try_from(missing) {
            Ok(missing) => missing.div_ceil(rate),
            Err(_) => {
                let rate = i128::from(rate);
                let nanos = missing / rate + i128::from(missing % rate != 0);
                u64::try_from(nanos).unwrap_or(u64::MAX)
            }
        };
        self.updated + Duration::from_nanos(nanos)
    }

    fn ready_at(&self) -> Instant {
        self.enough_at(self.mtu)
    }

    /// The burst changed, and credit is that of `updated`.
    fn resize(&mut self) {
        self.capacity = units(self.burst());
        self.credit = self.credit.min(self.capacity);
        self.ready = self.ready_at();
    }

    fn credit_at(&self, now: Instant) -> i128 {
        let nanos = now.as_nanos().saturating_sub(self.updated.as_nanos());
        let accrued = u128::from(nanos) * u128::from(self.rate.as_bps());
        let accrued = i128::try_from(accrued).unwrap_or(i128::MAX);
        self.credit.saturating_add(accrued).min(self.capacity)
    }

    fn accrue(&mut self, now: Instant) {
        self.credit = self.credit_at(now);
        self.updated = self.updated.max(now);
    }
}

fn units(bytes: u64) -> i128 {
    i128::from(bytes) * UNITS_PER_BYTE
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MTU: u64 = 1_250;

    fn us(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    /// Bytes sent in `millis` by a greedy sender that wakes only when `next_send` says so.
    fn greedy(rate: Rate, millis: u64, tick: Duration) -> u64 {
        let end = Instant::from_millis(millis);
        let mut pacer = Pacer::new(Instant::ZERO, MTU, rate);
        // The initial burst is not part of the long-run rate.
        pacer.on_sent(Instant::ZERO, pacer.burst());
        let (mut now, mut sent) = (Instant::ZERO, 0);
        while now < end {
            match pacer.next_send(now, MTU) {
                None => {
                    pacer.on_sent(now, MTU);
                    sent += MTU;
                }
                // A driver's timer fires on ticks only.
                Some(at) => {
                    let tick = tick.as_nanos() as u64;
                    now = Instant::from_nanos(at.as_nanos().div_ceil(tick) * tick);
                }
            }
        }
        sent
    }

    #[test]
    fn long_run_rate_is_exact_within_a_thousandth() {
        // Awkward rates, and timers of 1 ns and 1 ms.
        for rate in [999_983, 20_000_000, 333_333_333, 1_000_000_000] {
            for tick in [Duration::from_nanos(1), Duration::from_millis(1)] {
                let expected = rate as f64 / 8.0 * 10.0;
                let sent = greedy(Rate::from_bps(rate), 10_000, tick) as f64;
                let error = (sent / expected - 1.0).abs();
                // One packet more or less at either end of ten seconds.
                let edge = 2.0 * MTU as f64 / expected;
                assert!(
                    error < 1e-3_f64.max(edge),
                    "{rate} bit/s, {tick:?}: {error}"
                );
            }
        }
    }

    #[test]
    fn burst_is_two_packets_or_two_milliseconds() {
        let pacer = |mbps| Pacer::new(Instant::ZERO, MTU, Rate::from_mbps(mbps));
        assert_eq!(pacer(1).burst(), 2 * MTU);
        // 20 Mb/s · 2 ms = 40 000 bit.
        assert_eq!(pacer(20).burst(), 5_000);
        assert_eq!(pacer(1_000).burst(), 250_000);
    }

    #[test]
    fn a_packet_waits_for_its_credit() {
        // 10 Mb/s: 1250 bytes take 1 ms; the burst is two packets.
        let mut pacer = Pacer::new(us(0), MTU, Rate::from_mbps(10));
        assert_eq!(pacer.budget(us(0)), 2_500);
        pacer.on_sent(us(0), 2_500);
        assert_eq!(pacer.budget(us(0)), 0);
        assert_eq!(pacer.next_send(us(0), MTU), Some(us(1_000)));
        assert_eq!(pacer.next_send(us(400), MTU), Some(us(1_000)));
        assert_eq!(pacer.budget(us(400)), 500);
        assert_eq!(pacer.next_send(us(1_000), MTU), None);
        // Twice the rate from half-way on: the missing half takes a quarter.
        pacer.set_rate(us(500), Rate::from_mbps(20));
        assert_eq!(pacer.next_send(us(500), MTU), Some(us(750)));
    }

    #[test]
    fn overdraft_is_paid_back() {
        let mut pacer = Pacer::new(us(0), MTU, Rate::from_mbps(10));
        pacer.on_sent(us(0), 5_000);
        assert_eq!(pacer.budget(us(1_000)), 0);
        // 2500 bytes of debt and 1250 of the packet, at 1250 a millisecond.
        assert_eq!(pacer.next_send(us(0), MTU), Some(us(3_000)));
    }

    #[test]
    fn extremes_are_defined() {
        let mut stopped = Pacer::new(us(0), MTU, Rate::ZERO);
        assert_eq!(stopped.next_send(us(0), MTU), None);
        stopped.on_sent(us(0), 2 * MTU);
        assert_eq!(stopped.next_send(us(0), MTU), Some(Instant::FAR_FUTURE));

        let mut unpaced = Pacer::new(us(0), MTU, Rate::from_bps(u64::MAX));
        unpaced.on_sent(us(0), 1 << 40);
        assert_eq!(unpaced.next_send(us(1), MTU), None);
        assert_eq!(unpaced.budget(Instant::FAR_FUTURE), unpaced.burst());

        // Larger than the burst: leaves from a full bucket.
        let mut jumbo = Pacer::new(us(0), MTU, Rate::from_mbps(10));
        assert_eq!(jumbo.next_send(us(0), 9_000), None);
        jumbo.on_sent(us(0), 9_000);
        assert_eq!(jumbo.next_send(us(0), MTU), Some(us(6_200)));
    }

    #[test]
    fn window_over_round_trip_has_a_quarter_of_headroom() {
        // 50 000 bytes in 40 ms are 10 Mb/s.
        assert_eq!(
            Pacer::rate_for_window(50_000, Duration::from_millis(40)),
            Rate::from_kbps(12_500)
        );
    }

    proptest! {
        /// What `next_send` promises, `budget` and `next_send` grant at that time.
        #[test]
        fn promised_times_are_kept(
            rate in 1_000_u64..10_000_000_000,
            steps in prop::collection::vec((0_u64..5_000_000, 1_u64..9_000), 1..50),
        ) {
            let mut pacer = Pacer::new(Instant::ZERO, MTU, Rate::from_bps(rate));
            let mut now = Instant::ZERO;
            for (pause, bytes) in steps {
                now += Duration::from_nanos(pause);
                if let Some(at) = pacer.next_send(now, bytes) {
                    prop_assert!(at > now);
                    let before = Instant::from_nanos(at.as_nanos() - 1);
                    prop_assert!(pacer.next_send(before, bytes).is_some());
                    now = at;
                }
                prop_assert_eq!(pacer.next_send(now, bytes), None);
                prop_assert!(pacer.budget(now) >= bytes.min(pacer.burst()));
                pacer.on_sent(now, bytes);
            }
        }
    }
}
