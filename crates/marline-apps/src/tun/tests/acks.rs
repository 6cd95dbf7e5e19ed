//! Acknowledgements of TCP, which need no order.

use super::super::ack::tests::segment;
use super::super::packet::TCP;
use super::super::tcp::ACK;
use super::*;

const DATA: &[u8] = &[7];

/// What the client's TCP sends with this payload.
fn out(payload: &[u8]) -> Vec<u8> {
    let mut bytes = v4(TCP, &segment(ACK, payload));
    bytes[12..16].copy_from_slice(&OWN);
    bytes[16..20].copy_from_slice(&SERVER);
    bytes
}

/// What is sent back to it.
fn back(payload: &[u8]) -> Vec<u8> {
    let mut bytes = out(payload);
    bytes[12..20].rotate_left(4);
    bytes[20..24].rotate_left(2);
    bytes
}

async fn come(packets: &Pipe) -> Option<Bytes> {
    timeout(SOON, packets.recv()).await.ok()?
}

/// In its own flow each would wait for what is lost before it. It takes one all the same where
/// there is none, as after a new session: the server finds the conversation's flow by what the
/// client sent on it.
#[tokio::test(start_paused = true)]
async fn a_client_s_acknowledgements_travel_in_the_common_flow_beside_their_conversation_s() {
    let server = Server::new();
    let visitor = server.visitor();
    let (opened, mut flows) = mpsc::unbounded_channel();
    let machine = Machine::new(Session(opened), &[]);
    let (mut common, mut own) = (None, None);
    let mut leases = JoinSet::new();
    // The lease asks for the common flow when it is there.
    for packet in [None, Some(out(&[]))] {
        if let Some(packet) = packet {
            machine.from_kernel.send(packet.into()).await.unwrap();
        }
        sleep(SOON).await;
        for _ in 0..2 {
            while let Ok((target, flow)) = flows.try_recv() {
                match (Role::decode(&target).unwrap(), flow) {
                    (Role::Lease { mtu, joined }, Opened::Stream(flow)) => {
                        let visitor = Arc::clone(&visitor);
                        leases.spawn(async move { visitor.lease(flow, mtu, joined).await });
                    }
                    (Role::Common, Opened::Packets(flow)) => common = Some(flow),
                    (Role::Conversation, Opened::Packets(flow)) => own = Some(flow),
                    _ => {}
                }
            }
            sleep(SOON).await;
        }
    }
    let (common, own) = (common.unwrap(), own.unwrap());
    assert_eq!(come(&own).await.unwrap(), out(&[]));
    for (payload, its, other) in [(DATA, &own, &common), (&[], &common, &own)] {
        machine.from_kernel.send(out(payload).into()).await.unwrap();
        assert_eq!(come(its).await.unwrap(), out(payload));
        assert_eq!(come(other).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn so_do_those_that_are_sent_back() {
    let server = Server::new();
    let visitor = server.visitor();
    let (mut lease, far) = duplex(4096);
    let its = Arc::clone(&visitor);
    let _lease = tokio::spawn(async move { its.lease(far, 1400, false).await });
    let mut head = [0; OFFER_HEAD];
    lease.read_exact(&mut head).await.unwrap();
    let open = |role: Role| {
        let (near, far) = pipe();
        let visitor = Arc::clone(&visitor);
        tokio::spawn(async move { visitor.carry(role, far).await });
        near
    };
    let own = open(Role::Conversation);
    own.send(out(DATA).into()).await.unwrap();
    sleep(SOON).await;
    // Without a common flow they are not lost.
    server.from_kernel.send(back(&[]).into()).await.unwrap();
    assert_eq!(come(&own).await.unwrap(), back(&[]));
    let common = open(Role::Common);
    sleep(SOON).await;
    for (payload, its, other) in [(&[][..], &common, &own), (DATA, &own, &common)] {
        server.from_kernel.send(back(payload).into()).await.unwrap();
        assert_eq!(come(its).await.unwrap(), back(payload));
        assert_eq!(come(other).await, None);
    }
}
