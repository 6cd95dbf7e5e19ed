//! What would be missed if it were silently off, and has no other test.

use marline_proto::wire::FlowKind;
use marline_proto::{Config, FlowOptions};
use marline_sim::End;

use crate::kit::{Lab, Messages, Outbox, ms, secs};

#[test]
fn lost_packets_are_sent_again_on_the_path_that_delivers_them_first() {
    let mut lab = Lab::new(3, &Config::default());
    lab.path("rate=20mbit,delay=20ms,loss=3%,queue=100ms");
    lab.path("rate=20mbit,delay=200ms,queue=100ms");
    lab.run_for(secs(1));
    let flow = lab.messages(End::Client, 500, ms(4), 2_000);
    lab.finish_within(secs(20));
    let p99 = lab.inbox(End::Server, flow).quantile(0.99);
    assert!(p99 < ms(150), "99 % within {p99:?}\n{lab}");
}

/// A small urgent flow beside a bulk stream, over a quick path that loses packets and one that
/// would carry what the bulk stream has in flight in a second and more. The quick one goes dark.
#[test]
fn an_outage_is_no_burst_of_losses_for_as_long_as_a_slow_path_would_take_for_a_bulk_stream() {
    for seed in 0..6 {
        let mut lab = Lab::new(seed, &Config::default());
        let quick = lab.path("rate=20mbit,delay=10ms,loss=1%,queue=100ms");
        lab.path("rate=500kbit,delay=30ms,queue=200ms");
        lab.run_for(secs(1));
        lab.stream(End::Client, 50_000_000);
        let plan = Messages {
            size: 200,
            size_max: 200,
            count: 400,
            every: ms(10),
        };
        let options = FlowOptions {
            priority: 0,
            ..FlowOptions::new(FlowKind::Packets)
        };
        let flow = lab.open(End::Client, &options, Outbox::messages(lab.now(), plan));
        lab.run_for(secs(2));
        lab.dark(quick, true);
        lab.run_for(secs(3));
        let inbox = lab.inbox(End::Server, flow);
        // A round trip of 20 ms and three more, 30 of slack, 30 over the slow path and 200 of what
        // stands there; more where rescued packets stand there, too. Without a bound nothing comes
        // before the path is dead, after 3 s, if it is suspect at all.
        let latest = inbox.quantile(1.0);
        assert!(
            inbox.read == 400 && latest < secs(1),
            "{seed}: {} within {latest:?}\n{lab}",
            inbox.read
        );
    }
}
