//! Paths that are paid for.

use marline_proto::flow::Chunk;
use marline_proto::path::PathParams;
use marline_proto::wire::{FlowKind, PathId};
use marline_proto::{Config, FlowOptions};
use marline_sim::End;

use super::LINK;
use crate::kit::{Lab, Messages, Outbox, ms, secs};

const DEAR: PathId = PathId(1);

/// A cheap link and a dear one of 20 Mb/s; only the client knows of the cost by itself.
fn lab(cheap: &str) -> Lab {
    lab_with(cheap, &Config::default())
}

fn lab_with(cheap: &str, config: &Config) -> Lab {
    let mut lab = Lab::new(7, config);
    lab.path(cheap);
    lab.path_with(LINK, LINK, PathParams::default());
    let now = lab.now();
    lab.world
        .client
        .set_cost(DEAR, 2)
        .expect("there is such a path");
    assert_eq!(lab.now(), now);
    lab.run_for(ms(500));
    lab
}

/// The share of the bytes that `from` sent over the dear path.
fn dear_share(lab: &mut Lab, from: End) -> f64 {
    let [cheap, dear] = [PathId(0), DEAR].map(|path| lab.sent_on(from, path) as f64);
    dear / (cheap + dear)
}

#[test]
fn what_the_cheap_path_carries_in_time_costs_nothing() {
    // Bursts of losses make packets overdue, and copies of these may go elsewhere.
    let lossy = format!("{LINK},loss=5%,burst=10");
    for (from, link) in [
        (End::Client, LINK),
        (End::Server, LINK),
        (End::Client, &lossy),
        (End::Server, &lossy),
    ] {
        // 5 Mb/s of 20 for 20 s.
        let mut lab = lab(link);
        let trickle = Outbox::trickle(lab.now(), 12_500_000, 6_250, ms(10));
        lab.open(from, &FlowOptions::new(FlowKind::Stream), trickle);
        lab.finish_within(secs(30));
        let share = dear_share(&mut lab, from);
        assert!(share < 0.02, "{from:?}, {link}: {share} of a stream");

        let mut lab = self::lab(link);
        let plan = Messages {
            size: 1_250,
            size_max: 1_250,
            count: 10_000,
            every: ms(2),
        };
        let options = FlowOptions {
            lifetime: Some(ms(300)),
            ..FlowOptions::new(FlowKind::Packets)
        };
        let messages = Outbox::messages(lab.now(), plan);
        lab.open(from, &options, messages);
        lab.finish_within(secs(30));
        let share = dear_share(&mut lab, from);
        assert!(share < 0.02, "{from:?}, {link}: {share} of a live one");
    }
}

/// A player, or `curl --limit-rate` behind a buffer of the kernel's, reads 6 MB every 8 s as fast
/// as they come: 2.4 s of the cheap link.
#[test]
fn bursts_that_the_cheap_path_carries_in_time_cost_nothing() {
    const BURST: usize = 6_000_000;
    let mut lab = lab(LINK);
    let flow = lab.stream(End::Server, 60_000_000);
    lab.run_for(ms(100));
    lab.inbox_mut(End::Client, flow).expect("opened").paused = true;
    for _ in 0..5 {
        let mut left = BURST;
        for _ in 0..800 {
            lab.run_for(ms(10));
            let now = lab.now();
            while left > 0
                && let Chunk::Data(data) = lab.world.session(End::Client).read(now, flow, left)
            {
                left -= data.len();
            }
        }
        assert_eq!(left, 0, "the burst has come");
    }
    let share = dear_share(&mut lab, End::Server);
    assert!(share < 0.02, "{share} over the dear path");
}

#[test]
fn what_is_too_much_for_the_cheap_path_spills_over() {
    let mut lab = lab(LINK);
    let flow = lab.stream(End::Server, 160_000_000);
    lab.finish_within(secs(60));
    let rate = super::goodput(lab.inbox(End::Client, flow));
    assert!(rate > 34.0, "{rate} Mb/s over two links of 20");
}

/// What waits varies about what is called little where the send buffer is short: a flow that does
/// not run dry is held up all the same.
#[test]
fn what_waits_may_be_little_for_a_moment() {
    let config = Config {
        send_buffer: 256 << 10,
        ..Config::default()
    };
    let mut lab = lab_with(LINK, &config);
    lab.stream(End::Server, 60_000_000);
    lab.finish_within(secs(60));
    let share = dear_share(&mut lab, End::Server);
    assert!(share > 0.1, "{share} over the dear path");
}

/// Objects spill over as streams do.
#[test]
fn objects_spill_over() {
    let mut lab = lab(LINK);
    let plan = Messages {
        size: 100_000,
        size_max: 100_000,
        count: 1_000,
        every: ms(1),
    };
    let objects = Outbox::objects(lab.now(), plan);
    lab.open(End::Server, &FlowOptions::new(FlowKind::Objects), objects);
    lab.finish_within(secs(60));
    let share = dear_share(&mut lab, End::Server);
    assert!((0.2..0.5).contains(&share), "{share} over the dear path");
}

/// What the cheapest link holds up for long opens the second rank, and what both hold up for as
/// long again the third.
#[test]
fn ranks_open_one_after_the_other() {
    let mut lab = lab(LINK);
    let dearest = lab.path(LINK);
    let set = lab.world.client.set_cost(dearest, 3);
    set.expect("there is such a path");
    lab.run_for(ms(500));
    lab.stream(End::Server, 160_000_000);
    lab.run_for(secs(11));
    let [dear, third] = [DEAR, dearest].map(|path| lab.sent_on(End::Server, path));
    assert!(dear > 5_000_000, "{dear} bytes over the second");
    assert!(third < 20_000, "{third} bytes over the third");
    lab.run_for(secs(5));
    let third = lab.sent_on(End::Server, dearest);
    assert!(third > 2_000_000, "{third} bytes over the third in the end");
}

/// Live, 10 Mb/s, where the cheap link has 8: the budget is kept, and no more is paid for than that
/// takes.
#[test]
fn a_live_stream_keeps_its_budget() {
    let mut lab = lab("rate=8mbit,delay=15ms,queue=100ms");
    let plan = Messages {
        size: 1_250,
        size_max: 1_250,
        count: 20_000,
        every: ms(1),
    };
    let options = FlowOptions {
        lifetime: Some(ms(300)),
        ..FlowOptions::new(FlowKind::Packets)
    };
    let messages = Outbox::messages(lab.now(), plan);
    let flow = lab.open(End::Client, &options, messages);
    lab.finish_within(secs(30));
    let share = dear_share(&mut lab, End::Client);
    assert!((0.2..0.6).contains(&share), "{share} over the dear path");
    let got = lab.inbox(End::Server, flow).read;
    assert!(got >= 19_980, "{got} messages of 20 000");
}

#[test]
fn a_dear_path_takes_over_when_the_cheap_one_goes_dark() {
    let mut lab = lab(LINK);
    let flow = lab.messages(End::Client, 1_000, ms(2), 3_000);
    lab.run_for(secs(2));
    lab.dark(PathId(0), true);
    lab.run_for(secs(2));
    lab.dark(PathId(0), false);
    lab.run_for(secs(1));
    let by_then = lab.sent_on(End::Client, DEAR);
    assert!(by_then > 800_000, "the dear path carried {by_then} bytes");
    lab.finish_within(secs(10));
    let after = lab.sent_on(End::Client, DEAR) - by_then;
    assert!(after < 20_000, "and {after} more");
    let silence = lab.inbox(End::Server, flow).silence;
    assert!(silence < ms(120), "silent for {silence:?}");
}
