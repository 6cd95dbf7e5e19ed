//! How flows of programs are opened, and what options of several kinds of flows have in common:
//! schedulers by name, priorities.

use std::time::Duration;

use bytes::Bytes;
use marline_base::text::{Problem, duration, suggest};
use marline_proto::FlowOptions;
use marline_proto::sched::registry::{all, called_elsewhere};
use marline_proto::sched::{AUTO, Choice, ChoiceError, Need, auto};
use marline_proto::wire::{FlowKind, LEAST_PRIORITY};

/// Lifetime of datagrams that belong to a program which knows nothing of lifetimes. After an outage
/// of every path, a program that sends datagrams is better served by new ones than by a backlog of
/// old ones. As long as a silent path takes to be dead (`Config::dead_after`): what one path has
/// held up for longer is worth nothing on another. A choice, not tuned.
pub const DATAGRAM_LIFETIME: Duration = Duration::from_secs(3);

/// The latency budget of live entries that name none: SRT at its default latency
/// lost nothing with it, and 293 packets with 100 ms (docs/LIVE.md, SRT and RIST inside).
pub const LIVE_LATENCY: Duration = Duration::from_millis(300);
/// The priority of live entries that name none: before what asks for none.
pub const LIVE_PRIORITY: u8 = FlowOptions::MIDDLE_PRIORITY - 1;
const LIVE_LATENCIES: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(60);

/// A flow of this kind to a destination; messages are delivered as they come.
pub fn flow_to(kind: FlowKind, destination: Bytes) -> FlowOptions {
    FlowOptions {
        ordered: false,
        target: destination,
        ..FlowOptions::new(kind)
    }
}

/// A stream of a program's bytes.
pub fn stream_to(destination: Bytes) -> FlowOptions {
    flow_to(FlowKind::Stream, destination)
}

/// A program's datagrams: given up after [`DATAGRAM_LIFETIME`].
pub fn datagrams_to(destination: Bytes) -> FlowOptions {
    FlowOptions {
        lifetime: Some(DATAGRAM_LIFETIME),
        ..flow_to(FlowKind::Packets, destination)
    }
}

/// A program's live datagrams: in order, by the scheduler of live streams, and given up after
/// `latency`.
pub fn live_to(destination: Bytes, latency: Duration) -> FlowOptions {
    FlowOptions {
        ordered: true,
        scheduler: Some(auto(Need::live())),
        priority: LIVE_PRIORITY,
        lifetime: Some(latency),
        ..flow_to(FlowKind::Packets, destination)
    }
}

/// The scheduler that `text` chooses, `NAME` or `NAME:KEY=VALUE:...`, which must serve flows of
/// `kind`; `None` for [`AUTO`].
///
/// # Errors
/// When there is none, it does not serve that kind, or an option is wrong; with the hint.
pub fn scheduler(text: &str, kind: FlowKind) -> Result<Option<Choice>, Problem> {
    if text == AUTO {
        return Ok(None);
    }
    let serving = all().filter(|entry| entry.kinds.contains(&kind));
    let names: Vec<&str> = std::iter::once(AUTO)
        .chain(serving.map(|entry| entry.name))
        .collect();
    match text.parse::<Choice>() {
        Ok(choice) if choice.entry().kinds.contains(&kind) => Ok(Some(choice)),
        Ok(choice) => Err(Problem::new(format!(
            "scheduler `{}` does not serve {} flows",
            choice.name(),
            kind.name()
        ))
        .hint(format!("schedulers for them: {}", names.join(", ")))),
        Err(ChoiceError::Scheduler(name)) if called_elsewhere(&name).is_none() => Err(
            Problem::new(format!("unknown scheduler `{name}`")).hint(suggest(
                &name,
                &names,
                "scheduler",
            )),
        ),
        Err(error) => Err(Problem::new(error.message()).hint(error.hint())),
    }
}

/// A priority, 0 (served first) to 7.
///
/// # Errors
/// `text` is none.
pub fn priority(text: &str) -> Result<u8, Problem> {
    match text.parse::<u8>() {
        Ok(priority) if priority <= LEAST_PRIORITY => Ok(priority),
        _ => Err(Problem::new(format!(
            "priority `{text}` is not a number from 0 (served first) to {LEAST_PRIORITY}"
        ))),
    }
}

/// A latency budget of a live entry, 10 ms to 60 s.
///
/// # Errors
/// `text` is none.
pub fn live_latency(text: &str) -> Result<Duration, Problem> {
    let latency = duration(text)?;
    if LIVE_LATENCIES.contains(&latency) {
        Ok(latency)
    } else {
        let wrong = Problem::new(format!("`{text}` is not between 10ms and 60s"));
        Err(wrong.hint("two to four round trips leave time for a retransmission"))
    }
}
