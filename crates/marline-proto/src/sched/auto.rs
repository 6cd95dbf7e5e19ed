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
        FlowKind::Packets if need.live => Choice::from(&hedge::ENTRY).switched_on("prompt"),
        FlowKind::Packets if need.costs_differ => Choice::from(&brim::ENTRY),
        FlowKind::Packets => Choice::from(&edpf::ENTRY),
        FlowKind::Objects => Choice::from(&sos::scheduler::RATELESS),
        // Its forecasts are what the application learns of a block.
        FlowKind::Blocks => Choice::from(&hop::scheduler::JUMP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    /// What the program chose before program and simulator shared this.
    #[test]
    fn auto_is_what_the_program_has_always_chosen() {
        for (need, name) in [
            (Need::of(FlowKind::Stream), "mend"),
            (Need::of(FlowKind::Packets), "edpf"),
            (Need::of(FlowKind::Objects), "sos-rateless"),
            (Need::of(FlowKind::Blocks), "hop-jump"),
            (Need::live(), "hedge:prompt=on"),
            (Need::tunnel_by_cost(), "brim"),
        ] {
            assert_eq!(auto(need).to_string(), name, "{need:?}");
        }
    }

    #[test]
    fn every_need_is_served() {
        for kind in FlowKind::ALL {
            for (live, costs_differ) in [(false, false), (false, true), (true, false), (true, true)]
            {
                let choice = auto(Need {
                    kind,
                    live,
                    costs_differ,
                });
                assert!(
                    choice.entry().kinds.contains(&kind),
                    "{choice} for {kind:?}"
                );
            }
        }
    }
}
