//! Both halves against each other: whatever is lost, doubled or overtaken, every unit arrives
//! once, byte for byte, or both sides say why not.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;

use bytes::Bytes;
use marline_base::{Duration, Instant, Rng};
use proptest::prelude::*;

mod hostile;
mod objects;

use super::order::ROUND;
use super::*;
use crate::flow::{SendError, Symbol};
use crate::wire::{BlockHeading, FlowId, FlowKind, UnitData, UnitRepair, Verdict};

const FLOW: FlowId = FlowId(0);
const NOW: Instant = Instant::from_millis(5);

fn limits() -> Limits {
    Limits {
        buffer: 64 << 20,
        longest: 32 << 20,
        credit: 64 << 20,
        span: 4_096,
        repairs: 1_024,
    }
}

/// A sender and a receiver, and what of the wire matters to them.
struct Pair {
    send: UnitsSend,
    recv: UnitsRecv,
    max: u32,
    /// Bytes read of each block or object.
    read: BTreeMap<u64, u64>,
}

impl Pair {
    fn new(kind: FlowKind, max: u32) -> Self {
        let limits = limits();
        Self {
            send: UnitsSend::new(kind, limits),
            recv: UnitsRecv::new(kind, limits.credit, limits.span, limits.repairs),
            max,
            read: BTreeMap::new(),
        }
    }

    fn block(&mut self, data: &[u8]) -> u64 {
        let heading = BlockHeading::default();
        self.send
            .write_block(NOW, data, heading, BlockTerms::default())
            .unwrap()
    }

    fn object(&mut self, data: &[u8], options: &ObjectOptions) -> u64 {
        let data = Bytes::copy_from_slice(data);
        self.send.send_object(NOW, &data, options).unwrap()
    }

    fn cut(&mut self) -> Option<Symbol> {
        let symbol = self.send.cut(self.max, u64::MAX)?;
        self.send.on_left(&symbol, true);
        Some(symbol)
    }

    fn cut_all(&mut self) -> Vec<Symbol> {
        core::iter::from_fn(|| self.cut()).collect()
    }

    /// A symbol arrives; its acknowledgement does not come back yet.
    fn arrive(&mut self, symbol: &Symbol) -> Result<(), UnitError> {
        self.send.prepare(symbol);
        let data = self.send.bytes(symbol).into_owned();
        let unit = symbol.unit;
        match self.send.frame_of(symbol) {
            Some((size, None)) => {
                let offset = symbol.offset;
                let data = &data;
                self.recv.receive(
                    NOW,
                    &UnitData {
                        flow: FLOW,
                        unit,
                        size,
                        offset,
                        data,
                    },
                )?;
            }
            Some((size, Some(index))) => {
                let data = &data;
                self.recv.repair(
                    NOW,
                    &UnitRepair {
                        flow: FLOW,
                        unit,
                        size,
                        index,
                        data,
                    },
                )?;
            }
            None => {}
        }
        Ok(())
    }

    /// The receiver's words reach the sender.
    fn tell(&mut self) {
        for unit in self.recv.take_due() {
            let verdict = self.recv.verdict(unit).expect("it is due");
            assert!(self.send.on_verdict(unit, verdict), "{unit} {verdict:?}");
            self.recv.on_verdict_heard(unit);
        }
        for unit in self.recv.shorts().collect::<Vec<_>>() {
            assert!(self.send.on_verdict(unit, Verdict::Short));
            self.recv.on_short_heard(unit);
        }
    }

    /// The sender's cancellations reach the receiver.
    fn tell_cancels(&mut self) {
        for unit in self.send.take_cancels() {
            let frame = self.send.cancel_frame(FLOW, unit).expect("it is due");
            self.recv.cancel(&frame).unwrap();
        }
        self.tell();
    }

    fn fates(&mut self) -> Vec<(u64, Fate)> {
        let settled = self.send.take_todo().settled;
        settled.iter().map(|s| (s.number, s.fate)).collect()
    }

    /// Everything that can be read; pieces of an object are joined.
    fn read(&mut self) -> Read {
        let (mut whole, mut gone) = (BTreeMap::<u64, Vec<u8>>::new(), Vec::new());
        loop {
            match self.recv.read() {
                Received::Piece(piece) => {
                    let read = self.read.entry(piece.number).or_default();
                    assert_eq!(*read, piece.offset, "pieces follow each other");
                    *read += piece.data.len() as u64;
                    let bytes = whole.entry(piece.number).or_default();
                    bytes.extend_from_slice(&piece.data);
                }
                Received::Gone { number, fate } => gone.push((number, fate)),
                _ => return (whole, gone),
            }
        }
    }
}

/// What was read: bytes by number, and what will not come.
type Read = (BTreeMap<u64, Vec<u8>>, Vec<(u64, Fate)>);

fn bytes(rng: &mut Rng, len: usize) -> Vec<u8> {
    (0..len).map(|_| rng.next_u64() as u8).collect()
}

/// Sends a block in symbols of `max` bytes of which the `lost` are lost, with as many repair
/// symbols, and returns how many symbols it had.
fn any_k(rng: &mut Rng, len: usize, max: u32, lost: usize, more: usize) {
    let mut pair = Pair::new(FlowKind::Blocks, max);
    let block = bytes(rng, len);
    let number = pair.block(&block);
    let mut symbols = pair.cut_all();
    let k = symbols.len();
    let longest = symbols.iter().map(|s| s.len).max().unwrap();
    let shortest = symbols.iter().map(|s| s.len).min().unwrap();
    assert!(
        longest - shortest < k as u32 || k == 1,
        "equal but for the padding"
    );
    let lost = lost.min(k);
    let repairs: Vec<Symbol> = (0..lost + more)
        .map(|_| pair.send.repair(number, max).expect("a repair symbol"))
        .collect();
    for _ in 0..lost {
        symbols.swap_remove(rng.below(symbols.len() as u64) as usize);
    }
    symbols.extend(&repairs);
    for i in (1..symbols.len()).rev() {
        symbols.swap(i, rng.below(i as u64 + 1) as usize);
    }
    for symbol in &symbols {
        pair.arrive(symbol).unwrap();
        // A duplicate changes nothing.
        pair.arrive(symbol).unwrap();
    }
    let (whole, gone) = pair.read();
    assert_eq!(
        (whole.get(&number), gone),
        (Some(&block), vec![]),
        "k {k} lost {lost}"
    );
    pair.tell();
    assert_eq!(pair.fates(), [(number, Fate::OnTime)]);
    assert_eq!(pair.send.held(), 0);
    assert_eq!(pair.recv.held(), 0);
}

#[test]
fn any_k_symbols_bring_a_unit_back() {
    let rng = &mut Rng::new(4);
    // One symbol; all repair; every symbol short; both sides of 256 symbols in all.
    for (len, max, lost) in [
        (1, 1_152, 0),
        (1, 1_152, 1),
        (1_151, 1_152, 1),
        (1_152, 1_152, 1),
        (5_000, 1_152, 5),
        (5_000, 1_152, 0),
        (64, 1, 32),
        (100_000, 1_152, 20),
        (1_152 * 255 - 8, 1_152, 1),
        (1_152 * 128 - 8, 1_152, 128),
    ] {
        any_k(rng, len, max, lost, 0);
    }
    // Beyond, the code is random: two more symbols make a failure one in ten million.
    for (len, lost) in [(1_152 * 255, 2), (400_000, 40), (1_000_000, 300)] {
        any_k(rng, len, 1_152, lost, 2);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_k_symbols_bring_any_block_back(
        len in 1_usize..60_000,
        max in 300_u32..1_400,
        lost in 0_usize..40,
        seed in any::<u64>(),
    ) {
        any_k(&mut Rng::new(seed), len, max, lost, 0);
    }

    /// Losses, copies, overtaking, paths of other sizes, objects of several pieces: with
    /// retransmission alone everything arrives once.
    #[test]
    fn objects_arrive_once_whatever_is_lost(
        sizes in prop::collection::vec(0_usize..200_000, 1..12),
        incremental in any::<bool>(),
        loss in 0.0..0.6_f64,
        seed in any::<u64>(),
    ) {
        let rng = &mut Rng::new(seed);
        let mut pair = Pair::new(FlowKind::Objects, 1_100);
        let options = ObjectOptions { incremental, ..ObjectOptions::default() };
        let objects: Vec<Vec<u8>> = sizes.iter().map(|len| bytes(rng, *len)).collect();
        for object in &objects {
            pair.object(object, &options);
        }
        let mut flight: VecDeque<Symbol> = VecDeque::new();
        let mut got = BTreeMap::<u64, Vec<u8>>::new();
        let mut fates = Vec::new();
        for _ in 0..200_000 {
            while flight.len() < 20 && let Some(symbol) = pair.cut() {
                flight.push_back(symbol);
            }
            let Some(symbol) = flight.remove(rng.below(flight.len().max(1) as u64) as usize) else {
                break;
            };
            if rng.chance(loss) {
                pair.send.on_lost(&symbol);
                if !pair.send.is_settled(&symbol) {
                    pair.send.on_left(&symbol, false);
                    flight.push_back(symbol);
                }
            } else {
                pair.arrive(&symbol).unwrap();
                pair.send.on_acked(&symbol);
            }
            pair.max = 900 + rng.below(300) as u32;
            pair.tell();
            fates.extend(pair.fates());
            let (pieces, gone) = pair.read();
            prop_assert!(gone.is_empty());
            for (object, piece) in pieces {
                got.entry(object).or_default().extend(piece);
            }
        }
        fates.sort_unstable_by_key(|(number, _)| *number);
        let expected: Vec<_> = (0..objects.len() as u64).map(|n| (n, Fate::OnTime)).collect();
        prop_assert_eq!(fates, expected);
        for (number, object) in objects.iter().enumerate() {
            // An empty object is read as one empty piece.
            prop_assert_eq!(got.get(&(number as u64)), Some(object));
        }
        prop_assert_eq!((pair.send.held(), pair.recv.held()), (0, 0));
    }
}

#[test]
fn what_repair_symbols_make_up_for_is_not_sent_again() {
    let mut pair = Pair::new(FlowKind::Blocks, 1_000);
    let number = pair.block(&[7; 9_992]);
    let symbols = pair.cut_all();
    assert_eq!(symbols.len(), 10);
    for symbol in &symbols[..2] {
        pair.send.on_lost(symbol);
    }
    assert!(
        !pair.send.write_off(&symbols[0]),
        "there are no repair symbols"
    );
    let repairs = [0, 1].map(|_| pair.send.repair(number, 1_000).unwrap());
    assert!(pair.send.write_off(&symbols[0]) && pair.send.write_off(&symbols[1]));
    assert!(!pair.send.write_off(&symbols[2]), "two for three");
    // One of the two is lost: one source symbol has to be sent after all.
    repairs.iter().for_each(|r| pair.send.on_left(r, false));
    pair.send.on_lost(&repairs[0]);
    let again = pair.send.take_todo().again;
    assert_eq!(again, [symbols[0]]);
    // It was given up twice, and comes after all: it makes up for one all the same.
    pair.send.on_dropped(&repairs[0]);
    assert_eq!(pair.send.take_todo().again, []);
    pair.send.on_acked(&repairs[0]);
    assert!(pair.send.write_off(&symbols[0]));
    assert!(!pair.send.write_off(&symbols[2]), "still two for three");
}

#[test]
fn a_block_ends_with_its_deadline() {
    let mut pair = Pair::new(FlowKind::Blocks, 1_000);
    let terms = BlockTerms {
        deadline: Some(Duration::from_millis(20)),
        reliability: None,
    };
    let heading = BlockHeading::default();
    let write = |pair: &mut Pair| {
        let written = pair.send.write_block(NOW, &[1; 2_990], heading, terms);
        written.unwrap()
    };
    let (sent, unsent) = (write(&mut pair), write(&mut pair));
    let symbols = [0, 1, 2].map(|_| pair.cut().unwrap());
    assert!(symbols.iter().all(|s| s.unit == sent));
    assert_eq!(
        pair.send.next_expiry(),
        Some(NOW + Duration::from_millis(20))
    );
    assert_eq!(
        pair.send.expire(NOW + Duration::from_millis(20)),
        [sent, unsent]
    );
    assert_eq!(pair.cut(), None);
    assert!(pair.send.is_settled(&symbols[0]), "nothing is sent again");
    // What flies may still complete the first; the second is lost at once.
    pair.tell_cancels();
    assert_eq!(pair.fates(), [(unsent, Fate::Lost)]);
    pair.arrive(&symbols[0]).unwrap();
    pair.send.on_acked(&symbols[0]);
    pair.send.on_lost(&symbols[1]);
    pair.tell_cancels();
    assert_eq!(pair.fates(), []);
    pair.send.on_lost(&symbols[2]);
    pair.tell_cancels();
    assert_eq!(pair.fates(), [(sent, Fate::Lost)]);
    let (whole, gone) = pair.read();
    assert!(whole.is_empty());
    assert_eq!(gone, [(unsent, Fate::Lost), (sent, Fate::Lost)]);
    assert_eq!((pair.send.held(), pair.recv.held()), (0, 0));
}

#[test]
fn the_receiver_knows_what_is_late() {
    for drop in [false, true] {
        let mut pair = Pair::new(FlowKind::Blocks, 1_000);
        pair.recv.set_drop_late(drop);
        let deadline_us = NOW.as_micros();
        for deadline_us in [deadline_us, deadline_us - 1] {
            let heading = BlockHeading { deadline_us };
            let terms = BlockTerms::default();
            pair.send.write_block(NOW, b"abc", heading, terms).unwrap();
        }
        for symbol in pair.cut_all() {
            pair.arrive(&symbol).unwrap();
        }
        pair.tell();
        assert_eq!(pair.fates(), [(0, Fate::OnTime), (1, Fate::Late)]);
        let late = |pair: &mut Pair| match pair.recv.read() {
            Received::Piece(piece) => Some(piece.late),
            _ => None,
        };
        assert_eq!(late(&mut pair), Some(false));
        assert_eq!(late(&mut pair), if drop { None } else { Some(true) });
        assert_eq!(
            (pair.recv.delivered, pair.recv.late, pair.recv.held()),
            (2, 1, 0)
        );
    }
}

#[test]
fn taken_back_symbols_keep_their_place() {
    let mut pair = Pair::new(FlowKind::Objects, 1_000);
    pair.object(&[1; 4_900], &ObjectOptions::default());
    let cut = [0, 1, 2].map(|_| pair.send.cut(1_000, u64::MAX).unwrap());
    pair.send.on_left(&cut[0], true);
    pair.send.give_back(cut[1..].iter().copied());
    let urgent = ObjectOptions {
        urgency: 1,
        ..ObjectOptions::default()
    };
    pair.object(&[2; 900], &urgent);
    let order: Vec<(u64, u64)> = pair.cut_all().iter().map(|s| (s.unit, s.offset)).collect();
    let len = u64::from(cut[0].len);
    assert_eq!(order[..3], [(1, 0), (0, len), (0, 2 * len)]);
    assert_eq!(order.len(), 5);
    assert_eq!(pair.send.unsent(), 0);
}

#[test]
fn credit_lets_units_begin_and_comes_back_when_they_are_read() {
    let mut pair = Pair::new(FlowKind::Objects, 1_000);
    pair.send = UnitsSend::new(
        FlowKind::Objects,
        Limits {
            credit: 10_000,
            ..limits()
        },
    );
    pair.recv = UnitsRecv::new(FlowKind::Objects, 10_000, 4_096, 0);
    for _ in 0..3 {
        pair.object(&[0; 4_000], &ObjectOptions::default());
    }
    let symbols = pair.cut_all();
    assert!(
        symbols.iter().all(|s| s.unit < 2),
        "the third waits for credit"
    );
    for symbol in &symbols {
        pair.arrive(symbol).unwrap();
    }
    assert!(!pair.recv.renew());
    pair.read();
    assert!(pair.recv.renew(), "two units were read");
    let credit = pair.recv.credit();
    assert!(pair.send.raise_credit(credit));
    assert_eq!(pair.cut_all().len(), 5);
}

#[test]
fn what_a_receiver_gave_up_is_counted_once() {
    let mut pair = Pair::new(FlowKind::Blocks, 1_000);
    pair.block(&[7; 5_000]);
    let symbols = pair.cut_all();
    pair.arrive(&symbols[0]).unwrap();
    pair.recv.fail(9);
    // The sender, which does not know that yet, cancels the block and then resets the flow.
    pair.send.cancel_block(0, 1);
    for unit in pair.send.take_cancels() {
        let frame = pair.send.cancel_frame(FLOW, unit).expect("it is due");
        assert_eq!(pair.recv.cancel(&frame), Ok(0));
    }
    let spent = pair.send.spent();
    assert_eq!(pair.recv.reset(1, spent), Ok(0));
    assert_eq!(pair.recv.held(), 0);
}
