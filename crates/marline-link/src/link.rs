mod change;
#[cfg(test)]
mod tests;

use crate::capacity::Server;
use crate::delay::Propagation;
use crate::loss::Lottery;
use crate::outage::Cursor;
use crate::queue::{Backlog, CodelControl};
use crate::replayed::Losses;
use crate::{ConfigError, Counters, LinkConfig, OutageMode, Reason, Verdict};
use marline_base::{Instant, Rng};

/// One direction of a link.
///
/// Call [`offer`](Self::offer) for each packet, at times that never decrease. The same
/// configuration, seed and offers give the same verdicts on every machine. Every component draws
/// from a stream of its own (`"capacity"`, `"delay"`, `"loss"`, `"outage"`, `"duplicate"`), so that
/// switching one on or off shifts no draw of another.
///
/// Memory: at most 48 bytes for each packet in the queue, of which there are at most
/// [`QueueLimit::MAX_PACKETS`](crate::QueueLimit::MAX_PACKETS), and the trace, if there is one.
#[derive(Clone, Debug)]
pub struct Link {
    config: LinkConfig,
    /// Where the components' streams come from.
    rng: Rng,
    changes: u64,
    server: Server,
    propagation: Propagation,
    loss: Lottery,
    codel: Option<CodelControl>,
    backlog: Backlog,
    /// Outages as the present sees them, and as the server does, which may be far ahead.
    outages: Outages,
    switched_dark: bool,
    replayed: Losses,
    copies: Rng,
    copy_delays: Rng,
    now: Instant,
    last_arrival: Instant,
    counters: Counters,
}

#[derive(Clone, Debug)]
struct Outages {
    present: Cursor,
    /// Never dark in [`OutageMode::Drop`], where the server does not work through an outage.
    server: Cursor,
    /// End of the last outage that cut the queue.
    cut: Instant,
}

impl Outages {
    fn new(config: &LinkConfig, rng: Rng) -> Self {
        let present = Cursor::new(&config.outages, rng);
        Self {
            server: match config.outage_mode {
                OutageMode::Drop => Cursor::never(),
                OutageMode::Hold => present.clone(),
            },
            present,
            cut: Instant::ZERO,
        }
    }
}

impl Link {
    /// A link that is empty at time zero.
    ///
    /// # Errors
    ///
    /// When a parameter is out of its range; the error names it.
    pub fn new(config: LinkConfig, seed: u64) -> Result<Self, ConfigError> {
        let (max_bytes, max_packets) = config.check()?;
        let rng = Rng::new(config.seed.unwrap_or(seed));
        let copies = rng.stream("duplicate");
        Ok(Self {
            server: Server::new(&config.capacity, rng.stream("capacity"), Instant::ZERO),
            propagation: Propagation::new(config.delay, config.redraw, rng.stream("delay")),
            loss: Lottery::new(config.loss, rng.stream("loss")),
            codel: config.codel.map(CodelControl::new),
            backlog: Backlog::new(max_bytes, max_packets),
            outages: Outages::new(&config, rng.stream("outage")),
            switched_dark: false,
            replayed: Losses::new(rng.stream("replay")),
            copy_delays: copies.stream("delay"),
            copies,
            now: Instant::ZERO,
            last_arrival: Instant::ZERO,
            counters: Counters::default(),
            config,
            rng,
            changes: 0,
        })
    }

    /// The parameters that hold now.
    pub const fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Offers a packet of `size` bytes at `now`.
    ///
    /// A `now` before that of an earlier call counts as that one.
    pub fn offer(&mut self, now: Instant, size: u32) -> Verdict {
        let now = self.advance(now);
        self.counters.offered += 1;
        self.counters.offered_bytes += u64::from(size);
        let verdict = self.judge(now, size);
        match verdict {
            Verdict::Delivered { copy, .. } => {
                self.counters.delivered += 1;
                self.counters.delivered_bytes += u64::from(size);
                self.counters.copied += u64::from(copy.is_some());
            }
            Verdict::Dropped(reason) => self.counters.dropped[reason as usize] += 1,
        }
        verdict
    }

    /// Switches the link off or on by hand, whatever its outages say.
    ///
    /// Going dark empties the queue: verdicts that were given before hold only for packets that
    /// `departs` by `now`; the caller forgets the others, which the counters go on to count as
    /// delivered.
    pub fn set_dark(&mut self, now: Instant, dark: bool) {
        let now = self.advance(now);
        if dark && !self.switched_dark {
            self.last_arrival = self.backlog.clear();
            self.server.flush(now);
            self.outages.server = match self.config.outage_mode {
                OutageMode::Drop => Cursor::never(),
                OutageMode::Hold => self.outages.present.clone(),
            };
        }
        self.switched_dark = dark;
    }

    /// Whether the link is dark at `now`, by hand or by its outages; `now` as in
    /// [`offer`](Self::offer).
    pub fn is_dark(&mut self, now: Instant) -> bool {
        let now = self.advance(now);
        self.switched_dark || self.outages.present.at_or_after(now).0 <= now
    }

    /// Bytes accepted that have not left the queue at `now`, packets in transmission included.
    pub fn queued_bytes(&self, now: Instant) -> u64 {
        self.backlog.occupancy(now.max(self.now)).1
    }

    /// Packets accepted that have not left the queue at `now`.
    pub fn queued_packets(&self, now: Instant) -> usize {
        self.backlog.occupancy(now.max(self.now)).0
    }

    /// What happened so far.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    fn advance(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.backlog.advance(self.now);
        self.now
    }

    fn judge(&mut self, now: Instant, size: u32) -> Verdict {
        if size > self.config.mtu.unwrap_or(LinkConfig::MAX_MTU) {
            return Verdict::Dropped(Reason::TooBig);
        }
        if self.switched_dark {
            return Verdict::Dropped(Reason::Outage);
        }
        let cut = self.next_cut(now);
        if cut.is_some_and(|start| start <= now) {
            return Verdict::Dropped(Reason::Outage);
        }
        if !self.backlog.has_room(size) {
            return Verdict::Dropped(Reason::QueueFull);
        }
        let start = self.server.start(now, &mut self.outages.server);
        if let Some(cut) = cut
            && start >= cut
        {
            self.backlog.push(size, cut, Instant::ZERO);
            return Verdict::Dropped(Reason::Outage);
        }
        let ahead = self.backlog.bytes();
        if let Some(codel) = &mut self.codel
            && codel.drops(now, start, size, ahead)
        {
            self.backlog.push(size, start, Instant::ZERO);
            return Verdict::Dropped(Reason::CoDel);
        }
        let departs = self.server.serve(now, size, &mut self.outages.server);
        if let Some(cut) = cut
            && departs > cut
        {
            self.backlog.push(size, cut, Instant::ZERO);
            return Verdict::Dropped(Reason::Outage);
        }
        self.propagate(size, departs)
    }

    /// Sends off a packet that leaves the queue at `departs`.
    fn propagate(&mut self, size: u32, departs: Instant) -> Verdict {
        // Drawn for lost packets too, so that the loss process does not shift delays or copies.
        let outages = || match self.config.outage_mode {
            OutageMode::Drop => self.outages.present.passed(),
            OutageMode::Hold => self.outages.server.passed(),
        };
        let drawn = self.propagation.draw(departs, outages);
        let delay = match &self.config.replay {
            Some(replay) => replay.delay(departs),
            None => drawn,
        };
        let at = self.ordered(departs + delay);
        let is_copied = self.config.duplicate > 0.0 && self.copies.chance(self.config.duplicate);
        let copy =
            is_copied.then(|| departs + self.propagation.draw_again(delay, &mut self.copy_delays));
        let replay = self.config.replay.as_ref();
        let replayed = replay.is_some_and(|replay| self.replayed.add(replay.loss(departs)));
        if self.loss.draw() || replayed {
            self.backlog.push(size, departs, Instant::ZERO);
            return Verdict::Dropped(Reason::Loss);
        }
        self.last_arrival = at;
        let copy = copy.map(|copy| self.ordered(copy));
        self.last_arrival = copy.unwrap_or(at);
        self.backlog.push(size, departs, self.last_arrival);
        Verdict::Delivered { at, departs, copy }
    }

    fn ordered(&self, arrival: Instant) -> Instant {
        if self.config.overtaking {
            arrival
        } else {
            arrival.max(self.last_arrival)
        }
    }

    /// In [`OutageMode::Drop`], the start of the outage at `now` or after it.
    fn next_cut(&mut self, now: Instant) -> Option<Instant> {
        if self.config.outage_mode == OutageMode::Hold {
            return None;
        }
        let (start, end) = self.outages.present.at_or_after(now);
        if self.outages.cut != end {
            // The outage before this one has passed: what it cut off leaves the server free.
            self.server.flush(self.outages.cut);
            self.outages.cut = end;
        }
        Some(start)
    }
}
