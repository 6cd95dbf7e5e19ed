//! Each workload over links so plain that what it should measure can be computed.

use std::sync::Arc;

use marline_sim::Duration;
use marline_sim::scenario::{SizeLaw, WebObject, unknown_values};

use super::*;
use crate::kit::ms;

/// One workload over one link of 20 Mb/s and 10 ms: 1000 bytes take 0.4 ms. Every value of the run
/// is in the catalogue.
fn over_one_link(workload: WorkloadPlan) -> Run {
    let links = vec![link("a", "rate=20mbit,delay=10ms,queue=200ms")];
    let scenario = scenario(links, vec![session("main", 1, vec![workload])]);
    let run = run(&scenario, "min-rtt", 1);
    assert_eq!(unknown_values(&scenario, &run), Vec::<String>::new());
    run
}

fn blocks(deadline: Duration) -> WorkloadPlan {
    let load = Load::Blocks {
        size: 50_000,
        every: ms(100),
        deadline,
        phase: Some(ms(3)),
    };
    over_packets(workload("blocks", load), false)
}

#[test]
fn a_block_is_late_if_and_only_if_it_cannot_come_in_time() {
    // 50 kB take 20 ms, and some 2 % more for headers, after which the last byte travels 10 ms.
    let run = over_one_link(blocks(ms(29)));
    let fraction = run.fractions["blocks.block_lateness"];
    // 15 s after the warm-up.
    assert_eq!((fraction.hits, fraction.trials), (150, 150));
    let fastest = value(&run, "blocks.block_delay.min_ms");
    assert!((30.0..32.0).contains(&fastest), "{fastest} ms");

    let run = over_one_link(blocks(ms(60)));
    let fraction = run.fractions["blocks.block_lateness"];
    assert_eq!((fraction.hits, fraction.trials), (0, 150));
}

#[test]
fn blocks_that_no_link_carries_are_late_and_undelivered() {
    let mut plan = blocks(ms(60));
    plan.flow.lifetime = Some(ms(60));
    plan.load = Load::Blocks {
        size: 500_000,
        every: ms(100),
        deadline: ms(60),
        phase: None,
    };
    let run = over_one_link(plan);
    let fraction = run.fractions["blocks.block_lateness"];
    assert!(fraction.trials >= 148, "{fraction:?}");
    assert_eq!(fraction.hits, fraction.trials);
}

#[test]
fn objects_take_their_time() {
    let load = Load::Objects {
        size: SizeLaw::Uniform(10_000, 30_000),
        every: ms(50),
        random: true,
    };
    let run = over_one_link(workload("files", load));
    let (least, mean) = (
        value(&run, "files.object_delay.min_ms"),
        value(&run, "files.object_delay.mean_ms"),
    );
    // 4 to 12 ms and 10 ms on the way; some wait for others.
    assert!((14.0..16.0).contains(&least), "{least} ms");
    assert!((18.0..26.0).contains(&mean), "{mean} ms");
    let count = value(&run, "files.object_delay.count");
    // 15 s at 20 a second: a standard deviation of 17.
    assert!((count - 300.0).abs() < 60.0, "{count} objects");
    assert_eq!(run.fractions["files.undelivered"].hits, 0);
}

#[test]
fn frames_are_discarded_after_their_playout_deadline() {
    // Every fourth frame has 60 kB, which take 24 ms and more.
    let frames: Arc<[(Duration, u32)]> = (0..4)
        .map(|i| (ms(33) * i, if i == 0 { 60_000 } else { 5_000 }))
        .collect();
    let video = |playout| {
        let frames = Arc::clone(&frames);
        let load = Load::Video {
            frames,
            period: ms(132),
            playout,
        };
        workload("video", load)
    };
    let run = over_one_link(video(ms(32)));
    let discarded = value(&run, "video.frames_discarded");
    assert!((discarded - 0.25).abs() < 0.01, "{discarded} discarded");
    assert_eq!(
        run.fractions["video.undelivered"].hits, 0,
        "late, but not lost"
    );
    let run = over_one_link(video(ms(80)));
    assert_eq!(value(&run, "video.frames_discarded"), 0.0);
}

#[test]
fn a_closed_loop_goes_as_fast_as_its_replies() {
    let load = Load::Offload {
        steps: [(25_000, 1_000, ms(20))].into(),
    };
    let run = over_one_link(workload("vision", load));
    let (least, count) = (
        value(&run, "vision.reply_delay.min_ms"),
        value(&run, "vision.reply_delay.count"),
    );
    // There: 10 ms on the way and 10 of transmission; back: 10 and 0.4.
    assert!((30.4..33.0).contains(&least), "{least} ms");
    let mean = value(&run, "vision.reply_delay.mean_ms");
    assert!(
        (count * (mean + 20.0) / 15_000.0 - 1.0).abs() < 0.02,
        "{count} rounds of {mean} ms"
    );
}

#[test]
fn bursts_have_the_requests_that_they_should_have() {
    let load = Load::Bursts {
        request: SizeLaw::LogNormal(20_000.0, 5_000.0),
        reply: SizeLaw::Constant(500),
        burst: 5.0,
        every: ms(40),
        pause: ms(300),
    };
    let mut plan = workload("ar", load);
    plan.flow.priority = 1;
    let run = over_one_link(plan);
    // A burst of 5 lasts 4 · 40 ms on average, and 300 ms pass to the next.
    let count = value(&run, "ar.reply_delay.count");
    let expected = 15.0 / 0.460 * 5.0;
    assert!(
        (count / expected - 1.0).abs() < 0.4,
        "{count} replies, some {expected} expected"
    );
    let least = value(&run, "ar.reply_delay.min_ms");
    assert!(least > 22.0, "{least} ms");
    assert_eq!(run.fractions["ar.undelivered"].hits, 0);
}

#[test]
fn a_page_renders_when_what_blocks_it_is_there_and_loads_with_its_last_object() {
    let object = |size, after, think, connection, blocking| WebObject {
        size,
        after,
        think: ms(think),
        connection,
        priority: 3,
        blocking,
    };
    let page = [
        object(5_000, None, 40, 0, true),
        object(25_000, Some(0), 5, 0, true),
        object(1_000, Some(0), 100, 1, false),
        object(1_000, Some(2), 50, 1, false),
    ];
    let load = Load::Web {
        reopen: false,
        page: page.into(),
        pause: ms(200),
    };
    let run = over_one_link(workload("page", load));
    let (render, loaded) = (
        value(&run, "page.page_render_time.min_ms"),
        value(&run, "page.page_load_time.min_ms"),
    );
    // Each object: 20 ms of way, 0.16 ms for the request, thinking, and 0.4 ms a kB.
    let first = 20.2 + 40.0 + 2.0;
    let rendered = first + 20.2 + 5.0 + 10.0;
    assert!(
        (rendered - 0.3..rendered + 4.0).contains(&render),
        "{render} ms, not {rendered}"
    );
    let all = first + 20.2 + 100.4 + 20.2 + 50.4;
    assert!(
        (all - 0.3..all + 4.0).contains(&loaded),
        "{loaded} ms, not {all}"
    );
    let count = value(&run, "page.page_load_time.count");
    assert!(
        (count * (all + 200.0) / 15_000.0 - 1.0).abs() < 0.05,
        "{count} loads"
    );
}

#[test]
fn tcp_inside_a_session_uses_both_links() {
    let links = ["a", "b"].map(|n| link(n, "rate=10mbit,delay=10ms,queue=60ms"));
    let load = Load::Tcp {
        congestion: "cubic".to_owned(),
        bytes: None,
        beyond: Duration::ZERO,
    };
    let tcp = over_packets(workload("tcp", load), true);
    let scenario = scenario(links.into(), vec![session("main", 2, vec![tcp])]);
    let run = run(&scenario, "edpf", 1);
    let goodput = value(&run, "tcp.goodput_mbps");
    // 1100 of 1200 bytes are its payload: 18.3 Mb/s at best.
    assert!(goodput > 15.0, "{goodput} Mb/s");
    assert_eq!(unknown_values(&scenario, &run), Vec::<String>::new());
}

#[test]
fn a_workload_that_starts_late_and_stops_early_does_so() {
    let mut live = constant("live", 1, 1_000);
    live.starts = Instant::ZERO + secs(8);
    live.stops = Some(Instant::ZERO + secs(12));
    let run = over_one_link(live);
    // 125 a second for 4 s.
    assert_eq!(value(&run, "live.in_order_delay.count"), 500.0);
}

#[test]
fn what_a_full_flow_refuses_is_counted() {
    let mut flood = over_packets(constant("flood", 40, 1_000), true);
    flood.flow.lifetime = Some(ms(500));
    let links = vec![link("a", "rate=20mbit,delay=10ms,queue=200ms")];
    let mut scenario = scenario(links, vec![session("main", 1, vec![flood])]);
    scenario.sessions[0].config.send_buffer = 100_000;
    let run = run(&scenario, "min-rtt", 1);
    let (refused, lost) = (
        value(&run, "flood.refused"),
        value(&run, "flood.undelivered"),
    );
    // 40 Mb/s into 20, of which some 98 % are payload.
    assert!((0.48..0.55).contains(&refused), "{refused} refused");
    assert!(
        (lost - refused).abs() < 0.03,
        "{lost} undelivered, {refused} refused"
    );
}
