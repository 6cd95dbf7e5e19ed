//! What the code is for, and what it costs: these fail if it is silently off.

use super::*;

/// Two links, each with a tenth of the packets lost on the way there.
const LOSSY: [&str; 2] = ["rate=10mbit,delay=25ms,loss=10%,queue=200ms"; 2];
const CLEAN: &str = "rate=10mbit,delay=25ms,queue=200ms";

#[test]
fn a_coded_stream_does_not_wait_for_round_trips() {
    for seed in [5, 6] {
        let measure = |scheduler| {
            let mut lab = lab_over(seed, &Config::default(), &LOSSY, CLEAN);
            let (flow, counters) = live(&mut lab, scheduler);
            let delays = delays(&lab, flow);
            let at = |q| quantile(&delays, q);
            (at(0.5), at(0.95), at(0.99), counters)
        };
        // A retransmission takes a round trip of 50 ms, and every second piece waits for one.
        let (p50, p95, p99, plain) = measure("tau-0");
        assert!(p50 > ms(40) && p95 > ms(100), "{p50:?} {p95:?} {p99:?}");
        assert_eq!(plain.repair_symbols, 0);
        assert!(plain.retransmitted_bytes > 700_000, "{plain:?}");
        // Half of the losses that the code could bear, and nearly nothing is sent again.
        let (p50, p95, p99, coded) = measure("tau-5");
        assert!(
            p50 <= ms(1) && p95 <= ms(25) && p99 <= ms(60),
            "{p50:?} {p95:?} {p99:?}"
        );
        assert!(coded.retransmitted_bytes < 20_000, "{coded:?}");
        assert!(coded.repairs_used > 600, "{coded:?}");
        // With more it hardly ever takes longer than a packet or two.
        let (_, p95, p99, _) = measure("tau-3");
        assert!(p95 <= ms(5) && p99 <= ms(12), "{p95:?} {p99:?}");
    }
}

#[test]
fn repair_symbols_are_counted_as_used_wasted_or_lost() {
    let mut lab = lab_over(7, &Config::default(), &LOSSY, CLEAN);
    let (flow, sent) = live(&mut lab, "tau-5");
    let received = counters(&mut lab, End::Server, flow);
    assert_eq!(sent.repairs_used, received.recovered_symbols);
    assert_eq!(
        sent.repairs_used + sent.repairs_wasted,
        received.received_repairs
    );
    let lost = sent.repair_symbols - received.received_repairs;
    let tenth = sent.repair_symbols / 10;
    assert!((tenth / 2..2 * tenth).contains(&lost), "{lost} of {sent:?}");
    // A fifth of all symbols repairs, a quarter of the sources.
    let redundancy = sent.redundancy();
    assert!((0.25..0.35).contains(&redundancy), "{redundancy}");
}

#[test]
fn a_budget_caps_what_a_scheduler_asks_for() {
    for (budget, most) in [(0.1, 0.11), (0.0, 0.0)] {
        let config = Config {
            repair_budget: Some(budget),
            ..Config::default()
        };
        let mut lab = lab_over(8, &config, &LOSSY, CLEAN);
        let (_, counters) = live(&mut lab, "tau-3");
        let spent = counters.repair_bytes as f64 / counters.source_bytes as f64;
        assert!(spent <= most, "{spent} of {budget}");
        assert!(spent >= 0.8 * budget, "{spent} of {budget}");
    }
    // It may change while the flow runs.
    let mut lab = lab_over(8, &Config::default(), &LOSSY, CLEAN);
    let flow = open_live(&mut lab, "tau-3", PIECES);
    lab.run_for(secs(2));
    lab.world.client.set_repair_budget(flow, 0.0);
    let before = counters(&mut lab, End::Client, flow);
    lab.run_for(secs(2));
    let after = counters(&mut lab, End::Client, flow);
    assert!(before.repair_symbols > 500, "{before:?}");
    let more = after.repair_symbols - before.repair_symbols;
    assert!(more <= 64, "{more}: what waited for a path may still leave");
}

#[test]
fn many_short_flows_have_one_budget() {
    let config = Config {
        repair_budget: Some(0.1),
        ..Config::default()
    };
    let mut lab = lab_over(11, &config, &LOSSY, CLEAN);
    // Single packets, at whose loss nothing but a timer would hint.
    let mut flows = Vec::new();
    for _ in 0..60 {
        let mut outbox = Outbox::trickle(lab.now(), 1_000, 1_000, ms(1));
        outbox.finish = false;
        let options = options(FlowKind::Stream, "mend".parse().unwrap());
        flows.push(lab.open(End::Client, &options, outbox));
        lab.run_for(ms(50));
    }
    let mut spent = (0, 0);
    for flow in flows {
        let counters = counters(&mut lab, End::Client, flow);
        spent.0 += counters.repair_bytes;
        spent.1 += counters.source_bytes;
    }
    let (repairs, sources) = spent;
    assert!(repairs <= 3_000 + sources / 10, "{spent:?}");
    assert!(repairs >= 2_000, "{spent:?}: there is something to lend");
}

#[test]
fn messages_are_coded_too() {
    let measure = |scheduler| {
        let mut lab = lab_over(9, &Config::default(), &LOSSY, CLEAN);
        let plan = crate::kit::Messages {
            size: 200,
            size_max: 1_900,
            count: 6_000,
            every: ms(1),
        };
        let outbox = Outbox::messages(lab.now(), plan);
        let options = options(FlowKind::Packets, tau(scheduler));
        let flow = lab.open(End::Client, &options, outbox);
        lab.finish_within(secs(12));
        let inbox = lab.inbox(End::Server, flow);
        assert_eq!(inbox.read, 6_000);
        let mut delays: Vec<Duration> = inbox.delays.iter().map(|(_, d)| *d).collect();
        let mut delays = delays.split_off(SETTLED as usize);
        delays.sort_unstable();
        quantile(&delays, 0.95)
    };
    let (plain, coded) = (measure("tau-0"), measure("tau-3"));
    assert!(plain > ms(100) && coded < ms(45), "{plain:?}, {coded:?}");
}

#[test]
fn idle_coding_covers_what_no_later_symbol_would() {
    // Messages that come alone: nothing follows that could reveal a loss but a timer.
    let measure = |scheduler, seed| {
        let config = Config {
            repair_budget: Some(4.0),
            ..Config::default()
        };
        let mut lab = lab_over(seed, &config, &LOSSY, CLEAN);
        let outbox = Outbox::trickle(lab.now(), 500 * 400, 500, ms(40));
        let options = options(FlowKind::Stream, tau(scheduler));
        let flow = lab.open(End::Client, &options, outbox);
        lab.finish_within(secs(30));
        let inbox = lab.inbox(End::Server, flow);
        let due = |read: &u64| Instant::from_millis(40 * (read / 500 - 1));
        let trips = inbox.progress.iter().map(|(at, read)| at.since(due(read)));
        let quickest = trips.clone().min().expect("something was read");
        let late = trips.filter(|trip| *trip > quickest + ms(20));
        late.count()
    };
    let of_all = |scheduler| (10..22).map(|seed| measure(scheduler, seed)).sum::<usize>();
    let (plain, idle) = (of_all("tau-0"), of_all("tau-8-idle"));
    assert!(
        plain >= 480 && 4 * idle <= plain,
        "{plain} and {idle} of 4800 late"
    );
}
