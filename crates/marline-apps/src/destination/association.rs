//! All destinations of a program's datagrams, over one flow:
//!
//! ```text
//! version (1) = 5
//! ```
//! Each message names its other end (`proxy/association/message.rs`).

use bytes::Bytes;

pub(super) const VERSION: u8 = 5;

/// A flow for datagrams to and from anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Association;

impl Association {
    /// The bytes that open the flow.
    pub fn encode(self) -> Bytes {
        Bytes::from_static(&[VERSION])
    }

    /// Reads what [`encode`](Self::encode) wrote; `None` for everything else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        (bytes == [VERSION]).then_some(Association)
    }
}
