use std::net::SocketAddr;
use std::time::Duration;

use tokio::runtime::Handle;

use super::QuicConfig;

/// Where a server listens and how much strangers may cost it.
#[derive(Clone, Debug)]
pub struct ListenConfig {
    /// Addresses, for UDP and TCP. `[::]` takes IPv4 as well unless an IPv4 address with its port
    /// is listed.
    pub addresses: Vec<SocketAddr>,
    /// How carriers behave.
    pub quic: QuicConfig,
    /// Take TLS over TCP at the same addresses, for clients whose networks block UDP; default true.
    pub tcp: bool,
    /// Congestion control of the kernel for what is sent over TCP, as `bbr` or `cubic`; default is
    /// the system's.
    pub tcp_congestion: Option<String>,
    /// Kernel buffer to ask for in each direction (bytes), default 4 MiB.
    pub buffer: usize,
    /// Runtimes, each best of one thread, that read the UDP packets of each address and do the
    /// handshakes: each has a socket, and the kernel shares the clients out among them
    /// (`SO_REUSEPORT`). Default none, which is that of [`Listener::bind`](super::Listener::bind);
    /// all but the first are left alone where [`BALANCES`] is false.
    pub workers: Vec<Handle>,
    /// A connection must have proved its key and said Hello by then, default 10 s.
    pub handshake_timeout: Duration,
    /// Connections that may be within their handshake at once, over QUIC and over TCP each, default
    /// 256. Those that were refused count until nothing is left of them. Each costs some 50 KiB, so
    /// that all take 26 MB, and over TCP a descriptor. With all taken, those older than 1 s give
    /// way to new ones, first those of the address that has most.
    pub max_half_open: usize,
    /// How many of them one address (IPv4, or an IPv6 /64) may have, default 32.
    pub max_half_open_per_address: usize,
    /// How many of them are for addresses from which a listed client came within a day, default 64,
    /// at most a quarter. 1024 addresses are remembered (100 KB).
    pub reserved_half_open: usize,
    /// With more than this number of them, an address must first prove that it receives what is
    /// sent to it (Retry, RFC 9000 section 8.1.2), default 64; 0 asks that of everybody.
    pub retry_above: usize,
    /// TCP connections that may be there without having begun TLS, default 256; each costs a
    /// descriptor and at most 64 KiB, all of them 17 MB. The oldest gives way to a new one, that of
    /// the same address if it has [`max_half_open_per_address`](Self::max_half_open_per_address).
    pub max_silent: usize,
    /// How long they may be silent, default 5 s.
    pub silent_timeout: Duration,
    /// Handshakes that an address may begin at once, over QUIC and over TCP each, default 128.
    /// Those of listed keys do not count; each key may have 256 at once and 32 a second. 4096
    /// addresses and keys are counted (1 MB).
    pub handshake_burst: u32,
    /// How many a second it may begin after that, default 32.
    pub handshakes_per_second: u32,
}

impl ListenConfig {
    /// Listening at these addresses, with defaults for the rest.
    pub fn new(addresses: Vec<SocketAddr>) -> Self {
        Self {
            addresses,
            quic: QuicConfig::default(),
            tcp: true,
            tcp_congestion: None,
            buffer: 4 << 20,
            handshake_timeout: Duration::from_secs(10),
            max_half_open: 256,
            max_half_open_per_address: 32,
            reserved_half_open: 64,
            retry_above: 64,
            max_silent: 256,
            silent_timeout: Duration::from_secs(5),
            handshake_burst: 128,
            handshakes_per_second: 32,
            workers: Vec::new(),
        }
    }
}

/// Whether the system shares UDP packets out among sockets at one port.
pub const BALANCES: bool = cfg!(any(target_os = "linux", target_os = "android"));
