//! Paths of very different worth.

use marline_proto::Config;
use marline_sim::End;

use super::{bulk, lab_with};
use crate::kit::{ms, secs};

const BULK: u64 = 20_000_000;

fn beside(fast: &str, other: &str, floor: f64) {
    let config = Config::default();
    let alone = bulk(&config, &[fast], BULK);
    let both = bulk(&config, &[fast, other], BULK);
    assert!(
        both > floor * alone,
        "{both:.1} Mb/s with '{other}', {alone:.1} without"
    );
}

#[test]
fn a_path_with_a_twentieth_of_the_rate_slows_nothing() {
    beside(
        "rate=40mbit,delay=15ms,queue=100ms",
        "rate=2mbit,delay=15ms,queue=100ms",
        0.95,
    );
}

#[test]
fn a_satellite_beside_a_lan_slows_nothing() {
    beside(
        "rate=100mbit,delay=1ms,queue=50ms",
        "rate=20mbit,delay=300ms,queue=200ms",
        0.95,
    );
}

#[test]
fn a_path_that_loses_three_of_ten_slows_nothing() {
    beside(
        "rate=20mbit,delay=15ms,queue=100ms",
        "rate=20mbit,delay=15ms,queue=100ms,loss=30%",
        0.95,
    );
}

#[test]
fn live_messages_do_not_wait_for_a_satellite() {
    let links = [
        "rate=20mbit,delay=15ms,queue=100ms",
        "rate=20mbit,delay=300ms,queue=200ms",
    ];
    let mut lab = lab_with(&Config::default(), &links);
    let flow = lab.messages(End::Client, 1_000, ms(2), 5_000);
    lab.finish_within(secs(20));
    let p99 = lab.inbox(End::Server, flow).quantile(0.99);
    assert!(p99 < ms(25), "99 % within {p99:?}");
}

#[test]
fn reordering_inside_one_path_is_not_taken_for_loss_for_ever() {
    let link = "rate=20mbit,delay=20ms,jitter=4ms,overtake=yes,queue=100ms";
    let mut lab = lab_with(&Config::default(), &[link]);
    let flow = lab.stream(End::Client, BULK);
    lab.run_for(secs(4));
    let before = lab.world.client.stats().paths[0].counters;
    lab.finish_within(secs(20));
    let after = lab.world.client.stats().paths[0].counters;
    let lost = after.lost_packets - before.lost_packets;
    let sent = after.sent_packets - before.sent_packets;
    assert!(lost * 50 < sent, "{lost} of {sent} packets taken for lost");
    let rate = super::goodput(lab.inbox(End::Server, flow));
    assert!(rate > 15.0, "{rate:.1} Mb/s");
}

#[test]
fn what_a_quicker_way_back_tells_makes_no_path_quicker() {
    // The near path's way back tells of losses on the distant one 130 ms sooner, and of what
    // arrived before them.
    let links = [
        "rate=20mbit,delay=20ms,queue=200ms",
        "rate=20mbit,delay=150ms,queue=200ms,loss=0.2%",
    ];
    let mut lab = lab_with(&Config::default(), &links);
    lab.stream(End::Client, 50_000_000);
    lab.run_for(secs(6));
    for _ in 0..40 {
        lab.run_for(ms(150));
        let rate = lab.world.client.stats().paths[1].rate.as_mbps_f64();
        assert!(rate < 24.0, "{rate:.1} Mb/s over 20 Mb/s");
    }
}

#[test]
fn the_default_finds_the_capacity_of_a_distant_path_as_soon_as_edpf_does() {
    let links = [
        "rate=20mbit,delay=20ms,queue=200ms",
        "rate=20mbit,delay=320ms,queue=200ms",
    ];
    let edpf = Config {
        stream_scheduler: "edpf".parse().unwrap(),
        ..Config::default()
    };
    let [ours, edpf] = [Config::default(), edpf].map(|config| bulk(&config, &links, 35_000_000));
    assert!(ours > 0.95 * edpf, "{ours:.1} Mb/s, edpf {edpf:.1}");
}
