//! What a path's packets show in the order in which they left: how long each waits, once it
//! arrived, for those before it, and how long the bottleneck serves one.

use alloc::collections::VecDeque;

/// Packets remembered; one that comes later than this number after it is not waited for.
const WINDOW: usize = 128;
/// Weight of a packet in the mean wait.
const WAIT_GAIN: f64 = 1.0 / 64.0;
/// Packets over which service times are averaged, at least.
const SERVED: f64 = 256.0;
/// Where delay is drawn again for each packet, gaps between arrivals vary by far more than a
/// service time, and only the mean of many says something: of at most this many times more.
const NOISY: f64 = 4.0;

/// Bytes around a datagram on its way: of IP (20), UDP (8), QUIC (14) and its seal (16). Service
/// times are learnt from whole packets; a small one takes longer than its share of that.
const HEAD: f64 = 58.0;
/// A path that is thought to be quicker than before by this factor is learnt again.
const QUICKER: f64 = 0.8;

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    pub(super) at_us: i64,
    pub(super) size: u32,
    /// It left while the bottleneck served its predecessor, as far as was known.
    pub(super) queued: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Succession {
    /// The packets from `next` on, at most a window; `None` has not arrived. Empty as long as they
    /// come in order.
    arrived: VecDeque<Option<Arrived>>,
    /// The first packet that is not judged: one that has not arrived, unless it is the window's.
    next: u64,
    /// When the packet before that arrived, if it did (µs).
    last: Option<i64>,
    /// When all that were judged had arrived (µs).
    frontier: i64,
    /// Mean wait (µs).
    wait: f64,
    /// Mean time from one packet to the next that stood behind it, and its mean deviation (µs);
    /// mean size of these packets (bytes). Each apart, or a small packet that came late would count
    /// for as many large ones.
    gap: f64,
    deviation: f64,
    size: f64,
    /// Service times in the mean, at most [`SERVED`] times [`NOISY`].
    served: f64,
    /// Service time of a byte by the rate that the path was thought to have meanwhile (µs).
    basis: f64,
}

impl Default for Succession {
    fn default() -> Self {
        Self {
            arrived: VecDeque::new(),
            next: 0,
            last: None,
            frontier: i64::MIN,
            wait: 0.0,
            gap: 0.0,
            deviation: 0.0,
            size: 0.0,
            served: 0.0,
            basis: 0.0,
        }
    }
}

impl Succession {
    /// Packet `number` arrived.
    pub(super) fn on_arrival(&mut self, number: u64, packet: Arrived) {
        if number < self.next {
            self.frontier = self.frontier.max(packet.at_us);
            return;
        }
        let beyond = (number - self.next).saturating_sub(WINDOW as u64 - 1);
        for _ in 0..beyond.min(WINDOW as u64) {
            self.judge();
        }
        if beyond > WINDOW as u64 {
            self.next += beyond - WINDOW as u64;
        }
        let place = (number - self.next) as usize;
        if self.arrived.len() <= place {
            self.arrived.resize(place + 1, None);
        }
        self.arrived[place] = Some(packet);
        while let Some(Some(_)) = self.arrived.front() {
            self.judge();
        }
    }

    /// Judges the next packet.
    fn judge(&mut self) {
        let packet = self.arrived.pop_front().flatten();
        self.next += 1;
        let last = core::mem::replace(&mut self.last, packet.map(|p| p.at_us));
        let Some(packet) = packet else { return };
        self.frontier = self.frontier.max(packet.at_us);
        self.wait += WAIT_GAIN * ((self.frontier - packet.at_us) as f64 - self.wait);
        if let Some(last) = last.filter(|_| packet.queued && packet.size > 0) {
            let noise = self.deviation / self.gap.max(1e-9);
            self.served = (self.served + 1.0).min(SERVED * noise.clamp(1.0, NOISY));
            let (gap, size) = ((packet.at_us - last) as f64, f64::from(packet.size));
            self.deviation += ((gap - self.gap).abs() - self.deviation) / self.served;
            self.gap += (gap - self.gap) / self.served;
            self.size += (size - self.size) / self.served;
        }
    }

    /// The path is thought to serve a byte in this time (µs). Packets that stood in a queue only by
    /// a rate that was far too low show when they were sent, not how they were served.
    pub(super) fn rely_on(&mut self, given: f64) {
        if given < QUICKER * self.basis {
            (self.served, self.deviation) = (0.0, 0.0);
            self.basis = given;
        } else {
            self.basis += (given - self.basis) / SERVED.min(self.served + 1.0);
        }
    }

    /// Mean wait of a packet for those before it (µs): zero where none overtakes another.
    pub(super) fn wait(&self) -> f64 {
        self.wait
    }

    /// Service time of a byte at the bottleneck (µs); `given` as long as too little was seen of it.
    pub(super) fn service(&self, given: f64) -> f64 {
        let share = (self.served / SERVED).min(1.0);
        let seen = self.gap / self.size.max(1.0);
        let mean = share * seen + (1.0 - share) * given;
        // Jitter may make a mean of few gaps anything.
        mean.clamp(given, 2.0 * given)
    }

    /// Service time of a packet of `size` bytes (µs).
    pub(super) fn service_of(&self, given: f64, size: u32) -> f64 {
        let size = f64::from(size);
        let whole = self.size.max(size);
        self.service(given) * whole * (size + HEAD) / (whole + HEAD)
    }
}
