//! Scheduling: which symbol, on which path, now.
//!
//! One trait carries schedulers that think in packets and schedulers that plan a whole unit. A
//! scheduler belongs to one flow. It is handed a [`Plan`]: read-only [`PathView`]s, the flow's
//! backlog, and a sink for emissions; it emits until it has nothing more to send *now*. Emissions
//! wait in the flow's queue for the path until the path's window and pacer let them go, and may be
//! taken back until then, so that a decision can be revised when the network changes.
//!
//! Retransmissions are not a scheduler's business unless it says so: the session places a lost
//! symbol on the path that delivers it first by the laws of the paths, and on a second one if the
//! scheduler [insures](Scheduler::insures) it.
//!
//! A lost symbol is not sent again while another copy of it is in flight or waits, nor while the
//! flow's code should bring it back first (`flow/code_send.rs`).
//!
//! # How the papers' algorithms map onto the trait
//!
//! A scheduler that places packet by packet loops over [`Plan::next_len`]; one that plans a whole
//! unit reads [`Plan::unit`] and emits all of it. Neither pretends to be the other, and both see
//! other flows' bytes as queued and in flight.
//!
//! * JUMP, LEAP, FLIP (HOP): [`Scheduler::admit`], [`capacity`](Scheduler::capacity) and
//!   [`deadline`](Scheduler::deadline) before a block is taken; [`wake_at`](Scheduler::wake_at) for
//!   the part that is planned later; [`Plan::repair_of`]
//! * S-EDPF (Algorithms 1 and 2): [`Plan::send`] fills the queue per path;
//!   [`on_feedback`](Scheduler::on_feedback) for arrival times; [`Plan::repair`] every τ packets
//! * ACPF (Figure 2): [`PathView::cost`] and the congestion controller's state in
//!   [`PathView::congestion`]; [`Plan::unsent`] is the scheduler's queue
//! * DEJA and TPA (OLS): [`Plan::send`] on the first path, [`Plan::copy`] on those whose arrival
//!   interval overlaps
//! * SOS, SOS-FEC: [`Plan::units`], [`Plan::take_back`] when something more urgent comes,
//!   [`Plan::repair_of`]
//!
//! [`Plan::repair`] combines the window of a coded stream, [`Plan::repair_of`] one unit of blocks
//! or objects. [`Scheduler::on_unit`] tells what became of a unit. [`Scheduler::outlook`] is what a
//! scheduler expects of its paths and how often that came true, and [`Scheduler::coding_interval`]
//! the τ of a code; both are for status and metrics.

use alloc::boxed::Box;
use core::any::Any;
use core::fmt;

use marline_base::{Duration, Instant};

use crate::flow::{Fate, Symbol};
use crate::path::EmissionKind;
use crate::wire::PathId;

mod acpf;
mod auto;
mod blest;
mod brim;
pub mod capacity;
mod common;
mod cpf;
mod daps;
mod dems;
mod ecf;
mod edpf;
mod entry;
mod forecast;
mod hedge;
pub mod hop;
mod laws;
mod min_rtt;
pub mod normal;
mod ols;
mod options;
mod otias;
mod outlook;
mod parse;
mod per_path;
mod pick;
mod plan;
mod redundancy;
mod redundant;
pub mod registry;
mod relief;
mod revision;
mod round_robin;
mod s_edpf;
pub mod sos;
mod sttf;

pub use crate::flow::refusal::Refusal;
pub use crate::flow::shown::{Blocked, Coding, Unit, UnitCode};
pub use crate::path::view::PathView;
pub use auto::{AUTO, Need, auto};
pub use common::Common;
pub use entry::{Choice, Constructor, Entry};
pub use forecast::Forecast;
pub use laws::gauss::Gauss;
pub use options::{Accepts, OptionSpec, Value};
pub use outlook::{Outlook, PathOutlook};
pub use parse::ChoiceError;
pub use plan::{Plan, SymbolSource};

#[cfg(test)]
mod document;
#[cfg(test)]
pub(crate) mod tests;

/// What became of an emission of this flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// It left on the path.
    Sent,
    /// The peer has it.
    Acked,
    /// It was lost; the session will send it again if nothing else delivers it. A repair symbol is
    /// not sent again.
    Lost,
    /// The peer recovered it by the flow's code before it is known to have arrived. It may still
    /// be acknowledged after that.
    Recovered,
}

/// Feedback to a scheduler about one of its flow's symbols.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback {
    /// The symbol. A repair symbol has the number that [`Plan::repair`] gave it as its unit.
    pub symbol: Symbol,
    /// As what it went: a source, a copy, again, or a repair symbol.
    pub kind: EmissionKind,
    /// The path that it went on; of a recovered symbol, the first one.
    pub path: PathId,
    /// When it left.
    pub sent: Instant,
    /// What became of it.
    pub outcome: Outcome,
    /// When its packet arrived, by the peer's clock (microseconds), where it was acknowledged
    /// with its arrival time. Only differences mean anything.
    pub arrived_us: Option<u64>,
    /// Its acknowledgement came back by the same path: only then is the time from sending it to
    /// now the path's own round trip.
    pub own_way: bool,
}

/// Decides the path (and the copies) of every symbol of one flow.
///
/// # Contract
///
/// [`Scheduler::plan`] is called whenever something changed that could change the answer: new
/// backlog of the flow, acknowledgements, losses, a path's state, or the time that
/// [`Scheduler::wake_at`] named; for acknowledgements only if there is room, of schedulers that
/// [await it](Scheduler::awaits_room). It sees only paths that may carry data now, in ascending
/// order of [`PathView::id`]: the active ones; those on standby if there are none; suspect ones if
/// there is nothing else. It must
/// come to an end: each call may emit what fits the paths' windows, or, for schedulers that queue
/// ahead, what they bound themselves.
pub trait Scheduler: fmt::Debug + Send {
    /// May the unit be written, and what is to be expected of it? Asked before it is taken, so that
    /// the application can change it; schedulers that promise nothing take everything and forecast
    /// nothing.
    ///
    /// # Errors
    /// Why not.
    fn admit(
        &mut self,
        now: Instant,
        paths: &[PathView],
        unit: &Unit,
    ) -> Result<Option<Forecast>, Refusal> {
        let _ = (now, paths, unit);
        Ok(None)
    }

    /// Largest unit (bytes) that would arrive `within` this time from now with at least this
    /// probability; `None` from schedulers that do not know.
    fn capacity(
        &self,
        now: Instant,
        paths: &[PathView],
        within: Duration,
        reliability: f64,
    ) -> Option<u64> {
        let _ = (now, paths, within, reliability);
        None
    }

    /// Shortest time from now within which a unit of `len` bytes would arrive with at least this
    /// probability; `None` from schedulers that do not know.
    fn deadline(
        &self,
        now: Instant,
        paths: &[PathView],
        len: u64,
        reliability: f64,
    ) -> Option<Duration> {
        let _ = (now, paths, len, reliability);
        None
    }

    /// Emits what should be sent now.
    fn plan(&mut self, plan: &mut Plan<'_>);

    /// Learns what became of the flow's symbols.
    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        let _ = (now, feedback);
    }

    /// Learns what became of a whole unit of a flow of blocks or objects, as the peer said.
    fn on_unit(&mut self, now: Instant, unit: u64, fate: Fate) {
        let _ = (now, unit, fate);
    }

    /// Should [`Scheduler::plan`] also be called when a stream has data and no credit of the peer
    /// to send it ([`Plan::blocked`])?
    fn minds_credit(&self) -> bool {
        false
    }

    /// Does it look at what waits in other flows of the session ([`Plan::waiting`])?
    fn minds_others(&self) -> bool {
        false
    }

    /// Does it emit nothing while no path [has room](PathView::has_room), so that as long as
    /// something of the flow is unsent it need not be asked then? It is asked all the same when
    /// the flow has changed, at the time that [`Scheduler::wake_at`] named, and when paths come or
    /// go. In a session with thousands of flows an acknowledgement then costs no more than with
    /// one: whoever comes first takes the room that it makes.
    fn awaits_room(&self) -> bool {
        false
    }

    /// Does it heed what paths cost ([`PathView::cost`])? All others see a dear path only while the
    /// cheaper ones do not carry the flow in time.
    fn minds_cost(&self) -> bool {
        false
    }

    /// Will it emit repair symbols ([`Plan::repair`])? Asked once, when the flow is opened: only
    /// then is the flow coded, if its peer takes coded flows. The scheduler of a coded flow also
    /// plans while nothing is unsent, as long as the peer is not known to have everything.
    fn codes(&self) -> bool {
        false
    }

    /// τ: one in τ packets of the flow is a repair symbol now, for status and metrics. `None`
    /// when none are due at present, and from schedulers that send them by another rule than every
    /// τ-th packet.
    fn coding_interval(&self) -> Option<u32> {
        None
    }

    /// Should this lost symbol be sent again on two paths at once, if there are two that could
    /// bring it before another round trip is over? A scheduler that says so pays for the second
    /// from its budget.
    fn insures(&mut self, now: Instant, symbol: &Symbol) -> bool {
        let _ = (now, symbol);
        false
    }

    /// What it expects, for status and metrics; `None` from schedulers that forecast nothing.
    fn outlook(&self) -> Option<Outlook> {
        None
    }

    /// Does it take over what another one has learnt ([`inherit`](Self::inherit))? Asked when the
    /// flow is opened.
    fn inherits(&self) -> bool {
        false
    }

    /// What it has learnt of the session's paths, for flows of the same choice that begin later;
    /// `None` from schedulers that learn nothing of them but what all flows share anyway.
    fn legacy(&self) -> Option<Box<dyn Any + Send>> {
        None
    }

    /// Begins with the [`legacy`](Self::legacy) of a scheduler of the same choice. Called before
    /// anything else, if there is one.
    fn inherit(&mut self, legacy: &dyn Any) {
        let _ = legacy;
    }

    /// When [`Scheduler::plan`] should be called although nothing happened.
    fn wake_at(&self) -> Option<Instant> {
        None
    }
}
