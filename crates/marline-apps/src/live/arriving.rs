//! Objects taken apart into the datagrams that they were made of, in the order in which those were
//! sent.

use super::grouping::HEAD;
use crate::proxy::objects::Order;
use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;

/// Most bytes that wait for an earlier object.
const WAITING: usize = 8 << 20;

/// Most objects refused at a time: each costs the session a look at all that arrives. The others
/// are only skipped.
const REFUSED: usize = 1 << 6;

/// Takes pieces of objects, yields datagrams. Objects go by their numbers; those that will not come
/// are skipped, and so are those for which more than [`WAITING`] bytes have waited.
#[derive(Debug)]
pub(super) struct Arriving {
    order: Order,
    /// Pieces whose turn it is, with the objects that they are of. They are taken apart when their
    /// datagrams are asked for: an empty datagram has two bytes here, and by itself many times
    /// that.
    ready: VecDeque<(u64, Bytes)>,
    /// The object that `open` belongs to.
    object: u64,
    /// The end of an object's pieces that is being taken apart.
    open: BytesMut,
}

impl Default for Arriving {
    fn default() -> Self {
        Arriving {
            order: Order::new(WAITING),
            ready: VecDeque::new(),
            object: 0,
            open: BytesMut::new(),
        }
    }
}

impl Arriving {
    /// Takes the next piece of an object; returns the objects that are given up, to be refused.
    pub(super) fn push(&mut self, number: u64, data: Bytes, last: bool) -> Vec<u64> {
        // Pieces of an object that was skipped are of no use; the check below sees when too much
        // waits.
        let _ = self.order.push(number, data, last);
        self.settle()
    }

    /// The object will not come, or not the rest of it; returns what [`push`](Self::push) does.
    pub(super) fn gone(&mut self, number: u64) -> Vec<u64> {
        self.order.skip(number);
        self.settle()
    }

    /// Nothing more will arrive: whatever waits is handed over.
    pub(super) fn let_go(&mut self) {
        while !self.order.is_empty() {
            let _passed = self.order.pass();
            self.take();
        }
    }

    /// Takes what is there, and gives up objects for which too much waits.
    fn settle(&mut self) -> Vec<u64> {
        let mut given_up = Vec::new();
        self.take();
        while self.order.check().is_err() {
            let passed = self.order.pass();
            given_up.extend(passed.take(REFUSED.saturating_sub(given_up.len())));
            self.take();
        }
        given_up
    }

    /// The next datagram.
    pub(super) fn pop(&mut self) -> Option<Bytes> {
        loop {
            if let Some(datagram) = self.cut() {
                return Some(datagram);
            }
            let (object, data) = self.ready.pop_front()?;
            if object != self.object {
                // The last one ended in the middle of a datagram.
                self.open.clear();
                self.object = object;
            }
            self.open.extend_from_slice(&data);
        }
    }

    /// The datagram at the beginning of `open`, if it is whole.
    fn cut(&mut self) -> Option<Bytes> {
        let head = self.open.first_chunk::<HEAD>()?;
        let length = usize::from(u16::from_be_bytes(*head));
        if self.open.len() < HEAD + length {
            return None;
        }
        self.open.advance(HEAD);
        Some(self.open.split_to(length).freeze())
    }

    fn take(&mut self) {
        while let Some(data) = self.order.pop() {
            self.ready.push_back((self.order.turn(), data));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::grouping::put;
    use proptest::prelude::*;

    fn object(datagrams: &[&[u8]]) -> Bytes {
        let mut bytes = BytesMut::new();
        datagrams
            .iter()
            .for_each(|datagram| put(&mut bytes, datagram));
        bytes.freeze()
    }

    fn all(arriving: &mut Arriving) -> Vec<Bytes> {
        std::iter::from_fn(|| arriving.pop()).collect()
    }

    #[test]
    fn when_nothing_more_will_come_nothing_is_waited_for() {
        let mut arriving = Arriving::default();
        arriving.push(0, object(&[b"zero"]), false);
        arriving.push(2, object(&[b"two"]), true);
        arriving.push(5, object(&[b"five"]), false);
        assert_eq!(all(&mut arriving), ["zero"]);
        arriving.let_go();
        assert_eq!(all(&mut arriving), ["two", "five"]);
        arriving.let_go();
        assert!(all(&mut arriving).is_empty());
    }

    #[test]
    fn datagrams_come_out_in_order_however_they_are_cut() {
        let mut arriving = Arriving::default();
        let first = object(&[b"one", b"", b"three"]);
        arriving.push(1, object(&[b"four"]), true);
        assert!(all(&mut arriving).is_empty());
        arriving.push(0, first.slice(..4), false);
        assert!(all(&mut arriving).is_empty());
        arriving.push(0, first.slice(4..9), false);
        assert_eq!(all(&mut arriving), ["one", ""]);
        arriving.push(0, first.slice(9..), false);
        assert_eq!(all(&mut arriving), ["three"]);
        // The end is reported by itself.
        arriving.push(0, Bytes::new(), true);
        assert_eq!(all(&mut arriving), ["four"]);
    }

    #[test]
    fn what_will_not_come_is_passed_over_with_the_torn_end() {
        let mut arriving = Arriving::default();
        arriving.push(0, object(&[b"one", b"two"]).slice(..7), false);
        arriving.push(2, object(&[b"four"]), true);
        arriving.gone(1);
        assert_eq!(all(&mut arriving), ["one"]);
        arriving.gone(0);
        assert_eq!(all(&mut arriving), ["four"]);
        arriving.push(0, object(&[b"late"]), true);
        arriving.gone(0);
        assert!(all(&mut arriving).is_empty());
    }

    #[test]
    fn no_more_than_the_bound_waits_for_what_does_not_come() {
        let mut arriving = Arriving::default();
        let big = object(&[&[7; 60_000]]);
        arriving.push(1, big.slice(..20), false);
        let mut given_up = Vec::new();
        for number in 3..300 {
            given_up.extend(arriving.push(number, big.clone(), true));
        }
        assert_eq!(given_up, [0, 1, 2]);
        assert_eq!(all(&mut arriving).len(), 297);
    }

    #[test]
    fn empty_datagrams_take_no_more_room_than_their_objects() {
        let mut arriving = Arriving::default();
        let many = object(&[&b""[..]; 100_000]);
        for number in 1..=5 {
            arriving.push(number, many.clone(), true);
        }
        arriving.push(0, object(&[b"one"]), true);
        let held = arriving.ready.len();
        assert!(held <= 6, "{held} handles for 6 pieces");
        assert_eq!(all(&mut arriving).len(), 500_001);
    }

    #[test]
    fn numbers_far_apart_are_passed_over_at_once() {
        let mut arriving = Arriving::default();
        let big = object(&[&[7; 60_000]]);
        let mut given_up = 0;
        for step in 0..300 {
            let number = (1 << 40) + (step << 20);
            given_up += arriving.push(number, big.clone(), true).len();
        }
        assert!(given_up <= 300 * REFUSED);
        assert!(arriving.push(1 << 40, big.clone(), true).is_empty());
        // About 8 MiB of them still wait.
        assert!((100..300).contains(&all(&mut arriving).len()));
    }

    #[test]
    fn no_more_than_the_bound_is_remembered_of_what_will_not_come() {
        let mut arriving = Arriving::default();
        let mut given_up = Vec::new();
        for number in 1..3 * WAITING as u64 / 256 {
            given_up.extend(arriving.gone(number));
        }
        assert_eq!(given_up, [0]);
        arriving.push(3 * WAITING as u64 / 256, object(&[b"next"]), true);
        assert_eq!(all(&mut arriving), ["next"]);
    }

    proptest! {
        #[test]
        fn any_pieces_are_taken_without_harm(
            pieces in proptest::collection::vec(
                (prop_oneof![0u64..6, any::<u64>().prop_map(|n| n >> 2)],
                    proptest::collection::vec(any::<u8>(), 0..40), any::<bool>(), any::<bool>()), 0..60),
        ) {
            let mut arriving = Arriving::default();
            let (mut bytes, mut out) = (0, 0);
            for (number, data, last, gone) in pieces {
                bytes += data.len();
                match gone {
                    true => arriving.gone(number),
                    false => arriving.push(number, data.into(), last),
                };
                out += all(&mut arriving).iter().map(|d| d.len() + HEAD).sum::<usize>();
                prop_assert!(arriving.open.len() < HEAD + usize::from(u16::MAX));
                prop_assert!(out <= bytes);
            }
        }
    }
}
