//! Test bench: one sender, one bottleneck (constant rate, drop-tail queue, random loss), virtual
//! time. Acknowledgements come back one by one, and losses are found by RFC 9002's thresholds.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use marline_base::{Duration, Instant, Rate, Rng};

use super::{Ack, Controller, Loss, Params, View, registry};
use crate::path::delivery::{DeliverySampler, DeliverySnapshot};
use crate::path::pacer::Pacer;

pub(super) const MTU: u64 = 1_250;

/// An acknowledgement for unit tests: the window was full of earlier packets.
pub(super) fn ack(bytes: u64, sent: Instant, rtt: Duration) -> Ack {
    Ack {
        bytes,
        prior_in_flight: 1 << 30,
        in_flight: (1 << 30) - bytes,
        sent,
        rtt: Some(rtt),
        back_queueing: Duration::ZERO,
        srtt: rtt,
        delivery: None,
        delivered: bytes,
        delivered_when_sent: 0,
    }
}

/// A loss of `bytes`, the newest of them sent at `sent`.
pub(super) const fn loss(bytes: u64, sent: Instant) -> Loss {
    Loss {
        bytes,
        sent,
        in_flight: 0,
        persistent: false,
    }
}

pub(super) fn controller(name: &str) -> Box<dyn Controller> {
    let params = Params {
        mtu: MTU,
        rate: Some(Rate::from_mbps(20)).filter(|_| name == "fixed"),
        paced: true,
        seed: 1,
    };
    (registry::find(name).unwrap().new)(Instant::ZERO, &params)
}

/// The link, and what the sender has to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) rate: Rate,
    pub(super) rtt: Duration,
    /// Bytes that the queue holds besides the packet on the wire.
    pub(super) queue: u64,
    /// Probability that a packet is lost.
    pub(super) loss: f64,
    /// Rate of the application; `None` is a backlog without end.
    pub(super) offered: Option<Rate>,
}

impl Link {
    /// 20 Mb/s, 40 ms, a queue of one bandwidth-delay product.
    pub(super) const STANDARD: Self = Self {
        rate: Rate::from_mbps(20),
        rtt: Duration::from_millis(40),
        queue: 100_000,
        loss: 0.0,
        offered: None,
    };
}

/// State of the sender after an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) now: Instant,
    pub(super) view: View,
    pub(super) window: u64,
    pub(super) in_flight: u64,
    pub(super) rtt: Duration,
    /// Bytes acknowledged so far.
    pub(super) delivered: u64,
}

struct Sent {
    at: Instant,
    snapshot: DeliverySnapshot,
}

pub(super) struct Bench {
    link: Link,
    pub(super) controller: Box<dyn Controller>,
    now: Instant,
    rng: Rng,
    pacer: Pacer,
    sampler: DeliverySampler,
    /// Packets in flight by number.
    ledger: BTreeMap<u64, Sent>,
    next: u64,
    /// Acknowledgements on their way back: when, and of which packet; in order.
    returning: VecDeque<(Instant, u64)>,
    /// When the bottleneck has sent all that it holds.
    busy_until: Instant,
    srtt: Option<Duration>,
    min_rtt: Duration,
    sent_bytes: u64,
    pub(super) trace: Vec<Point>,
}

impl Bench {
    pub(super) fn new(name: &str, link: Link) -> Self {
        let now = Instant::ZERO;
        Self {
            link,
            controller: controller(name),
            now,
            rng: Rng::new(7).stream("loss"),
            pacer: Pacer::new(now, MTU, Rate::from_bps(u64::MAX)),
            sampler: DeliverySampler::new(now),
            ledger: BTreeMap::new(),
            next: 0,
            returning: VecDeque::new(),
            busy_until: now,
            srtt: None,
            min_rtt: Duration::MAX,
            sent_bytes: 0,
            trace: Vec::new(),
        }
    }

    pub(super) fn set_link(&mut self, link: Link) {
        self.link = link;
    }

    fn in_flight(&self) -> u64 {
        self.ledger.len() as u64 * MTU
    }

    /// Runs until `end`.
    pub(super) fn run(&mut self, end: Instant) {
        loop {
            let wake = self.send();
            let ack = self.returning.front().map(|&(at, _)| at);
            let next = wake.into_iter().chain(ack).min();
            match next {
                Some(at) if at >= end => break,
                Some(at) => self.now = self.now.max(at),
                // Everything in flight was dropped: the probe time-out finds out.
                None => {
                    self.now += self.link.rtt * 3;
                    if self.now >= end {
                        break;
                    }
                    let lost: Vec<u64> = self.ledger.keys().copied().collect();
                    self.lose(&lost);
                }
            }
            if ack.is_some_and(|at| at <= self.now) {
                self.acknowledge();
            }
        }
        self.now = end;
    }

    /// Sends what may be sent; when to try again, unless an acknowledgement comes first.
    fn send(&mut self) -> Option<Instant> {
        loop {
            if self.in_flight() + MTU > self.controller.window() {
                return None;
            }
            if let Some(ready) = self.application_ready() {
                self.sampler.mark_app_limited(self.in_flight());
                return Some(ready);
            }
            if let Some(at) = self.pacer.next_send(self.now, MTU) {
                return Some(at);
            }
            let snapshot = self.sampler.on_sent(self.now, self.in_flight());
            let sent = Sent {
                at: self.now,
                snapshot,
            };
            self.ledger.insert(self.next, sent);
            self.sent_bytes += MTU;
            self.pacer.on_sent(self.now, MTU);
            let app_limited = self.application_ready().is_some();
            self.controller
                .on_sent(self.now, MTU, self.in_flight(), app_limited);
            self.set_pacing();
            self.bottleneck(self.next);
            self.next += 1;
        }
    }

    /// When the application hands over its next packet; `None` if it already has.
    fn application_ready(&self) -> Option<Instant> {
        let rate = self.link.offered?;
        let at = Instant::ZERO + rate.time_for(self.sent_bytes + MTU);
        (at > self.now).then_some(at)
    }

    fn bottleneck(&mut self, number: u64) {
        let waiting = self.link.rate.bytes_in(self.busy_until.since(self.now));
        if waiting > self.link.queue || self.rng.chance(self.link.loss) {
            return;
        }
        self.busy_until = self.busy_until.max(self.now) + self.link.rate.time_for(MTU);
        self.returning
            .push_back((self.busy_until + self.link.rtt, number));
    }

    fn acknowledge(&mut self) {
        let Some((_, number)) = self.returning.pop_front() else {
            return;
        };
        // Declared lost and arrived after all.
        let Some(sent) = self.ledger.remove(&number) else {
            return;
        };
        let prior_in_flight = self.in_flight() + MTU;
        let rtt = self.now.since(sent.at);
        self.min_rtt = self.min_rtt.min(rtt);
        let srtt = self.srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8);
        self.srtt = Some(srtt);
        self.sampler.on_acked(self.now, MTU, sent.at, sent.snapshot);
        let report = self.sampler.sample(self.min_rtt).unwrap();

        // RFC 9002 §6.1: three packets, or nine eighths of a round trip.
        let late = self.now - rtt.max(srtt) * 9 / 8;
        let lost: Vec<u64> = self
            .ledger
            .range(..number)
            .filter(|&(&n, sent)| n + 3 <= number || sent.at <= late)
            .map(|(&n, _)| n)
            .collect();
        self.lose(&lost);

        let ack = Ack {
            bytes: MTU,
            prior_in_flight,
            in_flight: self.in_flight(),
            sent: sent.at,
            rtt: Some(rtt),
            back_queueing: Duration::ZERO,
            srtt,
            delivery: report.sample,
            delivered: self.sampler.delivered(),
            delivered_when_sent: report.delivered_when_sent,
        };
        self.controller.on_ack(self.now, &ack);
        self.set_pacing();
        self.trace.push(Point {
            now: self.now,
            view: self.controller.view(),
            window: self.controller.window(),
            in_flight: self.in_flight(),
            rtt,
            delivered: self.sampler.delivered(),
        });
    }

    fn lose(&mut self, numbers: &[u64]) {
        let Some(newest) = numbers.last() else { return };
        let sent = self.ledger[newest].at;
        for number in numbers {
            self.ledger.remove(number);
        }
        let loss = Loss {
            bytes: numbers.len() as u64 * MTU,
            sent,
            in_flight: self.in_flight(),
            persistent: false,
        };
        self.controller.on_loss(self.now, &loss);
        self.set_pacing();
    }

    fn set_pacing(&mut self) {
        let rate = self
            .controller
            .pacing_rate()
            .or_else(|| Some(Pacer::rate_for_window(self.controller.window(), self.srtt?)));
        self.pacer
            .set_rate(self.now, rate.unwrap_or(Rate::from_bps(u64::MAX)));
    }

    /// Bytes acknowledged from `from` to `to`, as a share of what the link carries.
    pub(super) fn utilisation(&self, from: Instant, to: Instant) -> f64 {
        let delivered_by = |time| {
            let after = self.trace.partition_point(|point| point.now <= time);
            after.checked_sub(1).map_or(0, |i| self.trace[i].delivered)
        };
        let bytes = delivered_by(to) - delivered_by(from);
        bytes as f64 / self.link.rate.bytes_in(to.since(from)) as f64
    }

    pub(super) fn between(&self, from: Instant, to: Instant) -> impl Iterator<Item = &Point> {
        self.trace
            .iter()
            .filter(move |point| (from..to).contains(&point.now))
    }
}
