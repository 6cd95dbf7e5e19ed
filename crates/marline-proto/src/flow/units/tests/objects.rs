//! Priorities, dependencies, cancelling, and objects in pieces.

use super::*;

#[test]
fn the_urgent_come_first_and_nobody_starves() {
    let mut pair = Pair::new(FlowKind::Objects, 1_000);
    let with = |urgency, incremental| ObjectOptions {
        urgency,
        incremental,
        ..ObjectOptions::default()
    };
    // Ten symbols of little urgency, then ever more urgent ones.
    pair.object(&[1; 9_900], &with(7, false));
    for _ in 0..50 {
        pair.object(&[2; 9_900], &with(0, false));
    }
    let order: Vec<u64> = pair.cut_all().iter().map(|s| s.unit).collect();
    assert_eq!(order[..15], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2]);
    let last = order.iter().rposition(|unit| *unit == 0).unwrap();
    // The bound that the module states, and near it: the urgent are not held up for nothing.
    assert!(last < 10 * ROUND as usize, "{last}");
    assert!(last >= 9 * ROUND as usize, "{last}");
}

#[test]
fn equals_share_only_if_they_are_incremental() {
    for (incremental, expected) in [(false, [0, 0, 0, 1, 1, 1]), (true, [0, 1, 0, 1, 0, 1])] {
        let mut pair = Pair::new(FlowKind::Objects, 1_000);
        let options = ObjectOptions {
            incremental,
            ..ObjectOptions::default()
        };
        for _ in 0..2 {
            pair.object(&[0; 2_900], &options);
        }
        let order: Vec<u64> = pair.cut_all().iter().map(|s| s.unit).collect();
        assert_eq!(order, expected);
    }
}

#[test]
fn an_object_waits_for_those_that_it_depends_on() {
    let mut pair = Pair::new(FlowKind::Objects, 1_000);
    let first = pair.object(b"style", &ObjectOptions::default());
    let options = ObjectOptions {
        urgency: 0,
        after: vec![first],
        ..ObjectOptions::default()
    };
    let second = pair.object(b"picture", &options);
    let symbols = pair.cut_all();
    assert_eq!(symbols.len(), 1, "the second waits");
    pair.arrive(&symbols[0]).unwrap();
    pair.tell();
    let symbols = pair.cut_all();
    assert_eq!(symbols.len(), 1);
    pair.arrive(&symbols[0]).unwrap();
    pair.tell();
    assert_eq!(
        pair.fates(),
        [(first, Fate::OnTime), (second, Fate::OnTime)]
    );
    let unknown = ObjectOptions {
        after: vec![9],
        ..ObjectOptions::default()
    };
    let refused = pair.send.open_object(NOW, &unknown);
    assert_eq!(refused, Err(SendError::NoObject(9)));
    // One that is settled is not waited for.
    pair.object(b"late", &options);
    assert_eq!(pair.cut_all().len(), 1);
}

#[test]
fn either_side_cancels_an_object() {
    let options = ObjectOptions {
        incremental: true,
        ..ObjectOptions::default()
    };
    // The sender, while a piece was delivered and the other is under way.
    let mut pair = Pair::new(FlowKind::Objects, 1_000);
    let id = pair.object(&[1; 100_000], &options);
    let symbols = pair.cut_all();
    for symbol in symbols.iter().filter(|s| s.unit == 0) {
        pair.arrive(symbol).unwrap();
    }
    assert_eq!(pair.read().0[&id].len(), 64 << 10);
    assert!(pair.send.cancel_object(id, 42));
    assert!(!pair.send.cancel_object(id, 43), "once");
    pair.tell_cancels();
    for symbol in pair.cut_all() {
        pair.arrive(&symbol).unwrap();
    }
    pair.tell();
    assert_eq!(pair.fates(), [(id, Fate::Cancelled(42))]);
    assert_eq!(pair.read().1, [(id, Fate::Cancelled(42))]);
    assert_eq!((pair.send.held(), pair.recv.held()), (0, 0));

    // The receiver, as soon as it knows whose unit it is.
    let mut pair = Pair::new(FlowKind::Objects, 1_000);
    let id = pair.object(&[1; 10_000], &ObjectOptions::default());
    let symbols = pair.cut_all();
    pair.arrive(&symbols[0]).unwrap();
    pair.recv.refuse_object(id, 7);
    for _ in 0..3 {
        pair.tell();
        pair.tell_cancels();
        for symbol in pair.cut_all() {
            pair.arrive(&symbol).unwrap();
        }
    }
    assert_eq!(pair.fates(), [(id, Fate::Refused(7))]);
    assert_eq!(pair.read(), (BTreeMap::new(), vec![]), "it knows");
    assert_eq!((pair.send.held(), pair.recv.held()), (0, 0));
}

#[test]
fn an_open_object_grows_and_keeps_its_word() {
    let mut pair = Pair::new(FlowKind::Objects, 1_000);
    let options = ObjectOptions {
        size: Some(10),
        ..ObjectOptions::default()
    };
    let id = pair.send.open_object(NOW, &options).unwrap();
    pair.send.write_object(NOW, id, b"hello", false).unwrap();
    let (size, bytes) = (10, 11);
    let beyond = pair.send.write_object(NOW, id, b"world!", false);
    assert_eq!(beyond, Err(SendError::Size { size, bytes }));
    pair.send.write_object(NOW, id, b"world", false).unwrap();
    let ended = pair.send.write_object(NOW, id, b"", true);
    assert_eq!(
        ended,
        Err(SendError::NoObject(id)),
        "it ended with its last byte"
    );
    // The second piece arrives first, and waits.
    let symbols = pair.cut_all();
    pair.arrive(&symbols[1]).unwrap();
    assert!(pair.read().0.is_empty());
    pair.arrive(&symbols[0]).unwrap();
    assert_eq!(pair.read().0[&id], b"helloworld");
    pair.tell();
    assert_eq!(pair.fates(), [(id, Fate::OnTime)]);
}
