use super::{Link, Outages};
use crate::capacity::Server;
use crate::delay::Propagation;
use crate::loss::Lottery;
use crate::queue::CodelControl;
use crate::{ConfigError, LinkConfig, OutageMode};
use alloc::format;
use marline_base::Instant;

impl Link {
    /// Changes the link's parameters at `now`, as a handover to another cell does.
    ///
    /// What was accepted before keeps its verdict; what is offered from now on follows it, at the
    /// new rate from the moment at which the last accepted packet has left, and after it in order
    /// unless `config` lets packets overtake each other. (To lose what waits, go dark first:
    /// [`set_dark`](Self::set_dark), or an outage that ends at `now`.) A queue that now holds more
    /// than its limit drains; nothing is dropped from it.
    ///
    /// A process whose parameters stay the same goes on undisturbed; one whose parameters change
    /// draws from a new stream of the link's seed, and the seed in `config` counts for nothing.
    /// Times in `config`, of outages for example, count from time zero as ever.
    ///
    /// # Errors
    ///
    /// When a parameter is out of its range; the error names it, and the link stays as it is.
    pub fn reconfigure(&mut self, now: Instant, config: LinkConfig) -> Result<(), ConfigError> {
        let (max_bytes, max_packets) = config.check()?;
        let now = self.advance(now);
        self.changes += 1;
        let rng = self.rng.stream(&format!("change {}", self.changes));
        let old = &self.config;
        if (config.outages != old.outages) || (config.outage_mode != old.outage_mode) {
            // Asked before the change: a link that was dark serves nothing that waited.
            let cut = old.outage_mode == OutageMode::Drop
                && self.outages.present.at_or_after(now).0 <= now;
            if cut {
                self.server.flush(now);
            }
            let stream = rng.stream("outage");
            self.outages = Outages::new(&config, stream);
            // Only outages that end later than now may free the server once more.
            self.outages.cut = self.outages.present.at_or_after(now).1;
        }
        if config.capacity != old.capacity {
            let stream = rng.stream("capacity");
            self.server = Server::new(&config.capacity, stream, self.server.free());
        }
        if (config.delay, config.redraw) != (old.delay, old.redraw) {
            let stream = rng.stream("delay");
            self.propagation = Propagation::new(config.delay, config.redraw, stream);
        }
        if config.loss != old.loss {
            self.loss = Lottery::new(config.loss, rng.stream("loss"));
        }
        if config.codel != old.codel {
            self.codel = config.codel.map(CodelControl::new);
        }
        self.backlog.set_limits(max_bytes, max_packets);
        self.config = config;
        Ok(())
    }
}
