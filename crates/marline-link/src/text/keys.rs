use crate::LinkConfig;

/// A key of the text form, for programs that offer each as a flag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// The key.
    pub name: &'static str,
    /// What stands for its value in a usage line.
    pub value: &'static str,
    /// One line of help without a full stop.
    pub help: &'static str,
}

const fn key(name: &'static str, value: &'static str, help: &'static str) -> Key {
    Key { name, value, help }
}

impl LinkConfig {
    /// Every key of the text form, in the order in which they are written.
    pub const KEYS: &'static [Key] = &[
        key(
            "rate",
            "RATE",
            "Rate, such as 20mbit (bit, kbit, mbit, gbit a second), or unlimited",
        ),
        key(
            "rate-sd",
            "RATE",
            "Draw the rate anew every interval, with this standard deviation",
        ),
        key(
            "rate-dist",
            "NAME",
            "Distribution of the rate: normal, uniform, gamma, lognormal",
        ),
        key("rate-min", "RATE", "Least rate that is drawn"),
        key(
            "rate-every",
            "TIME",
            "Interval after which the rate is drawn anew",
        ),
        key(
            "rate-phase",
            "TIME",
            "How far the first interval has run at the start",
        ),
        key(
            "bucket",
            "SIZE",
            "Token bucket before a constant rate, such as 32kB: as much passes at once after silence",
        ),
        key(
            "trace",
            "FILE",
            "Recorded capacity instead of a rate: a Mahimahi trace, or a table of rates as FILE.csv#COLUMN",
        ),
        key(
            "trace-scale",
            "FACTOR",
            "Multiply the rates of a table, such as 0.1",
        ),
        key(
            "service",
            "TIME",
            "Mean time for each packet whatever its size, instead of a rate",
        ),
        key(
            "service-sd",
            "TIME",
            "Standard deviation of the service time",
        ),
        key(
            "service-dist",
            "NAME",
            "Distribution of the service time: normal, gamma, lognormal",
        ),
        key(
            "delay",
            "TIME",
            "One-way propagation delay, such as 15ms (ns, us, ms, s, min)",
        ),
        key(
            "jitter",
            "TIME",
            "Standard deviation of the delay; half its width if it is uniform",
        ),
        key(
            "jitter-dist",
            "NAME",
            "Distribution of the delay: normal, uniform, gamma",
        ),
        key(
            "jitter-hold",
            "TIME",
            "Hold a drawn delay for this time, or until an outage has passed (outage)",
        ),
        key("delay-min", "TIME", "Least delay"),
        key(
            "overtake",
            "YES",
            "Let packets overtake each other: yes, no",
        ),
        key(
            "loss",
            "SHARE",
            "Random loss: 1%, 0.01, or ge:TO_BAD/TO_GOOD/LOSS_IN_BAD/LOSS_IN_GOOD (Gilbert-Elliott)",
        ),
        key("burst", "PACKETS", "Mean length of a burst of losses"),
        key(
            "queue",
            "LENGTH",
            "Queue: 200ms (at the mean rate), 100p (packets), 64kB, unlimited",
        ),
        key(
            "codel",
            "TIMES",
            "CoDel on the queue: yes, no, or TARGET/INTERVAL such as 5ms/100ms",
        ),
        key(
            "outage",
            "TIMES",
            "Darkness: 10s+2s (at 10 s for 2 s), 10s+2s/60s (every 60 s), random:30s+2s (mean times lit and dark)",
        ),
        key(
            "outage-mode",
            "NAME",
            "What an outage does to waiting packets: drop, hold",
        ),
        key("dup", "SHARE", "Probability that a packet arrives twice"),
        key("mtu", "BYTES", "Largest packet"),
        key("seed", "NUMBER", "Seed of everything random"),
    ];
}
