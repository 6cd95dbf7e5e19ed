//! Has the path an address of the server's family?

use super::super::finding::Finding;
use marline::carrier::{Bind, SocketSpec};
use std::net::{IpAddr, SocketAddr};

const NAME: &str = "address";

/// `addresses`: this host's, each with its interface.
pub(in super::super) fn check(
    addresses: &[(String, IpAddr)],
    bind: &Bind,
    remotes: &[SocketAddr],
) -> Option<Finding> {
    match bind {
        Bind::Any | Bind::Matching(_) | Bind::Network(_) => None,
        Bind::Address(ip) => Some(source(bind, *ip, remotes)),
        Bind::Interface(_) if addresses.is_empty() => {
            let text = "the system does not say which addresses this host has";
            Some(Finding::unknown(NAME, text))
        }
        Bind::Interface(name) => Some(of_interface(name, &of(addresses, name), remotes)),
    }
}

/// The addresses of an interface that reach beyond its link.
pub(in super::super) fn of(addresses: &[(String, IpAddr)], name: &str) -> Vec<IpAddr> {
    let reaches_far = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => !ip.is_link_local(),
        IpAddr::V6(ip) => !ip.is_unicast_link_local(),
    };
    let own = addresses.iter().filter(|(owner, _)| owner == name);
    own.map(|(_, ip)| *ip).filter(reaches_far).collect()
}

fn source(bind: &Bind, ip: IpAddr, remotes: &[SocketAddr]) -> Finding {
    let spec = SocketSpec {
        bind: bind.clone(),
        ..SocketSpec::default()
    };
    if let Err(error) = spec.check() {
        return Finding::failure(NAME, error.to_string())
            .fix("give the path an address that this host has, or an interface's name");
    }
    match reaches(&[ip], remotes) {
        true => Finding::fine(NAME, format!("{ip} is this host's")),
        false => none_of_family(&ip.to_string(), remotes),
    }
}

fn of_interface(name: &str, addresses: &[IpAddr], remotes: &[SocketAddr]) -> Finding {
    if addresses.is_empty() {
        return Finding::failure(NAME, format!("{name} has no address"))
            .fix("wait for DHCP or the modem's connection, or give it one");
    }
    if !reaches(addresses, remotes) {
        return none_of_family(name, remotes);
    }
    let texts: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    Finding::fine(NAME, format!("{name} has {}", texts.join(", ")))
}

fn reaches(sources: &[IpAddr], remotes: &[SocketAddr]) -> bool {
    let reached = |remote: &SocketAddr| {
        let mut sources = sources.iter();
        sources.any(|source| source.is_ipv4() == remote.is_ipv4())
    };
    // Where the server is unknown, the look-up of its name is what is wrong.
    remotes.is_empty() || remotes.iter().any(reached)
}

fn none_of_family(whose: &str, remotes: &[SocketAddr]) -> Finding {
    let family = match remotes.iter().any(SocketAddr::is_ipv4) {
        true => "IPv4",
        false => "IPv6",
    };
    Finding::failure(
        NAME,
        format!("{whose} has no {family} address, and the server no other"),
    )
    .fix(format!(
        "get {family} on this link, or reach the server by its other family"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::*;

    #[test]
    fn an_address_of_the_servers_family_is_needed() {
        let addresses = [
            ("wlan0", "192.168.1.4"),
            ("wwan0", "2001:db8::2"),
            ("eth0", "fe80::1"),
            ("eth0", "169.254.7.7"),
        ];
        let addresses = addresses.map(|(name, ip)| (name.to_owned(), ip.parse().unwrap()));
        let four = ["203.0.113.5:4433".parse().unwrap()];
        let verdict = |name: &str, remotes: &[SocketAddr]| {
            let found = check(&addresses, &Bind::Interface(name.into()), remotes);
            found.map(|finding| finding.verdict)
        };
        assert_eq!(verdict("wlan0", &four), Some(Verdict::Fine));
        assert_eq!(verdict("wwan0", &four), Some(Verdict::Failure));
        assert_eq!(verdict("wwan0", &[]), Some(Verdict::Fine));
        assert_eq!(verdict("eth0", &four), Some(Verdict::Failure));
        let unknown = check(&[], &Bind::Interface("wlan0".into()), &four).unwrap();
        assert_eq!(unknown.verdict, Verdict::Unknown);
        let foreign = Bind::Address("192.0.2.77".parse().unwrap());
        let found = check(&addresses, &foreign, &four).unwrap();
        assert_eq!(found.verdict, Verdict::Failure, "{found:?}");
    }
}
