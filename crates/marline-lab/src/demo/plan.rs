//! What follows from the options before anything runs.

use super::options::{Options, Scheduling};
use super::report::{Dark, LinkReport};
use marline_base::Rate;
use marline_link::{Delay, LinkConfig};
use std::fmt::Display;
use std::time::Duration;

/// Names of the links.
pub(super) const NAMES: [&str; 2] = ["A", "B"];
/// The better link's darkness, unless the run is too short for it.
const DARK: Duration = Duration::from_secs(2);
/// Size of a download over links of unknown rate, and the largest.
const LARGEST_BODY: u64 = 16 << 20;
const SMALLEST_BODY: u64 = 64 << 10;

/// All runs of a demo.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The options that it follows from.
    pub options: Options,
    /// The runs in their order.
    pub runs: Vec<RunPlan<Scheduling>>,
    /// Number of the better link: that of the higher rate, or else of the shorter delay.
    pub better: usize,
    /// When it goes dark, from the beginning of a run.
    pub dark_at: Duration,
    /// For how long.
    pub dark_for: Duration,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPlan<S> {
    /// As the table names it.
    pub name: String,
    /// Numbers of the links in use.
    pub links: Vec<usize>,
    /// What schedules its flows.
    pub scheduler: S,
}

impl Plan {
    /// Each link alone, then both with each scheduler.
    pub fn new(options: Options) -> Self {
        let dark_for = DARK.min(options.time / 4);
        Plan {
            runs: RunPlan::all(&options.schedulers, Scheduling::Auto),
            better: usize::from(rank(&options.links[1]) > rank(&options.links[0])),
            dark_at: (options.time - dark_for) / 2,
            dark_for,
            options,
        }
    }

    /// Bytes of one download: so few that the slower link carries some in the time of a run, and
    /// else as many as can be, for between two downloads the links idle for a round trip.
    pub(super) fn body_length(&self) -> usize {
        let rates = self.options.links.iter();
        let slowest = rates.filter_map(|link| link.capacity.mean_rate()).min();
        let bytes = slowest.map_or(LARGEST_BODY, |rate| {
            rate.bytes_in(self.options.time.mul_f64(0.4))
        });
        bytes.clamp(SMALLEST_BODY, LARGEST_BODY) as usize
    }

    pub(super) fn link_reports(&self) -> Vec<LinkReport> {
        link_reports(&self.options.links)
    }

    pub(super) fn dark(&self) -> Dark {
        Dark {
            link: NAMES[self.better],
            at_s: self.dark_at.as_secs_f64(),
            for_s: self.dark_for.as_secs_f64(),
        }
    }
}

pub(super) fn link_reports(links: &[LinkConfig; 2]) -> Vec<LinkReport> {
    let links = NAMES.iter().zip(links);
    links
        .map(|(name, config)| LinkReport {
            name,
            config: config.to_string(),
        })
        .collect()
}

impl<S: Copy + Display> RunPlan<S> {
    /// Each link `alone` with this scheduler, then both with each of `schedulers`.
    pub(super) fn all(schedulers: &[S], alone: S) -> Vec<Self> {
        let alone = (0..NAMES.len()).map(|link| RunPlan {
            name: format!("link {} alone", NAMES[link]),
            links: vec![link],
            scheduler: alone,
        });
        let bonded = schedulers.iter().map(|scheduler| RunPlan {
            name: format!("bonded, {scheduler}"),
            links: (0..NAMES.len()).collect(),
            scheduler: *scheduler,
        });
        alone.chain(bonded).collect()
    }

    /// Names of the links in use.
    pub fn link_names(&self) -> Vec<&'static str> {
        self.links.iter().map(|link| NAMES[*link]).collect()
    }
}

/// Higher is better.
fn rank(link: &LinkConfig) -> (Rate, std::cmp::Reverse<Duration>) {
    let unlimited = Rate::from_bps(u64::MAX);
    let rate = link.capacity.mean_rate().unwrap_or(unlimited);
    (rate, std::cmp::Reverse(mean(link.delay)))
}

fn mean(delay: Delay) -> Duration {
    match delay {
        Delay::Constant(mean) | Delay::Normal { mean, .. } | Delay::Gamma { mean, .. } => mean,
        Delay::Uniform { min, max } => (min + max) / 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::{DEFAULT_LINKS, parse_link};

    fn plan(links: [&str; 2], seconds: u64) -> Plan {
        Plan::new(Options {
            links: links.map(|text| parse_link(text).unwrap()),
            schedulers: vec![
                Scheduling::Auto,
                Scheduling::All("redundant".parse().unwrap()),
            ],
            time: Duration::from_secs(seconds),
            seed: 1,
        })
    }

    #[test]
    fn each_link_alone_then_both() {
        let plan = plan(DEFAULT_LINKS, 9);
        let runs: Vec<_> = plan
            .runs
            .iter()
            .map(|run| (run.name.as_str(), run.link_names()))
            .collect();
        let expected = [
            ("link A alone", vec!["A"]),
            ("link B alone", vec!["B"]),
            ("bonded, auto", vec!["A", "B"]),
            ("bonded, redundant", vec!["A", "B"]),
        ];
        assert_eq!(runs, expected);
    }

    #[test]
    fn the_darkness_is_in_the_middle_and_leaves_time() {
        let long = plan(DEFAULT_LINKS, 9);
        assert_eq!(
            (long.dark_at, long.dark_for),
            (Duration::from_millis(3500), Duration::from_secs(2))
        );
        let short = plan(DEFAULT_LINKS, 2);
        assert_eq!(
            (short.dark_at, short.dark_for),
            (Duration::from_millis(750), Duration::from_millis(500))
        );
    }

    #[test]
    fn the_better_link_is_faster_or_else_nearer() {
        assert_eq!(plan(DEFAULT_LINKS, 9).better, 0);
        assert_eq!(plan(["rate=1mbit", "rate=2mbit,delay=1s"], 9).better, 1);
        assert_eq!(plan(["rate=2mbit,delay=2ms", "rate=2mbit"], 9).better, 1);
        assert_eq!(plan(["rate=2mbit", "rate=2mbit"], 9).better, 0);
    }

    #[test]
    fn the_slower_link_can_carry_a_body_in_time() {
        // 10 Mb/s for 0.4 · 9 s.
        assert_eq!(plan(DEFAULT_LINKS, 9).body_length(), 4_500_000);
        assert_eq!(plan(["delay=1ms", "delay=2ms"], 9).body_length(), 16 << 20);
        assert_eq!(plan(["rate=1kbit", "delay=2ms"], 9).body_length(), 64 << 10);
    }
}
