//! τ as status shows it: what the paths lose sets it, and nothing shows where nothing is coded.

use marline_fec::analysis;
use marline_proto::wire::FlowId;

use super::*;

/// τ of the flow at both ends, every 100 ms of a live stream of 8 Mb/s from its third second on.
fn shown(
    seed: u64,
    scheduler: &str,
    (client, server): (Config, Config),
    link: &str,
) -> Vec<[Option<u32>; 2]> {
    let mut lab = Lab::with(seed, client, server);
    for _ in 0..2 {
        lab.path_with(link, CLEAN, PathParams::default());
    }
    lab.run_for(secs(1));
    let mut outbox = Outbox::trickle(lab.now(), 8_000_000, 1_000, ms(1));
    outbox.finish = false;
    let options = options(FlowKind::Stream, scheduler.parse().expect("a scheduler"));
    let flow = lab.open(End::Client, &options, outbox);
    lab.run_for(secs(2));
    let mut seen = Vec::new();
    for _ in 0..60 {
        lab.run_for(ms(100));
        seen.push([End::Client, End::Server].map(|end| interval(&mut lab, end, flow)));
    }
    seen
}

fn interval(lab: &mut Lab, end: End, flow: FlowId) -> Option<u32> {
    let flows = lab.world.session(end).stats().flows;
    let found = flows.iter().find(|found| found.id == flow);
    found.expect("the flow is open").coding_interval
}

const CLEAN: &str = "rate=10mbit,delay=25ms,queue=200ms";

fn both() -> (Config, Config) {
    (Config::default(), Config::default())
}

#[test]
fn where_packets_are_lost_tau_follows_the_law() {
    for loss in [0.1, 0.04] {
        // Both paths lose alike, and packets may wait for half an interval.
        let law = |loss: f64| f64::from(analysis::interval(loss, loss, 0.5).expect("it codes"));
        // Six seconds of 1000 packets a second and the repair symbols: four standard errors.
        let error = 4.0 * (loss * (1.0 - loss) / 6_000.0_f64).sqrt();
        let (least, most) = (law(loss + error), law(loss - error));
        for scheduler in ["mend", "s-edpf"] {
            let link = format!("{CLEAN},loss={}%", 100.0 * loss);
            let seen = shown(11, scheduler, both(), &link);
            let taus: Vec<f64> = seen
                .iter()
                .filter_map(|[tau, _]| tau.map(f64::from))
                .collect();
            assert!(taus.len() >= 54, "{scheduler} at {loss}: {seen:?}");
            // The mean of 1/τ: the share of repair symbols, which is in proportion to the loss.
            let share = taus.iter().map(|tau| 1.0 / tau).sum::<f64>() / taus.len() as f64;
            let tau = 1.0 / share;
            assert!(
                (least..=most).contains(&tau),
                "{scheduler} at {loss}: {tau}, {least} to {most}"
            );
            // The receiver sends nothing on this flow, so it codes nothing.
            assert!(seen.iter().all(|[_, back]| back.is_none()), "{seen:?}");
        }
    }
}

#[test]
fn nothing_shows_where_nothing_is_coded() {
    for scheduler in ["mend", "s-edpf"] {
        let seen = shown(12, scheduler, both(), CLEAN);
        assert!(
            seen.iter().all(|pair| *pair == [None; 2]),
            "{scheduler}: {seen:?}"
        );
    }
    let lossy = format!("{CLEAN},loss=10%");
    let seen = shown(12, "mend:tau=off", both(), &lossy);
    assert!(seen.iter().all(|[tau, _]| tau.is_none()), "{seen:?}");
    // Chosen by hand it is what was chosen, unless the peer does not decode.
    let seen = shown(12, "mend:tau=16", both(), &lossy);
    assert!(seen.iter().all(|[tau, _]| *tau == Some(16)), "{seen:?}");
    let deaf = Config {
        code_flows: 0,
        ..Config::default()
    };
    let seen = shown(12, "mend:tau=16", (Config::default(), deaf), &lossy);
    assert!(seen.iter().all(|[tau, _]| tau.is_none()), "{seen:?}");
}
