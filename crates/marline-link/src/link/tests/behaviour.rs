//! One behaviour a test, with exact times.

use super::*;
use crate::Reason;

#[test]
fn packets_leave_one_after_the_other_at_the_rate() {
    // 600 µs a packet, then 15 ms.
    let mut link = link("rate=20mbit,delay=15ms");
    let got = arrivals(&mut link, [0, 0, 100, 10_000]);
    assert_eq!(
        got,
        [Some(15_600), Some(16_200), Some(16_800), Some(25_600)]
    );
}

#[test]
fn drop_tail_holds_what_it_says_and_drains() {
    let mut link = link("rate=12mbit,queue=4p");
    let got = arrivals(&mut link, [0; 6]);
    assert_eq!(
        got,
        [
            Some(1_000),
            Some(2_000),
            Some(3_000),
            Some(4_000),
            None,
            None
        ]
    );
    assert_eq!(link.counters().dropped_for(Reason::QueueFull), 2);
    assert_eq!(link.queued_bytes(us(999)), 6_000);
    assert_eq!(link.queued_bytes(us(1_000)), 4_500);
    assert_eq!(link.queued_packets(us(3_999)), 1);
    assert_eq!(link.queued_bytes(us(4_000)), 0);
    // One has left: there is room for one.
    assert_eq!(arrivals(&mut link, [1_000, 1_000]), [Some(5_000), None]);
}

#[test]
fn a_queue_in_time_bounds_the_delay() {
    let mut link = link("rate=20mbit,queue=200ms");
    let times = (0..20_000).map(|i| i * 300);
    let delays: Vec<u64> = arrivals(&mut link, times.clone())
        .into_iter()
        .zip(times)
        .filter_map(|(at, offered)| Some(at? - offered))
        .collect();
    let worst = *delays.iter().max().unwrap();
    assert!((199_400..=200_000).contains(&worst), "{worst}");
    // Twice the rate was offered.
    assert!((10_300..10_400).contains(&delays.len()), "{}", delays.len());
}

#[test]
fn a_packet_larger_than_the_queue_passes_an_empty_one() {
    let mut link = link("rate=12mbit,queue=100B");
    assert_eq!(
        arrivals(&mut link, [0, 500, 1_000]),
        [Some(1_000), None, Some(2_000)]
    );
}

#[test]
fn a_token_bucket_passes_its_depth_at_once_after_silence() {
    // 1 ms a packet in the long run; the bucket holds three.
    let mut link = link("rate=12mbit,bucket=4500B");
    let burst = [Some(0), Some(0), Some(0), Some(1_000), Some(2_000)];
    assert_eq!(arrivals(&mut link, [0; 5]), burst);
    // It has filled by one and a half at 3.5 ms, and by no more than its depth at 20 ms.
    let later = arrivals(&mut link, [3_500, 3_500, 20_000, 20_000, 20_000, 20_000]);
    let burst = [20_000, 20_000, 20_000, 21_000].map(Some);
    assert_eq!(later[..2], [Some(3_500), Some(4_000)]);
    assert_eq!(later[2..], burst);
}

#[test]
fn the_mtu_is_the_largest_size() {
    let mut link = link("mtu=1400");
    assert!(link.offer(ms(0), 1_400).arrival().is_some());
    assert_eq!(link.offer(ms(0), 1_401), Verdict::Dropped(Reason::TooBig));
}

#[test]
fn an_outage_cuts_the_queue_but_not_the_wire() {
    // 1 ms a packet; dark from 3 ms to 10 ms.
    let mut link = link("rate=12mbit,delay=20ms,outage=3ms+7ms");
    let got = arrivals(
        &mut link,
        [0, 0, 0, 0, 0, 2_500, 5_000, 9_999, 10_000, 10_000],
    );
    assert_eq!(got[..3], [Some(21_000), Some(22_000), Some(23_000)]);
    assert_eq!(got[3..8], [None; 5]);
    assert_eq!(got[8..], [Some(31_000), Some(32_000)]);
    assert_eq!(link.counters().dropped_for(Reason::Outage), 5);
}

#[test]
fn what_an_outage_cuts_waits_in_the_queue_until_then() {
    let mut link = link("rate=12mbit,queue=5p,outage=3ms+7ms");
    let got = arrivals(&mut link, [0, 0, 0, 0, 0, 0, 2_000, 2_000]);
    assert_eq!(link.counters().dropped_for(Reason::Outage), 4);
    assert_eq!(link.counters().dropped_for(Reason::QueueFull), 1);
    assert_eq!(got.iter().flatten().count(), 3);
    assert_eq!(link.queued_packets(us(2_999)), 5);
    assert_eq!(link.queued_packets(us(3_000)), 0);
}

#[test]
fn a_held_queue_waits_as_far_as_it_has_room() {
    let mut link = link("rate=12mbit,delay=20ms,queue=5p,outage=3ms+7ms,outage-mode=hold");
    let got = arrivals(&mut link, [0, 0, 0, 0, 5_000, 5_000, 5_000, 5_000, 5_000]);
    assert_eq!(
        got,
        [21, 22, 23, 31, 32, 33, 34, 35]
            .map(|t| Some(t * 1_000))
            .into_iter()
            .chain([None])
            .collect::<Vec<_>>()
    );
    assert_eq!(link.counters().dropped_for(Reason::QueueFull), 1);
}

#[test]
fn transmission_rests_in_a_held_outage() {
    let mut link = link("rate=12mbit,outage=500us+2ms,outage-mode=hold");
    assert_eq!(arrivals(&mut link, [0, 600]), [Some(3_000), Some(4_000)]);
}

#[test]
fn switching_dark_voids_what_has_not_left() {
    let mut link = link("rate=12mbit,delay=20ms");
    let before = arrivals(&mut link, [0, 0, 0, 0]);
    assert_eq!(before[3], Some(24_000));
    link.set_dark(us(2_500), true);
    assert!(link.is_dark(us(2_500)));
    assert_eq!(link.queued_bytes(us(2_500)), 0);
    assert_eq!(
        link.offer(us(2_600), 1_500),
        Verdict::Dropped(Reason::Outage)
    );
    link.set_dark(us(2_700), false);
    assert!(!link.is_dark(us(2_700)));
    // Packets 3 and 4 were in the queue; the server does not make up for them.
    assert_eq!(arrivals(&mut link, [2_700]), [Some(23_700)]);
}

#[test]
fn after_switching_dark_the_order_is_that_of_what_had_left() {
    // Jitter far beyond the spacing: the voided packet's late arrival must not delay the others.
    let mut link = link("rate=12mbit,delay=50ms,jitter=49ms,jitter-dist=uniform");
    let kept = departure(link.offer(ms(0), 1_500));
    assert_eq!(kept, ms(1));
    let mut latest = Duration::ZERO;
    for _ in 0..2_000 {
        let at = link.offer(ms(0), 1_500).arrival().unwrap();
        latest = latest.max(at.since(ms(0)));
    }
    assert!(latest > Duration::from_secs(2));
    link.set_dark(ms(1), true);
    link.set_dark(ms(1), false);
    let at = link.offer(ms(1), 1_500).arrival().unwrap();
    assert!(at <= ms(101), "{at:?}");
}

#[test]
fn a_trace_serves_through_the_link() {
    // One opportunity every 5 ms, two at 20 ms.
    let mut link = link_on_trace("5\n10\n15\n20\n20\n", "trace=t,delay=1ms,queue=4p");
    assert_eq!(
        arrivals(&mut link, [0, 0, 0, 0, 0, 5_000]),
        [
            Some(6_000),
            Some(11_000),
            Some(16_000),
            Some(21_000),
            None,
            Some(21_000)
        ]
    );
}

#[test]
fn a_trace_loses_what_comes_in_the_dark() {
    let text = "trace=t,outage=8ms+4ms";
    let mut link = link_on_trace("5\n", text);
    assert_eq!(
        arrivals(&mut link, [0, 0, 9_000, 12_000, 12_000]),
        [Some(5_000), None, None, Some(15_000), Some(20_000)]
    );
    let mut link = link_on_trace("5\n", "trace=t,outage=8ms+4ms,outage-mode=hold");
    assert_eq!(
        arrivals(&mut link, [0, 0, 9_000, 12_000]),
        [Some(5_000), Some(15_000), Some(20_000), Some(25_000)]
    );
}

#[test]
fn unlimited_capacity_in_a_held_outage_leaves_at_its_end() {
    let mut link = link("delay=1ms,outage=10ms+10ms,outage-mode=hold");
    assert_eq!(
        arrivals(&mut link, [9_000, 10_000, 15_000, 20_000]),
        [Some(10_000), Some(21_000), Some(21_000), Some(21_000)]
    );
}

#[test]
fn time_never_goes_backwards() {
    let mut link = link("rate=12mbit");
    assert_eq!(arrivals(&mut link, [5_000, 0]), [Some(6_000), Some(7_000)]);
}
