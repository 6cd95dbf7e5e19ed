//! How late is a live stream over two links that lose packets in bursts, if its sender is as good
//! as can be?
//!
//! A yardstick for `hedge`, and no proof: the sender knows rates, queues and delays exactly. It
//! learns of a loss when the acknowledgement does not come, or so many milliseconds later, without
//! waiting for a later packet. What is lost goes again before everything else, on the link that is
//! free first; whatever the stream leaves of both links is filled with symbols of a code of which
//! any *n* bring back any *n* packets that left before them.
//!
//! ```sh
//! cargo run --release -p marline-sim --example ideal_live [MILLISECONDS]
//! ```
#![expect(clippy::print_stdout, reason = "an example prints its table")]

use std::collections::VecDeque;
use std::error::Error;

use marline_sim::Rng;

/// A stream of 10 Mb/s in datagrams of seven transport packets; 76 bytes of headers travel with
/// each.
const GAP_MS: f64 = 1316.0 * 8.0 / 10e3;
/// Links of 6 Mb/s.
const SERVICE_MS: f64 = (1316.0 + 76.0) * 8.0 / 6e3;
const LOSS: f64 = 0.02;
/// Packets in a burst of losses, on average.
const BURST: f64 = 4.0;
/// Ways of the two links (ms), and what is asked of the 99th percentile.
const PAIRS: [([f64; 2], f64); 4] = [
    ([10.0, 10.0], 34.0),
    ([10.0, 20.0], 43.0),
    ([10.0, 40.0], 70.0),
    ([10.0, 80.0], 110.0),
];
const PACKETS: usize = 100_000;
const SEEDS: u64 = 8;

/// A symbol that arrives.
#[derive(Clone, Copy)]
enum Symbol {
    Source(usize),
    /// Mends any packet up to this one.
    Repair(usize),
}

struct Link {
    way: f64,
    free: f64,
    loses: bool,
}

impl Link {
    /// When what leaves at `now` arrives; `None` if it is lost.
    fn carry(&mut self, now: f64, rng: &mut Rng) -> Option<f64> {
        self.free = now + SERVICE_MS;
        let ends = 1.0 / BURST;
        let begins = LOSS / (1.0 - LOSS) * ends;
        self.loses = rng.chance(if self.loses { 1.0 - ends } else { begins });
        (!self.loses).then_some(self.free + self.way)
    }
}

/// What arrives when, in order of time.
fn send(ways: [f64; 2], late: f64, rng: &mut Rng) -> Vec<(f64, Symbol)> {
    let mut links = ways.map(|way| Link {
        way,
        free: 0.0,
        loses: false,
    });
    let back = ways[0].min(ways[1]);
    let mut next = 0;
    // Losses by when they become known.
    let mut unknown: Vec<(f64, usize)> = Vec::new();
    let mut lost: VecDeque<usize> = VecDeque::new();
    let mut arrivals = Vec::new();
    while next < PACKETS {
        let link = if links[0].free <= links[1].free {
            &mut links[0]
        } else {
            &mut links[1]
        };
        let now = link.free;
        let known = unknown.partition_point(|(at, _)| *at <= now);
        lost.extend(unknown.drain(..known).map(|(_, packet)| packet));
        let symbol = if let Some(packet) = lost.pop_front() {
            Symbol::Source(packet)
        } else if next as f64 * GAP_MS <= now {
            next += 1;
            Symbol::Source(next - 1)
        } else {
            Symbol::Repair(next - 1)
        };
        match (link.carry(now, rng), symbol) {
            (Some(at), symbol) => arrivals.push((at, symbol)),
            (None, Symbol::Source(packet)) => {
                let at = link.free + link.way + back + late;
                let place = unknown.partition_point(|(other, _)| *other <= at);
                unknown.insert(place, (at, packet));
            }
            (None, Symbol::Repair(_)) => {}
        }
    }
    arrivals.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    arrivals
}

/// Delays in order (ms).
fn receive(arrivals: &[(f64, Symbol)]) -> Vec<f64> {
    let mut have = vec![false; PACKETS];
    let mut delays = Vec::with_capacity(PACKETS);
    // The last packet that each repair symbol mends, in ascending order.
    let mut repairs: Vec<usize> = Vec::new();
    for &(now, symbol) in arrivals {
        match symbol {
            Symbol::Source(packet) => have[packet] = true,
            Symbol::Repair(last) => {
                let place = repairs.partition_point(|other| *other <= last);
                repairs.insert(place, last);
            }
        }
        loop {
            while delays.len() < PACKETS && have[delays.len()] {
                delays.push(now - delays.len() as f64 * GAP_MS);
            }
            repairs.retain(|last| *last >= delays.len());
            // The first n symbols bring back what is missing up to the last that they mend, if it
            // is not more than n.
            let mut missing = 0;
            let mut from = delays.len();
            let whole = repairs.iter().enumerate().find(|&(n, &last)| {
                missing += (from..=last).filter(|packet| !have[*packet]).count();
                from = from.max(last + 1);
                missing <= n + 1
            });
            let Some((_, &last)) = whole else { break };
            have[delays.len()..=last].fill(true);
        }
    }
    delays
}

fn main() -> Result<(), Box<dyn Error>> {
    let late = std::env::args().nth(1).map_or(Ok(4.0), |ms| ms.parse())?;
    println!("losses known so many ms late    p50   p99 (range)   asked");
    for late in [0.0, late] {
        for (ways, asked) in PAIRS {
            let runs = (1..=SEEDS).map(|seed| {
                let mut rng = Rng::new(seed).stream("losses");
                let mut delays = receive(&send(ways, late, &mut rng));
                delays.sort_by(f64::total_cmp);
                let at = |share: f64| delays[(share * delays.len() as f64) as usize];
                [at(0.5), at(0.99)]
            });
            let runs: Vec<_> = runs.collect();
            let mean = |i: usize| runs.iter().map(|run| run[i]).sum::<f64>() / runs.len() as f64;
            let p99 = runs.iter().map(|run| run[1]);
            println!(
                "{late:3.0}: {:3.0}/{:3.0}                     {:5.1} {:5.1} ({:.0}–{:.0})   {asked}",
                2.0 * ways[0],
                2.0 * ways[1],
                mean(0),
                mean(1),
                p99.clone().fold(f64::INFINITY, f64::min),
                p99.fold(0.0, f64::max),
            );
        }
    }
    Ok(())
}
