//! What the flows of a session have in common.
//!
//! A scheduler belongs to one flow. In a tunnel every conversation is one, and some schedulers are meant for
//! the tunnel as a whole: what waits in it, and how much of each path it uses.

use alloc::vec::Vec;

use super::Choice;
use super::acpf::Fractions;

/// Of one session, whose flows plan one after the other.
#[derive(Debug, Default)]
pub struct Common {
    /// Bytes that wait in all flows but the one that plans now ([`Plan::waiting`](super::Plan::waiting)).
    others: u64,
    /// Of `acpf`, by how it was chosen.
    fractions: Vec<(Choice, Fractions)>,
}

impl Common {
    /// Says how many bytes wait in all flows but the one that plans next.
    pub fn set_others(&mut self, bytes: u64) {
        self.others = bytes;
    }

    pub(super) fn others(&self) -> u64 {
        self.others
    }

    /// Exchanges `own` for the fractions of all flows with this choice, which it is at first.
    pub(super) fn exchange_fractions(&mut self, choice: &Choice, own: &mut Fractions) {
        let known = self.fractions.iter_mut().find(|(c, _)| c == choice);
        match known {
            Some((_, fractions)) => core::mem::swap(fractions, own),
            None => self.fractions.push((*choice, own.clone())),
        }
    }
}
