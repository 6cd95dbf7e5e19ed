//! How long the bottleneck serves a byte, and how sure that is.
//!
//! Packets of ours wait behind each other (Lindley's recursion): the bottleneck is free when it has
//! served what was sent, and what is sent sooner waits until then. The time that it takes for a
//! byte shows in the gaps between packets that arrive one after the other and stood in its queue. A
//! path's *rate* is what it carried at the best; a rate that was never filled is a lower bound, so
//! that a packet waits for anything between nothing and the bytes before it over that rate.
//!
//! A wait is uncertain by a part of itself, as the service is: by how much shows in how wrong waits
//! were that packets had. Jitter of the path is no part of it: it makes each gap uneven, but moves
//! the sum of many by no more than that of one.

use marline_base::{Duration, Instant, Rate, micros_f64};

use super::Left;

/// Bytes around a datagram on its way: of IP (20), UDP (8), QUIC (14) and its seal (16).
const HEAD: f64 = 58.0;
/// Rates count datagrams; of what the link carries that is this share where they are whole.
const WHOLE: f64 = 1_200.0 / (1_200.0 + HEAD);
/// Bytes on the link of a packet of full length.
const FULL: f64 = 1_258.0;
/// Bytes in the mean, in packets of full length: 1024 of them, as the gaps of a link with jitter
/// vary by several times their mean, and stalls of a second are in it. Of 256, 1024 and 4096 it has
/// the best likelihood (tuned: `marline repro law --quick --seed 77`).
const MEMORY: f64 = 1_024.0 * FULL;
/// The mean is believed in place of the path's rate by what it is of; wholly from 64 packets on.
const TRUSTED: f64 = MEMORY / 16.0;
/// A path whose packets are thought to take less than this share of the time that they took is
/// learnt again: the inverse of the gain of 1.25 by which BBR looks for more (Cardwell et al.,
/// 2016), which rates do not pass while the path stays as it is.
const QUICKER: f64 = 0.8;
/// No service is quicker than the path's rate says, which is a maximum, and none is slower by more
/// than this factor: few gaps of jitter, or a stall, may make a mean anything.
const SLOWEST: f64 = 2.0;
/// No wait is modelled longer than this (µs), however wrong the rate was.
const LONGEST: f64 = 2e6;
/// Relative variance of a wait before any was seen: a controller's model is off by a fifth. It
/// counts as much as a wait of 40 ms (µs²).
const UNSEEN: (f64, f64) = (0.04, 1.6e9);
/// Packets over which it is judged how wrong waits are: one or two flights. A choice, not
/// tuned.
const JUDGED: f64 = 64.0;

/// A wait: its mean (µs) and its variance (µs²).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Wait {
    pub(super) mean: f64,
    pub(super) variance: f64,
}

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Service {
    /// Until when the bottleneck serves what was sent, on our clock; at the path's rate, which is a
    /// maximum, it is busy until then for certain.
    free: Instant,
    free_at_best: Instant,
    /// Time by which `free` was moved back, all in all (µs).
    corrected: f64,
    /// The last packet that arrived: its number and when (µs).
    last: Option<(u64, i64)>,
    /// Discounted gaps (µs), and bytes that were served in them.
    gaps: f64,
    bytes: f64,
    /// µs for a byte on the link at the rate that the path was thought to have meanwhile, the mean
    /// over about as many packets.
    basis: f64,
    /// Discounted squares of waits, and of how wrong they were (µs²).
    waited: f64,
    missed: f64,
}

/// µs for a byte of a datagram.
fn by(rate: Rate) -> f64 {
    8e6 / rate.as_bps().max(1) as f64
}

fn duration(us: f64) -> Duration {
    Duration::from_nanos((1e3 * us.clamp(0.0, LONGEST)) as u64)
}

impl Service {
    /// By how much the mean of gaps is believed, 0..=1.
    fn trust(&self) -> f64 {
        (self.bytes / TRUSTED).min(1.0)
    }

    /// µs for a byte on the link, where the path's rate says `given`.
    fn time(&self, given: f64) -> f64 {
        let share = self.trust();
        let seen = self.gaps / self.bytes.max(1.0);
        (share * seen + (1.0 - share) * given).clamp(given, SLOWEST * given)
    }

    /// What `bytes` more would wait that are sent `now`; `filled`: the rate was ever reached.
    pub(super) fn wait(&self, now: Instant, bytes: f64, rate: Rate, filled: bool) -> Wait {
        let busy = bytes / WHOLE * self.time(WHOLE * by(rate));
        self.wait_of(micros_f64(self.free.since(now)) + busy, filled)
    }

    /// A wait of these µs by what is known of the service.
    fn wait_of(&self, busy: f64, filled: bool) -> Wait {
        let mean = busy.min(LONGEST);
        if mean <= 0.0 {
            return Wait::default();
        }
        let unknown = (UNSEEN.0 * UNSEEN.1 + self.missed) / (UNSEEN.1 + self.waited);
        let guessed = if filled { 0.0 } else { 1.0 - self.trust() };
        // By a rate that is a lower bound alone it is even between nothing and this: so far from
        // its end.
        Wait {
            mean,
            variance: mean * mean * (unknown + guessed / 3.0),
        }
    }

    /// A packet of `size` bytes leaves: what it waits, and whether the bottleneck is busy even at
    /// the path's rate.
    pub(super) fn on_sent(
        &mut self,
        now: Instant,
        size: u32,
        rate: Rate,
        filled: bool,
    ) -> (Wait, bool) {
        self.rely_on(WHOLE * by(rate));
        let wait = self.wait_of(micros_f64(self.free.since(now)), filled);
        let queued = self.free_at_best > now;
        let latest = now + duration(LONGEST);
        let best = duration(by(rate) * f64::from(size));
        self.free_at_best = (self.free_at_best.max(now) + best).min(latest);
        let time = self.time(WHOLE * by(rate));
        let busy = duration(time * (f64::from(size) + HEAD));
        self.free = (self.free.max(now) + busy).min(latest);
        (wait, queued)
    }

    /// The path is thought to serve a byte in this time (µs). Packets that stood in a queue only by
    /// a rate that was far too low show when they were sent, not how they were served.
    fn rely_on(&mut self, given: f64) {
        if given < QUICKER * self.basis {
            (self.gaps, self.bytes) = (0.0, 0.0);
            self.basis = given;
        } else {
            self.basis += (given - self.basis) / (1.0 + self.bytes / FULL);
        }
    }

    /// Packet `number` of `size` bytes arrived at `at_us`; `beyond` (µs) is how much longer it took
    /// than the quickest lately.
    pub(super) fn on_arrival(
        &mut self,
        number: u64,
        size: u32,
        at_us: i64,
        left: &Left,
        beyond: f64,
    ) {
        // It cannot have waited longer than it took beyond the quickest: by as much the bottleneck
        // was free earlier than thought, less what was corrected since it left.
        let since = self.corrected - left.corrected;
        let phantom = f64::from(left.wait) - beyond - since;
        if phantom > 0.0 {
            self.corrected += phantom;
            self.free =
                Instant::from_nanos(self.free.as_nanos().saturating_sub((1e3 * phantom) as u64));
            self.free_at_best = self.free_at_best.min(self.free);
        }
        let last = self.last.replace((number, at_us));
        if let Some((before, then)) = last
            && number == before.wrapping_add(1)
            && left.queued
        {
            let gap = at_us.saturating_sub(then).max(0) as f64;
            let size = f64::from(size) + HEAD;
            let keeps = 1.0 - size / MEMORY;
            self.gaps = keeps * self.gaps + gap.min(LONGEST);
            self.bytes = keeps * self.bytes + size;
        }
    }

    /// The clocks do not differ by what they did.
    pub(super) fn restart(&mut self) {
        self.last = None;
    }

    /// When the bottleneck will have served all that was sent, on our clock.
    pub(super) fn free(&self) -> Instant {
        self.free
    }

    /// How long it serves a byte of a datagram (µs).
    pub(super) fn a_byte(&self, rate: Rate) -> f64 {
        self.time(WHOLE * by(rate)) / WHOLE
    }

    /// Is there a queue of ours?
    pub(super) fn is_busy(&self, now: Instant) -> bool {
        self.free > now
    }

    /// A packet that was to wait came this much later than expected (µs); the square of that is
    /// `usual` without a wait (µs²).
    pub(super) fn on_error(&mut self, wait: f64, error: f64, usual: f64) {
        if wait > 0.0 {
            let keeps = 1.0 - 1.0 / JUDGED;
            let missed = (error * error - usual).clamp(0.0, wait * wait);
            self.waited = keeps * self.waited + wait * wait;
            self.missed = keeps * self.missed + missed;
        }
    }

    /// What was corrected so far (µs).
    pub(super) fn corrected(&self) -> f64 {
        self.corrected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of 1192 bytes (1250 on the wire) at twice the rate of a link that takes 1 ms each.
    fn filled() -> Service {
        let mut service = Service::default();
        let rate = Rate::from_mbps(10);
        for n in 0..2_000_u64 {
            let now = Instant::from_micros(n * 1_000);
            let (wait, queued) = service.on_sent(now, 1_192, rate, true);
            let left = Left {
                wait: wait.mean as f32,
                corrected: service.corrected(),
                queued: queued || n > 0,
                ..Left::default()
            };
            // Every other one 400 µs late.
            let at = 20_000 + n * 1_000 + 400 * (n % 2);
            service.on_arrival(n, 1_192, at as i64, &left, 1e9);
        }
        service
    }

    #[test]
    fn gaps_of_packets_that_stood_in_a_queue_show_the_service() {
        let service = filled();
        let time = service.gaps / service.bytes;
        assert!((time * 1_250.0 - 1_000.0).abs() < 5.0, "{time}");
    }

    #[test]
    fn a_path_that_is_thought_to_be_quicker_is_learnt_again() {
        let mut service = filled();
        let given = |mbps: u64| WHOLE * by(Rate::from_mbps(mbps));
        // It seemed to carry 10 Mb/s.
        assert!(service.time(given(10)) > 0.99 * 0.8);
        service.rely_on(given(12));
        assert!(service.bytes > 0.0);
        service.rely_on(given(20));
        assert_eq!((service.bytes, service.time(given(20))), (0.0, given(20)));
    }

    #[test]
    fn a_clock_that_jumps_is_no_gap() {
        let mut service = filled();
        let before = service.gaps / service.bytes;
        let left = Left {
            queued: true,
            ..Left::default()
        };
        service.restart();
        // The next one, an hour later by the peer's clock.
        service.on_arrival(2_000, 1_192, 3_600_000_000, &left, 1e9);
        assert_eq!(service.gaps / service.bytes, before);
    }

    #[test]
    fn what_waits_is_the_less_sure_the_more_is_ahead() {
        let mut service = filled();
        let now = Instant::from_millis(60_000);
        let rate = Rate::from_mbps(10);
        let wait = |bytes: f64| service.wait(now, WHOLE * bytes, rate, true);
        let (one, many) = (wait(1_250.0), wait(125_000.0));
        assert!((one.mean - 1e3).abs() < 10.0 && (many.mean - 1e5).abs() < 1e3);
        // A fifth, as of every path.
        assert!((many.variance / (0.2 * many.mean * 0.2 * many.mean) - 1.0).abs() < 1e-6);
        // Waits of 100 ms are a tenth wrong, beside 2 ms of jitter.
        for n in 0..400 {
            let error = if n % 2 == 0 { 10e3 } else { -10e3 };
            service.on_error(100e3, error, 4e6);
        }
        let judged = service.wait(now, WHOLE * 125_000.0, rate, true);
        let part = libm::sqrt(judged.variance) / judged.mean;
        assert!((part - 0.098).abs() < 0.003, "{part}");
        assert_eq!(service.wait(now, 0.0, rate, true), Wait::default());
        // Of what was never filled nor seen: anything between nothing and that.
        let bound = Service::default().wait(now, 125_000.0, rate, false);
        assert!((bound.mean - 100e3).abs() < 1e-6);
        assert!((bound.variance / (1e10 * (0.04 + 1.0 / 3.0)) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_wait_that_nobody_had_is_taken_back_once() {
        let mut service = Service::default();
        let rate = Rate::from_mbps(1);
        let now = Instant::from_millis(1_000);
        let mut left = Left::default();
        for _ in 0..10 {
            let (wait, _) = service.on_sent(now, 1_192, rate, true);
            (left.wait, left.corrected) = (wait.mean as f32, service.corrected());
        }
        let before = service.wait(now, 0.0, rate, true).mean;
        // Ten of 1250 bytes on the link; by a rate of 1 Mb/s 95.4 % of them count.
        assert!((before - 95.4e3).abs() < 50.0, "{before}");
        // The last waited for 40 ms, not for 85.85.
        for _ in 0..2 {
            service.on_arrival(9, 1_192, 0, &left, 40e3);
        }
        let after = service.wait(now, 0.0, rate, true).mean;
        assert!((before - after - 45.85e3).abs() < 50.0, "{before} {after}");
    }
}
