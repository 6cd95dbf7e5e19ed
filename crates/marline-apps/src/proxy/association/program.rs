//! The client's end of an association: carries the datagrams of one local program.

use super::super::associations::{
    AGAIN, Associations, FlowEnd, IDLE, ReturnPath, carry as carry_one, refused, send,
};
use super::super::idle::Idle;
use super::super::{Host, OpenError, PacketFlow, Target, Tasks, Tunnel};
use super::message::{decode, encode};
use crate::destination::Association;
use crate::options::datagrams_to;
use bytes::Bytes;
use fast_socks5::new_udp_header;
use fast_socks5::util::target_addr::TargetAddr;
use marline::support::lock;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, atomic::AtomicBool, atomic::Ordering};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep, timeout};

/// How long the first datagrams wait for word that the server knows associations. It takes a round
/// trip; a server that does not know them closes the flow as quickly.
const WORD: Duration = Duration::from_secs(3);
/// How long a server is taken to know no associations after it has closed the flow of one.
const UNKNOWN: Duration = Duration::from_secs(60);

/// A datagram of the program.
#[derive(Debug, Clone)]
pub(in crate::proxy) struct Datagram {
    pub(in crate::proxy) target: Target,
    pub(in crate::proxy) payload: Bytes,
}

/// Whether the server knows associations, as far as that has shown.
#[derive(Debug, Default)]
pub(in crate::proxy) struct Knowledge(Mutex<Shown>);

#[derive(Debug, Default, Clone, Copy)]
enum Shown {
    #[default]
    Nothing,
    Knows,
    DoesNot(Instant),
}

impl Knowledge {
    fn knows(&self) -> bool {
        matches!(*lock(&self.0), Shown::Knows)
    }

    fn does_not(&self) -> bool {
        matches!(*lock(&self.0), Shown::DoesNot(since) if since.elapsed() < UNKNOWN)
    }

    fn note(&self, knows: bool) {
        *lock(&self.0) = match knows {
            true => Shown::Knows,
            false => Shown::DoesNot(Instant::now()),
        };
    }
}

/// Carries what the program sends, and the answers back, until `waiting` ends. Without a session
/// datagrams are dropped, as by a network that is down.
pub(in crate::proxy) async fn carry<T: Tunnel>(
    tunnel: T,
    mut waiting: mpsc::Receiver<Datagram>,
    back: ReturnPath,
    knowledge: &Knowledge,
    tasks: Tasks,
) {
    let mut first = None;
    while !knowledge.does_not() {
        if first.is_none() {
            first = waiting.recv().await;
        }
        if first.is_none() {
            return;
        }
        let options = datagrams_to(Association.encode());
        match tunnel.open_packets(options).await {
            Ok(flow) => {
                let end = exchange(flow, &mut first, &mut waiting, &back, knowledge).await;
                match end {
                    Some(FlowEnd::Session | FlowEnd::Quiet) => {}
                    Some(FlowEnd::Closed) => refused().await,
                    None => {
                        tracing::debug!("the server knows no associations");
                        knowledge.note(false);
                    }
                }
                continue;
            }
            Err(OpenError::NoSession(why)) => {
                tracing::debug!(%why, "datagrams have no session");
                first = None;
                // It may be there and about to end.
                sleep(AGAIN).await;
            }
            Err(error) => {
                tracing::debug!(%error, "cannot open a flow for datagrams");
                first = None;
                refused().await;
            }
        }
        tokio::select! {
            biased;
            () = tunnel.session_is_there() => {}
            () = async { while waiting.recv().await.is_some() {} } => return,
        }
    }
    one_by_one(tunnel, first, waiting, back, tasks).await;
}

/// Gives each destination a flow of its own.
async fn one_by_one<T: Tunnel>(
    tunnel: T,
    mut first: Option<Datagram>,
    mut waiting: mpsc::Receiver<Datagram>,
    back: ReturnPath,
    tasks: Tasks,
) {
    let mut flows: Associations<Target, Bytes> = Associations::new(tasks);
    loop {
        let next = match first.take() {
            Some(first) => Some(first),
            None => waiting.recv().await,
        };
        let Some(Datagram { target, payload }) = next else {
            return;
        };
        let Some(header) = header(&target) else {
            continue;
        };
        flows
            .send(&target, payload, |waiting| {
                let back = ReturnPath {
                    header: header.into(),
                    ..back.clone()
                };
                carry_one(tunnel.clone(), datagrams_to(target.encode()), waiting, back)
            })
            .await;
    }
}

/// Carries datagrams over one flow until that ends, `first` before the others; `None` if the server
/// closed it without a word.
async fn exchange<P: PacketFlow>(
    flow: P,
    first: &mut Option<Datagram>,
    waiting: &mut mpsc::Receiver<Datagram>,
    back: &ReturnPath,
    knowledge: &Knowledge,
) -> Option<FlowEnd> {
    let (idle, spoke, word) = (Idle::new(IDLE), AtomicBool::new(false), Notify::new());
    let outgoing = async {
        if !knowledge.knows() {
            let _ = timeout(WORD, word.notified()).await;
        }
        if let Some(Datagram { target, payload }) = first.take() {
            send(&flow, encode(target.host(), target.port(), &payload)).await?;
        }
        while let Some(Datagram { target, payload }) = waiting.recv().await {
            idle.touch();
            send(&flow, encode(target.host(), target.port(), &payload)).await?;
        }
        io::Result::Ok(false)
    };
    let incoming = async {
        while let Some(message) = flow.recv().await {
            idle.touch();
            if !spoke.swap(true, Ordering::Relaxed) {
                knowledge.note(true);
                word.notify_one();
            }
            let answer = decode(&message);
            let answer = answer.and_then(|(from, payload)| Some((header(&from)?, payload)));
            // The first one is empty.
            let Some((mut packet, payload)) = answer else {
                continue;
            };
            packet.extend_from_slice(&payload);
            if let Err(error) = back.socket.answer(&packet, back.asker).await {
                tracing::trace!(%error, "a datagram could not be handed to the local program");
            }
        }
        io::Result::Ok(true)
    };
    let over = tokio::select! {
        result = outgoing => result.unwrap_or(true),
        result = incoming => result.unwrap_or(true),
        () = idle.expired() => false,
    };
    match FlowEnd::of(&flow, over) {
        FlowEnd::Closed if !spoke.into_inner() => None,
        end => Some(end),
    }
}

/// The head of a SOCKS datagram from there.
fn header(from: &Target) -> Option<Vec<u8>> {
    let address = match from.host() {
        Host::Ip(ip) => TargetAddr::Ip(SocketAddr::new(*ip, from.port())),
        Host::Name(name) => TargetAddr::Domain(name.clone(), from.port()),
    };
    new_udp_header(address).ok()
}
