use super::*;
use crate::flow::Symbol;
use crate::path::EmissionKind;
use crate::sched::tests::path;
use crate::sched::{Outcome, SymbolSource, UnitCode};

const SYMBOL: u32 = 1_200;
const MS: fn(u64) -> Duration = Duration::from_millis;

/// One block at a time, and where its symbols went.
#[derive(Default)]
struct Blocks {
    id: u64,
    source: u32,
    symbols: u32,
    deadline: Option<Instant>,
    sent: Vec<(usize, bool)>,
}

impl SymbolSource for Blocks {
    fn next_len(&self, max: u32) -> Option<u32> {
        (self.source > 0).then_some(max)
    }

    fn unsent(&self) -> u64 {
        u64::from(self.source) * u64::from(SYMBOL)
    }

    fn unit(&self) -> Option<Unit> {
        let code = UnitCode {
            symbol: SYMBOL,
            symbols: self.symbols,
            spare: 100,
            ..UnitCode::default()
        };
        (self.source > 0).then(|| Unit {
            deadline: self.deadline,
            reliability: Some(0.98),
            code: Some(code),
            ..Unit::new(self.id, self.unsent())
        })
    }

    fn send(&mut self, index: usize, max: u32) -> Symbol {
        self.source -= 1;
        self.sent.push((index, false));
        Symbol {
            unit: self.id,
            offset: 0,
            len: max,
        }
    }

    fn copy(&mut self, _: usize, _: Symbol) {}

    fn repair_of(&mut self, unit: u64, index: usize, max: u32) -> Option<Symbol> {
        self.sent.push((index, true));
        Some(Symbol {
            unit,
            offset: 0,
            len: max,
        })
    }

    fn take_back(&mut self) -> Vec<u64> {
        Vec::new()
    }
}

/// Two paths that serve 12 and 8 symbols in 3 ms in turn, 10 ms one way.
struct Net {
    hop: Hop,
    blocks: Blocks,
    now: Instant,
    free: [Instant; 2],
    /// What was sent and is not acknowledged: path, sent, arrives, block.
    flight: VecDeque<(usize, Instant, Instant, u64)>,
}

impl Net {
    fn new(text: &str, aim: Aim) -> Self {
        Self {
            hop: Hop::new(aim, &text.parse().unwrap()),
            blocks: Blocks::default(),
            now: Instant::from_millis(100),
            free: [Instant::ZERO; 2],
            flight: VecDeque::new(),
        }
    }

    fn views() -> [PathView; 2] {
        [path(0), path(1)].map(|mut view| {
            view.min_rtt = MS(20);
            view
        })
    }

    fn plan(&mut self) -> usize {
        let before = self.blocks.sent.len();
        let mut views = Self::views();
        self.hop
            .plan(&mut Plan::new(self.now, &mut views, &mut self.blocks));
        for at in before..self.blocks.sent.len() {
            let (index, _) = self.blocks.sent[at];
            self.told(index, self.now, Outcome::Sent, None, self.blocks.id);
            let slow = self.now.as_micros() / 25_000 % 2;
            let each = Duration::from_micros([250, 375][slow as usize]);
            self.free[index] = self.free[index].max(self.now) + each;
            let arrives = self.free[index] + MS(10);
            self.flight
                .push_back((index, self.now, arrives, self.blocks.id));
        }
        self.blocks.sent.len() - before
    }

    fn told(
        &mut self,
        index: usize,
        sent: Instant,
        outcome: Outcome,
        arrived: Option<Instant>,
        unit: u64,
    ) {
        let feedback = Feedback {
            symbol: Symbol {
                unit,
                offset: 0,
                len: SYMBOL,
            },
            kind: EmissionKind::Source,
            path: PathId(index as u64),
            sent,
            outcome,
            // The peer's clock is an hour ahead.
            arrived_us: arrived.map(|at| at.as_micros() + 3_600_000_000),
            own_way: true,
        };
        self.hop.on_feedback(self.now, &feedback);
    }

    fn advance(&mut self, to: Instant) {
        self.now = to;
        let mut flight: Vec<_> = core::mem::take(&mut self.flight).into();
        flight.sort_by_key(|(_, _, arrives, _)| *arrives);
        for (index, sent, arrives, block) in flight {
            match arrives + MS(10) <= to {
                true => self.told(index, sent, Outcome::Acked, Some(arrives), block),
                false => self.flight.push_back((index, sent, arrives, block)),
            }
        }
    }

    /// Writes a block and sends all of it; answers what was sent at once, and in all.
    fn block(&mut self, symbols: u32) -> (usize, usize) {
        self.blocks.id += 1;
        self.blocks.source = symbols;
        self.blocks.symbols = symbols;
        self.blocks.deadline = Some(self.now + MS(35));
        self.blocks.sent.clear();
        let (begin, first) = (self.now, self.plan());
        while let Some(at) = self.hop.wake_at()
            && at < begin + MS(25)
        {
            self.advance(at.max(self.now + Duration::from_micros(1)));
            self.plan();
        }
        (first, self.blocks.sent.len())
    }

    fn blocks(&mut self, count: u64, symbols: u32) -> (usize, usize) {
        let mut last = (0, 0);
        for _ in 0..count {
            let at = self.now;
            last = self.block(symbols);
            self.advance(at + MS(25));
        }
        last
    }

    fn unit(&self, symbols: u32) -> Unit {
        Unit {
            deadline: Some(self.now + MS(35)),
            reliability: Some(0.98),
            ..Unit::new(self.blocks.id + 1, u64::from(symbols) * u64::from(SYMBOL))
        }
    }
}

#[test]
fn a_block_goes_in_two_stages_with_every_source_symbol() {
    let mut net = Net::new("hop-jump", Aim::Jump);
    // Of unknown paths each gets 0.6 of the block.
    assert_eq!(net.block(60).0, 72);
    net.advance(net.now + MS(25));
    let (first, all) = net.blocks(60, 60);
    assert!((20..60).contains(&first), "{first}");
    assert!((60..=66).contains(&all), "{all}");
    assert_eq!(net.blocks.source, 0);
    let repairs = net.blocks.sent.iter().filter(|(_, repair)| *repair).count();
    assert_eq!(repairs, all - 60);
    assert_eq!(net.hop.wake_at(), None);
}

/// Its path fell silent. No other block begins before all of it has left, so a flow would stand
/// still until its deadline.
#[test]
fn what_comes_back_of_a_block_leaves_again() {
    for options in ["hop-jump", "hop-jump:stage=0ms", "hop-jump:pace=on"] {
        let mut net = Net::new(options, Aim::Jump);
        net.blocks(60, 60);
        net.block(60);
        net.blocks.source = 7;
        net.blocks.sent.clear();
        while net.blocks.source > 0 {
            net.plan();
            let Some(at) = net.hop.wake_at() else { break };
            net.advance(at.max(net.now + Duration::from_micros(1)));
        }
        assert_eq!(net.blocks.source, 0, "{options}");
        assert!(net.blocks.sent.len() < 20, "{options}");
        let (_, all) = net.blocks(1, 60);
        assert!(all >= 60, "{options}");
    }
}

#[test]
fn a_block_counts_once_however_long_after_its_writing_it_is_sent() {
    let forecasts = |held_up: u64| {
        let mut net = Net::new("hop-jump", Aim::Jump);
        for _ in 0..60 {
            let at = net.now;
            net.hop
                .admit(at, &Net::views(), &net.unit(60))
                .expect("there is room for it");
            net.advance(at + Duration::from_micros(held_up));
            net.block(60);
            net.advance(at + MS(25));
        }
        let outlook = net.hop.outlook().expect("much is known");
        let mean = |path: &PathOutlook| path.capacity.mean * 1e-6;
        (net.hop.every, outlook.paths.iter().map(mean).sum::<f64>())
    };
    let (every, together) = forecasts(0);
    let (held_up_every, held_up) = forecasts(300);
    assert!((every - 25e-3).abs() < 1e-9 && (held_up_every - 25e-3).abs() < 1e-9);
    assert!(
        (held_up / together - 1.0).abs() < 0.1,
        "{held_up} {together}"
    );
}

#[test]
fn without_a_stage_everything_goes_at_once() {
    let mut net = Net::new("hop-jump:stage=0ms", Aim::Jump);
    let (first, all) = net.blocks(60, 60);
    assert!(first == all && (60..=66).contains(&all), "{first} {all}");
}

#[test]
fn what_cannot_arrive_is_refused_before_it_is_sent() {
    let mut net = Net::new("hop-jump", Aim::Jump);
    // Nothing is known: nothing is refused, and nothing promised.
    assert_eq!(
        net.hop.admit(net.now, &Net::views(), &net.unit(60)),
        Ok(None)
    );
    net.blocks(60, 60);
    let admit = |net: &mut Net, symbols| {
        let unit = net.unit(symbols);
        net.hop.admit(net.now, &Net::views(), &unit)
    };
    let forecast = admit(&mut net, 60).unwrap().unwrap();
    assert!(
        forecast.on_time >= 0.98 && forecast.redundancy < 0.2,
        "{forecast:?}"
    );
    // 25 ms carry 100 symbols a path in fast slots and 66 in slow ones.
    assert!(matches!(admit(&mut net, 250), Err(Refusal::Late { best }) if best < 0.98));
    net.hop.aim = Aim::Leap;
    match admit(&mut net, 250) {
        Err(Refusal::Large { fits, symbols }) => {
            assert!((90..200).contains(&symbols), "{symbols}");
            assert_eq!(fits, u64::from(symbols) * u64::from(SYMBOL));
            assert!(admit(&mut net, symbols).is_ok());
        }
        other => panic!("{other:?}"),
    }
    net.hop.aim = Aim::Flip;
    match admit(&mut net, 250) {
        Err(Refusal::Short { least }) => {
            let within = net
                .hop
                .deadline(net.now, &Net::views(), 250 * 1_200, 0.98)
                .unwrap();
            assert!(
                within.abs_diff(least) <= MS(2) && least > MS(40),
                "{least:?} {within:?}"
            );
        }
        other => panic!("{other:?}"),
    }
    net.hop.refuse = false;
    assert!(admit(&mut net, 250).unwrap().unwrap().on_time < 0.98);
}

/// Two pictures at once, one for each eye: what the first takes is not there for the second.
#[test]
fn of_two_blocks_at_once_the_second_is_judged_after_the_first() {
    let mut net = Net::new("hop-jump", Aim::Jump);
    net.blocks(60, 60);
    let mut offer = |aim, id: u64, symbols| {
        net.hop.aim = aim;
        let mut unit = net.unit(symbols);
        unit.id += id;
        net.hop.admit(net.now, &Net::views(), &unit)
    };
    // 25 ms carry 66 to 100 symbols a path.
    let alone = offer(Aim::Jump, 0, 100).unwrap().unwrap();
    assert!(alone.on_time >= 0.98, "{alone:?}");
    let second = offer(Aim::Jump, 1, 100);
    assert!(
        matches!(second, Err(Refusal::Late { best }) if best < 0.9),
        "{second:?}"
    );
    let Err(Refusal::Large { symbols, .. }) = offer(Aim::Leap, 1, 100) else {
        panic!("100 more fit");
    };
    assert!((5..60).contains(&symbols), "{symbols}");
    assert!(offer(Aim::Leap, 1, symbols).is_ok());
    let Err(Refusal::Short { least }) = offer(Aim::Flip, 2, 100) else {
        panic!("all are on time");
    };
    assert!(least > MS(40), "{least:?}");
    // Those that were given up leave no room to others.
    let first = net.unit(100).id;
    net.hop.on_unit(net.now, first, Fate::Lost);
    net.hop.on_unit(net.now, first + 1, Fate::Lost);
    net.hop.aim = Aim::Jump;
    let unit = net.unit(100);
    let again = net.hop.admit(net.now, &Net::views(), &unit);
    assert_eq!(again.unwrap().unwrap().on_time, alone.on_time);
}

/// Else nothing would be learnt of paths that are believed to carry too little, and the belief
/// stay.
#[test]
fn where_all_would_be_refused_one_is_taken_now_and_then() {
    let mut net = Net::new("hop-jump", Aim::Jump);
    // Nothing is known: nothing is refused, and nothing promised.
    assert_eq!(
        net.hop.admit(net.now, &Net::views(), &net.unit(60)),
        Ok(None)
    );
    net.blocks(60, 60);
    let mut taken = Vec::new();
    for n in 0..40_u32 {
        let unit = net.unit(250);
        let at = net.now + MS(25) * n;
        match net.hop.admit(at, &Net::views(), &unit) {
            Ok(forecast) => {
                let forecast = forecast.expect("paths are known");
                assert!(forecast.on_time < 0.98, "no more is promised than is true");
                taken.push(n);
            }
            Err(refusal) => assert!(matches!(refusal, Refusal::Late { .. }), "{refusal:?}"),
        }
    }
    assert_eq!(taken, [10, 20, 30]);
}

#[test]
fn capacity_is_known_after_some_blocks() {
    let mut net = Net::new("hop-leap", Aim::Leap);
    assert_eq!(net.hop.capacity(net.now, &Net::views(), MS(35), 0.98), None);
    net.blocks(60, 60);
    let fits = net
        .hop
        .capacity(net.now, &Net::views(), MS(35), 0.98)
        .unwrap();
    // Both paths in slow slots carry 133 symbols in 25 ms, both in fast ones 200.
    assert!((90 * 1_200..200 * 1_200).contains(&fits), "{fits}");
    let shorter = net
        .hop
        .capacity(net.now, &Net::views(), MS(20), 0.98)
        .unwrap();
    assert!(shorter < fits);
}

#[test]
fn promises_are_counted_by_path_and_by_block() {
    let mut net = Net::new("hop-jump", Aim::Jump);
    assert_eq!(net.hop.outlook(), Some(Outlook::default()));
    net.blocks(100, 60);
    for block in 1..=net.blocks.id {
        let fate = if block == 50 {
            Fate::Late
        } else {
            Fate::OnTime
        };
        net.hop.on_unit(net.now, block, fate);
    }
    net.hop.digest(&Net::views());
    let outlook = net.hop.outlook().unwrap();
    assert_eq!(outlook.paths.len(), 2);
    for path in &outlook.paths {
        // A symbol of 9600 bits takes 250 or 375 µs.
        let mean = path.capacity.mean / 1e6;
        assert!((25.6..=38.4).contains(&mean), "{path:?}");
        assert_eq!(path.mode, "bank");
        // Of the first blocks nothing could be promised; the last are not acknowledged yet. Thirty
        // symbols a path are on time in every slot.
        let all = path.calibration.total();
        assert!((90..100).contains(&all.promises), "{all:?}");
        assert_eq!(all.kept, all.promises);
        assert!(all.promised / all.promises as f64 > 0.9, "{all:?}");
    }
    let units = outlook.units.total();
    assert!((90..100).contains(&units.promises), "{units:?}");
    assert_eq!(units.kept, units.promises - 1);
}

#[test]
fn paced_blocks_leave_no_faster_than_is_to_be_expected() {
    let mut net = Net::new("hop-jump:pace=on", Aim::Jump);
    net.blocks(60, 60);
    // Both paths carry 25.6 or 38.4 Mb/s: no sooner than after 250 µs less the spread does a symbol
    // follow.
    let begin = net.now;
    net.blocks.id += 1;
    (net.blocks.source, net.blocks.symbols) = (60, 60);
    net.blocks.deadline = Some(begin + MS(35));
    net.blocks.sent.clear();
    let mut times = [Vec::new(), Vec::new()];
    let mut at = begin;
    loop {
        let before = net.blocks.sent.len();
        net.plan();
        for (index, _) in &net.blocks.sent[before..] {
            times[*index].push(at);
        }
        match net.hop.wake_at() {
            Some(next) if next < begin + MS(25) => at = next.max(at + Duration::from_micros(1)),
            _ => break,
        }
        net.advance(at);
    }
    assert_eq!(net.blocks.source, 0);
    for times in &times {
        assert!(times.len() >= 20, "{times:?}");
        // Half a millisecond may be used ahead.
        let took = times[times.len() - 1].since(times[0]) + Duration::from_micros(500);
        let each = took / (times.len() as u32 - 1);
        let [least, most] = [150, 300].map(Duration::from_micros);
        assert!((least..most).contains(&each), "{each:?}");
    }
}

/// A session's paths come and go for days, each with a number of its own.
#[test]
fn paths_that_are_gone_are_forgotten() {
    let mut net = Net::new("hop-jump:pace=on", Aim::Jump);
    net.blocks(20, 60);
    for id in 2..1_000 {
        net.hop.digest(&[path(0), path(1), path(id)]);
    }
    assert!(net.hop.paths.len() <= 2 * MAX_PATHS);
    let known = |id: u64| net.hop.paths.contains_key(&PathId(id));
    assert!(known(0) && known(1) && known(999) && !known(500));
    assert!(
        net.hop
            .outlook()
            .is_some_and(|outlook| outlook.paths.len() == 2)
    );
}

/// Two pictures for two eyes, or a block that is refused and comes again.
#[test]
fn blocks_written_one_after_the_other_are_no_interval() {
    let mut net = Net::new("hop-jump", Aim::Jump);
    for _ in 0..60 {
        let at = net.now;
        for after in [0, 10, 3_000] {
            let unit = net.unit(if after == 0 { 250 } else { 60 });
            let now = at + Duration::from_micros(after);
            let _ = net.hop.admit(now, &Net::views(), &unit);
        }
        net.block(60);
        net.advance(at + MS(25));
    }
    assert!((net.hop.every - 25e-3).abs() < 1e-9, "{}", net.hop.every);
}

#[test]
fn what_has_no_deadline_is_never_late() {
    for aim in [Aim::Jump, Aim::Leap, Aim::Flip] {
        let mut net = Net::new("hop-jump", aim);
        net.blocks(60, 60);
        let unit = Unit {
            deadline: None,
            ..net.unit(20_000)
        };
        let taken = net.hop.admit(net.now, &Net::views(), &unit);
        let forecast = taken.expect("it is not refused").expect("paths are known");
        assert_eq!(forecast.on_time, 1.0);
    }
}

#[test]
fn certainty_is_asked_for_as_much_as_can_be() {
    let mut net = Net::new("hop-jump", Aim::Jump);
    net.blocks(60, 60);
    let capacity = |net: &Net, p: f64| net.hop.capacity(net.now, &Net::views(), MS(35), p).unwrap();
    let sizes = [0.5, 0.98, 0.99999].map(|p| capacity(&net, p));
    assert!(
        sizes[0] > sizes[1] && sizes[1] > sizes[2] && sizes[2] > 0,
        "{sizes:?}"
    );
    assert_eq!(capacity(&net, f64::NAN), sizes[1]);
    for more in [1.0, 2.0, f64::INFINITY] {
        assert_eq!(capacity(&net, more), sizes[2]);
    }
    for more in [1.0, 2.0, f64::INFINITY] {
        let unit = Unit {
            reliability: Some(more),
            ..net.unit(20)
        };
        assert!(net.hop.admit(net.now, &Net::views(), &unit).is_ok());
    }
}
