//! MPEG transport streams (ISO/IEC 13818-1 section 2.4.3): packets of 188 bytes whose continuity
//! counters show losses. Any bytes are packets or none.

/// Bytes of a packet.
pub(super) const PACKET: usize = 188;
const SYNC: u8 = 0x47;
/// Stuffing, whose counter means nothing.
const NULL_PID: u16 = 0x1fff;
const PIDS: usize = 1 << 13;
/// No packet of this PID was seen.
const FRESH: u8 = 0xff;
/// The last packet was the repetition that the standard allows once.
const REPEATED: u8 = 0x10;

/// Is the datagram nothing but transport packets?
pub(super) fn is_transport(datagram: &[u8]) -> bool {
    let packets = datagram.chunks_exact(PACKET);
    !datagram.is_empty()
        && packets.remainder().is_empty()
        && packets.into_iter().all(|packet| packet[0] == SYNC)
}

/// The continuity counters of all PIDs: 8 KiB.
#[derive(Debug)]
pub(super) struct Continuity(Box<[u8; PIDS]>);

impl Default for Continuity {
    fn default() -> Self {
        Continuity(Box::new([FRESH; PIDS]))
    }
}

impl Continuity {
    /// Follows the packets of a datagram; returns at how many the counter was not what it should
    /// have been.
    ///
    /// A counter has four bits: exactly 15 lost packets in a row look like a repetition, 16 like
    /// none. Packets marked as damaged are passed over.
    pub(super) fn follow(&mut self, datagram: &[u8]) -> u64 {
        let packets = datagram.chunks_exact(PACKET);
        packets.map(|packet| u64::from(self.breaks(packet))).sum()
    }

    fn breaks(&mut self, packet: &[u8]) -> bool {
        let &[SYNC, flags, low, control, length, adaptation, ..] = packet else {
            return false;
        };
        let pid = u16::from_be_bytes([flags & 0x1f, low]);
        let damaged = flags & 0x80 != 0;
        if damaged || pid == NULL_PID {
            return false;
        }
        let (has_adaptation, has_payload) = (control & 0x20 != 0, control & 0x10 != 0);
        let announced = has_adaptation && length > 0 && adaptation & 0x80 != 0;
        let state = &mut self.0[usize::from(pid)];
        if announced {
            *state = FRESH;
        }
        if !has_payload {
            return false;
        }
        let (before, counter) = (*state, control & 0x0f);
        *state = counter;
        match before {
            FRESH => false,
            before if before == counter => {
                *state |= REPEATED;
                false
            }
            before => counter != (before & 0x0f).wrapping_add(1) & 0x0f,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A packet with this control field, and no adaptation field unless it says so.
    fn packet(pid: u16, adaptation_and_payload: u8, counter: u8) -> Vec<u8> {
        let [high, low] = pid.to_be_bytes();
        let mut packet = vec![SYNC, high, low, adaptation_and_payload << 4 | counter];
        packet.resize(PACKET, 0);
        packet
    }

    fn breaks(packets: &[Vec<u8>]) -> u64 {
        Continuity::default().follow(&packets.concat())
    }

    #[test]
    fn datagrams_of_whole_packets_are_recognised() {
        let one = packet(5, 1, 0);
        assert!(is_transport(&one) && is_transport(&one.repeat(7)));
        assert!(!is_transport(&[]) && !is_transport(&one[1..]));
        assert!(!is_transport(&[&one[..], &[0; PACKET]].concat()));
    }

    #[test]
    fn counters_go_round_by_pid() {
        let two_pids = (0..40).flat_map(|n| [packet(5, 1, n % 16), packet(6, 1, (n + 9) % 16)]);
        assert_eq!(breaks(&two_pids.collect::<Vec<_>>()), 0);
        let lost = [0, 1, 3, 4, 4, 5, 5, 5, 6].map(|n| packet(5, 1, n));
        assert_eq!(breaks(&lost), 2, "2 is missing, and 5 came once too often");
    }

    #[test]
    fn what_the_standard_allows_is_no_break() {
        // No payload: the counter stands still.
        let still = [packet(5, 1, 3), packet(5, 2, 3), packet(5, 1, 4)];
        assert_eq!(breaks(&still), 0);
        // An announced discontinuity, with payload and without.
        for kind in [2, 3] {
            let mut announced = packet(5, kind, 9);
            announced[4..6].copy_from_slice(&[1, 0x80]);
            let next = packet(5, 1, if kind == 3 { 10 } else { 12 });
            assert_eq!(breaks(&[packet(5, 1, 3), announced, next]), 0);
        }
        let stuffing = [0, 5, 1].map(|n| packet(NULL_PID, 1, n));
        assert_eq!(breaks(&stuffing), 0);
        let mut damaged = packet(5, 1, 9);
        damaged[1] |= 0x80;
        assert_eq!(breaks(&[packet(5, 1, 3), damaged, packet(5, 1, 4)]), 0);
    }

    proptest! {
        #[test]
        fn any_bytes_are_followed_without_harm(
            bytes in proptest::collection::vec(any::<u8>(), 0..600),
            whole in 0usize..4,
        ) {
            let mut datagram = bytes;
            datagram.resize(datagram.len() / PACKET * PACKET + whole % 2, 0);
            for packet in datagram.chunks_mut(PACKET) {
                packet[0] = SYNC;
            }
            is_transport(&datagram);
            let breaks = Continuity::default().follow(&datagram);
            prop_assert!(breaks <= (datagram.len() / PACKET) as u64);
        }
    }
}
