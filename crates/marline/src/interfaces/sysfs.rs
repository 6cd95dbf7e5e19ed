//! What Linux tells of its network devices as files (Documentation/ABI/testing/sysfs-class-net).

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// `ARPHRD_LOOPBACK` of linux/if_arp.h.
const LOOPBACK: &str = "772";

/// Longest attribute that is read, bytes: sysfs gives a page at most (Documentation/filesystems/
/// sysfs.rst).
const MAX_ATTRIBUTE: u64 = 4096;

/// A network interface, and what it is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its name now.
    pub name: String,
    /// Its hardware address.
    pub mac: Option<[u8; 6]>,
    /// Its driver.
    pub driver: Option<String>,
    /// The USB ports that lead to it, the host's first.
    pub ports: Vec<String>,
    /// It leads nowhere, or into a tunnel: loopback and TUN devices.
    pub is_internal: bool,
}

impl Device {
    /// One of which only the name is known.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            mac: None,
            driver: None,
            ports: Vec::new(),
            is_internal: false,
        }
    }
}

/// The system's files, usually at `/sys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sysfs(PathBuf);

impl Default for Sysfs {
    fn default() -> Self {
        Self::at("/sys")
    }
}

impl Sysfs {
    /// Those below this folder.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self(root.into())
    }

    /// All interfaces in the order of their names; none where the system has no such files.
    pub fn devices(&self) -> Vec<Device> {
        let entries = fs::read_dir(self.0.join("class/net"));
        let entries = entries.into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut devices: Vec<Device> = names.map(|name| self.device(name)).collect();
        devices.sort_by(|a, b| a.name.cmp(&b.name));
        devices
    }

    /// What an attribute of an interface says, without the white space around it; `None` where it
    /// cannot be read, as that of an interface that is not there.
    pub fn attribute(&self, device: &str, attribute: &str) -> Option<String> {
        // No name leads out of the folder.
        if device.is_empty() || device.contains('/') || device == "." || device == ".." {
            return None;
        }
        let file = self.0.join("class/net").join(device).join(attribute);
        let mut bytes = Vec::new();
        let file = fs::File::open(file).ok()?;
        file.take(MAX_ATTRIBUTE).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    fn device(&self, name: String) -> Device {
        let folder = self.0.join("class/net").join(&name);
        let line = |file: &str| self.attribute(&name, file).unwrap_or_default();
        let hardware = folder.join("device");
        Device {
            // Devices without one, such as TUN devices, show none, or zeros.
            mac: mac(&line("address")).filter(|mac| *mac != [0; 6]),
            driver: last_word(&hardware.join("driver")),
            ports: ports(&hardware),
            is_internal: line("type") == LOOPBACK || folder.join("tun_flags").exists(),
            name,
        }
    }
}

/// The last word of where a link leads.
fn last_word(link: &Path) -> Option<String> {
    let target = fs::canonicalize(link).ok()?;
    Some(target.file_name()?.to_str()?.to_owned())
}

/// The USB ports in the real place of a device:
/// `.../usb1/1-1/1-1.4/1-1.4:1.0` is behind `1-1` and `1-1.4`.
fn ports(hardware: &Path) -> Vec<String> {
    let place = fs::canonicalize(hardware).unwrap_or_default();
    let words = place.iter().filter_map(|word| word.to_str());
    words
        .filter(|word| is_usb_port(word))
        .map(str::to_owned)
        .collect()
}

/// Is this a USB port, bus-port.port..., as in /sys/bus/usb/devices?
pub(super) fn is_usb_port(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let parts = text.split_once('-');
    parts.is_some_and(|(bus, ports)| is_number(bus) && ports.split('.').all(is_number))
}

/// Six bytes of two hexadecimal digits each, with colons in between.
pub(super) fn mac(text: &str) -> Option<[u8; 6]> {
    let mut parts = text.split(':');
    let mut address = [0; 6];
    for byte in &mut address {
        let part = parts.next()?;
        let is_hex = part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
        *byte = u8::from_str_radix(part, 16).ok().filter(|_| is_hex)?;
    }
    parts.next().is_none().then_some(address)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn devices_are_read_from_a_tree() {
        let root = tempfile::tempdir().unwrap();
        let net = root.path().join("class/net");
        let usb = root.path().join("devices/usb1/1-1/1-1.4/1-1.4:1.0");
        let driver = root.path().join("bus/usb/drivers/cdc_mbim");
        for folder in [
            &usb,
            &driver,
            &net.join("wwan2"),
            &net.join("lo"),
            &net.join("tun0"),
        ] {
            fs::create_dir_all(folder).unwrap();
        }
        symlink(&usb, net.join("wwan2/device")).unwrap();
        symlink(&driver, usb.join("driver")).unwrap();
        for (file, text) in [
            ("wwan2/address", "02:1e:10:1f:00:01\n"),
            ("wwan2/type", "1\n"),
            ("lo/address", "00:00:00:00:00:00\n"),
            ("lo/type", "772\n"),
            ("tun0/tun_flags", "0x1001\n"),
        ] {
            fs::write(net.join(file), text).unwrap();
        }
        let found = Sysfs::at(root.path()).devices();
        let internal = |name: &str| Device {
            is_internal: true,
            ..Device::named(name)
        };
        let modem = Device {
            name: "wwan2".into(),
            mac: Some([2, 0x1e, 0x10, 0x1f, 0, 1]),
            driver: Some("cdc_mbim".into()),
            ports: vec!["1-1".into(), "1-1.4".into()],
            is_internal: false,
        };
        assert_eq!(found, [internal("lo"), internal("tun0"), modem]);
        let sysfs = Sysfs::at(root.path());
        let address = |device: &str| sysfs.attribute(device, "address");
        assert_eq!(address("wwan2").as_deref(), Some("02:1e:10:1f:00:01"));
        for odd in ["", ".", "..", "../net/wwan2", "none"] {
            assert_eq!(address(odd), None, "{odd}");
        }
        assert!(Sysfs::at("/nowhere").devices().is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_host_has_a_loopback_device() {
        let all = Sysfs::default().devices();
        let lo = all.iter().find(|device| device.name == "lo").unwrap();
        assert!(lo.is_internal);
    }
}
