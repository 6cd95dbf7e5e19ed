//! No flow starves behind more urgent ones.
//!
//! Flows go by strict priority. So that an endless supply of urgent data leaves something to the
//! others, one turn of [`ROUND`] goes to the flow that has waited longest, before all that is more
//! urgent. The bound: of k flows that wait behind more urgent ones, each has sent n turns
//! ([`QUANTUM`] bytes each) after at most (k n + 2) rounds of the session, as long as its scheduler
//! and its credit let it send. So of every 32 turns of 3 kB that a session sends, one goes to a
//! flow that has waited for half a round or longer; it is planned for and served before all others.

use super::Session;
use super::flow::Flow;
use super::share::{CLASSES, QUANTUM};
use crate::wire::FlowId;

/// Turns in a round, one for those that wait: it costs the more urgent 3 % of the rate. A
/// choice, not tuned.
const ROUND: u64 = 32;

/// Who waits, in bytes that the session has sent.
#[derive(Debug)]
pub(super) struct Ageing {
    /// Sent in all.
    pub(super) sent: u64,
    /// When the present round began.
    begun: u64,
    /// The most urgent class of which something left in this round.
    top: usize,
    /// The flow whose turn has come, until it has used it.
    promoted: Option<FlowId>,
}

impl Default for Ageing {
    fn default() -> Self {
        Ageing {
            sent: 0,
            begun: 0,
            top: CLASSES,
            promoted: None,
        }
    }
}

impl Ageing {
    /// So many bytes of a flow of this class left.
    pub(super) fn on_left(&mut self, flow: &mut Flow, class: usize, bytes: u64) {
        self.sent += bytes;
        flow.served_at = self.sent;
        if !flow.promoted {
            self.top = self.top.min(class);
        }
    }

    /// The flow has nothing to send any more.
    pub(super) fn on_idle(&mut self, flow: &mut Flow) {
        if self.promoted.take_if(|id| *id == flow.id).is_some() {
            flow.promoted = false;
        }
    }
}

impl Session {
    /// Once a round, promotes the flow that has waited longest for at least half of one.
    pub(super) fn age(&mut self) {
        let sent = self.ageing.sent;
        if sent - self.ageing.begun < ROUND * QUANTUM {
            return;
        }
        let top = core::mem::replace(&mut self.ageing.top, CLASSES);
        self.ageing.begun = sent;
        // It had a round and no use for it: others first.
        self.demote();
        let credit = self.credit.left();
        let waits = |flow: &&Flow| {
            sent - flow.served_at >= ROUND * QUANTUM / 2
                && (!flow.queues.is_all_empty() || flow.has_work(1, credit))
        };
        let flows = self.share.below(top).filter_map(|id| self.flows.get(&id));
        let longest = flows.filter(waits).min_by_key(|flow| flow.served_at);
        if let Some(id) = longest.map(|flow| flow.id) {
            self.ageing.promoted = Some(id);
            self.reclass(id, |flow| (flow.promoted, flow.deficit) = (true, 0));
        }
    }

    /// The promoted flow has had its turn, if there is one.
    pub(super) fn demote(&mut self) {
        if let Some(id) = self.ageing.promoted.take() {
            let sent = self.ageing.sent;
            self.reclass(id, |flow| {
                flow.promoted = false;
                flow.served_at = sent;
            });
        }
    }
}
