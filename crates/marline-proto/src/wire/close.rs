//! CLOSE: the end of the session.

use alloc::vec::Vec;

use super::reader::Reader;
use super::{DecodeErrorKind, frame_type, varint};

/// Most bytes of a CLOSE's reason.
pub const MAX_REASON: usize = 256;

/// Codes of CLOSE that the protocol itself gives a meaning. Codes from
/// [`APPLICATION`](close_code::APPLICATION) on belong to the application.
pub mod close_code {
    /// Nothing is wrong.
    pub const NONE: u64 = 0x00;
    /// The sender of the frame met a fault of its own.
    pub const INTERNAL: u64 = 0x01;
    /// A datagram could not be decoded.
    pub const MALFORMED: u64 = 0x02;
    /// A frame came in a state or with a meaning that forbids it.
    pub const PROTOCOL: u64 = 0x03;
    /// The peer sent more bytes than it had credit for.
    pub const FLOW_CONTROL: u64 = 0x04;
    /// The peer opened more flows than it was allowed to.
    pub const FLOW_LIMIT: u64 = 0x05;
    /// The length of a flow changed, or data lies beyond its end.
    pub const FINAL_SIZE: u64 = 0x06;
    /// The peer's parameters are malformed or not acceptable.
    pub const PARAMETERS: u64 = 0x07;
    /// A flow was given up: it was not read, and its memory was needed.
    pub const YIELDED: u64 = 0x08;
    /// First of the application's codes.
    pub const APPLICATION: u64 = 0x100;
}

/// CLOSE: the session ends at once, on all paths.
///
/// ```text
/// 0x1f | code (i) | reason length (i) | reason (UTF-8, ..)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close<'a> {
    /// Why, in the numbers of [`close_code`].
    pub code: u64,
    /// Why, in words. Encoding cuts it, between two characters, to [`MAX_REASON`] bytes.
    pub reason: &'a str,
}

impl<'a> Close<'a> {
    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeErrorKind> {
        let code = reader.varint("code")?;
        let len = reader.varint_up_to("reason length", MAX_REASON as u64)?;
        let reason = reader.bytes(len, "reason")?;
        let reason = str::from_utf8(reason).map_err(|_| DecodeErrorKind::ReasonNotUtf8)?;
        Ok(Self { code, reason })
    }

    fn cut_reason(&self) -> &'a str {
        let mut end = self.reason.len().min(MAX_REASON);
        while !self.reason.is_char_boundary(end) {
            end -= 1;
        }
        &self.reason[..end]
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let reason = self.cut_reason();
        varint::encode_frame(frame_type::CLOSE, [self.code, reason.len() as u64], out);
        out.extend_from_slice(reason.as_bytes());
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        let len = self.cut_reason().len();
        varint::frame_len([self.code, len as u64]) + len
    }
}
