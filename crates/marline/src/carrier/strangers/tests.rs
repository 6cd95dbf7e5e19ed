use super::*;
use crate::identity::Identity;
use tokio::time::advance;

fn strangers(change: impl FnOnce(&mut ListenConfig)) -> Arc<Strangers> {
    let mut config = ListenConfig::new(Vec::new());
    change(&mut config);
    Arc::new(Strangers::new(&config))
}

fn remote(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], 7))
}

fn is_prove(answer: Result<Arc<Place>, Turn>) -> bool {
    matches!(answer, Err(Turn::Prove))
}

#[tokio::test(start_paused = true)]
async fn what_is_begun_in_the_name_of_an_address_costs_it_nothing() {
    let strangers = strangers(|c| (c.handshake_burst, c.max_half_open_per_address) = (4, 4));
    let mut spoofed = Vec::new();
    for _ in 0..100 {
        spoofed.extend(strangers.quic(remote(1), false));
    }
    assert_eq!(spoofed.len(), 4);
    assert!(is_prove(strangers.quic(remote(1), false)));
    let real: Vec<_> = (0..4).map(|_| strangers.quic(remote(1), true)).collect();
    assert!(real.iter().all(Result::is_ok), "{real:?}");
}

#[tokio::test(start_paused = true)]
async fn above_a_number_of_handshakes_every_address_has_to_prove_itself() {
    let strangers = strangers(|c| c.retry_above = 2);
    let held = [1, 2].map(|last| strangers.quic(remote(last), false).unwrap());
    assert!(is_prove(strangers.quic(remote(3), false)));
    assert!(strangers.quic(remote(3), true).is_ok());
    drop(held);
    assert!(strangers.quic(remote(3), false).is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_address_pays_for_its_handshakes_until_a_listed_key_does() {
    let strangers = strangers(|c| (c.handshake_burst, c.handshakes_per_second) = (4, 1));
    let key = Identity::generate().unwrap().public_key();
    // Not yet proved, then proved: it pays as it is.
    for proved in [false, true, false, true] {
        strangers.quic(remote(1), proved).unwrap().proved();
    }
    assert!(is_prove(strangers.quic(remote(1), false)));
    let answer = strangers.quic(remote(1), true);
    assert!(matches!(answer, Err(Turn::Away(_))), "{answer:?}");
    assert!(strangers.tcp(remote(1).ip()).is_ok(), "TCP is apart");
    advance(Duration::from_secs(1)).await;
    let mut begun = 0;
    while let Ok(place) = strangers.quic(remote(1), true) {
        begun += 1;
        if !place.listed(key) {
            break;
        }
    }
    assert_eq!(begun, KEY_BURST + 1);
    let other = Identity::generate().unwrap().public_key();
    assert!(strangers.quic(remote(1), true).unwrap().listed(other));
}

#[tokio::test(start_paused = true)]
async fn an_address_is_known_while_a_client_is_there_and_for_a_day_after() {
    let strangers = strangers(|_| {});
    let knows = || lock(&strangers.known).has(remote(1).ip().into());
    let place = strangers.tcp(remote(1).ip()).unwrap();
    assert!(!knows());
    place.let_in();
    assert!(knows());
    assert_eq!(strangers.tcp.slots.len(), 0);
    advance(KNOWN_FOR * 3).await;
    drop(place);
    assert!(knows());
    advance(KNOWN_FOR).await;
    assert!(!knows());
}

#[tokio::test(start_paused = true)]
async fn few_refused_connections_linger() {
    let strangers = strangers(|_| {});
    let places: Vec<_> = (0..20)
        .flat_map(|last| (0..5).map(move |_| last))
        .map(|last| strangers.quic(remote(last), true).unwrap())
        .collect();
    let lingering: Vec<_> = places.iter().map(|place| place.lingers()).collect();
    let of_first = lingering[..5].iter().flatten().count();
    assert_eq!(of_first, LINGERING_PER_SITE);
    assert_eq!(lingering.iter().flatten().count(), LINGERING);
}
