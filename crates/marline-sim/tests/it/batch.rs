//! How many datagrams a driver hands over before it polls must not matter to applications.

use marline_proto::Config;
use marline_sim::End;

use crate::kit::{Lab, ms, secs};

/// Bytes and messages read at both ends over links that bring datagrams in bunches.
fn read(seed: u64, one_by_one: bool) -> Vec<u64> {
    let mut lab = Lab::new(seed, &Config::default());
    lab.world.set_one_by_one(one_by_one);
    // Arrivals pile up in outages that hold them, and where a late packet holds the next.
    let bunchy = "delay=20ms,jitter=15ms,loss=2%,dup=5%,outage=random:300ms+60ms,outage-mode=hold";
    lab.path(bunchy);
    lab.path(&format!("rate=30mbit,queue=200ms,{bunchy}"));
    let flows = [
        (End::Server, lab.stream(End::Client, 600_000)),
        (End::Client, lab.stream(End::Server, 300_000)),
        (End::Server, lab.messages(End::Client, 3_000, ms(3), 200)),
        (End::Client, lab.messages(End::Server, 40, ms(1), 900)),
    ];
    lab.finish_within(secs(60));
    let read = flows.map(|(end, flow)| lab.inbox(end, flow).read);
    lab.close(End::Client);
    read.into()
}

#[test]
fn batches_and_single_datagrams_deliver_the_same() {
    for seed in 0..40 {
        let expected = [600_000, 300_000, 200, 900];
        assert_eq!(read(seed, false), expected, "in batches, seed {seed}");
        assert_eq!(read(seed, true), expected, "one by one, seed {seed}");
    }
}
