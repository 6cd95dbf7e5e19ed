//! What a new flow knows of paths that others have used.

use marline_proto::wire::FlowKind;

use super::*;
use crate::kit::ms;

/// Which flow a batch goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Same,
    New,
    /// A new one of a session whose flows learn by themselves.
    Blind,
}

/// Time (ms) of 100 kB, after two seconds of traffic: the median of three batches, and the mean of
/// it over eight seeds.
fn batch(links: [&str; 2], flow: FlowKind, mbps: Option<u64>, on: On) -> f64 {
    let load = Load::Batches {
        size: 100_000,
        rate: mbps.map(Rate::from_mbps),
        before: secs(2),
        pause: ms(300),
        reopen: on != On::Same,
    };
    let mut workload = workload("batch", load);
    workload.flow.kind = flow;
    workload.flow.ordered = !flow.has_units();
    let mut session = session("main", 2, vec![workload]);
    session.config = Config {
        begin_blind: on == On::Blind,
        ..Config::default()
    };
    if flow == FlowKind::Blocks {
        session.config.congestion = "none".parse().expect("a controller");
        session.workloads[0].flow.lifetime = Some(ms(500));
    }
    let [a, b] = links;
    let links = vec![link("a", a), link("b", b)];
    let scenario = Scenario {
        duration: ms(4_000),
        warmup: secs(2),
        ..scenario(links, vec![session])
    };
    let one = |seed| {
        let run = run(&scenario, "auto", seed);
        assert!(value(&run, "batch.batch_delay.count") >= 3.0, "seed {seed}");
        value(&run, "batch.batch_delay.p50_ms")
    };
    (1..=8).map(one).sum::<f64>() / 8.0
}

/// The session knows how much arrives in a round trip: by their reserve alone streams would wait
/// for credit after a third of this.
#[test]
fn a_new_stream_is_as_quick_as_the_one_that_carried() {
    for links in [
        ["rate=20mbit,delay=20ms,queue=200ms"; 2],
        [
            "rate=20mbit,delay=20ms,queue=200ms,loss=1%",
            "rate=10mbit,delay=40ms,jitter=8ms,queue=200ms",
        ],
    ] {
        let [same, new, blind] =
            [On::Same, On::New, On::Blind].map(|on| batch(links, FlowKind::Stream, None, on));
        assert!(new < 1.1 * same, "{links:?}: {new}, {same} on the same");
        assert!(blind > 1.4 * new, "{links:?}: {new}, {blind} blind");
    }
}

/// Where nothing is known of what paths carry, both get half of a block, the far one, too.
#[test]
fn new_blocks_use_the_paths_that_others_have_used() {
    let links = [
        "rate=20mbit,delay=20ms,queue=200ms",
        "rate=20mbit,delay=70ms,queue=200ms",
    ];
    let [same, new, blind] =
        [On::Same, On::New, On::Blind].map(|on| batch(links, FlowKind::Blocks, Some(10), on));
    assert!(new < 1.1 * same, "{new} ms, {same} on the same flow");
    assert!(blind > 1.1 * new, "{new} ms, {blind} blind");
}
