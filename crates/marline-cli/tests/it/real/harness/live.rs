use super::{ClientProgram, Relay, ServerProgram, Site, links, path_by, pattern};
use marline_apps::live::status::LiveStatus;
use marline_lab::emulate::Emulator;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// Transport packets in a datagram, as encoders have it.
const PACKETS: u64 = 7;
const PACKET: usize = 188;

/// The datagram of this number of a transport stream: its own bytes, and counters that follow those
/// before it.
pub(crate) fn transport(number: u64) -> Vec<u8> {
    let packet = |index: u64| {
        let counter = (index % 16) as u8;
        let mut packet = vec![0x47, 0x01, 0x00, 0x10 | counter];
        packet.extend(pattern(index, 0, PACKET - 4));
        packet
    };
    (number * PACKETS..(number + 1) * PACKETS)
        .flat_map(packet)
        .collect()
}

/// A socket of loopback with room for what this process cannot take in time, so that it does not
/// look like a loss of the program's.
pub(crate) fn roomy_socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let room = socket2::SockRef::from(&socket).set_recv_buffer_size(1 << 22);
    room.unwrap();
    socket
}

/// What comes to `socket` until `enough` says so, or nothing has come for `patience`.
pub(crate) fn receive(
    socket: &UdpSocket,
    patience: Duration,
    enough: impl Fn(&[Vec<u8>]) -> bool,
) -> Vec<Vec<u8>> {
    socket.set_read_timeout(Some(patience)).unwrap();
    let mut all = Vec::new();
    let mut buffer = vec![0; 65_536];
    while !enough(&all)
        && let Ok((length, _)) = socket.recv_from(&mut buffer)
    {
        all.push(buffer[..length].to_vec());
    }
    all
}

/// A client with a live entry, two links, and a server whose entry of the same name ends at a
/// target.
pub(crate) struct Live<L = Emulator> {
    pub(crate) client: ClientProgram,
    pub(crate) server: ServerProgram,
    pub(crate) links: [L; 2],
    /// Where the client's first entry listens.
    pub(crate) listen: SocketAddr,
    _site: Site,
}

/// The `--live` of the server and of the client: `options` are those of the client's, with a comma
/// before each.
fn entries(target: SocketAddr, options: &str) -> [Vec<String>; 2] {
    let at_client = format!("udp://127.0.0.1:0{options}");
    [format!("udp://{target}"), at_client].map(|entry| vec![entry])
}

/// Entries as words of a command, and metrics for tests that look at them.
fn words(entries: &[String]) -> Vec<&str> {
    let entries = entries.iter().flat_map(|entry| ["--live", entry]);
    entries.chain(["--metrics", "127.0.0.1:0"]).collect()
}

impl Live {
    /// `options` are those of the client's entry, with a comma before each.
    pub(crate) fn start(links: [&str; 2], target: SocketAddr, options: &str) -> Live {
        Self::with_seed(1, links, target, options)
    }

    /// The same over links that draw otherwise.
    pub(crate) fn with_seed(
        seed: u64,
        links: [&str; 2],
        target: SocketAddr,
        options: &str,
    ) -> Live {
        Self::with_entries(seed, links, &entries(target, options))
    }

    /// With these entries at the server and at the client.
    pub(crate) fn with_entries(seed: u64, links: [&str; 2], entries: &[Vec<String>; 2]) -> Live {
        let links = |_: &Site, server| self::links(server, links, seed);
        Self::between(entries, links, Emulator::addr)
    }
}

impl Live<Relay> {
    /// As [`Live::start`], over links that are processes of their own.
    pub(crate) fn by_processes(links: [&str; 2], target: SocketAddr, options: &str) -> Self {
        let links =
            |site: &Site, server| links.map(|link| Relay::start(site.folder(), server, link));
        Self::between(&entries(target, options), links, |link| link.addr)
    }
}

impl<L> Live<L> {
    fn between(
        [at_server, at_client]: &[Vec<String>; 2],
        links: impl FnOnce(&Site, SocketAddr) -> [L; 2],
        addr: impl Fn(&L) -> SocketAddr,
    ) -> Live<L> {
        let site = Site::new();
        let server = site.server(&words(at_server));
        let links = links(&site, server.addr);
        let paths = [path_by("a", addr(&links[0])), path_by("b", addr(&links[1]))];
        let client = site.client(&server, &paths, &words(at_client));
        client.active(&["a", "b"]);
        let listen = client.logged("its live entry", |line| {
            line.split_once(" at udp://")?.1.parse().ok()
        });
        Live {
            client,
            server,
            links,
            listen,
            _site: site,
        }
    }

    /// A socket that sends to the client's entry.
    pub(crate) fn sender(&self) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(self.listen).unwrap();
        socket
    }

    /// How the entry stands at the client and at the server.
    pub(crate) fn status(&self) -> [LiveStatus; 2] {
        [self.client.status(), self.server.status()].map(|mut status| status.live.remove(0))
    }
}
