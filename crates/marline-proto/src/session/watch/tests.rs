use super::*;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// 8 Mb/s: 1 MB a second, 1 kB a millisecond.
const TARGET: Rate = Rate::from_mbps(8);

/// Looks at a flow that writes at its target while the paths go through `phases`
/// (length in ms, share of the target that they take, sum of their believed rates).
fn told(phases: &[(u64, f64, Rate)]) -> Vec<(u64, Option<u64>)> {
    let mut watch = Watch::new(Some(TARGET), 0);
    let (mut ms, mut written, mut acked) = (0, 0_u64, 0_u64);
    let mut told = Vec::new();
    for &(length, share, rates) in phases {
        for _ in 0..length / 50 {
            ms += 50;
            written += 50_000;
            let room = (50_000.0 * share) as u64;
            acked = (acked + room).min(written);
            let look = Look {
                waiting: written - acked,
                never_left: 0,
                written,
                carried: acked,
                rates,
            };
            if let Some(news) = watch.look(Instant::from_millis(ms), &look) {
                told.push((ms, news.map(|rate| rate.as_bps() / 100_000)));
            }
        }
    }
    told
}

#[test]
fn too_little_is_told_with_what_there_is_and_enough_is_told_once() {
    // A quarter is missing: 50 ms' worth wait from 200 ms on, more from 250 on.
    let short = (1_000, 0.75, Rate::from_mbps(6));
    let rich = (4_000, 1.5, Rate::from_mbps(12));
    assert_eq!(
        told(&[short, rich]),
        [(400, Some(60)), (2_500, None)],
        "150 ms after 250 at 6 Mb/s; 1 s after 250 kB have gone at 500 kB/s"
    );
}

#[test]
fn estimates_alone_prove_nothing() {
    // Rates of paths that were never filled, and no data that waits.
    assert_eq!(told(&[(5_000, 1.0, Rate::from_mbps(1))]), []);
    // Paths that are believed to be fast enough get 200 ms' worth of patience.
    assert_eq!(told(&[(900, 0.8, Rate::from_mbps(20))]), []);
    let long = told(&[(1_500, 0.8, Rate::from_mbps(20))]);
    assert_eq!(long, [(1_050, Some(64))]);
}

#[test]
fn a_hiccup_is_not_told() {
    let good = (500, 1.0, Rate::from_mbps(20));
    let none = (100, 0.0, Rate::from_mbps(4));
    let again = (1_000, 2.0, Rate::from_mbps(20));
    assert_eq!(told(&[good, none, again]), []);
}

#[test]
fn a_further_fall_is_told_again() {
    let mut told = told(&[
        (1_000, 0.75, Rate::from_mbps(6)),
        (2_000, 0.25, Rate::from_mbps(2)),
    ]);
    assert_eq!(told.remove(0), (400, Some(60)));
    let last = told.last().unwrap();
    assert_eq!(last.1, Some(20), "{told:?}");
    assert!(told.len() <= 3, "{told:?}");
}

#[test]
fn an_idle_flow_needs_no_looks() {
    let mut watch = Watch::new(Some(TARGET), 0);
    let mut look = Look {
        waiting: 0,
        never_left: 0,
        written: 10,
        carried: 10,
        rates: Rate::ZERO,
    };
    watch.look(Instant::from_millis(50), &look);
    assert_eq!(watch.next, Some(Instant::from_millis(100)));
    watch.look(Instant::from_millis(200), &look);
    assert_eq!(watch.next, Some(Instant::from_millis(250)), "a slow frame");
    watch.look(Instant::from_millis(250), &look);
    assert_eq!(watch.next, None);
    look.written = 20;
    watch.look(Instant::from_millis(900), &look);
    assert_eq!(watch.next, Some(Instant::from_millis(950)));
}

const STEP: Duration = Duration::from_millis(1);

/// A writer, and what waits until the paths take it or its lifetime is over.
struct Writer {
    watch: Watch,
    /// All in milliseconds.
    lifetime: u64,
    now: u64,
    /// What waits, each with the time when it was written.
    waiting: VecDeque<(u64, u64)>,
    look: Look,
    told: Vec<(u64, Option<u64>)>,
}

impl Writer {
    fn new(target: Option<Rate>, lifetime: u64) -> Self {
        Self {
            watch: Watch::new(target, 0),
            lifetime,
            now: 0,
            waiting: VecDeque::new(),
            look: Look {
                waiting: 0,
                never_left: 0,
                written: 0,
                carried: 0,
                rates: Rate::ZERO,
            },
            told: Vec::new(),
        }
    }

    /// Writes what `bytes` says of each millisecond, over paths that take that many in each and are
    /// believed to carry `rates`. Returns what was told since, in tenths of Mb/s.
    fn run(
        &mut self,
        length: u64,
        bytes: impl Fn(u64) -> u64,
        taken: u64,
        rates: Rate,
    ) -> Vec<(u64, Option<u64>)> {
        self.look.rates = rates;
        for _ in 0..length {
            self.now += 1;
            let now = self.now;
            let look = &mut self.look;
            let written = bytes(now);
            look.written += written;
            self.waiting.push_back((now, written));
            let mut room = taken;
            while let Some((_, bytes)) = self.waiting.front_mut() {
                let leaves = room.min(*bytes);
                (*bytes, room) = (*bytes - leaves, room - leaves);
                look.carried += leaves;
                if *bytes > 0 {
                    break;
                }
                self.waiting.pop_front();
            }
            while let Some(&(at, bytes)) = self.waiting.front()
                && at + self.lifetime <= now
            {
                look.never_left += bytes;
                self.waiting.pop_front();
            }
            look.waiting = self.waiting.iter().map(|(_, bytes)| bytes).sum();
            let at = Instant::from_millis(now);
            if written > 0 {
                self.watch.next.get_or_insert(tick_after(at - STEP));
            }
            if self.watch.next == Some(at)
                && let Some(news) = self.watch.look(at, look)
            {
                let news = news.map(|rate| rate.as_bps() / 100_000);
                self.told.push((now, news));
            }
        }
        core::mem::take(&mut self.told)
    }
}

const fn steady(_: u64) -> u64 {
    1_000
}

/// 25 frames a second.
const fn frames(now: u64) -> u64 {
    if now.is_multiple_of(40) { 40_000 } else { 0 }
}

#[test]
fn a_short_lifetime_hides_nothing() {
    for (lifetime, bytes) in [10, 50, 150, 300, 3_000]
        .into_iter()
        .flat_map(|lifetime| [(lifetime, steady as fn(u64) -> u64), (lifetime, frames)])
    {
        // A frame of which only a tenth can leave in time does not get the rate of the paths.
        let least = if lifetime == 10 && bytes(1) == 0 {
            10
        } else {
            45
        };
        for (rates, until) in [(Rate::from_mbps(6), 700), (Rate::from_mbps(20), 1_500)] {
            let mut writer = Writer::new(Some(TARGET), lifetime);
            let told = writer.run(2_500, bytes, 750, rates);
            let [(at, Some(capacity)), ..] = told[..] else {
                panic!("{lifetime} ms, {rates}: {told:?}");
            };
            assert!(at <= until, "{lifetime} ms, {rates}: {told:?}");
            let right = (least..=62).contains(&capacity);
            assert!(right, "{lifetime} ms, {rates}: {told:?}");
            let told = writer.run(5_000, bytes, 10_000, Rate::from_mbps(80));
            let [(_, None)] = told[..] else {
                panic!("{lifetime} ms, {rates}: {told:?}");
            };
        }
    }
}

#[test]
fn what_a_hiccup_gives_up_is_not_told() {
    for lifetime in [50, 150, 300] {
        let mut writer = Writer::new(Some(TARGET), lifetime);
        let mut told = writer.run(1_000, steady, 2_000, Rate::from_mbps(16));
        told.extend(writer.run(150, steady, 0, Rate::from_mbps(16)));
        told.extend(writer.run(3_000, steady, 2_000, Rate::from_mbps(16)));
        assert_eq!(told, [], "{lifetime} ms");
        assert_eq!(writer.look.never_left > 0, lifetime < 150);
    }
}

#[test]
fn a_live_flow_needs_what_it_writes() {
    for lifetime in [50, 150, 300] {
        let mut writer = Writer::new(None, lifetime);
        assert_eq!(
            writer.run(5_000, steady, 1_100, Rate::from_mbps(7)),
            [],
            "paths that were never filled may be held for slower than they are"
        );
        let told = writer.run(3_000, steady, 750, Rate::from_mbps(6));
        let [(at, Some(60)), ..] = told[..] else {
            panic!("{lifetime} ms: {told:?}");
        };
        assert!(at <= 5_700, "{lifetime} ms: {told:?}");
        // It does with less, and needs it no more.
        let told = writer.run(8_000, |_| 600, 750, Rate::from_mbps(6));
        let [(at, None)] = told[..] else {
            panic!("{lifetime} ms: {told:?}");
        };
        assert!(at <= 13_000, "{lifetime} ms: {told:?}");
    }
}

#[test]
fn neither_beginnings_nor_pauses_nor_key_frames_are_told_of_a_live_flow() {
    // A key frame a second, a quarter of what is written, and one that is twice as long at the
    // beginning and after a pause.
    let burst = |now: u64| match now {
        1 | 12_345 => 250_000,
        8_000..12_345 => 0,
        now => {
            500 + if now.is_multiple_of(1_000) {
                125_000
            } else {
                0
            }
        }
    };
    for rates in [Rate::from_mbps(7), Rate::from_mbps(2)] {
        // Nothing is known of paths at first: their rates say little.
        let mut writer = Writer::new(None, 600);
        assert_eq!(writer.run(900, burst, 900, rates), []);
        assert_eq!(writer.run(25_000, burst, 900, Rate::from_mbps(7)), []);
        assert_eq!(writer.look.never_left, 0);
    }
}

#[test]
fn what_a_flow_needs_is_known_soon_after_it_begins() {
    let at = Instant::from_millis;
    let mut watch = Watch::new(None, 0);
    assert_eq!(watch.needs(at(500), 0), None, "it does not write");
    // 1 kB a millisecond. The first took no time.
    assert_eq!(watch.begin(at(1_010), at(1_010), 5_000), at(1_030));
    assert_eq!(watch.needs(at(1_029), 24_000), None);
    assert_eq!(watch.needs(at(1_030), 25_000), Some(TARGET));
    // What had waited for a session comes at once.
    let mut late = Watch::new(None, 0);
    late.begin(at(1_300), at(1_000), 1_000);
    assert_eq!(late.needs(at(1_300), 301_000), Some(TARGET));
    // A rate that was given needs no look, and counts while the flow writes.
    let mut given = Watch::new(Some(TARGET), 0);
    assert_eq!(given.needs(at(0), 0), None);
    given.begin(at(0), at(0), 100);
    assert_eq!(given.needs(at(0), 100), Some(TARGET));
}
