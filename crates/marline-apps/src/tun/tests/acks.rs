//! Acknowledgements of TCP, which need no order.

use super::super::ack::tests::segment;
use super::super::packet::TCP;
use super::*;

const ACK: u8 = 0x10;

fn of_client(payload: &[u8]) -> Vec<u8> {
    let mut bytes = v4(TCP, &segment(ACK, payload));
    bytes[12..16].copy_from_slice(&OWN);
    bytes[16..20].copy_from_slice(&SERVER);
    bytes
}

/// They would wait there for what is lost before them.
#[tokio::test(start_paused = true)]
async fn an_acknowledgement_takes_no_flow_that_keeps_an_order() {
    let mut server = Server::new();
    let (machine, session) = server.machine();
    sleep(SOON).await;
    for (payload, flows) in [(&[][..], 1), (&[7], 1), (&[], 1)] {
        let packet = of_client(payload);
        machine.from_kernel.send(packet.clone()).await.unwrap();
        sleep(SOON).await;
        let come = timeout(SOON, server.to_kernel.recv()).await.unwrap();
        assert_eq!(come.unwrap(), packet);
        assert_eq!(session.conversations.load(Relaxed), flows);
    }
}
