//! The server's side: where live flows end.

use super::entry::Entry;
use super::{Board, LiveName};
use crate::live::LiveOut;
use crate::proxy::idle::Idle;
use crate::proxy::udp::{MAX_DATAGRAM, hand_over, pause_after, roomy};
use crate::proxy::{Host, PacketFlow, Target};
use bytes::Bytes;
use marline_base::text::Problem;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{UdpSocket, lookup_host};
use tokio::time::timeout;

/// How long a name may take to resolve.
const RESOLVE: Duration = Duration::from_secs(5);
/// A flow without a datagram in either direction for this long is closed; longer than the client's
/// own limit.
const IDLE: Duration = Duration::from_secs(150);

/// A server's live entries. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Outlets {
    entries: Arc<Vec<(Target, Arc<Entry>)>>,
    board: Board,
}

impl Outlets {
    /// Of these entries, which have different names.
    pub fn new(configs: &[LiveOut]) -> Self {
        let entry = |(id, config): (usize, &LiveOut)| {
            let name = config.name.clone();
            let elsewhere = Problem {
                message: format!("live {name} ends here; what it needs is for its client to say"),
                hint: Some("name the control socket of a client: --control".into()),
            };
            let entry = Entry::new(id, name, None, None, Some(elsewhere));
            (config.target.clone(), entry)
        };
        let entries: Vec<_> = configs.iter().enumerate().map(entry).collect();
        let board = Board::new(entries.iter().map(|(_, entry)| Arc::clone(entry)));
        Outlets {
            entries: Arc::new(entries),
            board,
        }
    }

    /// What the entries count.
    pub fn board(&self) -> Board {
        self.board.clone()
    }

    /// Carries a client's flow to the entry of `name` until either side ends it or it has been
    /// quiet for long.
    pub(crate) async fn carry<P: PacketFlow>(&self, name: &LiveName, flow: P) {
        let found = self.entries.iter().find(|(_, entry)| entry.name == *name);
        let Some((target, entry)) = found else {
            let names: Vec<String> = self
                .entries
                .iter()
                .map(|(_, e)| e.name.to_string())
                .collect();
            let known = match &names[..] {
                [] => "it has none at all".to_owned(),
                _ => format!("it has {}", names.join(", ")),
            };
            tracing::warn!(
                "a client sends live {name}, and this server has no --live of that name; {known}"
            );
            return;
        };
        let flow = Arc::new(flow);
        if let Err(error) = exchange(flow, target, entry).await {
            tracing::warn!("live {name} cannot be handed to {target}: {error}");
        }
    }
}

async fn resolve(target: &Target) -> io::Result<SocketAddr> {
    match target.host() {
        Host::Ip(address) => Ok((*address, target.port()).into()),
        Host::Name(name) => {
            let mut found = timeout(RESOLVE, lookup_host((name.as_str(), target.port()))).await??;
            found
                .next()
                .ok_or_else(|| io::Error::other("the name has no address"))
        }
    }
}

async fn exchange<P: PacketFlow>(
    flow: Arc<P>,
    target: &Target,
    entry: &Arc<Entry>,
) -> io::Result<()> {
    let address = resolve(target).await?;
    let any: IpAddr = match address.ip() {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    // Connected: the kernel drops what comes from anybody else.
    socket.connect(address).await?;
    roomy(&socket);
    let running = entry.begin(&flow);
    let idle = Idle::new(IDLE);
    let deliver = async |message: Bytes| {
        running.received(&message);
        if let Err(error) = hand_over(&socket, &message).await {
            tracing::trace!(%error, "a datagram could not be handed over");
        }
    };
    let outgoing = async {
        while let Some(message) = flow.recv().await {
            idle.touch();
            deliver(message).await;
        }
    };
    let incoming = async {
        let mut buffer = vec![0; MAX_DATAGRAM];
        loop {
            match socket.recv(&mut buffer).await {
                Ok(length) => {
                    idle.touch();
                    let datagram = Bytes::copy_from_slice(&buffer[..length]);
                    running.sent(&datagram);
                    match flow.send(datagram).await {
                        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                            running.refused(1);
                        }
                        Err(_) => return,
                        Ok(()) => {}
                    }
                }
                Err(error) => pause_after(error).await,
            }
        }
    };
    tokio::select! {
        () = outgoing => {}
        () = incoming => {}
        () = idle.expired() => {}
    }
    // The client knows that these have arrived, although nothing can be sent back any more.
    while let Ok(Some(message)) = timeout(Duration::ZERO, flow.recv()).await {
        deliver(message).await;
    }
    Ok(())
}
