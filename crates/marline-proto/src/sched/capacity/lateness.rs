//! The probability that a packet is late (HOP §V-B, V-C).

use alloc::vec;
use alloc::vec::Vec;

use super::mixture::Mixture;
use super::outage::erlang;
use super::{Backlog, CapacityForecast, positive};
use crate::sched::normal::Table;

/// What is needed to compute how likely a packet is late that is sent now as the j-th of a burst.
///
/// It is on time if the bottleneck serves what waits there, q, and j packets within the time that
/// the deadline leaves after propagation, W: q + jL ≤ C·W. The capacity C is what is forecast; the
/// backlog q has a distribution of its own where the last slot's capacity is not known. The printed
/// (27), (34) put all of that into one normal distribution, which makes a rare event of what is not
/// rare.
#[derive(Clone, Debug, PartialEq)]
pub struct Lateness {
    /// What waits at the bottleneck already.
    pub backlog: Backlog,
    /// Capacity within the window.
    pub capacity: CapacityForecast,
    /// Time from now to the last moment at which a packet can leave the bottleneck and still be on
    /// time (seconds).
    pub window: f64,
    /// Slots in it, for the capacity in a fall.
    pub slots: u32,
    /// Length of a packet (bits).
    pub packet: f64,
}

impl Lateness {
    /// λ(j): probability that the `j`-th packet is late, and with it all after it; 0 for none.
    pub fn of(&self, table: &Table, j: u32) -> f64 {
        if j == 0 {
            return 0.0;
        }
        if !positive(self.window) {
            return 1.0;
        }
        let sent = f64::from(j) * self.packet;
        let waits = self.backlog.nodes().iter();
        let late: f64 = waits
            .map(|(bits, weight)| weight * self.short(table, (bits + sent) / self.window))
            .sum();
        let outage = self.capacity.outage;
        (outage + (1.0 - outage) * late).clamp(0.0, 1.0)
    }

    /// Probability that the capacity is below `needed` (bit/s).
    #[inline]
    fn short(&self, table: &Table, needed: f64) -> f64 {
        let CapacityForecast { mean, sd, .. } = self.capacity;
        if self.capacity.falling {
            let slots = self.slots.max(1);
            return match mean > 0.0 {
                true => erlang(slots, f64::from(slots) * needed / mean),
                false => 1.0,
            };
        }
        match sd > 0.0 {
            true => table.below((needed - mean) / sd),
            false => f64::from(u8::from(needed > mean)),
        }
    }

    /// Packets, backlog included, that are expected to wait still when the next block comes `every`
    /// seconds from now, if `j` are sent: E[(q + jL − C·every)⁺]/L.
    pub fn left_over(&self, table: &Table, j: u32, every: f64) -> f64 {
        if !positive(every) {
            return f64::from(j);
        }
        let CapacityForecast { mean, sd, .. } = self.capacity;
        let sent = f64::from(j) * self.packet;
        let waits = self.backlog.nodes().iter();
        let bits: f64 = waits
            .map(|(bits, weight)| {
                let needed = (bits + sent) / every;
                let rate = match sd > 0.0 && !self.capacity.falling {
                    true => sd * table.excess((needed - mean) / sd),
                    false => (needed - mean).max(0.0),
                };
                weight * rate * every
            })
            .sum();
        bits / self.packet
    }

    /// Numbers of packets beyond this are late for certain, or as good as: five deviations.
    pub fn hopeless(&self) -> u32 {
        let CapacityForecast {
            mean, sd, falling, ..
        } = self.capacity;
        if falling || !positive(self.window) {
            return u32::MAX;
        }
        let least = self.backlog.nodes().iter().map(|(bits, _)| *bits);
        let bits = (mean + 5.0 * sd) * self.window - least.fold(f64::INFINITY, f64::min);
        // A number that is none becomes 0 here, and is looked at by everyone else.
        ((bits / self.packet) as u32).saturating_add(1)
    }

    /// λ(0), λ(`step`), … λ(`most`·`step`): as [`of`](Self::of), several times as fast.
    pub fn all(&self, table: &Table, step: u32, most: u32) -> Vec<f64> {
        let CapacityForecast {
            mean,
            sd,
            outage,
            falling,
        } = self.capacity;
        let slope = f64::from(step) * self.packet / self.window / sd;
        if falling || !(positive(self.window) && positive(slope) && slope.is_finite()) {
            return (0..=most)
                .map(|i| self.of(table, i.saturating_mul(step)))
                .collect();
        }
        let mut late = match self.mixture(step, slope, most) {
            Some(mixture) => {
                let start = -mean / sd;
                let add = |values: &mut [f64], at: f64| {
                    table.add_below(values, start + at * slope, slope, 1.0);
                };
                mixture.sums(most as usize, add)
            }
            None => {
                let mut late = vec![0.0; most as usize + 1];
                for (bits, weight) in self.backlog.nodes() {
                    let start = (bits / self.window - mean) / sd;
                    table.add_below(&mut late, start, slope, *weight);
                }
                late
            }
        };
        for late in &mut late {
            *late = (outage + (1.0 - outage) * *late).clamp(0.0, 1.0);
        }
        late[0] = 0.0;
        late
    }

    /// [`left_over`](Self::left_over) of 0, `step`, … `most`·`step` packets.
    pub fn all_left_over(&self, table: &Table, step: u32, most: u32, every: f64) -> Vec<f64> {
        let CapacityForecast { mean, sd, .. } = self.capacity;
        let slope = f64::from(step) * self.packet / every / sd;
        if self.capacity.falling || !(positive(every) && positive(slope) && slope.is_finite()) {
            let left = |i: u32| self.left_over(table, i.saturating_mul(step), every);
            return (0..=most).map(left).collect();
        }
        if let Some(mixture) = self.mixture(step, slope, most) {
            let (start, packets) = (-mean / sd, sd * every / self.packet);
            let add = |values: &mut [f64], at: f64| {
                table.add_excess(values, start + at * slope, slope, packets);
            };
            return mixture.sums(most as usize, add);
        }
        let mut left = vec![0.0; most as usize + 1];
        for (bits, weight) in self.backlog.nodes() {
            let start = (bits / every - mean) / sd;
            table.add_excess(&mut left, start, slope, weight * sd * every / self.packet);
        }
        left
    }

    /// What waits already, in steps of `step` packets, for functions that change with `slope` a
    /// step.
    fn mixture(&self, step: u32, slope: f64, most: u32) -> Option<Mixture> {
        let bits = f64::from(step) * self.packet;
        let nodes = self.backlog.nodes().iter();
        let shifts = nodes.map(|(waits, weight)| (waits / bits, *weight));
        Mixture::new(shifts, slope, most as usize)
    }

    /// Packets that the path is expected to bring within the window beyond what waits there: the
    /// bound S of JUMP, which is μ(T − τ/2)/L less the backlog.
    pub fn bound(&self) -> u32 {
        let bits = self.capacity.mean * self.window.max(0.0) - self.backlog.mean();
        (bits / self.packet) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::super::Batch;
    use super::*;
    use crate::sched::normal;
    use marline_base::Rng;

    fn near(a: f64, b: f64, within: f64) {
        assert!(libm::fabs(a - b) <= within, "{a} is not {b}");
    }

    /// 40 ± 8 Mb/s, 22.5 ms: 75 packets of 12 000 bit on average.
    fn path(backlog: Backlog) -> Lateness {
        Lateness {
            backlog,
            capacity: CapacityForecast::normal(40e6, 8e6),
            window: 22.5e-3,
            slots: 1,
            packet: 12_000.0,
        }
    }

    #[test]
    fn an_empty_path_by_hand() {
        let table = Table::new();
        let path = path(Backlog::known(0.0));
        assert_eq!(path.of(&table, 0), 0.0);
        near(path.of(&table, 75), 0.5, 1e-9);
        // Sixty packets need 32 Mb/s, one deviation less.
        near(path.of(&table, 60), normal::below(-1.0), 1e-9);
        assert_eq!(path.bound(), 75);
        let behind = Lateness {
            backlog: Backlog::known(15.0 * 12_000.0),
            ..path.clone()
        };
        near(behind.of(&table, 60), 0.5, 1e-9);
        assert_eq!(behind.bound(), 60);
        // In 25 ms the path serves 83.3 packets.
        near(path.left_over(&table, 20, 25e-3), 0.0, 1e-3);
        near(path.left_over(&table, 150, 25e-3), 150.0 - 83.333, 1e-2);
    }

    #[test]
    fn two_slots_make_what_draws_make() {
        // The erratum on conditions in one normal: 60 packets wait and 50 are to come.
        let table = Table::new();
        let batch = Batch {
            came: 0.0,
            bits: 110.0 * 12_000.0,
        };
        let backlog = Backlog::unseen(&[batch], 0.0, 25e-3, 40e6, 8e6);
        let path = path(backlog);
        let mut rng = Rng::new(51);
        let (mut late, mut left) = (0.0, 0.0);
        const N: f64 = 200_000.0;
        for _ in 0..N as u32 {
            let mut capacity = || 40e6 + 8e6 * rng.normal();
            let waits = (110.0 * 12_000.0 - 25e-3 * capacity().max(0.0)).max(0.0);
            let next = capacity();
            let need = waits + 40.0 * 12_000.0;
            late += f64::from(u8::from(need > next * 22.5e-3)) / N;
            left += (need - next * 25e-3).max(0.0) / 12_000.0 / N;
        }
        // Six standard errors of the draws, and the coarseness of 24 nodes.
        near(path.of(&table, 40), late, 0.007 + 0.01);
        near(path.left_over(&table, 40, 25e-3), left, 0.15 + 0.1);
    }

    #[test]
    fn falls_outages_and_constants() {
        let table = Table::new();
        let mut path = path(Backlog::known(0.0));
        path.capacity.outage = 0.1;
        near(path.of(&table, 1), 0.1 + 0.9 * normal::below(-4.933), 1e-6);
        path.capacity = CapacityForecast::normal(40e6, 0.0);
        assert_eq!((path.of(&table, 75), path.of(&table, 76)), (0.0, 1.0));
        path.capacity.falling = true;
        near(path.of(&table, 75), 1.0 - libm::exp(-1.0), 1e-12);
        path.window = -1.0;
        assert_eq!((path.of(&table, 1), path.bound()), (1.0, 0));
    }

    #[test]
    fn lateness_never_falls_with_more_packets() {
        let table = Table::new();
        let mut rng = Rng::new(52);
        for _ in 0..300 {
            let batch = Batch {
                came: 0.0,
                bits: 2e6 * rng.uniform(),
            };
            let (mean, sd) = (80e6 * rng.uniform(), 20e6 * rng.uniform());
            let mut path = path(Backlog::unseen(&[batch], 0.0, 25e-3, mean, sd));
            path.capacity = CapacityForecast::normal(mean, sd);
            path.capacity.outage = 0.2 * rng.uniform();
            path.capacity.falling = rng.chance(0.1);
            let (mut late, mut left) = (0.0, 0.0);
            let all = path.all(&table, 3, 66);
            let all_left = path.all_left_over(&table, 3, 66, 25e-3);
            for j in 0..199 {
                if j % 3 == 0 {
                    near(all[j as usize / 3], path.of(&table, j), 1e-9);
                    near(
                        all_left[j as usize / 3],
                        path.left_over(&table, j, 25e-3),
                        1e-6,
                    );
                }
                if j > path.hopeless() {
                    assert!(path.of(&table, j) > 1.0 - 1e-6);
                }
                let (now, waits) = (path.of(&table, j), path.left_over(&table, j, 25e-3));
                assert!(
                    (0.0..=1.0).contains(&now) && now >= late - 1e-12,
                    "{path:?}"
                );
                assert!(waits >= left - 1e-9, "{path:?}");
                (late, left) = (now, waits);
            }
        }
    }
}
