//! Has the path an address of the server's family?

use super::super::finding::Finding;
use super::super::links::Device;
use marline::carrier::{Bind, SocketSpec};
use std::net::{IpAddr, SocketAddr};

const NAME: &str = "address";

pub(in super::super) fn check(
    devices: &Result<Vec<Device>, String>,
    bind: &Bind,
    remotes: &[SocketAddr],
) -> Option<Finding> {
    match bind {
        Bind::Any | Bind::Matching(_) => None,
        Bind::Address(ip) => Some(source(bind, *ip, remotes)),
        Bind::Interface(name) => Some(match devices {
            Err(why) => Finding::unknown(NAME, why),
            Ok(devices) => {
                let device = devices.iter().find(|device| device.ifname == *name)?;
                of_interface(device, remotes)
            }
        }),
    }
}

fn source(bind: &Bind, ip: IpAddr, remotes: &[SocketAddr]) -> Finding {
    let spec = SocketSpec {
        bind: bind.clone(),
        ..SocketSpec::default()
    };
    if let Err(error) = spec.check() {
        return Finding::failure(NAME, error.to_string())
            .mend("give the path an address that this host has, or an interface's name");
    }
    match reaches(&[ip], remotes) {
        true => Finding::fine(NAME, format!("{ip} is this host's")),
        false => none_of_family(&ip.to_string(), remotes),
    }
}

fn of_interface(device: &Device, remotes: &[SocketAddr]) -> Finding {
    let addresses = device.addresses();
    let name = &device.ifname;
    if addresses.is_empty() {
        return Finding::failure(NAME, format!("{name} has no address"))
            .mend("wait for DHCP or the modem's connection, or give it one");
    }
    if !reaches(&addresses, remotes) {
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
    .mend(format!(
        "get {family} on this link, or reach the server by its other family"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::super::super::links::tests::device;
    use super::*;

    #[test]
    fn an_address_of_the_servers_family_is_needed() {
        let devices = Ok(vec![
            device("wlan0", &["192.168.1.4"]),
            device("wwan0", &["2001:db8::2"]),
            device("eth0", &[]),
        ]);
        let four = ["203.0.113.5:4433".parse().unwrap()];
        let verdict = |name: &str, remotes: &[SocketAddr]| {
            let found = check(&devices, &Bind::Interface(name.into()), remotes);
            found.map(|finding| finding.verdict)
        };
        assert_eq!(verdict("wlan0", &four), Some(Verdict::Fine));
        assert_eq!(verdict("wwan0", &four), Some(Verdict::Failure));
        assert_eq!(verdict("wwan0", &[]), Some(Verdict::Fine));
        assert_eq!(verdict("eth0", &four), Some(Verdict::Failure));
        assert_eq!(verdict("gone", &four), None, "another check says so");
        let unasked = Err("there is no `ip` here".to_owned());
        let found = check(&unasked, &Bind::Interface("wlan0".into()), &four).unwrap();
        assert_eq!(found.verdict, Verdict::Unknown);
        let foreign = Bind::Address("192.0.2.77".parse().unwrap());
        let found = check(&devices, &foreign, &four).unwrap();
        assert_eq!(found.verdict, Verdict::Failure, "{found:?}");
    }
}
