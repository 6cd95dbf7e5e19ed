//! Does a queue stand in a path's bottleneck?
//!
//! A delay that is drawn for each packet makes some of them late, and where packets keep their
//! order it makes all of them late, because each waits for the latest one before it. Neither the
//! quickest packet of all nor the differences between neighbours tell how late is usual then. So
//! means are compared: that of the last packets with the smallest one of a block of them. What a
//! queue never does, and such delays do, is to make one packet much later than the one before it:
//! by how much they do is what chance can do to a mean.

use marline_base::{Duration, Instant};

/// Packets whose mean is the delay now.
const RECENT: usize = 16;
/// What arrived longer ago says nothing of the queue now.
const FRESH: Duration = Duration::from_millis(250);
/// A block lasts at least so long and has at least [`RECENT`] packets: long enough to average
/// delays that follow each other, short enough to find a moment without a queue.
const BLOCK: Duration = Duration::from_millis(50);
/// The smallest delay is that of the last one to two of these, so that a route that grew longer
/// is noticed.
const MEMORY: Duration = Duration::from_secs(10);
/// A queue below this is none (µs).
const LEAST_US: u64 = 3_000;
/// Nor is one below this part of the smallest round-trip time.
const LEAST_PART: u64 = 10;
/// Nor one below so many usual jumps.
const JUMPS: f64 = 2.0;
/// Weight of a packet in the means of jumps.
const GAIN: f64 = 1.0 / 128.0;
/// Jumps that are smaller in the mean over packets are rare: one does not count for long (µs).
const RARE_US: f64 = 100.0;

/// Forward delays of a path: the smallest, the recent ones, their jumps. They are differences
/// between two clocks, so only differences of them mean anything.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Smallest mean of a block of the running span and of the one before it (µs).
    smallest: [Option<i64>; 2],
    span_began: Option<Instant>,
    block: Option<Block>,
    /// When it was heard of, and the delay (µs); a ring.
    recent: [Option<(Instant, i64)>; RECENT],
    next: usize,
    /// Of the packet before (µs).
    last: Option<i64>,
    /// Means over packets of how much later than the one before it was (µs), and of the square.
    jumps: (f64, f64),
}

/// Packets that are averaged: delays relative to the first (µs).
#[derive(Debug)]
struct Block {
    began: Instant,
    first: i64,
    sum: i64,
    count: i64,
}

impl Standing {
    /// A packet that was sent at `sent` arrived at `arrived_us` on the peer's clock.
    pub(super) fn on_arrival(&mut self, now: Instant, sent: Instant, arrived_us: u64) {
        let delay = arrived_us.wrapping_sub(sent.as_micros()) as i64;
        if self
            .span_began
            .is_none_or(|began| now.since(began) > MEMORY)
        {
            self.smallest = [None, self.smallest[0]];
            self.span_began = Some(now);
        }
        if let Some(mean) = self.block_mean(now, delay) {
            self.smallest[0] = Some(self.smallest[0].map_or(mean, |s| s.min(mean)));
        }
        if let Some(last) = self.last.replace(delay) {
            let jump = delay.saturating_sub(last).max(0) as f64;
            self.jumps.0 += GAIN * (jump - self.jumps.0);
            self.jumps.1 += GAIN * (jump * jump - self.jumps.1);
        }
        self.recent[self.next] = Some((now, delay));
        self.next = (self.next + 1) % RECENT;
    }

    /// Adds a packet to the running block; the block's mean if it was the last.
    fn block_mean(&mut self, now: Instant, delay: i64) -> Option<i64> {
        let block = self.block.get_or_insert(Block {
            began: now,
            first: delay,
            sum: 0,
            count: 0,
        });
        block.sum = block.sum.saturating_add(delay.saturating_sub(block.first));
        block.count += 1;
        let mean = block.first.saturating_add(block.sum / block.count);
        let whole = block.count >= RECENT as i64 && now.since(block.began) >= BLOCK;
        whole.then(|| {
            self.block = None;
            mean
        })
    }

    /// By how much recent packets were later than the path's smallest delay (µs); `None` if nothing
    /// arrived lately.
    pub(super) fn queue(&self, now: Instant) -> Option<u64> {
        let fresh = self.recent.iter().flatten();
        let fresh = fresh.filter(|(at, _)| now.since(*at) <= FRESH);
        let first = fresh.clone().map(|(_, delay)| *delay).next()?;
        let count = fresh.clone().count() as i64;
        let sum: i64 = fresh.map(|(_, delay)| delay.saturating_sub(first)).sum();
        // Before the first block is whole there is nothing to compare with.
        let smallest = self.smallest.iter().flatten().min()?;
        let mean = first.saturating_add(sum / count);
        Some(mean.saturating_sub(*smallest).max(0) as u64)
    }

    /// Is that more than chance makes it?
    pub(super) fn is_standing(&self, now: Instant, min_rtt: Duration) -> bool {
        let part = min_rtt.as_micros() as u64 / LEAST_PART;
        let least = LEAST_US.max(part).max((JUMPS * self.jump_us()) as u64);
        self.queue(now).is_some_and(|queue| queue > least)
    }

    /// The usual jump (µs), large ones counting for more: a queue that grows by a packet's service
    /// time at a time has none but these.
    fn jump_us(&self) -> f64 {
        let (mean, square) = self.jumps;
        square / (mean + RARE_US)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_base::Rng;

    const RTT: Duration = Duration::from_millis(40);

    /// Packets every millisecond, each delayed by 20 ms and what `extra` says (µs); the peer's
    /// clock is ahead by an hour. Returns in how many of them a queue stood.
    fn standing(
        standing: &mut Standing,
        from: u64,
        packets: u64,
        extra: impl Fn(u64) -> u64,
    ) -> u64 {
        let mut count = 0;
        for n in from..from + packets {
            let sent = Instant::from_millis(n);
            let arrived = 3_600_000_000 + sent.as_micros() + 20_000 + extra(n);
            let now = Instant::from_millis(n + 40);
            standing.on_arrival(now, sent, arrived);
            count += u64::from(standing.is_standing(now, RTT));
        }
        count
    }

    #[test]
    fn a_queue_stands_once_recent_packets_are_late() {
        let mut path = Standing::default();
        assert_eq!(standing(&mut path, 0, 200, |_| 0), 0);
        // 4 ms are not above a tenth of the round trip: 40 ms / 10.
        assert_eq!(standing(&mut path, 200, 200, |_| 4_000), 0);
        assert_eq!(standing(&mut path, 400, 200, |_| 0), 0);
        // 5 ms are, from when the mean of the last sixteen is: thirteen of them.
        assert_eq!(standing(&mut path, 600, 200, |_| 5_000), 200 - 12);
        let now = Instant::from_millis(840);
        assert_eq!(path.queue(now), Some(5_000));
        assert_eq!(path.queue(now + FRESH), None, "that was long ago");
        let late = standing(&mut path, 800, 200, |_| 0);
        assert!(late < RECENT as u64, "{late}: it is gone at once");
    }

    /// Independent delays of up to 20 ms.
    fn noise(packets: usize) -> alloc::vec::Vec<u64> {
        let mut rng = Rng::new(7);
        (0..packets).map(|_| rng.below(20_000)).collect()
    }

    #[test]
    fn jitter_is_no_queue_but_a_queue_under_jitter_is() {
        let noise = noise(8_000);
        let mut path = Standing::default();
        assert_eq!(standing(&mut path, 0, 4_000, |n| noise[n as usize]), 0);
        let late = standing(&mut path, 4_000, 4_000, |n| 30_000 + noise[n as usize]);
        assert!(late > 3_900, "{late} of 4000");
    }

    #[test]
    fn nor_is_jitter_that_makes_all_wait_for_the_latest() {
        // A packet every millisecond that arrives no earlier than the one before it.
        let mut noise = noise(8_000);
        for n in 1..noise.len() {
            noise[n] = noise[n].max(noise[n - 1].saturating_sub(1_000));
        }
        let mut path = Standing::default();
        let late = standing(&mut path, 0, 4_000, |n| noise[n as usize]);
        assert!(late < 100, "{late} of 4000");
        let late = standing(&mut path, 4_000, 4_000, |n| 30_000 + noise[n as usize]);
        assert!(late > 3_900, "{late} of 4000");
    }

    #[test]
    fn a_longer_route_is_a_queue_for_no_longer_than_the_memory() {
        let mut path = Standing::default();
        standing(&mut path, 0, 1_000, |_| 0);
        let late = standing(&mut path, 1_000, 30_000, |_| 30_000);
        assert!((10_000..=20_200).contains(&late), "{late}");
    }
}
