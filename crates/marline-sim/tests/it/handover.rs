//! A live stream over two links of which the better one goes dark: nobody should notice.

use marline_proto::wire::FlowKind;
use marline_proto::{Config, FlowOptions};
use marline_sim::{Duration, End, Instant};

use crate::kit::{Lab, Messages, Outbox, ms, secs};

/// 8 Mb/s of messages of 1000 bytes for 20 s over links of 20 Mb/s, RTT 30 and 50 ms; the better
/// one is dark from 8 to 11 s.
fn handover(seed: u64, options: &FlowOptions) -> (Duration, Duration, Lab) {
    let mut lab = Lab::new(seed, &Config::default());
    let better = lab.path("rate=20mbit,delay=15ms,jitter=1ms,queue=100ms");
    lab.path("rate=20mbit,delay=25ms,jitter=1ms,queue=100ms");
    lab.run_for(ms(500));
    let plan = Messages {
        size: 1_000,
        size_max: 1_000,
        count: 20_000,
        every: ms(1),
    };
    let outbox = Outbox::messages(lab.now(), plan);
    let flow = lab.open(End::Client, options, outbox);
    let start = lab.now();
    lab.run_until(start + secs(8), |_| false);
    lab.dark(better, true);
    lab.run_until(start + secs(11), |_| false);
    lab.dark(better, false);
    lab.finish_within(secs(12));
    let inbox = lab.inbox(End::Server, flow);
    assert_eq!(inbox.read, 20_000, "messages were lost");
    (inbox.silence, inbox.quantile(0.99), lab)
}

#[test]
fn a_dark_link_is_not_noticed_by_a_live_flow() {
    for scheduler in ["edpf", "min-rtt", "round-robin", "redundant"] {
        for seed in 0..3 {
            let options = FlowOptions {
                scheduler: Some(scheduler),
                ..FlowOptions::new(FlowKind::Packets)
            };
            let (silence, p99, lab) = handover(seed, &options);
            println!("{scheduler} {seed} {silence:?} {p99:?} worst {:?} at {:?}", lab.inbox(End::Server, lab.flows(End::Server)[0]).worst(), lab.inbox(End::Server, lab.flows(End::Server)[0]).silence_at);
           
        }
    }
}
