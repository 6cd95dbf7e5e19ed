//! Where the fields of a TCP header are (RFC 9293 section 3.1).

/// Where the sequence number is, four bytes.
pub(super) const SEQUENCE: usize = 4;
/// Bytes of a header without options.
pub(super) const HEADER: usize = 20;
/// The byte whose upper half is the header's length in words of four bytes.
pub(super) const OFFSET: usize = 12;
/// The byte with the control bits.
pub(super) const FLAGS: usize = 13;
/// Where the checksum is, two bytes.
pub(super) const CHECKSUM: usize = 16;

/// The sender has no more data.
pub(super) const FIN: u8 = 0x01;
/// The first segment of a direction.
pub(super) const SYN: u8 = 0x02;
/// The connection is over.
pub(super) const RST: u8 = 0x04;
/// The receiver should hand over what it has.
pub(super) const PSH: u8 = 0x08;
/// The acknowledgement number counts.
pub(super) const ACK: u8 = 0x10;
/// A congestion mark came back, and the sender has slowed down for one (RFC 3168 section 6.1).
pub(super) const ECE: u8 = 0x40;
pub(super) const CWR: u8 = 0x80;
