//! What is downloaded: bytes that follow from a seed, and their SHA-256.

use bytes::{Bytes, BytesMut};
use data_encoding::BASE64;
use marline_base::Rng;
use sha2::{Digest, Sha256};

/// A SHA-256.
pub(super) type Hash = [u8; 32];

/// The body of every download of one demo.
#[derive(Debug, Clone)]
pub struct Body {
    bytes: Bytes,
    hash: Hash,
}

impl Body {
    /// `length` pseudo-random bytes, so that nothing on the way can shorten them.
    pub fn new(seed: u64, length: usize) -> Self {
        let mut rng = Rng::new(seed).stream("body");
        let mut bytes = BytesMut::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend_from_slice(&rng.next_u64().to_le_bytes());
        }
        bytes.truncate(length);
        let bytes = bytes.freeze();
        let hash = Sha256::digest(&bytes).into();
        Body { bytes, hash }
    }

    pub(super) fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    /// The value of a `Repr-Digest` field for it (RFC 9530 section 3).
    pub(super) fn digest_field(&self) -> String {
        format!("sha-256=:{}:", BASE64.encode(&self.hash))
    }

    /// SHA-256 of the first `length` bytes, or `None` if there are fewer.
    pub fn prefix_hash(&self, length: u64) -> Option<Hash> {
        let prefix = self.bytes.get(..usize::try_from(length).ok()?)?;
        Some(Sha256::digest(prefix).into())
    }
}

/// Reads a `Repr-Digest` field; `None` if it holds no SHA-256.
pub(super) fn read_digest_field(field: &str) -> Option<Hash> {
    let members = field.split(',').map(str::trim);
    let value = members
        .filter_map(|member| member.strip_prefix("sha-256=:"))
        .find_map(|value| value.strip_suffix(':'))?;
    BASE64.decode(value.as_bytes()).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_follows_from_its_seed() {
        let body = Body::new(7, 1001);
        assert_eq!(body.bytes().len(), 1001);
        assert_eq!(body.bytes(), Body::new(7, 1001).bytes());
        assert_ne!(body.bytes(), Body::new(8, 1001).bytes());
        // A shorter body is a prefix of a longer one.
        assert_eq!(body.bytes()[..500], Body::new(7, 500).bytes());
    }

    #[test]
    fn a_digest_field_reads_back() {
        let body = Body::new(1, 100);
        let field = body.digest_field();
        assert_eq!(read_digest_field(&field), body.prefix_hash(100));
        assert_eq!(
            read_digest_field(&format!("md5=:AAAA:, {field}")),
            body.prefix_hash(100)
        );
        for wrong in ["", "sha-256=:AAAA:", "sha-256=abc", "sha-256=:*:"] {
            assert_eq!(read_digest_field(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_prefix_has_its_own_hash() {
        let body = Body::new(1, 100);
        assert_eq!(body.prefix_hash(40), Body::new(1, 40).prefix_hash(40));
        assert_ne!(body.prefix_hash(40), body.prefix_hash(41));
        assert_eq!(body.prefix_hash(101), None);
    }
}
