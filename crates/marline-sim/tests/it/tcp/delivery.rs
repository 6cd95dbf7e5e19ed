//! Every byte arrives once, in order, whatever the links do, and no transfer stops for ever.

use marline_link::LinkConfig;
use marline_sim::Instant;
use marline_sim::tcp::{TcpConfig, TcpCounters};
use proptest::prelude::*;

use super::pipe::{Pipe, link, secs};

/// A link that loses, reorders, duplicates and goes dark.
fn hostile() -> impl Strategy<Value = LinkConfig> {
    let queue = prop_oneof![Just("3p"), Just("40p"), Just("unlimited")];
    let outage = prop_oneof![
        2 => Just(""),
        1 => Just(",outage=random:700ms+300ms"),
        1 => Just(",outage=random:2s+900ms,outage-mode=hold"),
    ];
    (
        (1_u32..50, 0_u32..60, 0_u32..40),
        (0_u32..8, 0_u32..5, any::<bool>()),
        (queue, outage),
    )
        .prop_map(
            |((mbps, delay, jitter), (loss, dup, overtaking), (queue, outage))| {
                let overtaking = if overtaking { ",overtake=yes" } else { "" };
                link(&format!(
                    "rate={mbps}mbit,delay={delay}ms,jitter={jitter}ms,loss={loss}%,dup={dup}%,\
                 queue={queue}{outage}{overtaking}"
                ))
            },
        )
}

/// Moves `bytes`; how it went, and when it was done.
fn transfer(
    links: &(LinkConfig, LinkConfig),
    controller: &str,
    bytes: u64,
    seed: u64,
) -> Result<(TcpCounters, Instant), TestCaseError> {
    let mut pipe = Pipe::new(links.0.clone(), links.1.clone(), seed);
    let config = TcpConfig {
        limit: Some(bytes),
        window: 128 << 10,
        ..TcpConfig::new(controller)
    };
    pipe.open(&config, seed);
    let done = pipe.run_while(secs(3_600), |pipe| {
        let flow = &pipe.flows[0];
        // The window bounds what both ends remember.
        assert!(flow.receiver.held() <= config.window);
        assert!(flow.sender.in_flight() <= config.window);
        !flow.sender.is_done()
    });
    let flow = &pipe.flows[0];
    prop_assert!(done, "not done after an hour: {:?}", flow.sender);
    prop_assert_eq!(flow.receiver.delivered(), bytes);
    prop_assert_eq!(flow.receiver.held(), 0);
    prop_assert_eq!(flow.sender.in_flight(), 0);
    prop_assert_eq!(flow.sender.poll_timeout(), None);
    Ok((*flow.sender.counters(), flow.released.last().unwrap().0))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn finite_transfers_complete(
        links in (hostile(), hostile()),
        controller in prop::sample::select(vec!["new-reno", "cubic", "bbr", "bbr-gentle"]),
        bytes in 1_u64..600_000,
        seed in any::<u64>(),
    ) {
        let once = transfer(&links, controller, bytes, seed)?;
        prop_assert_eq!(once, transfer(&links, controller, bytes, seed)?);
    }
}
