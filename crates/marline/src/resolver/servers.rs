//! The name servers of this host.

use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::path::Path;

use resolv_conf::{Config, ScopedIp};

use crate::carrier::{Bind, SocketSpec};
use crate::support::FORMER;

/// Where the system names them: resolv.conf(5), and what systemd-resolved asks where that file
/// names it alone (systemd-resolved.service(8)), the servers of all links.
const FILES: [&str; 2] = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
/// Most bytes of such a file that are read: hundreds of lines.
const MAX_BYTES: u64 = 64 << 10;
/// Most servers that are asked for one name: three of each file (MAXNS of resolv.conf(5)).
const MOST: usize = 6;
/// Where name servers listen (RFC 1035 section 4.2).
const PORT: u16 = 53;

/// Where the servers are named.
#[derive(Clone, Debug, Default)]
pub(super) enum Servers {
    /// By the system. Its files are read each time, as they change when networks do.
    #[default]
    System,
    /// These.
    #[cfg(test)]
    Given(Vec<SocketAddr>),
}

impl Servers {
    /// Those that a socket may reach, in their order.
    pub(super) fn of(&self, socket: &SocketSpec) -> Vec<SocketAddr> {
        match self {
            Self::System => named(&FILES.map(Path::new), socket),
            #[cfg(test)]
            Self::Given(servers) => servers.clone(),
        }
    }
}

fn named(files: &[&Path], socket: &SocketSpec) -> Vec<SocketAddr> {
    let mut servers: Vec<SocketAddr> = Vec::new();
    for file in files {
        for server in Config::parse_with_errors(&without_tunnel(contents(file)))
            .0
            .nameservers
        {
            if let Some(server) = reachable(server, socket)
                && !servers.contains(&server)
                && servers.len() < MOST
            {
                servers.push(server);
            }
        }
    }
    servers
}

/// What a file of that kind held before a tunnel's name servers came into it: those may be reached
/// through the tunnel alone, which the paths are to make.
fn without_tunnel(held: Vec<u8>) -> Vec<u8> {
    let lines = held.split(|byte| *byte == b'\n');
    let former = lines.filter_map(|line| line.strip_prefix(FORMER.as_bytes()));
    let former = former.map(<[u8]>::trim_ascii_start);
    let former = former.collect::<Vec<_>>().join(&b'\n');
    if former.is_empty() { held } else { former }
}

/// What the file holds; nothing where it cannot be read.
fn contents(file: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(file) {
        // What was read before an error may name a server all the same.
        let _ = file.take(MAX_BYTES).read_to_end(&mut bytes);
    }
    bytes
}

/// Where the server is for this socket. One on this host is the system's own resolver, which is
/// asked anyway and not by a link.
fn reachable(server: ScopedIp, socket: &SocketSpec) -> Option<SocketAddr> {
    let ip = IpAddr::from(&server);
    let of_this_host = matches!(&socket.bind, Bind::Address(own) if own.is_loopback());
    if (ip.is_loopback() && !of_this_host) || ip.is_unspecified() {
        return None;
    }
    match server {
        ScopedIp::V6(ip, scope) if ip.is_unicast_link_local() => {
            let there = SocketAddr::new(ip.into(), PORT);
            let own = socket.device(there);
            let scope = match scope {
                None => own,
                Some(name) => SocketSpec {
                    bind: Bind::Interface(name),
                    ..SocketSpec::default()
                }
                .device(there),
            }?;
            // By another link it is another host, or none.
            let fits = own.is_none_or(|own| own == scope);
            fits.then(|| SocketAddrV6::new(ip, PORT, 0, scope).into())
        }
        _ => Some(SocketAddr::new(ip, PORT)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &[u8], bind: Bind) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("resolv.conf");
        std::fs::write(&file, text).unwrap();
        let socket = SocketSpec {
            bind,
            ..SocketSpec::default()
        };
        let missing = folder.path().join("none");
        let servers = named(&[&missing, &file, &file], &socket);
        servers.iter().map(SocketAddr::to_string).collect()
    }

    #[test]
    fn what_a_path_cannot_reach_is_left_out_and_so_is_what_is_no_server() {
        let text = b"# by hand\nnameserver 127.0.0.53\nnameserver 192.0.2.1 # one\n\
            nameserver\nnameserver 0.0.0.0\n\xff\xfe nonsense\nnameserver 2001:db8::1\n\
            nameserver 192.0.2.1\nnameserver fe80::1%no-such-link\nsearch example\n";
        let address = |text: &str| Bind::Address(text.parse().unwrap());
        assert_eq!(
            of(text, address("192.0.2.9")),
            ["192.0.2.1:53", "[2001:db8::1]:53"]
        );
        assert_eq!(of(text, address("127.0.0.1"))[0], "127.0.0.53:53");
        assert!(of(b"", Bind::Any).is_empty());
        let tunnel = b"#marline# nameserver 192.0.2.1\nnameserver 10.77.0.1\n";
        assert_eq!(of(tunnel, Bind::Any), ["192.0.2.1:53"]);
    }

    #[test]
    fn there_are_no_more_than_a_few() {
        let lines: Vec<String> = (1..=99)
            .map(|n| format!("nameserver 192.0.2.{n}"))
            .collect();
        assert_eq!(of(lines.join("\n").as_bytes(), Bind::Any).len(), MOST);
    }
}
