//! Is the path's interface there, and has it a carrier?

use super::super::finding::Finding;
use super::super::system::System;
use super::address;
use marline::Selector;
use marline::carrier::Bind;
use marline::interfaces::Device;
use std::net::IpAddr;

const NAME: &str = "interface";

/// `addresses`: this host's, each with its interface.
pub(in super::super) fn check(
    system: &System,
    addresses: &[(String, IpAddr)],
    bind: &Bind,
) -> Option<Finding> {
    let devices = system.sysfs.devices();
    match bind {
        Bind::Any | Bind::Address(_) | Bind::Network(_) => None,
        _ if devices.is_empty() => Some(Finding::unknown(
            NAME,
            "the system does not say which interfaces there are",
        )),
        Bind::Matching(selector) => Some(none_fits(selector, &devices, addresses)),
        Bind::Interface(name) if devices.iter().any(|device| device.name == *name) => {
            Some(state(system, name))
        }
        // As sysfs is that of another network namespace, where nobody has mounted it again.
        Bind::Interface(name) if addresses.iter().any(|(owner, _)| owner == name) => {
            let text = format!("{name} has an address, but sysfs does not show it");
            Some(Finding::unknown(NAME, text))
        }
        Bind::Interface(name) => {
            let text = format!("there is no `{name}`; there are {}", names(&devices));
            Some(Finding::failure(NAME, text).fix("plug it in, or correct the path's name"))
        }
    }
}

/// Why a path has none of the interfaces that fit: one that had would have its name.
fn none_fits(selector: &Selector, all: &[Device], addresses: &[(String, IpAddr)]) -> Finding {
    let fitting: Vec<Device> = all.iter().filter(|it| selector.fits(it)).cloned().collect();
    let fit = names(&fitting);
    if fitting.is_empty() {
        let text = format!("no interface fits `{selector}`; there are {}", names(all));
        return Finding::failure(NAME, text).fix("plug it in, or correct the path's name");
    }
    let has_address = |device: &&Device| !address::of(addresses, &device.name).is_empty();
    match fitting.iter().find(has_address) {
        Some(device) => Finding::warning(
            NAME,
            format!("{} fits `{selector}`, but another path has it", device.name),
        )
        .fix("take one of the two paths out, or connect a further interface that fits"),
        None => Finding::failure(
            NAME,
            format!("no address yet: {fit}, which fits `{selector}`"),
        )
        .fix("wait for DHCP or the modem's connection, or give it one"),
    }
}

fn names(devices: &[Device]) -> String {
    let names: Vec<&str> = devices.iter().map(|device| &*device.name).collect();
    names.join(", ")
}

fn state(system: &System, name: &str) -> Finding {
    let state = system.sysfs.attribute(name, "operstate");
    let state = state.unwrap_or_default();
    // Read of an interface that is switched off fails, which is none either.
    let carrier = system.sysfs.attribute(name, "carrier");
    match (&*state, carrier.as_deref()) {
        ("up" | "unknown", Some("1") | None) => Finding::fine(NAME, format!("{name} is up")),
        ("up" | "unknown", _) => no_carrier(name),
        ("", _) => Finding::unknown(NAME, format!("{name} is there; its state is not known")),
        ("down" | "lowerlayerdown" | "dormant", Some("0")) => no_carrier(name),
        (state, _) => Finding::failure(NAME, format!("{name} is {state}"))
            .fix(format!("ip link set {name} up, and connect it")),
    }
}

fn no_carrier(name: &str) -> Finding {
    Finding::failure(NAME, format!("{name} has no carrier: no cable, no network"))
        .fix("connect it to its network")
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict::{Failure, Fine, Unknown, Warning};
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
        let found = |name: &str| check(&system, &[], &Bind::Interface(name.into())).unwrap();
        assert_eq!(found("wwan0").verdict, Fine);
        assert!(found("eth0").text.contains("no carrier"));
        assert_eq!(found("off").text, "off is down");
        assert_eq!(found("odd").verdict, Unknown);
        let absent = "there is no `wwan1`; there are eth0, odd, off, wwan0";
        assert_eq!(found("wwan1").text, absent);
        assert_eq!(check(&system, &[], &Bind::Any), None);
        let elsewhere = [("wwan1".to_owned(), "10.0.0.2".parse().unwrap())];
        let hidden = check(&system, &elsewhere, &Bind::Interface("wwan1".into()));
        assert_eq!(hidden.unwrap().verdict, Unknown);
    }

    #[test]
    fn a_path_without_an_interface_says_whether_none_fits_or_none_is_free() {
        let (_folder, system) = made(&[
            ("sys/class/net/wwan0/operstate", "up\n"),
            ("sys/class/net/eth0/operstate", "up\n"),
        ]);
        let addresses = [("eth0".to_owned(), "10.0.0.2".parse().unwrap())];
        let found = |words: &str| {
            let path: marline::Path = words.parse().unwrap();
            check(&system, &addresses, &path.local).unwrap()
        };
        let verdicts = ["wwan*", "usb*", "eth*"].map(|words| found(words).verdict);
        assert_eq!(verdicts, [Failure, Failure, Warning]);
        assert_eq!(
            found("wwan*").text,
            "no address yet: wwan0, which fits `wwan*`"
        );
        assert_eq!(
            found("eth*").text,
            "eth0 fits `eth*`, but another path has it"
        );
    }
}
