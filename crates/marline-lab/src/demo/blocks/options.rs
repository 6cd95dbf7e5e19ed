//! What a demo of blocks does.

use marline_base::Rate;
use marline_link::LinkConfig;
use marline_proto::congestion::Congestion;
use marline_proto::sched::Choice;
use marline_proto::sched::{Entry, registry};
use marline_proto::wire::FlowKind;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The links when none are given: those of the HOP paper, whose capacity is drawn again every 25
/// ms.
pub const DEFAULT_LINKS: [&str; 2] = ["rate=40mbit,rate-sd=8mbit,rate-every=25ms,delay=12.5ms"; 2];

/// The schedulers when none are given: HOP, which sends every block here, however unlikely it is to
/// be on time, and what the paper compares it with.
pub const DEFAULT_SCHEDULERS: &str = "hop-jump:refuse=off,sttf,daps,dems,min-rtt";

/// The time at the beginning of a run that does not count, unless the run is too short for it.
const WARMUP: Duration = Duration::from_secs(2);

/// What a demo of blocks does.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Link A and link B, each the same in both directions.
    pub links: [LinkConfig; 2],
    /// The schedulers to compare, from the registry.
    pub schedulers: Vec<Choice>,
    /// The blocks.
    pub load: Load,
    /// How long the blocks of one run come.
    pub time: Duration,
    /// Seed of everything random in the links and the blocks.
    pub seed: u64,
    /// Both ends and each relay are processes of their own, not threads of one.
    pub processes: bool,
}

/// What the two ends of a run have to know of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) load: Load,
    /// How long the blocks come.
    #[serde(with = "milliseconds")]
    pub(super) time: Duration,
    pub(super) seed: u64,
}

/// Blocks of one size at fixed intervals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Bytes of a block.
    pub size: usize,
    /// From one to the next.
    #[serde(with = "milliseconds", rename = "every_ms")]
    pub every: Duration,
    /// Later than this after it was written a block is late.
    #[serde(with = "milliseconds", rename = "deadline_ms")]
    pub deadline: Duration,
    /// Probability with which the deadline should be kept.
    pub reliability: f64,
}

/// A time as JSON has it: in milliseconds.
mod milliseconds {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(time.as_secs_f64() * 1e3)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let seconds = f64::deserialize(from)? / 1e3;
        Duration::try_from_secs_f64(seconds).map_err(D::Error::custom)
    }
}

impl Options {
    /// The beginning of a run that does not count.
    pub fn warmup(&self) -> Duration {
        WARMUP.min(self.time / 3)
    }

    pub(super) fn task(&self) -> Task {
        Task {
            load: self.load,
            time: self.time,
            seed: self.seed,
        }
    }

    /// Number of the link with the higher mean rate; the first of equals.
    pub(super) fn better_link(&self) -> usize {
        let [a, b] = self.rates();
        usize::from(b > a)
    }

    /// The links' mean rates, as far as they have one.
    pub(super) fn rates(&self) -> [Rate; 2] {
        let rate = |link: &LinkConfig| link.capacity.mean_rate();
        // Links about which nothing is known count alike.
        [0, 1].map(|link| rate(&self.links[link]).unwrap_or(Rate::from_mbps(1)))
    }
}

/// The schedulers that serve blocks.
pub fn schedulers() -> impl Iterator<Item = &'static Entry> {
    let all = registry::all();
    all.filter(|entry| entry.kinds.contains(&FlowKind::Blocks))
}

/// The congestion controller that a scheduler runs with: none for those that plan whole blocks,
/// because the plan bounds the queue; else BBR on each path, as the HOP paper has its rivals.
pub(super) fn congestion(scheduler: Choice) -> Congestion {
    match schedulers().find(|entry| entry.name == scheduler.name()) {
        Some(entry) if entry.kinds == [FlowKind::Blocks] => Congestion::none(),
        _ => Congestion::bbr(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::parse_link;

    #[test]
    fn planners_run_without_a_controller_and_rivals_with_bbr() {
        for name in DEFAULT_SCHEDULERS.split(',') {
            let choice: Choice = name.parse().unwrap();
            let hop = name.starts_with("hop-");
            assert_eq!(congestion(choice) == Congestion::none(), hop, "{name}");
        }
    }

    #[test]
    fn the_better_link_has_the_higher_rate_and_the_warm_up_leaves_time() {
        let options = |links: [&str; 2], seconds| Options {
            links: links.map(|link| parse_link(link).unwrap()),
            schedulers: Vec::new(),
            load: Load {
                size: 1,
                every: Duration::from_millis(25),
                deadline: Duration::from_millis(35),
                reliability: 0.98,
            },
            time: Duration::from_secs(seconds),
            seed: 1,
            processes: false,
        };
        assert_eq!(options(DEFAULT_LINKS, 30).better_link(), 0);
        assert_eq!(options(["rate=1mbit", "rate=2mbit"], 30).better_link(), 1);
        assert_eq!(options(DEFAULT_LINKS, 30).warmup(), WARMUP);
        let short = options(DEFAULT_LINKS, 3);
        assert_eq!(short.warmup(), Duration::from_secs(1));
    }
}
