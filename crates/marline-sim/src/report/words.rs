//! Measures in words, for titles and axes.

use crate::measure::{CATALOGUE, Entry, Form, Scope};
use crate::results::unit;

/// A measure's full name in words and with its unit: `live: delay in order, 99th percentile (ms)`.
pub(crate) fn titled(measure: &str) -> String {
    format!("{} ({})", words(measure), unit_in_words(measure))
}

/// A measure's full name in words: `live: delay in order, 99th percentile`.
pub(crate) fn words(measure: &str) -> String {
    let Some((of, entry, ending)) = parts(measure) else {
        return plain(measure);
    };
    let of = match entry.scope {
        Scope::Workload => of.to_owned(),
        Scope::Path | Scope::Link | Scope::Cross => of.replacen('.', " ", 1),
    };
    let of = if of.is_empty() { of } else { format!("{of}: ") };
    match statistic(ending) {
        Some(statistic) => format!("{of}{}, {statistic}", entry.words),
        None => format!("{of}{}", entry.words),
    }
}

/// A measure in words and with its unit, whatever it is measured of: `delay in order (ms)`.
pub(crate) fn quantity(measure: &str) -> String {
    let all = titled(measure);
    match parts(measure) {
        Some((of, ..)) if !of.is_empty() => match all.split_once(": ") {
            Some((_, quantity)) => quantity.to_owned(),
            None => all,
        },
        _ => all,
    }
}

/// The unit of a measure; what is counted or divided has words instead.
pub(crate) fn unit_in_words(measure: &str) -> &'static str {
    let known = parts(measure).filter(|(_, _, ending)| *ending != "count");
    match (unit(measure), known) {
        ("", Some((_, entry, _))) if entry.form == Form::Fraction => "share",
        ("", Some((_, entry, _))) if !entry.unit.is_empty() => entry.unit,
        ("", Some(_)) => "ratio",
        ("", None) => "number",
        (unit, _) => unit,
    }
}

/// What it is measured of, the row of the table, and which statistic it is; none for what the
/// table does not have.
fn parts(measure: &str) -> Option<(&str, &'static Entry, &str)> {
    let mut from = 0;
    loop {
        // A workload may have a measure's name.
        let rest = &measure[from..];
        let (name, ending) = rest.split_once('.').unwrap_or((rest, ""));
        let scope = match measure.split('.').next() {
            Some("path") => Scope::Path,
            Some("link") => Scope::Link,
            Some("cross") => Scope::Cross,
            _ => Scope::Workload,
        };
        let mut rows = CATALOGUE.iter();
        if let Some(row) = rows.find(|row| row.name == name && row.scope == scope) {
            return Some((measure[..from].trim_end_matches('.'), row, ending));
        }
        from += name.len() + 1;
        if from > measure.len() {
            return None;
        }
    }
}

fn statistic(ending: &str) -> Option<String> {
    let name = ending.split('_').next().unwrap_or_default();
    Some(match name {
        "" => return None,
        "mean" => "mean".to_owned(),
        "sd" => "standard deviation".to_owned(),
        "min" => "smallest".to_owned(),
        "max" => "largest".to_owned(),
        "p50" => "median".to_owned(),
        "p999" => "99.9th percentile".to_owned(),
        "count" => "how many".to_owned(),
        percentile => match percentile.strip_prefix('p').map(str::parse::<u32>) {
            Some(Ok(percent)) => format!("{percent}th percentile"),
            _ => plain(ending),
        },
    })
}

/// A name without what only programs need, and without its unit.
fn plain(name: &str) -> String {
    let end = match unit(name) {
        "" => name.len(),
        _ => name.rfind('_').unwrap_or(name.len()),
    };
    name[..end].replace(['.', '_'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_words_with_units() {
        for (measure, expected) in [
            (
                "live.in_order_delay.p99_ms",
                "live: delay in order, 99th percentile (ms)",
            ),
            (
                "live.in_order_delay.p50_ms",
                "live: delay in order, median (ms)",
            ),
            ("live.in_order_delay", "live: delay in order (ms)"),
            ("live.goodput_mbps", "live: goodput (Mb/s)"),
            ("live.redundancy", "live: redundancy (ratio)"),
            (
                "live.out_of_order.mean_kb",
                "live: what waits for earlier bytes, mean (kB)",
            ),
            ("path.wifi.lost", "path wifi: packets lost (share)"),
            (
                "link.lte.queue_down",
                "link lte: queue towards the client (kB)",
            ),
            (
                "live.in_order_delay.count",
                "live: delay in order, how many (number)",
            ),
            ("throughput_mbps", "throughput (Mb/s)"),
            ("path.window_kb", "path: congestion window (kB)"),
            ("blocks.calibration.d9", "blocks calibration d9 (number)"),
            ("video.stall_s", "video stall (s)"),
        ] {
            assert_eq!(titled(measure), expected);
        }
    }

    #[test]
    fn a_quantity_says_not_whose_it_is() {
        assert_eq!(quantity("path.wifi.srtt_ms"), "smoothed round trip (ms)");
        assert_eq!(quantity("live.goodput_mbps"), "goodput (Mb/s)");
        assert_eq!(quantity("cwnd"), "cwnd (number)");
    }

    #[test]
    fn every_measure_has_words_of_its_own() {
        for row in CATALOGUE {
            assert!(!row.words.contains('_') && !row.words.is_empty());
            let same = CATALOGUE
                .iter()
                .filter(|other| (other.scope, other.words) == (row.scope, row.words));
            assert_eq!(same.count(), 1, "{}", row.words);
        }
    }
}
