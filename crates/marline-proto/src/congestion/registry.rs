//! All congestion controllers by name: one line each.

use super::{Constructor, bbr, cubic, fixed, new_reno, none};

/// A controller that can be chosen by name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name in configuration, flags and metrics; lower case with hyphens.
    pub name: &'static str,
    /// What defines it.
    pub publication: &'static str,
    /// One sentence for `--help`.
    pub help: &'static str,
    /// [`Params::rate`](super::Params::rate) must be given.
    pub needs_rate: bool,
    /// Makes one for a path.
    pub new: Constructor,
}

/// Every controller, in the order of lists that people read.
pub static CONTROLLERS: &[Entry] = &[
    Entry {
        name: bbr::NAME,
        publication: "draft-cardwell-iccrg-bbr-congestion-control-00 (BBR version 1)",
        help: "Models bandwidth and round-trip time; holds its rate through random loss.",
        needs_rate: false,
        new: bbr::new,
    },
    Entry {
        name: bbr::GENTLE,
        publication: "BBR version 1 with the min-RTT probe of draft-cardwell-iccrg-bbr-congestion-control-02 (version 2)",
        help: "As bbr, but keeps half of the pipe full while it probes, and probes only a full pipe.",
        needs_rate: false,
        new: bbr::new_gentle,
    },
    Entry {
        name: cubic::NAME,
        publication: "RFC 9438 with RFC 9406 (HyStart++)",
        help: "Loss-based; grows along a cubic curve, independent of the round-trip time.",
        needs_rate: false,
        new: cubic::new,
    },
    Entry {
        name: cubic::ACK_TRAIN,
        publication: "RFC 9438 with HyStart as Linux has it (Ha and Rhee, Computer Networks 55(9), 2011)",
        help: "As cubic, but leaves slow start at the first sign of a queue, as Linux does.",
        needs_rate: false,
        new: cubic::new_ack_train,
    },
    Entry {
        name: new_reno::NAME,
        publication: "RFC 9002 section 7",
        help: "Loss-based; halves on loss and grows by one datagram a round trip.",
        needs_rate: false,
        new: new_reno::new,
    },
    Entry {
        name: fixed::NAME,
        publication: "RFC 8085 section 3.1.9 (reserved capacity)",
        help: "Sends at the rate given, whatever happens; for links that nobody else uses.",
        needs_rate: true,
        new: fixed::new,
    },
    Entry {
        name: none::NAME,
        publication: "RFC 8085 section 3.1.9 (reserved capacity)",
        help: "No window and no pacing; for links that nobody else uses.",
        needs_rate: false,
        new: none::new,
    },
];

/// The controller called `name`.
pub fn find(name: &str) -> Option<&'static Entry> {
    CONTROLLERS.iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests;
