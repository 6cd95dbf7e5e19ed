//! What a session is configured with.

use marline_base::Duration;

use crate::congestion::Congestion;
use crate::observe::Observers;
use crate::sched::{Choice, registry as sched};
use crate::wire::{
    FlowKind, MAX_CODE_WINDOW, MAX_COST, MAX_QUIET_MS, MAX_REPAIRS, MAX_UNITS, Params,
};

/// Longest source symbol of a coded flow that is sent or taken (bytes): what fits an Ethernet
/// frame.
pub(crate) const CODE_SYMBOL: u64 = 1_500;
/// Bytes that each flow may hold in each direction beside [`Config::session_window`]: some 22
/// packets, twice the first window of a path (RFC 6928), so that a flow's first round trip is held
/// up by no credit, and [`Config::max_flows`] of them are no more than the window itself.
pub(crate) const FLOW_RESERVE: u64 = 32 << 10;
/// What repair symbols may take of a flow's bytes where nobody says. By what losses are worth
/// (`sched/redundancy.rs`) a flow that loses one packet in six gets there.
const MOST_REPAIRS: f64 = 0.5;
/// Largest [`Config::repair_budget`].
pub(crate) const MAX_REPAIR_BUDGET: f64 = 16.0;

/// Configuration of one side of a session; [`Config::default`] suits access links.
///
/// # Bounds
///
/// Whatever the peer sends, a session holds at most, besides constant state:
///
/// | what | bytes |
/// | --- | --- |
/// | flows received and not read | 32 KiB each, [`session_window`](Self::session_window) together beyond that, and as much again for the datagrams that pieces keep alive |
/// | stream received and not read | [`flow_window`](Self::flow_window) |
/// | packets flow received and not read | `flow_window` and one message (64 KiB); sequence numbers seen, 64 KiB |
/// | flow of blocks or objects received and not read | `flow_window`, as much again for repair symbols and for the unit that is being rebuilt, and 256 bytes a unit are part of it |
/// | data to be sent or not acknowledged | [`send_buffer`](Self::send_buffer) a flow, and together as what was received |
/// | flows that the peer opened | [`max_flows`](Self::max_flows) of about 4 KiB |
/// | packets sent on a path | some 120 bytes for each in flight and since; a path that answers none is dead after [`dead_after`](Self::dead_after) and forgets them |
/// | packet numbers and arrival times received on a path | 28 KiB |
/// | symbols of a coded flow | 2 × [`code_window`](Self::code_window) of 1500 bytes for each of [`code_flows`](Self::code_flows), and as much for their equations; `code_window` of them for each flow that is coded here |
/// | paths | 16 at once; the ids of the last 32 that were removed |
///
/// A stream holds at most `flow_window` / 256 + 64 pieces out of order. A message of a packets flow
/// counts at least 64 bytes of `flow_window`, whole or in parts. A unit that is not settled costs
/// some 100 bytes. Pieces below 512 bytes are copied, so that none keeps its datagram alive. A peer
/// that breaks the protocol ends the session; unauthenticated bytes never reach it.
///
/// Events are bounded by what datagrams bring between two calls of
/// [`poll_event`](crate::Session::poll_event).
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The session ends when nothing arrives on any path for so long; the smaller value of both
    /// sides holds. Default 30 s.
    pub idle_timeout: Duration,
    /// A path on which neither end sent anything for so long gets a ping. Default 5 s; at most a
    /// third of the idle timeout is used. Twice as long in a session that carries nothing, five
    /// times as long on standby beside an active path.
    pub keep_alive: Duration,
    /// Longest time that a path in reserve beside an active one may be quiet, where its carrier
    /// [survives rebinding](crate::path::PathParams::survives_rebinding): how long the address
    /// translators on it bear is learnt, from the usual keep-alive on. The smaller value of both
    /// sides holds, and 0 learns nothing. Carriers must bear a little more. Default 50 s.
    pub longest_quiet: Duration,
    /// A suspect path that answers nothing for so long is dead. Default 3 s.
    pub dead_after: Duration,
    /// Longest time that an acknowledgement is held back. Default 5 ms.
    pub max_ack_delay: Duration,
    /// Most bytes that the peer may send on one stream before they are read, and that a packets
    /// flow holds. A stream begins with 32 KiB, or up to 256 KiB where that much arrives in two
    /// round trips, and is given more while it is read as quickly as it comes. Default 8 MiB.
    /// Memory: at most this per flow.
    pub flow_window: u64,
    /// Bytes that flows may hold together beyond 32 KiB of each, in each direction; one flow takes
    /// at most half of what is free of it. Default 32 MiB. Memory: at most this per session and
    /// direction, and 32 KiB for each of [`max_flows`](Self::max_flows).
    pub session_window: u64,
    /// A stream that its peer has finished and nobody reads is given up after this; `None`, the
    /// default, waits for as long as it takes. For servers, whose clients may be gone by then.
    pub linger: Option<Duration>,
    /// Bytes that one flow holds until they are acknowledged. Default 8 MiB.
    pub send_buffer: u64,
    /// Flows that the peer may have open at once. Default 1024.
    pub max_flows: u64,
    /// Most source symbols of a coded flow that a repair symbol combines, in both directions (the
    /// smaller value of both sides holds); at most 1024, and 0 takes no coded flows. Default 256.
    /// Memory: some 3000 bytes for each, and coded flow, and direction.
    pub code_window: u16,
    /// Coded flows of the peer that are decoded at once; further ones are carried without their
    /// code. Default 32.
    pub code_flows: u64,
    /// Redundancy that flows may spend on repair symbols: their bytes over the bytes of source
    /// symbols, 0 to 16. What a scheduler asks for beyond it is not sent. Within a session it can
    /// be exceeded by 3000 bytes in all, so that the end of a short message can be repaired too; a
    /// flow may save up the allowance of 256 KiB, and leaves the rest to others when it ends.
    ///
    /// `None`, the default, is 0.5; schedulers that fill what the paths leave over (`hedge`) then
    /// send, copies included, no more than losses are worth: 3 % and three times the share of
    /// packets lost on paths that carry something; or each packet on every path, where the copies
    /// are no more than 3 % of all that the session sends.
    pub repair_budget: Option<f64>,
    /// So far may the numbers of units that are not settled lie apart in a flow of blocks or
    /// objects that the peer sends; 0 takes no such flows. Default 32 768. Memory: some 100 bytes
    /// for each, besides [`flow_window`](Self::flow_window).
    pub max_units: u64,
    /// Repair symbols of one unit that the peer may send. Default 1024. Time: to rebuild a unit
    /// takes as many passes over its bytes as it lost symbols, at most so many.
    pub max_repairs: u64,
    /// The congestion controller of new paths.
    pub congestion: Congestion,
    /// The scheduler of streams that choose none ([`crate::sched::registry`]).
    pub stream_scheduler: Choice,
    /// The scheduler of packets flows that choose none, and deliver in any order.
    pub packets_scheduler: Choice,
    /// The scheduler of packets flows that choose none, and deliver in order.
    pub ordered_scheduler: Choice,
    /// The scheduler of flows of blocks that choose none.
    pub blocks_scheduler: Choice,
    /// The scheduler of flows of objects that choose none.
    pub objects_scheduler: Choice,
    /// New flows begin without what other flows of the session have shown of its paths. Default
    /// false; to compare with.
    pub begin_blind: bool,
    /// Who listens to what the session does. Default nobody.
    pub observers: Observers,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            idle_timeout: Duration::from_secs(30),
            keep_alive: Duration::from_secs(5),
            longest_quiet: Duration::from_secs(50),
            dead_after: Duration::from_secs(3),
            max_ack_delay: Duration::from_millis(5),
            flow_window: 8 << 20,
            session_window: 32 << 20,
            linger: None,
            send_buffer: 8 << 20,
            max_flows: 1024,
            code_window: 256,
            code_flows: 32,
            repair_budget: None,
            max_units: 32_768,
            max_repairs: 1_024,
            congestion: Congestion::default(),
            stream_scheduler: sched::default_for(FlowKind::Stream),
            packets_scheduler: sched::default_for(FlowKind::Packets),
            ordered_scheduler: sched::default_in_order(),
            blocks_scheduler: sched::default_for(FlowKind::Blocks),
            objects_scheduler: sched::default_for(FlowKind::Objects),
            begin_blind: false,
            observers: Observers::default(),
        }
    }
}

/// A value that a session cannot work with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// The scheduler cannot serve that kind of flow.
    UnfitScheduler(&'static str, FlowKind),
    /// A key's value lies outside its range: key, lowest and highest accepted.
    OutOfRange(&'static str, u64, u64),
}

impl core::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::UnfitScheduler(name, kind) => {
                write!(f, "scheduler '{name}' does not serve {kind:?} flows")
            }
            Self::OutOfRange(key, low, high) => {
                write!(f, "{key} must be from {low} to {high}")
            }
        }
    }
}

impl core::error::Error for ConfigError {}

impl Config {
    /// Checks names and ranges.
    ///
    /// # Errors
    /// The first value that a session cannot work with.
    pub fn check(&self) -> Result<(), ConfigError> {
        for kind in FlowKind::ALL {
            for ordered in [false, true] {
                check_scheduler(self.scheduler(kind, ordered), kind)?;
            }
        }
        let millis = |d: Duration| d.as_millis().min(u128::from(u64::MAX)) as u64;
        let ranges = [
            (
                "idle_timeout (ms)",
                millis(self.idle_timeout),
                100,
                86_400_000,
            ),
            ("keep_alive (ms)", millis(self.keep_alive), 10, 86_400_000),
            (
                "longest_quiet (ms)",
                millis(self.longest_quiet),
                0,
                MAX_QUIET_MS,
            ),
            ("dead_after (ms)", millis(self.dead_after), 10, 86_400_000),
            ("max_ack_delay (ms)", millis(self.max_ack_delay), 0, 1_000),
            ("flow_window", self.flow_window, 1_024, 1 << 32),
            ("session_window", self.session_window, 1_024, 1 << 36),
            ("send_buffer", self.send_buffer, 1_024, 1 << 32),
            ("max_flows", self.max_flows, 1, 1 << 20),
            ("code_window", self.code_window.into(), 0, MAX_CODE_WINDOW),
            ("code_flows", self.code_flows, 0, 1 << 20),
            ("max_units", self.max_units, 0, MAX_UNITS),
            ("max_repairs", self.max_repairs, 0, MAX_REPAIRS),
        ];
        for (key, value, low, high) in ranges {
            if !(low..=high).contains(&value) {
                return Err(ConfigError::OutOfRange(key, low, high));
            }
        }
        if !(0.0..=MAX_REPAIR_BUDGET).contains(&self.most_repairs()) {
            let most = MAX_REPAIR_BUDGET as u64;
            return Err(ConfigError::OutOfRange("repair_budget", 0, most));
        }
        Ok(())
    }

    /// The most that flows may spend on repair symbols, whatever is lost.
    pub(crate) fn most_repairs(&self) -> f64 {
        self.repair_budget.unwrap_or(MOST_REPAIRS)
    }

    /// The scheduler of flows of this kind that choose none. `ordered`: they deliver in order,
    /// which only packets flows may and need not.
    pub fn scheduler(&self, kind: FlowKind, ordered: bool) -> Choice {
        match kind {
            FlowKind::Stream => self.stream_scheduler,
            FlowKind::Packets if ordered => self.ordered_scheduler,
            FlowKind::Packets => self.packets_scheduler,
            FlowKind::Blocks => self.blocks_scheduler,
            FlowKind::Objects => self.objects_scheduler,
        }
    }

    /// Bytes that a flow may always hold, whatever others do.
    pub(crate) fn reserve(&self) -> u64 {
        FLOW_RESERVE.min(self.flow_window)
    }

    /// The session's first credit for the peer (bytes).
    pub(crate) fn max_data(&self) -> u64 {
        self.session_window + self.max_flows * self.reserve()
    }

    /// What the peer has to know: the transport parameters for the carrier's handshake.
    pub fn params(&self) -> Params {
        Params {
            max_idle_timeout_ms: self.idle_timeout.as_millis() as u64,
            max_data: self.max_data(),
            max_flow_data: self.reserve(),
            max_unit_data: self.flow_window,
            max_flows: self.max_flows,
            max_ack_delay_us: self.max_ack_delay.as_micros() as u64,
            code_window: self.code_window.into(),
            code_symbol: CODE_SYMBOL,
            code_flows: self.code_flows,
            max_units: self.max_units,
            max_repairs: self.max_repairs,
            max_path_cost: MAX_COST,
            max_path_quiet_ms: self.longest_quiet.as_millis() as u64,
            ..Params::default()
        }
    }
}

pub(crate) fn check_scheduler(choice: Choice, kind: FlowKind) -> Result<(), ConfigError> {
    let entry = choice.entry();
    if entry.kinds.contains(&kind) {
        return Ok(());
    }
    Err(ConfigError::UnfitScheduler(entry.name, kind))
}
