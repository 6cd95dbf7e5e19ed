use std::fmt;
use std::str::FromStr;

/// Which TCP connections are carried as objects instead of as streams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AsObjects {
    /// None.
    #[default]
    Off,
    /// Those to ports of protocols whose objects are known: HTTP, and what TLS is usual for.
    Auto,
    /// All.
    On,
}

/// Ports of HTTP, and of protocols over TLS from the first byte (the service names of IANA).
const PORTS: [u16; 16] = [
    80, 443, 465, 563, 636, 853, 989, 990, 992, 993, 995, 5061, 8000, 8008, 8080, 8443,
];

impl AsObjects {
    /// As they are written.
    pub const NAMES: [&'static str; 3] = ["off", "auto", "on"];

    /// Is a connection to this port carried as objects?
    pub fn applies(self, port: u16) -> bool {
        match self {
            AsObjects::Off => false,
            AsObjects::Auto => PORTS.contains(&port),
            AsObjects::On => true,
        }
    }
}

impl fmt::Display for AsObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES[*self as usize])
    }
}

impl FromStr for AsObjects {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "off" => Ok(AsObjects::Off),
            "auto" => Ok(AsObjects::Auto),
            "on" => Ok(AsObjects::On),
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_known_protocols_are_carried_as_objects_by_themselves() {
        assert!(PORTS.is_sorted());
        for name in AsObjects::NAMES {
            assert_eq!(name.parse::<AsObjects>().unwrap().to_string(), name);
        }
        for (mode, port, applies) in [
            (AsObjects::Auto, 443, true),
            (AsObjects::Auto, 22, false),
            (AsObjects::On, 22, true),
            (AsObjects::Off, 443, false),
        ] {
            assert_eq!(mode.applies(port), applies, "{mode} {port}");
        }
    }
}
