//! Coded streams while links fail in other ways than by losing packets.

use super::*;

const LINKS: [&str; 2] = ["rate=20mbit,delay=25ms,loss=5%,queue=200ms"; 2];
/// What is known over many draws only is the mean of so many.
const SEEDS: u64 = 8;

#[test]
fn lost_acknowledgements_do_no_harm() {
    // What arrived need not be repaired: all the sender lacks is the news.
    let links = ["rate=20mbit,delay=25ms,queue=200ms"; 2];
    let back = "rate=20mbit,delay=25ms,loss=10%,queue=200ms";
    let mut lab = lab_over(11, &Config::default(), &links, back);
    let (flow, sent) = live(&mut lab, "tau-8");
    let p99 = quantile(&delays(&lab, flow), 0.99);
    assert!(p99 <= ms(15), "{p99:?}\n{lab}");
    assert!(sent.repairs_used * 10 < sent.repair_symbols, "{sent:?}");
}

#[test]
fn a_path_that_dies_takes_its_repair_symbols_along() {
    let mut lab = lab_over(12, &Config::default(), &LINKS, LINKS[0]);
    let flow = open_live(&mut lab, "tau-5", PIECES);
    let path = lab.world.client.stats().paths[0].id;
    lab.run_for(secs(4));
    lab.dark(path, true);
    lab.run_for(secs(3));
    lab.dark(path, false);
    lab.run_for(secs(4));
    let inbox = lab.inbox(End::Server, flow);
    assert_eq!(inbox.read, 1_000 * PIECES, "{lab}");
    assert!(inbox.silence <= ms(250), "{:?}\n{lab}", inbox.silence);
}

#[test]
fn late_packets_are_repaired_as_lost_ones_are() {
    // Packets overtake each other, by some tens of milliseconds.
    let links = ["rate=20mbit,delay=25ms,jitter=20ms,overtake=yes,queue=200ms"; 2];
    let back = "rate=20mbit,delay=25ms,queue=200ms";
    let measure = |scheduler| {
        let mut p99 = Duration::ZERO;
        let mut sum = FlowCounters::default();
        for seed in 0..SEEDS {
            let mut lab = lab_over(seed, &Config::default(), &links, back);
            let (flow, counters) = live(&mut lab, scheduler);
            p99 += quantile(&delays(&lab, flow), 0.99);
            sum.repairs_used += counters.repairs_used;
            sum.retransmitted_bytes += counters.retransmitted_bytes;
        }
        (p99 / SEEDS as u32, sum)
    };
    let (late, plain) = measure("tau-0");
    let (mended, coded) = measure("tau-3");
    assert!(coded.repairs_used > 500 * SEEDS, "{coded:?}");
    assert!(mended + ms(5) < late, "{mended:?} coded, {late:?} plain");
    // What comes out before it is taken for lost is not sent again for nothing. Without code that
    // is little, too: how late packets may be is learnt.
    let (plain, coded) = (plain.retransmitted_bytes, coded.retransmitted_bytes);
    assert!(
        plain > 10_000 * SEEDS && 4 * coded < plain,
        "{coded} coded, {plain} plain"
    );
}

#[test]
fn a_peer_that_decodes_nothing_gets_no_coded_frame() {
    let (coding, plain) = (
        Config::default(),
        Config {
            code_window: 0,
            ..Config::default()
        },
    );
    for (client, server) in [(coding.clone(), plain.clone()), (plain, coding)] {
        let mut lab = Lab::with(14, client, server);
        for link in LINKS {
            lab.path(link);
        }
        let flow = open_live(&mut lab, "tau-3", 1_000);
        lab.run_for(secs(4));
        assert_eq!(lab.inbox(End::Server, flow).read, 1_000_000, "{lab}");
        let counters = counters(&mut lab, End::Client, flow);
        assert_eq!(counters.repair_symbols, 0);
    }
}

#[test]
fn more_flows_than_are_decoded_at_once_are_carried_without_their_code() {
    let config = Config {
        code_flows: 1,
        ..Config::default()
    };
    let mut lab = lab_over(15, &config, &LINKS, LINKS[0]);
    let coded = open_live(&mut lab, "tau-3", 1_000);
    let plain = open_live(&mut lab, "tau-3", 1_000);
    lab.run_for(secs(5));
    for (flow, is_coded) in [(coded, true), (plain, false)] {
        assert_eq!(lab.inbox(End::Server, flow).read, 1_000_000, "{lab}");
        let counters = counters(&mut lab, End::Client, flow);
        assert_eq!(counters.repair_symbols > 0, is_coded);
    }
}
