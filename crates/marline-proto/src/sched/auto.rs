//! `auto`: the scheduler of a flow for which nobody has chosen one.
//!
//! One answer for the program, which opens real flows, and for the simulator, whose scenarios say
//! `scheduler = "auto"`: what is measured there is what a user gets.

use super::entry::Choice;
use super::{brim, edpf, hedge, hop, s_edpf, sos};
use crate::wire::FlowKind;

/// What configurations and scenarios write for it.
pub const AUTO: &str = "auto";

/// What is known of a flow when its scheduler is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// What it carries.
    pub kind: FlowKind,
    /// It is a live stream: messages in order at a rate of their own, which must not be late,
    /// however long the receiver's buffer is.
    pub live: bool,
    /// Its messages are delivered in order without being a live stream's, as those of TCP in a
    /// tunnel: as in a stream, each waits for the latest of all before it.
    pub ordered: bool,
    /// Its packets are those of a tunnel over paths of several costs: the dearer ones are for what
    /// the cheaper ones do not carry.
    pub costs_differ: bool,
}

impl Need {
    /// A flow whose kind is all that is known.
    pub const fn of(kind: FlowKind) -> Self {
        Self {
            kind,
            live: false,
            ordered: false,
            costs_differ: false,
        }
    }

    /// A live stream.
    pub const fn live() -> Self {
        Self {
            live: true,
            ..Self::of(FlowKind::Packets)
        }
    }

    /// Messages in order.
    pub const fn ordered() -> Self {
        Self {
            ordered: true,
            ..Self::of(FlowKind::Packets)
        }
    }

    /// A tunnel's packets over paths of several costs.
    pub const fn tunnel_by_cost() -> Self {
        Self {
            costs_differ: true,
            ..Self::of(FlowKind::Packets)
        }
    }
}

/// The scheduler that such a flow gets.
pub fn auto(need: Need) -> Choice {
    match need.kind {
        FlowKind::Stream => Choice::from(&s_edpf::mend::ENTRY),
        FlowKind::Packets if need.live => Choice::from(&hedge::ENTRY).switched("prompt", true),
        FlowKind::Packets if need.costs_differ => Choice::from(&brim::ENTRY),
        FlowKind::Packets if need.ordered => Choice::from(&s_edpf::mend::ENTRY),
        FlowKind::Packets => Choice::from(&edpf::ENTRY),
        FlowKind::Objects => Choice::from(&sos::scheduler::RATELESS),
        // Its forecasts are what the application learns of a block. It may be wrong, so a block
        // that nobody has said may be refused is sent.
        FlowKind::Blocks => Choice::from(&hop::scheduler::JUMP).switched("refuse", false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn auto_is_what_the_documents_say() {
        for (need, name) in [
            (Need::of(FlowKind::Stream), "mend"),
            (Need::of(FlowKind::Packets), "edpf"),
            (Need::of(FlowKind::Objects), "sos-rateless"),
            (Need::of(FlowKind::Blocks), "hop-jump:refuse=off"),
            (Need::live(), "hedge:prompt=on"),
            (Need::ordered(), "mend"),
            (Need::tunnel_by_cost(), "brim"),
        ] {
            assert_eq!(auto(need).to_string(), name, "{need:?}");
        }
    }

    #[test]
    fn every_need_is_served() {
        for kind in FlowKind::ALL {
            for bits in 0..8 {
                let choice = auto(Need {
                    kind,
                    live: bits & 1 > 0,
                    ordered: bits & 2 > 0,
                    costs_differ: bits & 4 > 0,
                });
                assert!(
                    choice.entry().kinds.contains(&kind),
                    "{choice} for {kind:?}"
                );
            }
        }
    }
}
