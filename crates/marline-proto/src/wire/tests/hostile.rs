//! Any bytes decode or fail cleanly, and what decodes has one canonical form.

use alloc::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;

use super::strategy;
use crate::wire::*;

/// Decodes a datagram; if it is valid, its canonical form must mean the same, be no longer, and
/// be a fixed point.
fn check(datagram: &[u8]) -> Result<(), TestCaseError> {
    let Ok((header, frames)) = decode(datagram) else {
        return Ok(());
    };
    let mut items = frames.clone();
    if let Some(error) = items.by_ref().find_map(Result::err) {
        prop_assert!(error.offset < datagram.len());
        prop_assert!(items.next().is_none(), "nothing follows an error");
        return Ok(());
    }
    let frames: Vec<_> = frames.map(Result::unwrap).collect();
    for frame in &frames {
        if let Frame::Ack(ack) = frame {
            prop_assert!(ack.ranges.capacity() <= datagram.len());
            prop_assert!(ack.arrivals.capacity() <= datagram.len());
        }
    }
    let canonical = encode(header, &frames);
    prop_assert!(canonical.len() <= datagram.len());
    let (header_again, frames_again) = decode(&canonical).unwrap();
    let frames_again: Vec<_> = frames_again.map(Result::unwrap).collect();
    prop_assert_eq!(header_again, header);
    prop_assert_eq!(&frames_again, &frames);
    prop_assert_eq!(encode(header_again, &frames_again), canonical);
    Ok(())
}

fn encode(header: Header, frames: &[Frame<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    header.encode(&mut out);
    for frame in frames {
        frame.encode(&mut out);
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn random_bytes(mut bytes in vec(any::<u8>(), 0..200), version in any::<bool>()) {
        if version && !bytes.is_empty() {
            bytes[0] = VERSION;
        }
        check(&bytes)?;
    }

    /// Small bytes make short integers, and so reach deeper than random ones.
    #[test]
    fn small_bytes(bytes in vec(0..40_u8, 0..60)) {
        check(&[&[VERSION, 0], &bytes[..]].concat())?;
    }

    #[test]
    fn valid_frames_with_faults(
        frames in vec(strategy::frame(), 1..4),
        faults in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = encode(Header { packet: 9 }, &frames);
        for (at, value) in faults {
            // Most bytes are data; faults near the start meet the frames' fields.
            let at = at.index(bytes.len().min(64));
            bytes[at] = value;
        }
        check(&bytes)?;
        check(&bytes[..cut.index(bytes.len())])?;
    }

    #[test]
    fn random_parameters(bytes in vec(prop_oneof![0..9_u8, any::<u8>()], 0..80)) {
        if let Ok(params) = Params::decode(&bytes) {
            let mut canonical = Vec::new();
            params.encode(&mut canonical);
            prop_assert_eq!(Params::decode(&canonical), Ok(params));
        }
    }
}
