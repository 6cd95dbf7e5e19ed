//! Rates that an application says it needs.

use marline::endpoint::RateReport;
use marline_base::Rate;
use marline_lab::emulate::Direction;
use tokio::time::sleep;

use super::*;

const NARROW: &str = "rate=500kbit,delay=5ms,queue=100ms";
const WIDE: &str = "rate=100mbit,delay=5ms,queue=100ms";
/// Twice what the narrow links carry.
const NEEDED: Rate = Rate::from_mbps(2);

/// Writes a little more than is needed until there is report of it.
async fn report(flow: &Packets) -> Option<RateReport> {
    let write = async {
        loop {
            flow.send(Bytes::from_static(&[0; 1_316])).await.unwrap();
            sleep(Duration::from_millis(5)).await;
        }
    };
    soon(async {
        tokio::select! {
            report = flow.rate_report() => report,
            () = write => unreachable!("it writes for ever"),
        }
    })
    .await
}

#[tokio::test]
async fn an_application_learns_that_the_paths_carry_less_than_it_needs_and_that_they_do_again() {
    let world = World::start();
    let link = || {
        let config = EmulatorConfig::new(world.addr(), NARROW.parse().unwrap());
        Emulator::start(config).unwrap()
    };
    let links = [link(), link()];
    let client = world.connect(&[&through(&links[0], "a"), &through(&links[1], "b")]);
    for name in ["a", "b"] {
        active(&client, name).await;
    }
    // Without a lifetime nobody measures what it needs: there is report because it says so, or
    // there is none.
    let flow: Packets = client.open_packets(target()).await.unwrap();
    flow.set_needed_rate(Some(NEEDED));
    let Some(RateReport::Below { capacity }) = report(&flow).await else {
        panic!("the links carry half of it");
    };
    assert!(capacity < NEEDED, "{capacity}");
    for link in &links {
        let wide = WIDE.parse().unwrap();
        link.reconfigure(Direction::Up, wide).unwrap();
    }
    // It may hear of other rates before.
    while report(&flow).await != Some(RateReport::Met) {}
    client.stop("the test is over").await;
    assert_eq!(soon(flow.rate_report()).await, None);
}
