//! Splits by the law of the latest path: tails that are chosen together.
//!
//! An object has arrived when all its paths are done, so what is promised is the product of what
//! each path keeps: Π P(Tᵢ ≤ D) ≥ 1 − ε. Giving ε/m to each path, as (2) does, is careful where
//! paths are alike and wrong where they are not: a steady path keeps a promise that is a little
//! later almost for sure, so nearly all of ε belongs to the shaky one.

use libm::sqrt;
use smallvec::SmallVec;

use super::lane::{Lane, PROMISED};
use super::split::{Split, by_bounds};
use super::sums::Sum;
use crate::sched::normal;

/// Rounds in which tails, laws and numbers of packets find to each other; what they leave is left
/// to single moves.
const ROUNDS: u32 = 3;
/// Of objects with more packets, single ones do not matter,
const SMALL: u32 = 64;
/// and of others this number is moved at most.
const MOVES: u32 = 16;
/// Steps towards the time that a split keeps.
const STEPS: u32 = 10;
/// What a move must add to the probability that all is there.
const WORTH: f64 = 1e-3;
/// No path's tail is less: beyond it tables end, and nothing is ever known.
const LEAST: f64 = 1e-5;

type Each<T> = SmallVec<[T; 4]>;

/// The split of `n` packets whose latest bound is earliest (5), exactly, for any number of lanes; a
/// lane that gets nothing counts for nothing. Empty without lanes.
///
/// Lanes with laws (among them one without a law is certain) are split so that the probability that
/// all of them are done is 1 − ε soonest. That is exact except for what laws and tables leave open,
/// and repeats the search by bounds for each choice of tails.
pub fn split(lanes: &[Lane], n: u32) -> Split {
    match n > 0 && lanes.iter().any(Lane::has_law) {
        true => split_jointly(lanes, n),
        false => by_bounds(lanes, n),
    }
}

fn split_jointly(lanes: &[Lane], n: u32) -> Split {
    let epsilon = epsilon(lanes);
    if lanes.len() == 1 {
        let packets = Each::from_elem(n, 1);
        let bound = kept_at(lanes, &packets, PROMISED * epsilon);
        return Split { packets, bound };
    }
    let mut scores = Each::from_elem(normal::score(epsilon / lanes.len() as f64), lanes.len());
    // About as many as would be there together.
    let rate = |lane: &Lane| 1.0 / lane.mean().max(1e-9 * (1.0 + lane.deviation()));
    let rates: f64 = lanes.iter().map(rate).sum();
    let first = lanes
        .iter()
        .map(|lane| (f64::from(n) * rate(lane) / rates) as u32);
    let mut packets: Each<u32> = first.collect();
    for _ in 0..ROUNDS {
        let widths = widths(lanes, &packets, &mut scores, epsilon);
        let next = by_bounds(&widths, n).packets;
        let same = next == packets;
        packets = next;
        if same {
            break;
        }
    }
    if n <= SMALL {
        mend(lanes, &mut packets, n, epsilon);
    }
    let bound = kept_at(lanes, &packets, PROMISED * epsilon);
    Split { packets, bound }
}

/// Moves single packets as long as that helps, and all of them to one lane if that alone is better.
fn mend(lanes: &[Lane], packets: &mut [u32], n: u32, epsilon: f64) {
    let mut time = kept_at(lanes, packets, epsilon);
    for _ in 0..MOVES {
        if !improve(lanes, packets, time) {
            break;
        }
        time = kept_at(lanes, packets, epsilon);
    }
    let z = normal::score(epsilon);
    for (i, lane) in lanes.iter().enumerate() {
        let alone = lane.sum(n).end(z);
        if alone < time {
            time = alone;
            packets.fill(0);
            packets[i] = n;
        }
    }
}

/// The lanes with the widths that their laws and shares of the tails give them for such a split:
/// (2), once tails are chosen. Lanes without laws are what they are.
pub(super) fn settled(lanes: &[Lane], packets: &[u32]) -> Each<Lane> {
    if !lanes.iter().any(Lane::has_law) {
        return Each::from_slice(lanes);
    }
    let epsilon = epsilon(lanes);
    let mut scores = Each::from_elem(normal::score(epsilon / lanes.len() as f64), lanes.len());
    for _ in 1..ROUNDS {
        widths(lanes, packets, &mut scores, epsilon);
    }
    widths(lanes, packets, &mut scores, epsilon)
}

fn epsilon(lanes: &[Lane]) -> f64 {
    let each = lanes.iter().map(Lane::epsilon);
    each.fold(0.0, f64::max)
}

/// The lanes with widths of their own for such a split, with ε among those that have packets, at
/// `scores` that are mended. Where the split is best, one packet more makes every path later by as
/// much probability: densities times μ are the same. The density is the tail times the hazard, so
/// tails are as the time in which they fall by a factor, in packets.
fn widths(lanes: &[Lane], packets: &[u32], scores: &mut [f64], epsilon: f64) -> Each<Lane> {
    let sums = lanes
        .iter()
        .zip(packets)
        .map(|(lane, n)| lane.sum((*n).max(1)));
    let sums: Each<Sum> = sums.collect();
    let mut all = 0.0;
    let mut reaches: Each<f64> = SmallVec::new();
    for (i, (lane, sum)) in lanes.iter().zip(&sums).enumerate() {
        // What it would be if it had a packet is not known yet.
        let reach = if packets[i] > 0 {
            reach(lane, sum, scores[i])
        } else {
            0.0
        };
        all += reach;
        reaches.push(reach);
    }
    let count = packets.iter().filter(|n| **n > 0).count().max(1) as f64;
    for (i, score) in scores.iter_mut().enumerate() {
        let tail = match (packets[i], all > 0.0) {
            (0, _) => epsilon / lanes.len() as f64,
            (_, true) => (epsilon * reaches[i] / all).max(LEAST),
            (_, false) => epsilon / count,
        };
        *score = normal::score(tail);
    }
    let each = lanes.iter().zip(&sums).zip(scores.iter());
    each.map(|((lane, sum), z)| lane.with_width(lane.deviation() * sum.shape.value(*z)))
        .collect()
}

/// The time in which a lane's tail falls by a factor of e beyond the score `z`, in its packets.
fn reach(lane: &Lane, sum: &Sum, z: f64) -> f64 {
    let rise = sum.deviation * (sum.shape.value(z + 0.25) - sum.shape.value(z)) * 4.0;
    // The normal hazard, within 1 % from z = 1 on.
    let hazard = 0.75 * z + sqrt(z * z + 8.0) / 4.0;
    rise.max(0.0) / hazard / lane.mean().max(1e-9 * (1.0 + lane.deviation()))
}

/// The time at which all lanes are done with probability 1 − ε.
fn kept_at(lanes: &[Lane], packets: &[u32], epsilon: f64) -> f64 {
    let used = lanes.iter().zip(packets).filter(|(_, n)| **n > 0);
    let sums: Each<Sum> = used.map(|(lane, n)| lane.sum(*n)).collect();
    let latest = |tail: f64| {
        let z = normal::score(tail);
        let ends = sums.iter().map(|sum| sum.end(z));
        ends.reduce(f64::max).unwrap_or(0.0)
    };
    let mut low = latest(epsilon);
    if sums.len() < 2 {
        return low;
    }
    let mut high = latest(epsilon / sums.len() as f64);
    let over = |time: f64| sums.iter().map(|sum| sum.over(time)).product::<f64>();
    let (mut short, mut more) = (1.0 - epsilon - over(low), over(high) - (1.0 - epsilon));
    if short <= 0.0 {
        return low;
    }
    let part = |short: f64, more: f64| {
        let part = short / (short + more.max(0.0)).max(1e-12);
        part.clamp(0.05, 0.95)
    };
    for _ in 0..STEPS {
        if high - low <= 3e-4 * high.abs() {
            break;
        }
        let middle = low + part(short, more) * (high - low);
        let off = over(middle) - (1.0 - epsilon);
        if off < 0.0 {
            (low, short) = (middle, -off);
            more *= 0.5;
        } else {
            (high, more) = (middle, off);
            short *= 0.5;
        }
    }
    low + part(short, more) * (high - low)
}

/// Moves one packet to where it makes it likeliest that all is there at `time`; none would?
fn improve(lanes: &[Lane], packets: &mut [u32], time: f64) -> bool {
    let over = |lane: &Lane, n: u32| match n {
        0 => 1.0,
        _ => lane.sum(n).over(time),
    };
    // With one packet less, as many, one more.
    let each = lanes.iter().zip(packets.iter()).map(|(lane, n)| {
        let around = [n.saturating_sub(1), *n, n.saturating_add(1)];
        around.map(|n| over(lane, n))
    });
    let each: Each<[f64; 3]> = each.collect();
    let all: f64 = each.iter().map(|over| over[1]).product();
    let mut best = (all + WORTH, None);
    for from in (0..lanes.len()).filter(|i| packets[*i] > 0) {
        for to in (0..lanes.len()).filter(|to| *to != from) {
            let others = (0..lanes.len()).filter(|i| *i != from && *i != to);
            let others: f64 = others.map(|i| each[i][1]).product();
            let with = others * each[from][0] * each[to][2];
            if with > best.0 {
                best = (with, Some((from, to)));
            }
        }
    }
    let Some((from, to)) = best.1 else {
        return false;
    };
    packets[from] -= 1;
    packets[to] += 1;
    true
}

#[cfg(test)]
mod tests;
