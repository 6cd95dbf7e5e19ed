//! What is encoded decodes to the same, in the length that was promised.

use alloc::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;

use super::strategy;
use crate::wire::*;

proptest! {
    #[test]
    fn integers(value in strategy::any_varint(), rest in vec(any::<u8>(), 0..3)) {
        let mut bytes = Vec::new();
        varint::encode(value, &mut bytes);
        prop_assert_eq!(bytes.len(), varint::len(value));
        for len in 0..bytes.len() {
            prop_assert_eq!(varint::decode(&bytes[..len]), None);
        }
        bytes.extend(rest);
        prop_assert_eq!(varint::decode(&bytes), Some((value, varint::len(value))));
    }

    #[test]
    fn signs(value in any::<i64>()) {
        prop_assert_eq!(varint::unzigzag(varint::zigzag(value)), value);
    }

    #[test]
    fn datagrams(
        packet in strategy::any_varint(),
        sent in vec(strategy::frame(), 0..8),
    ) {
        let mut datagram = Vec::new();
        let header = Header { packet };
        header.encode(&mut datagram);
        prop_assert_eq!(datagram.len(), header.encoded_len());
        for frame in &sent {
            let before = datagram.len();
            frame.encode(&mut datagram);
            prop_assert_eq!(datagram.len() - before, frame.encoded_len());
        }
        let (got, frames) = decode(&datagram).unwrap();
        prop_assert_eq!(got, header);
        let received: Vec<_> = frames.collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(received, join_padding(sent));
    }

    #[test]
    fn a_frame_starts_with_its_type(frame in strategy::frame()) {
        let bytes = super::encoded(&frame);
        prop_assert_eq!(u64::from(bytes[0]), frame.frame_type());
        prop_assert!(frame_type::name(frame.frame_type()).is_some());
    }

    #[test]
    fn every_truncation_of_a_frame_fails(frame in strategy::frame()) {
        let bytes = super::encoded(&frame);
        if matches!(frame, Frame::Padding { .. }) {
            return Ok(());
        }
        for len in 1..bytes.len() {
            let error = super::frames(&bytes[..len]).unwrap_err();
            prop_assert_eq!(error.offset, 0);
            prop_assert_eq!(error.frame, Some(frame.frame_type()));
            prop_assert!(matches!(error.kind, DecodeErrorKind::Truncated { .. }), "{}", error);
        }
    }

    #[test]
    fn parameters(params in strategy::params()) {
        let mut bytes = Vec::new();
        params.encode(&mut bytes);
        prop_assert_eq!(bytes.len(), params.encoded_len());
        prop_assert_eq!(Params::decode(&bytes), Ok(params));
    }

    #[test]
    fn parameters_in_any_order_among_unknown_ones(
        params in strategy::params(),
        unknown in vec((0x40..varint::MAX, strategy::data(40)), 0..9),
        order in any::<prop::sample::Index>(),
    ) {
        let mut bytes = Vec::new();
        params.encode(&mut bytes);
        let mut entries = entries(&bytes);
        let mut ids: Vec<u64> = Vec::new();
        for (id, value) in unknown {
            if !ids.contains(&id) {
                ids.push(id);
                let mut entry = super::varints(&[id, value.len() as u64]);
                entry.extend(value);
                entries.push(entry);
            }
        }
        let middle = order.index(entries.len());
        entries.rotate_left(middle);
        prop_assert_eq!(Params::decode(&entries.concat()), Ok(params));
    }
}

/// Neighbouring runs of padding are one run on the wire.
fn join_padding(frames: Vec<Frame<'_>>) -> Vec<Frame<'_>> {
    let mut joined: Vec<Frame<'_>> = Vec::new();
    for frame in frames {
        match (joined.last_mut(), &frame) {
            (Some(Frame::Padding { len }), Frame::Padding { len: more }) => *len += more,
            _ => joined.push(frame),
        }
    }
    joined
}

/// Encoded parameters one by one; their ids and lengths take a byte each.
fn entries(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut entries = Vec::new();
    while let [_, len, ..] = bytes {
        let (entry, rest) = bytes.split_at(2 + usize::from(*len));
        entries.push(entry.to_vec());
        bytes = rest;
    }
    entries
}
