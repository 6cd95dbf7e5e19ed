//! Delivery-rate sampling (draft-cheng-iccrg-delivery-rate-estimation-00).
//!
//! Every packet carries a snapshot of the path's delivery state from the moment it was sent. When
//! it is acknowledged, the bytes delivered since then, over the longer of the time it took to send
//! them and the time it took to acknowledge them, are a sample of the rate at which the network
//! delivers. Taking the longer interval keeps acknowledgements that arrive in bunches from showing
//! more than was sent (§2.2.3).

use marline_base::{Duration, Instant, Rate};

use crate::congestion::DeliverySample;

mod overtaking;

use overtaking::{FLOOR, Overtaking};

/// The path's delivery state when a packet was sent; kept beside the packet until it is
/// acknowledged or given up (§3.1.2, the variables `P.*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliverySnapshot {
    /// Bytes that the path had delivered before this packet was sent (`P.delivered`).
    pub delivered: u64,
    /// When the last of them was acknowledged, or the start of the flight if nothing was in
    /// flight before this packet (`P.delivered_time`).
    pub delivered_at: Instant,
    /// When the first packet of the flight that this one belongs to was sent
    /// (`P.first_sent_time`); the send interval starts here.
    pub first_sent_at: Instant,
    /// The sender had run out of data, so that a rate measured over this packet is only a lower
    /// bound (`P.is_app_limited`).
    pub app_limited: bool,
}

/// What one acknowledgement taught (§3.1.3, the variables `rs.*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryReport {
    /// Bytes delivered on the path when the newest packet covered was sent
    /// ([`Ack::delivered_when_sent`](crate::congestion::Ack::delivered_when_sent)).
    pub delivered_when_sent: u64,
    /// The rate; `None` if the interval was too short to be trusted.
    pub sample: Option<DeliverySample>,
}

/// Newest packet among those acknowledged since the last report.
#[derive(Clone, Copy, Debug)]
struct Newest {
    sent: Instant,
    snapshot: DeliverySnapshot,
}

/// Delivery-rate sampler of one path (§3.1.1, the variables `C.*`).
///
/// For every acknowledgement: [`on_acked`](Self::on_acked) once a newly covered packet, then
/// [`sample`](Self::sample) once.
#[derive(Clone, Debug)]
pub struct DeliverySampler {
    /// Bytes acknowledged so far (`C.delivered`).
    delivered: u64,
    /// When `delivered` last grew (`C.delivered_time`).
    delivered_at: Instant,
    /// Send time of the packet acknowledged last, or start of the flight (`C.first_sent_time`).
    first_sent_at: Instant,
    /// Packets sent are app-limited until `delivered` exceeds this; `None` when the sender is not
    /// app-limited (`C.app_limited`).
    app_limited_until: Option<u64>,
    newest: Option<Newest>,
    overtaking: Overtaking,
}

impl DeliverySampler {
    /// A sampler of a path over which nothing has been sent.
    pub fn new(now: Instant) -> Self {
        Self {
            delivered: 0,
            delivered_at: now,
            first_sent_at: now,
            app_limited_until: None,
            newest: None,
            overtaking: Overtaking::default(),
        }
    }

    /// Bytes delivered on the path so far.
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// A packet is sent at `now` while `in_flight` bytes, itself not included, are in flight.
    /// The snapshot belongs to the packet (§3.2).
    pub fn on_sent(&mut self, now: Instant, in_flight: u64) -> DeliverySnapshot {
        if in_flight == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
            self.overtaking.on_new_flight(now);
        }
        self.state()
    }

    const fn state(&self) -> DeliverySnapshot {
        DeliverySnapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.app_limited_until.is_some(),
        }
    }

    /// The sender has nothing more to send although the window has room, and `in_flight` bytes are
    /// in flight (§3.4). Packets sent from here on, until those in flight now are delivered, are
    /// app-limited.
    pub const fn mark_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = Some(self.delivered.saturating_add(in_flight));
    }

    /// A packet of `bytes`, sent at `sent` with `snapshot`, is newly acknowledged (§3.3), `now` or
    /// as of a moment to come, if it was reported sooner than usual.
    pub fn on_acked(
        &mut self,
        now: Instant,
        bytes: u64,
        sent: Instant,
        snapshot: DeliverySnapshot,
    ) {
        self.delivered = self.delivered.saturating_add(bytes);
        self.delivered_at = self.delivered_at.max(now);
        self.overtaking.on_acked(sent);
        // Packets sent in one burst share an instant and a snapshot, but the later ones may have
        // been sent after an acknowledgement was processed in the same instant.
        let newer = self.newest.is_none_or(|newest| {
            (sent, snapshot.delivered) >= (newest.sent, newest.snapshot.delivered)
        });
        if newer {
            self.newest = Some(Newest { sent, snapshot });
            self.first_sent_at = sent;
        }
    }

    /// What the packets acknowledged since the last call teach; `None` if there were none (§3.3).
    ///
    /// Intervals shorter than `min_rtt`, the least time between a packet and its acknowledgement,
    /// are not trusted: they come from packets that were declared lost and acknowledged after all.
    pub fn sample(&mut self, min_rtt: Duration) -> Option<DeliveryReport> {
        let Newest { sent, snapshot } = self.newest.take()?;
        if self
            .app_limited_until
            .is_some_and(|until| self.delivered > until)
        {
            self.app_limited_until = None;
        }
        let from = self.overtaking.beginning(self.delivered_at, snapshot);
        self.overtaking.remember(self.state());
        let send_elapsed = sent.since(from.first_sent_at);
        let ack_elapsed = self.delivered_at.since(from.delivered_at);
        let mut interval = send_elapsed.max(ack_elapsed);
        if from.app_limited {
            interval = interval.max(FLOOR);
        }
        let trusted = interval >= min_rtt && !interval.is_zero();
        Some(DeliveryReport {
            delivered_when_sent: snapshot.delivered,
            sample: trusted.then(|| DeliverySample {
                rate: Rate::from_bytes_over(self.delivered - from.delivered, interval),
                app_limited: from.app_limited,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(40);

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn first_flight_is_measured_over_the_acknowledgement_interval() {
        let mut sampler = DeliverySampler::new(ms(0));
        // Ten packets of 1000 bytes at once; a 1 Mb/s link acknowledges one every 8 ms.
        let snapshots: [_; 10] =
            core::array::from_fn(|i| sampler.on_sent(ms(100), i as u64 * 1000));
        for (i, snapshot) in snapshots.into_iter().enumerate() {
            let now = ms(148 + 8 * i as u64);
            sampler.on_acked(now, 1000, ms(100), snapshot);
            let report = sampler.sample(RTT).unwrap();
            assert_eq!(report.delivered_when_sent, 0);
            // (i + 1) · 1000 bytes since the flight began at 100 ms.
            let expected = Rate::from_bytes_over(
                1000 * (i as u64 + 1),
                Duration::from_millis(48 + 8 * i as u64),
            );
            assert_eq!(report.sample.unwrap().rate, expected);
        }
        assert_eq!(sampler.delivered(), 10_000);
    }

    #[test]
    fn steady_flight_shows_the_link_rate() {
        // One packet of 1000 bytes every 8 ms, acknowledged 40 ms later: 1 Mb/s.
        let mut sampler = DeliverySampler::new(ms(0));
        let mut snapshots = [None; 50];
        let mut in_flight = 0;
        let mut last = None;
        for step in 0..50_u64 {
            let now = ms(8 * step);
            if let Some(i) = step.checked_sub(5) {
                sampler.on_acked(now, 1000, ms(8 * i), snapshots[i as usize].unwrap());
                in_flight -= 1000;
                last = sampler.sample(RTT);
            }
            snapshots[step as usize] = Some(sampler.on_sent(now, in_flight));
            in_flight += 1000;
        }
        let report = last.unwrap();
        assert_eq!(report.sample.unwrap().rate, Rate::from_mbps(1));
        assert_eq!(report.delivered_when_sent, 40_000);
    }

    #[test]
    fn bunched_acknowledgements_do_not_show_more_than_was_sent() {
        // Packets leave every 8 ms; their acknowledgements are held up and arrive together.
        let mut sampler = DeliverySampler::new(ms(0));
        let mut snapshots = [None; 20];
        for i in 0..20_u64 {
            snapshots[i as usize] = Some(sampler.on_sent(ms(8 * i), i * 1000));
        }
        for i in 0..10_u64 {
            sampler.on_acked(ms(200), 1000, ms(8 * i), snapshots[i as usize].unwrap());
        }
        sampler.sample(RTT).unwrap();
        let snapshot = sampler.on_sent(ms(200), 10_000);
        for i in 10..20_u64 {
            sampler.on_acked(ms(200), 1000, ms(8 * i), snapshots[i as usize].unwrap());
        }
        sampler.sample(RTT).unwrap();
        sampler.on_acked(ms(240), 1000, ms(200), snapshot);
        let rate = sampler.sample(RTT).unwrap().sample.unwrap().rate;
        // 11 000 bytes: the acknowledgements took 40 ms, but the sending took from 72 to 200 ms.
        assert_eq!(
            rate,
            Rate::from_bytes_over(11_000, Duration::from_millis(128))
        );
    }

    #[test]
    fn app_limited_mark_ends_when_the_flight_is_delivered() {
        let mut sampler = DeliverySampler::new(ms(0));
        let a = sampler.on_sent(ms(0), 0);
        sampler.mark_app_limited(1000);
        let b = sampler.on_sent(ms(10), 1000);
        assert!(!a.app_limited);
        assert!(b.app_limited);
        sampler.on_acked(ms(40), 1000, ms(0), a);
        assert!(!sampler.sample(RTT).unwrap().sample.unwrap().app_limited);
        assert!(sampler.app_limited_until.is_some());
        sampler.on_acked(ms(50), 1000, ms(10), b);
        assert!(sampler.sample(RTT).unwrap().sample.unwrap().app_limited);
        assert!(sampler.app_limited_until.is_none());
        assert!(!sampler.on_sent(ms(60), 0).app_limited);
    }

    #[test]
    fn interval_below_the_smallest_round_trip_teaches_no_rate() {
        let mut sampler = DeliverySampler::new(ms(0));
        let snapshot = sampler.on_sent(ms(0), 0);
        sampler.on_acked(ms(39), 1000, ms(0), snapshot);
        let report = sampler.sample(RTT).unwrap();
        assert_eq!(report.sample, None);
        assert_eq!(report.delivered_when_sent, 0);
        assert_eq!(sampler.sample(RTT), None);
    }
}
