//! Any bytes of a connection are cut into objects, and come out again as they went in, in whatever
//! order objects arrive.

#![no_main]

use libfuzzer_sys::fuzz_target;
use marline_apps::proxy::objects::{Cutter, Order};

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (step, swap, data) = input;
    let step = usize::from(step).max(1);
    let mut cutter = Cutter::new();
    let mut objects: Vec<Vec<u8>> = Vec::new();
    let (mut at, mut begun) = (0, false);
    while at < data.len() {
        let shown = &data[at..data.len().min(at + step)];
        let cut = cutter.cut(shown);
        assert!((1..=shown.len()).contains(&cut.take));
        assert!(cutter.urgency().is_none_or(|urgency| urgency <= 7));
        if !begun {
            objects.push(Vec::new());
        }
        objects.last_mut().expect("one began").extend_from_slice(&shown[..cut.take]);
        at += cut.take;
        // Now and then the writer pauses.
        begun = !(cut.ends || (at % 7 == 0 && cutter.pause()));
    }
    let mut order = Order::new(usize::MAX);
    let mut numbers: Vec<usize> = (0..objects.len()).collect();
    let near = usize::from(swap).max(1);
    numbers.chunks_mut(near).for_each(<[usize]>::reverse);
    let mut out = Vec::new();
    for number in numbers {
        let data = objects[number].clone();
        order.push(number as u64, data.into(), true).expect("each comes once");
        while let Some(piece) = order.pop() {
            out.extend_from_slice(&piece);
        }
    }
    assert_eq!(out, data);
});
