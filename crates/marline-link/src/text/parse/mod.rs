mod capacity;
mod delay;
mod rest;

use crate::{ConfigError, LinkConfig};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::str::FromStr;
use core::time::Duration;
use marline_base::text::units;

/// Reads no files: `trace=` is refused; see [`LinkConfig::parse_with`].
impl FromStr for LinkConfig {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        Self::parse_with(text, |_| {
            Err("traces cannot be read here; use a program that reads files".into())
        })
    }
}

impl LinkConfig {
    /// Reads the text form: `key=value`, separated by commas. Absent keys keep their default.
    ///
    /// * `rate`: `20mbit` (bit, kbit, mbit, gbit) or `unlimited`
    /// * `rate-sd`, `rate-dist`, `rate-every`, `rate-min`, `rate-phase`: the rate is drawn again
    ///   every `rate-every` with mean `rate` and this standard deviation, and is at least
    ///   `rate-min`; `normal` (default), `uniform`, `gamma` or `lognormal`
    /// * `bucket`: size of a token bucket before a constant rate, `32kB`: what passes at once after
    ///   silence
    /// * `trace`: path of a Mahimahi trace, or of a table of rates as `FILE.csv#COLUMN`, instead of
    ///   `rate`
    /// * `trace-scale`: multiplies the rates of a table
    /// * `service`, `service-sd`, `service-dist`: time for each packet, instead of `rate`;
    ///   `normal`, `gamma` or `lognormal`
    /// * `delay`: propagation delay, `15ms` (ns, us, ms, s, min)
    /// * `jitter`, `jitter-dist`: standard deviation around `delay`, `normal` (default) or `gamma`;
    ///   with `uniform` the half-width
    /// * `jitter-hold`: time for which a drawn delay holds, `200ms`, or `outage`: until an outage
    ///   has passed; a new one for each packet by default
    /// * `delay-min`: least delay; what is drawn below becomes this (normal), or the tail starts
    ///   there (gamma)
    /// * `overtake`: `yes` lets packets overtake each other; `no`
    /// * `loss`: `1%` or `0.01`, or Gilbert–Elliott `ge:TO_BAD/TO_GOOD/LOSS_IN_BAD/LOSS_IN_GOOD`
    /// * `burst`: mean length of a burst of losses in packets, with a plain `loss`
    /// * `queue`: `200ms` (at the mean rate), `100p` (packets), `64kB` (B, kB, MB, KiB, MiB),
    ///   `unlimited`
    /// * `codel`: `yes`, or `TARGET/INTERVAL` such as `5ms/100ms`; `no`
    /// * `outage`: `10s+2s` (at 10 s for 2 s; may be repeated), `10s+2s/60s` (every 60 s),
    ///   `random:30s+2s` (mean times lit and dark)
    /// * `outage-mode`: `drop` (default) or `hold`
    /// * `dup`: probability of a second copy, `0.1%`
    /// * `mtu`: largest packet in bytes, at most 65535
    /// * `seed`: a whole number
    ///
    /// `read_file` answers a trace file's text, or says why it cannot be read.
    ///
    /// # Errors
    ///
    /// An unknown or repeated key, a value that cannot be read, keys that contradict each other,
    /// or a trace that is not one. Ranges are checked by [`Link::new`](crate::Link::new).
    pub fn parse_with(
        text: &str,
        read_file: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<Self, ConfigError> {
        let parts = text.split(',').map(str::trim).filter(|p| !p.is_empty());
        Self::from_pairs(
            parts.map(|part| part.split_once('=').unwrap_or((part, ""))),
            read_file,
        )
    }

    /// As [`parse_with`](Self::parse_with), from keys and values that have been split already;
    /// here a value may hold a comma.
    ///
    /// # Errors
    ///
    /// As for [`parse_with`](Self::parse_with).
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
        read_file: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<Self, ConfigError> {
        let mut pairs = Pairs::new(pairs)?;
        let config = Self {
            capacity: capacity::capacity(&mut pairs, read_file)?,
            redraw: delay::redraw(&mut pairs)?,
            delay: delay::delay(&mut pairs)?,
            overtaking: pairs.yes_or_no("overtake")?.unwrap_or(false),
            loss: rest::loss(&mut pairs)?,
            queue: rest::queue(&mut pairs)?,
            codel: rest::codel(&mut pairs)?,
            outages: rest::outages(&mut pairs)?,
            outage_mode: rest::outage_mode(&mut pairs)?,
            duplicate: pairs.share("dup")?.unwrap_or(0.0),
            mtu: pairs.whole("mtu")?,
            seed: pairs.whole("seed")?,
            replay: None,
        };
        pairs.finish()?;
        Ok(config)
    }
}

/// The pairs that have not been used yet.
struct Pairs<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Pairs<'a> {
    fn new(given: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, ConfigError> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for (key, value) in given {
            let (key, value) = (key.trim(), value.trim());
            if !LinkConfig::KEYS.iter().any(|known| known.name == key) {
                let known: Vec<&str> = LinkConfig::KEYS.iter().map(|known| known.name).collect();
                return Err(ConfigError::new(
                    key,
                    value,
                    format!("no such key; known are {}", known.join(", ")),
                ));
            }
            if key != "outage" && pairs.iter().any(|(k, _)| *k == key) {
                return Err(ConfigError::new(key, value, "given twice; remove one"));
            }
            pairs.push((key, value));
        }
        Ok(Self(pairs))
    }

    fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(k, _)| *k == key)
    }

    fn take(&mut self, key: &str) -> Option<&'a str> {
        let i = self.0.iter().position(|(k, _)| *k == key)?;
        Some(self.0.remove(i).1)
    }

    fn take_as<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&str) -> Option<T>,
        accepted: &str,
    ) -> Result<Option<T>, ConfigError> {
        self.take(key)
            .map(|value| read(value).ok_or_else(|| ConfigError::new(key, value, accepted)))
            .transpose()
    }

    fn time(&mut self, key: &str) -> Result<Option<Duration>, ConfigError> {
        self.take_as(key, units::time, units::A_TIME)
    }

    fn share(&mut self, key: &str) -> Result<Option<f64>, ConfigError> {
        self.take_as(key, units::share, units::A_SHARE)
    }

    fn whole<T: FromStr>(&mut self, key: &str) -> Result<Option<T>, ConfigError> {
        let accepted = "not a whole number, or too large";
        self.take_as(key, |value| value.parse().ok(), accepted)
    }

    fn yes_or_no(&mut self, key: &str) -> Result<Option<bool>, ConfigError> {
        let read = |value: &str| match value {
            "" | "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        };
        self.take_as(key, read, "give yes or no")
    }

    /// Fails when one of `keys` is left, which make sense only together with `with`.
    fn refuse(&self, keys: &[&str], with: &str) -> Result<(), ConfigError> {
        match self.0.iter().find(|(key, _)| keys.contains(key)) {
            Some((key, value)) => Err(ConfigError::new(key, value, with)),
            None => Ok(()),
        }
    }

    fn finish(self) -> Result<(), ConfigError> {
        match self.0.first() {
            Some((key, value)) => Err(ConfigError::new(
                key,
                value,
                "cannot be combined with the other keys",
            )),
            None => Ok(()),
        }
    }
}
