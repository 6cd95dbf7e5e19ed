//! A path's estimator, fed by a session's feedback.

use alloc::vec::Vec;

use marline_base::{Duration, Instant};

use super::promises::PathPromises;
use super::scheduler::seconds;
use crate::path::EmissionKind;
use crate::path::forecast::{Memory, Skip};
use crate::sched::{Feedback, Outcome};

/// Arrivals that wait for being put in order at most; more are taken as they are.
const MOST: usize = 4_096;
/// The least way is that of the last one or two of these: clocks drift, and routes change.
const WINDOW: Duration = Duration::from_secs(10);

/// Turns what a scheduler is told of its symbols into departures from the bottleneck: an arrival on
/// the peer's clock, less the least time that a packet took, on our clock. So a packet that waited
/// nowhere seems to leave when it was sent.
#[derive(Debug)]
pub(super) struct Arrivals {
    pub(super) skip: Skip,
    /// What was said of the path's packets.
    pub(super) promises: PathPromises,
    /// Not digested yet.
    news: Vec<Arrival>,
    /// Least arrival less sending (µs): of this window, and of the one before.
    least: (i64, i64),
    turns: Instant,
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    /// By the peer's clock (µs).
    arrived: u64,
    sent: Instant,
    heard: Instant,
    bits: f64,
    /// Its block, if it was sent as planned and not again.
    block: Option<u64>,
}

impl Arrivals {
    pub(super) fn new(memory: Memory) -> Self {
        Self {
            skip: Skip::relative(memory),
            promises: PathPromises::default(),
            news: Vec::new(),
            least: (i64::MAX, i64::MAX),
            turns: Instant::ZERO,
        }
    }

    pub(super) fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        let bits = f64::from(feedback.symbol.len) * 8.0;
        let sent = seconds(feedback.sent);
        let planned = matches!(feedback.kind, EmissionKind::Source | EmissionKind::Repair);
        let block = planned.then_some(feedback.symbol.unit);
        match (feedback.outcome, feedback.arrived_us) {
            (Outcome::Sent, _) => self.skip.on_sent(sent, bits),
            (Outcome::Acked, Some(arrived)) => {
                self.news.push(Arrival {
                    arrived,
                    sent: feedback.sent,
                    heard: now,
                    bits,
                    block,
                });
                if self.news.len() >= MOST {
                    self.digest();
                }
            }
            (Outcome::Acked, None) | (Outcome::Lost, _) => {
                self.skip.on_lost(sent, bits);
                if let Some(block) = block {
                    self.promises.gone(block);
                }
            }
            // It was recovered by others of its block; where it is, is not known yet.
            (Outcome::Recovered, _) => {}
        }
    }

    /// Takes what was heard of, in the order of arrival.
    pub(super) fn digest(&mut self) {
        self.news
            .sort_unstable_by_key(|news| (news.arrived, news.sent));
        for news in core::mem::take(&mut self.news) {
            let Arrival {
                arrived,
                sent,
                heard,
                bits,
                block,
            } = news;
            let way = arrived as i64 - sent.as_micros() as i64;
            if heard >= self.turns {
                self.least = (i64::MAX, self.least.0);
                self.turns = heard + WINDOW;
            }
            self.least.0 = self.least.0.min(way);
            let least = self.least.0.min(self.least.1);
            let left = seconds(sent) + (way - least) as f64 * 1e-6;
            let (heard, came) = (seconds(heard), seconds(sent));
            self.skip.on_departure(heard, came, left, bits);
            if let Some(block) = block {
                self.promises.left(block, left);
            }
        }
    }
}
