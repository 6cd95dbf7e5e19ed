//! Further paths of a session: only those of the client that opened it, by proof.

use tokio::io::AsyncWriteExt;

use super::*;
use crate::carrier::DialError;
use crate::carrier::handshake::{Hello, RefuseCode, Reply, SessionId, receive};
use crate::carrier::quic::exported;

/// What the client is answered when it asks to join, whatever the server's key is.
async fn refused_join(
    hosts: &mut Hosts,
    client: &Identity,
    clients_key: &SessionKey,
    servers_key: Option<&SessionKey>,
) -> RefuseCode {
    let dial = hosts.dial();
    let asked = async {
        let dialled = dial.connect(client).await.unwrap();
        dialled.join(clients_key, PathId(1)).await.unwrap_err()
    };
    let answered = async {
        let Attempt::Join(attempt) = hosts.listener.accept().await else {
            panic!("not a further path");
        };
        match servers_key {
            Some(key) => drop(attempt.accept(key).unwrap_err()),
            None => attempt.refuse(RefuseCode::UnknownSession, "no such session"),
        }
    };
    let (error, ()) = soon(async { tokio::join!(asked, answered) }).await;
    match error {
        DialError::Refused { code, .. } => code,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_second_path_joins_and_lives_on_without_the_first() {
    let mut hosts = Hosts::new();
    let dial = hosts.dial();
    let (mut opened, mut first, key) = hosts.open(&dial).await;
    let (mut second, mut accepted) = hosts.join(&dial, &opened.key, PathId(1)).await;
    ping_pong(&mut opened.carrier, &mut first).await;
    ping_pong(&mut second, &mut accepted).await;
    opened.carrier.close(0, "no longer needed");
    assert!(matches!(
        soon(recv(&mut first)).await,
        Err(CarrierEnd::Peer { .. })
    ));
    ping_pong(&mut second, &mut accepted).await;
    // The key outlives the connection that it came from.
    let (mut third, mut accepted) = hosts.join(&dial, &key, PathId(2)).await;
    ping_pong(&mut third, &mut accepted).await;
}

#[tokio::test]
async fn a_path_of_another_session_of_the_same_client_is_refused() {
    let mut hosts = Hosts::new();
    let dial = hosts.dial();
    let (one, _one, ones_key) = hosts.open(&dial).await;
    let (_two, _two_too, twos_key) = hosts.open(&dial).await;
    let client = hosts.client.clone();
    // Proved for session one, looked up as session two.
    let code = refused_join(&mut hosts, &client, &one.key, Some(&twos_key)).await;
    assert_eq!(code, RefuseCode::Proof);
    // The right one would have been let in.
    let (mut joined, mut accepted) = hosts.join(&dial, &ones_key, PathId(1)).await;
    ping_pong(&mut joined, &mut accepted).await;
}

#[tokio::test]
async fn another_client_with_a_stolen_session_key_is_refused() {
    let owner = Identity::generate().unwrap();
    let thief = Identity::generate().unwrap();
    let allowed = AllowList::from_keys([owner.public_key(), thief.public_key()]);
    let mut hosts = Hosts::with_allowed(owner, allowed, |_| {});
    let dial = hosts.dial();
    let (opened, _first, key) = hosts.open(&dial).await;
    let code = refused_join(&mut hosts, &thief, &opened.key, Some(&key)).await;
    assert_eq!(code, RefuseCode::Proof);
}

#[tokio::test]
async fn an_unknown_session_has_a_code_of_its_own() {
    let mut hosts = Hosts::new();
    let (opened, _first, _) = hosts.open(&hosts.dial()).await;
    let client = hosts.client.clone();
    let code = refused_join(&mut hosts, &client, &opened.key, None).await;
    assert_eq!(code, RefuseCode::UnknownSession);
}

/// What a client with the right session key is answered that proves one path number and asks for
/// another, or proves on an earlier connection (`moved`) what it sends on a later one.
async fn forged_join(path_proved: PathId, path_asked: PathId, moved: bool) -> RefuseCode {
    let mut hosts = Hosts::new();
    let dial = hosts.dial();
    let (opened, _first, key) = hosts.open(&dial).await;
    let asked = async {
        let earlier = dial.connect(&hosts.client).await.unwrap();
        let now = dial.connect(&hosts.client).await.unwrap();
        let session = opened.key.session();
        let proved_on = if moved { &earlier } else { &now };
        let export = proved_on.link.exported(session).unwrap();
        let proof = opened.key.prove(&export, path_proved);
        let hello = Hello::Join {
            path: path_asked,
            session,
            proof,
        };
        let (mut send, mut recv) = quic(&now).open_bi().await.unwrap();
        send.write_all(&hello.encode()).await.unwrap();
        Reply::decode(&receive(&mut recv).await.unwrap()).unwrap().1
    };
    let answered = async {
        let Attempt::Join(attempt) = hosts.listener.accept().await else {
            panic!("not a further path");
        };
        // Kept, since a dropped carrier closes the connection.
        attempt.accept(&key)
    };
    let (reply, _carrier) = soon(async { tokio::join!(asked, answered) }).await;
    match reply {
        Reply::Refuse { code, .. } => code,
        Reply::Accept { .. } => RefuseCode::Other(0),
    }
}

#[tokio::test]
async fn a_proof_is_worth_nothing_on_another_connection_or_path() {
    let accepted = RefuseCode::Other(0);
    assert_eq!(forged_join(PathId(1), PathId(1), false).await, accepted);
    assert_eq!(
        forged_join(PathId(1), PathId(1), true).await,
        RefuseCode::Proof
    );
    assert_eq!(
        forged_join(PathId(1), PathId(2), false).await,
        RefuseCode::Proof
    );
}

#[tokio::test]
async fn the_export_differs_by_session_and_connection_and_is_equal_at_both_ends() {
    let mut hosts = Hosts::new();
    let dial = hosts.dial();
    let (opened, first, _) = hosts.open(&dial).await;
    let (other, ..) = hosts.open(&dial).await;
    let session = opened.key.session();
    let of = |carrier: &PathCarrier, id| match carrier {
        PathCarrier::Quic(carrier) => exported(&carrier.connection, id).unwrap(),
        PathCarrier::Tcp(_) => panic!("that is TCP"),
    };
    assert_eq!(of(&opened.carrier, session), of(&first, session));
    assert_ne!(of(&opened.carrier, session), of(&other.carrier, session));
    assert_ne!(
        of(&opened.carrier, session),
        of(&opened.carrier, SessionId([0; 16]))
    );
}
