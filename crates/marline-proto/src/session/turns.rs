//! Which path sends next.
//!
//! Each path may send what its window and pacer allow, so among paths the order matters only where
//! a driver sends less than all of them together take: under a client's limit, or when others need
//! the thread. Then the most urgent flow goes first, wherever it waits, and no path starves behind
//! another.

use marline_base::Instant;
use smallvec::SmallVec;

use super::Session;
use super::share::Place;

/// A path that has something to carry now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    urgency: Urgency,
    pub(super) index: usize,
    /// It may carry data.
    pub(super) sends: bool,
}

/// What a path is to carry, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    /// Probes, control frames, and acknowledgements where there is no data that takes them along:
    /// a path's own are not for another to carry, and a peer that waits for them doubts the path.
    Session,
    /// Data, of the flow at this place first.
    Flow(Place),
}

impl Session {
    /// The paths that have something to carry now, in the order in which they are to be asked, and
    /// when the next one may send data.
    pub(super) fn turns(
        &self,
        now: Instant,
        acks: bool,
    ) -> (SmallVec<[Ready; 4]>, Option<Instant>) {
        let count = self.paths.len();
        let (mut ready, mut pacing) = (SmallVec::new(), None::<Instant>);
        // The path that sent last is the last of equals: a flow that waits on two of them sends on
        // both.
        let behind = match self.egress.last_path + 1 {
            next if next <= count => next,
            next => next % count.max(1),
        };
        for index in (behind..count).chain(0..behind) {
            let sends_at = self.sends_at(now, index);
            let sends = sends_at.is_some_and(|at| at <= now);
            pacing = pacing.into_iter().chain(sends_at).min();
            if self.has_to_say(index, sends, acks) {
                let urgency = self.urgency(index, sends);
                ready.push(Ready {
                    urgency,
                    index,
                    sends,
                });
            }
        }
        if ready.len() > 1 {
            ready.sort_by_key(|path: &Ready| path.urgency);
        }
        (ready, pacing)
    }

    /// Has the path at `index` anything to carry now: data that it `sends`, `acks` that are due,
    /// probes, control frames?
    #[inline]
    fn has_to_say(&self, index: usize, sends: bool, acks: bool) -> bool {
        let path = &self.paths[index];
        !path.blocked && (sends || acks || path.probes > 0 || !self.egress.control.is_empty())
    }

    #[inline]
    fn urgency(&self, index: usize, sends: bool) -> Urgency {
        let path = &self.paths[index];
        if path.probes > 0 || !self.egress.control.is_empty() && self.best_path() == Some(index) {
            return Urgency::Session;
        }
        match self.waiting.turn(path.id).filter(|_| sends) {
            Some(place) => Urgency::Flow(place),
            None => Urgency::Session,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use bytes::Bytes;
    use marline_base::Instant;

    use crate::config::Config;
    use crate::flow::Chunk;
    use crate::path::PathParams;
    use crate::session::{FlowOptions, Session, Side};
    use crate::wire::{FlowId, FlowKind, PathId};

    const NOW: Instant = Instant::ZERO;

    /// Two ends with two active paths.
    fn ends() -> [Session; 2] {
        let config = Config::default();
        let mut ends = [Side::Client, Side::Server]
            .map(|side| Session::new(NOW, side, config.clone(), config.params(), 7).unwrap());
        for end in &mut ends {
            for id in [PathId(0), PathId(1)] {
                end.add_path(NOW, id, &PathParams::default()).unwrap();
            }
        }
        let mut datagram = Vec::new();
        for from in [0, 1, 0, 1, 0, 1] {
            while let Some(sent) = ends[from].poll_transmit(NOW, &mut datagram) {
                ends[1 - from].handle_datagram(NOW, sent.path, &Bytes::copy_from_slice(&datagram));
            }
        }
        ends
    }

    /// A stream with `bytes` to send.
    fn stream(session: &mut Session, scheduler: &str, priority: u8, bytes: usize) -> FlowId {
        let options = FlowOptions {
            scheduler: Some(scheduler.parse().unwrap()),
            priority,
            ..FlowOptions::new(FlowKind::Stream)
        };
        let flow = session.open_flow(&options).unwrap();
        let data = Bytes::from([7].repeat(bytes));
        session.write(NOW, flow, &data).unwrap();
        flow
    }

    /// Hands the next datagram of one end to the other.
    fn pass(from: &mut Session, to: &mut Session) {
        let mut datagram = Vec::new();
        let sent = from.poll_transmit(NOW, &mut datagram).unwrap();
        to.handle_datagram(NOW, sent.path, &datagram.into());
    }

    /// The paths of the next datagrams.
    fn next(session: &mut Session, count: usize) -> Vec<u64> {
        let mut datagram = Vec::new();
        let sent = (0..count).map(|_| session.poll_transmit(NOW, &mut datagram));
        sent.map(|sent| sent.unwrap().path.0).collect()
    }

    #[test]
    fn a_flow_on_two_paths_sends_on_both_though_few_datagrams_may_leave() {
        let [mut client, _] = ends();
        stream(&mut client, "round-robin", 3, 12_000);
        let mut paths = next(&mut client, 4);
        paths.sort_unstable();
        assert_eq!(paths, [0, 0, 1, 1]);
    }

    #[test]
    fn what_is_urgent_leaves_first_on_whatever_path_it_waits() {
        let [mut client, mut server] = ends();
        stream(&mut client, "round-robin", 5, 12_000);
        next(&mut client, 1);
        // All of it waits on the same path.
        let urgent = stream(&mut client, "min-rtt", 1, 2_400);
        (0..3).for_each(|_| pass(&mut client, &mut server));
        let mut came = 0;
        while let Chunk::Data(bytes) = server.read(NOW, urgent, usize::MAX) {
            came += bytes.len();
        }
        assert_eq!(came, 2_400);
    }

    #[test]
    fn acknowledgements_of_a_path_without_data_wait_for_no_data() {
        let [mut client, mut server] = ends();
        let options = FlowOptions {
            scheduler: Some("min-rtt".parse().unwrap()),
            ..FlowOptions::new(FlowKind::Stream)
        };
        // Down, all of it on one path; up, on both.
        let down = server.open_flow(&options).unwrap();
        let data = Bytes::from([7].repeat(12_000));
        server.write(NOW, down, &data).unwrap();
        stream(&mut client, "redundant", 3, 2_400);
        let mut datagram = Vec::new();
        while let Some(sent) = client.poll_transmit(NOW, &mut datagram) {
            server.handle_datagram(NOW, sent.path, &Bytes::copy_from_slice(&datagram));
        }
        let mut paths = next(&mut server, 2);
        paths.sort_unstable();
        assert_eq!(paths, [0, 1], "one is an acknowledgement");
    }

    #[test]
    fn what_waits_on_one_path_only_is_not_held_up_by_another_path() {
        let [mut client, mut server] = ends();
        stream(&mut client, "round-robin", 3, 12_000);
        next(&mut client, 1);
        // One symbol, on the path that is next.
        let small = stream(&mut client, "round-robin", 3, 100);
        let mut polls = 0;
        while !matches!(server.read(NOW, small, usize::MAX), Chunk::Data(_)) {
            pass(&mut client, &mut server);
            polls += 1;
        }
        // The turn of the other flow is three thousand bytes.
        assert!(polls <= 4, "{polls}");
    }
}
