//! Keys of one direction over keys of both.

use alloc::vec::Vec;

use crate::LinkConfig;

/// Given to a link that has a capacity and no queue of its own: without a bound, delays grow
/// without one.
const DEFAULT_QUEUE: (&str, &str) = ("queue", "200ms");

impl LinkConfig {
    /// Keys that say how fast the link is.
    pub const CAPACITY_KEYS: &'static [&'static str] = &[
        "rate",
        "rate-sd",
        "rate-dist",
        "rate-min",
        "rate-every",
        "rate-phase",
        "bucket",
        "trace",
        "trace-scale",
        "service",
        "service-sd",
        "service-dist",
    ];

    /// The keys and values of one direction: its `own`, and what `both` directions share. A key of
    /// its own replaces the shared one; any of its own capacity keys replace all shared ones. A
    /// link with a capacity and no queue gets one of 200 ms.
    pub fn layered<'a>(
        own: &[(&'a str, &'a str)],
        both: &[(&'a str, &'a str)],
    ) -> Vec<(&'a str, &'a str)> {
        let of_capacity = |key: &str| Self::CAPACITY_KEYS.contains(&key);
        let replaced = |key: &str| {
            own.iter()
                .any(|(other, _)| *other == key || of_capacity(other) && of_capacity(key))
        };
        let shared = both.iter().filter(|(key, _)| !replaced(key));
        let mut pairs: Vec<_> = own.iter().chain(shared).copied().collect();
        let limited = pairs
            .iter()
            .any(|pair| of_capacity(pair.0) && *pair != ("rate", "unlimited"));
        if limited && !pairs.iter().any(|(key, _)| *key == "queue") {
            pairs.push(DEFAULT_QUEUE);
        }
        pairs
    }
}
