//! Does the kernel drop a path's answers because its routing table leads elsewhere?

use super::super::finding::Finding;
use super::super::links::Route;
use super::super::system::System;

const NAME: &str = "rp_filter";
/// Strict: what comes in by another interface than the answer would leave by is dropped (RFC 3704).
const STRICT: u64 = 1;

/// `device`: the path's; `main`: the way to the server of what is bound to nothing.
pub(in super::super) fn check(
    system: &System,
    device: &str,
    main: &Result<Route, String>,
) -> Finding {
    let of = |which: &str| system.proc_number(&format!("sys/net/ipv4/conf/{which}/rp_filter"));
    let (Some(all), Some(own)) = (of("all"), of(device)) else {
        return Finding::unknown(NAME, format!("the system does not tell that of {device}"));
    };
    // The kernel takes the larger.
    let filter = all.max(own);
    if filter != STRICT {
        return Finding::fine(NAME, format!("not strict on {device} ({filter})"));
    }
    match main {
        Ok(route) if route.dev == device => Finding::fine(
            NAME,
            format!("strict on {device}, by which the server is reached"),
        ),
        Ok(route) => Finding::failure(
            NAME,
            format!(
                "strict on {device}, but the routing table reaches the server by {}: the kernel \
                 drops the answers",
                route.dev
            ),
        )
        .mend(format!("sysctl -w net.ipv4.conf.{device}.rp_filter=2")),
        Err(_) => Finding::warning(
            NAME,
            format!("strict on {device}: answers are dropped unless a route leads back by it"),
        )
        .mend(format!("sysctl -w net.ipv4.conf.{device}.rp_filter=2")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::super::super::links::tests::way;
    use super::super::super::system::tests::made;
    use super::*;

    #[test]
    fn a_strict_filter_is_fine_only_where_the_table_leads() {
        let (_folder, system) = made(&[
            ("proc/sys/net/ipv4/conf/all/rp_filter", "0\n"),
            ("proc/sys/net/ipv4/conf/wlan0/rp_filter", "1\n"),
            ("proc/sys/net/ipv4/conf/wwan0/rp_filter", "2\n"),
            ("proc/sys/net/ipv4/conf/odd/rp_filter", "yes\n"),
        ]);
        let by = |dev: &str| Ok(way(dev, "10.0.0.2"));
        let verdict = |device: &str, main| check(&system, device, &main).verdict;
        assert_eq!(verdict("wlan0", by("wlan0")), Verdict::Fine);
        assert_eq!(verdict("wlan0", by("eth0")), Verdict::Failure);
        assert_eq!(verdict("wlan0", Err(String::new())), Verdict::Warning);
        assert_eq!(verdict("wwan0", by("eth0")), Verdict::Fine);
        assert_eq!(verdict("odd", by("eth0")), Verdict::Unknown);
        let (_folder, system) = made(&[
            ("proc/sys/net/ipv4/conf/all/rp_filter", "1"),
            ("proc/sys/net/ipv4/conf/wlan0/rp_filter", "0"),
        ]);
        assert_eq!(
            check(&system, "wlan0", &by("eth0")).verdict,
            Verdict::Failure
        );
    }
}
