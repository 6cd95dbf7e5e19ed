//! Do the program's packets fit the link?

use super::super::finding::Finding;
use super::super::system::System;
use marline::carrier::MIN_MTU;

const NAME: &str = "mtu";
/// IPv6 and UDP headers, bytes.
const HEADERS: u64 = 48;
/// The least that IPv6 asks of a link (RFC 8200 section 5), bytes.
const IPV6: u64 = 1280;

pub(in super::super) fn check(system: &System, device: &str) -> Finding {
    let mtu = system.of_device(device, "mtu");
    let Some(mtu) = mtu.and_then(|mtu| mtu.parse::<u64>().ok()) else {
        return Finding::unknown(NAME, format!("the system does not tell that of {device}"));
    };
    let least = u64::from(MIN_MTU) + HEADERS;
    let text = format!("{mtu} bytes on {device}");
    match mtu {
        mtu if mtu < least => Finding::failure(
            NAME,
            format!("{text}: QUIC needs {least}, headers included (RFC 9000)"),
        )
        .mend(format!(
            "ip link set {device} mtu 1500, or use carrier=tcp on that path"
        )),
        mtu if mtu < IPV6 => {
            Finding::warning(NAME, format!("{text}: IPv6 needs {IPV6} and is off there")).mend(
                format!("ip link set {device} mtu 1500, if the link carries that"),
            )
        }
        _ => Finding::fine(NAME, text),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::super::super::system::tests::made;
    use super::*;

    #[test]
    fn what_is_too_small_for_quic_or_ipv6_is_told_apart() {
        let (_folder, system) = made(&[
            ("sys/class/net/a/mtu", "1247\n"),
            ("sys/class/net/b/mtu", "1248\n"),
            ("sys/class/net/c/mtu", "1280\n"),
            ("sys/class/net/d/mtu", "-3\n"),
        ]);
        let verdicts = ["a", "b", "c", "d", "e"].map(|name| check(&system, name).verdict);
        let expected = [
            Verdict::Failure,
            Verdict::Warning,
            Verdict::Fine,
            Verdict::Unknown,
            Verdict::Unknown,
        ];
        assert_eq!(verdicts, expected);
    }
}
