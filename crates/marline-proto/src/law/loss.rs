//! How likely a packet is lost, and how losses gather.
//!
//! *Rate.* What became of packets is counted against a Beta law, and old counts fade with time, not
//! with packets: a link that was bad a minute ago says as much of now whether a thousand packets
//! crossed it since or ten. How quickly they should fade nobody knows, so three memories run side
//! by side, weighted by how likely each made what came of the packets (as in `wander.rs`).
//!
//! *Bursts.* Of two states (Gilbert): after a packet that was lost the next is lost with another
//! probability. Right after a loss that is what counts; with the time since the loss, in units of
//! what bursts last, the memory of it fades and the rate is what is left.

use libm::{exp, log};
use marline_base::{Duration, Instant, nanos_f64};

use super::weights::weights;

/// Memories.
const MEMORIES: usize = 3;
/// How long counts last (s): a fade, a stretch of road, a quarter of an hour's weather.
const LASTING: [f64; MEMORIES] = [1.0, 8.0, 64.0];
/// Packets, and of these lost ones, that every path begins with and keeps: three in a thousand, as
/// between a cable's and a radio link's at their edge, by the word of a few packets.
const PRIOR: (f64, f64) = (8.0, 0.024);
/// Packets are counted together for so long: shorter than a burst.
const TOGETHER: Duration = Duration::from_millis(10);
/// Countings in a memory's weight: two thirds of a second of a busy path. A choice, not tuned.
const WEIGHED: f64 = 64.0;
/// Packets lost in a row, and of these such as another followed, that every path begins with: one
/// loss in four is followed by another.
const FIRST: (f64, f64) = (2.0, 0.5);
/// Losses for which bursts are remembered: some sixteen bursts of four. Half or twice as many
/// move no measure of the bench by half a percent (`lab/sensitivity.py law/loss.rs::BURSTS`).
const BURSTS: f64 = 64.0;
/// How long a burst of one packet lasts (µs): a packet of 1500 bytes takes a millisecond at 12
/// Mb/s.
const SHORTEST: f64 = 1e3;

#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    packets: f64,
    lost: f64,
    score: f64,
}

impl Memory {
    fn rate(&self) -> f64 {
        (PRIOR.1 + self.lost) / (PRIOR.0 + self.packets)
    }
}

/// The reverse path, on which acknowledgements come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReversePath<'a> {
    pub(crate) loss: &'a Loss,
    /// Packets of the peer's own data that should have arrived since the last one did.
    pub(crate) missing: u32,
}

impl ReversePath<'_> {
    /// Probability, 0..=1, that all is silent on a path that is alive, where the feedback that is
    /// overdue is missing with probability `unheard`. Where packets of the peer's own are missing
    /// as well, either they are lost, and feedback with them, or the peer pauses at the same time.
    /// A pause that has lasted m gaps goes on with probability (1 + m)⁻² (a Lomax law of second
    /// order, as of outages in `hazard.rs`).
    pub(super) fn silent(&self, unheard: f64) -> f64 {
        match f64::from(self.missing) {
            0.0 => unheard,
            missing => {
                let pause = 1.0 / ((1.0 + missing) * (1.0 + missing));
                self.loss.in_a_row(self.missing) + pause * unheard
            }
        }
    }
}

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Loss {
    memories: [Memory; MEMORIES],
    /// Counted since `since`.
    packets: f64,
    lost: f64,
    since: Instant,
    rate: f64,
    /// Losses, those of them that followed another, and how long runs were (µs).
    losses: f64,
    followed: f64,
    runs: f64,
    lasted: f64,
    /// The last lost packet: its number and when it left.
    last: Option<(u64, Instant)>,
    /// A later one than that arrived.
    over: bool,
}

impl Loss {
    /// A packet that left at `sent` was lost. Calls in ascending order of numbers.
    pub(crate) fn on_lost(&mut self, number: u64, sent: Instant) {
        self.packets += 1.0;
        self.lost += 1.0;
        self.losses += 1.0;
        let before = self.last.replace((number, sent));
        match before {
            Some((last, at)) if number == last.wrapping_add(1) => {
                self.followed += 1.0;
                self.lasted += nanos_f64(sent.since(at)) / 1e3;
            }
            _ => self.runs += 1.0,
        }
        self.over = false;
        if self.losses > BURSTS {
            for sum in [
                &mut self.losses,
                &mut self.followed,
                &mut self.runs,
                &mut self.lasted,
            ] {
                *sum *= 0.5;
            }
        }
    }

    /// Packets arrived, the newest of them of that number.
    pub(crate) fn on_arrived(&mut self, packets: u32, newest: u64) {
        self.packets += f64::from(packets);
        self.over |= self.last.is_some_and(|(last, _)| newest > last);
    }

    /// A packet that was counted as lost arrived.
    pub(super) fn revoke(&mut self) {
        for memory in &mut self.memories {
            memory.lost = (memory.lost - 1.0).max(0.0);
        }
        self.losses = (self.losses - 1.0).max(0.0);
        self.followed = (self.followed - 0.5).max(0.0);
        self.settle();
    }

    /// Takes in what was counted, if it is time.
    pub(crate) fn refresh(&mut self, now: Instant) {
        let elapsed = now.since(self.since);
        if self.packets == 0.0 || elapsed < TOGETHER && self.since != Instant::ZERO {
            return;
        }
        let seconds = nanos_f64(elapsed) / 1e9;
        let arrived = self.packets - self.lost;
        for (memory, lasting) in self.memories.iter_mut().zip(LASTING) {
            let rate = memory.rate();
            let lost = match self.lost == 0.0 {
                true => 0.0,
                false => self.lost * log(rate),
            };
            let likelihood = lost + arrived * log(1.0 - rate);
            memory.score += likelihood - memory.score / WEIGHED;
            let keeps = 1.0 / (1.0 + seconds / lasting);
            memory.packets = keeps * memory.packets + self.packets;
            memory.lost = keeps * memory.lost + self.lost;
        }
        (self.packets, self.lost, self.since) = (0.0, 0.0, now);
        self.settle();
    }

    fn settle(&mut self) {
        let weights = weights(self.memories.map(|memory| memory.score));
        let each = self.memories.iter().zip(weights);
        self.rate = each.map(|(memory, weight)| weight * memory.rate()).sum();
    }

    /// Share of packets that are lost, as a mean over good and bad moments.
    pub(crate) fn rate(&self) -> f64 {
        match self.rate {
            0.0 => PRIOR.1 / PRIOR.0,
            rate => rate,
        }
    }

    /// Probability that a packet right after a lost one is lost, too.
    pub(super) fn follows(&self) -> f64 {
        let follows = (FIRST.1 + self.followed) / (FIRST.0 + self.losses);
        follows.max(self.rate())
    }

    /// Probability that a packet is lost that leaves `now`.
    pub(super) fn now(&self, now: Instant) -> f64 {
        let rate = self.rate();
        let Some((_, sent)) = self.last.filter(|_| !self.over) else {
            return rate;
        };
        let lasts = SHORTEST.max(self.lasted / self.runs.max(1.0));
        let since = nanos_f64(now.since(sent)) / 1e3;
        rate + (self.follows() - rate) * exp(-since / lasts)
    }

    /// Probability that `count` packets in a row are lost.
    fn in_a_row(&self, count: u32) -> f64 {
        match count {
            0 => 1.0,
            _ => self.rate() * libm::pow(self.follows(), f64::from(count - 1)),
        }
    }

    /// Probability, 0..=1, that `count` packets in a row go without feedback: the first of them are
    /// lost, and on the `reverse` path the acknowledgements of the others, each of which would
    /// report all that arrived before it.
    pub(super) fn unheard(&self, count: u32, reverse: &Self) -> f64 {
        let each = (0..=count).map(|k| self.in_a_row(k) * reverse.in_a_row(count - k));
        each.sum::<f64>().min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_base::Rng;

    /// Packets every millisecond for `seconds` from `from` on, lost by this rate.
    fn carry(loss: &mut Loss, from: u64, seconds: u64, rate: f64, rng: &mut Rng) {
        for n in 1_000 * from..1_000 * (from + seconds) {
            let sent = Instant::from_millis(n);
            match rng.uniform() < rate {
                true => loss.on_lost(n, sent),
                false => loss.on_arrived(1, n),
            }
            loss.refresh(sent + Duration::from_millis(50));
        }
    }

    #[test]
    fn the_rate_is_that_of_the_packets_and_a_change_is_noticed() {
        let mut rng = Rng::new(7);
        let mut loss = Loss::default();
        assert_eq!(loss.rate(), 0.003);
        carry(&mut loss, 0, 60, 0.02, &mut rng);
        assert!((loss.rate() - 0.02).abs() < 0.004, "{}", loss.rate());
        carry(&mut loss, 60, 3, 0.2, &mut rng);
        assert!((loss.rate() - 0.2).abs() < 0.04, "{}", loss.rate());
        assert!(
            loss.follows() < 0.4,
            "each by itself: {} of {}",
            loss.followed,
            loss.losses
        );
    }

    #[test]
    fn counts_fade_with_time_not_with_packets() {
        let mut rng = Rng::new(7);
        let mut loss = Loss::default();
        carry(&mut loss, 0, 30, 0.1, &mut rng);
        let before = loss.rate();
        // Five minutes later one packet arrives: little is left of what was, so the rate is
        // nearer to what every path begins with.
        loss.on_arrived(1, u64::MAX);
        loss.refresh(Instant::from_millis(330_000));
        let keeps = 1.0 / (1.0 + 300.0 / 64.0);
        assert!(loss.memories[2].packets < 30e3 * keeps);
        assert!(loss.memories[0].rate() < 0.5 * before);
    }

    #[test]
    fn packets_without_feedback_are_lost_or_their_acknowledgements_are() {
        let (mut there, mut reverse) = (Loss::default(), Loss::default());
        assert_eq!(there.unheard(0, &reverse), 1.0);
        assert!((there.unheard(1, &reverse) - 2.0 * there.rate()).abs() < 1e-12);
        // Bursts of either direction make four in a row likely.
        let fresh = there.unheard(4, &reverse);
        lossy(&mut reverse);
        let bursts = there.unheard(4, &reverse);
        assert!(bursts > 10.0 * fresh, "{bursts} {fresh}");
        lossy(&mut there);
        assert!(there.unheard(4, &reverse) > 1.5 * bursts);
        assert!(there.unheard(4, &reverse) <= 1.0);
    }

    /// Every tenth packet begins a burst of three.
    fn lossy(loss: &mut Loss) {
        for n in 0..200 {
            let at = Instant::from_millis(n);
            match n % 10 {
                0..3 => loss.on_lost(n, at),
                _ => loss.on_arrived(1, n),
            }
            loss.refresh(at);
        }
    }

    #[test]
    fn a_pause_of_the_peer_explains_less_the_longer_it_is() {
        let loss = Loss::default();
        let silent = |missing| {
            let reverse = ReversePath {
                loss: &loss,
                missing,
            };
            reverse.silent(0.1)
        };
        assert_eq!(silent(0), 0.1);
        let each = [0, 1, 2, 4, 8, 16].map(silent);
        assert!(each.windows(2).all(|pair| pair[1] < pair[0]), "{each:?}");
        assert!(each[5] < 0.001);
    }

    #[test]
    fn losses_in_a_row_make_the_next_one_likely_until_the_burst_is_over() {
        let mut loss = Loss::default();
        // One packet in 500, but four in a row, 3 ms from the first to the last.
        for n in 0..20_000 {
            let sent = Instant::from_millis(n);
            match n % 2_000 < 4 {
                true => loss.on_lost(n, sent),
                false => loss.on_arrived(1, n),
            }
            loss.refresh(sent);
        }
        let follows = loss.follows();
        assert!((follows - 0.74).abs() < 0.04, "three of four: {follows}");
        assert!(loss.in_a_row(3) > 0.4 * loss.rate());
        let now = Instant::from_millis(20_000);
        assert_eq!(loss.now(now), loss.rate(), "a later one arrived");
        loss.on_lost(20_000, now);
        let follows = loss.follows();
        let after = |ms| loss.now(now + Duration::from_millis(ms));
        assert!(after(0) > 0.99 * follows && after(3) < 0.45 && after(60) < 2.0 * loss.rate());
    }

    #[test]
    fn a_loss_that_was_none_is_taken_back() {
        let mut loss = Loss::default();
        loss.on_lost(3, Instant::from_millis(3));
        loss.refresh(Instant::from_millis(20));
        let before = loss.rate();
        loss.revoke();
        assert!(loss.rate() < 0.1 * before, "{} {before}", loss.rate());
    }
}
