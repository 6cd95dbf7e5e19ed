//! TLS records (RFC 8446 section 5.1, RFC 5246 section 6.2.1): length from the header, which is
//! never encrypted.

use super::{Cut, Foreign};

/// Content types: change_cipher_spec, alert, handshake, application_data, heartbeat.
pub(super) const TYPES: std::ops::RangeInclusive<u8> = 20..=24;
const HEADER: usize = 5;
/// Longest record of TLS 1.2, which may be a little longer than one of 1.3.
const LONGEST: usize = (1 << 14) + 2048;

/// Follows records.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// Bytes of the header that have come, and its length so far.
    header: usize,
    length: usize,
    /// Bytes of the body that are to come.
    left: usize,
}

impl Records {
    pub(super) fn cut(&mut self, data: &[u8]) -> Result<Cut, Foreign> {
        let mut take = 0;
        while self.header < HEADER {
            let Some(byte) = data.get(take) else {
                return Ok(Cut { take, ends: false });
            };
            let fits = match self.header {
                0 => TYPES.contains(byte),
                1 => *byte == 3,
                2 => *byte <= 4,
                _ => {
                    self.length = self.length << 8 | usize::from(*byte);
                    self.header < HEADER - 1 || self.length <= LONGEST
                }
            };
            if !fits {
                return Err(Foreign);
            }
            (self.header, take) = (self.header + 1, take + 1);
            if self.header == HEADER {
                self.left = self.length;
            }
        }
        let body = self.left.min(data.len() - take);
        (self.left, take) = (self.left - body, take + body);
        let ends = self.left == 0;
        if ends {
            *self = Self::default();
        }
        Ok(Cut { take, ends })
    }
}
