//! Who schedules the flows of a session: one scheduler for all kinds that it serves, or `auto`,
//! which chooses for each flow as the program does.

use std::fmt;
use std::str::FromStr;

use marline_proto::Config;
use marline_proto::sched::{AUTO, Choice, ChoiceError, Need, auto};
use marline_proto::wire::FlowKind;

use crate::scenario::{Load, SessionPlan, WorkloadPlan};

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(super) enum Chosen {
    /// What the program chooses for each flow.
    Auto,
    /// This one.
    One(Choice),
}

impl FromStr for Chosen {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        match text {
            AUTO => Ok(Self::Auto),
            _ => text.parse().map(Self::One),
        }
    }
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str(AUTO),
            Self::One(choice) => choice.fmt(f),
        }
    }
}

impl Chosen {
    /// Does it serve flows of this kind?
    pub(super) fn serves(self, kind: FlowKind) -> bool {
        match self {
            Self::Auto => true,
            Self::One(choice) => choice.entry().kinds.contains(&kind),
        }
    }

    /// The configuration with it for all kinds of flow that it serves. What `auto` chooses for a
    /// kind of which nothing else is known stands there already.
    pub(super) fn configured(self, config: &Config) -> Config {
        let mut config = config.clone();
        let Self::One(choice) = self else {
            return config;
        };
        for kind in choice.entry().kinds {
            match kind {
                FlowKind::Stream => config.stream_scheduler = choice,
                FlowKind::Packets => {
                    config.packets_scheduler = choice;
                    config.ordered_scheduler = choice;
                }
                FlowKind::Blocks => config.blocks_scheduler = choice,
                FlowKind::Objects => config.objects_scheduler = choice,
            }
        }
        config
    }

    /// The scheduler of a workload's flow, if it is not the session's.
    pub(super) fn of_flow(self, session: &SessionPlan, workload: &WorkloadPlan) -> Option<Choice> {
        match self {
            Self::Auto => Some(auto(need(session, workload))),
            Self::One(_) => None,
        }
    }
}

/// What the program would know of the flow: messages in order are a live entry's, except for the
/// segments of TCP, which are a tunnel's; so are messages in any order where paths have costs.
fn need(session: &SessionPlan, workload: &WorkloadPlan) -> Need {
    let WorkloadPlan { flow, load, .. } = workload;
    let tcp = matches!(load, Load::Tcp { .. });
    let costs = || session.paths.iter().map(|path| path.cost);
    Need {
        kind: flow.kind,
        live: flow.kind == FlowKind::Packets && flow.ordered && !tcp,
        ordered: flow.ordered,
        costs_differ: costs().min() != costs().max(),
    }
}
