//! What repair symbols are good for: with them a block that loses packets is whole in time,
//! without them it is late.

use std::sync::atomic::{AtomicU32, Ordering};

use marline_proto::Config;
use marline_proto::congestion::Congestion;
use marline_proto::flow::Fate;
use marline_proto::sched::Entry;
use marline_proto::sched::{Choice, Plan, Scheduler};
use marline_proto::wire::FlowKind;

use super::lab::Units;
use crate::kit::{ms, secs};

macro_rules! repairing {
    ($name:ident, $text:literal, $repairs:expr) => {
        static $name: Entry = Entry {
            name: $text,
            publication: "none",
            help: "a unit at a time, over all paths in turn, then repair symbols",
            kinds: &[FlowKind::Blocks, FlowKind::Objects],
            options: &[],
            new: |_| {
                Box::new(Repairing {
                    fraction: $repairs,
                    turn: 0,
                })
            },
        };
    };
}

repairing!(PLAIN, "plain", 0.0);
repairing!(QUARTER, "quarter", 0.25);
repairing!(DOUBLE, "double", 1.0);

/// How many plans saw several units at once.
static SEVERAL: AtomicU32 = AtomicU32::new(0);

/// Sends whatever there is at once, and a fraction of it again as repair symbols.
#[derive(Debug)]
struct Repairing {
    fraction: f64,
    turn: usize,
}

impl Scheduler for Repairing {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        let paths = plan.paths().len();
        SEVERAL.fetch_add(u32::from(plan.units().len() > 1), Ordering::Relaxed);
        while plan.next_len().is_some() && paths > 0 {
            self.turn += 1;
            plan.send(self.turn % paths);
        }
        for unit in plan.units() {
            let Some(code) = unit.code.filter(|_| paths > 0 && unit.len == 0) else {
                continue;
            };
            let wanted = (f64::from(code.symbols) * self.fraction).ceil() as u32;
            for _ in code.repairs..wanted {
                self.turn += 1;
                plan.repair_of(unit.id, self.turn % paths)
                    .expect("there are some left");
            }
        }
    }

    fn codes(&self) -> bool {
        self.fraction > 0.0
    }
}

/// How many of 120 blocks were in time, late and lost over two links that lose 4 %,
/// with a deadline that leaves no time for a retransmission.
fn fates(entry: &'static Entry, seed: u64, len: usize, rate: &str) -> [usize; 3] {
    let link = &*format!("rate={rate},delay=40ms,loss=4%,queue=200ms");
    let config = Config {
        congestion: Congestion::none(),
        ..Config::default()
    };
    let scheduler = Some(Choice::from(entry));
    let mut units = Units::over(seed, &config, FlowKind::Blocks, scheduler, &[link, link]);
    units.block(1_000, None).expect("there is room");
    units.run_for(ms(500));
    for _ in 0..120 {
        units.block(len, Some(ms(70))).expect("there is room");
        units.run_for(ms(25));
    }
    units.finish_within(secs(10));
    units.check_fates();
    let mut counts = [0; 3];
    for (fate, _) in units.settled.values() {
        match fate {
            Fate::OnTime => counts[0] += 1,
            Fate::Late => counts[1] += 1,
            Fate::Lost => counts[2] += 1,
            other => panic!("{other:?}"),
        }
    }
    counts
}

#[test]
fn without_repair_symbols_a_block_that_loses_packets_is_not_in_time() {
    for seed in 0..2 {
        // 21 symbols: none is lost of 0.96^21 = 42 %.
        let plain = fates(&PLAIN, seed, 24_000, "50mbit");
        assert!(plain[1] + plain[2] > 45, "{plain:?}");
        // Of 27 more than 6 are lost once in 10^4.
        let repaired = fates(&QUARTER, seed, 24_000, "50mbit");
        assert!(repaired[1] + repaired[2] <= 1, "{repaired:?}");
    }
    assert!(
        SEVERAL.load(Ordering::Relaxed) > 0,
        "schedulers see several units at once"
    );
}

#[test]
fn blocks_of_more_than_256_symbols_are_rebuilt_too() {
    // 310 symbols and 78 repair symbols, of which 16 in all are lost: the code is random.
    let fates = fates(&QUARTER, 3, 350_000, "300mbit");
    assert!(fates[1] + fates[2] <= 1, "{fates:?}");
}

/// Repair symbols of objects spare retransmissions, and objects arrive however many are lost.
#[test]
fn objects_with_repair_symbols_arrive_too() {
    let config = Config {
        congestion: Congestion::none(),
        ..Config::default()
    };
    let link = "rate=20mbit,delay=30ms,loss=20%,queue=500ms";
    let mut worst = Vec::new();
    for entry in [&PLAIN, &DOUBLE] {
        let scheduler = Some(Choice::from(entry));
        let mut units = Units::over(9, &config, FlowKind::Objects, scheduler, &[link]);
        for _ in 0..40 {
            units
                .object(20_000, &Default::default())
                .expect("there is room");
            units.run_for(ms(40));
        }
        let [_, received] = units.counters();
        let flow = units.lab.world.client.flow_counters(units.flow);
        let repairs = flow.map_or(0, |counters| counters.repair_symbols);
        assert_eq!(repairs > 0, entry.name == "double");
        assert_eq!(received.rebuilt_symbols > 0, entry.name == "double");
        units.finish_within(secs(10));
        units.check_fates();
        assert_eq!(units.whole.len(), 40);
        worst.push(units.quantile(.., 0.9));
    }
    assert!(worst[1] + ms(40) < worst[0], "{worst:?}");
}
