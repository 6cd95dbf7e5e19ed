//! Has this host IPv6?

use super::super::finding::Finding;
use super::super::system::System;
use std::net::SocketAddr;

const NAME: &str = "ipv6";
/// The scope of addresses that reach everything, in `/proc/net/if_inet6`.
const GLOBAL: &str = "00";

/// `remotes`: the server's addresses, or those that this server listens at.
pub(in super::super) fn check(system: &System, remotes: &[SocketAddr]) -> Finding {
    // Absent where the kernel has no IPv6.
    let known = system.proc("net/if_inet6").unwrap_or_default();
    let mut devices: Vec<&str> = Vec::new();
    for line in known.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if let [_, _, _, GLOBAL, _, device] = fields[..]
            && !devices.contains(&device)
        {
            devices.push(device);
        }
    }
    let needed = !remotes.is_empty()
        && remotes
            .iter()
            .all(|address| address.is_ipv6() && !address.ip().is_loopback());
    match (devices.is_empty(), needed) {
        (false, _) => Finding::fine(NAME, format!("global addresses on {}", devices.join(", "))),
        (true, false) => Finding::fine(NAME, "none here, and none is needed"),
        (true, true) => {
            Finding::failure(NAME, "no global address here, and nothing but IPv6 there")
                .fix("get IPv6 on a link, or reach the server by an IPv4 address")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::super::super::system::tests::made;
    use super::*;

    #[test]
    fn a_server_with_ipv6_alone_needs_a_global_address() {
        let six = ["[2001:db8::1]:4433".parse().unwrap()];
        let (_folder, with) = made(&[(
            "proc/net/if_inet6",
            "00000000000000000000000000000001 01 80 10 80 lo\n\
             20010db8000000000000000000000002 02 40 00 00 wwan0\nnonsense\n",
        )]);
        assert_eq!(check(&with, &six).text, "global addresses on wwan0");
        let (_folder, without) = made(&[]);
        assert_eq!(check(&without, &six).verdict, Verdict::Failure);
        assert_eq!(check(&without, &[]).verdict, Verdict::Fine);
    }
}
