//! Schedulers by name.

use super::ConfigError;
use super::keys::Raw;
use super::source::Source;
use super::written::Written;
use marline_apps::options::scheduler;
use marline_base::text::Problem;
use marline_proto::sched::{AUTO, Choice, Need, auto};
use marline_proto::wire::FlowKind;

/// Kinds that a scheduler must serve if it is named without one.
const KINDS: [FlowKind; 2] = [FlowKind::Stream, FlowKind::Packets];

/// The scheduler of flows that name none, for each kind. The names are those of the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedulers {
    /// For streams.
    pub stream: Choice,
    /// For packets.
    pub packets: Choice,
    /// Whether that one was named. Of itself it is left to live entries, and to tunnels over paths
    /// of several costs, what they have instead.
    pub packets_named: bool,
    /// For blocks.
    pub blocks: Choice,
    /// For objects.
    pub objects: Choice,
}

impl Default for Schedulers {
    /// What `auto` stands for.
    fn default() -> Self {
        Schedulers {
            stream: auto(Need::of(FlowKind::Stream)),
            packets: auto(Need::of(FlowKind::Packets)),
            packets_named: false,
            blocks: auto(Need::of(FlowKind::Blocks)),
            objects: auto(Need::of(FlowKind::Objects)),
        }
    }
}

impl Schedulers {
    /// For packets in order: the one that is named for packets, else what serves order best.
    pub fn ordered(&self) -> Choice {
        match self.packets_named {
            true => self.packets,
            false => auto(Need::ordered()),
        }
    }

    /// Reads the list of `scheduler` values.
    pub(super) fn read<R: Raw>(
        source: &Source<R>,
        values: &[Written],
    ) -> Result<Self, ConfigError> {
        let mut schedulers = Schedulers::default();
        let mut given: Vec<FlowKind> = Vec::new();
        for value in values {
            source.read("scheduler", value, |text| {
                // `=` also stands in options, but only after a colon.
                let split = text.split_once('=').filter(|(kind, _)| !kind.contains(':'));
                let (kinds, name): (Vec<FlowKind>, &str) = match split {
                    // Blocks and objects have it too, if it serves them.
                    None => {
                        for_one_kind(text)?;
                        (kinds_of(text), text)
                    }
                    Some((word, name)) => {
                        let kind = FlowKind::ALL.into_iter().find(|kind| kind.name() == word);
                        let Some(kind) = kind else {
                            return Err(Problem::new(format!("unknown kind of flow `{word}`"))
                                .hint("write NAME, or one of stream=NAME, packets=NAME, blocks=NAME and objects=NAME"));
                        };
                        (vec![kind], name)
                    }
                };
                for kind in kinds {
                    if given.contains(&kind) {
                        return Err(Problem::new(format!(
                            "a scheduler for {} flows is already given",
                            kind.name()
                        )));
                    }
                    given.push(kind);
                    let named = scheduler(name, kind)?;
                    let choice = named.unwrap_or(auto(Need::of(kind)));
                    match kind {
                        FlowKind::Stream => schedulers.stream = choice,
                        FlowKind::Packets => {
                            schedulers.packets = choice;
                            schedulers.packets_named = named.is_some();
                        }
                        FlowKind::Blocks => schedulers.blocks = choice,
                        FlowKind::Objects => schedulers.objects = choice,
                    }
                }
                Ok(())
            })?;
        }
        Ok(schedulers)
    }
}

/// Refuses a scheduler without a kind that does not serve all of [`KINDS`], and says with which it
/// may be named.
fn for_one_kind(text: &str) -> Result<(), Problem> {
    let Ok(choice) = text.parse::<Choice>() else {
        return Ok(());
    };
    let kinds = choice.entry().kinds;
    if KINDS.iter().all(|kind| kinds.contains(kind)) {
        return Ok(());
    }
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    let ways: Vec<String> = names
        .iter()
        .map(|kind| format!("`{kind}={text}`"))
        .collect();
    Err(Problem::new(format!(
        "scheduler `{}` serves {} flows only",
        choice.name(),
        names.join(" and ")
    ))
    .hint(format!("name it for these: {}", ways.join(" or "))))
}

/// Kinds that a scheduler named without one is for.
fn kinds_of(text: &str) -> Vec<FlowKind> {
    let serves = |kind: &FlowKind| match text.parse::<Choice>() {
        Ok(choice) => choice.entry().kinds.contains(kind),
        Err(_) => text == AUTO,
    };
    let kinds = FlowKind::ALL.into_iter();
    kinds
        .filter(|kind| KINDS.contains(kind) || serves(kind))
        .collect()
}
