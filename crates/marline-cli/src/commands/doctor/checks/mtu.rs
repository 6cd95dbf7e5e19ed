//! Do the program's packets fit the link?

use super::super::finding::Finding;
use super::super::system::System;
use marline::carrier::{CarrierChoice, MIN_MTU};
use std::net::IpAddr;

const NAME: &str = "mtu";
/// Headers of IPv4 (RFC 791, without options) and UDP, bytes.
const IPV4_HEADERS: u64 = 20 + 8;
/// Headers of IPv6 (RFC 8200) and UDP, bytes.
const IPV6_HEADERS: u64 = 40 + 8;
/// The least that IPv6 asks of a link (RFC 8200 section 5), bytes.
const IPV6: u64 = 1280;

/// `device`: by which packets to `remote` leave.
pub(in super::super) fn check(
    system: &System,
    device: &str,
    remote: IpAddr,
    carrier: CarrierChoice,
) -> Finding {
    let mtu = system.sysfs.attribute(device, "mtu");
    let Some(mtu) = mtu.and_then(|mtu| mtu.parse::<u64>().ok()) else {
        return Finding::unknown(NAME, format!("the system does not say that of {device}"));
    };
    let text = format!("{mtu} bytes on {device}");
    let (family, headers) = match remote {
        IpAddr::V4(_) => ("IPv4", IPV4_HEADERS),
        IpAddr::V6(_) => ("IPv6", IPV6_HEADERS),
    };
    let larger = format!("ip link set {device} mtu 1500, if the link carries that");
    let least = u64::from(MIN_MTU) + headers;
    if carrier != CarrierChoice::Tcp && mtu < least {
        let text = format!("{text}: QUIC over {family} needs {least}, headers included (RFC 9000)");
        return match carrier {
            CarrierChoice::Auto => Finding::warning(NAME, format!("{text}; TCP is left")),
            _ => Finding::failure(NAME, text),
        }
        .fix(larger);
    }
    if remote.is_ipv6() && mtu < IPV6 {
        return Finding::warning(NAME, format!("{text}: IPv6 needs {IPV6} and is off there"))
            .fix(larger);
    }
    Finding::fine(NAME, text)
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict::{self, Failure, Fine, Unknown, Warning};
    use super::super::super::system::tests::made;
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn what_is_too_small_depends_on_the_family_and_the_carrier() {
        let sizes = ["1227", "1228", "1247", "1248", "1280", "-3"];
        let files = sizes.map(|size| (format!("sys/class/net/n{size}/mtu"), format!("{size}\n")));
        let files = files.each_ref().map(|(name, text)| (&**name, &**text));
        let (_folder, system) = made(&files);
        let verdicts = |remote: IpAddr, carrier| -> [Verdict; 6] {
            sizes.map(|size| check(&system, &format!("n{size}"), remote, carrier).verdict)
        };
        let four = Ipv4Addr::LOCALHOST.into();
        let six = Ipv6Addr::LOCALHOST.into();
        let over_four = verdicts(four, CarrierChoice::Quic);
        assert_eq!(over_four, [Failure, Fine, Fine, Fine, Fine, Unknown]);
        let over_six = verdicts(six, CarrierChoice::Quic);
        assert_eq!(
            over_six,
            [Failure, Failure, Failure, Warning, Fine, Unknown]
        );
        assert_eq!(verdicts(four, CarrierChoice::Auto)[0], Warning);
        let over_tcp = verdicts(four, CarrierChoice::Tcp);
        assert_eq!(over_tcp, [Fine, Fine, Fine, Fine, Fine, Unknown]);
    }
}
