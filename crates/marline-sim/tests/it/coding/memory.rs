//! What decoders remember follows from the rate of a flow and the time that its repair symbols
//! take, not from the window of the code.

use super::*;

const LOSSY: [&str; 2] = [
    "rate=10mbit,delay=25ms,loss=5%,queue=200ms",
    "rate=10mbit,delay=60ms,loss=5%,queue=200ms",
];
const CLEAN: &str = "rate=10mbit,delay=25ms,queue=200ms";

/// A stream of pieces of 1000 bytes with this many milliseconds between them, for a minute: what
/// the server holds at most while it goes on, and the server's counters.
fn held_at(every: u64) -> (u64, FlowCounters) {
    let mut lab = lab_over(3, &Config::default(), &LOSSY, CLEAN);
    let empty = lab.world.server.held();
    let mut outbox = Outbox::trickle(lab.now(), 1_000 * 60_000 / every, 1_000, ms(every));
    outbox.finish = false;
    let options = options(FlowKind::Stream, tau("tau-5"));
    let flow = lab.open(End::Client, &options, outbox);
    let mut most = 0;
    for _ in 0..600 {
        lab.run_for(ms(100));
        most = most.max(lab.world.server.held() - empty);
    }
    (most, counters(&mut lab, End::Server, flow))
}

#[test]
fn a_slow_flow_holds_few_symbols() {
    // A decoder remembers two probe timeouts of the slower path, and what follows a symbol that has
    // to be sent again until it comes. The code's ring has 512 places: 800 kB.
    for (every, most) in [(50, 120_000), (10, 250_000)] {
        let (held, counters) = held_at(every);
        assert!(
            held <= most,
            "{held} bytes at a packet each {every} ms: {counters:?}"
        );
        // And yet it knows what repair symbols combine: one loss in twenty.
        let losses = 60_000 / every / 20;
        assert!(counters.recovered_symbols > losses / 2, "{counters:?}");
    }
}
