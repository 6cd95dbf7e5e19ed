use alloc::vec;
use alloc::vec::Vec;

use super::losses::spare;
use crate::sched::capacity::Lateness;
use crate::sched::normal::Table;

/// What bounds the packets of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// At least: what was sent already, or what keeps the forecast alive (HOP has 10).
    pub least: u32,
    /// At most; counts for at least `least`.
    pub most: u32,
}

/// A path as a plan sees it: the probability of being late for each number of packets, and what
/// each number would leave over.
#[derive(Clone, Debug)]
pub struct Lane {
    /// λ(0), λ(1), … in steps, non-decreasing; never empty.
    late: Vec<f64>,
    /// Expected left-over in packets, by steps; empty if it is not asked for.
    left: Vec<f64>,
    least: usize,
    /// Probability that a packet is lost, whenever it would have come.
    loss: f64,
}

impl Lane {
    /// The lane of a path in steps of `step` packets. `every` is the time between blocks (seconds),
    /// if what is left over is to be known.
    pub fn new(
        table: &Table,
        lateness: &Lateness,
        limits: Limits,
        step: u32,
        every: Option<f64>,
    ) -> Self {
        let step = step.max(1);
        let least = limits.least.div_ceil(step);
        // Rounded up: a path that takes all packets of a block takes all steps of it.
        let most = limits.most.div_ceil(step).max(least);
        let most = most.min((lateness.hopeless() / step).max(least));
        let late = lateness.all(table, step, most);
        let left = every.map_or_else(Vec::new, |every| {
            lateness.all_left_over(table, step, most, every)
        });
        Self::from_values(late, left, least as usize)
    }

    /// A lane from given values: λ(0) = 0, λ(1), … as far as packets may be sent, and what each
    /// number leaves over. A λ counts as at least the one before it.
    pub fn from_values(mut late: Vec<f64>, left: Vec<f64>, least: usize) -> Self {
        let mut highest = 0.0_f64;
        for late in &mut late {
            highest = highest.max(*late);
            *late = highest;
        }
        if late.is_empty() {
            late = vec![0.0];
        }
        Self {
            least: least.min(late.len() - 1),
            late,
            left,
            loss: 0.0,
        }
    }

    /// The same where packets are lost with probability `loss` (0..1), independently.
    pub fn with_loss(self, loss: f64) -> Self {
        Self { loss, ..self }
    }

    /// The same with no more steps than are useful to a block of `k`, and not fewer than the least:
    /// more than k on one path never help (§IV), except for what is lost of them.
    pub fn useful(&self, k: usize) -> Self {
        let spare = spare(u32::try_from(k).unwrap_or(u32::MAX), self.loss);
        let most = k.saturating_add(spare as usize).max(self.least);
        let mut lane = self.clone();
        lane.late.truncate(most + 1);
        lane.left.truncate(most + 1);
        lane
    }

    /// Probability that a packet is lost.
    pub const fn loss(&self) -> f64 {
        self.loss
    }

    /// λ by number of packets.
    pub fn late(&self) -> &[f64] {
        &self.late
    }

    /// Fewest packets.
    pub const fn least(&self) -> usize {
        self.least
    }

    /// Most packets.
    pub const fn most(&self) -> usize {
        self.late.len() - 1
    }

    /// Expected packets that wait still at the next block if `packets` are sent; 0 if not asked
    /// for.
    pub fn left_over(&self, packets: usize) -> f64 {
        self.left.get(packets).copied().unwrap_or(0.0)
    }
}
