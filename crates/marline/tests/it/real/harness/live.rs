use super::{ClientProgram, ServerProgram, Site, links, path, pattern};
use marline::control::live::LiveStatus;
use marline::emulate::Emulator;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// Transport packets in a datagram, as encoders have it.
const PACKETS: u64 = 7;
const PACKET: usize = 188;

/// The datagram of this number of a transport stream: its own bytes, and counters that follow those before it.
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

/// A client with a live entry, two links, and a server whose entry of the same name ends at `target`.
pub(crate) struct Live {
    pub(crate) client: ClientProgram,
    pub(crate) server: ServerProgram,
    pub(crate) links: [Emulator; 2],
    /// Where the client's entry listens.
    pub(crate) listen: SocketAddr,
    _site: Site,
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
        let site = Site::new();
        let server = site.server(&["--live", &format!("udp://{target}")]);
        let links = self::links(server.addr, links, seed);
        let paths = [path("a", &links[0]), path("b", &links[1])];
        let entry = format!("udp://127.0.0.1:0{options}");
        let client = site.client(&server, &paths, &["--live", &entry]);
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
