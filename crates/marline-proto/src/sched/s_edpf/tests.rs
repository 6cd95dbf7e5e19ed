use super::*;
use crate::flow::Symbol;
use crate::path::EmissionKind;
use crate::sched::tests::path;
use crate::sched::{Coding, SymbolSource, Unit};
use alloc::vec::Vec;
use marline_base::{Rate, Rng};
use marline_fec::analysis;

const SYMBOL: u32 = 1_500;

/// What was emitted, in order: the path's index, and whether it was a repair symbol.
struct Source {
    left: u64,
    unknown: u32,
    /// Repair symbols under way.
    flying: u32,
    emitted: Vec<(usize, bool)>,
}

impl Source {
    fn of(left: u64) -> Self {
        Self {
            left,
            unknown: 0,
            flying: 0,
            emitted: Vec::new(),
        }
    }

    fn paths(&self) -> Vec<usize> {
        self.emitted.iter().map(|e| e.0).collect()
    }

    fn repairs_on(&self, index: usize) -> usize {
        self.emitted.iter().filter(|e| **e == (index, true)).count()
    }
}

impl SymbolSource for Source {
    fn next_len(&self, max: u32) -> Option<u32> {
        (self.left > 0).then_some(SYMBOL.min(max))
    }

    fn unsent(&self) -> u64 {
        self.left * u64::from(SYMBOL)
    }

    fn unit(&self) -> Option<Unit> {
        None
    }

    fn send(&mut self, index: usize, max: u32) -> Symbol {
        self.left -= 1;
        self.unknown += 1;
        self.emitted.push((index, false));
        Symbol {
            unit: 0,
            offset: self.emitted.len() as u64 * u64::from(SYMBOL),
            len: SYMBOL.min(max),
        }
    }

    fn copy(&mut self, _: usize, _: Symbol) {
        unreachable!("there are repair symbols instead")
    }

    fn coding(&self) -> Option<Coding> {
        Some(Coding {
            window: self.unknown,
            unknown: self.unknown,
            repairs_queued: self.emitted.iter().filter(|e| e.1).count() as u32,
            repairs_in_flight: self.flying,
            budget: u64::MAX,
            ..Coding::default()
        })
    }

    fn repair(&mut self, index: usize) -> Option<Symbol> {
        self.emitted.push((index, true));
        Some(Symbol {
            unit: self.emitted.len() as u64,
            offset: 0,
            len: SYMBOL,
        })
    }

    fn take_back(&mut self) -> Vec<u64> {
        unreachable!("one plan has nothing to take back")
    }
}

fn order(text: &str) -> Box<dyn Scheduler> {
    text.parse::<Choice>().expect("a choice").make()
}

/// Two paths of 10 Mb/s on which nothing is on its way.
fn paths() -> [PathView; 2] {
    [0, 1].map(|id| PathView {
        rate: Rate::from_mbps(10),
        symbol: SYMBOL,
        window: 1_000 * u64::from(SYMBOL),
        min_rtt: Duration::from_millis(80),
        ..path(id)
    })
}

/// Reports packets that took as long as `delay` draws (ms), far from each other.
fn teach(scheduler: &mut dyn Scheduler, id: u64, mut delay: impl FnMut() -> f64) {
    for n in 0..256 {
        let sent = Instant::from_millis(1_000 * n);
        let at = sent.as_micros() + (1e3 * delay()) as u64;
        let feedback = Feedback {
            symbol: Symbol {
                unit: 0,
                offset: n,
                len: SYMBOL,
            },
            path: PathId(id),
            kind: EmissionKind::Source,
            sent,
            outcome: Outcome::Acked,
            arrived_us: Some(at),
            own_way: true,
        };
        scheduler.on_feedback(sent, &feedback);
    }
}

const NOW: Instant = Instant::from_millis(300_000);

/// Where `packets` go that are written at once.
fn placed(scheduler: &mut dyn Scheduler, paths: &mut [PathView], packets: u64) -> Source {
    // A scheduler sees its paths before their feedback.
    let mut source = Source::of(packets);
    scheduler.plan(&mut Plan::new(NOW, paths, &mut source));
    source
}

/// A scheduler that knows both paths' delays.
fn taught(
    text: &str,
    paths: &mut [PathView; 2],
    mut delay: [&mut dyn FnMut() -> f64; 2],
) -> Box<dyn Scheduler> {
    let mut scheduler = order(text);
    let mut nothing = Source::of(0);
    scheduler.plan(&mut Plan::new(Instant::ZERO, paths, &mut nothing));
    for (id, delay) in delay.iter_mut().enumerate() {
        teach(&mut *scheduler, id as u64, &mut **delay);
    }
    scheduler
}

#[test]
fn constant_paths_are_served_as_edpf_serves_them() {
    // 1500 B take 1.2 ms; arrivals are 41.2, 42.4, … on path 0 and 45.4, 46.6, … on path 1.
    let mut paths = paths();
    let mut scheduler = taught("s-edpf:tau=off", &mut paths, [&mut || 41.2, &mut || 45.4]);
    let source = placed(&mut *scheduler, &mut paths, 10);
    assert_eq!(source.paths(), [0, 0, 0, 0, 1, 0, 1, 0, 1, 0]);
}

/// Mean in-order delay (ms) of packets that take these paths, over common draws: transmission
/// N(1.2, 0) and propagation N(40, 0) on path 0, of `draws` on path 1, which keeps its order.
fn in_order(assignment: &[usize], draws: &[[f64; 4]]) -> f64 {
    let mut sum = 0.0;
    for propagation in draws {
        let (mut departs, mut last, mut delivered) = ([0.0; 2], [0.0_f64; 2], 0.0_f64);
        for &path in assignment {
            departs[path] += 1.2;
            let slot = (departs[path] / 1.2) as usize - 1;
            let way = if path == 0 {
                40.0
            } else {
                propagation[slot.min(3)]
            };
            last[path] = last[path].max(departs[path] + way);
            delivered = delivered.max(last[path]);
            sum += delivered;
        }
    }
    sum / (draws.len() * assignment.len()) as f64
}

#[test]
fn next_to_the_best_of_all_assignments_and_better_than_expected_arrivals() {
    let mut rng = Rng::new(2);
    let (mut ours, mut seen, mut means) = (Vec::new(), Vec::new(), Vec::new());
    for mean in [10.0, 25.0, 40.0, 55.0] {
        for sd in [0.0, 15.0, 30.0, 60.0] {
            let mut draw = || (mean + sd * rng.normal()).max(1.0);
            let draws: Vec<[f64; 4]> = (0..2_000)
                .map(|_| core::array::from_fn(|_| draw()))
                .collect();
            for packets in 2..=4_usize {
                let all = (0..1_usize << packets).map(|code| {
                    let bits = (0..packets).map(|bit| code >> bit & 1);
                    in_order(&bits.collect::<Vec<_>>(), &draws)
                });
                let best = all.fold(f64::INFINITY, f64::min);
                let penalty = |text: &str| {
                    let mut paths = paths();
                    let mut rng = Rng::new(3);
                    let mut delay = || 1.2 + (mean + sd * rng.normal()).max(1.0);
                    let mut scheduler = taught(text, &mut paths, [&mut || 41.2, &mut delay]);
                    let source = placed(&mut *scheduler, &mut paths, packets as u64);
                    in_order(&source.paths(), &draws) / best - 1.0
                };
                ours.push(penalty("s-edpf:tau=off"));
                seen.push(penalty("s-edpf:tau=off:seen=on"));
                // Expected arrivals alone: the same laws without spread.
                let law = 1.2 + draws.iter().map(|d| d[0]).sum::<f64>() / draws.len() as f64;
                let mut paths = paths();
                let mut scheduler =
                    taught("s-edpf:tau=off", &mut paths, [&mut || 41.2, &mut || law]);
                let source = placed(&mut *scheduler, &mut paths, packets as u64);
                means.push(in_order(&source.paths(), &draws) / best - 1.0);
            }
        }
    }
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let worst = |v: &[f64]| v.iter().copied().fold(0.0, f64::max);
    // EDPF's penalty reaches a quarter and more (Figure 2).
    assert!(worst(&means) > 0.25, "{means:?}");
    assert!(mean(&ours) < 0.5 * mean(&means), "{ours:?} {means:?}");
    // What is left is the greed of eq. (9): the first packet takes the path of the smaller mean.
    assert!(worst(&ours) < 0.6 * worst(&means), "{ours:?} {means:?}");
    assert!(mean(&seen) < mean(&means), "{seen:?} {means:?}");
}

#[test]
fn a_path_with_jitter_gets_what_is_needed_later() {
    // Equal means, but path 1 is late by up to 60 ms: what goes there is behind what waits on 0.
    let mut rng = Rng::new(7);
    let mut paths = paths();
    let mut late = || 41.2 + 30.0 * rng.normal().abs();
    let mut scheduler = taught("s-edpf:tau=off", &mut paths, [&mut || 41.2, &mut late]);
    let source = placed(&mut *scheduler, &mut paths, 60);
    let first = source.paths().iter().position(|p| *p == 1).unwrap();
    // E[max] grows by 1.2 ms a packet on path 0; path 1's first adds less only where 0's queue is
    // near its upper half.
    assert!((20..45).contains(&first), "{first}");
}

/// What is emitted when a packet is written every 2 ms and everything leaves at once.
fn driven(scheduler: &mut dyn Scheduler, paths: &[PathView; 2], packets: u64) -> Source {
    let mut all = Source::of(0);
    for n in 0..packets {
        let now = NOW + Duration::from_millis(2) * n as u32;
        let mut source = Source::of(1);
        scheduler.plan(&mut Plan::new(now, &mut paths.clone(), &mut source));
        for &(index, repair) in &source.emitted {
            let feedback = Feedback {
                symbol: Symbol {
                    unit: 0,
                    offset: n,
                    len: SYMBOL,
                },
                path: PathId(index as u64),
                kind: match repair {
                    true => EmissionKind::Repair,
                    false => EmissionKind::Source,
                },
                sent: now,
                outcome: Outcome::Sent,
                arrived_us: None,
                own_way: true,
            };
            scheduler.on_feedback(now, &feedback);
        }
        all.emitted.extend(source.emitted);
    }
    all
}

#[test]
fn repair_symbols_take_the_lossiest_path_one_in_tau() {
    for (lossy, clean) in [(0, 1), (1, 0)] {
        for text in ["s-edpf:tau=4:idle=off", "mend:tau=4:idle=off"] {
            let mut paths = paths();
            paths[lossy].loss = 0.1;
            let mut scheduler = taught(text, &mut paths, [&mut || 41.2, &mut || 41.2]);
            let source = driven(&mut *scheduler, &paths, 301);
            let repairs = [source.repairs_on(lossy), source.repairs_on(clean)];
            assert_eq!(repairs, [100, 0], "{text}");
        }
    }
}

#[test]
fn what_is_sent_again_says_nothing_of_where_repair_symbols_go() {
    for text in ["s-edpf", "mend"] {
        let mut paths = paths();
        paths[0].loss = 0.1;
        let mut scheduler = order(text);
        let mut plan = |scheduler: &mut dyn Scheduler, now| {
            scheduler.plan(&mut Plan::new(now, &mut paths, &mut Source::of(0)));
        };
        plan(&mut *scheduler, Instant::ZERO);
        // As many source symbols over each path, and one packet in eleven again over the clean one.
        for n in 0..1_000 {
            let sent = NOW + Duration::from_micros(600) * n;
            let feedback = Feedback {
                symbol: Symbol {
                    unit: 0,
                    offset: u64::from(n),
                    len: SYMBOL,
                },
                path: PathId(u64::from(n % 2 == 1 || n % 11 == 10)),
                kind: match n % 22 {
                    10 => EmissionKind::Retransmission,
                    21 => EmissionKind::Copy,
                    _ => EmissionKind::Source,
                },
                sent,
                outcome: Outcome::Sent,
                arrived_us: None,
                own_way: true,
            };
            scheduler.on_feedback(sent, &feedback);
        }
        plan(&mut *scheduler, NOW + Duration::from_secs(1));
        // No repair symbol was sent: the path that loses a tenth will take them (Theorem 4).
        let tau = analysis::interval(0.05, 0.1, 0.5);
        assert_eq!(scheduler.coding_interval(), tau, "{text}");
        assert_ne!(tau, analysis::interval(0.05, 0.0, 0.5));
    }
}

#[test]
fn the_next_lossiest_path_takes_what_the_lossiest_has_no_slots_for() {
    let mut paths = paths();
    paths[1].loss = 0.2;
    let mut scheduler = taught(
        "s-edpf:tau=4:idle=off",
        &mut paths,
        [&mut || 41.2, &mut || 64.0],
    );
    assert_eq!(driven(&mut *scheduler, &paths, 301).repairs_on(1), 100);
    paths[1].queued_own = 4 * u64::from(SYMBOL);
    assert_eq!(driven(&mut *scheduler, &paths, 300).repairs_on(0), 100);
}

#[test]
fn idle_slots_take_one_repair_symbol_each_and_no_queue_does() {
    let mut paths = paths();
    let mut scheduler = taught("s-edpf:tau=64", &mut paths, [&mut || 41.2, &mut || 80.0]);
    let mut source = Source::of(2);
    scheduler.plan(&mut Plan::new(NOW, &mut paths, &mut source));
    // Both packets wait on path 0; path 1 is free.
    assert_eq!(source.emitted, [(0, false), (0, false), (1, true)]);
    assert!(scheduler.wake_at().is_some_and(|at| at > NOW));
    let mut off = order("s-edpf:tau=64:idle=off");
    assert_eq!(placed(&mut *off, &mut paths, 2).repairs_on(1), 0);
    let mut uncoded = order("s-edpf:tau=off");
    assert!(!uncoded.codes());
    assert_eq!(placed(&mut *uncoded, &mut paths, 2).repairs_on(1), 0);
}

#[test]
fn repair_symbols_under_way_suffice_unless_another_may_overtake_them() {
    let filled = |flying: u32, spread: f64| {
        let mut rng = Rng::new(3);
        let mut paths = paths();
        let mut shaky = || 41.2 + spread * rng.normal().abs();
        let mut scheduler = taught("s-edpf:tau=64", &mut paths, [&mut || 41.2, &mut shaky]);
        let mut source = Source::of(0);
        (source.unknown, source.flying) = (2, flying);
        scheduler.plan(&mut Plan::new(NOW, &mut paths, &mut source));
        !source.emitted.is_empty()
    };
    assert!(filled(1, 0.0));
    assert!(!filled(2, 0.0), "both come back when these arrive");
    assert!(filled(2, 60.0));
}

#[test]
fn mend_holds_back_less_where_repair_symbols_bring_what_is_late() {
    let lead = |text: &str| {
        let mut rng = Rng::new(7);
        let mut paths = paths();
        let mut late = || 41.2 + 60.0 * rng.normal().abs();
        let mut scheduler = taught(text, &mut paths, [&mut || 41.2, &mut late]);
        let source = placed(&mut *scheduler, &mut paths, 200);
        let first = source.emitted.iter().position(|e| e.0 == 1);
        first.unwrap_or(source.emitted.len())
    };
    let leads = ["16", "8", "4"].map(|tau| lead(&alloc::format!("mend:tau={tau}:idle=off")));
    // Of half of the packets a share 2/τ may be late; those quantiles of |N(0, 60 ms)| are 92.0,
    // 69.0 and 40.5 ms, or 77, 58 and 34 packets. From 256 draws.
    for (lead, truth) in leads.into_iter().zip([77.0, 58.0, 34.0]) {
        assert!((lead as f64 / truth - 1.0).abs() < 0.2, "{leads:?}");
    }
    let uncoded = lead("mend:tau=off");
    assert!(uncoded > leads[0], "{uncoded} {leads:?}");
    // This number is a backlog, which is compared by the mean.
    assert_eq!(uncoded, lead("s-edpf:tau=off:seen=on"));
}

#[test]
fn mend_takes_the_path_that_is_sure_for_a_stream_that_either_carries() {
    // 36 to 52 ms, with 44 in the mean, against 46 ms at all times.
    let path_of = |text: &str, waiting: u64| {
        let mut rng = Rng::new(11);
        let mut paths = paths();
        let mut shaky = || 36.0 + 16.0 * rng.uniform();
        let mut scheduler = taught(text, &mut paths, [&mut shaky, &mut || 46.0]);
        placed(&mut *scheduler, &mut paths, waiting).emitted[0].0
    };
    assert_eq!(path_of("s-edpf:tau=off", 1), 0);
    assert_eq!(path_of("mend:tau=off", 1), 1);
    // A backlog takes both, and the quicker one first.
    assert_eq!(path_of("mend:tau=off", 2_000), 0);
}

#[test]
fn mend_fills_idle_slots_by_what_may_be_lost() {
    let repairs = |loss: f64| {
        let mut paths = paths().map(|path| PathView {
            srtt: Duration::from_millis(80),
            ..path
        });
        paths[0].loss = loss;
        let mut scheduler = taught("mend", &mut paths, [&mut || 41.2, &mut || 80.0]);
        let source = driven(&mut *scheduler, &paths, 400);
        source.emitted.iter().filter(|e| e.1).count()
    };
    assert_eq!(repairs(0.0), 0, "nothing is lost");
    // One packet every 2 ms and 0.05 losses for each repair symbol.
    let few = repairs(0.005);
    assert!((30..=50).contains(&few), "{few}");
    let more = repairs(0.01);
    assert!((60..=100).contains(&more), "{more}");
    // 0.05 / 0.001 packets last as long as sending again.
    assert_eq!(repairs(0.0005), 0);
}

#[test]
fn mend_repairs_the_end_of_what_was_written_once() {
    let mut paths = paths();
    paths[0].loss = 0.02;
    let mut scheduler = taught("mend", &mut paths, [&mut || 41.2, &mut || 80.0]);
    let source = driven(&mut *scheduler, &paths, 1);
    assert_eq!(source.emitted, [(0, false)]);
    let mut quiet = Source::of(0);
    quiet.unknown = 1;
    scheduler.plan(&mut Plan::new(NOW, &mut paths, &mut quiet));
    assert!(quiet.emitted.is_empty(), "more may follow");
    let at = scheduler.wake_at().expect("it looks again");
    scheduler.plan(&mut Plan::new(at, &mut paths, &mut quiet));
    assert_eq!(quiet.emitted.iter().filter(|e| e.1).count(), 1);
}

/// A thousand packets while path 0 has no room and path 1 is a second away: which path they go on.
fn beyond_the_horizon(far: impl FnOnce(&mut PathView)) -> Vec<usize> {
    let mut paths = paths();
    paths[0].window = 0;
    far(&mut paths[1]);
    let mut scheduler = taught(
        "s-edpf:tau=off",
        &mut paths,
        [&mut || 41.2, &mut || 1_041.2],
    );
    placed(&mut *scheduler, &mut paths, 1_000).paths()
}

fn on_the_far_one(placed: &[usize]) -> usize {
    placed.iter().filter(|path| **path == 1).count()
}

#[test]
fn what_waits_beyond_the_horizon_takes_any_path_with_room() {
    let placed = beyond_the_horizon(|far| far.window = 10 * u64::from(SYMBOL));
    let there = on_the_far_one(&placed);
    assert_eq!(there, 10);
    // Half a second waits for the near one, no more.
    assert!((400..=430).contains(&(placed.len() - there)));
}

#[test]
fn what_waits_beyond_the_horizon_makes_no_long_queue_on_another_path() {
    // It has room for more, but a quarter of its round trip is 20 ms: 16 packets.
    assert_eq!(on_the_far_one(&beyond_the_horizon(|_| {})), 17);
}

#[test]
fn a_path_whose_capacity_is_sought_is_filled_whatever_seems_to_stand_there() {
    let placed = beyond_the_horizon(|far| {
        far.window = 100 * u64::from(SYMBOL);
        far.congestion.phase = crate::congestion::Phase::Startup;
    });
    assert_eq!(on_the_far_one(&placed), 100);
}

#[test]
fn clocks_that_count_microseconds_do_not_look_like_packets_in_any_order() {
    let mut paths = paths();
    let mut rng = Rng::new(9);
    let mut steady = || 41.2 + 0.001 * rng.below(2) as f64;
    let mut scheduler = taught("mend:tau=4", &mut paths, [&mut steady, &mut || 80.0]);
    let source = placed(&mut *scheduler, &mut paths, 60);
    // The first ones wait in the paths that were seen.
    let mut paths = self::paths();
    let mut same = taught("s-edpf:tau=4", &mut paths, [&mut || 41.2, &mut || 80.0]);
    let expected = placed(&mut *same, &mut paths, 60);
    assert_eq!(source.paths(), expected.paths());
}
