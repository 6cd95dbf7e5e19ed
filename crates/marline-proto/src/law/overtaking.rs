//! Do packets overtake each other, and how long does one that is there wait for those before it?
//!
//! Where they do, each is late by itself, and what is needed in order is there when the latest of
//! many is. Where they keep their order, the last one's arrival is that of all.

use alloc::collections::VecDeque;

/// Share of packets that come after a later one from which on a path overtakes: duplicates, losses
/// that were none and a changed route make one in a hundred.
const OVERTAKES: f64 = 0.02;
/// Packets in the share and in the mean spacing: a share of 2 % is two or three of them. A
/// choice, not tuned.
const MEMORY: f64 = 128.0;
/// No more packets are looked at: the ones before left too long ago to matter.
const MOST: u32 = 64;
/// Packets remembered; one that comes later than this number after it is not waited for.
const WINDOW: usize = 128;
/// Packets in the mean wait. A choice, not tuned.
const WAITS: f64 = 64.0;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Overtaking {
    packets: f64,
    /// Share of packets that came after one of a higher number.
    late: f64,
    /// Mean time between departures (µs).
    spacing: f64,
    /// The newest packet: its number, when it left and when it arrived (µs).
    newest: Option<(u64, i64, i64)>,
    /// When packets from `next` on arrived (µs), at most a window; `None` has not. Empty as long as
    /// they come in order.
    arrived: VecDeque<Option<i64>>,
    /// The first packet that is not judged: one that has not arrived, unless it is the window's.
    next: u64,
    /// When all that were judged had arrived (µs).
    frontier: i64,
    /// Mean wait (µs).
    wait: f64,
}

impl Default for Overtaking {
    fn default() -> Self {
        Self {
            packets: 0.0,
            late: 0.0,
            spacing: 0.0,
            newest: None,
            arrived: VecDeque::new(),
            next: 0,
            frontier: i64::MIN,
            wait: 0.0,
        }
    }
}

impl Overtaking {
    /// Packet `number` left at `sent_us` on our clock and arrived at `at_us` on the peer's.
    pub(super) fn on_arrival(&mut self, number: u64, sent_us: i64, at_us: i64) {
        self.queue(number, at_us);
        self.packets = (self.packets + 1.0).min(MEMORY);
        let Some((newest, sent, at)) = self.newest else {
            self.newest = Some((number, sent_us, at_us));
            return;
        };
        let late = number < newest && at_us > at;
        self.late += (f64::from(u8::from(late)) - self.late) / self.packets;
        if number > newest {
            let gap = sent_us.saturating_sub(sent) as f64 / (number - newest) as f64;
            self.spacing += (gap - self.spacing) / self.packets;
            self.newest = Some((number, sent_us, at_us));
        }
    }

    /// Puts the packet into its place, and judges those that nothing is missing before.
    fn queue(&mut self, number: u64, at_us: i64) {
        if number < self.next {
            self.frontier = self.frontier.max(at_us);
            return;
        }
        let beyond = (number - self.next).saturating_sub(WINDOW as u64 - 1);
        for _ in 0..beyond.min(WINDOW as u64) {
            self.judge();
        }
        self.next += beyond.saturating_sub(WINDOW as u64);
        let place = (number - self.next) as usize;
        if self.arrived.len() <= place {
            self.arrived.resize(place + 1, None);
        }
        self.arrived[place] = Some(at_us);
        while let Some(Some(_)) = self.arrived.front() {
            self.judge();
        }
    }

    fn judge(&mut self) {
        let arrived = self.arrived.pop_front().flatten();
        self.next += 1;
        if let Some(at) = arrived {
            self.frontier = self.frontier.max(at);
            self.wait += (self.frontier.saturating_sub(at) as f64 - self.wait) / WAITS;
        }
    }

    /// Mean wait of a packet that is there for those before it (µs): zero where none overtakes
    /// another.
    pub(super) fn wait(&self) -> f64 {
        self.wait
    }

    /// The spacing (µs) and the number of packets that may be later than one that leaves now;
    /// `None` where packets keep their order.
    pub(super) fn before(&self) -> Option<(f64, u32)> {
        (self.late > OVERTAKES).then_some((self.spacing, MOST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_overtakes_where_packets_come_after_later_ones() {
        let mut kept = Overtaking::default();
        let mut mixed = Overtaking::default();
        for n in 0..400_u64 {
            let sent = 2_000 * n as i64;
            kept.on_arrival(n, sent, sent + 50_000);
            // Pairs change places.
            let swapped = n ^ 1;
            mixed.on_arrival(swapped, 2_000 * swapped as i64, sent + 50_000);
        }
        assert_eq!(kept.before(), None);
        let (spacing, most) = mixed.before().unwrap();
        assert!((spacing - 2_000.0).abs() < 100.0, "{spacing}");
        assert_eq!(most, 64);
    }
}
