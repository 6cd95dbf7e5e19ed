use super::*;
use bytes::Bytes;
use proptest::prelude::*;

/// Cuts `data`, shown in pieces of `step` bytes, and says where objects end.
fn ends(data: &[u8], step: usize) -> Vec<usize> {
    let mut cutter = Cutter::new();
    let (mut at, mut ends) = (0, Vec::new());
    while at < data.len() {
        let shown = &data[at..data.len().min(at + step)];
        let cut = cutter.cut(shown);
        assert!(cut.take >= 1 && cut.take <= shown.len());
        at += cut.take;
        if cut.ends {
            ends.push(at);
        }
    }
    ends
}

/// However the bytes come, the ends are the same.
fn cut(data: &[u8]) -> Vec<usize> {
    let all = ends(data, usize::MAX - data.len());
    for step in [1, 2, 3, 7, 100] {
        assert_eq!(ends(data, step), all, "in pieces of {step}");
    }
    all
}

fn record(kind: u8, length: u16) -> Vec<u8> {
    let [high, low] = length.to_be_bytes();
    let mut record = vec![kind, 3, 3, high, low];
    record.resize(5 + usize::from(length), 0x5a);
    record
}

#[test]
fn every_tls_record_is_an_object() {
    let data = [
        record(22, 512),
        record(20, 1),
        record(23, 16_384),
        record(23, 0),
    ]
    .concat();
    assert_eq!(cut(&data), [517, 523, 16_912, 16_917]);
}

#[test]
fn what_only_begins_like_tls_is_taken_as_it_is() {
    for data in [
        &b"\x16\x05\x01 no"[..],
        b"\x17\x03\x09 no",
        b"\x17\x03\x03\xff\xff too long",
        b"GET / HTTP/1.1\r\n\r\n",
        b"HELO mail.example\r\n",
        b"\x00",
    ] {
        assert_eq!(cut(data), [0; 0], "{data:?}");
    }
}

#[test]
fn a_pause_ends_what_has_no_ends_of_its_own_and_the_format_is_looked_for_anew() {
    let mut cutter = Cutter::new();
    assert_eq!(cutter.cut(b"220 mail.example\r\n").take, 18);
    assert!(cutter.pause());
    let hello = record(22, 10);
    let cut = cutter.cut(&hello[..8]);
    assert_eq!((cut.take, cut.ends), (8, false));
    assert!(
        !cutter.pause(),
        "a record is not over where its writer pauses"
    );
    let cut = cutter.cut(&hello[8..]);
    assert_eq!((cut.take, cut.ends), (7, true));
}

#[test]
fn a_response_of_known_length_is_an_object_and_says_how_urgent_it_is() {
    let first = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\npriority: u=1, i\r\n\r\nhello";
    let second = "HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n";
    let third = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nPriority: u=9\r\n\r\n";
    let data = [first, second, third].concat();
    let expected = [first.len(), first.len() + second.len(), data.len()];
    assert_eq!(cut(data.as_bytes()), expected);
    let mut cutter = Cutter::new();
    cutter.cut(first.as_bytes());
    assert_eq!(cutter.urgency(), Some(1));
    cutter.cut(second.as_bytes());
    assert_eq!(cutter.urgency(), None);
    cutter.cut(third.as_bytes());
    assert_eq!(cutter.urgency(), None, "9 is no urgency");
}

#[test]
fn every_chunk_is_an_object() {
    let parts = [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\nPriority: u=2;x=1\r\n\r\n",
        "5\r\nhello\r\n",
        "1a; extension=1\r\nabcdefghijklmnopqrstuvwxyz\r\n",
        "0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "3\r\nabc\r\n",
        "0\r\nDigest: x\r\nMore: y\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
    ];
    let mut expected = Vec::new();
    for part in parts {
        expected.push(expected.last().unwrap_or(&0) + part.len());
    }
    assert_eq!(cut(parts.concat().as_bytes()), expected);
}

#[test]
fn a_body_without_a_length_has_no_ends() {
    for head in [
        "HTTP/1.0 200 OK\r\nServer: x\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
    ] {
        let data = format!("{head}and then whatever, HTTP/1.1 200 OK\r\n\r\n");
        assert_eq!(cut(data.as_bytes()), [head.len()]);
    }
}

#[test]
fn hostile_heads_and_chunks_are_taken_as_they_are() {
    let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "a".repeat(200_000));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: y\r\n".repeat(200));
    let huge = "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nx";
    let chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx";
    let word = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
    assert_eq!(cut(endless.as_bytes()), [0; 0]);
    assert_eq!(cut(many.as_bytes()), [0; 0]);
    assert_eq!(cut(huge.as_bytes()), [0; 0]);
    assert_eq!(cut(chunk.as_bytes()).len(), 1);
    assert_eq!(cut(word.as_bytes()).len(), 1);
}

#[test]
fn objects_come_out_in_the_order_in_which_they_were_cut() {
    let mut order = Order::new(10_000);
    let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
    order.push(1, bytes("c"), true).unwrap();
    assert_eq!(order.pop(), None);
    order.push(2, bytes(""), true).unwrap();
    order.push(0, bytes("a"), false).unwrap();
    assert_eq!(order.pop(), Some(bytes("a")));
    assert_eq!(order.pop(), None);
    order.push(0, bytes("b"), false).unwrap();
    assert_eq!(order.pop(), Some(bytes("b")));
    // An object may end with nothing, also when all before it was taken.
    order.push(0, bytes(""), true).unwrap();
    assert_eq!(order.pop(), Some(bytes("c")));
    assert!(!order.is_over());
    assert_eq!(order.pop(), None);
    assert!(order.is_over());
    assert_eq!(order.push(3, bytes("d"), true), Err(Disorder::Ended));
}

#[test]
fn what_waits_is_bounded_and_nothing_comes_twice() {
    let mut order = Order::new(10_000);
    let mut sent = 0;
    let error = loop {
        sent += 1;
        if let Err(error) = order.push(sent, Bytes::from_static(b"x"), true) {
            break error;
        }
    };
    assert_eq!(error, Disorder::TooMuch);
    assert!(sent < 100, "small pieces cost something, too");
    let mut order = Order::new(10_000);
    order.push(0, Bytes::from_static(b"x"), true).unwrap();
    assert_eq!(
        order.push(0, Bytes::from_static(b"y"), true),
        Err(Disorder::Ended)
    );
}

proptest! {
    #[test]
    fn any_bytes_are_taken_whole_and_cut_alike_in_any_pieces(
        data in proptest::collection::vec(any::<u8>(), 1..400),
        head in prop_oneof![
            Just(&b""[..]), Just(&b"\x17\x03\x03\x00\x09"[..]), Just(&b"HTTP/1.1 200 OK\r\n"[..]),
            Just(&b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n"[..]),
        ],
    ) {
        cut(&[head, &data].concat());
    }
}
