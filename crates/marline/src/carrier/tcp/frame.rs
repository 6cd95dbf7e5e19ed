//! Datagrams on a byte stream, numbers big-endian.
//!
//! ```text
//! datagram = length (2, at least 1) | that many bytes
//! close    = 0 (2) | code (4) | length (2, at most 256) | reason in UTF-8
//! ```

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::carrier::{CarrierEnd, MAX_CLOSE_REASON, MAX_MTU, cut, printable};

/// Bytes of a datagram's frame beside it.
pub(super) const OVERHEAD: usize = 2;
/// Longest datagram that is taken: no carrier of this version sends longer ones.
const MAX_DATAGRAM: usize = MAX_MTU as usize;
/// A close before its reason.
const CLOSE_HEAD: usize = 2 + 4 + 2;

/// What the peer framed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Datagram(Bytes),
    /// The last one.
    Close {
        code: u32,
        reason: String,
    },
}

/// Appends a datagram, which has 1 to [`MAX_DATAGRAM`] bytes.
pub(super) fn put_datagram(out: &mut BytesMut, datagram: &[u8]) {
    debug_assert!((1..=MAX_DATAGRAM).contains(&datagram.len()));
    out.put_u16(datagram.len() as u16);
    out.put_slice(datagram);
}

/// Appends a close.
pub(super) fn put_close(out: &mut BytesMut, code: u32, reason: &str) {
    let reason = cut(reason, MAX_CLOSE_REASON);
    out.put_u16(0);
    out.put_u32(code);
    out.put_u16(reason.len() as u16);
    out.put_slice(reason.as_bytes());
}

/// Takes the first frame off what was received; `None` until all of it is there.
///
/// # Errors
/// What no end of this version sends.
pub(super) fn take(received: &mut BytesMut) -> Result<Option<Frame>, CarrierEnd> {
    let Some(length) = received.first_chunk().map(|head| u16::from_be_bytes(*head)) else {
        return Ok(None);
    };
    let length = usize::from(length);
    if length > MAX_DATAGRAM {
        return Err(CarrierEnd::Protocol(format!(
            "a datagram of {length} bytes, {MAX_DATAGRAM} are the most"
        )));
    }
    if length > 0 {
        if received.len() < OVERHEAD + length {
            return Ok(None);
        }
        // A copy: a slice would keep all that was read with it from being freed.
        let datagram = Bytes::copy_from_slice(&received[OVERHEAD..OVERHEAD + length]);
        received.advance(OVERHEAD + length);
        return Ok(Some(Frame::Datagram(datagram)));
    }
    let Some(head) = received.first_chunk::<CLOSE_HEAD>() else {
        return Ok(None);
    };
    let code = u32::from_be_bytes([head[2], head[3], head[4], head[5]]);
    let length = usize::from(u16::from_be_bytes([head[6], head[7]]));
    if length > MAX_CLOSE_REASON {
        return Err(CarrierEnd::Protocol(format!(
            "a reason of {length} bytes, {MAX_CLOSE_REASON} are the most"
        )));
    }
    if received.len() < CLOSE_HEAD + length {
        return Ok(None);
    }
    let reason = printable(&received[CLOSE_HEAD..CLOSE_HEAD + length], MAX_CLOSE_REASON);
    received.advance(CLOSE_HEAD + length);
    Ok(Some(Frame::Close { code, reason }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn frames_are_as_the_document_says() {
        let mut out = BytesMut::new();
        put_datagram(&mut out, b"ping");
        put_close(&mut out, 1, "bye");
        assert_eq!(out[..], *b"\x00\x04ping\x00\x00\x00\x00\x00\x01\x00\x03bye");
    }

    #[test]
    fn what_nobody_sends_is_an_error_as_soon_as_it_shows() {
        for (bytes, words) in [
            (&b"\xff\xff"[..], "65535 bytes, 8972 are the most"),
            (b"\x23\x0d", "8973 bytes"),
            (b"\0\0\0\0\0\x01\x01\x01", "a reason of 257 bytes"),
        ] {
            let error = take(&mut BytesMut::from(bytes)).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
    }

    proptest! {
        #[test]
        fn frames_come_out_whole_however_the_stream_is_cut(
            datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 0..20),
            code in any::<u32>(),
            cuts in prop::collection::vec(1usize..400, 1..20),
        ) {
            let mut stream = BytesMut::new();
            for datagram in &datagrams {
                put_datagram(&mut stream, datagram);
            }
            put_close(&mut stream, code, "over");
            let (mut received, mut frames) = (BytesMut::new(), Vec::new());
            let mut cuts = cuts.iter().cycle();
            while !stream.is_empty() {
                let cut = cuts.next().map_or(1, |cut| (*cut).min(stream.len()));
                received.extend_from_slice(&stream.split_to(cut));
                while let Some(frame) = take(&mut received).unwrap() {
                    frames.push(frame);
                }
            }
            let close = Frame::Close { code, reason: "over".into() };
            let sent = datagrams.into_iter().map(|d| Frame::Datagram(d.into()));
            prop_assert_eq!(frames, sent.chain([close]).collect::<Vec<_>>());
            prop_assert!(received.is_empty());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let mut received = BytesMut::from(&bytes[..]);
            while let Ok(Some(_)) = take(&mut received) {}
        }
    }
}
