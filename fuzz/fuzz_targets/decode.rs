//! Any bytes as a datagram and as parameters: they decode or fail cleanly, and what decodes has a
//! canonical form that means the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use marline_proto::wire::{Params, decode};

/// The datagram in its shortest form, if it is valid.
fn canonical(datagram: &[u8]) -> Option<Vec<u8>> {
    let (header, frames) = decode(datagram).ok()?;
    let mut out = Vec::new();
    header.encode(&mut out);
    for frame in frames {
        let frame = frame.inspect_err(|error| drop(error.to_string())).ok()?;
        let len = out.len() + frame.encoded_len();
        frame.encode(&mut out);
        assert_eq!(out.len(), len);
    }
    assert!(out.len() <= datagram.len());
    let frames = |bytes| decode(bytes).map(|(_, frames)| frames.collect::<Result<Vec<_>, _>>());
    assert_eq!(frames(&out), frames(datagram));
    Some(out)
}

fuzz_target!(|bytes: &[u8]| {
    if let Some(once) = canonical(bytes) {
        assert_eq!(canonical(&once), Some(once.clone()));
    }
    if let Ok(params) = Params::decode(bytes) {
        let mut out = Vec::new();
        params.encode(&mut out);
        assert_eq!(Params::decode(&out), Ok(params));
    }
});
