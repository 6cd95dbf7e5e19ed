use ipnet::IpNet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where `ip netns` keeps the namespaces that it made.
const NAMESPACES: &str = "/run/netns";
/// Longest name of a device, in bytes: the kernel's IFNAMSIZ without the end.
const LONGEST: usize = 15;

/// One end of a link between devices, as text `DEVICE[@NAMESPACE][=ADDRESS/BITS]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The TUN device, which is made if there is none.
    pub device: String,
    /// The network namespace it is in: one of `ip netns`, or the path of one, as
    /// `/proc/PID/ns/net`. By default this program's.
    pub namespace: Option<String>,
    /// The address that the device gets, with the length of its network's prefix. Without one the
    /// device has those that somebody else gives it.
    pub address: Option<IpNet>,
}

/// A text that is no [`Place`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlaceError {
    /// The device's name.
    #[error("a device has a name of 1 to 15 letters, digits, - and _, as in wan0@van=10.9.0.1/30")]
    Device,
    /// There is nothing behind the `@`.
    #[error("a namespace's name follows the @, as in wan0@van=10.9.0.1/30")]
    Namespace,
    /// What follows the `=`.
    #[error(
        "{0:?} is no address with a prefix's length: give two of one network to the two ends, such as 10.9.0.1/30 and \
         10.9.0.2/30"
    )]
    Address(String),
}

impl Place {
    /// The file that stands for the namespace, if one is named.
    pub fn namespace_file(&self) -> Option<PathBuf> {
        let namespace = self.namespace.as_deref()?;
        // An absolute path replaces the folder.
        Some(Path::new(NAMESPACES).join(namespace))
    }
}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let (place, address) = match text.split_once('=') {
            Some((place, address)) => (place, Some(address)),
            None => (text, None),
        };
        let (device, namespace) = match place.split_once('@') {
            Some((device, namespace)) => (device, Some(namespace)),
            None => (place, None),
        };
        let usual = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let starts = |c: char| c.is_ascii_alphanumeric();
        if device.len() > LONGEST || !device.starts_with(starts) || !device.chars().all(usual) {
            return Err(PlaceError::Device);
        }
        if namespace == Some("") {
            return Err(PlaceError::Namespace);
        }
        let net = |text: &str| {
            let refused = |_| PlaceError::Address(text.to_owned());
            text.parse().map_err(refused)
        };
        Ok(Self {
            device: device.to_owned(),
            namespace: namespace.map(str::to_owned),
            address: address.map(net).transpose()?,
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.device)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "@{namespace}")?;
        }
        match self.address {
            Some(address) => write!(f, "={address}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_left_to_others() {
        for text in [
            "wan0@van=10.9.0.1/30",
            "wan0@van",
            "wan0=fd09::1/64",
            "wan0",
            "wan0@/proc/7/ns/net=10.9.0.1/30",
        ] {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
        }
        let file = |text: &str| text.parse::<Place>().unwrap().namespace_file();
        assert_eq!(file("wan0"), None);
        assert_eq!(file("wan0@van"), Some("/run/netns/van".into()));
        let by_process = Some("/proc/7/ns/net".into());
        assert_eq!(file("wan0@/proc/7/ns/net"), by_process);
    }

    #[test]
    fn errors_show_what_is_right() {
        for (text, part) in [
            ("", "a device has a name"),
            ("a device@van", "a device has a name"),
            ("a-name-that-is-long", "1 to 15"),
            ("../wan0", "a device has a name"),
            ("wan0@=10.9.0.1/30", "follows the @"),
            ("wan0@van=10.9.0.1", "\"10.9.0.1\" is no address with"),
            ("wan0@van=", "10.9.0.1/30 and 10.9.0.2/30"),
        ] {
            let error = text.parse::<Place>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
