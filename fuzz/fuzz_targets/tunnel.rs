//! Any bytes as a packet inside a tunnel, as several that are joined, and as an offer of addresses:
//! they are read or refused, what is changed stays a packet, and every answer goes to the sender.
#![no_main]

use libfuzzer_sys::fuzz_target;
use marline_apps::tun::{Key, Offer, Packet, Refusal, Role, answer, clamp, packets};

fuzz_target!(|bytes: &[u8]| {
    if let Some(role) = Role::decode(bytes) {
        assert_eq!(role.encode(), bytes);
    }
    if let Ok(offer @ Offer::Granted { .. }) = Offer::decode(bytes) {
        assert_eq!(offer.encode(), bytes);
    }
    if let Ok(packets) = packets(bytes) {
        // A message is at most 256 segments, and each has its headers and a part of the payload.
        assert!((1..=256).contains(&packets.len()));
        for packet in &packets {
            assert!(packet.len() <= bytes.len());
            Packet::parse(packet).expect("what comes out is a packet");
        }
    }
    let Ok(packet) = Packet::parse(bytes) else {
        return;
    };
    assert_eq!(Key::of(&packet).reversed().reversed(), Key::of(&packet));
    let mut clamped = bytes.to_vec();
    clamp(&mut clamped, &packet, 1280);
    assert_eq!(Packet::parse(&clamped), Ok(packet));
    assert!(!clamp(&mut clamped, &packet, 1280));
    for from in ["10.77.0.1", "fd77::1"].map(|text| text.parse().unwrap()) {
        for refusal in [Refusal::TooBig(1280), Refusal::Prohibited] {
            if let Some(told) = answer(bytes, &packet, from, refusal) {
                let answer = Packet::parse(&told).unwrap();
                assert_eq!(answer.destination, packet.source);
                assert!(answer.is_icmp_error(&told));
            }
        }
    }
});
