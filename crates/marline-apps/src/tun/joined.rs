//! Packets of one TCP connection that travel as one message.
//!
//! Where a TCP connection has much to send, the kernel hands over one long packet instead of many,
//! with the size of the segments that it is to be cut into (GSO), and takes such packets from a
//! device in turn. A tunnel carries them as they are: one message has the headers once, is judged
//! and queued once, and is never cut and put together again, and nobody computes the checksums of
//! its segments but the kernel that delivers them.
//!
//! ```text
//! mark (1) = 0x10 | bytes of payload in a segment (2) | IP packet
//! ```
//!
//! No IP packet begins with the mark: its upper half is the version. The payload's last segment may
//! be shorter. What the checksums of the packet say means nothing; who takes the message apart
//! ([`Message::split`]) computes those of each packet. Ends that know of such messages say so when
//! they agree on a lease ([`hello`](super::hello)).

use super::checksum;
use super::packet::{Fragment, Packet, PacketError, TCP, UDP, u16_at};
use super::tcp::{ACK, CHECKSUM, CWR, ECE, FIN, FLAGS, HEADER, OFFSET, PSH, SEQUENCE};
use bytes::{BufMut, Bytes, BytesMut};
use std::net::IpAddr;

/// The first byte of joined packets.
const MARK: u8 = 0x10;
/// Bytes before the packet.
pub(super) const HEAD: usize = 3;
/// Most bytes of a message of joined packets: half of what may wait in a flow
/// ([`FLOW_QUEUE`](super::FLOW_QUEUE)), so that one can be cut while another leaves. A whole one
/// takes 6 ms at 20 Mb/s; the kernel joins no more than a connection sends in 1 ms
/// (`tcp_tso_autosize`), but where the packets come from a network behind this host.
const MOST: usize = 16 << 10;
/// Fewest bytes of payload in a segment of joined packets, so that a message becomes 256 packets at
/// most. TCP sends segments of 536 bytes where it knows nothing (RFC 9293 section 3.7.1).
const LEAST_SEGMENT: u16 = 256;

/// Where the fields of IPv4 and IPv6 headers are.
const V4_LENGTH: usize = 2;
const V4_ID: usize = 4;
const V4_CHECKSUM: usize = 10;
const V6_LENGTH: usize = 4;
const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;
/// Bytes of a UDP header, and where its length and checksum are.
const UDP_HEADER: usize = 8;
const UDP_LENGTH: usize = 4;
const UDP_CHECKSUM: usize = 6;

/// A message of a tunnel whose headers have been checked: one packet, or several that are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Message {
    /// Of the packet, or of all of them: headers are those of the first.
    pub(super) packet: Packet,
    segment: Option<Segment>,
}

/// How joined packets are to be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    /// Bytes of IP and transport header.
    headers: usize,
    /// Bytes of payload.
    payload: u16,
}

/// Why bytes are no message of a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// They are no packet.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// They are no packets that can be joined.
    #[error("packets that cannot be joined")]
    Joined,
}

/// Do the bytes say that they are joined packets?
pub(super) fn is_marked(bytes: &[u8]) -> bool {
    bytes.first() == Some(&MARK)
}

impl Message {
    /// Reads the headers of `bytes`. Any bytes are a message or an error.
    ///
    /// # Errors
    /// See [`MessageError`].
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, MessageError> {
        let [MARK, high, low, inner @ ..] = bytes else {
            return Ok(Message {
                packet: Packet::parse(bytes)?,
                segment: None,
            });
        };
        let payload = u16::from_be_bytes([*high, *low]);
        let packet = Packet::parse(inner)?;
        let headers = headers(&packet, inner).ok_or(MessageError::Joined)?;
        let segment = Segment { headers, payload };
        match is_joinable(&packet, inner, segment) {
            true => Ok(Message {
                packet,
                segment: Some(segment),
            }),
            false => Err(MessageError::Joined),
        }
    }

    /// Is it several packets?
    pub(super) fn is_joined(&self) -> bool {
        self.segment.is_some()
    }

    /// The IP packet in `bytes`, which are those that were read.
    pub(super) fn packet<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        match self.segment {
            Some(_) => bytes.get(HEAD..).unwrap_or_default(),
            None => bytes,
        }
    }

    /// Length of the largest packet that it becomes (bytes).
    pub(super) fn largest(&self, bytes: &[u8]) -> usize {
        match self.segment {
            Some(segment) => segment.headers + usize::from(segment.payload),
            None => bytes.len(),
        }
    }

    /// IP and transport header, and payload of a segment, if it is several packets.
    pub(super) fn joined(&self) -> Option<(usize, u16)> {
        self.segment
            .map(|segment| (segment.headers, segment.payload))
    }

    /// Adds to `messages` what is sent of `bytes`, in order: `joined` says whether the other end
    /// takes joined packets.
    pub(super) fn send(&self, bytes: Bytes, joined: bool, messages: &mut Vec<Bytes>) {
        match self.segment {
            Some(segment) if joined && bytes.len() > MOST => {
                let fits = (MOST - HEAD - segment.headers) / usize::from(segment.payload);
                let each = fits.max(1);
                cut(&self.packet, self.packet(&bytes), segment, each, messages);
            }
            Some(_) if !joined => self.split(&bytes, messages),
            _ => messages.push(bytes),
        }
    }

    /// Adds the packets that joined ones are made of, each with its checksums.
    pub(super) fn split(&self, bytes: &[u8], packets: &mut Vec<Bytes>) {
        if let Some(segment) = self.segment {
            cut(&self.packet, self.packet(bytes), segment, 1, packets);
        }
    }
}

/// The packets that a message of a tunnel becomes, for tests and fuzzers: any bytes are such or an
/// error.
///
/// # Errors
/// See [`MessageError`].
pub fn packets(message: &[u8]) -> Result<Vec<Bytes>, MessageError> {
    let read = Message::parse(message)?;
    let mut packets = Vec::new();
    match read.is_joined() {
        true => read.split(message, &mut packets),
        false => packets.push(Bytes::copy_from_slice(message)),
    }
    Ok(packets)
}

/// Is a long packet several of one TCP connection that say nothing else than what comes?
fn is_joinable(packet: &Packet, bytes: &[u8], segment: Segment) -> bool {
    let flags = bytes.get(packet.transport + FLAGS);
    packet.protocol == TCP
        && flags.is_some_and(|flags| flags & !(FIN | PSH | ECE) == ACK)
        && segment.payload >= LEAST_SEGMENT
        && bytes.len() > segment.headers + usize::from(segment.payload)
}

/// IP and transport header of a packet that can be cut (bytes).
fn headers(packet: &Packet, bytes: &[u8]) -> Option<usize> {
    // Extension headers of IPv6 are for whoever sends them to cut.
    let is_plain = packet.source.is_ipv4() || packet.transport == V6_HEADER;
    if packet.fragment != Fragment::Whole || !is_plain {
        return None;
    }
    let segment = bytes.get(packet.transport..)?;
    let header = match packet.protocol {
        TCP => usize::from(segment.get(OFFSET)? >> 4) * 4,
        UDP => UDP_HEADER,
        _ => return None,
    };
    let least = if packet.protocol == TCP { HEADER } else { 0 };
    (header >= least && segment.len() > header).then_some(packet.transport + header)
}

/// Adds messages that have up to `each` segments of a long packet: joined packets, or packets with
/// all checksums where they have one.
fn cut(packet: &Packet, bytes: &[u8], segment: Segment, each: usize, messages: &mut Vec<Bytes>) {
    let Some((head, payload)) = bytes.split_at_checked(segment.headers) else {
        return;
    };
    let size = usize::from(segment.payload);
    let step = size * each;
    let count = payload.len().div_ceil(step);
    // One buffer for all: they are of one flow, and go together.
    let mut all = BytesMut::with_capacity(payload.len() + count * (HEAD + head.len()));
    for (number, part) in payload.chunks(step).enumerate() {
        let place = Place {
            number,
            before: number * each,
            offset: number * step,
            is_last: number + 1 == count,
        };
        put(packet, segment, head, part, &place, &mut all);
        messages.push(all.split().freeze());
    }
}

/// What is left of joined packets without the first one; `None` if `bytes` are none.
pub(super) fn without_first(bytes: &[u8]) -> Option<Bytes> {
    let message = Message::parse(bytes).ok()?;
    let segment = message.segment?;
    let packet = message.packet(bytes);
    let (head, payload) = packet.split_at_checked(segment.headers)?;
    let place = Place {
        number: 1,
        before: 1,
        offset: segment.payload.into(),
        is_last: true,
    };
    let rest = payload.get(place.offset..)?;
    let mut left = BytesMut::with_capacity(bytes.len());
    put(&message.packet, segment, head, rest, &place, &mut left);
    Some(left.freeze())
}

/// Adds a message with a part of a payload to `all`, which holds nothing else.
fn put(
    packet: &Packet,
    segment: Segment,
    head: &[u8],
    part: &[u8],
    place: &Place,
    all: &mut BytesMut,
) {
    let is_joined = part.len() > usize::from(segment.payload);
    if is_joined {
        all.put_u8(MARK);
        all.put_u16(segment.payload);
    }
    let begin = all.len();
    all.put_slice(head);
    all.put_slice(part);
    fix(packet, &mut all[begin..], place);
    if !is_joined {
        complete(packet, &mut all[begin..]);
    }
}

/// Where a part stands among those of a long packet.
struct Place {
    /// How many parts, segments and bytes of payload are before it.
    number: usize,
    before: usize,
    offset: usize,
    is_last: bool,
}

/// Makes the headers of `bytes`, which are those of the whole, those of this part.
fn fix(packet: &Packet, bytes: &mut [u8], place: &Place) {
    // At most 65535 bytes, for the whole had no more.
    match packet.source {
        IpAddr::V4(_) => write_length(bytes, V4_LENGTH, bytes.len()),
        IpAddr::V6(_) => write_length(bytes, V6_LENGTH, bytes.len() - V6_HEADER),
    }
    if packet.source.is_ipv4()
        && let Some(id) = u16_at(bytes, V4_ID)
    {
        let id = id.wrapping_add(place.before as u16);
        bytes[V4_ID..V4_ID + 2].copy_from_slice(&id.to_be_bytes());
    }
    let transport = &mut bytes[packet.transport..];
    if packet.protocol == UDP {
        let length = transport.len() as u16;
        transport[UDP_LENGTH..UDP_LENGTH + 2].copy_from_slice(&length.to_be_bytes());
        return;
    }
    if let Some(sequence) = transport[SEQUENCE..].first_chunk_mut::<4>() {
        let number = u32::from_be_bytes(*sequence).wrapping_add(place.offset as u32);
        *sequence = number.to_be_bytes();
    }
    if !place.is_last {
        transport[FLAGS] &= !(FIN | PSH);
    }
    if place.number > 0 {
        transport[FLAGS] &= !CWR;
    }
}

fn write_length(bytes: &mut [u8], at: usize, length: usize) {
    bytes[at..at + 2].copy_from_slice(&(length as u16).to_be_bytes());
}

/// Computes the checksums of a packet.
fn complete(packet: &Packet, bytes: &mut [u8]) {
    complete_header(packet, bytes);
    let pseudo = pseudo(packet, bytes.len() - packet.transport);
    let Some(transport) = bytes.get_mut(packet.transport..) else {
        return;
    };
    let at = match packet.protocol {
        UDP => UDP_CHECKSUM,
        _ => CHECKSUM,
    };
    transport[at..at + 2].fill(0);
    let sum = match checksum::of(&[&pseudo, transport]) {
        // No checksum at all (RFC 768).
        0 if packet.protocol == UDP => u16::MAX,
        sum => sum,
    };
    transport[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

/// Computes the checksum of an IPv4 header.
fn complete_header(packet: &Packet, bytes: &mut [u8]) {
    if packet.source.is_ipv4()
        && let Some(header) = bytes.get_mut(..packet.transport)
    {
        header[V4_CHECKSUM..V4_CHECKSUM + 2].fill(0);
        let sum = checksum::of(&[header]);
        header[V4_CHECKSUM..V4_CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

/// What a transport's checksum covers besides header and payload, in another order of bytes than
/// the RFCs have it, which does not matter to the sum.
fn pseudo(packet: &Packet, length: usize) -> [u8; 40] {
    let mut pseudo = [0; 40];
    match (packet.source, packet.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            pseudo[..4].copy_from_slice(&source.octets());
            pseudo[4..8].copy_from_slice(&destination.octets());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            pseudo[..16].copy_from_slice(&source.octets());
            pseudo[16..32].copy_from_slice(&destination.octets());
        }
        _ => {}
    }
    pseudo[32..36].copy_from_slice(&(length as u32).to_be_bytes());
    pseudo[39] = packet.protocol;
    pseudo
}

/// Headers of joined packets as a kernel wants them that computes their segments' checksums: `head`
/// are IP and TCP header, and `length` bytes the packet has.
pub(super) fn prepare(packet: &Packet, head: &mut [u8], length: usize) {
    complete_header(packet, head);
    let sum = !checksum::of(&[&pseudo(packet, length - packet.transport)]);
    if let Some(field) = head.get_mut(packet.transport + CHECKSUM..packet.transport + CHECKSUM + 2)
    {
        field.copy_from_slice(&sum.to_be_bytes());
    }
}

/// Adds to `messages` a long packet of the kernel's that is to be cut into segments of this
/// payload: joined packets, or packets with all checksums where those cannot be joined. Nothing if
/// it makes no sense.
pub(super) fn of_kernel(bytes: &mut [u8], payload: u16, messages: &mut Vec<Bytes>) {
    // What the header says of the length of a long packet need not be true.
    match bytes.first().map(|first| first >> 4) {
        Some(4) if bytes.len() >= V4_HEADER => write_length(bytes, V4_LENGTH, bytes.len()),
        Some(6) if bytes.len() >= V6_HEADER => {
            write_length(bytes, V6_LENGTH, bytes.len() - V6_HEADER);
        }
        _ => {}
    }
    let Ok(packet) = Packet::parse(bytes) else {
        return;
    };
    let Some(headers) = headers(&packet, bytes).filter(|_| payload > 0) else {
        return;
    };
    let segment = Segment { headers, payload };
    if is_joinable(&packet, bytes, segment) {
        let mut message = Vec::with_capacity(HEAD + bytes.len());
        message.push(MARK);
        message.extend(payload.to_be_bytes());
        message.extend_from_slice(bytes);
        messages.push(message.into());
    } else {
        cut(&packet, bytes, segment, 1, messages);
    }
}

#[cfg(test)]
pub(super) mod tests;
