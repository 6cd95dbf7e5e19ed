//! ```text
//! sequence number (8), little endian | time of sending (8), ns
//!   | filler that follows from the sequence number
//! ```

use super::MESSAGE_BYTES;
use marline_base::Rng;

const HEAD: usize = 16;

/// Writes a message without its time of sending.
pub(super) fn write(sequence: u64, out: &mut [u8; MESSAGE_BYTES]) {
    out[..8].copy_from_slice(&sequence.to_le_bytes());
    let mut rng = Rng::new(sequence);
    for chunk in out[HEAD..].chunks_mut(8) {
        let bytes = rng.next_u64().to_le_bytes();
        chunk.copy_from_slice(&bytes[..chunk.len()]);
    }
}

/// Writes the time of sending, the last thing before a message leaves.
pub(super) fn stamp(sent: u64, out: &mut [u8; MESSAGE_BYTES]) {
    out[8..HEAD].copy_from_slice(&sent.to_le_bytes());
}

/// Sequence number and time of sending; `None` if any byte of the rest is not what was sent.
pub(super) fn read(message: &[u8]) -> Option<(u64, u64)> {
    let message: &[u8; MESSAGE_BYTES] = message.try_into().ok()?;
    let word = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&message[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    let sequence = word(0);
    let mut expected = [0; MESSAGE_BYTES];
    write(sequence, &mut expected);
    (message[HEAD..] == expected[HEAD..]).then(|| (sequence, word(8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_reads_back_and_damage_shows() {
        let mut message = [0; MESSAGE_BYTES];
        write(3, &mut message);
        stamp(77, &mut message);
        assert_eq!(read(&message), Some((3, 77)));
        assert_eq!(read(&message[1..]), None);
        for at in [0, HEAD, MESSAGE_BYTES - 1] {
            let mut damaged = message;
            damaged[at] ^= 1;
            assert_eq!(read(&damaged), None, "byte {at}");
        }
    }
}
