//! Two network namespaces with two links between them, and one MPTCP connection over both.

use crate::cells::Cell;
use crate::harness::namespace::Namespace;
use marline_lab::emulate::{DevicesConfig, Emulator, Place};
use socket2::{Domain, Protocol, Socket, Type};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Of a connection.
const SUBFLOWS: usize = 2;
/// Connections that are begun, at most, for one with both subflows, and how long the second one is
/// waited for.
const ATTEMPTS: u16 = 5;
const JOIN: Duration = Duration::from_secs(8);
/// A row of /proc/net/tcp begins with its number, two addresses and the state, which is this one.
const ESTABLISHED: &str = "01";

/// The namespaces; the links go first.
pub(crate) struct Site {
    pub(crate) links: [Emulator<[Place; 2]>; 2],
    client: Namespace,
    server: Namespace,
    control: String,
}

/// Both ends of the connection, sender first.
pub(crate) type Ends = [TcpStream; 2];

impl Site {
    /// Links that draw from this seed, as those of the benchmark `live` do, and congestion control
    /// by this name of the kernel's. `None`, and a word of it, where this machine does not let us.
    pub(crate) fn new(cell: &Cell, seed: u64, control: &str) -> Option<Site> {
        let (client, server) = (Namespace::new("c")?, Namespace::new("s")?);
        for namespace in [&client, &server] {
            namespace.set("net/mptcp/enabled", "1");
            // A link that loses the first packets is no firewall, for which the kernel would do
            // without MPTCP.
            namespace.set("net/mptcp/blackhole_timeout", "0");
            namespace.set("net/mptcp/syn_retrans_before_tcp_fallback", "10");
            // What comes to the one address by the other's link is meant to.
            namespace.set("net/ipv4/conf/all/rp_filter", "0");
            namespace.set("net/ipv4/conf/default/rp_filter", "0");
        }
        let links = std::array::from_fn(|number| {
            let place = |namespace: &Namespace, host: usize| {
                let text = format!("wan{number}@{namespace}=10.9.{number}.{host}/30");
                text.parse().unwrap()
            };
            let link = cell.links[number].parse().unwrap();
            let mut config = DevicesConfig::new(place(&client, 1), place(&server, 2), link);
            config.down = Cell::way_back(cell.links[number]).parse().unwrap();
            config.seed = seed << 8 | number as u64;
            Emulator::between(config).expect("a link between the namespaces")
        });
        for (namespace, words) in [
            // The second subflow goes from the client's second address to the server's first one.
            (&client, "rule add from 10.9.1.1 table 9"),
            (&client, "route add 10.9.0.2 dev wan1 table 9"),
            (&client, "mptcp limits set subflow 1 add_addr_accepted 0"),
            (&server, "mptcp limits set subflow 1 add_addr_accepted 0"),
            (&client, "mptcp endpoint add 10.9.1.1 dev wan1 subflow"),
        ] {
            let done = namespace.ip(words);
            done.unwrap_or_else(|| panic!("`ip {words}` failed: has this kernel MPTCP?"));
        }
        Some(Site {
            links,
            client,
            server,
            control: control.to_owned(),
        })
    }

    /// A connection, once both of its subflows are there.
    ///
    /// # Panics
    /// When the second one does not come up, however often a connection is begun: the kernel asks
    /// for a subflow once, and the link may lose that.
    pub(crate) fn connect(&self) -> Ends {
        let mut connections = (0..ATTEMPTS).map(|number| self.begin(5000 + number));
        // Subflows come by the port at which the server listens.
        let whole = connections.find_map(|(ends, _listening)| self.has_both().then_some(ends));
        let ends = whole.expect("the second subflow comes up");
        let controlled = self.controlled();
        assert_eq!(controlled, SUBFLOWS, "subflows by {}", self.control);
        ends
    }

    /// Waits for the second subflow.
    fn has_both(&self) -> bool {
        let end = Instant::now() + JOIN;
        while Instant::now() < end {
            let joined = self
                .server_count("MPJoinAckRx")
                .is_some_and(|count| count > 0);
            if joined && self.subflows() == SUBFLOWS {
                return true;
            }
            thread::sleep(Duration::from_millis(20));
        }
        false
    }

    /// A connection to this port, and the socket that listens there.
    fn begin(&self, port: u16) -> (Ends, Socket) {
        let socket = |host: &str, port: u16| {
            let kind = (Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP));
            let socket = Socket::new(kind.0, kind.1, kind.2).expect("a kernel with MPTCP");
            // Of every subflow. The namespace's own may be set to what every user may have only.
            let set = socket.set_tcp_congestion(self.control.as_bytes());
            set.unwrap_or_else(|error| panic!("cc={}: {error}", self.control));
            let addr = SocketAddr::new(host.parse().unwrap(), port);
            socket.bind(&addr.into()).unwrap();
            socket
        };
        let service = self.server.inside(|| {
            let service = socket("10.9.0.2", port);
            service.listen(1).unwrap();
            service
        });
        let mut near: TcpStream = self.client.inside(|| {
            let client = socket("10.9.0.1", 0);
            client.connect(&service.local_addr().unwrap()).unwrap();
            client.into()
        });
        near.set_nodelay(true).unwrap();
        let mut far: TcpStream = service.accept().unwrap().0.into();
        // The kernel adds subflows when the first one has carried something.
        near.write_all(&[0]).unwrap();
        far.read_exact(&mut [0]).unwrap();
        ([near, far], service)
    }

    /// TCP connections of the client, each of which is a subflow.
    pub(crate) fn subflows(&self) -> usize {
        let table = self.client.inside(|| net("tcp"));
        let states = table
            .lines()
            .filter_map(|row| row.split_whitespace().nth(3));
        states.filter(|state| *state == ESTABLISHED).count()
    }

    /// Subflows with the congestion control that was asked for.
    fn controlled(&self) -> usize {
        let client = self.client.to_string();
        let words = ["netns", "exec", &client, "ss", "--no-header", "-tin"];
        let output = Command::new("ip").args(words).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // A line of addresses, and an indented one in which the control stands among other words.
        let details = text
            .lines()
            .filter(|line| line.starts_with(char::is_whitespace));
        let named = |line: &&str| line.split_whitespace().any(|word| word == self.control);
        details.filter(named).count()
    }

    /// A count of the server's, of those that the kernel keeps of MPTCP.
    fn server_count(&self, name: &str) -> Option<u64> {
        let counts = self.server.inside(|| net("netstat"));
        let mut rows = counts.lines().filter(|row| row.starts_with("MPTcpExt:"));
        let (names, values) = (rows.next()?, rows.next()?);
        let place = names.split(' ').position(|other| other == name)?;
        values.split(' ').nth(place)?.parse().ok()
    }
}

/// A table of the network of this thread's namespace.
fn net(table: &str) -> String {
    fs::read_to_string(format!("/proc/thread-self/net/{table}")).expect("a table of the kernel's")
}
