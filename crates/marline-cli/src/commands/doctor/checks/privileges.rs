//! May the program do what its configuration asks?

use super::super::finding::Finding;
use super::super::system::System;
use crate::platform;

const NAME: &str = "privileges";
/// The bit of CAP_NET_ADMIN in a set of capabilities (capabilities(7)).
const NET_ADMIN: u32 = 12;
/// What sysfs shows of a TUN device without an owner or a group (drivers/net/tun.c).
const NOBODY: i64 = -1;

/// The tunnel that is asked for.
#[derive(Debug, Clone)]
pub(in super::super) struct Tunnel {
    pub(in super::super) device: String,
    /// The program gives it addresses and routes.
    pub(in super::super) sets_up: bool,
}

/// Who runs the program.
#[derive(Debug)]
struct User {
    id: u32,
    groups: Vec<u32>,
}

impl User {
    fn now() -> Self {
        User {
            id: platform::user(),
            groups: platform::groups(),
        }
    }
}

pub(in super::super) fn check(system: &System, tunnel: Option<&Tunnel>) -> Finding {
    judge(system, tunnel, &User::now())
}

fn judge(system: &System, tunnel: Option<&Tunnel>, user: &User) -> Finding {
    let Some(tunnel) = tunnel else {
        return Finding::fine(NAME, "none are needed without --tun");
    };
    let status = system.proc("self/status").unwrap_or_default();
    let mut lines = status.lines();
    let effective = lines.find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    let device = &tunnel.device;
    match effective {
        None => Finding::unknown(NAME, "the system does not say which this process has"),
        Some(set) if set >> NET_ADMIN & 1 == 1 => Finding::fine(NAME, "CAP_NET_ADMIN, for --tun"),
        Some(_) if tunnel.sets_up => Finding::failure(NAME, "--tun-setup needs CAP_NET_ADMIN").fix(
            "run it as root, or: setcap cap_net_admin+ep \"$(command -v marline)\"; or prepare the \
             device and leave --tun-setup out",
        ),
        Some(_) if may_open(system, device, user) => Finding::fine(
            NAME,
            format!("none; {device} is there, and this user may open it"),
        ),
        Some(_) => Finding::failure(
            NAME,
            format!("--tun needs CAP_NET_ADMIN, or a TUN device {device} that this user may open"),
        )
        .fix(format!(
            "run it as root, or make the device first: ip tuntap add {device} mode tun user {}",
            user.id
        )),
    }
}

/// What the kernel asks of who opens a TUN device without CAP_NET_ADMIN (`tun_not_capable`).
fn may_open(system: &System, device: &str, user: &User) -> bool {
    let number = |attribute| {
        let text = system.sysfs.attribute(device, attribute)?;
        text.parse::<i64>().ok()
    };
    let (Some(owner), Some(group)) = (number("owner"), number("group")) else {
        return false;
    };
    let mut groups = user.groups.iter();
    (owner == NOBODY || owner == i64::from(user.id))
        && (group == NOBODY || groups.any(|own| i64::from(*own) == group))
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict::{self, Failure, Fine, Unknown};
    use super::super::super::system::tests::made;
    use super::*;

    #[test]
    fn a_tunnel_needs_net_admin_or_a_device_of_this_user() {
        let verdict = |line: &str, device: &str, sets_up| -> Verdict {
            let status = format!("Name:\tmarline\n{line}\n");
            let (_folder, system) = made(&[
                ("proc/self/status", &status),
                ("sys/class/net/own/owner", "1000\n"),
                ("sys/class/net/own/group", "-1\n"),
                ("sys/class/net/foreign/owner", "1001\n"),
                ("sys/class/net/foreign/group", "-1\n"),
                ("sys/class/net/shared/owner", "-1\n"),
                ("sys/class/net/shared/group", "27\n"),
                ("sys/class/net/theirs/owner", "-1\n"),
                ("sys/class/net/theirs/group", "28\n"),
                ("sys/class/net/eth0/mtu", "1500\n"),
            ]);
            let tunnel = Tunnel {
                device: device.into(),
                sets_up,
            };
            let user = User {
                id: 1000,
                groups: vec![1000, 27],
            };
            judge(&system, Some(&tunnel), &user).verdict
        };
        let none = "CapEff:\t0000000000000000";
        assert_eq!(verdict("CapEff:\t0000000000001000", "new", true), Fine);
        assert_eq!(verdict(none, "new", false), Failure);
        assert_eq!(verdict(none, "own", true), Failure);
        assert_eq!(verdict(none, "own", false), Fine);
        assert_eq!(verdict(none, "foreign", false), Failure);
        assert_eq!(verdict(none, "shared", false), Fine);
        assert_eq!(verdict(none, "theirs", false), Failure);
        assert_eq!(verdict(none, "eth0", false), Failure);
        assert_eq!(verdict("CapEff:\tzz", "own", false), Unknown);
        assert_eq!(verdict("", "own", false), Unknown);
    }
}
