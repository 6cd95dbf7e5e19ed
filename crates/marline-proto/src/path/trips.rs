//! Round trips where packets overtake each other.
//!
//! RFC 9002 measures round trips only by the largest acknowledged packet. Where packets overtake
//! each other that is a quick one, and a window that holds one round trip of the quick ones starves
//! the path of its capacity. So windows go by the mean of all packets, and timers by the newest.

use marline_base::{Duration, Instant};

use super::Settled;
use crate::wire::{Ack, Arrival};

/// What an acknowledgement says about time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// The path's round trip, if it shows one.
    pub(crate) rtt: Option<Duration>,
    /// When the path's own way back would have brought it. What a quicker way reports sooner was
    /// delivered no sooner: measured at the moment of that report, a path would look quicker by the
    /// difference.
    pub(crate) heard: Instant,
}

/// The mean round trip of the packets whose arrival this acknowledgement reports first, if some of
/// them were overtaken; what the peer waited before it wrote this is taken off. The acknowledgement
/// came by the path's own way.
///
/// RFC 9002 §5.1 takes a sample only from the largest packet. Where packets overtake each other
/// those are the quick ones: over 25 ms ±22 each way they took 2 ms in the mean, all packets 50. A
/// window holds what is under way while an average packet is (Little's law); with the quick ones'
/// round trip it carried a sixth of what the path does. So here every packet counts, those too that
/// were taken for lost. Packets that a peer read at one moment have one time of arrival: none of
/// them was overtaken.
pub(crate) fn overtaken(now: Instant, ack: &Ack, acked: &[Settled]) -> Option<Duration> {
    let largest = ack.arrivals.first()?;
    let is_late =
        |arrival: &Arrival| arrival.packet < largest.packet && arrival.at_us > largest.at_us;
    if !ack.arrivals.iter().any(is_late) {
        return None;
    }
    let written = largest.at_us.saturating_add(ack.delay_us);
    let (mut sum, mut count) = (Duration::ZERO, 0_u32);
    for packet in acked.iter().filter(|packet| packet.eliciting) {
        // They descend.
        let place = ack
            .arrivals
            .binary_search_by(|arrival| packet.number.cmp(&arrival.packet));
        let Ok(place) = place else { continue };
        let arrival = ack.arrivals[place];
        let waited = Duration::from_micros(written.saturating_sub(arrival.at_us));
        sum += now.since(packet.sent).saturating_sub(waited);
        count += 1;
    }
    (count > 0).then(|| sum / count)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use smallvec::SmallVec;

    use super::*;
    use crate::path::SentPacket;
    use crate::path::delivery::DeliverySnapshot;
    use crate::path::ledger::Ledger;
    use crate::wire::PathId;

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Of ten packets that left two milliseconds apart these are acknowledged.
    fn acked(numbers: &[u64]) -> Vec<Settled> {
        let mut ledger = Ledger::default();
        let delivery = DeliverySnapshot {
            delivered: 0,
            delivered_at: Instant::ZERO,
            first_sent_at: Instant::ZERO,
            app_limited: false,
        };
        for n in 0..10 {
            let sent = SentPacket::new(ms(2 * n), 100, true, delivery, SmallVec::new());
            ledger.on_sent(sent);
        }
        let ranges: Vec<_> = numbers.iter().map(|n| *n..=*n).collect();
        ledger.on_ack(ms(73), &ranges).expect("they left")
    }

    /// An acknowledgement that was written 3 ms after the largest packet arrived; packets and when
    /// they arrived (ms).
    fn ack(arrivals: &[(u64, u64)]) -> Ack {
        Ack {
            path: PathId(0),
            delay_us: 3_000,
            ranges: arrivals
                .iter()
                .map(|(packet, _)| *packet..=*packet)
                .collect(),
            arrivals: arrivals
                .iter()
                .map(|&(packet, at)| Arrival {
                    packet,
                    at_us: at * 1_000,
                })
                .collect(),
        }
    }

    #[test]
    fn every_packet_counts_if_one_was_overtaken() {
        // Written at 543 of the peer's clock, where they waited for 3, 1 and 13 ms.
        let ack = ack(&[(9, 540), (7, 542), (5, 530)]);
        let acked = acked(&[9, 7, 5]);
        let mean = overtaken(ms(73), &ack, &acked).unwrap();
        assert_eq!(mean.as_micros(), (52_000 + 58_000 + 50_000) / 3);
    }

    #[test]
    fn what_came_in_order_is_left_to_the_largest() {
        let acked = acked(&[9, 7, 5]);
        let in_order = ack(&[(9, 540), (7, 539), (5, 530)]);
        assert_eq!(overtaken(ms(73), &in_order, &acked), None);
        let at_once = ack(&[(9, 540), (7, 540), (5, 540)]);
        assert_eq!(overtaken(ms(73), &at_once, &acked), None);
    }

    #[test]
    fn what_was_reported_before_the_largest_teaches_only_of_the_others() {
        let ack = ack(&[(9, 540), (7, 542)]);
        let mean = overtaken(ms(73), &ack, &acked(&[7])).unwrap();
        assert_eq!(mean.as_micros(), 58_000);
        assert_eq!(overtaken(ms(73), &ack, &[]), None);
    }
}
