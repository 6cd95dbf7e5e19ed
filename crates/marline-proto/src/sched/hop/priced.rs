//! Redundancy at a price.

use alloc::vec::Vec;

use super::count::sum_of;
use super::losses::Losses;
use super::{Count, Found, Lane, Order};

/// What a packet that is left over at the next block costs, in units of the probability that a
/// block is late. With it the schedules are as good as the optimal policy of the Markov decision
/// process over backlogs for two paths of 40 ± 8 Mb/s; from 0.006 to 0.010 nothing changes.
pub const PRICE: f64 = 0.008;

/// Sweeps over the lanes at most.
const SWEEPS: u32 = 6;

/// The schedule that minimises P_e + `price` · expected left-over packets, with at least `k`
/// packets in all, as far as going down one lane at a time finds it.
///
/// JUMP asks for a reliability whatever it costs: when capacity is short it sends more, what it
/// sends waits before the next block, and that one is late instead. Here a packet is sent while it
/// gains more for this block than it costs the next. For a lane alone P_e is known for every number
/// of packets at once, because one more packet gains (1 − λ(s+1))·P(the others bring k − s − 1),
/// or, if packets get lost, (1 − λ(s+1))(1 − ε)·P(the others bring k − 1 less what is left of s).
pub fn priced(lanes: &[Lane], order: &Order, k: usize, price: f64) -> Found {
    let mut packets = order.packets(k + k / 8);
    let counts = lanes.iter().zip(&packets);
    let mut counts: Vec<Count> = counts.map(|(lane, n)| Count::of(lane, *n)).collect();
    let mut failure = 1.0;
    let (mut evaluations, mut stayed) = (0, 0);
    while stayed < lanes.len() && evaluations < SWEEPS * lanes.len() as u32 {
        let index = evaluations as usize % lanes.len();
        let before = packets[index];
        failure = settle(lanes, &counts, &mut packets, index, k, price);
        evaluations += 1;
        stayed += 1;
        if packets[index] != before {
            counts[index] = Count::of(&lanes[index], packets[index]);
            // Itself it need not be looked at again.
            stayed = 1;
        }
    }
    Found {
        packets,
        failure,
        feasible: true,
        evaluations,
    }
}

/// Gives one lane its best number of packets, the others staying as they are; answers P_e.
fn settle(
    lanes: &[Lane],
    counts: &[Count],
    packets: &mut [usize],
    index: usize,
    k: usize,
    price: f64,
) -> f64 {
    let lane = &lanes[index];
    let others = counts.iter().enumerate().filter(|(i, _)| *i != index);
    let others = sum_of(others.map(|(_, count)| count), k);
    let sent: usize = packets.iter().sum::<usize>() - packets[index];
    let least = lane.least().max(k.saturating_sub(sent)).min(lane.most());
    let mut failure = others.below(k);
    let mut best = (f64::INFINITY, lane.least(), failure);
    // Of the packets before: if the next one is on time, they all were, except for what was lost.
    let mut losses = Losses::none(lane.loss());
    for s in 0..=lane.most() {
        if s > 0 {
            let lost = losses
                .weights()
                .iter()
                .enumerate()
                .skip(s.saturating_sub(k));
            let decides: f64 = lost.map(|(lost, p)| p * others.exactly(k + lost - s)).sum();
            failure -= (1.0 - lane.late()[s]) * (1.0 - lane.loss()) * decides;
            losses.one_more();
        }
        let cost = failure + price * lane.left_over(s);
        if s >= least && cost < best.0 {
            best = (cost, s, failure);
        }
    }
    packets[index] = best.1;
    best.2.clamp(0.0, 1.0)
}
