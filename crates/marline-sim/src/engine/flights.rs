//! Datagrams between two sessions.

use bytes::Bytes;
use marline_base::Instant;
use marline_proto::wire::PathId;

/// A datagram on its way.
#[derive(Debug)]
pub(super) struct Flight {
    /// Index of the session that it goes to.
    pub(super) to: usize,
    pub(super) path: PathId,
    /// Index of the link that carries it.
    pub(super) link: usize,
    /// It goes from a client to a server.
    pub(super) up: bool,
    /// When it leaves the link's queue; until then an outage takes it.
    pub(super) departs: Instant,
    pub(super) datagram: Bytes,
}

/// Slots for what is on its way; freed slots are used again, so that memory follows the most that
/// ever flew at once.
#[derive(Debug, Default)]
pub(super) struct Flights {
    slots: Vec<Option<Flight>>,
    free: Vec<u32>,
}

impl Flights {
    /// Takes a flight in and says where it is.
    pub(super) fn insert(&mut self, flight: Flight) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(flight);
                slot
            }
            None => {
                self.slots.push(Some(flight));
                (self.slots.len() - 1) as u32
            }
        }
    }

    /// The flight in a slot, unless it was lost on its way. Its arrival is the slot's last use.
    pub(super) fn land(&mut self, slot: u32) -> Option<Flight> {
        self.free.push(slot);
        self.slots[slot as usize].take()
    }

    /// Loses every flight for which `lost` holds; their slots stay taken until they would have
    /// landed.
    pub(super) fn lose(&mut self, lost: impl Fn(&Flight) -> bool) {
        for slot in &mut self.slots {
            if slot.as_ref().is_some_and(&lost) {
                *slot = None;
            }
        }
    }
}
