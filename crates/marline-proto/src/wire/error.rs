//! Why bytes from the peer were refused, in words for a log and for the reason of a CLOSE.

use core::fmt;

use super::param_name::Named;
use super::{VERSION, frame_type};

/// Bytes that are no valid datagram or parameters. A session that meets one closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Where the offending frame, header or parameter starts, in bytes from the start of what was
    /// decoded.
    pub offset: usize,
    /// Type of the offending frame; `None` in the header and in parameters.
    pub frame: Option<u64>,
    /// What is wrong with it.
    pub kind: DecodeErrorKind,
}

/// What is wrong with bytes from the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The bytes end within this field.
    Truncated {
        /// The field's name in `docs/PROTOCOL.md`.
        field: &'static str,
    },
    /// The header names another version.
    Version {
        /// The version found.
        got: u8,
    },
    /// No frame has this type.
    UnknownFrame,
    /// The frame's type takes more bytes than it needs.
    LongFrameType,
    /// A field exceeds its limit.
    TooLarge {
        /// The field's name in `docs/PROTOCOL.md`.
        field: &'static str,
        /// The value found, as far as it fits.
        value: u64,
        /// The largest allowed.
        max: u64,
    },
    /// A field has a value without a meaning.
    UnknownValue {
        /// The field's name in `docs/PROTOCOL.md`.
        field: &'static str,
        /// The value found.
        value: u64,
    },
    /// A stream that is not in order.
    StreamOutOfOrder,
    /// Blocks or objects in order.
    UnitsInOrder,
    /// A range of an ACK reaches below packet 0.
    RangeBelowZero {
        /// Which range, from 0, newest first.
        index: usize,
    },
    /// An arrival of an ACK belongs to a packet below 0.
    ArrivalBelowZero {
        /// Which arrival, from 0 (the largest packet's), newest first.
        index: usize,
    },
    /// An arrival of an ACK belongs to a packet that the ACK does not acknowledge.
    ArrivalNotAcknowledged {
        /// Which arrival, from 0 (the largest packet's), newest first.
        index: usize,
        /// Its packet number.
        packet: u64,
    },
    /// An arrival of an ACK lies before the clock's zero or beyond 2^62 - 1 µs.
    ArrivalTime {
        /// Which arrival, from 0 (the largest packet's), newest first.
        index: usize,
    },
    /// A part of a message or a unit carries nothing.
    EmptyPart,
    /// A repair symbol combines nothing, or has no room for a length.
    EmptyRepair,
    /// A part of a message reaches beyond the message.
    PartBeyondMessage {
        /// Where the part ends, in bytes of the message.
        end: u64,
        /// Bytes of the message.
        total: u64,
    },
    /// A part of a unit reaches beyond the unit.
    PartBeyondUnit {
        /// Where the part ends, in bytes of the unit.
        end: u64,
        /// Bytes of the unit.
        size: u64,
    },
    /// The symbols of a unit are too short for their number.
    ShortSymbol {
        /// Their length (bytes).
        len: u64,
        /// The shortest allowed.
        least: u64,
    },
    /// The reason of a CLOSE is no UTF-8.
    ReasonNotUtf8,
    /// A parameter appears twice.
    DuplicateParameter {
        /// Its id.
        id: u64,
    },
    /// The value of a parameter is not exactly one integer.
    MalformedParameter {
        /// Its id.
        id: u64,
    },
}

impl DecodeErrorKind {
    pub(super) const fn at(self, offset: usize) -> DecodeError {
        DecodeError {
            offset,
            frame: None,
            kind: self,
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.frame.map(|frame| (frame, frame_type::name(frame))) {
            Some((_, Some(name))) => write!(f, "{name} at byte {}: ", self.offset)?,
            Some((frame, None)) => write!(f, "frame {frame:#04x} at byte {}: ", self.offset)?,
            None => write!(f, "byte {}: ", self.offset)?,
        }
        self.kind.fmt(f)
    }
}

impl fmt::Display for DecodeErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated { field } => write!(f, "ends within its {field}"),
            Self::Version { got } => {
                write!(
                    f,
                    "version {got} is not spoken here, only version {VERSION}"
                )
            }
            Self::UnknownFrame => f.write_str("no frame has this type"),
            Self::LongFrameType => f.write_str("the frame's type is not in its shortest form"),
            Self::TooLarge { field, value, max } => {
                write!(f, "{field} is {value}, at most {max} is allowed")
            }
            Self::UnknownValue { field, value } => write!(f, "{field} {value} has no meaning"),
            Self::StreamOutOfOrder => {
                f.write_str("a stream is delivered in order (order must be 0)")
            }
            Self::UnitsInOrder => {
                f.write_str("blocks and objects are delivered as they come (order must be 1)")
            }
            Self::RangeBelowZero { index } => write!(f, "range {index} reaches below packet 0"),
            Self::ArrivalBelowZero { index } => {
                write!(f, "arrival {index} is of a packet below 0")
            }
            Self::ArrivalNotAcknowledged { index, packet } => write!(
                f,
                "arrival {index} is of packet {packet}, which no range covers"
            ),
            Self::ArrivalTime { index } => write!(
                f,
                "arrival {index} lies before the clock's zero or beyond 2^62 - 1 µs"
            ),
            Self::EmptyPart => f.write_str("a part of a message or unit may not be empty"),
            Self::EmptyRepair => {
                f.write_str("a repair symbol combines at least one symbol and its length")
            }
            Self::PartBeyondMessage { end, total } => write!(
                f,
                "the part ends at byte {end} of a message of {total} bytes"
            ),
            Self::PartBeyondUnit { end, size } => {
                write!(f, "the part ends at byte {end} of a unit of {size} bytes")
            }
            Self::ShortSymbol { len, least } => write!(
                f,
                "symbols of {len} bytes where so many need at least {least}"
            ),
            Self::ReasonNotUtf8 => f.write_str("the reason is not UTF-8"),
            Self::DuplicateParameter { id } => {
                write!(f, "parameter {} appears twice", Named(id))
            }
            Self::MalformedParameter { id } => write!(
                f,
                "the value of parameter {} is not exactly one integer",
                Named(id)
            ),
        }
    }
}

impl core::error::Error for DecodeError {}
