//! What a server's clients hold together.

use tokio::task::JoinSet;

use super::*;

/// Bytes that the clients' flows may hold: more than 20 flows' reserves and two carriers.
const BUDGET: u64 = 2 << 20;

fn held(server: &Server) -> u64 {
    server.handles().iter().map(|handle| handle.held()).sum()
}

#[tokio::test]
async fn the_client_that_holds_most_gives_up_flows_and_no_other_does() {
    let world = World::with(|options| options.memory = BUDGET);
    let modest = key();
    let both = [world.client.public_key(), modest.public_key()];
    world.server.allow_only(&AllowList::from_keys(both));
    let other = options(&world.identity, &modest, world.addr(), &["any"]);
    let other = Client::start(other).unwrap();
    ready(&other).await;
    let mut kept = open(&other).await;

    // Echoes that nobody reads: each flow holds its reserve in both directions.
    let greedy = world.connect(&["any"]);
    ready(&greedy).await;
    let mut writers = JoinSet::new();
    for _ in 0..100 {
        let mut stream = open(&greedy).await;
        writers.spawn(async move { stream.write_all(&[7; 1 << 20]).await });
    }
    let given_up = soon(writers.join_next()).await.unwrap().unwrap();
    assert!(given_up.is_err(), "nobody reads what comes back");
    until("the server holds no more than it may", async || {
        held(&world.server) <= BUDGET
    })
    .await;

    soon(kept.write_all(b"still there")).await.unwrap();
    let mut back = [0; 11];
    soon(kept.read_exact(&mut back)).await.unwrap();
    assert_eq!(&back, b"still there");
}

#[tokio::test]
async fn a_flow_leaves_half_of_the_memory_to_other_clients() {
    let world = World::with(|options| options.memory = 2 * BUDGET);
    let client = world.connect(&["any"]);
    ready(&client).await;
    let (mut reader, mut writer) = split(open(&client).await);
    let writing = tokio::spawn(async move {
        loop {
            if let Err(error) = writer.write_all(&[7; 1 << 16]).await {
                return error;
            }
        }
    });
    // Echoes that are read until the windows have grown as far as they may, and then no more.
    for _ in 0..100 {
        soon(reader.read_exact(&mut vec![0; 1 << 20]))
            .await
            .unwrap();
    }
    // Its reserve in both directions, and what it costs itself, come on top.
    let most = BUDGET + (100 << 10);
    for _ in 0..300 {
        let held = held(&world.server);
        assert!(held <= most, "{held} bytes, of {BUDGET}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!writing.is_finished(), "it was given up");
}
