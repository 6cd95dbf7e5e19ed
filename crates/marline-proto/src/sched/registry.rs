//! The schedulers by name. Adding one is a file and a line here.

use super::{Constructor, edpf, min_rtt, redundant, round_robin};
use crate::wire::FlowKind;

/// A scheduler that can be chosen by name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name in flags, configuration, metrics and plots.
    pub name: &'static str,
    /// Where it was published.
    pub publication: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
    /// Flow kinds that it can serve.
    pub kinds: &'static [FlowKind],
    /// Makes one.
    pub new: Constructor,
}

const PACKET_WISE: &[FlowKind] = &[FlowKind::Stream, FlowKind::Packets];

/// All schedulers.
pub const SCHEDULERS: &[Entry] = &[
    Entry {
        name: "edpf",
        publication: "Chebrolu and Rao, IEEE TMC 2006",
        help: "the path where the packet is expected to arrive first",
        kinds: PACKET_WISE,
        new: edpf::new,
    },
    Entry {
        name: "min-rtt",
        publication: "Paasch et al., CSWS 2014",
        help: "the path with the smallest round-trip time that has room",
        kinds: PACKET_WISE,
        new: min_rtt::new,
    },
    Entry {
        name: "redundant",
        publication: "Frömmgen et al., ICC 2016",
        help: "every packet on every path; the first copy wins",
        kinds: PACKET_WISE,
        new: redundant::new,
    },
    Entry {
        name: "round-robin",
        publication: "Paasch et al., CSWS 2014",
        help: "each path with room in turn",
        kinds: PACKET_WISE,
        new: round_robin::new,
    },
];

/// The scheduler that a flow of this kind gets when none was chosen.
pub const fn default_for(kind: FlowKind) -> &'static str {
    match kind {
        FlowKind::Stream | FlowKind::Packets => "edpf",
    }
}

/// The scheduler called `name`.
pub fn find(name: &str) -> Option<&'static Entry> {
    SCHEDULERS.iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::Plan;
    use crate::sched::tests::{Backlog, path};
    use marline_base::{Duration, Instant, Rng};

    #[test]
    fn entries_are_well_formed() {
        for (i, entry) in SCHEDULERS.iter().enumerate() {
            assert!(
                entry
                    .name
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b == b'-'),
                "{} is not kebab-case",
                entry.name
            );
            assert!(
                SCHEDULERS[..i].iter().all(|e| e.name < entry.name),
                "sorted and unique"
            );
            assert!(!entry.help.is_empty() && !entry.publication.is_empty());
            assert!(!entry.kinds.is_empty());
        }
        for kind in [FlowKind::Stream, FlowKind::Packets] {
            let entry = find(default_for(kind)).expect("the default exists");
            assert!(entry.kinds.contains(&kind));
        }
    }

    /// What every scheduler owes: it terminates, sends a symbol when some path is idle, and sends
    /// nothing without paths.
    #[test]
    fn every_scheduler_keeps_the_contract() {
        for entry in SCHEDULERS {
            let mut rng = Rng::new(1).stream(entry.name);
            for _ in 0..200 {
                let mut scheduler = (entry.new)();
                let mut paths: alloc::vec::Vec<_> = (0..rng.below(4)).map(path).collect();
                for p in &mut paths {
                    p.srtt = Duration::from_micros(1 + rng.below(300_000));
                    p.min_rtt = p.srtt;
                    p.window = rng.below(60_000);
                    p.in_flight = rng.below(p.window + 1);
                }
                let idle = paths.iter().any(|p| p.in_flight == 0 && p.window > 3_000);
                let all_idle = paths.iter().all(|p| p.in_flight == 0 && p.window > 3_000);
                let mut backlog = Backlog::of(300);
                scheduler.plan(&mut Plan::new(Instant::ZERO, &mut paths, &mut backlog));
                let sent = backlog.sent_on();
                assert!(!paths.is_empty() || sent.is_empty(), "{}", entry.name);
                if !paths.is_empty() && (all_idle || idle) {
                    assert!(
                        !sent.is_empty(),
                        "{} sends nothing over idle paths",
                        entry.name
                    );
                }
            }
        }
    }
}
