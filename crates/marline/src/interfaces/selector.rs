//! Which interfaces a path may use, by what stays the same when a modem is plugged in again:
//!
//! ```text
//! wwan*         names, with * for any characters and ? for one; no loopback and TUN devices
//! usb:1-1.4     the USB port, as the system numbers it
//! mac:02:1e:10:1f:00:00
//! driver:cdc_mbim
//! all           all but loopback and TUN devices
//! ```

use std::fmt;
use std::str::FromStr;

use glob::Pattern;
use marline_base::text::Problem;

use super::sysfs::{Device, is_usb_port, mac};

/// Which of this host's interfaces fit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selector {
    by: By,
    /// Names that do not fit all the same.
    except: Vec<Pattern>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum By {
    Name(Pattern),
    Usb(String),
    Mac([u8; 6]),
    Driver(String),
    All,
}

impl Selector {
    /// Reads a selector; `None` for what is none, such as a plain name.
    ///
    /// # Errors
    /// It is one, and what follows its first word makes no sense.
    pub fn read(text: &str) -> Result<Option<Self>, Problem> {
        let by = match text.split_once(':') {
            None if text == "all" => By::All,
            None if text.contains(['*', '?']) => By::Name(pattern(text)?),
            Some(("usb", port)) => By::Usb(usb(port)?),
            Some(("mac", address)) => By::Mac(mac(address).ok_or_else(|| {
                Problem::new(format!("`{address}` is not a MAC address"))
                    .hint("write it as `ip link` shows it: mac:02:1e:10:1f:00:00")
            })?),
            Some(("driver", name)) => By::Driver(word(name)?),
            _ => return Ok(None),
        };
        let except = Vec::new();
        Ok(Some(Self { by, except }))
    }

    /// Without those whose names fit one of these, which `+` parts: `docker0+veth*`.
    ///
    /// # Errors
    /// One of them cannot be a name.
    pub fn except(mut self, names: &str) -> Result<Self, Problem> {
        self.except = names.split('+').map(pattern).collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// What [`except`](Self::except) was given, if anything.
    pub fn exceptions(&self) -> Option<String> {
        let names: Vec<&str> = self.except.iter().map(Pattern::as_str).collect();
        (!names.is_empty()).then(|| names.join("+"))
    }

    /// Does this interface fit?
    pub fn fits(&self, device: &Device) -> bool {
        let fits = match &self.by {
            // A client's own tunnel is no way to its server.
            By::Name(pattern) => !device.is_internal && pattern.matches(&device.name),
            By::Usb(port) => device.ports.contains(port),
            By::Mac(mac) => device.mac == Some(*mac),
            By::Driver(driver) => device.driver.as_ref() == Some(driver),
            By::All => !device.is_internal,
        };
        fits && !self.except.iter().any(|it| it.matches(&device.name))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.by {
            By::Name(pattern) => f.write_str(pattern.as_str()),
            By::Usb(port) => write!(f, "usb:{port}"),
            By::Driver(name) => write!(f, "driver:{name}"),
            By::All => f.write_str("all"),
            By::Mac([a, b, c, d, e, g]) => {
                write!(f, "mac:{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
            }
        }
    }
}

impl FromStr for Selector {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        Self::read(text)?.ok_or_else(|| Problem::new(format!("`{text}` selects no interfaces")))
    }
}

fn pattern(text: &str) -> Result<Pattern, Problem> {
    let wrong = || {
        Problem::new(format!("`{text}` is not a pattern of interface names"))
            .hint("write a name with * for any characters and ? for one: `wwan*`")
    };
    let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '/' | ':' | '=' | '[' | ']' | '+');
    if text.is_empty() || !text.chars().all(plain) {
        return Err(wrong());
    }
    Pattern::new(text).map_err(|_| wrong())
}

/// A port is bus-port.port..., as in /sys/bus/usb/devices.
fn usb(text: &str) -> Result<String, Problem> {
    match is_usb_port(text) {
        true => Ok(text.to_owned()),
        false => Err(Problem::new(format!("`{text}` is not a USB port"))
            .hint("write it as in /sys/bus/usb/devices: usb:1-1.4")),
    }
}

fn word(text: &str) -> Result<String, Problem> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => Ok(text.to_owned()),
        false => Err(
            Problem::new(format!("`{text}` is not the name of a driver"))
                .hint("write it as `ethtool -i` shows it: driver:cdc_mbim"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn modem(name: &str) -> Device {
        Device {
            name: name.into(),
            mac: Some([2, 0x1e, 0x10, 0x1f, 0, 0]),
            driver: Some("cdc_mbim".into()),
            ports: vec!["1-1".into(), "1-1.4".into()],
            is_internal: false,
        }
    }

    #[test]
    fn a_modem_is_known_by_what_stays_the_same() {
        for text in [
            "wwan*",
            "wwan?",
            "*",
            "usb:1-1.4",
            "mac:02:1e:10:1f:00:00",
            "driver:cdc_mbim",
            "all",
        ] {
            let selector: Selector = text.parse().unwrap();
            assert_eq!(selector.to_string(), text);
            assert!(selector.fits(&modem("wwan2")), "{text}");
            let other = Device {
                is_internal: true,
                ..Device::named("eth0")
            };
            assert!(!selector.fits(&other), "{text}");
            let without = selector.except("docker0+wwan*").unwrap();
            assert!(!without.fits(&modem("wwan2")), "{text}");
            assert_eq!(without.exceptions().unwrap(), "docker0+wwan*");
        }
        // A port is not that of the hub's other ports.
        let next: Selector = "usb:1-1.40".parse().unwrap();
        assert!(!next.fits(&modem("wwan2")));
        let capital: Selector = "mac:02:1E:10:1F:00:00".parse().unwrap();
        assert!(capital.fits(&modem("wwan2")));
    }

    #[test]
    fn what_cannot_fit_anything_is_refused() {
        for text in [
            "usb:",
            "usb:1",
            "usb:1-",
            "usb:1-1.",
            "usb:a-1",
            "mac:02:1e",
            "mac:0x:1e:10:1f:00:00",
            "mac:02:1e:10:1f:00:00:00",
            "mac:+2:1e:10:1f:00:00",
            "driver:",
            "driver:a/b",
            "a/*",
            "[*",
        ] {
            assert!(Selector::read(text).is_err(), "{text}");
        }
        for name in ["wwan0", "", "any", "10.0.0.1", "fe80::1", "pci:1"] {
            assert_eq!(Selector::read(name).unwrap(), None, "{name}");
        }
        let all: Selector = "all".parse().unwrap();
        assert!(all.except("docker0+").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}", name in "\\PC{0,20}") {
            if let Ok(Some(selector)) = Selector::read(&text) {
                selector.fits(&Device::named(&name));
                prop_assert_eq!(&selector.to_string().parse::<Selector>().unwrap(), &selector);
            }
        }
    }
}
