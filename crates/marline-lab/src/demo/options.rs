use marline_link::{Capacity, ConfigError, Link, LinkConfig, QueueLimit};
use marline_proto::sched::{AUTO, Choice, Entry, Need, auto, registry};
use marline_proto::wire::FlowKind;
use std::fmt;
use std::time::Duration;

/// The links when none are given: a quick one that loses and jitters, and a slow steady one.
pub const DEFAULT_LINKS: [&str; 2] = [
    "rate=20mbit,delay=15ms,jitter=2ms,loss=1%",
    "rate=10mbit,delay=40ms",
];

/// The schedulers when none are given: the defaults, and what they are most often compared with.
pub const DEFAULT_SCHEDULERS: &str = "auto,min-rtt,redundant,round-robin";

/// Queue of a link that has a rate and no queue of its own: without a bound, delays grow without
/// one.
const DEFAULT_QUEUE: Duration = Duration::from_millis(200);
/// What a demo takes when no other length is asked for, about.
const MINUTE: Duration = Duration::from_secs(60);
/// What a run takes beside its traffic: its start, and the last messages' arrival.
const BESIDE: Duration = Duration::from_millis(700);

/// What a demo does.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Link A and link B, each the same in both directions.
    pub links: [LinkConfig; 2],
    /// What to bond with, in the order of the runs.
    pub schedulers: Vec<Scheduling>,
    /// How long the traffic of one run flows.
    pub time: Duration,
    /// Seed of everything random in the links and in the download's body.
    pub seed: u64,
}

impl Options {
    /// Time for each run with which the whole demo takes about a minute: whole seconds, from
    /// 4 to 20.
    pub fn default_time(schedulers: usize) -> Duration {
        let runs = u32::try_from(schedulers.saturating_add(2)).unwrap_or(u32::MAX);
        let each = (MINUTE / runs).saturating_sub(BESIDE);
        Duration::from_secs(each.as_secs().clamp(4, 20))
    }
}

/// What schedules the flows of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scheduling {
    /// What each flow gets for which nobody chooses one.
    Auto,
    /// This one for all flows.
    All(Choice),
}

impl Scheduling {
    /// The scheduler of a flow.
    pub fn of(self, need: Need) -> Choice {
        match self {
            Scheduling::Auto => auto(need),
            Scheduling::All(choice) => choice,
        }
    }
}

/// As configurations name it: `auto`, or the scheduler.
impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scheduling::Auto => f.write_str(AUTO),
            Scheduling::All(choice) => choice.fmt(f),
        }
    }
}

/// The schedulers that serve both kinds of flow in the demo.
pub fn schedulers() -> impl Iterator<Item = &'static Entry> {
    registry::all().filter(|entry| {
        [FlowKind::Stream, FlowKind::Packets]
            .iter()
            .all(|kind| entry.kinds.contains(kind))
    })
}

/// Reads a link in the text form of [`LinkConfig`], with a queue of 200 ms if it has a rate and
/// names no queue.
///
/// # Errors
/// As [`LinkConfig::parse_with`] and [`Link::new`].
pub fn parse_link(text: &str) -> Result<LinkConfig, ConfigError> {
    let read =
        |path: &str| std::fs::read_to_string(path).map_err(|error| format!("cannot read: {error}"));
    let mut link = LinkConfig::parse_with(text, read)?;
    let names_queue = text
        .split(',')
        .any(|pair| pair.split('=').next().map(str::trim) == Some("queue"));
    if !names_queue && link.capacity != Capacity::Unlimited {
        link.queue = QueueLimit::Time(DEFAULT_QUEUE);
    }
    // Ranges are checked when a link is made.
    Link::new(link.clone(), 0)?;
    Ok(link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_takes_about_a_minute() {
        for schedulers in 1..=10 {
            let all = (Options::default_time(schedulers) + BESIDE) * (schedulers as u32 + 2);
            assert!(
                (Duration::from_secs(45)..=Duration::from_secs(65)).contains(&all),
                "{schedulers} schedulers take {all:?}"
            );
        }
        assert_eq!(Options::default_time(usize::MAX), Duration::from_secs(4));
    }

    #[test]
    fn a_link_with_a_rate_gets_a_queue() {
        let queue = |text| parse_link(text).unwrap().queue;
        for text in DEFAULT_LINKS {
            assert_eq!(queue(text), QueueLimit::Time(DEFAULT_QUEUE));
        }
        assert_eq!(queue("rate=1mbit, queue=9p"), QueueLimit::Packets(9));
        assert_eq!(queue("rate=1mbit,queue=unlimited"), QueueLimit::Unlimited);
        assert_eq!(queue("delay=5ms"), QueueLimit::Unlimited);
        for wrong in ["speed=1", "rate=0bit", "loss=200%", "rate=1mbit,queue=0p"] {
            assert!(parse_link(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_compared_by_default_is_offered() {
        let mut given = DEFAULT_SCHEDULERS.split(',');
        assert_eq!(given.next(), Some(AUTO));
        for name in given {
            assert!(schedulers().any(|entry| entry.name == name), "{name}");
        }
    }
}
