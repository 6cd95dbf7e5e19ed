//! Does the kernel drop a path's answers because its routing tables lead elsewhere?

use super::super::finding::Finding;
use super::super::links::{NoRoute, Way};
use super::super::system::System;

const NAME: &str = "rp_filter";
/// Strict: what comes in by another interface than the answer would leave by is dropped (RFC 3704).
const STRICT: u64 = 1;

/// `device`: the path's; `back`: the way from the path's own address to the server, as the kernel
/// looks it up for each packet that comes in, policy rules included.
pub(in super::super) fn check(
    system: &System,
    device: &str,
    back: &Result<Way, NoRoute>,
) -> Finding {
    let of = |which: &str| system.proc_number(&format!("sys/net/ipv4/conf/{which}/rp_filter"));
    let (Some(all), Some(own)) = (of("all"), of(device)) else {
        return Finding::unknown(NAME, format!("the system does not say that of {device}"));
    };
    // The kernel takes the larger.
    let filter = all.max(own);
    if filter != STRICT {
        return Finding::fine(NAME, format!("not strict on {device} ({filter})"));
    }
    let leads = match back {
        Ok(way) if way.route.dev == device => {
            let text = format!("strict on {device}, by which packets from its address leave");
            return Finding::fine(NAME, text);
        }
        Ok(way) => format!("packets from its address leave by {}", way.route.dev),
        Err(NoRoute::None(_)) => "no route leads from its address to the server".to_owned(),
        Err(NoRoute::Unknown(why)) => {
            let text = format!("strict on {device}; where packets from its address leave: {why}");
            return Finding::unknown(NAME, text);
        }
    };
    Finding::failure(
        NAME,
        format!("strict on {device}, but {leads}: the kernel drops the answers"),
    )
    .fix(format!("sysctl -w net.ipv4.conf.{device}.rp_filter=2"))
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::super::super::links::tests::route;
    use super::super::super::programs::NoAnswer;
    use super::super::super::system::tests::made;
    use super::*;

    #[test]
    fn a_strict_filter_is_fine_only_where_the_tables_lead() {
        let (_folder, system) = made(&[
            ("proc/sys/net/ipv4/conf/all/rp_filter", "0\n"),
            ("proc/sys/net/ipv4/conf/wlan0/rp_filter", "1\n"),
            ("proc/sys/net/ipv4/conf/wwan0/rp_filter", "2\n"),
            ("proc/sys/net/ipv4/conf/odd/rp_filter", "yes\n"),
        ]);
        let by = |dev: &str| {
            Ok(Way {
                route: route(dev, "10.0.0.2"),
                is_listed: true,
            })
        };
        let verdict = |device: &str, back| check(&system, device, &back).verdict;
        assert_eq!(verdict("wlan0", by("wlan0")), Verdict::Fine);
        assert_eq!(verdict("wlan0", by("eth0")), Verdict::Failure);
        assert_eq!(
            verdict("wlan0", Err(NoRoute::None("none"))),
            Verdict::Failure
        );
        let unasked = Err(NoAnswer::Silent("ip").into());
        assert_eq!(verdict("wlan0", unasked), Verdict::Unknown);
        assert_eq!(verdict("wwan0", by("eth0")), Verdict::Fine);
        assert_eq!(verdict("odd", by("eth0")), Verdict::Unknown);
        let (_folder, system) = made(&[
            ("proc/sys/net/ipv4/conf/all/rp_filter", "1"),
            ("proc/sys/net/ipv4/conf/wlan0/rp_filter", "0"),
        ]);
        let strict_everywhere = check(&system, "wlan0", &by("eth0"));
        assert_eq!(strict_everywhere.verdict, Verdict::Failure);
    }
}
