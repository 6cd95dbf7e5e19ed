//! What a session reports to the application of a flow.

use std::collections::BTreeMap;
use std::time::Duration;

use marline_base::Rate;
use marline_proto::flow::Fate;

/// Whether the paths carry the rate that an application needs, as it said or as it writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateReport {
    /// They do not: the application had better write less, or what it writes will be late.
    Below {
        /// What the flow got lately, in bytes of the application.
        capacity: Rate,
    },
    /// They do again.
    Met,
}

/// Where messages were when this end gave them up because their lifetime was over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenUp {
    /// Not sent whole before half of their lifetime was over: no path had room for them in time.
    pub waited: u64,
    /// Sent in time, by the name of the path that carried their first part, and lost or delayed it.
    pub on: BTreeMap<String, u64>,
}

/// What became of a block or an object that was sent here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Its number in the flow.
    pub number: u64,
    /// What became of it, as its receiver said.
    pub fate: Fate,
    /// From the write until the receiver had it whole, as far as the clocks of both ends can be
    /// compared.
    pub after: Duration,
}
