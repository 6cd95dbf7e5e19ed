//! Is the path's interface there, and has it a carrier?

use super::super::finding::Finding;
use super::super::system::System;
use marline::carrier::Bind;

const NAME: &str = "interface";

pub(in super::super) fn check(system: &System, bind: &Bind) -> Option<Finding> {
    let (name, what) = match bind {
        Bind::Interface(name) => (&**name, format!("there is no `{name}`")),
        // One that fits would be named.
        Bind::Matching(selector) => ("", format!("no interface fits `{selector}`")),
        Bind::Any | Bind::Address(_) => return None,
    };
    if name.is_empty() || !system.has_device(name) {
        let known = system.devices();
        return Some(match known.is_empty() {
            true => Finding::unknown(NAME, "the system does not tell which interfaces there are"),
            false => Finding::failure(NAME, format!("{what}; there are {}", known.join(", ")))
                .mend("plug it in, or correct the path's name"),
        });
    }
    let state = system.of_device(name, "operstate").unwrap_or_default();
    // Read of an interface that is switched off fails, which is none either.
    let carrier = system.of_device(name, "carrier");
    Some(match (&*state, carrier.as_deref()) {
        ("up" | "unknown", Some("1") | None) => Finding::fine(NAME, format!("{name} is up")),
        ("up" | "unknown", _) => no_carrier(name),
        ("", _) => Finding::unknown(NAME, format!("{name} is there; its state is not told")),
        ("down" | "lowerlayerdown" | "dormant", Some("0")) => no_carrier(name),
        (state, _) => Finding::failure(NAME, format!("{name} is {state}"))
            .mend(format!("ip link set {name} up, and connect it")),
    })
}

fn no_carrier(name: &str) -> Finding {
    Finding::failure(NAME, format!("{name} has no carrier: no cable, no network"))
        .mend("connect it to its network")
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::super::super::system::tests::made;
    use super::*;

    #[test]
    fn an_interface_is_up_without_carrier_off_or_absent() {
        let (_folder, system) = made(&[
            ("sys/class/net/wwan0/operstate", "unknown\n"),
            ("sys/class/net/eth0/operstate", "down\n"),
            ("sys/class/net/eth0/carrier", "0\n"),
            ("sys/class/net/off/operstate", "down\n"),
            ("sys/class/net/odd/operstate", ""),
        ]);
        let found = |name: &str| check(&system, &Bind::Interface(name.into())).unwrap();
        assert_eq!(found("wwan0").verdict, Verdict::Fine);
        assert!(found("eth0").text.contains("no carrier"));
        assert_eq!(found("off").text, "off is down");
        assert_eq!(found("odd").verdict, Verdict::Unknown);
        let absent = "there is no `wwan1`; there are eth0, odd, off, wwan0";
        assert_eq!(found("wwan1").text, absent);
        assert_eq!(check(&system, &Bind::Any), None);
    }
}
