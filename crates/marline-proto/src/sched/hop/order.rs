use alloc::vec::Vec;

use super::Lane;

/// Which path gets the next packet: the one on which it is the least likely to be late or lost (2).
/// The order does not depend on how many packets are sent in all, so that one order holds the
/// schedules of every size, each part of the next.
///
/// Not the best schedule of its size in every case, as the paper claims: what a packet adds is
/// (1 − λ)·P(the others bring exactly what is missing), and the second factor differs from path to
/// path where capacities spread unequally. The tests say by how much it falls short.
#[derive(Clone, Debug)]
pub struct Order {
    least: Vec<usize>,
    sequence: Vec<u8>,
}

impl Order {
    /// The order over at most 255 lanes. Of paths whose next packets differ by less than
    /// `tolerance` the one with fewest packets is taken (the paper's ε).
    pub fn new(lanes: &[Lane], tolerance: f64) -> Self {
        let lanes = &lanes[..lanes.len().min(usize::from(u8::MAX))];
        let least: Vec<usize> = lanes.iter().map(Lane::least).collect();
        let mut packets = least.clone();
        let room: usize = lanes.iter().map(|lane| lane.most() - lane.least()).sum();
        let mut sequence = Vec::with_capacity(room);
        let mut late: Vec<Option<f64>> = (0..lanes.len())
            .map(|i| next(lanes, i, packets[i]))
            .collect();
        for _ in 0..room {
            let lowest = late.iter().flatten().copied().fold(f64::INFINITY, f64::min);
            let near = |i: &usize| late[*i].is_some_and(|late| late <= lowest + tolerance);
            let near = (0..lanes.len()).filter(near);
            let Some(chosen) = near.min_by_key(|i| packets[*i]) else {
                break;
            };
            packets[chosen] += 1;
            late[chosen] = next(lanes, chosen, packets[chosen]);
            sequence.push(chosen as u8);
        }
        Self { least, sequence }
    }

    /// Packets that every schedule has.
    pub fn fewest(&self) -> usize {
        self.least.iter().sum()
    }

    /// Packets of the largest schedule.
    pub fn most(&self) -> usize {
        self.fewest() + self.sequence.len()
    }

    /// The schedule of `total` packets, or the nearest there is.
    pub fn packets(&self, total: usize) -> Vec<usize> {
        let mut packets = self.least.clone();
        let more = total.saturating_sub(self.fewest());
        for lane in self.sequence.iter().take(more) {
            packets[usize::from(*lane)] += 1;
        }
        packets
    }
}

/// Probability that the packet after `packets` others on a lane is late or lost; `None` if there
/// can be none.
fn next(lanes: &[Lane], lane: usize, packets: usize) -> Option<f64> {
    let late = lanes[lane].late().get(packets + 1)?;
    Some(1.0 - (1.0 - late) * (1.0 - lanes[lane].loss()))
}
