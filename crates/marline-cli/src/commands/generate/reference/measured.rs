//! What the simulator can do and measure.

/// The page; without the simulator there is nothing to say.
#[cfg(not(feature = "experiments"))]
pub(super) fn page() -> String {
    "# The simulator's measures\n\nThis program has no simulator.\n".to_owned()
}

#[cfg(feature = "experiments")]
pub(super) fn page() -> String {
    use super::row;
    use marline_sim::measure::{CATALOGUE, Scope};
    use marline_sim::scenario::KINDS;

    let mut text = "\
# The simulator's workloads and measures

Tables, plots, JSON and bounds name a measure after what it is measured of: \
`live.in_order_delay.p99_ms`, `path.dsl.throughput_mbps`.

## Workloads

| kind | | keys |
| --- | --- | --- |
"
    .to_owned();
    for kind in KINDS {
        let (name, keys) = (format!("`{}`", kind.name), format!("`{}`", kind.keys));
        row(&mut text, &[&name, kind.help, &keys]);
    }
    text.push_str("\n## Measures\n\n| measure | unit | | values |\n| --- | --- | --- | --- |\n");
    for entry in CATALOGUE {
        let of = match entry.scope {
            Scope::Workload => "WORKLOAD",
            Scope::Path => "path.NAME",
            Scope::Link => "link.NAME",
            Scope::Cross => "cross.NAME",
        };
        let name = format!("`{of}.{}`", entry.name);
        let values = match entry.values() {
            values if values.is_empty() => "over time only".to_owned(),
            values => format!("`{}`", values.join("`, `")),
        };
        row(&mut text, &[&name, entry.unit, entry.help, &values]);
    }
    text
}
