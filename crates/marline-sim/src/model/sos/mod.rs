//! The experiment of the SOS paper without a protocol: objects of n packets over paths whose
//! packets take times that are drawn one by one (sections 3.3.1, 4.3).
//!
//! What plans are the functions of `marline_proto::sched::sos`, which the schedulers use, too. Here
//! they meet the paper's conditions and nothing else: paths are empty when an object comes, no
//! packet is lost, and the distribution of each path's times is given.
//!
//! Times are drawn from a generator for each object and path, so that all variants meet the same.

pub mod page;
mod path;
mod report;
mod variant;

pub(crate) use report::value_names;
pub use variant::Variant;

use std::collections::VecDeque;

use marline_base::{Duration, Rng};
use marline_link::{ConfigError, LinkConfig};
use marline_proto::sched::sos::{Lane, Reach, helps};

use path::{Path, Way};
use variant::{Means, Plan};

/// An experiment with objects.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The links, forward; a service time, or a recording of when packets can leave, and a constant
    /// delay each.
    pub links: Vec<LinkConfig>,
    /// Packets of an object, n.
    pub packets: u32,
    /// Objects of a run.
    pub objects: u32,
    /// How lucky SOS-FEC takes each path to be, γ.
    pub gamma: f64,
    /// From the arrival of a packet until the sender learns of it.
    pub feedback: Duration,
}

/// What came of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Delay of each object (ms).
    pub delays: Vec<f64>,
    /// Packets sent.
    pub sent: u64,
    /// Packets that objects had.
    pub needed: u64,
    /// When objects should have arrived, except for a share of ε (ms), D_U; none from variants that
    /// promise nothing.
    pub bound: Option<f64>,
}

impl Experiment {
    /// Runs it.
    ///
    /// # Errors
    /// A link whose parameters lie out of their range, or that has no service time.
    pub fn run(&self, variant: Variant, seed: u64) -> Result<Outcome, ConfigError> {
        self.check()?;
        let rng = Rng::new(seed);
        let ways = self.links.iter().enumerate();
        let ways =
            ways.filter_map(|(i, link)| Way::new(link, &mut rng.stream(&format!("way {i}"))));
        let ways: Vec<Way> = ways.collect();
        let mut outcome = Outcome::default();
        let planned = |ways: &[Way]| {
            let gamma = self.gamma;
            variant.plan(&Means { ways, gamma }, self.packets)
        };
        // Who knows distributions plans once; who looks at what went before, each time.
        let looks = ways.iter().any(Way::is_recorded);
        let mut plan = match variant {
            Variant::BestSplit => self.best_split(&ways, &rng),
            _ => planned(&ways),
        };
        if let Plan::Static { bound, .. } = &plan
            && !looks
        {
            outcome.bound = *bound;
        }
        let mut known = ways.clone();
        for object in 0..self.objects {
            let mut paths: Vec<Path<'_>> = paths(&ways, &rng, object).collect();
            if looks {
                known = paths.iter().map(Path::known).collect();
                if variant != Variant::BestSplit {
                    plan = planned(&known);
                }
            }
            let (delay, sent) = match &plan {
                Plan::Static { packets, .. } => {
                    (nth(&mut paths, packets, self.packets), total(packets))
                }
                Plan::Rateless(lanes) => self.rateless(&mut paths, &known, lanes),
            };
            outcome.delays.push(delay);
            outcome.sent += sent;
            outcome.needed += u64::from(self.packets);
        }
        Ok(outcome)
    }

    /// Can it be run?
    ///
    /// # Errors
    /// A link whose parameters lie out of their range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let mut links = self.links.iter().cloned();
        links.try_for_each(|link| marline_link::Link::new(link, 0).map(drop))
    }

    /// Symbols go on whichever path has less than its reach under way, coded ones once all have
    /// been sent, until the sender knows that as many arrived as the object has. Delay and what was
    /// sent.
    fn rateless(&self, paths: &mut [Path<'_>], known: &[Way], lanes: &[Lane]) -> (f64, u64) {
        let feedback = self.feedback.as_secs_f64() * 1e3;
        let rooms = |unsent: bool| -> Vec<u32> {
            let room = |way: &Way| Reach::default().packets(&way.moments, feedback, unsent);
            known.iter().map(room).collect()
        };
        let (first, last) = (rooms(true), rooms(false));
        let mut flying: Vec<u32> = vec![0; paths.len()];
        // When the sender learns of the packets of each path, in their order.
        let mut heard: Vec<VecDeque<f64>> = vec![Default::default(); paths.len()];
        let (mut now, mut sent, mut known) = (0.0, 0, 0);
        let mut arrivals = Vec::new();
        loop {
            for i in 0..paths.len() {
                while match sent < self.packets {
                    true => flying[i] < first[i],
                    false => flying[i] < last[i] && helps(lanes, &flying, i),
                } {
                    let arrival = paths[i].send(now);
                    arrivals.push(arrival);
                    heard[i].push_back(arrival + feedback);
                    flying[i] += 1;
                    sent += 1;
                }
            }
            let next = heard
                .iter()
                .enumerate()
                .filter_map(|(i, h)| Some((i, *h.front()?)));
            let Some((i, at)) = next.min_by(|a, b| a.1.total_cmp(&b.1)) else {
                break;
            };
            heard[i].pop_front();
            flying[i] -= 1;
            (now, known) = (at, known + 1);
            if known == self.packets {
                break;
            }
        }
        arrivals.sort_by(f64::total_cmp);
        let last = arrivals.get(self.packets as usize - 1);
        (last.copied().unwrap_or(f64::INFINITY), u64::from(sent))
    }

    /// The split of two paths with the least 95th percentile over the very objects that it is
    /// measured with, found by trying.
    fn best_split(&self, ways: &[Way], rng: &Rng) -> Plan {
        let n = self.packets;
        let [_, _] = ways else {
            return Plan::Static {
                packets: vec![n; ways.len()],
                bound: None,
            };
        };
        // Arrivals of all objects, packet by packet, on each path.
        let walk = |object: u32| -> [Vec<f64>; 2] {
            let mut both = paths(ways, rng, object).map(|mut path| {
                let mut times = vec![0.0];
                times.extend((0..n).map(|_| path.send(0.0)));
                times
            });
            [
                both.next().unwrap_or_default(),
                both.next().unwrap_or_default(),
            ]
        };
        let walks: Vec<[Vec<f64>; 2]> = (0..self.objects).map(walk).collect();
        let p95 = |first: u32| {
            let delay = |[a, b]: &[Vec<f64>; 2]| a[first as usize].max(b[(n - first) as usize]);
            let mut delays: Vec<f64> = walks.iter().map(delay).collect();
            report::percentile(&mut delays, 0.95)
        };
        let best = |splits: &mut dyn Iterator<Item = u32>| {
            let tried = splits.map(|first| (first, p95(first)));
            tried
                .min_by(|a, b| a.1.total_cmp(&b.1))
                .map_or(0, |(first, _)| first)
        };
        let step = n.div_ceil(50).max(1);
        let coarse = best(&mut (0..=n).step_by(step as usize).chain([n]));
        let fine = best(&mut (coarse.saturating_sub(step)..=(coarse + step).min(n)));
        Plan::Static {
            packets: vec![fine, n - fine],
            bound: None,
        }
    }
}

fn paths<'a>(ways: &'a [Way], rng: &'a Rng, object: u32) -> impl Iterator<Item = Path<'a>> {
    let path = move |(i, way)| Path::new(way, rng.stream(&format!("path {i} object {object}")));
    ways.iter().enumerate().map(path)
}

fn total(packets: &[u32]) -> u64 {
    packets.iter().copied().map(u64::from).sum()
}

/// When the n-th packet arrived of those that all left at once.
fn nth(paths: &mut [Path<'_>], packets: &[u32], n: u32) -> f64 {
    let mut left = packets.to_vec();
    let mut next: Vec<f64> = vec![f64::INFINITY; paths.len()];
    for (i, path) in paths.iter_mut().enumerate() {
        if left[i] > 0 {
            next[i] = path.send(0.0);
        }
    }
    let mut last = f64::INFINITY;
    for _ in 0..n {
        let Some(i) = (0..next.len()).min_by(|a, b| next[*a].total_cmp(&next[*b])) else {
            break;
        };
        last = next[i];
        left[i] = left[i].saturating_sub(1);
        next[i] = match left[i] {
            0 => f64::INFINITY,
            _ => paths[i].send(0.0),
        };
    }
    last
}

#[cfg(test)]
mod tests;
