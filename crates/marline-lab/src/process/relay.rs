//! `marline link` as a child process.

use super::{END_WITH_STDIN, Process, ProcessError};
use marline_link::LinkConfig;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// A running relay.
#[derive(Debug)]
pub struct Relay {
    process: Process,
    /// Where it listens.
    pub addr: SocketAddr,
}

impl Relay {
    /// A relay to `target` over the link that `flags` describe ([`link_flags`]).
    pub fn start(
        name: &str,
        flags: Vec<String>,
        target: &str,
        seed: u64,
        folder: &Path,
        stop: &AtomicBool,
    ) -> Result<Self, ProcessError> {
        let mut words = ["link", END_WITH_STDIN, "--json", "--to", target]
            .map(str::to_owned)
            .to_vec();
        words.push(format!("--seed={seed}"));
        words.extend(flags);
        let name = format!("the relay of link {name}");
        let mut process = Process::start(&name, folder, &words)?;
        let addr = process.said("its address", stop, |line| {
            let (_, after) = line.split_once("relaying ")?;
            after.split_once(" to ")?.0.parse().ok()
        })?;
        Ok(Self { process, addr })
    }

    /// Ends it; how late it sent datagrams (99th percentile, ms).
    pub fn end(self, stop: &AtomicBool) -> Result<f64, ProcessError> {
        lateness(&self.process.end(stop)?)
    }
}

/// The flags of `marline link` for a link's two directions.
pub fn link_flags(up: &LinkConfig, down: &LinkConfig) -> Vec<String> {
    let mut flags = Vec::new();
    for (direction, config) in [("up", up), ("down", down)] {
        for pair in config.to_string().split(',') {
            let (key, value) = pair.split_once('=').unwrap_or((pair, "yes"));
            flags.push(format!("--{direction}-{key}={value}"));
        }
    }
    flags
}

/// How late a relay was, from its statistics.
fn lateness(printed: &str) -> Result<f64, ProcessError> {
    // Lines of the log may come between.
    let start = printed.find("{\n").unwrap_or(0);
    let end = printed.rfind("\n}").map_or(printed.len(), |end| end + 2);
    let stats: serde_json::Value = serde_json::from_str(&printed[start..end.max(start)])?;
    let micros = stats["lateness_us"]["p99"].as_f64().unwrap_or(f64::NAN);
    Ok(micros / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relays_statistics_are_found_among_its_words() {
        let printed = "INFO bye\n{\n  \"lateness_us\": {\n    \"p99\": 250.0\n  }\n}\nmore\n";
        assert_eq!(lateness(printed).unwrap(), 0.25);
        assert!(lateness("nothing").is_err());
    }
}
