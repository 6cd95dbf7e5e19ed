//! What the application writes, and when.

use marline_base::{Duration, Instant};

use super::super::Demand;
use super::{Event, ModelRun};

impl ModelRun<'_> {
    fn write_unit(&mut self, packets: u32) {
        let first = self.backlog.all();
        self.backlog.write();
        for number in first..first + u64::from(packets.max(1)) {
            self.receiver.write(self.now, number);
        }
    }

    pub(super) fn write(&mut self) {
        match self.model.demand {
            Demand::Saturated { until } => self.at(Instant::ZERO + until, Event::Wake),
            Demand::Units {
                packets,
                every,
                random,
                units,
            } => loop {
                self.write_unit(packets);
                if self.backlog.written() >= u64::from(units) {
                    return;
                }
                if every > Duration::ZERO {
                    let gap = match random {
                        true => every.mul_f64(self.rng.exponential()),
                        false => every,
                    };
                    self.at(self.now + gap, Event::Write);
                    return;
                }
            },
            Demand::Bursts {
                packets,
                every,
                until,
            } => {
                // Geometric with this mean.
                let more = 1.0 - 1.0 / packets.max(1.0);
                loop {
                    self.write_unit(1);
                    if !self.rng.chance(more) {
                        break;
                    }
                }
                let next = self.now + every.mul_f64(self.rng.exponential());
                let end = Instant::ZERO + until;
                self.at(
                    next.min(end),
                    if next < end {
                        Event::Write
                    } else {
                        Event::Wake
                    },
                );
            }
        }
    }
}
