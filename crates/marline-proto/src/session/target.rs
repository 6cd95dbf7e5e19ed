//! Do the paths carry the rate that an application says it needs?
//!
//! What waits at the sender decides, because estimates of a path that is never filled are guesses:
//! data that has waited for long and cannot be carried off, by the paths' rates or by the length of
//! the wait itself. The rate told is what the flow got meanwhile. Hysteresis: the target counts as
//! met again once hardly anything has waited for a second in which the flow got its rate, or the
//! paths could have given it.

use marline_base::{Duration, Instant, Rate};

use super::Session;
use crate::event::Event;
use crate::wire::FlowId;

/// How often a flow is looked at.
const TICK: Duration = Duration::from_millis(50);
/// More than this much time's worth of data (at the target) waits: the flow is held back.
const HELD: Duration = Duration::from_millis(50);
/// This much proves that the rate is too low, whatever the paths' estimates say.
const PROOF: Duration = Duration::from_millis(200);
/// So long must it last.
const MISSED_AFTER: Duration = Duration::from_millis(150);
/// No more than this waits: the flow is not held back any more.
const FREE: Duration = Duration::from_millis(20);
/// So long must it last.
const MET_AFTER: Duration = Duration::from_secs(1);
/// While the target is missed, its application is told again so often at most,
const AGAIN: Duration = Duration::from_millis(500);
/// and only of a rate that differs by this share.
const DIFFERS: f64 = 0.2;

/// What one look finds.
#[derive(Clone, Copy, Debug)]
struct Look {
    /// Bytes that wait at the sender.
    waiting: u64,
    /// Bytes that the application ever wrote, and that the peer ever acknowledged.
    written: u64,
    acked: u64,
    /// Sum of the usable paths' rates.
    rates: Rate,
}

/// A rate that was told.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Told {
    at: Instant,
    capacity: Rate,
}

/// Since when a condition holds, and what was acknowledged then.
type Since = Option<(Instant, u64)>;

/// Whether one flow gets its target.
#[derive(Debug)]
pub(super) struct Watch {
    target: Rate,
    held: Since,
    free: Since,
    missed: Option<Told>,
    written: u64,
    /// The next look; none while nothing waits and nothing is written.
    next: Option<Instant>,
}

impl Watch {
    fn new(target: Rate) -> Self {
        Self {
            target,
            held: None,
            free: None,
            missed: None,
            written: 0,
            next: None,
        }
    }

    /// Returns what the application should learn: the rate that there is, or `None` in it if that
    /// is the target again.
    fn look(&mut self, now: Instant, look: &Look) -> Option<Option<Rate>> {
        let idle = look.waiting == 0 && look.written == self.written;
        self.written = look.written;
        self.next = (!idle).then(|| now + TICK);
        if idle {
            // A pause is no evidence, neither way.
            (self.held, self.free) = (None, None);
            return None;
        }
        let worth = |time: Duration| self.target.bytes_in(time);
        let begin = |since: &mut Since, holds: bool| match holds {
            true => Some(*since.get_or_insert((now, look.acked))),
            false => {
                *since = None;
                None
            }
        };
        let held = begin(&mut self.held, look.waiting > worth(HELD));
        let free = begin(&mut self.free, look.waiting <= worth(FREE));
        let got = |(since, acked): (Instant, u64)| {
            Rate::from_bytes_over(look.acked - acked, now.since(since))
        };
        match (self.missed, held, free) {
            (None, Some(held), _) if now.since(held.0) >= MISSED_AFTER => {
                let proved = look.waiting > worth(PROOF) || look.rates < self.target;
                proved.then(|| Some(self.tell(now, got(held))))
            }
            (Some(told), Some(held), _) if now.since(told.at) >= AGAIN => {
                let capacity = got(held);
                self.held = Some((now, look.acked));
                let [new, old] = [capacity, told.capacity].map(|rate| rate.as_bps() as f64);
                let differs = (new - old).abs() > old.max(1.0) * DIFFERS;
                // What drains the backlog may be more than the target: that is not told as too little.
                let tells = differs && capacity < self.target;
                tells.then(|| Some(self.tell(now, capacity)))
            }
            (Some(_), _, Some(free)) if now.since(free.0) >= MET_AFTER => {
                // A tenth less is the jitter of what an encoder writes.
                let enough = got(free).as_bps() >= self.target.as_bps() / 10 * 9
                    || look.rates >= self.target;
                enough.then(|| {
                    self.missed = None;
                    None
                })
            }
            _ => None,
        }
    }

    fn tell(&mut self, now: Instant, capacity: Rate) -> Rate {
        self.missed = Some(Told { at: now, capacity });
        self.held = None;
        capacity
    }
}

impl Session {
    /// Tells the session the rate that a flow's application needs, such as an encoder's bit rate:
    /// schedulers that add redundancy spend only what is left over, and
    /// [`Event::BelowTarget`] and [`Event::MeetsTarget`] tell whether the paths carry it. `None`
    /// lets schedulers measure it, and nothing is told. It may change at any time; then it counts
    /// as met until the contrary is seen. Does nothing if there is no such flow.
    pub fn set_target_rate(&mut self, id: FlowId, rate: Option<Rate>) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        flow.target_rate = rate;
        self.rest = None;
        self.replan = true;
        match rate.filter(|rate| *rate > Rate::ZERO) {
            Some(rate) => {
                self.watches.insert(id, Watch::new(rate));
            }
            None => {
                self.watches.remove(&id);
            }
        }
    }

    /// The flow was written.
    pub(super) fn watch_target(&mut self, now: Instant, id: FlowId) {
        if let Some(watch) = self.watches.get_mut(&id) {
            watch.next.get_or_insert(now + TICK);
        }
    }

    /// When the next look at a target is due.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.watches.values().filter_map(|watch| watch.next).min()
    }

    pub(super) fn look_at_targets(&mut self, now: Instant) {
        if self.next_look().is_none_or(|at| at > now) {
            return;
        }
        let rates = self.views().iter().map(|view| view.rate.as_bps()).sum();
        let rates = Rate::from_bps(rates);
        for (id, watch) in &mut self.watches {
            let due = watch.next.is_some_and(|at| at <= now);
            let Some(flow) = self.flows.get(id).filter(|_| due) else {
                continue;
            };
            let look = Look {
                waiting: flow.waiting(),
                written: flow.counters.written_bytes,
                acked: flow.counters.acked_bytes,
                rates,
            };
            let flow = *id;
            match watch.look(now, &look) {
                Some(Some(capacity)) => {
                    self.events.push_back(Event::BelowTarget { flow, capacity });
                }
                Some(None) => self.events.push_back(Event::MeetsTarget { flow }),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// 8 Mb/s: 1 MB a second, 1 kB a millisecond.
    const TARGET: Rate = Rate::from_mbps(8);

    /// Looks at a flow that writes at its target while the paths go through `phases`
    /// (length in ms, share of the target that they take, sum of their believed rates).
    fn told(phases: &[(u64, f64, Rate)]) -> Vec<(u64, Option<u64>)> {
        let mut watch = Watch::new(TARGET);
        let (mut ms, mut written, mut acked) = (0, 0_u64, 0_u64);
        let mut told = Vec::new();
        for &(length, share, rates) in phases {
            for _ in 0..length / 50 {
                ms += 50;
                written += 50_000;
                let room = (50_000.0 * share) as u64;
                acked = (acked + room).min(written);
                let look = Look {
                    waiting: written - acked,
                    written,
                    acked,
                    rates,
                };
                if let Some(news) = watch.look(Instant::from_millis(ms), &look) {
                    told.push((ms, news.map(|rate| rate.as_bps() / 100_000)));
                }
            }
        }
        told
    }

    #[test]
    fn too_little_is_told_with_what_there_is_and_enough_is_told_once() {
        // A quarter is missing: 50 ms' worth wait from 200 ms on, more from 250 on.
        let short = (1_000, 0.75, Rate::from_mbps(6));
        let rich = (4_000, 1.5, Rate::from_mbps(12));
        assert_eq!(
            told(&[short, rich]),
            [(400, Some(60)), (2_500, None)],
            "150 ms after 250 at 6 Mb/s; 1 s after 250 kB have gone at 500 kB/s"
        );
    }

    #[test]
    fn estimates_alone_prove_nothing() {
        // Rates of paths that were never filled, and no data that waits.
        assert_eq!(told(&[(5_000, 1.0, Rate::from_mbps(1))]), []);
        // Paths that are believed to be fast enough get 200 ms' worth of patience.
        assert_eq!(told(&[(900, 0.8, Rate::from_mbps(20))]), []);
        let long = told(&[(1_500, 0.8, Rate::from_mbps(20))]);
        assert_eq!(long, [(1_050, Some(64))]);
    }

    #[test]
    fn a_hiccup_is_not_told() {
        let good = (500, 1.0, Rate::from_mbps(20));
        let none = (100, 0.0, Rate::from_mbps(4));
        let again = (1_000, 2.0, Rate::from_mbps(20));
        assert_eq!(told(&[good, none, again]), []);
    }

    #[test]
    fn a_further_fall_is_told_again() {
        let mut told = told(&[
            (1_000, 0.75, Rate::from_mbps(6)),
            (2_000, 0.25, Rate::from_mbps(2)),
        ]);
        assert_eq!(told.remove(0), (400, Some(60)));
        let last = told.last().unwrap();
        assert_eq!(last.1, Some(20), "{told:?}");
        assert!(told.len() <= 3, "{told:?}");
    }

    #[test]
    fn an_idle_flow_needs_no_looks() {
        let mut watch = Watch::new(TARGET);
        let mut look = Look {
            waiting: 0,
            written: 10,
            acked: 10,
            rates: Rate::ZERO,
        };
        watch.look(Instant::from_millis(50), &look);
        assert_eq!(watch.next, Some(Instant::from_millis(100)));
        watch.look(Instant::from_millis(100), &look);
        assert_eq!(watch.next, None);
        look.written = 20;
        watch.look(Instant::from_millis(900), &look);
        assert_eq!(watch.next, Some(Instant::from_millis(950)));
    }
}
