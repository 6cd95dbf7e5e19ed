//! Metrics of live entries.

use super::gauge::{FloatGauge, PERCENTILES, RECEIVE, SEND, gauge, ratio};
use marline_apps::live::status::LiveStatus;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfLive {
    live: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfLiveDirection {
    live: u64,
    direction: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfLivePercentile {
    live: u64,
    percentile: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfLiveFault {
    live: u64,
    direction: &'static str,
    fault: &'static str,
}

/// Counts are in datagrams.
#[derive(Default)]
pub(super) struct Live {
    flows: Family<OfLive, Gauge>,
    bytes: Family<OfLiveDirection, Counter>,
    datagrams: Family<OfLiveDirection, Counter>,
    given_up: Family<OfLive, Counter>,
    repaired: Family<OfLive, Counter>,
    peer_lost: Family<OfLive, Counter>,
    peer_late: Family<OfLive, Counter>,
    peer_duplicated: Family<OfLive, Counter>,
    redundancy: Family<OfLive, FloatGauge>,
    delay: Family<OfLivePercentile, FloatGauge>,
    lost: Family<OfLive, Counter>,
    late: Family<OfLive, Counter>,
    reordered: Family<OfLive, Counter>,
    duplicated: Family<OfLive, Counter>,
    faults: Family<OfLiveFault, Counter>,
    target: Family<OfLive, Gauge>,
    capacity: Family<OfLive, Gauge>,
    below_target: Family<OfLive, Gauge>,
}

impl Live {
    pub(super) fn entry(&self, entry: &LiveStatus) {
        let LiveStatus { sent, received, .. } = entry;
        let live = entry.id;
        let of_live = OfLive { live };
        self.flows.get_or_create(&of_live).set(gauge(entry.flows));
        for (direction, bytes, datagrams, found) in [
            (SEND, sent.bytes, sent.datagrams, &sent.input),
            (
                RECEIVE,
                received.bytes,
                received.datagrams,
                &received.output,
            ),
        ] {
            let labels = OfLiveDirection { live, direction };
            self.bytes.get_or_create(&labels).inc_by(bytes);
            self.datagrams.get_or_create(&labels).inc_by(datagrams);
            for (fault, count) in [
                ("rtp-lost", found.lost),
                ("rtp-late", found.late),
                ("rtp-duplicated", found.duplicated),
                ("ts-continuity", found.continuity_errors),
            ] {
                let labels = OfLiveFault {
                    live,
                    direction,
                    fault,
                };
                self.faults.get_or_create(&labels).inc_by(count);
            }
        }
        for (family, count) in [
            (&self.given_up, sent.given_up + sent.refused),
            (&self.repaired, sent.repaired),
            (&self.peer_lost, sent.lost),
            (&self.peer_late, sent.late),
            (&self.peer_duplicated, sent.duplicated),
            (&self.lost, received.lost),
            (&self.late, received.late),
            (&self.reordered, received.reordered),
            (&self.duplicated, received.duplicated),
        ] {
            family.get_or_create(&of_live).inc_by(count);
        }
        self.redundancy.get_or_create(&of_live).set(sent.redundancy);
        if let Some(delay) = sent.delay_ms {
            let ms = [delay.p50, delay.p95, delay.p99, delay.worst];
            for (percentile, ms) in PERCENTILES.into_iter().zip(ms) {
                let labels = OfLivePercentile { live, percentile };
                self.delay.get_or_create(&labels).set(ms / 1e3);
            }
        }
        for (family, rate) in [
            (&self.target, entry.target_bps),
            (&self.capacity, entry.capacity_bps),
        ] {
            if let Some(rate) = rate {
                family.get_or_create(&of_live).set(gauge(rate / 8));
            }
        }
        if entry.watched {
            self.below_target
                .get_or_create(&of_live)
                .set(i64::from(entry.capacity_bps.is_some()));
        }
    }

    pub(super) fn register(self, all: &mut Registry) {
        all.register(
            "live_flows",
            "Flows of the live entry that are open",
            self.flows,
        );
        all.register_with_unit(
            "live",
            "Taken from local programs (send) and handed to them (receive)",
            Unit::Bytes,
            self.bytes,
        );
        all.register("live_datagrams", "The same in datagrams", self.datagrams);
        for (name, help, family) in [
            (
                "live_given_up",
                "Datagrams not delivered within the latency budget, as the sender knows",
                self.given_up,
            ),
            (
                "live_repaired",
                "Datagrams lost on their way and brought all the same by a copy or again",
                self.repaired,
            ),
            (
                "live_peer_lost",
                "Datagrams that the other end gave up and never saw, as it said last",
                self.peer_lost,
            ),
            (
                "live_peer_late",
                "Datagrams that the other end gave up and saw later, as it said last",
                self.peer_late,
            ),
            (
                "live_peer_duplicated",
                "Datagrams that came to the other end again, as it said last",
                self.peer_duplicated,
            ),
            (
                "live_lost",
                "Datagrams that the receiver gave up and never saw",
                self.lost,
            ),
            (
                "live_late",
                "Datagrams that the receiver gave up and saw later",
                self.late,
            ),
            (
                "live_reordered",
                "Datagrams that came after later ones, in time",
                self.reordered,
            ),
            (
                "live_duplicated",
                "Datagrams that came again",
                self.duplicated,
            ),
        ] {
            all.register(name, help, family);
        }
        all.register_with_unit(
            "live_redundancy",
            "(bytes sent - source bytes) / source bytes",
            ratio(),
            self.redundancy,
        );
        all.register_with_unit(
            "live_delay",
            "From a local program's datagram until this end knows that the other has it",
            Unit::Seconds,
            self.delay,
        );
        all.register(
            "live_faults",
            "What the content's own numbers say, of what was taken (send) and handed over (receive)",
            self.faults,
        );
        all.register(
            "live_target_bytes_per_second",
            "The rate that was said to be needed",
            self.target,
        );
        all.register(
            "live_capacity_bytes_per_second",
            "What the paths carry, while that is less than what is needed, as said or measured",
            self.capacity,
        );
        all.register(
            "live_below_target",
            "1 while the paths carry less than what is needed, 0 while they do not; absent where nobody looks",
            self.below_target,
        );
    }
}
