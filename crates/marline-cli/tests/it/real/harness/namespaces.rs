use super::namespace::{Namespace, ip};

/// Networks of their own for a client, a server and a router between them; gone when this is
/// dropped.
///
/// ```text
/// client ── c1 10.201.1.2 ── a1 ┐
///                               anchor ── a0 ── s0 10.201.0.2 ── server
/// client ── c2 10.201.2.2 ── a2 ┘
/// ```
#[derive(Debug)]
pub(crate) struct Namespaces {
    pub(crate) client: Namespace,
    pub(crate) anchor: Namespace,
    pub(crate) server: Namespace,
}

/// Where the server is reached from the client.
pub(crate) const SERVER: &str = "10.201.0.2";

impl Namespaces {
    /// `None`, and a word of it, where this machine does not let us.
    pub(crate) fn new() -> Option<Namespaces> {
        let this = Namespaces {
            client: Namespace::new("c")?,
            anchor: Namespace::new("a")?,
            server: Namespace::new("s")?,
        };
        this.build().expect("the namespaces can be connected");
        Some(this)
    }

    fn build(&self) -> Result<(), String> {
        let (client, anchor, server) = (&self.client, &self.anchor, &self.server);
        for (near, far, number) in [("c1", "a1", 1), ("c2", "a2", 2), ("s0", "a0", 0)] {
            let side = if number == 0 { server } else { client };
            ip(&format!(
                "link add {near} netns {side} type veth peer name {far} netns {anchor}"
            ))?;
            ip(&format!(
                "-n {side} address add 10.201.{number}.2/24 dev {near}"
            ))?;
            ip(&format!(
                "-n {anchor} address add 10.201.{number}.1/24 dev {far}"
            ))?;
            ip(&format!("-n {side} link set {near} up"))?;
            ip(&format!("-n {anchor} link set {far} up"))?;
        }
        for side in [client, anchor, server] {
            ip(&format!("-n {side} link set lo up"))?;
        }
        for number in [1, 2] {
            ip(&format!(
                "-n {client} route add 10.201.0.0/24 via 10.201.{number}.1 dev c{number} metric {number}"
            ))?;
        }
        ip(&format!("-n {server} route add default via 10.201.0.1"))?;
        anchor.set("net/ipv4/ip_forward", "1");
        server.set("net/ipv4/ip_forward", "0");
        server.set("net/ipv6/conf/all/forwarding", "0");
        // Whoever is root may ping.
        client.set("net/ipv4/ping_group_range", "0 0");
        Ok(())
    }
}
