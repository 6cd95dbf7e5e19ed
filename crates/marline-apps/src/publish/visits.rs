//! The client takes the flows of those who came to its ports at the server, and no others: it
//! connects to what its own configuration names for exactly that port.

use super::{ALL, EACH, Publication};
use crate::destination::{Destination, PortRole, ServerPort};
use crate::proxy::resolve::OwnTargets;
use crate::proxy::server::{datagrams, stream};
use crate::proxy::{Incoming, IncomingFlow, PacketFlow, Ports, Protocol, Tasks, Tunnel};
use marline::support::seldom::Seldom;
use marline_proto::sched::{Need, auto};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// What is published, and what of it is free.
struct Room {
    publications: Vec<Publication>,
    /// Of each port that ever was.
    each: HashMap<ServerPort, Arc<Semaphore>>,
    /// Of all together.
    all: Arc<Semaphore>,
}

/// What a flow holds.
type Held = (OwnedSemaphorePermit, OwnedSemaphorePermit);

/// Takes the flows that the server opens. Never completes.
pub(super) async fn take<T: Tunnel>(
    tunnel: T,
    mut published: watch::Receiver<Vec<Publication>>,
    tasks: Tasks,
) {
    let mut room = Room::default();
    room.publish(published.borrow_and_update().clone());
    let (targets, ports) = (Arc::new(OwnTargets::new()), Ports::of_this_host());
    let odd = Seldom::default();
    loop {
        let Incoming { target, flow } = tokio::select! {
            Ok(()) = published.changed() => {
                room.publish(published.borrow_and_update().clone());
                continue;
            }
            incoming = tunnel.next_flow() => incoming,
        };
        // Dropped, a flow is reset.
        let Some((publication, held)) = room.find(&target, &flow) else {
            odd.say(|left_out| {
                tracing::warn!(
                    "the server opened a flow that nothing here asked for, or too many; it was reset{left_out}"
                );
            });
            continue;
        };
        let (target, targets) = (publication.target.clone(), Arc::clone(&targets));
        let is_live = publication.live.is_some();
        let draining = tasks.clone();
        match flow {
            IncomingFlow::Stream(flow) => {
                // The other half of the ports is for this host's other programs.
                let Some(port) = ports.take(None) else {
                    continue;
                };
                tasks.spawn(async move { stream(flow, target, (held, port), &*targets).await });
            }
            IncomingFlow::Packets(flow) => tasks.spawn(async move {
                let _held = held;
                if is_live {
                    flow.set_scheduler(auto(Need::live()));
                }
                tokio::select! {
                    () = draining.draining() => {}
                    () = datagrams(flow, target, &*targets) => {}
                }
            }),
            IncomingFlow::Blocks(_) | IncomingFlow::Objects(_) => {}
        }
    }
}

impl Default for Room {
    fn default() -> Self {
        Room {
            publications: Vec::new(),
            each: HashMap::new(),
            all: Arc::new(Semaphore::new(ALL)),
        }
    }
}

impl Room {
    /// Has these published from now on. What came to others goes on.
    fn publish(&mut self, publications: Vec<Publication>) {
        // Those that nothing holds start from zero.
        self.each.retain(|port, free| {
            let is_published = publications.iter().any(|one| one.port == *port);
            is_published || free.available_permits() < EACH
        });
        self.publications = publications;
    }

    /// What a flow is for, if that is published, the flow is of its kind, and there is room for it.
    fn find<S, P>(
        &mut self,
        target: &[u8],
        flow: &IncomingFlow<S, P>,
    ) -> Option<(&Publication, Held)> {
        let protocol = match flow {
            IncomingFlow::Stream(_) => Protocol::Tcp,
            IncomingFlow::Packets(_) => Protocol::Udp,
            IncomingFlow::Blocks(_) | IncomingFlow::Objects(_) => return None,
        };
        let Ok(Destination::Port(PortRole::Visit, port)) = Destination::decode(target) else {
            return None;
        };
        let is = |one: &Publication| one.port == port && port.protocol == protocol;
        let index = self.publications.iter().position(is)?;
        let each = self.each.entry(port);
        let each = each.or_insert_with(|| Arc::new(Semaphore::new(EACH)));
        let own = Arc::clone(each).try_acquire_owned().ok()?;
        let all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some((&self.publications[index], (own, all)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::{Role, Target};

    type Flow = IncomingFlow<(), ()>;

    fn room(publications: &[&str]) -> Room {
        let mut room = Room::default();
        room.publish(
            publications
                .iter()
                .map(|text| text.parse().unwrap())
                .collect(),
        );
        room
    }

    fn visit(port: &str) -> bytes::Bytes {
        PortRole::Visit.encode(port.parse().unwrap())
    }

    #[test]
    fn only_visits_of_what_is_published_are_taken() {
        let mut room = room(&["tcp:8443=127.0.0.1:443", "udp:9000=127.0.0.1:9"]);
        let (stream, packets): (Flow, Flow) = (IncomingFlow::Stream(()), IncomingFlow::Packets(()));
        let mut found =
            |target: &[u8], flow| room.find(target, flow).map(|(one, _)| one.to_string());
        let tcp = found(&visit("tcp:8443"), &stream);
        assert_eq!(tcp.as_deref(), Some("tcp:8443=127.0.0.1:443"));
        let udp = found(&visit("udp:9000"), &packets);
        assert_eq!(udp.as_deref(), Some("udp:9000=127.0.0.1:9"));
        let port: ServerPort = "tcp:8443".parse().unwrap();
        for (target, flow) in [
            (visit("tcp:8443"), &packets),
            (visit("udp:9000"), &stream),
            (visit("udp:8443"), &packets),
            (visit("tcp:9000"), &stream),
            (visit("tcp:443"), &stream),
            (PortRole::Ask.encode(port), &stream),
            (
                Target::parse(Protocol::Tcp, "127.0.0.1:443")
                    .unwrap()
                    .encode(),
                &stream,
            ),
            (Role::Standing.encode(), &stream),
            (bytes::Bytes::new(), &stream),
        ] {
            assert_eq!(found(&target, flow), None, "{target:?}");
        }
    }

    #[test]
    fn what_is_published_changes_while_visits_go_on() {
        let mut room = room(&["tcp:1=h:1"]);
        let stream: Flow = IncomingFlow::Stream(());
        let visit = visit("tcp:1");
        let held = room.find(&visit, &stream).unwrap().1;
        room.publish(Vec::new());
        assert!(room.find(&visit, &stream).is_none());
        // Who is still there counts.
        room.publish(vec!["tcp:1=h:2".parse().unwrap()]);
        let now = room.find(&visit, &stream).map(|(one, _)| one.to_string());
        assert_eq!(now.as_deref(), Some("tcp:1=h:2"));
        assert_eq!(
            room.each
                .values()
                .map(|free| free.available_permits())
                .sum::<usize>(),
            EACH - 1
        );
        drop(held);
        room.publish(Vec::new());
        assert!(room.each.is_empty());
    }

    #[test]
    fn no_more_are_taken_than_a_port_and_a_client_may_carry() {
        let mut room = room(&["tcp:1=h:1", "tcp:2=h:1", "tcp:3=h:1"]);
        let stream: Flow = IncomingFlow::Stream(());
        let mut take = |port: &str, most: usize| -> Vec<_> {
            let mut one = || Some(room.find(&visit(port), &stream)?.1);
            (0..most).map_while(|_| one()).collect()
        };
        let first = take("tcp:1", 2 * EACH);
        assert_eq!(first.len(), EACH);
        let second = take("tcp:2", 2 * EACH);
        assert_eq!(first.len() + second.len(), ALL);
        assert!(take("tcp:3", 1).is_empty());
        drop(first);
        assert_eq!(take("tcp:3", 2 * EACH).len(), EACH);
    }
}
