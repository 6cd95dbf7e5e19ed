//! A cursor over received bytes that names the field at which they end too early.

use super::{DecodeErrorKind, varint};

#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> Reader<'a> {
    #[inline]
    pub(super) fn varint(&mut self, field: &'static str) -> Result<u64, DecodeErrorKind> {
        let (value, len) = varint::decode(self.rest).ok_or(DecodeErrorKind::Truncated { field })?;
        // `decode` took `len` bytes out of these very bytes.
        self.rest = &self.rest[len..];
        Ok(value)
    }

    /// An integer that may be at most `max`.
    #[inline]
    pub(super) fn varint_up_to(
        &mut self,
        field: &'static str,
        max: u64,
    ) -> Result<u64, DecodeErrorKind> {
        let value = self.varint(field)?;
        if value > max {
            return Err(DecodeErrorKind::TooLarge { field, value, max });
        }
        Ok(value)
    }

    #[inline]
    pub(super) fn bytes(
        &mut self,
        len: u64,
        field: &'static str,
    ) -> Result<&'a [u8], DecodeErrorKind> {
        let split = usize::try_from(len)
            .ok()
            .and_then(|len| self.rest.split_at_checked(len));
        let (taken, rest) = split.ok_or(DecodeErrorKind::Truncated { field })?;
        self.rest = rest;
        Ok(taken)
    }
}
