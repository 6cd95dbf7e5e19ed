use std::fmt;
use std::str::FromStr;

/// What may carry a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CarrierChoice {
    /// QUIC, or TLS over TCP where QUIC does not get through.
    #[default]
    Auto,
    /// QUIC only.
    Quic,
    /// TLS over TCP only.
    Tcp,
}

/// Every choice by its name.
const CHOICES: [(&str, CarrierChoice); 3] = [
    ("auto", CarrierChoice::Auto),
    ("quic", CarrierChoice::Quic),
    ("tcp", CarrierChoice::Tcp),
];

impl fmt::Display for CarrierChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = CHOICES.iter().find(|(_, choice)| choice == self);
        f.write_str(name.map_or("auto", |(name, _)| name))
    }
}

impl FromStr for CarrierChoice {
    /// What could have been chosen.
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = CHOICES.iter().find(|(name, _)| *name == text);
        found.map(|(_, choice)| *choice).ok_or("auto, quic or tcp")
    }
}

/// What carries a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarrierKind {
    /// QUIC datagrams.
    Quic,
    /// TLS over TCP.
    Tcp,
    /// The process itself.
    Memory,
}

impl CarrierKind {
    /// Its name: `quic`, `tcp` or `memory`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Quic => "quic",
            Self::Tcp => "tcp",
            Self::Memory => "memory",
        }
    }
}
