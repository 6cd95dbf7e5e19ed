use alloc::vec;
use alloc::vec::Vec;

use marline_base::{Rate, Rng};

use super::*;
use crate::flow::Symbol;
use crate::path::EmissionKind;
use crate::sched::tests::{Backlog, path};
use crate::sched::{Outcome, SymbolSource, UnitCode};
use crate::wire::PathId;

const SYMBOL: u32 = 1_200;

fn make(text: &str) -> Box<dyn Scheduler> {
    text.parse::<Choice>().unwrap().make()
}

fn paths() -> [PathView; 2] {
    let mut paths = [path(0), path(1)];
    // 1 and 2 ms a symbol.
    paths[0].rate = Rate::from_kbps(9_600);
    paths[1].rate = Rate::from_kbps(4_800);
    for path in &mut paths {
        path.min_rtt = Duration::from_millis(20);
    }
    paths
}

fn sent(scheduler: &mut dyn Scheduler, paths: &mut [PathView], symbols: u64) -> Vec<usize> {
    let mut backlog = Backlog::of(symbols).in_units_of(symbols);
    scheduler.plan(&mut Plan::new(Instant::ZERO, paths, &mut backlog));
    backlog.sent_on().to_vec()
}

fn counts(sent: &[usize]) -> [usize; 2] {
    [0, 1].map(|path| sent.iter().filter(|p| **p == path).count())
}

#[test]
fn a_unit_is_divided_so_that_its_parts_end_together() {
    let mut scheduler = make("sos");
    assert_eq!(counts(&sent(&mut *scheduler, &mut paths(), 30)), [20, 10]);
    // What waits already is in the way: 10 symbols of 1 ms.
    let mut busy = paths();
    busy[0].queued = 10 * u64::from(SYMBOL);
    assert_eq!(counts(&sent(&mut *scheduler, &mut busy, 20)), [10, 10]);
    // A far path is of no use for a small object.
    let mut far = paths();
    far[1].min_rtt = Duration::from_millis(200);
    assert_eq!(counts(&sent(&mut *scheduler, &mut far, 30)), [30, 0]);
    assert_eq!(counts(&sent(&mut *scheduler, &mut [], 30)), [0, 0]);
}

/// Reports to the scheduler packets that arrived this long after each other, in turn (µs).
fn teach(scheduler: &mut dyn Scheduler, path: u64, gaps: &[u64]) {
    let mut at = 1_000_000;
    for n in 0..400_u64 {
        at += gaps[n as usize % gaps.len()];
        let feedback = Feedback {
            symbol: Symbol {
                unit: 0,
                offset: n * u64::from(SYMBOL),
                len: SYMBOL,
            },
            kind: EmissionKind::Source,
            path: PathId(path),
            sent: Instant::from_micros(1_000_000),
            outcome: Outcome::Acked,
            arrived_us: Some(at),
            own_way: true,
        };
        scheduler.on_feedback(Instant::from_micros(at), &feedback);
    }
}

/// One millisecond a packet on average: nothing for nine of ten, and then for all of them.
fn bursts() -> Vec<u64> {
    let mut rng = Rng::new(5);
    let time = |_| if rng.chance(0.1) { 9_100 } else { 100 };
    (0..400).map(time).collect()
}

#[test]
fn a_shaky_path_gets_less_than_its_mean_would_earn() {
    let mut scheduler = make("sos");
    let mut steady = make("sos");
    // It must know how long symbols are.
    sent(&mut *scheduler, &mut paths(), 1);
    sent(&mut *steady, &mut paths(), 1);
    teach(&mut *scheduler, 0, &bursts());
    teach(&mut *steady, 0, &[1_000]);
    teach(&mut *scheduler, 1, &[2_000]);
    teach(&mut *steady, 1, &[2_000]);
    let shaky = counts(&sent(&mut *scheduler, &mut paths(), 30));
    let even = counts(&sent(&mut *steady, &mut paths(), 30));
    assert_eq!(even, [20, 10]);
    assert!(shaky[0] < 16, "{shaky:?}");
    // Of a large object it gets nearly its share.
    let large = counts(&sent(&mut *scheduler, &mut paths(), 200));
    assert!(large[0] > 100, "{large:?}");
}

/// One packet of sixty is 40 ms late, the others come at once: 1 ms a packet, deviation 5. Were
/// sums normal, one packet of it would be promised in 11 ms, when the steady path has brought all
/// ten; in truth it is there with 98 %.
#[test]
fn a_path_that_is_rarely_late_is_worth_a_packet_of_a_small_object() {
    let mut scheduler = make("sos");
    sent(&mut *scheduler, &mut paths(), 1);
    let mut rare = [300; 60];
    rare[31] = 40_000;
    teach(&mut *scheduler, 0, &[1_000]);
    teach(&mut *scheduler, 1, &rare);
    let mut even = paths();
    even[1].rate = even[0].rate;
    let found = counts(&sent(&mut *scheduler, &mut even, 10));
    assert!((1..=4).contains(&found[1]), "{found:?}");
}

/// Two units, the second of which is more urgent and comes later; and one that was emitted whole.
#[derive(Default)]
struct Several {
    units: Vec<Unit>,
    repairs: Vec<(u64, usize)>,
    taken_back: u32,
}

fn unit(id: u64, left: u32, urgency: u8) -> Unit {
    Unit {
        urgency,
        code: Some(UnitCode {
            symbol: SYMBOL,
            symbols: 10,
            open: 10 - left,
            spare: 1_000,
            ..UnitCode::default()
        }),
        ..Unit::new(id, u64::from(left * SYMBOL))
    }
}

impl SymbolSource for Several {
    fn next_len(&self, _: u32) -> Option<u32> {
        self.unit().map(|_| SYMBOL)
    }

    fn unsent(&self) -> u64 {
        self.units.iter().map(|unit| unit.len).sum()
    }

    fn unit(&self) -> Option<Unit> {
        let open = self.units.iter().filter(|unit| unit.len > 0);
        open.min_by_key(|unit| unit.urgency).copied()
    }

    fn units(&self) -> Vec<Unit> {
        self.units.clone()
    }

    fn repair_of(&mut self, unit: u64, index: usize, _: u32) -> Option<Symbol> {
        self.repairs.push((unit, index));
        Some(Symbol {
            unit,
            offset: 1 << 20,
            len: SYMBOL,
        })
    }

    fn send(&mut self, _: usize, _: u32) -> Symbol {
        let id = self.unit().map_or(0, |unit| unit.id);
        let unit = self.units.iter_mut().find(|unit| unit.id == id).unwrap();
        unit.len -= u64::from(SYMBOL);
        Symbol {
            unit: id,
            offset: unit.len,
            len: SYMBOL,
        }
    }

    fn copy(&mut self, _: usize, _: Symbol) {}

    fn take_back(&mut self) -> Vec<u64> {
        self.taken_back += 1;
        vec![0, 0]
    }
}

#[test]
fn something_more_urgent_makes_what_waits_wait() {
    for (text, times) in [("sos", 1), ("sos:preempt=off", 0)] {
        let mut scheduler = make(text);
        let mut source = Several {
            units: vec![unit(0, 10, 5)],
            ..Several::default()
        };
        let mut views = paths();
        scheduler.plan(&mut Plan::new(Instant::ZERO, &mut views, &mut source));
        assert!(views[0].queued_own > 0 && source.taken_back == 0);
        // As urgent: it waits for its turn.
        source.units.push(unit(1, 10, 5));
        scheduler.plan(&mut Plan::new(Instant::ZERO, &mut views, &mut source));
        assert_eq!(source.taken_back, 0, "{text}");
        source.units.push(unit(2, 10, 1));
        scheduler.plan(&mut Plan::new(Instant::ZERO, &mut views, &mut source));
        assert_eq!(source.taken_back, times, "{text}");
    }
}

#[test]
fn each_sends_its_own_redundancy() {
    let repairs = |text: &str, shaky: bool| {
        let mut scheduler = make(text);
        sent(&mut *scheduler, &mut paths(), 1);
        if shaky {
            let burst = [&[100_u64; 9][..], &[9_100]].concat();
            teach(&mut *scheduler, 0, &burst);
        } else {
            teach(&mut *scheduler, 0, &[1_000]);
        }
        teach(&mut *scheduler, 1, &[2_000]);
        let mut source = Several {
            units: vec![unit(7, 10, 3)],
            ..Several::default()
        };
        let mut views = paths();
        scheduler.plan(&mut Plan::new(Instant::ZERO, &mut views, &mut source));
        assert!(source.repairs.iter().all(|(unit, _)| *unit == 7));
        source.repairs.len()
    };
    assert_eq!(repairs("sos", true), 0);
    assert_eq!(repairs("sos-fec:gamma=1", true), 0);
    assert_eq!(repairs("sos-fec", false), 0, "steady paths have no luck");
    assert!(repairs("sos-fec", true) > 0);
}

#[test]
fn coded_symbols_follow_only_where_they_could_help() {
    let run = |burst: &[u64], loss: f64| {
        let mut scheduler = make("sos-rateless");
        sent(&mut *scheduler, &mut paths(), 1);
        teach(&mut *scheduler, 0, burst);
        teach(&mut *scheduler, 1, &[2_000]);
        let mut source = Several {
            units: vec![unit(7, 0, 3)],
            ..Several::default()
        };
        // Its ten symbols left a moment ago, five on each path, and wait at the bottlenecks.
        for n in 0..10 {
            let feedback = Feedback {
                symbol: Symbol {
                    unit: 7,
                    offset: n * u64::from(SYMBOL),
                    len: SYMBOL,
                },
                kind: EmissionKind::Source,
                path: PathId(n % 2),
                sent: Instant::from_millis(2_000),
                outcome: Outcome::Sent,
                arrived_us: None,
                own_way: true,
            };
            scheduler.on_feedback(Instant::from_millis(2_000), &feedback);
        }
        let mut views = paths();
        for view in &mut views {
            view.loss = loss;
            view.in_flight = 5 * u64::from(SYMBOL) + view.rate.bytes_in(view.min_rtt);
        }
        let now = Instant::from_millis(2_000);
        scheduler.plan(&mut Plan::new(now, &mut views, &mut source));
        assert!(
            scheduler.wake_at().is_some_and(|at| at > now),
            "what is overdue is minded"
        );
        counts(
            &source
                .repairs
                .iter()
                .map(|(_, path)| *path)
                .collect::<Vec<_>>(),
        )
    };
    // 5 ms on one, 10 ms on the other: some more on the quicker one end earlier.
    let steady = run(&[1_000], 0.0);
    assert!(
        steady[0] > 0 && steady[0] <= 5 && steady[1] == 0,
        "{steady:?}"
    );
    // Its five may take long: the steady one helps, too.
    let shaky = run(&bursts(), 0.0);
    assert!(shaky[1] > 0, "{shaky:?}");
    // Of ten symbols one will be lost.
    let even = [run(&[2_000], 0.0), run(&[2_000], 0.1)].map(|n| n[0] + n[1]);
    assert!(even[0] == 0 && even[1] >= 2, "{even:?}");
}
