//! The text form of a link, such as `rate=20mbit,delay=15ms,jitter=3ms,loss=1%,queue=200ms`.

mod parse;
mod show;
mod units;

#[cfg(test)]
mod tests;

/// Every key, in the order in which they are written.
const KEYS: &[&str] = &[
    "rate",
    "rate-sd",
    "rate-min",
    "rate-every",
    "rate-phase",
    "trace",
    "service",
    "service-sd",
    "service-dist",
    "delay",
    "jitter",
    "jitter-dist",
    "delay-min",
    "overtake",
    "loss",
    "burst",
    "queue",
    "codel",
    "outage",
    "outage-mode",
    "dup",
    "mtu",
    "seed",
];
