//! Paths that come, go, rest, die and move.

use super::relay::Relay;
use super::*;
use marline::RemovePathError;
use marline_proto::wire::PathId;

/// The session's own number of a path.
fn numbers(client: &Client) -> Vec<PathId> {
    let handle = client.session().expect("there is a session");
    handle.path_names().into_keys().collect()
}

#[tokio::test]
async fn a_path_is_killed_and_another_added_under_a_running_transfer() {
    let world = World::start();
    let links = [world.link(), world.link(), world.link()];
    let client = world.connect(&[&through(&links[0], "a"), &through(&links[1], "b")]);
    ready(&client).await;
    active(&client, "a").await;
    active(&client, "b").await;
    let transfer = {
        let client = client.clone();
        tokio::spawn(async move { round_trip(&client, 7, 8 << 20).await })
    };
    until("data flows on a", async || {
        path(&client, "a").await.received_bytes > 100_000
    })
    .await;
    links[0].set_dark(true);
    client.remove_path("a").unwrap();
    let c: Path = through(&links[2], "c").parse().unwrap();
    client.add_path(c.clone()).unwrap();
    let twice = client.add_path(c).unwrap_err();
    assert!(twice.to_string().contains("there is a path c already"));
    active(&client, "c").await;
    transfer.await.unwrap();
    let shown = status(&client).await;
    let names: Vec<&str> = shown.paths.iter().map(|path| path.name.as_str()).collect();
    assert_eq!((shown.id, &names[..]), (0, &["b", "c"][..]));
    match client.remove_path("a").unwrap_err() {
        RemovePathError::Unknown(path) => assert_eq!(path.known, ["b", "c"]),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn an_interface_may_be_added_before_it_comes_and_an_address_only_if_it_is_there() {
    let world = World::start();
    let client = world.connect(&["any"]);
    let error = client
        .add_path("203.0.113.77".parse().unwrap())
        .unwrap_err();
    let reason = "203.0.113.77 is no address of this host";
    assert!(error.to_string().contains(reason), "{error}");
    client.add_path("nosuch0".parse().unwrap()).unwrap();
    until("it is waited for", async || {
        let reason = path(&client, "nosuch0").await.reason;
        reason.contains("no network interface `nosuch0`") && reason.contains("when that comes")
    })
    .await;
    for number in 2..16 {
        let path = format!("any,name=path{number}").parse().unwrap();
        client.add_path(path).unwrap();
    }
    let error = client.add_path("any,name=more".parse().unwrap());
    assert!(error.unwrap_err().to_string().contains("16 paths"));
    // By number, too.
    client.remove_path("3").unwrap();
    assert!(status(&client).await.paths.iter().all(|path| path.id != 3));
}

#[tokio::test]
async fn a_path_rests_and_is_called_back_at_both_ends() {
    let world = World::start();
    let client = world.connect(&["any,name=a", "any,name=b,standby"]);
    ready(&client).await;
    let both = async |state: PathState| {
        let theirs = world.server.status().await.sessions;
        let count = |paths: &[PathStatus]| paths.iter().filter(|path| path.state == state).count();
        (
            path(&client, "b").await.state == state,
            count(&theirs[0].paths),
        )
    };
    until("b rests", async || {
        both(PathState::Standby).await == (true, 1)
    })
    .await;
    client.set_standby("b", false).unwrap();
    until("b works", async || {
        both(PathState::Active).await == (true, 2)
    })
    .await;
    client.set_standby("b", true).unwrap();
    until("b rests", async || {
        both(PathState::Standby).await == (true, 1)
    })
    .await;
    assert!(client.set_standby("c", true).is_err());
}

#[tokio::test]
async fn a_path_whose_carrier_ends_is_dialled_anew_and_goes_on_resting() {
    let world = World::start();
    let client = world.connect(&["any,name=a", "any,name=b"]);
    ready(&client).await;
    active(&client, "b").await;
    client.set_standby("b", true).unwrap();
    let names = client.session().unwrap().path_names();
    let (&lost, _) = names.iter().find(|(_, name)| *name == "b").unwrap();
    // As if the server had lost it.
    let theirs = world.server.handles().remove(0);
    theirs.remove_path(lost).unwrap();
    until("b is back under a new number", async || {
        path(&client, "b").await.state == PathState::Standby && !numbers(&client).contains(&lost)
    })
    .await;
    assert_eq!(status(&client).await.id, 0);
}

#[tokio::test]
async fn a_nat_that_rebinds_one_path_ends_none() {
    let world = World::start();
    let links = [world.link(), world.link()];
    let client = world.connect(&[&through(&links[0], "a"), &through(&links[1], "b")]);
    ready(&client).await;
    active(&client, "a").await;
    active(&client, "b").await;
    let before = numbers(&client);
    for round in 0..3 {
        links[0].rebind();
        round_trip(&client, round, 300_000).await;
    }
    active(&client, "a").await;
    active(&client, "b").await;
    assert_eq!(numbers(&client), before);
}

#[tokio::test]
async fn a_network_that_returns_with_other_addresses_is_dialled_anew() {
    let world = World::start();
    let relay = Relay::start(world.addr()).await;
    let mut options = world.options(&[&format!("any,server={},name=a", relay.addr)]);
    options.session.dead_after = Duration::from_millis(100);
    options.session.keep_alive = Duration::from_millis(100);
    let client = Client::start(options).unwrap();
    ready(&client).await;
    active(&client, "a").await;
    let before = numbers(&client);
    let mut stream = open(&client).await;
    ping(&mut stream).await;
    relay.shut_out_the_known();
    until("the path was replaced", async || {
        let now = numbers(&client);
        now.len() == 1 && now != before
    })
    .await;
    // The session and its flows have lived on without any path.
    ping(&mut stream).await;
    assert_eq!(status(&client).await.id, 0);
}
