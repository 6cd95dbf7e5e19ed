//! Schedulers and congestion controllers by name.

use super::ConfigError;
use super::error::Problem;
use super::source::{Raw, Source, Written};
use super::text::nearest;
use marline_proto::wire::FlowKind;

/// The scheduler that the session chooses and changes by itself.
pub const AUTO: &str = "auto";

/// A scheduler that can be named, and the kinds of flow that it serves.
struct Known {
    name: &'static str,
    kinds: &'static [FlowKind],
}

const BOTH: &[FlowKind] = &[FlowKind::Stream, FlowKind::Packets];

const SCHEDULERS: &[Known] = &[
    Known {
        name: AUTO,
        kinds: BOTH,
    },
    Known {
        name: "edpf",
        kinds: BOTH,
    },
    Known {
        name: "min-rtt",
        kinds: BOTH,
    },
    Known {
        name: "redundant",
        kinds: BOTH,
    },
    Known {
        name: "round-robin",
        kinds: BOTH,
    },
];

const CONTROLLERS: &[&str] = &["bbr", "cubic", "new-reno", "none"];

/// The scheduler of flows that name none, for each kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedulers {
    /// For streams.
    pub stream: String,
    /// For packets.
    pub packets: String,
}

impl Default for Schedulers {
    fn default() -> Self {
        Schedulers {
            stream: AUTO.to_owned(),
            packets: AUTO.to_owned(),
        }
    }
}

impl Schedulers {
    /// The scheduler for flows of `kind`.
    pub fn of(&self, kind: FlowKind) -> &str {
        match kind {
            FlowKind::Stream => &self.stream,
            FlowKind::Packets => &self.packets,
        }
    }

    /// Reads the list of `scheduler` values.
    pub(super) fn read<R: Raw>(
        source: &Source<R>,
        values: &[Written],
    ) -> Result<Self, ConfigError> {
        let mut stream = None;
        let mut packets = None;
        for value in values {
            source.read("scheduler", value, |text| {
                let (kinds, name): (&[FlowKind], &str) = match text.split_once('=') {
                    None => (BOTH, text),
                    Some(("stream", name)) => (&[FlowKind::Stream], name),
                    Some(("packets", name)) => (&[FlowKind::Packets], name),
                    Some((kind, _)) => {
                        return Err(Problem::new(format!("unknown kind of flow `{kind}`"))
                            .hint("write NAME, stream=NAME or packets=NAME"));
                    }
                };
                for kind in kinds {
                    let slot = match kind {
                        FlowKind::Stream => &mut stream,
                        FlowKind::Packets => &mut packets,
                    };
                    if slot.is_some() {
                        return Err(Problem::new(format!(
                            "a scheduler for {} flows is already given",
                            word(*kind)
                        )));
                    }
                    *slot = Some(scheduler(name, *kind)?);
                }
                Ok(())
            })?;
        }
        let auto = || AUTO.to_owned();
        Ok(Schedulers {
            stream: stream.unwrap_or_else(auto),
            packets: packets.unwrap_or_else(auto),
        })
    }
}

/// The scheduler called `name`, which must serve flows of `kind`.
pub(super) fn scheduler(name: &str, kind: FlowKind) -> Result<String, Problem> {
    let fit = |known: &&Known| known.kinds.contains(&kind);
    let names: Vec<&str> = SCHEDULERS
        .iter()
        .filter(fit)
        .map(|known| known.name)
        .collect();
    match SCHEDULERS.iter().find(|known| known.name == name) {
        Some(known) if fit(&known) => Ok(name.to_owned()),
        Some(_) => Err(Problem::new(format!(
            "scheduler `{name}` does not serve {} flows",
            word(kind)
        ))
        .hint(format!("schedulers for them: {}", names.join(", ")))),
        None => Err(Problem::new(format!("unknown scheduler `{name}`"))
            .hint(format!("known schedulers: {}", names.join(", ")))),
    }
}

/// The congestion controller called `name`.
pub(super) fn congestion(name: &str) -> Result<String, Problem> {
    if CONTROLLERS.contains(&name) {
        return Ok(name.to_owned());
    }
    Err(
        Problem::new(format!("unknown congestion controller `{name}`")).hint(nearest(
            name,
            CONTROLLERS,
            "congestion controller",
        )),
    )
}

fn word(kind: FlowKind) -> &'static str {
    match kind {
        FlowKind::Stream => "stream",
        FlowKind::Packets => "packets",
    }
}
