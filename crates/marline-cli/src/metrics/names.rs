//! By which names the metrics may be asked for. A page of a stranger's site that has its own name
//! resolved to this host (DNS rebinding) could read them in its visitor's browser otherwise; the
//! browser asks by that name.

use crate::platform;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Names that are this host's.
#[derive(Debug, Clone, Default)]
pub struct Names(Vec<String>);

impl Names {
    /// This host's name by its system, and `more`.
    pub fn of_this_host(more: impl IntoIterator<Item = String>) -> Self {
        Names([platform::host_name()].into_iter().chain(more).collect())
    }

    /// Whether `authority`, a `Host` field such as `localhost:9900` (RFC 9110 section 7.2), is an
    /// address or one of the names. Nobody can have an address resolved to another one.
    pub(super) fn contain(&self, authority: &str) -> bool {
        let Some(host) = host(authority) else {
            return false;
        };
        if let Some(inner) = host.strip_prefix('[') {
            let address = inner.strip_suffix(']').unwrap_or_default();
            return address.parse::<Ipv6Addr>().is_ok();
        }
        let name = host.strip_suffix('.').unwrap_or(host);
        let known = |known: &String| !known.is_empty() && known.eq_ignore_ascii_case(name);
        name.parse::<Ipv4Addr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.0.iter().any(known)
    }
}

/// The host of `HOST[:PORT]`, with the brackets of an IPv6 address.
fn host(authority: &str) -> Option<&str> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (authority, ""),
    };
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    (digits && !host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_this_hosts_names_are_answered_and_no_others() {
        let names = Names(vec!["Router.example".into(), String::new()]);
        for own in [
            "127.0.0.1",
            "192.0.2.7:9900",
            "[::1]",
            "[2001:db8::1]:9900",
            "localhost:9900",
            "LocalHost",
            "localhost.",
            "router.EXAMPLE:9900",
            "router.example.",
        ] {
            assert!(names.contain(own), "{own}");
        }
        for foreign in [
            "evil.example",
            "evil.example:9900",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "router.example.evil",
            "router.example@evil.example",
            "localhost:x",
            "[localhost]:1",
            "[::1",
            "::1",
            "",
            ":9900",
            ".",
            "0x7f000001",
        ] {
            assert!(!names.contain(foreign), "{foreign}");
        }
        let own = platform::host_name();
        assert!(own.is_empty() || Names::of_this_host([]).contain(&own));
    }
}
