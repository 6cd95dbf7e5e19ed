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
