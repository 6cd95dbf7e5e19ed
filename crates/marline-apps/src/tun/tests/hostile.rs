//! Servers that offer, send and say what they should not.

use super::*;

/// A server that offers this whenever it is asked, and what its client may send to it on the common
/// flow.
fn hostile(offer: Offer) -> (Session, mpsc::UnboundedReceiver<Pipe>) {
    let (opened, mut flows) = mpsc::unbounded_channel::<(Bytes, Opened)>();
    let (to_test, commons) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Some((target, flow)) = flows.recv().await {
            match (Role::decode(&target), flow) {
                (Some(Role::Lease { .. }), Opened::Stream(mut flow)) => {
                    flow.write_all(&offer.encode()).await.unwrap();
                    kept.push(flow);
                }
                (Some(Role::Common), Opened::Packets(flow)) => to_test.send(flow).unwrap(),
                // As a server does that knows no standings.
                (_, flow) => drop(flow),
            }
        }
    });
    (Session(opened), commons)
}

fn granted(mtu: u16, own: &str, server: &str) -> Offer {
    Offer::Granted {
        mtu,
        places: vec![Place {
            own: own.parse().unwrap(),
            server: server.parse().unwrap(),
        }],
        joined: false,
    }
}

#[tokio::test(start_paused = true)]
async fn a_hostile_server_gives_one_address_and_no_network() {
    for (mtu, own, server, leased) in [
        (
            1400,
            "10.77.0.2/8",
            "10.77.0.1",
            Some((1400, "10.77.0.2/32")),
        ),
        (
            65_535,
            "10.77.0.2/0",
            "192.168.0.1",
            Some((1400, "10.77.0.2/32")),
        ),
        (1280, "fd77::2/1", "fd77::1", Some((1280, "fd77::2/128"))),
        (1400, "8.0.0.2/8", "8.0.0.1", None),
        (1400, "10.77.0.2/24", "8.8.8.8", None),
        (1400, "127.0.0.2/8", "127.0.0.1", None),
        (
            1400,
            "198.51.100.2/24",
            "198.51.100.1",
            Some((1400, "198.51.100.2/32")),
        ),
    ] {
        let (session, _commons) = hostile(granted(mtu, own, server));
        let machine = Machine::new(session, &["198.51.100.0/24"]);
        let leased = leased.map(|(mtu, own)| (mtu, vec![own.to_owned()]));
        assert_eq!(machine.leased().await, leased, "{own}");
    }
}

#[tokio::test(start_paused = true)]
async fn packets_of_a_hostile_server_are_dropped_and_said_now_and_then() {
    let (log, _guard) = log();
    let (session, mut commons) = hostile(granted(1400, "10.77.0.2/0", "10.77.0.1"));
    let mut machine = Machine::new(session, &["198.51.100.0/24"]);
    let common = commons.recv().await.unwrap();
    for from in [
        [8, 0, 0, 1],
        [10, 77, 0, 3],
        [192, 168, 1, 1],
        OWN,
        [127, 0, 0, 1],
    ] {
        for _ in 0..10 {
            common.send(packet(from, OWN, 1).into()).await.unwrap();
        }
    }
    common
        .send(packet(SERVER, [10, 77, 0, 9], 2).into())
        .await
        .unwrap();
    common.send(Bytes::from_static(b"no packet")).await.unwrap();
    common.send(packet(SERVER, OWN, 3).into()).await.unwrap();
    common
        .send(packet([198, 51, 100, 7], OWN, 4).into())
        .await
        .unwrap();
    assert_eq!(machine.gets().await, Some(3));
    assert_eq!(machine.gets().await, Some(4));
    assert_eq!(machine.gets().await, None);
    assert_eq!(machine.shared.strays(), 52);
    let said = lines(&log, "was dropped");
    assert!((1..=4).contains(&said), "{said} lines");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_leases_back_at_once_is_asked_now_and_then() {
    let (opened, mut flows) = mpsc::unbounded_channel::<(Bytes, Opened)>();
    let _machine = Machine::new(Session(opened), &[]);
    let (log, _guard) = log();
    let counted = tokio::spawn(async move {
        let (mut count, mut number) = (0, 2);
        while let Some((target, flow)) = flows.recv().await {
            if let (Some(Role::Lease { .. }), Opened::Stream(mut flow)) =
                (Role::decode(&target), flow)
            {
                (count, number) = (count + 1, number ^ 1);
                let offer = granted(1400, &format!("10.77.0.{number}/24"), "10.77.0.1");
                flow.write_all(&offer.encode()).await.unwrap();
                if count == 20 {
                    break;
                }
            }
        }
    });
    let begun = tokio::time::Instant::now();
    counted.await.unwrap();
    assert!(begun.elapsed() > Duration::from_secs(45));
    assert!(lines(&log, "packets of up to") <= 4);
}

#[tokio::test(start_paused = true)]
async fn what_a_server_says_of_standings_that_are_not_known_is_ignored() {
    let (opened, mut flows) = mpsc::unbounded_channel::<(Bytes, Opened)>();
    let machine = Machine::new(Session(opened), &[]);
    let mut kept = Vec::new();
    while let Some((target, flow)) = flows.recv().await {
        match (Role::decode(&target), flow) {
            (Some(Role::Lease { .. }), Opened::Stream(mut flow)) => {
                let offer = granted(1400, "10.77.0.2/24", "10.77.0.1");
                flow.write_all(&offer.encode()).await.unwrap();
                kept.push(flow);
            }
            (Some(Role::Standing), Opened::Stream(mut flow)) => {
                flow.write_all(&[9, 2, 255, 7]).await.unwrap();
                assert_eq!(flow.read_u8().await.unwrap(), 2);
                break;
            }
            _ => {}
        }
    }
    assert_eq!(machine.shared.standing(), Standing::SetAside);
    assert!(machine.leased().await.is_some());
    let _ = machine
        .from_kernel
        .send(packet(OWN, SERVER, 1).into())
        .await;
}
