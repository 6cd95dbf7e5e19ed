//! Where the units of a medium begin and end in its datagrams: video frames of RTP, PES packets of
//! MPEG-TS.

use super::mpegts::is_transport;
use super::pes::PesBegins;
use super::rtp::Header;

/// Where a datagram stands among units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Bounds {
    /// It belongs to a medium that is understood.
    pub(super) known: bool,
    /// A unit begins with it, and the one before has ended.
    pub(super) begins: bool,
    /// Its unit ends with it.
    pub(super) ends: bool,
    /// A decoder can start with the unit that begins.
    pub(super) random_access: bool,
}

/// Follows one direction of a flow.
///
/// RTP packets of one source and timestamp are a frame, whose last packet has the marker (RFC 3550
/// section 5.1). A PES packet of MPEG-TS, bare or in RTP (RFC 2250), begins with the datagram in
/// which it does: what else is in that datagram, the end of the one before for example, belongs to
/// it.
#[derive(Debug, Default)]
pub(super) struct Framing {
    frame: Option<(u32, u32)>,
    pes: PesBegins,
}

impl Framing {
    pub(super) fn look(&mut self, datagram: &[u8]) -> Bounds {
        if is_transport(datagram) {
            return self.transport(datagram);
        }
        let Some(header) = Header::parse(datagram) else {
            return Bounds::default();
        };
        if is_transport(&datagram[header.payload.clone()]) {
            return self.transport(&datagram[header.payload]);
        }
        let frame = header.frame();
        Bounds {
            known: true,
            begins: self.frame.replace(frame) != Some(frame),
            ends: header.marker,
            random_access: false,
        }
    }

    fn transport(&mut self, packets: &[u8]) -> Bounds {
        let begins = self.pes.follow(packets);
        Bounds {
            known: true,
            begins: begins.is_some(),
            ends: false,
            random_access: begins == Some(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pes::tests::packet as transport;
    use super::*;

    fn rtp(timestamp: u32, marker: bool, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x80, 96 | u8::from(marker) << 7, 0, 1];
        packet.extend(timestamp.to_be_bytes());
        packet.extend([0, 0, 0, 8]);
        [&packet, payload].concat()
    }

    fn bounds(datagrams: &[Vec<u8>]) -> Vec<(bool, bool)> {
        let mut framing = Framing::default();
        let look = |datagram: &Vec<u8>| framing.look(datagram);
        let all: Vec<Bounds> = datagrams.iter().map(look).collect();
        assert!(all.iter().all(|bounds| bounds.known));
        all.iter().map(|b| (b.begins, b.ends)).collect()
    }

    #[test]
    fn frames_of_rtp_go_by_timestamp_and_marker() {
        let packets = [
            rtp(1, false, b"a"),
            rtp(1, true, b"b"),
            rtp(2, true, b"c"),
            rtp(3, false, b"d"),
            rtp(4, false, b"e"),
        ];
        let expected = [
            (true, false),
            (false, true),
            (true, true),
            (true, false),
            (true, false),
        ];
        assert_eq!(bounds(&packets), expected);
    }

    #[test]
    fn pes_packets_go_by_their_beginnings_in_rtp_too() {
        let begin = transport(256, Some(0xe0), true);
        let rest = transport(256, None, false);
        let expected = [(false, false), (true, false), (false, false), (true, false)];
        let bare = [&rest, &begin, &rest, &begin].map(Vec::clone);
        assert_eq!(bounds(&bare), expected);
        // The marker of such packets means something else.
        let wrapped = [&rest, &begin, &rest, &begin].map(|packets| rtp(7, true, packets));
        assert_eq!(bounds(&wrapped), expected);
        let mut framing = Framing::default();
        assert!(framing.look(&wrapped[1]).random_access && !framing.look(&rest).random_access);
    }

    #[test]
    fn what_is_neither_is_not_known() {
        let mut framing = Framing::default();
        let report = [0x80, 200, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8];
        for datagram in [&b""[..], b"x", &report, &[0x47; 187]] {
            assert_eq!(framing.look(datagram), Bounds::default(), "{datagram:?}");
        }
    }
}
