//! Datagrams put together into objects: a video frame or a PES packet each, in parts as they come.
//!
//! ```text
//! object = { length (2) | datagram }*
//! ```

use super::framing::{Bounds, Framing};
use super::grouping::{HEAD, LONGEST, put};
use bytes::{Bytes, BytesMut};
use std::time::Duration;
use tokio::time::Instant;

/// How long a datagram waits for others that leave with it: what an encoder writes at once arrives
/// within this time, and is planned as one.
const GATHER: Duration = Duration::from_millis(3);
/// This much (bytes) does not wait.
const PART: usize = 32 << 10;
/// Urgency (RFC 9218) of units at which a decoder can start, and of all others.
const RANDOM_ACCESS: u8 = 2;
const COMMON: u8 = 3;

/// The next part of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// When the object's first datagram came.
    pub(super) since: Instant,
    /// The object ends with it.
    pub(super) last: bool,
    /// How urgent the object is.
    pub(super) urgency: u8,
    /// Datagrams in the order in which they came; none where only the end was missing.
    pub(super) data: Bytes,
}

/// Cuts one direction of a flow into objects. Nothing waits for an object to be complete: what has
/// come leaves after [`GATHER`], and the end is reported when it shows. An object that does not end
/// by itself does after `patience`, or with [`LONGEST`] bytes; datagrams of no medium that is
/// understood belong to the object that is open, or are one for as long as they come together.
#[derive(Debug)]
pub(super) struct Composer {
    patience: Duration,
    framing: Framing,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    since: Instant,
    urgency: u8,
    /// Something of it is of a medium that is understood.
    known: bool,
    /// Bytes of it, those included that left.
    bytes: usize,
    pending: BytesMut,
    /// When the first that is pending came.
    pending_since: Instant,
}

impl Open {
    fn new(now: Instant, bounds: Bounds) -> Self {
        Open {
            since: now,
            urgency: if bounds.random_access {
                RANDOM_ACCESS
            } else {
                COMMON
            },
            known: false,
            bytes: 0,
            pending: BytesMut::new(),
            pending_since: now,
        }
    }

    fn part(&mut self, last: bool) -> Part {
        Part {
            since: self.since,
            last,
            urgency: self.urgency,
            data: self.pending.split().freeze(),
        }
    }
}

impl Composer {
    /// Objects that do not end by themselves do after this time.
    pub(super) fn new(patience: Duration) -> Self {
        Composer {
            patience,
            framing: Framing::default(),
            open: None,
        }
    }

    /// Takes a datagram; what leaves now, at most the end of an object and the beginning of the
    /// next.
    pub(super) fn push(&mut self, now: Instant, datagram: &[u8]) -> Vec<Part> {
        let mut parts = Vec::new();
        let bounds = self.framing.look(datagram);
        let size = HEAD + datagram.len();
        let over = |open: &Open| {
            bounds.begins || open.bytes + size > LONGEST || now >= open.since + self.patience
        };
        if self.open.as_ref().is_some_and(over) {
            parts.extend(self.end());
        }
        let open = self.open.get_or_insert_with(|| Open::new(now, bounds));
        if open.pending.is_empty() {
            open.pending_since = now;
        }
        put(&mut open.pending, datagram);
        open.bytes += size;
        open.known |= bounds.known;
        if bounds.ends {
            parts.extend(self.end());
        } else if open.pending.len() >= PART {
            parts.push(open.part(false));
        }
        parts
    }

    /// When something leaves though nothing more comes.
    pub(super) fn due(&self) -> Option<Instant> {
        let open = self.open.as_ref()?;
        let end = open.since + self.patience;
        let gathered = open.pending_since + GATHER;
        Some(if open.pending.is_empty() {
            end
        } else {
            end.min(gathered)
        })
    }

    /// What is due.
    pub(super) fn flush(&mut self, now: Instant) -> Option<Part> {
        if self.due()? > now {
            return None;
        }
        let open = self.open.as_mut()?;
        if !open.known || now >= open.since + self.patience {
            return self.end();
        }
        Some(open.part(false))
    }

    /// What has come of the object that is open, which ends with it.
    pub(super) fn end(&mut self) -> Option<Part> {
        self.open.take().map(|mut open| open.part(true))
    }
}

#[cfg(test)]
mod tests {
    use super::super::grouping::tests::datagrams;
    use super::super::pes::tests::packet as transport;
    use super::*;
    use proptest::prelude::*;

    const PATIENCE: Duration = Duration::from_millis(75);

    fn rtp(timestamp: u32, marker: bool, byte: u8) -> Vec<u8> {
        let mut packet = vec![0x80, 96 | u8::from(marker) << 7, 0, byte];
        packet.extend(timestamp.to_be_bytes());
        packet.extend([0, 0, 0, 8, byte, byte]);
        packet
    }

    /// (last, urgency, its datagrams)
    fn said(part: Part) -> (bool, u8, Vec<Bytes>) {
        let of = datagrams(part.data).collect();
        (part.last, part.urgency, of)
    }

    #[test]
    fn a_frame_that_comes_at_once_is_one_part() {
        let mut composer = Composer::new(PATIENCE);
        let now = Instant::now();
        let [a, b] = [rtp(1, false, 1), rtp(1, true, 2)];
        assert!(composer.push(now, &a).is_empty());
        assert_eq!(composer.due(), Some(now + GATHER));
        assert_eq!(composer.flush(now), None);
        let parts = composer.push(now, &b).into_iter().map(said);
        let whole = (true, COMMON, vec![a.into(), b.into()]);
        assert!(parts.eq([whole]));
        assert_eq!(composer.due(), None);
    }

    #[test]
    fn a_frame_that_comes_slowly_leaves_as_it_comes_and_ends_with_the_next() {
        let mut composer = Composer::new(PATIENCE);
        let start = Instant::now();
        let [a, b, c] = [rtp(1, false, 1), rtp(1, false, 2), rtp(2, true, 3)];
        composer.push(start, &a);
        let part = composer.flush(start + GATHER).map(said);
        assert_eq!(part, Some((false, COMMON, vec![a.into()])));
        assert_eq!(composer.due(), Some(start + PATIENCE));
        let later = start + Duration::from_millis(20);
        assert!(composer.push(later, &b).is_empty());
        let parts = composer.push(later, &c).into_iter().map(said);
        let expected = [
            (true, COMMON, vec![b.into()]),
            (true, COMMON, vec![c.into()]),
        ];
        assert!(parts.eq(expected));
    }

    #[test]
    fn a_pes_packet_at_which_decoders_start_is_more_urgent() {
        let mut composer = Composer::new(PATIENCE);
        let now = Instant::now();
        let [key, other] = [true, false].map(|key| transport(256, Some(0xe0), key));
        let rest = transport(256, None, false);
        assert!(composer.push(now, &key).is_empty());
        assert!(composer.push(now, &rest).is_empty());
        let parts: Vec<_> = composer.push(now, &other).into_iter().map(said).collect();
        assert_eq!(
            parts,
            [(true, RANDOM_ACCESS, vec![key.into(), rest.into()])]
        );
        let part = composer.flush(now + GATHER).map(said);
        assert_eq!(part, Some((false, COMMON, vec![other.into()])));
    }

    #[test]
    fn a_frame_that_never_ends_is_cut_by_time_and_by_length() {
        let mut composer = Composer::new(PATIENCE);
        let start = Instant::now();
        composer.push(start, &rtp(1, false, 1));
        let end = composer.flush(start + PATIENCE).unwrap();
        assert!(end.last);
        let mut long = rtp(1, false, 1);
        long.resize(60_000, 7);
        let (mut object, mut ends, mut begins) = (0, 0, true);
        for _ in 0..40 {
            for part in composer.push(start, &long) {
                object = if begins { 0 } else { object } + part.data.len();
                begins = part.last;
                assert!(object <= LONGEST);
                ends += usize::from(part.last);
            }
            let pending = composer.open.as_ref().map_or(0, |open| open.pending.len());
            assert!(pending < PART, "{pending} bytes are held");
        }
        assert_eq!(ends, 4, "40 * 60 kB in objects of half a MiB");
    }

    #[test]
    fn what_is_not_understood_is_an_object_while_it_comes_together() {
        let mut composer = Composer::new(PATIENCE);
        let now = Instant::now();
        assert!(composer.push(now, b"x").is_empty() && composer.push(now, b"y").is_empty());
        let part = composer.flush(now + GATHER).map(said);
        let both: Vec<Bytes> = vec![b"x"[..].into(), b"y"[..].into()];
        assert_eq!(part, Some((true, COMMON, both)));
        // Within a frame it belongs to that, so that the order stays.
        composer.push(now, &rtp(1, false, 1));
        assert!(composer.push(now, b"x").is_empty());
        assert!(!composer.flush(now + GATHER).unwrap().last);
    }

    proptest! {
        /// Whatever comes leaves again, each datagram once and in order, and every object ends.
        #[test]
        fn nothing_is_lost_or_made_up(
            kinds in proptest::collection::vec((0u8..4, 0u32..4, any::<bool>(), 0u64..40), 0..80),
        ) {
            let mut composer = Composer::new(PATIENCE);
            let mut now = Instant::now();
            let (mut sent, mut parts) = (Vec::new(), Vec::new());
            for (index, (kind, timestamp, marker, wait)) in kinds.iter().enumerate() {
                now += Duration::from_millis(*wait);
                while let Some(part) = composer.flush(now) {
                    parts.push(part);
                }
                let datagram = match kind {
                    0 => vec![index as u8; 5],
                    1 => transport(256, marker.then_some(0xe0), *timestamp == 0),
                    2 => Vec::new(),
                    _ => rtp(*timestamp, *marker, index as u8),
                };
                parts.extend(composer.push(now, &datagram));
                sent.push(Bytes::from(datagram));
            }
            while let Some(due) = composer.due() {
                parts.extend(composer.flush(due));
            }
            let mut open = false;
            for part in &parts {
                prop_assert!(part.last || !part.data.is_empty());
                open = !part.last;
            }
            prop_assert!(!open);
            let got: Vec<Bytes> = parts.into_iter().flat_map(|part| datagrams(part.data)).collect();
            prop_assert_eq!(got, sent);
        }
    }
}
