//! What every datagram starts with.
//!
//! ```text
//! version (1 byte, 0x01) | packet number (i)
//! ```

use alloc::vec::Vec;

use super::{DecodeError, DecodeErrorKind, VERSION, varint};

/// Start of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number of the datagram on its path and in its direction, from 0, at most
    /// [`varint::MAX`]; it grows by at least one from datagram to datagram and is written in full.
    pub packet: u64,
}

impl Header {
    /// Reads the header and returns what follows it.
    ///
    /// # Errors
    /// Another version, or a datagram that ends within the header.
    #[inline]
    pub fn decode(datagram: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let Some((&version, rest)) = datagram.split_first() else {
            return Err(DecodeErrorKind::Truncated { field: "version" }.at(0));
        };
        if version != VERSION {
            return Err(DecodeErrorKind::Version { got: version }.at(0));
        }
        let Some((packet, len)) = varint::decode(rest) else {
            return Err(DecodeErrorKind::Truncated {
                field: "packet number",
            }
            .at(0));
        };
        Ok((Self { packet }, &rest[len..]))
    }

    /// Appends the header.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        varint::encode(self.packet, out);
    }

    /// Bytes that [`encode`](Self::encode) appends: 2 to 9.
    #[must_use]
    #[inline]
    pub const fn encoded_len(&self) -> usize {
        1 + varint::len(self.packet)
    }
}
