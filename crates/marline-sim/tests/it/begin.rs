//! The credit that streams begin with on a session that has carried others.

use marline_proto::wire::FlowKind;
use marline_proto::{Config, FlowOptions};
use marline_sim::{Duration, End};

use crate::kit::{Lab, Outbox, secs};

/// How long a reply of 200 kB takes over paths that have carried a second's worth: to a request on
/// a new stream of the client's.
fn reply(config: &Config) -> Duration {
    let mut lab = Lab::new(1, config);
    lab.path("rate=50mbit,delay=20ms,queue=100ms");
    lab.path("rate=50mbit,delay=25ms,queue=100ms");
    lab.run_for(secs(1));
    for response in [5_000_000, 200_000] {
        let begun = lab.now();
        let options = FlowOptions::new(FlowKind::Stream);
        let flow = lab.open(End::Client, &options, Outbox::stream(100));
        lab.reply(End::Client, flow, Outbox::stream(response));
        lab.run_until(begun + secs(20), |lab| {
            lab.inbox(End::Client, flow).finished
        });
        assert!(lab.inbox(End::Client, flow).finished, "no reply\n{lab}");
        if response == 200_000 {
            return lab.now().since(begun);
        }
        lab.run_for(secs(1));
    }
    unreachable!("the second one is the last")
}

#[test]
fn a_reply_has_the_credit_of_what_came_before() {
    let blind = Config {
        begin_blind: true,
        ..Config::default()
    };
    let (new, blind) = (reply(&Config::default()), reply(&blind));
    // A round trip and 200 kB at 100 Mb/s are 56 ms.
    assert!(new < Duration::from_millis(75), "{new:?}");
    assert!(blind > new.mul_f64(1.4), "{blind:?} blind, else {new:?}");
}
