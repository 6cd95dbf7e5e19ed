//! ACK: which packets of one path arrived, and when.
//!
//! ```text
//! 0x02 | path (i) | largest (i) | delay_us (i) | arrival_us (i)
//!      | range_count (i) | first_range (i) | [ gap (i) | range (i) ] * range_count
//!      | arrival_count (i) | [ pn_step (i) | zigzag(dt_us) (i) ] * arrival_count
//! ```
//!
//! Ranges are written as in RFC 9000 §19.3.1. Arrivals go down from the largest packet, whose own
//! arrival is `arrival_us`: the next packet is `previous - 1 - pn_step` and arrived `dt_us` before
//! the previous one (after it, where `dt_us` is negative).

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::reader::Reader;
use super::{DecodeErrorKind, PathId, frame_type, varint};

/// Most ranges that [`Ack::encode_within`] writes.
pub const MAX_RANGES_ENCODED: usize = 64;
/// Most arrivals, the largest packet's included, that [`Ack::encode_within`] writes.
pub const MAX_ARRIVALS_ENCODED: usize = 256;
/// Most ranges that a received ACK may have.
pub const MAX_RANGES_DECODED: usize = 256;
/// Most arrivals, the largest packet's included, that a received ACK may have.
pub const MAX_ARRIVALS_DECODED: usize = 512;

/// Acknowledgement of packets of one path; it may travel on any path.
///
/// Decoding guarantees, and encoding expects: `ranges` has at least one entry, descends, and has a
/// gap of at least one packet between neighbours; `arrivals` starts with the largest packet,
/// descends, and names acknowledged packets only. A value without ranges or arrivals encodes to
/// nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The path whose packets are acknowledged.
    pub path: PathId,
    /// Microseconds between the largest packet's arrival and the sending of this frame.
    pub delay_us: u64,
    /// Packet numbers that arrived, newest first.
    pub ranges: Vec<RangeInclusive<u64>>,
    /// Arrival times of the largest packet and of those that are new since the last ACK of this
    /// path, newest packet first.
    pub arrivals: Vec<Arrival>,
}

/// When a packet arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its packet number.
    pub packet: u64,
    /// Microseconds on the receiver's clock, from any zero that stays put during the session.
    pub at_us: u64,
}

/// What [`Ack::encode_within`] wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fitted {
    /// Bytes.
    pub len: usize,
    /// Ranges: that many of the newest.
    pub ranges: usize,
    /// Arrivals, the largest packet's included: that many of the newest.
    pub arrivals: usize,
}

impl Ack {
    /// The largest packet number acknowledged; `None` without ranges, which decoding never gives.
    #[must_use]
    #[inline]
    pub fn largest(&self) -> Option<u64> {
        self.ranges.first().map(|range| *range.end())
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeErrorKind> {
        let path = PathId(reader.varint("path")?);
        let largest = reader.varint("largest")?;
        let delay_us = reader.varint("delay_us")?;
        let arrival_us = reader.varint("arrival_us")?;
        let ranges = decode_ranges(reader, largest)?;
        let first = Arrival {
            packet: largest,
            at_us: arrival_us,
        };
        let arrivals = decode_arrivals(reader, first, &ranges)?;
        Ok(Self {
            path,
            delay_us,
            ranges,
            arrivals,
        })
    }

    /// Appends the whole frame, whatever its size. A sender uses
    /// [`encode_within`](Self::encode_within), which keeps to the limits.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if let Some(fitted) = self.fit(usize::MAX, usize::MAX, usize::MAX) {
            self.write(fitted.ranges, fitted.arrivals, out);
        }
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        self.fit(usize::MAX, usize::MAX, usize::MAX)
            .map_or(0, |fitted| fitted.len)
    }

    /// Appends as much of the frame as fits into `room` bytes, [`MAX_RANGES_ENCODED`] ranges and
    /// [`MAX_ARRIVALS_ENCODED`] arrivals: the arrivals of the lowest numbers are left out first,
    /// then the lowest ranges, new or not. `None`, and nothing appended, if not even the newest
    /// range fits.
    pub fn encode_within(&self, room: usize, out: &mut Vec<u8>) -> Option<Fitted> {
        let fitted = self.fit(room, MAX_RANGES_ENCODED, MAX_ARRIVALS_ENCODED)?;
        out.reserve(fitted.len);
        self.write(fitted.ranges, fitted.arrivals, out);
        Some(fitted)
    }

    /// How much fits, filled from the newest: ranges before arrivals, because a range left out
    /// may cost a needless retransmission, an arrival only a sample.
    fn fit(&self, room: usize, max_ranges: usize, max_arrivals: usize) -> Option<Fitted> {
        let newest = self.ranges.first()?;
        let arrival = self.arrivals.first()?;
        debug_assert_eq!(
            *newest.end(),
            arrival.packet,
            "the first arrival is the largest's"
        );
        // Both counts take one byte to begin with.
        let mut len = varint::frame_len([
            self.path.0,
            *newest.end(),
            self.delay_us,
            arrival.at_us,
            newest.end() - newest.start(),
            0,
            0,
        ]);
        if len > room {
            return None;
        }
        let mut ranges = 1;
        for pair in self.ranges.windows(2).take(max_ranges - 1) {
            let longer = len + range_len(pair) + count_growth(ranges);
            if longer > room {
                break;
            }
            (ranges, len) = (ranges + 1, longer);
        }
        let floor = *self.ranges[ranges - 1].start();
        let mut arrivals = 1;
        for pair in self.arrivals.windows(2).take(max_arrivals - 1) {
            let longer = len + arrival_len(pair) + count_growth(arrivals);
            if longer > room || pair[1].packet < floor {
                break;
            }
            (arrivals, len) = (arrivals + 1, longer);
        }
        Some(Fitted {
            len,
            ranges,
            arrivals,
        })
    }

    fn write(&self, ranges: usize, arrivals: usize, out: &mut Vec<u8>) {
        let (Some(newest), Some(arrival)) = (self.ranges.first(), self.arrivals.first()) else {
            return;
        };
        varint::encode_frame(
            frame_type::ACK,
            [
                self.path.0,
                *newest.end(),
                self.delay_us,
                arrival.at_us,
                ranges as u64 - 1,
                newest.end() - newest.start(),
            ],
            out,
        );
        for pair in self.ranges[..ranges].windows(2) {
            let (gap, range) = range_fields(pair);
            varint::encode(gap, out);
            varint::encode(range, out);
        }
        varint::encode(arrivals as u64 - 1, out);
        for pair in self.arrivals[..arrivals].windows(2) {
            let (step, dt) = arrival_fields(pair);
            varint::encode(step, out);
            varint::encode(dt, out);
        }
    }
}

/// Bytes by which a count grows when it goes from `count - 1` to `count`.
#[inline]
fn count_growth(count: usize) -> usize {
    varint::len(count as u64) - varint::len(count as u64 - 1)
}

/// Gap and length of the second of two neighbouring ranges (RFC 9000 §19.3.1).
#[inline]
fn range_fields(pair: &[RangeInclusive<u64>]) -> (u64, u64) {
    debug_assert!(
        pair[1].start() <= pair[1].end() && pair[1].end() + 1 < *pair[0].start(),
        "ranges descend with gaps between them"
    );
    (
        pair[0].start() - pair[1].end() - 2,
        pair[1].end() - pair[1].start(),
    )
}

#[inline]
fn range_len(pair: &[RangeInclusive<u64>]) -> usize {
    let (gap, range) = range_fields(pair);
    varint::len(gap) + varint::len(range)
}

/// Packet step and zigzagged time difference of the second of two neighbouring arrivals.
#[inline]
fn arrival_fields(pair: &[Arrival]) -> (u64, u64) {
    debug_assert!(pair[1].packet < pair[0].packet, "arrivals descend");
    let dt = pair[0].at_us.wrapping_sub(pair[1].at_us) as i64;
    (pair[0].packet - pair[1].packet - 1, varint::zigzag(dt))
}

#[inline]
fn arrival_len(pair: &[Arrival]) -> usize {
    let (step, dt) = arrival_fields(pair);
    varint::len(step) + varint::len(dt)
}

#[inline]
fn decode_ranges(
    reader: &mut Reader<'_>,
    largest: u64,
) -> Result<Vec<RangeInclusive<u64>>, DecodeErrorKind> {
    // The first range is not counted.
    let more = reader.varint_up_to("range_count", MAX_RANGES_DECODED as u64 - 1)? as usize;
    let first_range = reader.varint("first_range")?;
    let below = |index| DecodeErrorKind::RangeBelowZero { index };
    let mut smallest = largest.checked_sub(first_range).ok_or(below(0))?;
    let mut ranges = Vec::with_capacity(1 + more.min(reader.rest.len() / 2));
    ranges.push(smallest..=largest);
    for index in 1..=more {
        let gap = reader.varint("gap")?;
        let range = reader.varint("range")?;
        let largest = smallest.checked_sub(gap + 2).ok_or(below(index))?;
        smallest = largest.checked_sub(range).ok_or(below(index))?;
        ranges.push(smallest..=largest);
    }
    Ok(ranges)
}

#[inline]
fn decode_arrivals(
    reader: &mut Reader<'_>,
    first: Arrival,
    ranges: &[RangeInclusive<u64>],
) -> Result<Vec<Arrival>, DecodeErrorKind> {
    // The largest packet's arrival is not counted.
    let more = reader.varint_up_to("arrival_count", MAX_ARRIVALS_DECODED as u64 - 1)? as usize;
    let mut arrivals = Vec::with_capacity(1 + more.min(reader.rest.len() / 2));
    arrivals.push(first);
    let Arrival {
        mut packet,
        mut at_us,
    } = first;
    let mut covering = ranges.iter();
    let mut range = covering.next();
    for index in 1..=more {
        let step = reader.varint("pn_step")?;
        let dt = varint::unzigzag(reader.varint("dt_us")?);
        packet = packet
            .checked_sub(step + 1)
            .ok_or(DecodeErrorKind::ArrivalBelowZero { index })?;
        while range.is_some_and(|range| packet < *range.start()) {
            range = covering.next();
        }
        if range.is_none_or(|range| packet > *range.end()) {
            return Err(DecodeErrorKind::ArrivalNotAcknowledged { index, packet });
        }
        // Below 2^62 and within ±2^61: the difference fits an i64.
        at_us = u64::try_from(at_us as i64 - dt)
            .ok()
            .filter(|&at_us| at_us <= varint::MAX)
            .ok_or(DecodeErrorKind::ArrivalTime { index })?;
        arrivals.push(Arrival { packet, at_us });
    }
    Ok(arrivals)
}
