//! What both ends of a connection are given before it starts.

use std::fmt;

use marline_base::Rate;
use marline_proto::congestion::registry::{self, CONTROLLERS, Entry};

/// A connection's parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpConfig {
    /// Name of the congestion controller in [`marline_proto::congestion::registry`].
    pub controller: String,
    /// Rate for the controllers that need one (`fixed`).
    pub controller_rate: Option<Rate>,
    /// Largest payload of a segment (bytes), 1000 to 65 000.
    pub mss: u32,
    /// Headers of a segment on the wire (bytes), at least [`TcpConfig::MIN_HEADER`].
    pub header: u32,
    /// Payload bytes to send in all; `None` never ends.
    pub limit: Option<u64>,
    /// Rate at which the application writes; `None` is faster than any network.
    pub rate: Option<Rate>,
    /// Receive window (bytes), at least two segments. The application reads at once, so this much
    /// may be on its way or out of order.
    pub window: u64,
}

impl TcpConfig {
    /// Least [`TcpConfig::header`]: the byte form of what TCP itself needs has this length.
    pub const MIN_HEADER: u32 = 40;

    /// A greedy connection as over Ethernet: 1448 bytes of payload behind 52 bytes of IPv4, TCP
    /// and timestamps, and the 6 MiB that Linux lets a receive window grow to.
    pub fn new(controller: &str) -> Self {
        Self {
            controller: controller.to_owned(),
            controller_rate: None,
            mss: 1_448,
            header: 52,
            limit: None,
            rate: None,
            window: 6 << 20,
        }
    }

    /// Checks everything and finds the controller.
    pub(super) fn check(&self) -> Result<&'static Entry, TcpConfigError> {
        let Some(entry) = registry::find(&self.controller) else {
            let names: Vec<_> = CONTROLLERS.iter().map(|entry| entry.name).collect();
            let accepted = format!("must be one of {}", names.join(", "));
            return Err(TcpConfigError::new(
                "controller",
                &self.controller,
                accepted,
            ));
        };
        if entry.needs_rate && self.controller_rate.is_none_or(|rate| rate == Rate::ZERO) {
            let accepted = format!("must be more than zero for controller {}", entry.name);
            return Err(TcpConfigError::new("controller_rate", "none", accepted));
        }
        range("mss", u64::from(self.mss), 1_000, 65_000)?;
        let header = u64::from(Self::MIN_HEADER);
        range("header", u64::from(self.header), header, 400)?;
        range("window", self.window, 2 * u64::from(self.mss), 1 << 30)?;
        if self.rate == Some(Rate::ZERO) {
            return Err(TcpConfigError::new(
                "rate",
                self.rate.unwrap_or_default(),
                "must be more than zero, or absent for an application without limit",
            ));
        }
        Ok(entry)
    }
}

fn range(key: &'static str, value: u64, least: u64, most: u64) -> Result<(), TcpConfigError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let accepted = format!("must be from {least} to {most} bytes");
    Err(TcpConfigError::new(key, value, accepted))
}

/// A parameter of a connection that cannot be used: which, what it was, what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpConfigError {
    key: &'static str,
    value: String,
    accepted: String,
}

impl TcpConfigError {
    fn new(key: &'static str, value: impl ToString, accepted: impl Into<String>) -> Self {
        Self {
            key,
            value: value.to_string(),
            accepted: accepted.into(),
        }
    }

    /// The field of [`TcpConfig`].
    pub const fn key(&self) -> &'static str {
        self.key
    }
}

impl fmt::Display for TcpConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}: {}", self.key, self.value, self.accepted)
    }
}

impl std::error::Error for TcpConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(change: impl FnOnce(&mut TcpConfig)) -> String {
        let mut config = TcpConfig::new("cubic");
        assert!(config.check().is_ok());
        change(&mut config);
        config.check().unwrap_err().to_string()
    }

    #[test]
    fn mistakes_name_the_key_and_the_mend() {
        let text = error(|c| c.controller = "vegas".into());
        assert!(text.starts_with("controller=vegas: must be one of bbr, "));
        assert_eq!(
            error(|c| c.mss = 999),
            "mss=999: must be from 1000 to 65000 bytes"
        );
        assert_eq!(
            error(|c| c.header = 39),
            "header=39: must be from 40 to 400 bytes"
        );
        assert_eq!(
            error(|c| c.window = 2_895),
            "window=2895: must be from 2896 to 1073741824 bytes"
        );
        assert!(error(|c| c.rate = Some(Rate::ZERO)).starts_with("rate=0 bit/s: "));
        assert_eq!(
            error(|c| c.controller = "fixed".into()),
            "controller_rate=none: must be more than zero for controller fixed"
        );
    }
}
