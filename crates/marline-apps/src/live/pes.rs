//! Where the PES packets of an MPEG transport stream begin (ISO/IEC 13818-1 sections 2.4.3.2 to
//! 2.4.3.7): the access units of its video, or of what it has instead. Any bytes have such places
//! or none.

use super::mpegts::PACKET;

/// What begins a PES packet, before its stream id.
const START_CODE: [u8; 3] = [0, 0, 1];
/// Stream ids of video (Table 2-22), and the one that newer codecs share.
const VIDEO: std::ops::RangeInclusive<u8> = 0xe0..=0xef;
const EXTENDED: u8 = 0xfd;
/// Transport packets without a beginning of the PID that is followed, after which any other may
/// take its place: 3 MB.
const GONE: u32 = 1 << 14;

/// What a transport packet says of a PES packet that begins in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Begin {
    pid: u16,
    video: bool,
    random_access: bool,
}

fn begin(packet: &[u8]) -> Option<Begin> {
    let &[_, flags, low, control, ..] = packet else {
        return None;
    };
    let (damaged, starts) = (flags & 0x80 != 0, flags & 0x40 != 0);
    let (scrambled, has_adaptation, has_payload) = (
        control & 0xc0 != 0,
        control & 0x20 != 0,
        control & 0x10 != 0,
    );
    if damaged || !starts || !has_payload {
        return None;
    }
    let (mut payload, mut random_access) = (4, false);
    if has_adaptation {
        let length = usize::from(*packet.get(4)?);
        random_access = length > 0 && packet.get(5)? & 0x40 != 0;
        payload += 1 + length;
    }
    let payload = packet.get(payload..)?;
    let stream = match payload {
        // Tables are never scrambled, so this begins a PES packet, of which kind is not to be seen.
        _ if scrambled => 0,
        [a, b, c, stream, ..] if [*a, *b, *c] == START_CODE => *stream,
        _ => return None,
    };
    Some(Begin {
        pid: u16::from_be_bytes([flags & 0x1f, low]),
        video: VIDEO.contains(&stream) || stream == EXTENDED,
        random_access,
    })
}

/// Follows one PID: the first of a video, and until there is one the first that carries PES packets
/// at all.
#[derive(Debug, Default)]
pub(super) struct PesBegins {
    followed: Option<Begin>,
    /// Transport packets since its last beginning.
    since: u32,
}

impl PesBegins {
    /// Does a PES packet of the PID that is followed begin in this datagram, which is nothing but
    /// transport packets? Then whether a decoder can start with it (random_access_indicator).
    pub(super) fn follow(&mut self, datagram: &[u8]) -> Option<bool> {
        let mut found = None;
        for packet in datagram.chunks_exact(PACKET) {
            self.since = self.since.saturating_add(1);
            if self.since > GONE {
                self.followed = None;
            }
            let Some(begin) = begin(packet) else {
                continue;
            };
            let ours = self.followed.is_none_or(|followed| {
                followed.pid == begin.pid || (begin.video && !followed.video)
            });
            if ours {
                self.followed = Some(begin);
                self.since = 0;
                *found.get_or_insert(false) |= begin.random_access;
            }
        }
        found
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A transport packet that begins a PES packet of this stream id, if it has one.
    pub(in crate::live) fn packet(pid: u16, stream: Option<u8>, random_access: bool) -> Vec<u8> {
        let [high, low] = pid.to_be_bytes();
        let starts = if stream.is_some() { 0x40 } else { 0 };
        let mut packet = vec![
            0x47,
            high | starts,
            low,
            0x30,
            7,
            u8::from(random_access) << 6,
        ];
        packet.extend([0; 6]);
        packet.extend(stream.map_or([9; 4], |stream| [0, 0, 1, stream]));
        packet.resize(PACKET, 0xaa);
        packet
    }

    #[test]
    fn the_beginnings_of_the_video_are_found_and_whether_one_can_start_there() {
        let mut pes = PesBegins::default();
        assert_eq!(pes.follow(&packet(256, None, false)), None);
        // A table (its payload begins with a pointer), and sound before the video is known.
        let mut table = packet(0, Some(0), false);
        table[12..16].copy_from_slice(&[0, 0, 0xb0, 13]);
        assert_eq!(pes.follow(&table), None);
        assert_eq!(pes.follow(&packet(257, Some(0xc0), true)), Some(true));
        let key = [packet(257, None, false), packet(256, Some(0xe0), true)].concat();
        assert_eq!(pes.follow(&key), Some(true));
        assert_eq!(pes.follow(&packet(257, Some(0xc0), true)), None);
        assert_eq!(pes.follow(&packet(258, Some(0xe1), true)), None);
        assert_eq!(pes.follow(&packet(256, Some(0xe0), false)), Some(false));
    }

    #[test]
    fn another_is_followed_when_one_is_gone_for_long() {
        let mut pes = PesBegins::default();
        assert_eq!(pes.follow(&packet(256, Some(0xe0), false)), Some(false));
        let other = packet(300, Some(0xfd), false);
        assert_eq!(pes.follow(&other), None);
        let rest = packet(300, None, false).repeat(7);
        assert!((0..GONE / 7 + 1).all(|_| pes.follow(&rest).is_none()));
        assert_eq!(pes.follow(&other), Some(false));
    }

    #[test]
    fn scrambled_ones_begin_where_their_packets_say_so() {
        let mut pes = PesBegins::default();
        let mut scrambled = packet(256, Some(0xe0), true);
        scrambled[3] |= 0x80;
        scrambled[12..].fill(0x5c);
        assert_eq!(pes.follow(&scrambled), Some(true));
        let mut damaged = scrambled;
        damaged[1] |= 0x80;
        assert_eq!(pes.follow(&damaged), None);
    }

    #[test]
    fn an_adaptation_field_that_is_too_long_begins_nothing() {
        for length in [177, 184, 255] {
            let mut hostile = packet(256, Some(0xe0), true);
            hostile[4] = length;
            hostile[12..16].fill(0xff);
            assert_eq!(PesBegins::default().follow(&hostile), None, "{length}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_followed_without_harm(
            datagrams in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..600), 0..8),
        ) {
            let mut pes = PesBegins::default();
            for datagram in datagrams {
                let begins = pes.follow(&datagram).is_some();
                prop_assert!(!begins || datagram.len() >= PACKET);
            }
        }
    }
}
