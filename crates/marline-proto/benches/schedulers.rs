//! Nanoseconds per decision of every scheduler over two paths, and how many copies and repair
//! symbols a decision adds: `cargo bench -p marline-proto --bench schedulers`.
//!
//! A decision is one symbol placed, with its share of what a plan costs: plans of 1, of 32 and of
//! 512 symbols, the least of some runs. Schedulers that plan anew do so as often as they would.
//! Copies belong to the decision on their symbol, and so their time does: the paths differ by less
//! than their delays vary, and carry several times what is sent, so that those who copy where
//! arrival is uncertain do. Over lossy paths a flow has a code, and repair symbols belong to the
//! decision beside whose symbol they go.

#![allow(missing_docs, reason = "a program")]
#![allow(clippy::disallowed_types, reason = "a benchmark reads the clock")]
#![allow(clippy::print_stdout, reason = "its output")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant as Clock;

use marline_base::{Duration, Instant, Rate};
use marline_proto::congestion::{Phase, View};
use marline_proto::flow::Symbol;
use marline_proto::law::ArrivalForecast;
use marline_proto::path::EmissionKind;
use marline_proto::sched::registry::SCHEDULERS;
use marline_proto::sched::{Choice, Coding, Feedback, Outcome, PathView, Plan, SymbolSource, Unit};
use marline_proto::wire::PathId;

const SYMBOL: u32 = 1_200;
const SYMBOLS: [u64; 3] = [1, 32, 512];
const DECISIONS: u64 = 20_000;
const RUNS: usize = 15;
/// Share of the packets that lossy paths lose.
const LOSS: f64 = 0.02;
/// Between two symbols: 9.6 Mb/s.
const EVERY: Duration = Duration::from_millis(1);
/// How much delay one way varies (µs): all values from zero to this are alike.
const JITTER: u64 = 8_000;
/// Round-trip times without it (ms).
const ROUND_TRIPS: [u64; 2] = [20, 22];

struct Backlog {
    left: u64,
    next: u64,
    lossy: bool,
    /// What was placed: symbol and index of its path.
    sent: Vec<(Symbol, usize)>,
    /// Copies and repair symbols.
    added: u64,
}

impl SymbolSource for Backlog {
    fn next_len(&self, max: u32) -> Option<u32> {
        (self.left > 0).then_some(SYMBOL.min(max))
    }

    fn unsent(&self) -> u64 {
        self.left * u64::from(SYMBOL)
    }

    fn unit(&self) -> Option<Unit> {
        None
    }

    fn send(&mut self, index: usize, _: u32) -> Symbol {
        self.left -= 1;
        self.next += u64::from(SYMBOL);
        let symbol = Symbol {
            unit: 0,
            offset: self.next,
            len: SYMBOL,
        };
        self.sent.push((symbol, index));
        symbol
    }

    fn copy(&mut self, index: usize, symbol: Symbol) {
        black_box((index, symbol));
        self.added += 1;
    }

    fn coding(&self) -> Option<Coding> {
        self.lossy.then_some(Coding {
            window: 64,
            unknown: 32,
            lost: 1,
            missing: 0,
            repairs_in_flight: 4,
            repairs_queued: 0,
            budget: 100_000,
        })
    }

    fn repair(&mut self, index: usize) -> Option<Symbol> {
        self.added += 1;
        black_box(Some(Symbol {
            unit: 0,
            offset: self.next,
            len: SYMBOL + index as u32,
        }))
    }

    fn take_back(&mut self) -> Vec<u64> {
        vec![0, 0]
    }
}

fn path(id: u64, ms: u64, mbps: u64, loss: f64) -> PathView {
    let rtt = Duration::from_millis(ms);
    PathView {
        id: PathId(id),
        window: 400 * u64::from(SYMBOL),
        in_flight: 0,
        queued: 0,
        queued_own: 0,
        srtt: rtt,
        rtt_var: Duration::from_millis(1),
        min_rtt: rtt,
        rate: Rate::from_mbps(mbps),
        loss,
        flaps: false,
        queueing: Duration::ZERO,
        back_queueing: Duration::ZERO,
        spacing: None,
        forecast: Some(ArrivalForecast {
            offset_us: 500.0 * ms as f64,
            behind_us: 0.0,
            late_us: 9e3,
            ceiling_us: 0.0,
            swing_us: 0.0,
            due: Some(Instant::from_millis(1_000_000)),
            free: Instant::ZERO,
            service_us: 8.0 / mbps as f64,
        }),
        symbol: SYMBOL,
        cost: 0,
        congestion: View {
            name: "none",
            phase: Phase::ProbeBw,
            window_gain: 2.0,
            pacing_gain: 1.0,
            bandwidth: None,
            min_rtt: None,
            ssthresh: None,
        },
    }
}

/// One way's share of [`JITTER`] (µs) for a symbol, so that schedulers which learn how sure
/// arrivals are have something to learn.
fn jitter(symbol: Symbol, stride: u64) -> u64 {
    symbol.offset / u64::from(SYMBOL) * stride % JITTER
}

/// What is told of a symbol when it is sent, and the acknowledgement with the time when it comes.
fn feedback(sent: Instant, symbol: Symbol, index: usize) -> [(Instant, Feedback); 2] {
    let way = 500 * ROUND_TRIPS[index];
    let arrived = sent.as_micros() + way + jitter(symbol, 7_919);
    let acked = Instant::from_micros(arrived + way + jitter(symbol, 6_007));
    let told = |outcome, arrived_us| Feedback {
        symbol,
        path: PathId(index as u64),
        kind: EmissionKind::Source,
        outcome,
        sent,
        arrived_us,
        own_way: true,
    };
    [
        (sent, told(Outcome::Sent, None)),
        (acked, told(Outcome::Acked, Some(arrived))),
    ]
}

/// What a decision costs.
#[derive(Clone, Copy)]
struct Cost {
    nanos: f64,
    /// Copies and repair symbols.
    added: f64,
}

/// Of plans of `symbols`, without feedback, which comes between them.
fn measure(choice: &Choice, symbols: u64, loss: f64) -> Cost {
    let mut scheduler = choice.make();
    let mut backlog = Backlog {
        left: 0,
        next: 0,
        lossy: loss > 0.0,
        sent: Vec::with_capacity(2 * symbols as usize),
        added: 0,
    };
    let mut now = Instant::from_millis(1);
    // What is told later, in the order of its time.
    let (mut later, mut told) = (BTreeMap::new(), 0_u64);
    let (mut spent, mut placed) = (std::time::Duration::ZERO, 0);
    while placed < DECISIONS {
        let [quick, slow] = ROUND_TRIPS;
        let mut paths = [path(0, quick, 50, loss), path(1, slow, 20, loss)];
        backlog.left = symbols;
        let start = Clock::now();
        scheduler.plan(black_box(&mut Plan::new(now, &mut paths, &mut backlog)));
        spent += start.elapsed();
        placed += backlog.sent.len().max(1) as u64;
        for (symbol, index) in backlog.sent.drain(..) {
            for (at, feedback) in feedback(now, symbol, index) {
                later.insert((at, told), feedback);
                told += 1;
            }
        }
        let next = now + EVERY * symbols as u32;
        while let Some(entry) = later.first_entry()
            && entry.key().0 < next
        {
            let ((at, _), feedback) = entry.remove_entry();
            scheduler.on_feedback(at, &feedback);
        }
        now = next;
    }
    let each = |sum: f64| sum / placed as f64;
    Cost {
        nanos: each(spent.as_nanos() as f64),
        added: each(backlog.added as f64),
    }
}

fn main() {
    println!(
        "ns per decision and what it adds, plans of {SYMBOLS:?}, without losses and with {LOSS}"
    );
    for entry in SCHEDULERS {
        let choice = Choice::from(entry);
        print!("{:<14}", entry.name);
        for (loss, symbols) in [0.0, LOSS].iter().flat_map(|l| SYMBOLS.map(|s| (*l, s))) {
            let runs = (0..RUNS).map(|_| measure(&choice, symbols, loss));
            let least = runs.min_by(|a, b| a.nanos.total_cmp(&b.nanos));
            let Cost { nanos, added } = least.expect("there are runs");
            print!(" {nanos:>6.0} {added:.2}");
        }
        println!();
    }
}
