//! What a hostile peer may try.

use super::*;
use crate::wire::UnitCancel;

fn data(unit: u64, size: u64, offset: u64, data: &[u8]) -> UnitData<'_> {
    UnitData {
        flow: FLOW,
        unit,
        size,
        offset,
        data,
    }
}

fn repair(unit: u64, size: u64, index: u16, data: &[u8]) -> UnitRepair<'_> {
    UnitRepair {
        flow: FLOW,
        unit,
        size,
        index,
        data,
    }
}

fn recv(kind: FlowKind) -> UnitsRecv {
    UnitsRecv::new(kind, 100_000, 64, 100)
}

#[test]
fn what_contradicts_itself_is_refused() {
    let mut recv = recv(FlowKind::Blocks);
    let unit = recv.receive(NOW, &data(0, 5_000, 0, b"abc"));
    assert_eq!(unit, Ok(5_256));
    assert_eq!(
        recv.receive(NOW, &data(0, 5_001, 0, b"abc")),
        Err(UnitError::Contradiction)
    );
    assert_eq!(recv.repair(NOW, &repair(0, 5_000, 0, &[0; 1_000])), Ok(0));
    let other = recv.repair(NOW, &repair(0, 5_000, 1, &[0; 999]));
    assert_eq!(other, Err(UnitError::Contradiction));
    let index = recv.repair(NOW, &repair(0, 5_000, 100, &[0; 1_000]));
    assert_eq!(index, Err(UnitError::Repairs));
    let cancel = |unit, size| UnitCancel {
        flow: FLOW,
        unit,
        size,
        code: None,
    };
    assert_eq!(
        recv.cancel(&cancel(0, 4_000)),
        Err(UnitError::Contradiction)
    );
}

#[test]
fn numbers_and_bytes_are_bounded() {
    let mut recv = recv(FlowKind::Blocks);
    assert_eq!(
        recv.receive(NOW, &data(64, 10, 0, b"a")),
        Err(UnitError::Span)
    );
    assert_eq!(recv.receive(NOW, &data(63, 90_000, 0, b"a")), Ok(90_256));
    assert_eq!(
        recv.receive(NOW, &data(62, 9_745, 0, b"a")),
        Err(UnitError::Credit)
    );
    let cancel = UnitCancel {
        flow: FLOW,
        unit: 1 << 40,
        size: 0,
        code: None,
    };
    assert_eq!(recv.cancel(&cancel), Err(UnitError::Span));
}

#[test]
fn one_byte_pieces_are_bounded() {
    let mut recv = recv(FlowKind::Blocks);
    let result = (0..40_000).try_for_each(|i| {
        let piece = data(0, 90_000, 2 * i, b"x");
        recv.receive(NOW, &piece).map(|_| ())
    });
    assert_eq!(result, Err(UnitError::Fragments));
}

#[test]
fn news_and_verdicts_are_bounded() {
    let mut recv = recv(FlowKind::Blocks);
    for unit in 0..20_000 {
        let cancel = UnitCancel {
            flow: FLOW,
            unit,
            size: 0,
            code: None,
        };
        recv.cancel(&cancel).unwrap();
        recv.take_due();
    }
    let kept = (0..20_000).filter(|n| recv.verdict(*n).is_some()).count();
    assert!(kept <= 65, "{kept}");
    let gone = core::iter::from_fn(|| match recv.read() {
        Received::Gone { number, .. } => Some(number),
        _ => None,
    });
    let gone: Vec<u64> = gone.collect();
    assert_eq!(gone.len(), 4_096);
    assert_eq!(gone.last(), Some(&19_999), "the oldest went");
}

#[test]
fn garbage_instead_of_a_heading_ends_the_session() {
    for kind in [FlowKind::Blocks, FlowKind::Objects] {
        let mut recv = recv(kind);
        let unit = recv.receive(NOW, &data(0, 1, 0, &[0xff]));
        assert_eq!(unit, Err(UnitError::Contradiction));
    }
}

#[test]
fn a_fate_that_cannot_be_is_noticed() {
    let mut pair = Pair::new(FlowKind::Blocks, 1_000);
    pair.block(b"abc");
    assert!(
        !pair.send.on_verdict(1, Verdict::OnTime(3)),
        "never written"
    );
    assert!(!pair.send.on_verdict(0, Verdict::GivenUp), "never given up");
    assert!(pair.send.on_verdict(0, Verdict::Late(3)));
    assert!(pair.send.on_verdict(0, Verdict::OnTime(3)), "old news");
}

proptest! {
    /// Pieces of objects that overlap, leave gaps or change their minds are refused or put in
    /// order; nothing is delivered out of place.
    #[test]
    fn pieces_come_in_order_or_not_at_all(
        pieces in prop::collection::vec((0_u64..40, 0_usize..12, 0_u64..3, prop::option::of(0_u64..40)), 1..12),
    ) {
        use crate::wire::{ObjectHeading, Piece};
        let mut recv = UnitsRecv::new(FlowKind::Objects, 1 << 20, 64, 0);
        let mut next = 0;
        for (unit, (offset, len, piece, total)) in pieces.into_iter().enumerate() {
            let piece = match piece {
                0 => Piece::More,
                1 => Piece::Last,
                _ => Piece::Cancelled(5),
            };
            let heading = ObjectHeading { object: 0, offset, total, piece };
            let mut bytes = Vec::new();
            heading.encode(&mut bytes);
            bytes.extend((0..len).map(|i| offset as u8 + i as u8));
            let frame = data(unit as u64, bytes.len() as u64, 0, &bytes);
            if recv.receive(NOW, &frame).is_err() {
                break;
            }
            while let Received::Piece(piece) = recv.read() {
                prop_assert_eq!(piece.offset, next);
                let expected: Vec<u8> = (next..next + piece.data.len() as u64).map(|b| b as u8).collect();
                prop_assert_eq!(&piece.data[..], &expected[..]);
                next += piece.data.len() as u64;
            }
        }
    }
}
