use alloc::vec;

use bytes::Bytes;
use marline_base::Duration;

use super::*;
use crate::flow::StreamSend;
use crate::wire::FlowId;

const LEN: u64 = 100;
const PATH: PathId = PathId(0);

/// A stream of which `count` symbols of 100 bytes have left.
fn sent(count: u64, window: u16) -> (CodeSend, SendHalf) {
    sent_at(Instant::ZERO, count, window)
}

fn sent_at(at: Instant, count: u64, window: u16) -> (CodeSend, SendHalf) {
    let mut stream = StreamSend::new(1 << 20);
    stream.write(Instant::ZERO, Bytes::from(vec![7; 1 << 14]));
    let limits = Limits {
        window,
        symbol: 1_500,
    };
    let mut coder = CodeSend::new(limits, 4.0);
    for number in 0..count {
        let symbol = stream.cut(LEN as u32);
        coder.expect(symbol.len);
        assert_eq!(coder.form(&symbol, true), Form::New(number));
        let gone = coder.on_source(at, PATH, symbol, false, &[7; LEN as usize]);
        assert_eq!(gone, None);
    }
    (coder, SendHalf::Stream(stream))
}

fn symbol(number: u64) -> Symbol {
    Symbol {
        unit: 0,
        offset: number * LEN,
        len: LEN as u32,
    }
}

fn repair(coder: &mut CodeSend) -> u64 {
    let asked = coder.reserve().expect("the budget allows it");
    let mut payload = Vec::new();
    let made = coder.repair(&mut payload, &Due::default());
    let made = made.expect("something is unknown");
    let len = payload.len() as u32;
    coder.on_repair(Instant::ZERO, PATH, &asked, (&made, len));
    asked.unit
}

fn acked(coder: &mut CodeSend, send: &mut SendHalf, number: u64) {
    let SendHalf::Stream(stream) = send else {
        panic!("a stream");
    };
    stream.on_acked(&symbol(number), false);
    coder.on_settled(&symbol(number), send);
}

fn status(next: u64, equations: u64, repairs: u64, recovered: u64) -> CodeStatus {
    CodeStatus {
        flow: FlowId(0),
        next,
        equations,
        repairs,
        recovered,
    }
}

const LATER: Instant = Instant::from_millis(100);

fn lose(coder: &mut CodeSend, number: u64) -> bool {
    coder.waits(&symbol(number), LATER, |_| true)
}

#[test]
fn each_equation_stands_in_for_one_symbol() {
    let (mut coder, _) = sent(8, 256);
    assert!(!lose(&mut coder, 0), "there is no repair symbol");
    repair(&mut coder);
    repair(&mut coder);
    assert!(lose(&mut coder, 1) && lose(&mut coder, 2));
    assert!(lose(&mut coder, 3), "two repair symbols for three");
    let again = coder.give_up(Instant::ZERO, |_| true);
    assert_eq!(again[..], [symbol(1)], "the oldest is needed first");
    let view = coder.view();
    assert_eq!((view.window, view.unknown, view.lost), (8, 8, 4));
    assert_eq!((view.repairs_in_flight, view.missing), (2, 2));
}

#[test]
fn a_repair_symbol_stands_in_only_for_what_left_before_it() {
    let (mut coder, _) = sent(4, 256);
    repair(&mut coder);
    let later = symbol(4);
    coder.on_source(Instant::ZERO, PATH, later, false, &[7; 100]);
    assert!(!coder.waits(&later, LATER, |_| true));
    assert!(lose(&mut coder, 3));
}

/// Symbols 0 and 2 left on a quick path, 1 and 3 on one that takes 50 ms longer.
#[test]
fn an_equation_holds_what_has_arrived_when_it_does() {
    let slow = PathId(1);
    let mut stream = StreamSend::new(1 << 20);
    stream.write(Instant::ZERO, Bytes::from(vec![7; 1 << 14]));
    let mut coder = CodeSend::new(
        Limits {
            window: 256,
            symbol: 1_500,
        },
        4.0,
    );
    let start = Instant::from_millis(1_000);
    for number in 0..4 {
        let (symbol, path) = (stream.cut(LEN as u32), PathId(number % 2));
        let left = start + Duration::from_millis(10 * number);
        coder.expect(symbol.len);
        coder.on_source(left, path, symbol, false, &[7; LEN as usize]);
    }
    let combined = |coder: &mut CodeSend, ms: u64| {
        let now = start + Duration::from_millis(ms);
        let left = [(PATH, now), (slow, now - Duration::from_millis(50))];
        let due = left.into_iter().collect();
        coder.repair(&mut Vec::new(), &due).map(|r| r.symbols())
    };
    // Symbol 1 left after 10 ms and arrives when something quick does that leaves after 60.
    assert_eq!(combined(&mut coder, 59), Some(0..1));
    assert_eq!(combined(&mut coder, 60), Some(0..3));
    assert_eq!(combined(&mut coder, 80), Some(0..4));
    // What is known to be lost is on no way.
    assert!(!lose(&mut coder, 1));
    assert_eq!(combined(&mut coder, 59), Some(0..3));
    // Of what has arrived the receiver has everything.
    acked(&mut coder, &mut SendHalf::Stream(stream), 0);
    assert_eq!(coder.next_repair().0, 1);
    coder.on_again(1);
    assert_eq!(combined(&mut coder, 59), None);
}

/// What leaves the window could be combined no later.
#[test]
fn a_full_window_is_combined_although_all_of_it_flies() {
    let nothing = || Due::from_iter([(PATH, Instant::ZERO)]);
    for (count, combined) in [(3, None), (4, Some(0..4)), (6, Some(2..6))] {
        let (mut coder, _) = sent_at(Instant::from_millis(1), count, 4);
        let made = coder.repair(&mut Vec::new(), &nothing());
        assert_eq!(made.map(|repair| repair.symbols()), combined, "{count}");
    }
}

#[test]
fn one_that_comes_too_late_does_not_count() {
    let (mut coder, _) = sent(4, 256);
    repair(&mut coder);
    assert!(!coder.waits(&symbol(0), LATER, |_| false));
}

#[test]
fn what_waits_is_sent_again_when_its_repair_symbol_is_lost() {
    let (mut coder, _) = sent(8, 256);
    let (first, second) = (repair(&mut coder), repair(&mut coder));
    assert!(lose(&mut coder, 5) && lose(&mut coder, 2));
    coder.on_repair_lost(first);
    let again = coder.give_up(Instant::ZERO, |_| true);
    assert_eq!(again[..], [symbol(2)], "the newer one keeps its equation");
    // The other arrives; the receiver's word of it is under way.
    coder.on_repair_acked(second);
    assert!(coder.give_up(Instant::ZERO, |_| true).is_empty());
    // It does not come in time.
    assert_eq!(coder.deadline(), Some(LATER));
    assert_eq!(coder.give_up(LATER, |_| true)[..], [symbol(5)]);
    assert_eq!(coder.deadline(), None);
}

#[test]
fn equations_that_the_receiver_spent_are_not_counted_on() {
    let (mut coder, _) = sent(8, 256);
    let number = repair(&mut coder);
    coder.on_repair_acked(number);
    // It recovered symbol 0 with it: nothing is left for another.
    let known = coder.on_status(&status(1, 0, 1, 1)).expect("honest");
    assert_eq!(known.len(), 1);
    assert_eq!(known[0].symbol, symbol(0));
    assert!(!lose(&mut coder, 3));
    assert_eq!(coder.worth(), (1, 0));
    // One that it holds is as good as one in flight.
    repair(&mut coder);
    coder.on_repair_acked(1);
    coder.on_status(&status(1, 1, 2, 1)).expect("honest");
    assert!(lose(&mut coder, 4));
    // Old news change nothing.
    let known = coder.on_status(&status(8, 0, 0, 0)).expect("honest");
    assert!(known.is_empty());
}

#[test]
fn an_equation_about_older_symbols_is_none_for_a_newer_one() {
    let (mut coder, mut send) = sent(4, 256);
    let number = repair(&mut coder);
    let SendHalf::Stream(stream) = &mut send else {
        panic!("a stream");
    };
    let newer = stream.cut(LEN as u32);
    coder.expect(newer.len);
    coder.on_source(Instant::ZERO, PATH, newer, false, &[7; LEN as usize]);
    coder.on_repair_acked(number);
    coder.on_status(&status(0, 1, 1, 0)).expect("honest");
    assert!(!lose(&mut coder, 4), "it left after the repair symbol");
    assert!(lose(&mut coder, 3));
}

#[test]
fn the_window_follows_what_is_known_and_keeps_its_size() {
    let (mut coder, mut send) = sent(6, 4);
    assert_eq!(coder.view().window, 4, "the oldest left");
    acked(&mut coder, &mut send, 3);
    assert_eq!(coder.view().window, 4, "2 is still unknown");
    assert_eq!(coder.view().unknown, 3);
    acked(&mut coder, &mut send, 2);
    assert_eq!(coder.view().window, 2);
    for number in [4, 5] {
        acked(&mut coder, &mut send, number);
    }
    assert!(!coder.has_unknown());
    assert_eq!(coder.repair(&mut Vec::new(), &Due::default()), None);
}

#[test]
fn what_waited_and_leaves_the_window_is_sent_again() {
    let (mut coder, _) = sent(4, 4);
    repair(&mut coder);
    assert!(lose(&mut coder, 0));
    let gone = coder.on_source(Instant::ZERO, PATH, symbol(4), false, &[7; 100]);
    assert_eq!(gone, Some(symbol(0)));
    assert_eq!(coder.deadline(), None);
}

#[test]
fn a_symbol_goes_again_as_it_went_first_or_plain() {
    let (coder, _) = sent(4, 256);
    assert_eq!(coder.form(&symbol(2), false), Form::Again(2, false));
    let (head, tail) = symbol(2).split(40).expect("longer");
    assert_eq!(coder.form(&head, false), Form::Plain);
    assert_eq!(coder.form(&tail, false), Form::Plain);
    assert_eq!(
        coder.form(&symbol(4), false),
        Form::Plain,
        "a copy that leaves before its source"
    );
}

#[test]
fn a_status_of_what_never_left_is_refused() {
    let (mut coder, _) = sent(4, 256);
    assert_eq!(coder.on_status(&status(5, 0, 0, 0)).err(), Some(NeverLeft));
    assert_eq!(coder.on_status(&status(4, 0, 1, 0)).err(), Some(NeverLeft));
    assert!(coder.on_status(&status(4, 0, 0, 0)).is_ok());
}

#[test]
fn a_repair_symbol_that_does_not_leave_costs_nothing() {
    let (mut coder, _) = sent(4, 256);
    let before = coder.view();
    let asked = coder.reserve().expect("the budget allows it");
    assert_eq!(coder.view().repairs_queued, 1);
    coder.cancel(&asked);
    assert_eq!(coder.view(), before);
    assert!(
        coder
            .give_up(Instant::ZERO + Duration::from_secs(9), |_| true)
            .is_empty()
    );
}
