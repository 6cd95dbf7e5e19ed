//! Paths whose carrier controls congestion itself, as the kernel's TCP does.

use marline_base::Rate;
use marline_proto::congestion::{CarrierState, bbr_view};
use marline_proto::path::PathParams;
use marline_sim::End;

use crate::kit::{Lab, ms, secs};

const WINDOW: u64 = 50_000;
/// What the session lets wait in the carrier beyond its window: 8 datagrams or an eighth.
const SPARE: u64 = 8 * 1_200;
const SIZE: u64 = 2_000_000;

fn told(in_flight: u64) -> CarrierState {
    CarrierState {
        view: bbr_view(Rate::from_mbps(20), ms(20), 1.0, 2.0),
        window: WINDOW,
        in_flight,
    }
}

#[test]
fn what_the_carrier_tells_is_the_window_and_nothing_else_opens_it() {
    let mut lab = Lab::new(3, &marline_proto::Config::default());
    let link = "rate=20mbit,delay=10ms";
    let params = PathParams {
        carrier_controls: true,
        ..PathParams::default()
    };
    let path = lab.path_with(link, link, params);
    lab.run_for(ms(200));
    let tell = |lab: &mut Lab, state| {
        let now = lab.now();
        let session = lab.world.session(End::Client);
        session.on_carrier_state(now, path, &state);
    };
    tell(&mut lab, told(0));
    lab.stream(End::Client, SIZE);
    // Everything is acknowledged by the peer, but the carrier has not said that it is gone.
    lab.run_for(secs(3));
    let sent = lab.sent_on(End::Client, path);
    assert!((WINDOW..WINDOW + SPARE + 2_000).contains(&sent), "{sent}");
    // Nor does it let go what it says is still there.
    tell(&mut lab, told(WINDOW + SPARE));
    lab.run_for(secs(3));
    let same = lab.sent_on(End::Client, path);
    assert!(same < sent + 2_000, "{sent} {same}");
    let stats = lab.world.session(End::Client).stats();
    assert_eq!(stats.paths[0].congestion, "kernel-bbr");
    assert!(stats.paths[0].in_flight >= WINDOW + SPARE);
    while !lab.is_done() {
        tell(&mut lab, told(0));
        lab.run_for(ms(20));
        assert!(lab.now() < marline_base::Instant::from_millis(20_000));
    }
    lab.assert_complete();
}
