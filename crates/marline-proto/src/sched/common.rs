//! What the flows of a session have in common.
//!
//! A scheduler belongs to one flow. In a tunnel every conversation is one, and some schedulers are
//! meant for the tunnel as a whole: what waits in it, and what they have learnt or decided for all
//! of it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;

use super::laws::Histories;
use super::{Choice, Feedback};

/// Of one session, whose flows plan one after the other.
#[derive(Debug, Default)]
pub struct Common {
    /// Bytes that wait in all flows but the one that plans now
    /// ([`Plan::waiting`](super::Plan::waiting)).
    others: u64,
    /// Redundancy is bounded by what the paths lose
    /// ([`Plan::redundancy`](super::Plan::redundancy)).
    pub(super) bounded: bool,
    /// Flows learn by themselves what the paths are like.
    pub(super) blind: bool,
    /// What arrivals over the paths were like, whichever flows they belonged to.
    pub(super) histories: Histories,
    /// What flows share whose scheduler was chosen alike; as many as there are choices in a
    /// session.
    shared: Vec<(Choice, Box<dyn Any + Send>)>,
}

impl Common {
    /// Of a session whose flows spend on redundancy what losses are worth, if that is `bounded`.
    pub(crate) fn bounded(bounded: bool) -> Self {
        Self {
            bounded,
            ..Self::default()
        }
    }

    /// The same whose flows learn by themselves what the paths are like, if they begin `blind`.
    pub(crate) fn blind(self, blind: bool) -> Self {
        Self { blind, ..self }
    }

    /// Says how many bytes wait in all flows but the one that plans next.
    pub fn set_others(&mut self, bytes: u64) {
        self.others = bytes;
    }

    pub(super) fn others(&self) -> u64 {
        self.others
    }

    /// Learns of the paths from what became of a symbol of any flow.
    pub(crate) fn on_feedback(&mut self, feedback: &Feedback) {
        if !self.blind {
            self.histories.on_feedback(feedback);
        }
    }

    /// Exchanges `own` for what all flows with this choice share, which is a copy of it at first.
    pub(super) fn exchange<T: Any + Clone + Send>(&mut self, choice: &Choice, own: &mut T) {
        let mut known = self.shared.iter_mut().filter(|(known, _)| known == choice);
        match known.find_map(|(_, shared)| shared.downcast_mut::<T>()) {
            Some(shared) => core::mem::swap(shared, own),
            None => self.shared.push((*choice, Box::new(own.clone()))),
        }
    }
}
