use ring::digest::{Context, SHA256};
use std::fmt::Write;

/// `length` bytes of the sequence called `seed`, from `offset` on, which must be a multiple of 8.
pub(crate) fn pattern(seed: u64, offset: u64, length: usize) -> Vec<u8> {
    assert_eq!(offset % 8, 0);
    let mut bytes = Vec::with_capacity(length + 8);
    let mut word = offset / 8;
    while bytes.len() < length {
        // SplitMix64, whose n-th value needs none before it.
        let mut z = seed.wrapping_add(word.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend_from_slice(&(z ^ (z >> 31)).to_le_bytes());
        word += 1;
    }
    bytes.truncate(length);
    bytes
}

/// SHA-256 as it goes.
pub(crate) struct Digest(Context);

impl Digest {
    pub(crate) fn new() -> Digest {
        Digest(Context::new(&SHA256))
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// In hexadecimal.
    pub(crate) fn finish(self) -> String {
        let mut text = String::new();
        for byte in self.0.finish().as_ref() {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}
