//! Sessions that come up, and those that must not.

use super::*;
use marline::endpoint::client::FailureKind;

#[tokio::test]
async fn a_session_comes_up_over_two_paths_and_shows_them() {
    let world = World::start();
    let client = world.connect(&["any,name=a", "127.0.0.1,name=b,cost=3"]);
    assert_eq!(status(&client).await.state, "connecting");
    ready(&client).await;
    active(&client, "a").await;
    active(&client, "b").await;
    let mut stream = open(&client).await;
    ping(&mut stream).await;
    until("measured", async || {
        path(&client, "a").await.rtt_ms.is_some()
    })
    .await;
    let shown = status(&client).await;
    assert_eq!((shown.id, shown.state.as_str()), (0, "established"));
    assert_eq!(shown.peer, world.identity.public_key().to_string());
    assert_eq!(
        shown.paths.iter().map(|path| path.id).collect::<Vec<_>>(),
        [0, 1]
    );
    assert_eq!(path(&client, "b").await.cost, 3);
    assert_eq!(shown.flows_opened, 1);
    assert_eq!(shown.flows[0].kind, "stream");
    assert_eq!(shown.flows[0].sent_bytes, 4);
    assert_eq!(shown.flows[0].delivered_bytes, 4);
    let other_side = world.server.status().await.sessions;
    assert_eq!(other_side.len(), 1);
    assert_eq!(other_side[0].peer, world.client.public_key().to_string());
    assert_eq!(other_side[0].paths.len(), 2);
    assert!(other_side[0].paths[0].name.starts_with("127.0.0.1:"));
}

#[tokio::test]
async fn a_session_comes_up_while_the_first_listed_path_is_dead_and_gains_it_later() {
    let world = World::start();
    let dark = world.link();
    dark.set_dark(true);
    let client = world.connect(&[&through(&dark, "dark"), "any,name=fine"]);
    ready(&client).await;
    active(&client, "fine").await;
    assert_ne!(path(&client, "dark").await.state, PathState::Active);
    round_trip(&client, 1, 100_000).await;
    dark.set_dark(false);
    active(&client, "dark").await;
    assert_eq!(status(&client).await.id, 0, "no second session was opened");
}

#[tokio::test]
async fn all_addresses_of_a_server_are_tried() {
    let world = World::start();
    let closed = std::net::UdpSocket::bind(LOOPBACK).unwrap();
    let mut options = world.options(&["any"]);
    let silent = closed.local_addr().unwrap().to_string();
    options.addresses.insert(0, silent.parse().unwrap());
    let client = Client::start(options).unwrap();
    ready(&client).await;
    round_trip(&client, 1, 1000).await;
}

/// A client whose server has a name that is in no DNS (RFC 6761), and was kept as `addr`.
fn by_kept(folder: &std::path::Path, addr: SocketAddr, mut options: ClientOptions) -> Client {
    let file = folder.join("addresses");
    std::fs::write(&file, format!("{} server.invalid\n", addr.ip())).unwrap();
    let name = format!("server.invalid:{}", addr.port());
    options.addresses = vec![name.parse().unwrap()];
    options.names = Some(file);
    Client::start(options).unwrap()
}

#[tokio::test]
async fn a_name_that_cannot_be_looked_up_is_dialled_as_it_was_last_known() {
    let world = World::start();
    let folder = tempfile::tempdir().unwrap();
    let options = world.options(&["127.0.0.1"]);
    let client = by_kept(folder.path(), world.addr(), options);
    ready(&client).await;
    round_trip(&client, 1, 1000).await;
}

#[tokio::test]
async fn another_server_at_an_address_that_was_kept_does_not_end_the_client() {
    let world = World::start();
    let folder = tempfile::tempdir().unwrap();
    let expected = key();
    let options = options(&expected, &world.client, world.addr(), &["127.0.0.1"]);
    let client = by_kept(folder.path(), world.addr(), options);
    until("the failure shows", async || {
        let reason = path(&client, "127.0.0.1").await.reason;
        reason.contains(&expected.public_key().to_string())
    })
    .await;
    let error = client.connect(Duration::from_millis(1)).await.unwrap_err();
    assert_eq!(error.worst().unwrap().kind, FailureKind::Passing);
    client.stop("enough").await;
}

async fn refused(options: ClientOptions) -> ConnectError {
    let client = Client::start(options).unwrap();
    let error = client.connect(LIMIT).await.unwrap_err();
    let refused = client.open_stream(target()).await;
    assert!(matches!(refused, Err(OpenError::NoSession(_))));
    error
}

#[tokio::test]
async fn a_client_that_is_not_listed_is_refused_and_told_the_mend() {
    let world = World::start();
    let stranger = key();
    let options = options(
        &world.identity,
        &stranger,
        world.addr(),
        &["any", "127.0.0.1"],
    );
    let error = refused(options).await;
    let failures: Vec<&PathFailure> = error.paths.iter().flat_map(|(_, it)| it).collect();
    assert!(!failures.is_empty());
    assert!(failures.iter().all(|it| it.kind == FailureKind::Refused));
    let hint = error.hint().unwrap();
    assert!(hint.contains(&stranger.public_key().to_string()), "{hint}");
    assert!(world.server.status().await.sessions.is_empty());
}

#[tokio::test]
async fn a_server_with_another_key_is_not_talked_to() {
    let world = World::start();
    let expected = key();
    let options = options(&expected, &world.client, world.addr(), &["any"]);
    let text = refused(options).await.to_string();
    for key in [&expected, &world.identity] {
        assert!(text.contains(&key.public_key().to_string()), "{text}");
    }
}

#[tokio::test]
async fn an_interface_that_this_host_has_not_is_waited_for() {
    let world = World::start();
    let client = Client::start(world.options(&["nosuch0"])).unwrap();
    until("the failure shows", async || {
        path(&client, "nosuch0").await.reason.contains("nosuch0")
    })
    .await;
    let error = client.connect(Duration::from_millis(1)).await.unwrap_err();
    assert_eq!(error.worst().unwrap().kind, FailureKind::NoInterface);
    let text = error.to_string();
    assert!(
        text.contains("path nosuch0: ") && text.contains("lo"),
        "{text}"
    );
    client.stop("enough").await;
    // It does not stand in the way of the others.
    let client = world.connect(&["nosuch0", "any"]);
    ready(&client).await;
    until("the failure shows", async || {
        path(&client, "nosuch0").await.reason.contains("nosuch0")
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_each_path() {
    let nobody = std::net::UdpSocket::bind(LOOPBACK).unwrap();
    let options = options(
        &key(),
        &key(),
        nobody.local_addr().unwrap(),
        &["any", "127.0.0.1"],
    );
    let client = Client::start(options).unwrap();
    let error = client.connect(Duration::from_millis(50)).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("path any: no answer") && text.contains("path 127.0.0.1: no answer"),
        "{text}"
    );
    client.stop("enough").await;
}

#[tokio::test]
async fn a_client_has_only_so_many_sessions_and_a_server_too() {
    let world = World::with(|options| options.max_sessions_per_client = 2);
    let first = world.connect(&["any"]);
    let second = world.connect(&["any"]);
    ready(&first).await;
    ready(&second).await;
    let third = world.connect(&["any"]);
    until("the refusal shows", async || {
        path(&third, "any")
            .await
            .reason
            .contains("as many sessions")
    })
    .await;
    first.stop("makes room").await;
    ready(&third).await;
    let full = World::with(|options| options.max_sessions = 0);
    let client = full.connect(&["any"]);
    until("the refusal shows", async || {
        let reason = path(&client, "any").await.reason;
        reason.contains("the server has as many sessions")
    })
    .await;
}
