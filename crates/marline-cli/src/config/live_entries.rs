//! All live entries of a configuration: what those get that say nothing, and names that must
//! differ.

use super::error::{ConfigError, Placed as _};
use super::names::Schedulers;
use super::raw::{RawClient, RawServer};
use super::source::Source;
use marline_apps::live::{
    LATENCY, LiveDefaults, LiveIn, LiveName, LiveOut, live_deadline, live_latency,
    live_reliability, live_target,
};
use marline_base::text::Problem;
use marline_proto::sched::{Need, auto};

pub(super) fn live_in(
    source: &Source<RawClient>,
    schedulers: &Schedulers,
) -> Result<Vec<LiveIn>, ConfigError> {
    let raw = &source.raw;
    // Who names a scheduler for packets means live entries, too.
    let own = (!schedulers.packets_named).then(|| auto(Need::live()));
    let of_all = [
        ("latency", &raw.latency),
        ("target", &raw.target),
        ("deadline", &raw.deadline),
        ("reliability", &raw.reliability),
    ];
    for (key, value) in of_all {
        if let (Some(value), []) = (value, &raw.live[..]) {
            return Err(
                Problem::new("there is no live entry that it could hold for")
                    .hint("add one: --live udp://:5000")
                    .at(source.place(key, value)),
            );
        }
    }
    let latency = match &raw.latency {
        Some(value) => source.read("latency", value, live_latency)?,
        None => LATENCY,
    };
    let needed_rate = match &raw.target {
        Some(value) => source.read("target", value, live_target)?,
        None => None,
    };
    let deadline = match &raw.deadline {
        Some(value) => Some(source.read("deadline", value, live_deadline)?),
        None => None,
    };
    let reliability = match &raw.reliability {
        Some(value) => Some(source.read("reliability", value, live_reliability)?),
        None => None,
    };
    let defaults = LiveDefaults {
        latency,
        needed_rate,
        deadline,
        reliability,
    };
    let mut entries: Vec<LiveIn> = Vec::new();
    for value in &raw.live {
        let entry = source.read("live", &value.0, |text| {
            let mut entry = LiveIn::parse(text, &defaults)?;
            entry.scheduler = entry.scheduler.or(own);
            same_name(entries.iter().map(|other| &other.name), &entry.name)?;
            Ok(entry)
        })?;
        entries.push(entry);
    }
    if let (Some(value), Some(_)) = (&raw.target, needed_rate)
        && entries.iter().all(|entry| entry.untargeted().is_some())
    {
        return Err(
            Problem::new("there is no live entry that it could hold for: frames with a deadline and objects have none")
                .hint("leave it out, or `deadline` and `objects=on`")
                .at(source.place("target", value)),
        );
    }
    Ok(entries)
}

pub(super) fn live_out(source: &Source<RawServer>) -> Result<Vec<LiveOut>, ConfigError> {
    let mut entries: Vec<LiveOut> = Vec::new();
    for value in &source.raw.live {
        let entry = source.read("live", &value.0, |text| {
            let entry: LiveOut = text.parse()?;
            same_name(entries.iter().map(|other| &other.name), &entry.name)?;
            Ok(entry)
        })?;
        entries.push(entry);
    }
    Ok(entries)
}

fn same_name<'a>(
    mut others: impl Iterator<Item = &'a LiveName>,
    name: &LiveName,
) -> Result<(), Problem> {
    match others.any(|other| other == name) {
        true => Err(
            Problem::new(format!("another live entry has the name `{name}`"))
                .hint("add `,name=NAME` to one of them, at the client and at the server"),
        ),
        false => Ok(()),
    }
}
