//! Where the flows of a session are.
//!
//! What a datagram brings concerns one flow many times in a row, and the next one another flow: a
//! tree is searched only for those that the table of recent ones has lost. A tree of what is as
//! large as a flow would also be slow to search and to change, so the tree has places only.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::flow::Flow;
use crate::wire::FlowId;

/// Client and server open every other number each, so that flows of one of them use half of the
/// slots.
const IDS_PER_FLOW: usize = 2;

/// Flows by id.
#[derive(Debug, Default)]
pub(super) struct Flows {
    places: BTreeMap<FlowId, usize>,
    flows: Vec<Option<Box<Flow>>>,
    /// Places where no flow is.
    free: Vec<usize>,
    /// Where flows are, by the last bits of their ids: at least twice as many slots as flows, so
    /// that flows that were opened in a row do not displace each other.
    recent: Vec<Option<(FlowId, usize)>>,
}

impl Flows {
    #[inline]
    fn place(&self, id: FlowId) -> Option<usize> {
        match self.recent.get(self.slot(id)) {
            Some(Some((recent, place))) if *recent == id => Some(*place),
            _ => self.places.get(&id).copied(),
        }
    }

    /// Where in `recent` a flow is, if it is there.
    #[inline]
    fn slot(&self, id: FlowId) -> usize {
        id.0 as usize & self.recent.len().wrapping_sub(1)
    }

    #[inline]
    pub(super) fn get(&self, id: &FlowId) -> Option<&Flow> {
        self.flows[self.place(*id)?].as_deref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: &FlowId) -> Option<&mut Flow> {
        let place = self.place(*id)?;
        let slot = self.slot(*id);
        self.recent[slot] = Some((*id, place));
        self.flows[place].as_deref_mut()
    }

    pub(super) fn contains_key(&self, id: &FlowId) -> bool {
        self.place(*id).is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Adds a flow, which must not be there yet.
    pub(super) fn insert(&mut self, flow: Flow) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.flows.push(None);
            self.flows.len() - 1
        });
        self.places.insert(flow.id, place);
        if self.recent.len() < self.places.len() * IDS_PER_FLOW {
            let most = (self.places.len() * IDS_PER_FLOW).next_power_of_two();
            self.recent = alloc::vec![None; most];
        }
        self.flows[place] = Some(Box::new(flow));
    }

    pub(super) fn remove(&mut self, id: &FlowId) -> Option<Box<Flow>> {
        let place = self.places.remove(id)?;
        let slot = self.slot(*id);
        self.recent[slot].take_if(|(recent, _)| recent == id);
        self.free.push(place);
        self.flows[place].take()
    }

    /// All flows, in the order of their ids.
    pub(super) fn values(&self) -> impl Iterator<Item = &Flow> {
        let places = self.places.values();
        places.filter_map(|place| self.flows[*place].as_deref())
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = FlowId> + '_ {
        self.places.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::session::{FlowOptions, Session, Side};
    use crate::wire::FlowKind;
    use marline_base::Instant;

    #[test]
    fn flows_are_found_by_id_whatever_was_removed_and_in_whose_place_they_are() {
        let config = Config::default();
        let peer = config.params();
        let mut session = Session::new(Instant::ZERO, Side::Client, config, peer, 7).unwrap();
        let mut open = |_| {
            let options = FlowOptions::new(FlowKind::Stream);
            session.open_flow(&options).unwrap()
        };
        let ids: Vec<FlowId> = (0..6).map(&mut open).collect();
        let flows = &mut session.flows;
        assert_eq!(flows.get_mut(&ids[1]).unwrap().id, ids[1]);
        let [first, second] = [ids[1], ids[3]].map(|id| flows.remove(&id).unwrap());
        assert!(flows.get(&ids[1]).is_none() && flows.get_mut(&ids[3]).is_none());
        assert_eq!(flows.remove(&ids[1]).map(|flow| flow.id), None);
        let order = |flows: &Flows| flows.values().map(|flow| flow.id).collect::<Vec<_>>();
        assert_eq!(order(flows), [ids[0], ids[2], ids[4], ids[5]]);
        // Each takes the place that the other had.
        flows.insert(*first);
        flows.insert(*second);
        assert_eq!((order(flows), flows.len()), (ids.clone(), 6));
        assert_eq!(flows.flows.len(), 6, "no place is lost");
        for id in &ids {
            assert_eq!(flows.get_mut(id).unwrap().id, *id);
            assert_eq!(flows.get(id).unwrap().id, *id);
        }
        assert!(!flows.contains_key(&FlowId(ids[5].0 + 4)));
    }
}
