//! What would be missed if it were silently off, and has no other test.

use marline_proto::Config;
use marline_sim::End;

use crate::kit::{Lab, ms, secs};

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
