//! Units, from the names of measures.

/// What a measure's name ends with, and the unit that it means.
const SUFFIXES: [(&str, &str); 12] = [
    ("_mbps", "Mb/s"),
    ("_kbps", "kb/s"),
    ("_us", "µs"),
    ("_ms", "ms"),
    ("_s", "s"),
    ("_bytes", "B"),
    ("_kb", "kB"),
    ("_mb", "MB"),
    ("_percent", "%"),
    ("_packets", "packets"),
    ("_per_s", "1/s"),
    ("_hz", "Hz"),
];

/// The unit of a measure as its name says it (`…_ms`, `…_mbps`); empty for counts and ratios.
pub fn unit(measure: &str) -> &'static str {
    SUFFIXES
        .iter()
        .filter(|(suffix, _)| measure.ends_with(suffix))
        .max_by_key(|(suffix, _)| suffix.len())
        .map_or("", |(_, unit)| unit)
}

#[cfg(test)]
mod tests {
    use super::unit;

    #[test]
    fn the_longest_ending_counts() {
        assert_eq!(unit("path.a.throughput_mbps"), "Mb/s");
        assert_eq!(unit("video.in_order_delay.p99_ms"), "ms");
        assert_eq!(unit("losses_per_s"), "1/s");
        assert_eq!(unit("video.stall_s"), "s");
        assert_eq!(unit("video.late"), "");
        assert_eq!(unit("redundancy"), "");
    }
}
