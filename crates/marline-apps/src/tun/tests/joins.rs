//! Packets of one TCP connection that are joined, from one kernel to the other.

use super::super::icmp::Refusal;
use super::super::joined::tests::{joined, tcp};
use super::super::packet::Packet;
use super::super::packet::TCP;
use super::super::tcp::ACK;
use super::*;

/// 5000 bytes of payload in one packet.
fn long(from: [u8; 4], to: [u8; 4]) -> Vec<u8> {
    let mut bytes = v4(TCP, &tcp(ACK, 12, 5_000));
    bytes[12..16].copy_from_slice(&from);
    bytes[16..20].copy_from_slice(&to);
    bytes
}

async fn all(from: &mut mpsc::Receiver<Bytes>) -> Vec<Bytes> {
    let mut all = Vec::new();
    while let Ok(Some(message)) = timeout(SOON, from.recv()).await {
        all.push(message);
    }
    all
}

#[tokio::test(start_paused = true)]
async fn they_stay_joined_where_both_ends_know_of_it_and_arrive_one_by_one_where_not() {
    for older in [false, true] {
        let mut server = Server::new();
        let (mut machine, _session) = server.machine_as(older);
        assert!(machine.leased().await.is_some());
        let out = joined(&long(OWN, SERVER), 1_340);
        machine.from_kernel.send(out.clone().into()).await.unwrap();
        let came = all(&mut server.to_kernel).await;
        let back = joined(&long(SERVER, OWN), 1_340);
        server.from_kernel.send(back.clone().into()).await.unwrap();
        let returned = all(&mut machine.to_kernel).await;
        match older {
            false => assert_eq!((came, returned), (vec![out.into()], vec![back.into()])),
            true => {
                let lengths = |came: &[Bytes]| came.iter().map(Bytes::len).collect::<Vec<_>>();
                assert_eq!(lengths(&came), [1_392, 1_392, 1_392, 52 + 980]);
                assert_eq!(lengths(&came), lengths(&returned));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn segments_that_do_not_fit_are_answered_as_packets_are() {
    let mut server = Server::new();
    let (mut machine, _session) = server.machine();
    let (mtu, _) = machine.leased().await.unwrap();
    let long = long(OWN, SERVER);
    let out = joined(&long, mtu - 51);
    machine.from_kernel.send(out.into()).await.unwrap();
    assert_eq!(all(&mut server.to_kernel).await, Vec::<Bytes>::new());
    let packet = Packet::parse(&long).unwrap();
    let told = super::super::icmp::answer(&long, &packet, SERVER.into(), Refusal::TooBig(mtu));
    assert_eq!(all(&mut machine.to_kernel).await, [told.unwrap()]);
    // The largest that fits is carried.
    let out = joined(&long, mtu - 52);
    machine.from_kernel.send(out.into()).await.unwrap();
    assert_eq!(all(&mut server.to_kernel).await.len(), 1);
}
