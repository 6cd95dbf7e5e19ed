//! May the program do what its configuration asks?

use super::super::finding::Finding;
use super::super::system::System;

const NAME: &str = "privileges";
/// The bit of CAP_NET_ADMIN in a set of capabilities (capabilities(7)).
const NET_ADMIN: u32 = 12;

/// `tun`: the configuration asks for a tunnel.
pub(in super::super) fn check(system: &System, tun: bool) -> Finding {
    let status = system.proc("self/status").unwrap_or_default();
    let mut lines = status.lines();
    let effective = lines.find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    match (effective, tun) {
        (None, _) => Finding::unknown(NAME, "the system does not tell"),
        (Some(set), _) if set >> NET_ADMIN & 1 == 1 => Finding::fine(
            NAME,
            "CAP_NET_ADMIN, which is enough for all that can be asked",
        ),
        (Some(_), false) => Finding::fine(NAME, "none, and none are needed without --tun"),
        (Some(_), true) => Finding::failure(NAME, "--tun needs CAP_NET_ADMIN")
            .mend("run it as root, or: setcap cap_net_admin+ep \"$(command -v marline)\""),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::super::super::system::tests::made;
    use super::*;

    #[test]
    fn a_tunnel_needs_net_admin() {
        let verdict = |line: &str, tun| {
            let status = format!("Name:\tmarline\n{line}\n");
            let (_folder, system) = made(&[("proc/self/status", &status)]);
            check(&system, tun).verdict
        };
        assert_eq!(verdict("CapEff:\t0000000000001000", true), Verdict::Fine);
        assert_eq!(verdict("CapEff:\t0000000000000000", true), Verdict::Failure);
        assert_eq!(verdict("CapEff:\t0000000000000000", false), Verdict::Fine);
        assert_eq!(verdict("CapEff:\tzz", true), Verdict::Unknown);
        assert_eq!(verdict("", true), Verdict::Unknown);
    }
}
