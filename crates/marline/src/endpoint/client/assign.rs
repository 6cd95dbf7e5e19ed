//! Which interface which path has, where paths say what fits instead of a name.
//!
//! A path has the first interface that fits and that no other path has or names, and keeps it as
//! long as it fits. Further ones that fit get paths of their own with the same terms, called
//! `NAME#2` and so on, which go when their interface does. The first stays: whoever asks for the
//! status sees that its interface is missing.

use std::collections::BTreeSet;

use tokio_util::sync::CancellationToken;

use super::MAX_PATHS;
use super::slot::{Slot, Slots};
use crate::Path;
use crate::carrier::{Bind, routable};
use crate::interfaces::{Device, Selector, Sysfs};

/// What is to be done after the interfaces have changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Assigned {
    /// Paths to start: for which slot, and over which interface.
    pub(super) start: Vec<(u64, Path, String)>,
    /// Numbers of slots whose interface is gone, and which were there for it alone.
    pub(super) stop: Vec<u64>,
}

fn selector(slot: &Slot) -> Option<&Selector> {
    match &slot.spec.local {
        Bind::Matching(selector) => Some(selector),
        _ => None,
    }
}

/// Gives paths their interfaces. `devices` are all that there are, `routable` the names of those
/// with an address: without one there is nothing to dial from.
pub(super) fn assign(
    slots: &mut Slots,
    devices: &[Device],
    routable: &BTreeSet<String>,
) -> Assigned {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for slot in slots.iter_mut() {
        if let Bind::Interface(name) = &slot.spec.local {
            taken.insert(name.clone());
        }
    }
    let numbers: BTreeSet<u64> = slots.iter().map(|slot| slot.number).collect();
    let mut assigned = Assigned::default();
    for slot in slots.iter_mut() {
        let Some(selector) = selector(slot) else {
            continue;
        };
        let still = devices
            .iter()
            .find(|device| slot.device.as_ref() == Some(&device.name) && selector.fits(device));
        match still {
            Some(device) if taken.insert(device.name.clone()) => {}
            _ => slot.device = None,
        }
        let is_orphan = slot.of.is_some_and(|first| !numbers.contains(&first));
        if slot.of.is_some() && (slot.device.is_none() || is_orphan) {
            assigned.stop.push(slot.number);
        }
    }
    let mut free = |selector: &Selector| -> Option<String> {
        let fits = |device: &&Device| {
            routable.contains(&device.name)
                && !taken.contains(&device.name)
                && selector.fits(device)
        };
        let name = devices.iter().find(fits)?.name.clone();
        taken.insert(name.clone());
        Some(name)
    };
    for slot in slots.iter_mut().filter(|slot| slot.of.is_none()) {
        if let (Some(selector), None) = (selector(slot), &slot.device) {
            slot.device = free(selector);
        }
    }
    let mut names: BTreeSet<String> = slots.iter().map(|slot| slot.spec.name.clone()).collect();
    let mut count = slots.len();
    for slot in slots.iter().filter(|slot| slot.of.is_none()) {
        let Some(selector) = selector(slot) else {
            continue;
        };
        while count < MAX_PATHS
            && let Some(device) = free(selector)
        {
            let mut name = |number: usize| {
                let name = format!("{}#{number}", slot.spec.name);
                names.insert(name.clone()).then_some(name)
            };
            // There are fewer paths than numbers.
            let Some(name) = (2..).find_map(&mut name) else {
                break;
            };
            let path = slot.spec.clone().named(name);
            assigned.start.push((slot.number, path, device));
            count += 1;
        }
    }
    assigned
}

/// The paths as a client that starts now would have them: what says which interfaces fit as the
/// interfaces that it would get, and as it is written where it gets none.
pub fn assigned(paths: &[Path], sysfs: &Sysfs) -> Vec<Path> {
    let mut slots = Slots::default();
    for path in paths {
        slots.add(path.clone(), CancellationToken::new());
    }
    let further = assign(&mut slots, &sysfs.devices(), &routable()).start;
    let further = further.into_iter().map(|(_, path, device)| Path {
        local: Bind::Interface(device),
        ..path
    });
    slots.iter().map(Slot::resolved).chain(further).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Host(Slots);

    impl Host {
        fn with(paths: &[&str]) -> Self {
            let mut slots = Slots::default();
            for path in paths {
                slots.add(path.parse().unwrap(), CancellationToken::new());
            }
            Self(slots)
        }

        /// The interfaces are these now, of which those with a `-` have no address; returns each
        /// path with its interface.
        fn has(&mut self, names: &[&str]) -> Vec<String> {
            let names = || names.iter();
            let devices: Vec<Device> = names()
                .map(|name| Device::named(name.trim_end_matches('-')))
                .collect();
            let routable = names().filter(|name| !name.ends_with('-'));
            let routable = routable.map(|name| (*name).to_owned()).collect();
            let assigned = assign(&mut self.0, &devices, &routable);
            for number in assigned.stop {
                self.0.remove(number);
            }
            for (of, path, device) in assigned.start {
                let number = self.0.add(path, CancellationToken::new());
                let slot = self.0.get(number).unwrap();
                (slot.of, slot.device) = (Some(of), Some(device));
            }
            let shown = |slot: &Slot| {
                let device = slot.device.as_deref().unwrap_or("none");
                format!("{} {device}", slot.spec.name)
            };
            self.0.iter().map(shown).collect()
        }
    }

    #[test]
    fn a_modem_is_found_again_under_another_name() {
        let mut host = Host::with(&["wwan*,cost=2", "eth0"]);
        assert_eq!(host.has(&["eth0"]), ["wwan* none", "eth0 none"]);
        assert_eq!(host.has(&["eth0", "wwan0-"])[0], "wwan* none");
        assert_eq!(host.has(&["eth0", "wwan0"])[0], "wwan* wwan0");
        // Without an address it is still its interface.
        assert_eq!(host.has(&["eth0", "wwan0-"])[0], "wwan* wwan0");
        assert_eq!(host.has(&["eth0"])[0], "wwan* none");
        assert_eq!(host.has(&["eth0", "wwan2"])[0], "wwan* wwan2");
    }

    #[test]
    fn each_interface_that_fits_has_a_path_and_those_that_are_named_have_their_own() {
        let mut host = Host::with(&["all,except=docker0,cost=1", "wwan1,cost=2"]);
        let all = ["docker0", "eth0", "wwan0", "wwan1"];
        assert_eq!(host.has(&all), ["all eth0", "wwan1 none", "all#2 wwan0"]);
        assert_eq!(
            host.has(&["wwan0", "wwan1"]),
            ["all none", "wwan1 none", "all#2 wwan0"]
        );
        assert_eq!(host.has(&["wlan0", "wwan0"])[0], "all wlan0");
        assert_eq!(host.has(&["wlan0"]), ["all wlan0", "wwan1 none"]);
        let costs: Vec<u8> = host.0.iter().map(|slot| slot.spec.cost).collect();
        assert_eq!(costs, [1, 2]);
    }

    #[test]
    fn a_path_that_gets_no_interface_is_as_it_is_written() {
        let sysfs = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(sysfs.path().join("class/net/wwan7")).unwrap();
        // The interface is there, but has no address.
        let paths = ["wwan*,cost=2", "10.0.0.2"].map(|path| path.parse().unwrap());
        assert_eq!(assigned(&paths, &Sysfs::at(sysfs.path())), paths);
    }

    #[test]
    fn there_are_no_more_paths_than_a_session_may_have() {
        let mut host = Host::with(&["all"]);
        let many: Vec<String> = (0..40).map(|number| format!("if{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(host.has(&many).len(), MAX_PATHS);
        assert_eq!(host.has(&many).len(), MAX_PATHS);
        assert_eq!(host.has(&[]), ["all none"]);
    }
}
