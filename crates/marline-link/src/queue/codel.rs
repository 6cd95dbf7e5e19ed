use core::time::Duration;
use marline_base::Instant;

/// Parameters of CoDel (RFC 8289).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Codel {
    /// Acceptable standing queueing delay, more than zero (section 4.3).
    pub target: Duration,
    /// Time in which the delay must fall below the target once, more than zero (section 4.2).
    pub interval: Duration,
}

/// 5 ms and 100 ms, the values of RFC 8289 for the open Internet.
impl Default for Codel {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
        }
    }
}

/// CoDel's state machine, RFC 8289 section 5, turned from a loop over the queue into one question
/// for each packet in the order in which packets leave.
///
/// One thing differs. The RFC spares a packet when at most one full packet is left behind it; what
/// is behind it comes later than its verdict, so this spares a packet that had at most one full
/// packet ahead of it when it came. In a standing queue the two agree; the last packets of a burst
/// that nothing follows may be dropped here and are spared there.
#[derive(Clone, Debug)]
pub struct CodelControl {
    codel: Codel,
    /// When a delay that has been above the target all the time leads to a drop.
    first_above: Option<Instant>,
    drop_next: Instant,
    count: u32,
    last_count: u32,
    dropping: bool,
    /// What the next packet settles.
    pending: Pending,
    max_packet: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pending {
    Nothing,
    /// The packet before it was the first to be dropped, at this time.
    Entry(Instant),
    /// The packet before it was dropped in the dropping state.
    Next,
}

impl CodelControl {
    /// A queue that has been empty so far.
    pub const fn new(codel: Codel) -> Self {
        Self {
            codel,
            first_above: None,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
            pending: Pending::Nothing,
            max_packet: 0,
        }
    }

    /// Whether to drop the packet of `size` bytes that came at `came`, found `ahead` bytes in the
    /// queue, and leaves it at `now`.
    pub fn drops(&mut self, came: Instant, now: Instant, size: u32, ahead: u64) -> bool {
        self.max_packet = self.max_packet.max(size);
        if ahead == 0 {
            self.found_empty();
        }
        let ok_to_drop = self.ok_to_drop(came, now, ahead);
        match core::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Entry(_) => {
                self.enter(now);
                return false;
            }
            Pending::Next if !ok_to_drop => self.dropping = false,
            Pending::Next => self.drop_next = self.control_law(self.drop_next),
            Pending::Nothing if self.dropping => self.dropping = ok_to_drop,
            Pending::Nothing if ok_to_drop => {
                self.pending = Pending::Entry(now);
                return true;
            }
            Pending::Nothing => {}
        }
        if self.dropping && now >= self.drop_next {
            self.count += 1;
            self.pending = Pending::Next;
            return true;
        }
        false
    }

    /// The queue ran empty since the last packet.
    fn found_empty(&mut self) {
        self.first_above = None;
        match core::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Entry(dropped) => {
                // Nobody was there to be sent instead; the state machine moved on all the same.
                self.enter(dropped);
                self.dropping = false;
            }
            Pending::Next => self.dropping = false,
            Pending::Nothing => {}
        }
    }

    fn ok_to_drop(&mut self, came: Instant, now: Instant, ahead: u64) -> bool {
        if now.since(came) < self.codel.target || ahead <= u64::from(self.max_packet) {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + self.codel.interval);
                false
            }
            Some(at) => now >= at,
        }
    }

    /// Enters the dropping state after the first drop. When the last episode was shortly before,
    /// its drop rate is a good one to start with (section 5.5).
    fn enter(&mut self, now: Instant) {
        self.dropping = true;
        let delta = self.count - self.last_count;
        let recent = now.since(self.drop_next) < self.codel.interval * 16;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = self.control_law(now);
        self.last_count = self.count;
    }

    fn control_law(&self, from: Instant) -> Instant {
        let interval = self.codel.interval.as_nanos() as f64;
        let step = interval / libm::sqrt(f64::from(self.count));
        from + Duration::from_nanos(step as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Drop times in ms when a packet leaves every millisecond, after a constant time in the queue.
    fn drops(sojourn_ms: u64, ahead: u64, packets: u64) -> Vec<u64> {
        let mut control = CodelControl::new(Codel::default());
        (sojourn_ms..packets)
            .filter(|&t| {
                let now = Instant::from_millis(t);
                control.drops(now - Duration::from_millis(sojourn_ms), now, 1_500, ahead)
            })
            .collect()
    }

    #[test]
    fn drops_come_at_the_control_laws_times() {
        let times = drops(20, 30_000, 1_000);
        // The delay is above the target from t = 20 ms on; the first drop comes an interval later,
        // and the packet after it is sent. From then on drop n follows after 100 ms/√n.
        let mut expected = Vec::new();
        expected.push(120);
        let mut next = 121.0;
        for count in 1..=30 {
            next += 100.0 / libm::sqrt(f64::from(count));
            expected.push(libm::ceil(next - 1e-5) as u64);
        }
        expected.retain(|&t| t < 1_000);
        assert_eq!(times, expected);
        assert!(times.len() > 20);
    }

    #[test]
    fn short_delays_and_short_queues_are_spared() {
        assert!(drops(4, 30_000, 1_000).is_empty());
        assert!(!drops(5, 30_000, 1_000).is_empty());
        assert!(drops(20, 1_500, 1_000).is_empty());
        assert!(!drops(20, 1_501, 1_000).is_empty());
    }

    #[test]
    fn one_good_packet_ends_an_episode_and_a_new_one_resumes_its_rate() {
        let mut control = CodelControl::new(Codel::default());
        let ms = Instant::from_millis;
        let mut leave = |t: u64, sojourn: u64| {
            control.drops(ms(t) - Duration::from_millis(sojourn), ms(t), 1_500, 30_000)
        };
        let first: Vec<u64> = (20..700).filter(|&t| leave(t, 20)).collect();
        assert!(!leave(700, 1));
        let second: Vec<u64> = (701..1_000).filter(|&t| leave(t, 20)).collect();
        // Entered again an interval after the delay rose, at the rate of drops 2, 3, ... that the
        // first episode had reached, not with a pause of 100 ms.
        assert_eq!(second[0], 801);
        let reached = (first.len() - 1) as f64;
        let pause = (second[1] - second[0]) as f64;
        assert!(
            libm::fabs(pause - 100.0 / libm::sqrt(reached)) < 2.1,
            "{pause} {reached}"
        );
    }
}
