//! RTP packets of one video frame, put together into one block.
//!
//! ```text
//! block = { length (2) | datagram }*
//! ```

use super::rtp::Header;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::time::Duration;
use tokio::time::Instant;

/// A frame that is longer (bytes) goes in several blocks.
pub(super) const LONGEST: usize = 512 << 10;
/// Bytes before each datagram.
pub(super) const HEAD: usize = 2;
/// Sources whose frames are open at a time; of more the oldest frame goes as it is.
const MAX_SOURCES: usize = 8;

/// Datagrams that travel as one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    /// When the first of them came.
    pub(super) since: Instant,
    /// All of them, in the order in which they came.
    pub(super) block: Bytes,
}

/// Puts datagrams together: RTP packets of one source that have one timestamp are one frame (RFC
/// 3550 section 5.1), which is complete with the packet that has the marker, or when a packet of
/// the source with another timestamp comes, or when it has waited too long. Sources that share a
/// port do not disturb each other. What is not RTP is complete by itself.
#[derive(Debug)]
pub(super) struct Grouper {
    patience: Duration,
    /// The oldest first; one of each source.
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    /// Source and timestamp.
    frame: (u32, u32),
    since: Instant,
    bytes: BytesMut,
}

/// Appends a datagram to a block.
pub(super) fn put(bytes: &mut BytesMut, datagram: &[u8]) {
    // A datagram has at most 65 507 bytes.
    bytes.put_u16(datagram.len() as u16);
    bytes.put_slice(datagram);
}

impl Open {
    fn close(self) -> Group {
        Group {
            since: self.since,
            block: self.bytes.freeze(),
        }
    }
}

impl Grouper {
    /// Frames wait at most this long for their last packet.
    pub(super) const fn new(patience: Duration) -> Self {
        Grouper {
            patience,
            open: Vec::new(),
        }
    }

    /// Takes a datagram; what is complete now, the oldest first.
    pub(super) fn push(&mut self, now: Instant, datagram: &[u8]) -> Vec<Group> {
        let mut complete = Vec::new();
        let Some(header) = Header::parse(datagram) else {
            let mut bytes = BytesMut::with_capacity(HEAD + datagram.len());
            put(&mut bytes, datagram);
            complete.push(Group {
                since: now,
                block: bytes.freeze(),
            });
            return complete;
        };
        let frame = header.frame();
        let mut found = self.open.iter().position(|open| open.frame.0 == frame.0);
        let fits = |open: &Open| {
            open.frame == frame && open.bytes.len() + HEAD + datagram.len() <= LONGEST
        };
        if let Some(index) = found
            && !fits(&self.open[index])
        {
            complete.push(self.open.remove(index).close());
            found = None;
        }
        let index = found.unwrap_or_else(|| {
            if self.open.len() == MAX_SOURCES {
                complete.extend(self.flush());
            }
            self.open.push(Open {
                frame,
                since: now,
                bytes: BytesMut::new(),
            });
            self.open.len() - 1
        });
        put(&mut self.open[index].bytes, datagram);
        if header.marker {
            complete.push(self.open.remove(index).close());
        }
        complete
    }

    /// When the oldest open frame has waited too long, if there is one.
    pub(super) fn due(&self) -> Option<Instant> {
        self.open.first().map(|open| open.since + self.patience)
    }

    /// The oldest open frame as far as it came.
    pub(super) fn flush(&mut self) -> Option<Group> {
        (!self.open.is_empty()).then(|| self.open.remove(0).close())
    }
}

/// What is left in a block, cut into its datagrams, with how old each is.
pub(super) fn cut_all(mut block: Bytes, age: Duration) -> impl Iterator<Item = (Bytes, Duration)> {
    std::iter::from_fn(move || Some((cut(&mut block)?, age)))
}

/// Cuts the next datagram off a block; what does not have the form of one ends it.
pub(super) fn cut(block: &mut Bytes) -> Option<Bytes> {
    let head = block.first_chunk::<HEAD>()?;
    let length = usize::from(u16::from_be_bytes(*head));
    if block.len() < HEAD + length {
        block.clear();
        return None;
    }
    block.advance(HEAD);
    Some(block.split_to(length))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    const PATIENCE: Duration = Duration::from_millis(20);

    /// All datagrams of a block.
    pub(in crate::live) fn datagrams(mut block: Bytes) -> impl Iterator<Item = Bytes> {
        std::iter::from_fn(move || cut(&mut block))
    }

    fn packet(timestamp: u32, marker: bool, byte: u8) -> Vec<u8> {
        let mut packet = vec![0x80, 96 | u8::from(marker) << 7, 0, byte];
        packet.extend(timestamp.to_be_bytes());
        packet.extend([0, 0, 0, 8, byte, byte]);
        packet
    }

    fn push(grouper: &mut Grouper, datagram: &[u8]) -> Vec<Vec<Bytes>> {
        let groups = grouper.push(Instant::now(), datagram);
        groups
            .into_iter()
            .map(|group| datagrams(group.block).collect())
            .collect()
    }

    #[test]
    fn a_marker_completes_a_frame_and_so_does_another_timestamp() {
        let mut grouper = Grouper::new(PATIENCE);
        let [a, b, c, d] = [
            packet(1, false, 1),
            packet(1, true, 2),
            packet(2, false, 3),
            packet(3, true, 4),
        ];
        assert!(push(&mut grouper, &a).is_empty());
        assert_eq!(push(&mut grouper, &b), [[&a[..], &b[..]]]);
        assert!(grouper.due().is_none());
        assert!(push(&mut grouper, &c).is_empty());
        assert_eq!(push(&mut grouper, &d), [[&c[..]], [&d[..]]]);
        assert_eq!(grouper.flush(), None);
    }

    #[test]
    fn sources_that_share_a_port_do_not_cut_each_other_s_frames() {
        let mut grouper = Grouper::new(PATIENCE);
        let of = |source: u8, mut packet: Vec<u8>| {
            packet[11] = source;
            packet
        };
        let [a, b] = [of(1, packet(1, false, 1)), of(1, packet(1, true, 2))];
        let [x, y] = [of(2, packet(9, false, 3)), of(2, packet(10, false, 4))];
        assert!(push(&mut grouper, &a).is_empty());
        assert!(push(&mut grouper, &x).is_empty());
        assert_eq!(push(&mut grouper, &y), [[&x[..]]]);
        assert_eq!(push(&mut grouper, &b), [[&a[..], &b[..]]]);
        // However many there are, few are remembered.
        for source in 10..30 {
            push(&mut grouper, &of(source, packet(1, false, source)));
            assert!(grouper.open.len() <= MAX_SOURCES);
        }
        let oldest = grouper.flush().unwrap();
        assert!(datagrams(oldest.block).eq([&of(22, packet(1, false, 22))[..]]));
    }

    #[test]
    fn what_is_no_video_packet_goes_at_once_and_leaves_the_frame_open() {
        let mut grouper = Grouper::new(PATIENCE);
        let a = packet(1, false, 1);
        push(&mut grouper, &a);
        // A report of RTCP, and an empty datagram.
        let report = [0x80, 200, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8];
        assert_eq!(push(&mut grouper, &report), [[&report[..]]]);
        assert_eq!(push(&mut grouper, b""), [[&b""[..]]]);
        let b = packet(1, true, 2);
        assert_eq!(push(&mut grouper, &b), [[&a[..], &b[..]]]);
    }

    #[test]
    fn a_frame_without_an_end_goes_when_it_has_waited_or_is_long() {
        let mut grouper = Grouper::new(PATIENCE);
        let now = Instant::now();
        let a = packet(1, false, 1);
        assert!(grouper.push(now, &a).is_empty());
        assert_eq!(grouper.due(), Some(now + PATIENCE));
        let group = grouper.flush().unwrap();
        assert_eq!(group.since, now);
        assert!(datagrams(group.block).eq([&a[..]]));
        let mut long = a;
        long.resize(60_000, 7);
        let groups: Vec<Group> = (0..20).flat_map(|_| grouper.push(now, &long)).collect();
        assert!(!groups.is_empty());
        assert!(groups.iter().all(|group| group.block.len() <= LONGEST));
    }

    #[test]
    fn nothing_comes_after_what_has_not_the_form_of_a_datagram() {
        let mut block = Bytes::from_static(&[0, 1, 7, 0, 9, 0, 1, 8]);
        assert_eq!(cut(&mut block).as_deref(), Some(&[7][..]));
        assert_eq!(cut(&mut block), None);
        assert_eq!(cut(&mut block), None, "asked again");
    }

    proptest! {
        #[test]
        fn any_bytes_are_datagrams_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let total: usize = datagrams(Bytes::from(bytes.clone())).map(|d| d.len() + HEAD).sum();
            prop_assert!(total <= bytes.len());
        }

        /// Whatever comes, it comes out again, each datagram once; those of one kind in their
        /// order.
        #[test]
        fn nothing_is_lost_or_made_up(
            kinds in proptest::collection::vec((0u8..3, 0u32..4, any::<bool>()), 0..60),
        ) {
            let mut grouper = Grouper::new(PATIENCE);
            let (mut sent, mut got) = (Vec::new(), Vec::new());
            for (index, (kind, timestamp, marker)) in kinds.iter().enumerate() {
                let datagram = match kind {
                    0 => vec![index as u8; 5],
                    _ => packet(*timestamp, *marker, index as u8),
                };
                got.extend(push(&mut grouper, &datagram).concat());
                sent.push(datagram);
            }
            got.extend(grouper.flush().into_iter().flat_map(|group| datagrams(group.block)));
            let of = |all: &[Vec<u8>], rtp: bool| -> Vec<Vec<u8>> {
                all.iter().filter(|d| (d.len() > 5) == rtp).cloned().collect()
            };
            let got: Vec<Vec<u8>> = got.iter().map(|d| d.to_vec()).collect();
            prop_assert_eq!(of(&sent, true), of(&got, true));
            prop_assert_eq!(of(&sent, false), of(&got, false));
        }
    }
}
