//! Servers with a session of the library's, that do a client no good.

use std::net::SocketAddr;
use std::num::NonZeroU16;

use bytes::Bytes;
use marline::endpoint::{Accepted, Server, ServerOptions, Session};
use marline::identity::{AllowList, ConnectionString, Host, HostPort, Identity};
use marline_apps::destination::{PortRole, ServerPort};
use marline_apps::proxy::{Protocol, reply};
use marline_proto::FlowOptions;
use marline_proto::wire::FlowKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::attack::{Failure, Knobs, Outcome};

/// What `lab/hostile.sh` has a client publish: tcp:8443.
const PORT: ServerPort = ServerPort {
    protocol: Protocol::Tcp,
    number: NonZeroU16::new(8443).unwrap(),
};

/// Says where it listens, as `marline server` does.
pub(crate) fn announce(identity: &Identity, addrs: &[SocketAddr]) -> Outcome {
    let addresses = addrs.iter().map(|addr| HostPort {
        host: Host::Ip(addr.ip()),
        port: addr.port(),
    });
    println!(
        "{}",
        ConnectionString::new(identity.public_key(), addresses.collect())?
    );
    Ok(())
}

/// Lets the clients in, each with its session, until the time is over.
pub(crate) async fn host<F>(knobs: &Knobs, treat: fn(Session, usize) -> F) -> Outcome
where
    F: Future<Output = ()> + Send + 'static,
{
    let identity = knobs.identity()?;
    let allowed = AllowList::from_keys(knobs.allow.iter().copied());
    let server = Server::bind(ServerOptions::new(
        vec![knobs.listen],
        identity.clone(),
        allowed,
    ))?;
    announce(&identity, server.local_addrs())?;
    let count = knobs.count;
    let serving = async {
        let mut sessions = Vec::new();
        while let Some(session) = server.accept().await {
            tokio::spawn(treat(session.handle().clone(), count));
            // Dropped, it would refuse the client's flows.
            sessions.push(session);
        }
    };
    let _ = tokio::time::timeout(knobs.duration(), serving).await;
    Ok(())
}

/// That the target was reached (RFC 1928 knows no other success), from nowhere in particular.
fn success() -> Vec<u8> {
    reply::encode(Ok(SocketAddr::from(([192, 0, 2, 1], 1)))).to_vec()
}

/// Answers that the target was reached, and never reads.
pub(crate) async fn deaf(knobs: Knobs) -> Outcome {
    host(&knobs, |session, _| async move {
        let mut kept = Vec::new();
        while let Ok((_, flow)) = session.accept().await {
            if let Accepted::Stream(mut stream) = flow {
                let _ = stream.write_all(&success()).await;
                kept.push(stream);
            }
        }
    })
    .await
}

/// Takes flows and never says a word.
pub(crate) async fn silent(knobs: Knobs) -> Outcome {
    host(&knobs, |session, _| async move {
        let mut kept = Vec::new();
        while let Ok((_, flow)) = session.accept().await {
            kept.push(flow);
        }
    })
    .await
}

/// Answers, reads a little, and resets.
pub(crate) async fn reset(knobs: Knobs) -> Outcome {
    host(&knobs, |session, _| async move {
        while let Ok((_, flow)) = session.accept().await {
            if let Accepted::Stream(mut stream) = flow {
                let _ = stream.write_all(&success()).await;
                let _ = stream.read(&mut [0; 100]).await;
            }
        }
    })
    .await
}

/// Opens flows of all kinds towards the client and fills them: for nothing, and as visits of a port
/// that the client may publish.
pub(crate) async fn opens(knobs: Knobs) -> Outcome {
    host(&knobs, |session, count| async move {
        for _ in 0..count {
            for target in [Bytes::new(), PortRole::Visit.encode(PORT)] {
                let options = FlowOptions {
                    target,
                    ..FlowOptions::new(FlowKind::Stream)
                };
                fill(&session, options);
            }
        }
    })
    .await
}

/// Opens two flows with these options and fills them.
fn fill(session: &Session, options: FlowOptions) {
    if let Ok(mut stream) = session.open_stream(options.clone()) {
        tokio::spawn(async move { while stream.write_all(&[0; 4096]).await.is_ok() {} });
    }
    if let Ok(packets) = session.open_packets(options) {
        tokio::spawn(
            async move { while packets.send(Bytes::from_static(&[0; 1000])).await.is_ok() {} },
        );
    }
}

/// Failures of a server's session end that session alone.
pub(crate) async fn quietly(doing: impl Future<Output = Result<(), Failure>>) {
    if let Err(error) = doing.await {
        println!("a session ended: {error}");
    }
}
