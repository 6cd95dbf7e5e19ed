//! RTP (RFC 3550): enough of the header to follow sequence numbers. Any bytes are a header or none.

use std::ops::Range;

/// The fixed part of the header (section 5.1), bytes.
const FIXED: usize = 12;
/// Second bytes that RTCP uses where both share a port (RFC 5761 section 4).
const RTCP: std::ops::RangeInclusive<u8> = 192..=223;
/// Packets in sequence that make a source credible: what is not RTP rarely looks like it twice
/// (appendix A.1).
const MIN_SEQUENTIAL: u8 = 2;
/// A jump forwards of this much or more is a restart rather than a loss (appendix A.1).
const MAX_DROPOUT: u16 = 3000;
/// How far behind the highest number a packet still counts as late or as a duplicate.
const WINDOW: u64 = 1024;
/// Sources followed at a time; the one that has been quiet longest makes room.
const MAX_SOURCES: usize = 8;

/// What is needed of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) sequence: u16,
    pub(super) timestamp: u32,
    /// The last packet of a video frame (RFC 3551 section 4.1).
    pub(super) marker: bool,
    pub(super) ssrc: u32,
    /// Where in the datagram the payload is.
    pub(super) payload: Range<usize>,
}

impl Header {
    /// Reads the header of a datagram; `None` when it cannot be RTP.
    pub(super) fn parse(datagram: &[u8]) -> Option<Header> {
        let &[first, second, s0, s1, t0, t1, t2, t3, c0, c1, c2, c3, ..] = datagram else {
            return None;
        };
        if first >> 6 != 2 || RTCP.contains(&second) {
            return None;
        }
        let mut start = FIXED + 4 * usize::from(first & 0x0f);
        if first & 0x10 != 0 {
            let extension = datagram.get(start..start + 4)?;
            let words = u16::from_be_bytes([extension[2], extension[3]]);
            start += 4 + 4 * usize::from(words);
        }
        let padding = match first & 0x20 {
            0 => 0,
            _ => usize::from(*datagram.last()?).max(1),
        };
        let end = datagram.len().checked_sub(padding)?;
        (start <= end).then(|| Header {
            sequence: u16::from_be_bytes([s0, s1]),
            timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
            marker: second & 0x80 != 0,
            ssrc: u32::from_be_bytes([c0, c1, c2, c3]),
            payload: start..end,
        })
    }

    /// What all packets of one video frame have in common: source and timestamp (section 5.1).
    pub(super) fn frame(&self) -> (u32, u32) {
        (self.ssrc, self.timestamp)
    }
}

/// What a packet's number says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Not known to be RTP yet, or a retransmission within RIST, which numbers what it repeats.
    Unknown,
    /// After this number of missing ones.
    Next {
        /// Numbers that were skipped.
        missing: u64,
    },
    /// It had been counted as missing.
    Late,
    /// It had come before.
    Duplicate,
}

/// Follows the sources in one direction of one flow.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// The one that sent last stands last.
    sources: Vec<Source>,
}

impl Sources {
    pub(super) fn follow(&mut self, header: &Header) -> Verdict {
        // RIST (VSF TR-06-1 section 5.3.3) sets the lowest bit in what it sends again.
        let original = header.ssrc & !1;
        let repeats = header.ssrc != original
            && self
                .sources
                .iter()
                .any(|s| s.ssrc == original && s.is_valid());
        if repeats {
            return Verdict::Unknown;
        }
        let found = self.sources.iter().position(|s| s.ssrc == header.ssrc);
        let mut source = match found {
            Some(index) => self.sources.remove(index),
            None => {
                if self.sources.len() == MAX_SOURCES {
                    self.sources.remove(0);
                }
                Source::new(header)
            }
        };
        let verdict = match found {
            Some(_) => source.follow(header.sequence),
            None => Verdict::Unknown,
        };
        self.sources.push(source);
        verdict
    }
}

#[derive(Debug)]
struct Source {
    ssrc: u32,
    /// Packets in sequence so far, up to [`MIN_SEQUENTIAL`].
    sequential: u8,
    /// First and highest number since it became valid, extended beyond 16 bits.
    first: u64,
    highest: u64,
    /// Which of the last [`WINDOW`] numbers came, by number modulo [`WINDOW`].
    seen: [u64; WINDOW as usize / 64],
    /// What would follow a packet from far away.
    elsewhere: Option<u16>,
}

impl Source {
    fn new(header: &Header) -> Self {
        let mut source = Source {
            ssrc: header.ssrc,
            sequential: 1,
            first: 0,
            highest: 0,
            seen: [0; WINDOW as usize / 64],
            elsewhere: None,
        };
        source.restart(header.sequence);
        source
    }

    fn is_valid(&self) -> bool {
        self.sequential >= MIN_SEQUENTIAL
    }

    fn restart(&mut self, sequence: u16) {
        // One round of numbers above zero, so that what comes from before the first has a number
        // too.
        self.highest = (1 << 16) + u64::from(sequence);
        self.first = self.highest;
        self.seen.fill(0);
        self.elsewhere = None;
        self.mark(self.highest);
    }

    fn mark(&mut self, number: u64) {
        let bit = number % WINDOW;
        self.seen[bit as usize / 64] |= 1 << (bit % 64);
    }

    fn unmark(&mut self, number: u64) {
        let bit = number % WINDOW;
        self.seen[bit as usize / 64] &= !(1 << (bit % 64));
    }

    fn came(&self, number: u64) -> bool {
        let bit = number % WINDOW;
        self.seen[bit as usize / 64] >> (bit % 64) & 1 == 1
    }

    fn follow(&mut self, sequence: u16) -> Verdict {
        let ahead = sequence.wrapping_sub(self.highest as u16);
        if !self.is_valid() {
            self.sequential = if ahead == 1 { self.sequential + 1 } else { 1 };
            self.restart(sequence);
            return match self.is_valid() {
                true => Verdict::Next { missing: 0 },
                false => Verdict::Unknown,
            };
        }
        if (1..MAX_DROPOUT).contains(&ahead) {
            let number = self.highest + u64::from(ahead);
            for skipped in (self.highest + 1..number).rev().take(WINDOW as usize) {
                self.unmark(skipped);
            }
            self.mark(number);
            let missing = number - self.highest - 1;
            self.highest = number;
            self.elsewhere = None;
            return Verdict::Next { missing };
        }
        let behind = u64::from(ahead.wrapping_neg());
        if behind < WINDOW {
            let number = self.highest - behind;
            if self.came(number) {
                return Verdict::Duplicate;
            }
            if number < self.first {
                return Verdict::Unknown;
            }
            self.mark(number);
            return Verdict::Late;
        }
        if self.elsewhere == Some(sequence) {
            self.restart(sequence);
            return Verdict::Next { missing: 0 };
        }
        self.elsewhere = Some(sequence.wrapping_add(1));
        Verdict::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(sequence: u16) -> Header {
        Header {
            sequence,
            timestamp: 0,
            marker: false,
            ssrc: 8,
            payload: 12..20,
        }
    }

    fn verdicts(sources: &mut Sources, sequences: &[u16]) -> Vec<Verdict> {
        let each = |sequence: &u16| sources.follow(&header(*sequence));
        sequences.iter().map(each).collect()
    }

    #[test]
    fn a_header_ends_where_its_fields_say() {
        let mut plain = vec![0x80, 33, 1, 2, 0, 0, 0, 0, 0, 0, 0, 7];
        plain.extend([0; 188]);
        let parsed = Header::parse(&plain).unwrap();
        assert_eq!((parsed.sequence, parsed.ssrc), (258, 7));
        assert_eq!((parsed.timestamp, parsed.marker), (0, false));
        assert_eq!(parsed.payload, 12..200);
        // Two contributing sources, an extension of one word, three bytes of padding.
        let mut full = vec![0xb2, 33, 1, 2, 0, 0, 0, 0, 0, 0, 0, 7];
        full.extend([0; 8]);
        full.extend([0xbe, 0xde, 0, 1, 9, 9, 9, 9]);
        full.extend([1, 2, 3, 0, 0, 3]);
        assert_eq!(Header::parse(&full).unwrap().payload, 28..31);
        full[1] = 0x80 | 96;
        full[4..8].copy_from_slice(&[1, 2, 3, 4]);
        let parsed = Header::parse(&full).unwrap();
        assert_eq!((parsed.timestamp, parsed.marker), (0x0102_0304, true));
        for wrong in [
            &plain[..11],
            &full[..30 - 12],
            &[[0x40].as_slice(), &plain[1..]].concat(),
            // RTCP: a sender report.
            &[[0x80, 200].as_slice(), &plain[2..]].concat(),
        ] {
            assert_eq!(Header::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn missing_late_and_repeated_numbers_are_told_apart() {
        use Verdict::{Duplicate, Late, Next, Unknown};
        let mut sources = Sources::default();
        let sequences = [65_534, 65_535, 0, 3, 3, 1, 1, 4, 65_533];
        let expected = [
            Unknown,
            Next { missing: 0 },
            Next { missing: 0 },
            Next { missing: 2 },
            Duplicate,
            Late,
            Duplicate,
            Next { missing: 0 },
            // From before the source was known.
            Unknown,
        ];
        assert_eq!(verdicts(&mut sources, &sequences), expected);
    }

    #[test]
    fn a_restart_is_no_loss_and_one_stray_packet_no_restart() {
        use Verdict::{Next, Unknown};
        let mut sources = Sources::default();
        let sequences = [1, 2, 30_000, 3, 30_000, 30_001, 30_002];
        let next = Next { missing: 0 };
        let expected = [Unknown, next, Unknown, next, Unknown, next, next];
        assert_eq!(verdicts(&mut sources, &sequences), expected);
    }

    #[test]
    fn what_only_looks_like_rtp_is_not_followed() {
        // Control packets of SRT begin like RTP, with the same number each.
        let mut sources = Sources::default();
        assert_eq!(verdicts(&mut sources, &[0; 5]), [Verdict::Unknown; 5]);
    }

    #[test]
    fn retransmissions_of_rist_are_not_a_source_of_their_own() {
        let mut sources = Sources::default();
        verdicts(&mut sources, &[1, 2, 5, 6]);
        let again = |sequence| Header {
            ssrc: 9,
            ..header(sequence)
        };
        assert_eq!(sources.follow(&again(3)), Verdict::Unknown);
        assert_eq!(sources.follow(&again(4)), Verdict::Unknown);
        assert_eq!(sources.sources.len(), 1);
    }

    #[test]
    fn many_sources_take_no_more_memory_than_a_few() {
        let mut sources = Sources::default();
        for ssrc in 0..1000 {
            sources.follow(&Header {
                ssrc: 2 * ssrc,
                ..header(1)
            });
        }
        assert_eq!(sources.sources.len(), MAX_SOURCES);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_header_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Some(header) = Header::parse(&bytes) {
                prop_assert!(bytes.get(header.payload).is_some());
            }
        }

        /// Numbers lost, reordered by a little and repeated are counted as a plain set counts them.
        #[test]
        fn counts_agree_with_a_plain_set(
            start in any::<u16>(),
            fates in proptest::collection::vec((0u8..10, 0usize..6), 10..300),
        ) {
            // The first two make the source known; then some are lost, delayed or doubled.
            let mut sent: Vec<(usize, u64)> = vec![(0, 0), (1, 1)];
            for (index, (fate, delay)) in fates.iter().enumerate() {
                let number = index as u64 + 2;
                match fate {
                    0 => {}
                    1 => sent.push((index + 2 + delay, number)),
                    2 => sent.extend([(index + 2, number), (index + 2 + delay, number)]),
                    _ => sent.push((index + 2, number)),
                }
            }
            sent.sort_by_key(|(at, _)| *at);
            let (mut lost, mut late, mut duplicated) = (0_i64, 0, 0);
            let mut sources = Sources::default();
            let mut plain = std::collections::BTreeSet::new();
            let (mut plain_late, mut plain_duplicated) = (0, 0);
            for (index, (_, number)) in sent.iter().enumerate() {
                match sources.follow(&header(start.wrapping_add(*number as u16))) {
                    Verdict::Next { missing } => lost += missing as i64,
                    Verdict::Late => {
                        late += 1;
                        lost -= 1;
                    }
                    Verdict::Duplicate => duplicated += 1,
                    Verdict::Unknown => prop_assert_eq!(index, 0),
                }
                let newest = plain.last().copied();
                if !plain.insert(*number) {
                    plain_duplicated += 1;
                } else if newest.is_some_and(|newest| newest > *number) {
                    plain_late += 1;
                }
            }
            let highest = plain.last().copied().unwrap_or(0);
            prop_assert_eq!(lost, highest as i64 + 1 - plain.len() as i64);
            prop_assert_eq!((late, duplicated), (plain_late, plain_duplicated));
        }
    }
}
