//! The SOCKS5 proxy (RFC 1928, RFC 1929): CONNECT and UDP ASSOCIATE. Host names go to the server
//! unresolved. On the same port it takes HTTP CONNECT.

use super::SocksLogin;
use super::asker::AskedSocket;
use super::association::{Datagram, Knowledge, carry};
use super::associations::{MAX_WAITING, ReturnPath};
use super::http_connect::{self, HttpError};
use super::keepalive;
use super::reach::{Unreached, reach};
use super::relay::{ResetOnDrop, relay};
use super::reply::Refusal;
use super::tcp::accept_each;
use super::udp::{MAX_DATAGRAM, pause_after, roomy};
use super::{AsObjects, Host, OpenError, Protocol, Target, Tasks, Tunnel, until_end};
use crate::lru::{Held, Lru};
use bytes::Bytes;
use fast_socks5::server::{Socks5ServerProtocol, SocksServerError, states};
use fast_socks5::util::target_addr::TargetAddr;
use fast_socks5::{ReplyError, Socks5Command, parse_udp_request};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use marline::support::descriptors::{leaves_few, number};
use rustix::io::Errno;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long a client may take to say what it wants.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Most connections that have not said what they want; one more ends the oldest. With the
/// associations they take half of the usual 1024 descriptors.
const MAX_ASKING: usize = 256;
/// Most associations for datagrams, each with two descriptors; one more ends the one that has sent
/// nothing for the longest.
const MAX_ASSOCIATIONS: usize = 128;

/// Why a connection of the proxy ended early.
#[derive(Debug, thiserror::Error)]
enum SocksError {
    #[error(transparent)]
    Protocol(#[from] SocksServerError),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error(transparent)]
    Unreached(#[from] Unreached),
    #[error("it speaks neither SOCKS5 nor HTTP")]
    Foreign,
    #[error("the client took too long to say what it wants")]
    Slow,
    #[error("silent for the longest of all, it gave way to another")]
    GaveWay,
    #[error(transparent)]
    Target(#[from] super::TargetError),
    #[error("BIND is not supported")]
    Bind,
}

type Commanded = Socks5ServerProtocol<TcpStream, states::CommandRead>;

/// How a proxy serves its users.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SocksOptions {
    /// What it demands of them; without, it serves everybody who reaches the port.
    pub login: Option<SocksLogin>,
    /// Which connections are carried as objects.
    pub objects: AsObjects,
    /// The address that they are told to send their datagrams to (BND.ADDR of RFC 1928 section 6);
    /// `None` for the one at which they have reached the proxy.
    pub udp_address: Option<IpAddr>,
}

/// Serves `listener` until the tasks drain.
pub async fn serve<T: Tunnel>(
    listener: TcpListener,
    tunnel: T,
    options: SocksOptions,
    tasks: Tasks,
) {
    let proxy = Proxy {
        tunnel,
        options,
        tasks,
        knowledge: Knowledge::default(),
        handshake: HANDSHAKE,
        asking: Lru::new(MAX_ASKING),
        associations: Lru::new(MAX_ASSOCIATIONS),
    };
    serve_each(listener, Arc::new(proxy)).await;
}

async fn serve_each<T: Tunnel>(listener: TcpListener, proxy: Arc<Proxy<T>>) {
    let tasks = proxy.tasks.clone();
    accept_each(listener, &tasks, |connection| {
        let (proxy, end) = (Arc::clone(&proxy), CancellationToken::new());
        // Here, in the order in which they came.
        let asking = proxy.asking.enter(end.clone());
        async move {
            let served = tokio::select! {
                () = end.cancelled() => Err(SocksError::GaveWay),
                served = connection_task(connection, &proxy, asking, &end) => served,
            };
            if let Err(error) = served {
                tracing::debug!(%error, "a SOCKS connection ended early");
            }
        }
    })
    .await;
}

/// What all connections share.
struct Proxy<T> {
    tunnel: T,
    options: SocksOptions,
    tasks: Tasks,
    knowledge: Knowledge,
    /// How long a client may take to say what it wants.
    handshake: Duration,
    /// Connections that have not said it.
    asking: Lru,
    associations: Lru,
}

async fn connection_task<T: Tunnel>(
    connection: TcpStream,
    proxy: &Proxy<T>,
    asking: Held,
    end: &CancellationToken,
) -> Result<(), SocksError> {
    connection.set_nodelay(true)?;
    let local = connection.local_addr()?.ip().to_canonical();
    let peer = connection.peer_addr()?.ip();
    let SocksOptions {
        login,
        objects,
        udp_address,
    } = &proxy.options;
    let asked = timeout(proxy.handshake, ask(connection, login.as_ref()));
    let asked = asked.await.map_err(|_| SocksError::Slow)??;
    drop(asking);
    let (protocol, command, address) = match asked {
        Asked::Http(connection, request) => {
            let served = http_connect::serve(connection, request, *objects, &proxy.tunnel);
            return Ok(served.await?);
        }
        Asked::Socks(protocol, command, address) => (protocol, command, address),
    };
    match command {
        Socks5Command::TCPConnect => connect(protocol, address, *objects, &proxy.tunnel).await,
        Socks5Command::UDPAssociate => {
            let socket = match UdpSocket::bind((local, 0)).await {
                Ok(socket) if leaves_few(number(&socket)) => {
                    protocol.reply_error(&ReplyError::GeneralFailure).await?;
                    return Err(io::Error::from(Errno::MFILE).into());
                }
                Ok(socket) => socket,
                Err(error) => {
                    protocol.reply_error(&ReplyError::GeneralFailure).await?;
                    return Err(error.into());
                }
            };
            let mut bound = socket.local_addr()?;
            bound.set_ip(udp_address.unwrap_or(bound.ip()));
            let control = protocol.reply_success(bound).await?;
            keepalive::enable(&control)?;
            let asked = AskedSource::new(peer, &address);
            let held = proxy.associations.enter(end.clone());
            associate(control, socket, asked, held, proxy).await?;
            Ok(())
        }
        Socks5Command::TCPBind => {
            protocol
                .reply_error(&ReplyError::CommandNotSupported)
                .await?;
            Err(SocksError::Bind)
        }
    }
}

/// What a client asks for, and how.
enum Asked {
    Socks(Commanded, Socks5Command, TargetAddr),
    Http(TcpStream, http_connect::Request),
}

/// Its first byte shows what a client speaks.
async fn ask(mut connection: TcpStream, login: Option<&SocksLogin>) -> Result<Asked, SocksError> {
    let mut first = [0];
    match connection.peek(&mut first).await? {
        1 if first == [5] => {
            let (protocol, command, address) = handshake(connection, login).await?;
            Ok(Asked::Socks(protocol, command, address))
        }
        1 if first[0].is_ascii_uppercase() => {
            let request = http_connect::read(&mut connection, login).await?;
            Ok(Asked::Http(connection, request))
        }
        _ => Err(SocksError::Foreign),
    }
}

async fn handshake(
    connection: TcpStream,
    login: Option<&SocksLogin>,
) -> Result<(Commanded, Socks5Command, TargetAddr), SocksServerError> {
    let authenticated = match login {
        None => Socks5ServerProtocol::accept_no_auth(connection).await?,
        Some(login) => {
            let check = |user: String, password: String| login.fits(&user, &password);
            Socks5ServerProtocol::accept_password_auth(connection, check)
                .await?
                .0
        }
    };
    authenticated.read_command().await
}

async fn connect<T: Tunnel>(
    protocol: Commanded,
    address: TargetAddr,
    objects: AsObjects,
    tunnel: &T,
) -> Result<(), SocksError> {
    let target = match target(Protocol::Tcp, address) {
        Ok(target) => target,
        Err(error) => {
            protocol.reply_error(&ReplyError::HostUnreachable).await?;
            return Err(error.into());
        }
    };
    match reach(target, objects, tunnel).await {
        Ok((mut flow, bound)) => {
            let connection = ResetOnDrop::new(protocol.reply_success(bound).await?)?;
            relay(connection, &mut flow).await?;
            Ok(())
        }
        Err(error) => {
            let reply = match &error {
                Unreached::Open(OpenError::NoSession(_)) | Unreached::Lost(_) => {
                    ReplyError::NetworkUnreachable
                }
                Unreached::Open(_) => ReplyError::GeneralFailure,
                Unreached::Refused { refusal, .. } => socks_reply(*refusal),
            };
            protocol.reply_error(&reply).await?;
            Err(error.into())
        }
    }
}

fn socks_reply(refusal: Refusal) -> ReplyError {
    match refusal {
        Refusal::NotAllowed => ReplyError::ConnectionNotAllowed,
        Refusal::NetworkUnreachable => ReplyError::NetworkUnreachable,
        Refusal::HostUnreachable | Refusal::NameNotFound => ReplyError::HostUnreachable,
        Refusal::ConnectionRefused => ReplyError::ConnectionRefused,
        Refusal::TimedOut => ReplyError::TtlExpired,
        Refusal::Failed | Refusal::TooManyFlows | Refusal::BadTarget | Refusal::PortTaken => {
            ReplyError::GeneralFailure
        }
    }
}

fn target(protocol: Protocol, address: TargetAddr) -> Result<Target, super::TargetError> {
    match address {
        TargetAddr::Ip(address) => Target::new(protocol, Host::Ip(address.ip()), address.port()),
        TargetAddr::Domain(name, port) => Target::new(protocol, Host::Name(name), port),
    }
}

/// Whose datagrams an association takes: those of the host that opened it, and of the port that it
/// announced (RFC 1928 section 7) or else of the first port that sends.
struct AskedSource {
    ip: IpAddr,
    port: Option<u16>,
}

impl AskedSource {
    fn new(peer: IpAddr, announced: &TargetAddr) -> Self {
        let port = match announced {
            TargetAddr::Ip(address) => Some(address.port()).filter(|port| *port != 0),
            TargetAddr::Domain(..) => None,
        };
        AskedSource {
            ip: peer.to_canonical(),
            port,
        }
    }

    fn takes(&mut self, from: SocketAddr) -> bool {
        from.ip().to_canonical() == self.ip && *self.port.get_or_insert(from.port()) == from.port()
    }
}

/// Carries the datagrams of one association until its control connection ends or the tasks drain.
async fn associate<T: Tunnel>(
    mut control: TcpStream,
    socket: UdpSocket,
    mut asked: AskedSource,
    mut held: Held,
    proxy: &Proxy<T>,
) -> io::Result<()> {
    let tasks = &proxy.tasks;
    roomy(&socket);
    let socket = AskedSocket::new(socket);
    let mut carried: Option<mpsc::Sender<Datagram>> = None;
    let mut carrying = FuturesUnordered::new();
    // Nothing is said on it any more.
    let ended = until_end(&mut control);
    tokio::pin!(ended);
    let mut buffer = vec![0; MAX_DATAGRAM];
    loop {
        let received = tokio::select! {
            () = tasks.draining() => return Ok(()),
            () = &mut ended => return Ok(()),
            // It goes on for as long as something may be sent to it.
            Some(()) = carrying.next() => continue,
            received = socket.recv(&mut buffer) => received,
        };
        let (length, asker) = match received {
            Ok(received) => received,
            Err(error) => {
                pause_after(error).await;
                continue;
            }
        };
        let Some(datagram) = unwrap(&buffer[..length]).await else {
            tracing::debug!(peer = %asker.peer, "not a SOCKS datagram that this proxy carries");
            continue;
        };
        if !asked.takes(asker.peer) {
            tracing::debug!(peer = %asker.peer, "a datagram of a stranger was dropped");
            continue;
        }
        held.active();
        let send = carried.get_or_insert_with(|| {
            let (send, waiting) = mpsc::channel(MAX_WAITING);
            // All that is taken comes from one port of the program's.
            let back = ReturnPath {
                socket: socket.clone(),
                asker,
                header: Bytes::new(),
            };
            let (tunnel, tasks) = (proxy.tunnel.clone(), tasks.clone());
            carrying.push(carry(tunnel, waiting, back, &proxy.knowledge, tasks));
            send
        });
        if send.try_send(datagram).is_err() {
            tracing::trace!("a datagram was dropped: its flow takes no more for now");
        }
    }
}

/// What a SOCKS datagram carries. Fragments are dropped, as RFC 1928 section 7 allows.
async fn unwrap(datagram: &[u8]) -> Option<Datagram> {
    let (fragment, address, payload) = parse_udp_request(datagram).await.ok()?;
    if fragment != 0 {
        return None;
    }
    Some(Datagram {
        target: target(Protocol::Udp, address).ok()?,
        payload: Bytes::copy_from_slice(payload),
    })
}

#[cfg(test)]
mod tests {
    use super::super::PacketFlow;
    use super::*;
    use marline_proto::FlowOptions;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    /// Carries nothing.
    #[derive(Clone)]
    struct Nowhere;

    impl Tunnel for Nowhere {
        type Stream = DuplexStream;
        type Packets = Nowhere;

        async fn open_stream(&self, _: FlowOptions) -> Result<DuplexStream, OpenError> {
            Err(OpenError::TooManyFlows)
        }

        async fn open_packets(&self, _: FlowOptions) -> Result<Nowhere, OpenError> {
            Err(OpenError::TooManyFlows)
        }
    }

    impl PacketFlow for Nowhere {
        async fn send(&self, _: Bytes) -> io::Result<()> {
            Ok(())
        }

        async fn recv(&self) -> Option<Bytes> {
            None
        }
    }

    /// A proxy for few connections.
    async fn proxy(most: usize, handshake: Duration) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let proxy = Proxy {
            tunnel: Nowhere,
            options: SocksOptions::default(),
            tasks: Tasks::new(),
            knowledge: Knowledge::default(),
            handshake,
            asking: Lru::new(most),
            associations: Lru::new(most),
        };
        tokio::spawn(serve_each(listener, Arc::new(proxy)));
        address
    }

    /// Whether the proxy ends a connection to which it had nothing more to say.
    async fn ended(stream: &mut TcpStream) -> bool {
        stream.read(&mut [0]).await.unwrap_or(0) == 0
    }

    async fn answers_greeting(stream: &mut TcpStream) -> bool {
        stream.write_all(&[5, 1, 0]).await.unwrap();
        let mut answer = [0; 2];
        stream.read_exact(&mut answer).await.is_ok() && answer == [5, 0]
    }

    /// The control connection of an association, and where its datagrams go.
    async fn associated(proxy: SocketAddr) -> (TcpStream, SocketAddr) {
        let mut stream = TcpStream::connect(proxy).await.unwrap();
        assert!(answers_greeting(&mut stream).await);
        let anywhere = [5, 3, 0, 1, 0, 0, 0, 0, 0, 0];
        stream.write_all(&anywhere).await.unwrap();
        let mut reply = [0; 10];
        stream.read_exact(&mut reply).await.unwrap();
        let port = u16::from_be_bytes([reply[8], reply[9]]);
        (stream, SocketAddr::new(proxy.ip(), port))
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn those_who_do_not_say_what_they_want_give_way_the_oldest_first() {
        let proxy = proxy(4, HOUR).await;
        // They have said it.
        let mut busy = [associated(proxy).await, associated(proxy).await];
        let mut silent = Vec::new();
        for number in 0..6 {
            let mut stream = TcpStream::connect(proxy).await.unwrap();
            // Not all, by some.
            stream.write_all(&[5][..number % 2]).await.unwrap();
            silent.push(stream);
        }
        assert!(ended(&mut silent[0]).await && ended(&mut silent[1]).await);
        assert!(answers_greeting(&mut silent[2]).await);
        for (stream, _) in &mut busy {
            // What is said on it means nothing, and is taken.
            stream.write_all(b"there").await.unwrap();
            let nothing = timeout(Duration::from_millis(100), ended(stream));
            assert!(nothing.await.is_err());
        }
    }

    #[tokio::test]
    async fn those_who_are_slow_to_say_what_they_want_are_given_up() {
        let proxy = proxy(4, Duration::from_millis(50)).await;
        let mut stream = TcpStream::connect(proxy).await.unwrap();
        stream.write_all(&[5]).await.unwrap();
        assert!(ended(&mut stream).await);
    }

    #[tokio::test]
    async fn idle_associations_give_way_the_oldest_first() {
        let proxy = proxy(2, HOUR).await;
        let (mut first, relay) = associated(proxy).await;
        let (mut second, _) = associated(proxy).await;
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let datagram = [0, 0, 0, 1, 127, 0, 0, 1, 0, 9, 7];
        socket.send_to(&datagram, relay).await.unwrap();
        let (mut third, _) = associated(proxy).await;
        assert!(ended(&mut second).await);
        let _fourth = associated(proxy).await;
        assert!(ended(&mut first).await);
        let nothing = timeout(Duration::from_millis(100), ended(&mut third));
        assert!(nothing.await.is_err());
    }
}
