//! What an acknowledgement means.

use marline_base::{Duration, Instant};
use marline_proto::congestion;

use super::super::scoreboard::{Fate, Sent};
use super::super::segment::Ack;
use super::TcpSender;

impl TcpSender {
    /// Takes an acknowledgement. One of bytes that were never sent is ignored.
    pub fn handle_ack(&mut self, now: Instant, ack: &Ack) {
        if ack.next > self.next {
            return;
        }
        self.edge = self.edge.max(ack.next + u64::from(ack.window));
        let prior_in_flight = self.board.in_flight();
        let advanced = ack.next > self.unacked;
        self.unacked = self.unacked.max(ack.next);
        let mut delivered = self.board.acknowledge(ack.next, ack.blocks());
        // In the order of the stream, so that two blocks in one acknowledgement are no reordering.
        delivered.sort_unstable_by_key(|sent| sent.seq);
        if let Some(block) = ack.duplicate() {
            self.on_duplicate(now, &block);
        }
        let originals: Vec<bool> = delivered
            .iter()
            .map(|sent| self.is_original(now, ack, sent))
            .collect();
        for (sent, original) in delivered.iter().zip(&originals) {
            self.on_delivered(now, sent, *original);
        }
        let rtt = self.measure(now, ack, &delivered);
        self.settle_timeout(now, &delivered, &originals);
        self.settle_probe(now, ack);
        if !delivered.is_empty() {
            self.progress(now, advanced, &delivered);
            if self.timed_out.is_none() {
                self.detect_losses(now);
            }
            self.control(now, prior_in_flight, &delivered, rtt);
        }
        self.repace(now);
    }

    /// Was it this segment's first transmission that arrived, although it was sent again? RFC 3522
    /// by the echoed stamp where the segment is acknowledged in order, RFC 8985 §6.2 step 2 by the
    /// round-trip time elsewhere.
    fn is_original(&self, now: Instant, ack: &Ack, sent: &Sent) -> bool {
        if !sent.again {
            return false;
        }
        if sent.end() <= ack.next {
            ack.echo < sent.at
        } else {
            self.rtt.min().is_some_and(|min| now.since(sent.at) < min)
        }
    }

    fn on_delivered(&mut self, now: Instant, sent: &Sent, original: bool) {
        self.counters.delivered += u64::from(sent.len);
        self.sampler
            .on_acked(now, u64::from(sent.len), sent.at, sent.delivery);
        if original || sent.fate == Fate::Lost {
            self.on_needless(now, sent.seq);
        }
        if !original {
            self.rack.on_delivered(
                sent.transmission,
                now.since(sent.at),
                sent.end(),
                sent.again,
            );
        }
    }

    /// Takes round-trip times; that of the newest segment, if it is certain.
    fn measure(&mut self, now: Instant, ack: &Ack, delivered: &[Sent]) -> Option<Duration> {
        // Karn's rule, or the echo of the very transmission (RFC 6298 §3).
        let certain = |sent: &&Sent| !sent.again || sent.at == ack.echo;
        let oldest = delivered.iter().filter(certain).map(|sent| sent.at).min();
        // RFC 7323 §4.1: what it answers to left no earlier than what it echoes. If the
        // acknowledgement of an older segment was lost, that segment did not take this long, but no
        // acknowledgement came until now.
        let took = |at: Instant| now.since(at.max(ack.echo));
        if let Some(at) = oldest {
            self.rtt.sample(took(at));
        }
        let newest = delivered.iter().max_by_key(|sent| sent.transmission)?;
        let rtt = Some(newest).filter(certain).map(|sent| took(sent.at));
        if let Some(rtt) = rtt {
            self.rtt.sample_min(now, rtt);
        }
        rtt
    }

    /// Finds out what a time-out meant, as F-RTO (RFC 5682) does: if anything arrives that was sent
    /// before it, the network was slow and nothing is undone because nothing was done; if only what
    /// was sent after it, the flight is lost.
    fn settle_timeout(&mut self, now: Instant, delivered: &[Sent], originals: &[bool]) {
        let Some(before) = self.timed_out.filter(|_| !delivered.is_empty()) else {
            return;
        };
        self.timed_out = None;
        self.resend_first = false;
        let slow = delivered
            .iter()
            .zip(originals)
            .any(|(sent, original)| sent.transmission < before || *original);
        if slow {
            self.counters.spurious_timeouts += 1;
        } else {
            self.collapse(now, before, delivered);
        }
    }

    /// RFC 8985 §7.4: a probe that repaired a loss hid it from everything else.
    fn settle_probe(&mut self, now: Instant, ack: &Ack) {
        let Some(probe) = self.probe.take_if(|probe| ack.next >= probe.end) else {
            return;
        };
        if let Some((original, at)) = probe.again
            && ack.duplicate().is_none()
            && ack.echo >= at
        {
            self.declare(now, &[original], false);
        }
    }

    fn progress(&mut self, now: Instant, advanced: bool, delivered: &[Sent]) {
        self.backoff = 0;
        // What was sent before the first segment's last transmission says nothing about it.
        let newest = delivered.iter().map(|sent| sent.transmission).max();
        let later = self.board.first().map(|first| first.transmission) < newest;
        if advanced || later {
            self.armed = now;
        }
        if self.recovery.is_some_and(|point| self.unacked >= point) {
            self.recovery = None;
            self.rescue = false;
            self.rack.on_recovered();
        }
    }

    fn control(
        &mut self,
        now: Instant,
        prior_in_flight: u64,
        delivered: &[Sent],
        rtt: Option<Duration>,
    ) {
        let Some(newest) = delivered.iter().max_by_key(|sent| sent.transmission) else {
            return;
        };
        let report = self.sampler.sample(self.rtt.min().unwrap_or_default());
        let total = self.sampler.delivered();
        let ack = congestion::Ack {
            bytes: delivered.iter().map(|sent| u64::from(sent.len)).sum(),
            prior_in_flight,
            in_flight: self.board.in_flight(),
            sent: newest.at,
            rtt,
            back_queueing: Duration::ZERO,
            srtt: self.rtt.smoothed().unwrap_or_default(),
            delivery: report.and_then(|report| report.sample),
            delivered: total,
            delivered_when_sent: report.map_or(total, |report| report.delivered_when_sent),
        };
        self.controller.on_ack(now, &ack);
    }
}
