//! The server's side: opens ports for clients that may have them, and carries who comes there.

use super::board::Board;
use super::line::{Lines, Turn};
use super::listening::{Listening, listen};
use super::permits::Permits;
use super::status::PublishedState;
use super::{ALL, EACH, Standing};
use crate::destination::{PortRole, ServerPort};
use crate::options::{datagrams_to, live_to, stream_to};
use crate::proxy::associations::Associations;
use crate::proxy::flows::Flows;
use crate::proxy::places::Place;
use crate::proxy::reply::{self, Refusal};
use crate::proxy::server::refuse;
use crate::proxy::{ByteFlow, Places, Tasks, Tunnel, tcp, udp, until_end};
use futures_util::future::join_all;
use marline::identity::PublicKey;
use marline::support::accept::PatientListener;
use marline::support::seldom::Seldom;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Flows of all clients' ports together: of four clients that each have all that they may.
const ALL_CLIENTS: usize = 4 * ALL;
/// Bytes that may wait for the flow of one asker, of datagrams of one length: anybody may send,
/// under any address, so a link that is slow must not cost much memory.
const WAITING: usize = 16 << 10;

/// Opens ports for all clients. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Publisher {
    /// They may change while the server runs.
    permits: watch::Sender<Arc<Permits>>,
    addresses: Arc<[IpAddr]>,
    lines: Lines,
    places: Places,
    /// What is logged of ports that are refused, which clients may ask for without end.
    refusals: Arc<Seldom>,
    board: Board,
}

/// What carries those who come to the ports of one session.
pub(crate) struct Visits<T> {
    pub(crate) client: Option<PublicKey>,
    pub(crate) tunnel: T,
    pub(crate) flows: Arc<Flows>,
    pub(crate) tasks: Tasks,
}

/// What a connection or an address at a port holds: its part of the port's, and of the client's.
type Held = (OwnedSemaphorePermit, Place);

impl Default for Publisher {
    /// Opens none.
    fn default() -> Self {
        Publisher::new(Permits::default(), &[])
    }
}

impl Publisher {
    /// Opens the ports that `permits` allow, at these addresses, or everywhere if there are none.
    pub fn new(permits: Permits, addresses: &[IpAddr]) -> Self {
        Publisher {
            permits: watch::Sender::new(Arc::new(permits)),
            addresses: addresses.into(),
            lines: Lines::default(),
            places: Places::new(ALL_CLIENTS, ALL),
            refusals: Arc::default(),
            board: Board::default(),
        }
    }

    /// How the ports stand that are open.
    pub fn board(&self) -> Board {
        self.board.clone()
    }

    /// Allows these from now on: ports that they leave out are closed.
    pub fn permit(&self, permits: Permits) {
        self.permits.send_replace(Arc::new(permits));
    }

    /// Completes when the client of this key may have `port` no more.
    async fn is_withdrawn(&self, key: &PublicKey, port: ServerPort) {
        let mut permits = self.permits.subscribe();
        // The sender is this one's.
        let _ = permits.wait_for(|permits| !permits.allow(key, port)).await;
    }

    /// Has `port` open for as long as the client keeps `flow`, its request for the port; for a
    /// `live` entry of this latency budget.
    pub(crate) async fn serve<S, T>(
        &self,
        flow: S,
        port: ServerPort,
        live: Option<Duration>,
        visits: Visits<T>,
    ) where
        S: ByteFlow,
        T: Tunnel,
    {
        let permitted = |key: &PublicKey| self.permits.borrow().allow(key, port);
        let Some(key) = visits.client.filter(permitted) else {
            if let Some(key) = visits.client {
                self.refusals.say(|left_out| {
                    tracing::info!(
                        "{key} may not publish {port}: neither --allow-publish nor `publish=` before its key says \
                         so{left_out}"
                    );
                });
            }
            return refuse(flow, Refusal::NotAllowed).await;
        };
        let Some(turn) = self.lines.enter(port, key) else {
            self.refusals.say(|left_out| {
                tracing::info!("{key} cannot publish {port}: another client has it{left_out}");
            });
            return refuse(flow, Refusal::PortTaken).await;
        };
        tokio::select! {
            () = self.keep(flow, port, live, &turn, key, &visits) => {}
            () = self.is_withdrawn(&key, port) => {
                tracing::info!("{port} leads to {key} no more: it may not publish it any longer");
            }
        }
    }

    async fn keep<S, T>(
        &self,
        mut flow: S,
        port: ServerPort,
        live: Option<Duration>,
        turn: &Turn,
        key: PublicKey,
        visits: &Visits<T>,
    ) where
        S: ByteFlow,
        T: Tunnel,
    {
        let mut answered = false;
        let shown = self.board.show(&port.to_string(), &key.to_string());
        loop {
            let listens = tokio::select! {
                listens = turn.comes() => listens,
                () = until_end(&mut flow) => return,
            };
            let (sockets, address) = match listen(port, &self.addresses).await {
                Ok(listening) => listening,
                Err(error) => {
                    tracing::warn!("cannot publish {port} for {key}: {error}");
                    // A client that had the port before asks again.
                    if !answered {
                        refuse(flow, refusal_of(&error)).await;
                    }
                    return;
                }
            };
            tracing::info!("{port} at {address} leads to {key}");
            shown.say(PublishedState::Open, Some(address.to_string()));
            let said = match std::mem::replace(&mut answered, true) {
                false => reply::encode(Ok(address)),
                true => vec![Standing::Has as u8],
            };
            let told = async {
                flow.write_all(&said).await?;
                flow.flush().await?;
                until_end(&mut flow).await;
                io::Result::Ok(())
            };
            let set_aside = tokio::select! {
                _ = told => false,
                () = turn.passes() => true,
                () = self.welcome(port, live, sockets, visits) => false,
            };
            drop(listens);
            tracing::info!("{port} leads to {key} no more");
            shown.say(PublishedState::SetAside, None);
            let aside = [Standing::SetAside as u8];
            if !set_aside || flow.write_all(&aside).await.is_err() {
                return;
            }
        }
    }

    /// Carries who comes to a port, until the tasks drain.
    async fn welcome<T: Tunnel>(
        &self,
        port: ServerPort,
        live: Option<Duration>,
        sockets: Vec<Listening>,
        visits: &Visits<T>,
    ) {
        let room = Arc::new(Semaphore::new(EACH));
        let (places, client) = (self.places.clone(), visits.client);
        let hold = move || -> Option<Held> {
            let room = Arc::clone(&room).try_acquire_owned().ok()?;
            Some((room, places.take(client)?))
        };
        let each = sockets.into_iter().map(|socket| async {
            match socket {
                Listening::Tcp(listener) => connections(listener, port, visits, &hold).await,
                Listening::Udp(socket) => datagrams(socket, port, live, visits, hold.clone()).await,
            }
        });
        join_all(each).await;
    }
}

/// Why a port cannot be had.
fn refusal_of(error: &io::Error) -> Refusal {
    match error.kind() {
        io::ErrorKind::AddrInUse => Refusal::PortTaken,
        _ => Refusal::Failed,
    }
}

async fn connections<T: Tunnel>(
    listener: TcpListener,
    port: ServerPort,
    visits: &Visits<T>,
    hold: &impl Fn() -> Option<Held>,
) {
    let options = stream_to(PortRole::Visit.encode(port));
    let mut listener = PatientListener::sparing(listener);
    loop {
        let (connection, from) = tokio::select! {
            () = visits.tasks.draining() => return,
            accepted = listener.accept() => accepted,
        };
        let Some(held) = hold() else {
            turn_away(connection, from, port);
            continue;
        };
        let (tunnel, options) = (visits.tunnel.clone(), options.clone());
        visits.flows.spawn(visits.tasks.track(async move {
            let _held = held;
            if let Err(error) = tcp::carry(connection, &tunnel, options).await {
                tracing::debug!(%port, %error, "a connection to a published port ended early");
            }
        }));
    }
}

/// Resets a connection that there is no room for.
fn turn_away(connection: TcpStream, from: SocketAddr, port: ServerPort) {
    tracing::debug!(%port, %from, "a connection was reset: too many are open");
    // Without that it would end in order, as if the service had nothing to say.
    if let Err(error) = connection.set_zero_linger() {
        tracing::debug!(%error, "a connection cannot be reset");
    }
}

async fn datagrams<T: Tunnel>(
    socket: UdpSocket,
    port: ServerPort,
    live: Option<Duration>,
    visits: &Visits<T>,
    hold: impl Fn() -> Option<Held> + Clone + Send + 'static,
) {
    let visit = PortRole::Visit.encode(port);
    let options = match live {
        Some(latency) => live_to(visit, latency),
        None => datagrams_to(visit),
    };
    let (tasks, flows) = (&visits.tasks, Arc::clone(&visits.flows));
    let askers = Associations::of_client(tasks.clone(), flows, EACH);
    let tunnel = visits.tunnel.clone();
    udp::forward_held(socket, tunnel, options, tasks, askers, WAITING, hold).await;
}
