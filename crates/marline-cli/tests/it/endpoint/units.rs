//! Blocks and objects over real sockets.

use marline_proto::FlowOptions;
use marline_proto::flow::{BlockTerms, Fate, ObjectOptions};
use marline_proto::wire::FlowKind;

use super::*;
use marline::endpoint::{Accepted, Blocks, Incoming, Object, Objects, Settled};

/// A client, and the server's end of the flow that it opens.
async fn pair() -> (Client, tokio::sync::mpsc::UnboundedReceiver<Accepted>) {
    let (identity, own) = (key(), key());
    let allow = AllowList::from_keys([own.public_key()]);
    let options = ServerOptions::new(vec![LOOPBACK], identity.clone(), allow);
    let server = Server::bind(options).unwrap();
    let addr = server.local_addrs()[0];
    let (flows, opened) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut sessions = Vec::new();
        while let Some(session) = server.accept().await {
            while let Ok((_, flow)) = session.handle().accept().await {
                flows.send(flow).ok();
            }
            sessions.push(session);
        }
    });
    let client = Client::start(super::options(&identity, &own, addr, &["any"])).unwrap();
    ready(&client).await;
    (client, opened)
}

async fn send(objects: &Objects, data: &[u8]) -> u64 {
    let data = Bytes::copy_from_slice(data);
    let options = ObjectOptions::default();
    soon(objects.send(&data, &options)).await.unwrap()
}

async fn objects() -> (Client, Objects, Objects) {
    let (client, mut opened) = pair().await;
    let handle = client.session().unwrap();
    let near = handle
        .open_objects(FlowOptions::new(FlowKind::Objects))
        .unwrap();
    // The other end hears of a flow with its first data.
    assert_eq!(send(&near, b"hello").await, 0);
    let Some(Accepted::Objects(far)) = soon(opened.recv()).await else {
        panic!("a flow of objects was opened");
    };
    let data = Bytes::from_static(b"hello");
    let whole = Object::Whole { number: 0, data };
    assert_eq!(soon(far.recv()).await, Some(whole));
    (client, near, far)
}

#[tokio::test]
async fn objects_arrive_whole_and_in_pieces_and_both_ends_know() {
    let (_client, near, far) = objects().await;
    let settled = soon(near.settled()).await.unwrap();
    assert_eq!((settled.number, settled.fate), (0, Fate::OnTime));
    // Larger than a unit, so of several pieces.
    let large = Bytes::from(bytes(1, 6_000_000));
    assert_eq!(send(&near, &large).await, 1);
    match soon(far.recv()).await {
        Some(Object::Whole { number: 1, data }) => assert!(data == large),
        other => panic!("{:?}", other.map(|_| "something else")),
    }
    // Both directions; and one that is cancelled while it is written.
    let options = ObjectOptions::default();
    let open = soon(near.open(&options)).await.unwrap();
    soon(near.write(open, &Bytes::from_static(b"to be"), false))
        .await
        .unwrap();
    let Some(Incoming::Piece(piece)) = soon(far.recv_piece()).await else {
        panic!("a piece comes before the end");
    };
    assert_eq!(
        (piece.number, piece.last, &piece.data[..]),
        (2, false, &b"to be"[..])
    );
    near.cancel(open, 5);
    let fate = Fate::Cancelled(5);
    assert_eq!(
        soon(far.recv()).await,
        Some(Object::Gone { number: 2, fate })
    );
    send(&far, b"back").await;
    assert!(matches!(
        soon(near.recv()).await,
        Some(Object::Whole { number: 0, .. })
    ));
    near.finish();
    assert_eq!(soon(far.recv()).await, None);
}

#[tokio::test]
async fn who_waits_for_fates_hears_that_the_other_end_wants_no_more() {
    let (_client, near, far) = objects().await;
    let settled = soon(near.settled()).await.unwrap();
    assert_eq!(settled.number, 0);
    let waiting = tokio::spawn(async move { near.settled().await });
    drop(far);
    assert_eq!(soon(waiting).await.unwrap(), None);
}

#[tokio::test]
async fn an_object_that_is_too_large_to_be_put_together_is_refused_and_others_come() {
    let (_client, near, far) = objects().await;
    let options = ObjectOptions::default();
    let huge = soon(near.open(&options)).await.unwrap();
    let piece = Bytes::from(vec![7; 1 << 20]);
    let writing = async {
        // It may be refused before the last piece is written.
        for _ in 0..=Objects::WHOLE >> 20 {
            if near.write(huge, &piece, false).await.is_err() {
                break;
            }
        }
        send(&near, b"small").await
    };
    let fate = Fate::Refused(Objects::TOO_LARGE);
    let reading = async {
        let gone = far.recv().await;
        assert_eq!(gone, Some(Object::Gone { number: huge, fate }));
        far.recv().await
    };
    let (number, next) = soon(async { tokio::join!(writing, reading) }).await;
    let data = Bytes::from_static(b"small");
    assert_eq!(next, Some(Object::Whole { number, data }));
}

async fn block(near: &Blocks, len: usize, millis: u64) -> Settled {
    let terms = BlockTerms {
        deadline: Some(Duration::from_millis(millis)),
        reliability: None,
    };
    let data = Bytes::from(bytes(3, len));
    let accepted = soon(near.write(&data, terms)).await.unwrap();
    let settled = soon(near.settled()).await.unwrap();
    assert_eq!(settled.number, accepted.number);
    settled
}

#[tokio::test]
async fn blocks_arrive_and_their_fates_come_back() {
    let (client, mut opened) = pair().await;
    let handle = client.session().unwrap();
    let options = FlowOptions {
        scheduler: "edpf".parse().ok(),
        ..FlowOptions::new(FlowKind::Blocks)
    };
    let near = handle.open_blocks(options).unwrap();
    // Nothing on the loopback interface takes a minute.
    assert_eq!(block(&near, 50_000, 60_000).await.fate, Fate::OnTime);
    let Some(Accepted::Blocks(far)) = soon(opened.recv()).await else {
        panic!("a flow of blocks was opened");
    };
    match soon(far.recv()).await {
        Some(Incoming::Piece(piece)) => {
            assert!(piece.last && !piece.late);
            assert!(piece.data == bytes(3, 50_000));
        }
        other => panic!("{other:?}"),
    }
    // A scheduler that promises nothing does not know what it could keep.
    assert_eq!(near.capacity(Duration::from_millis(30), 0.98), None);
    assert_eq!(near.deadline(50_000, 0.98), None);
    near.finish();
    assert_eq!(soon(far.recv()).await, None);
}
