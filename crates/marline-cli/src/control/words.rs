//! Figures and texts about a running program, in few columns.

use marline_apps::live::Content;

/// What is not known, or of nothing.
pub(crate) fn unknown() -> String {
    "-".to_owned()
}

/// In at most eight columns: `999.9 MB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if count < 1000 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1e3;
    let mut unit = 0;
    // What is rounded up to 1000.0 is one of the next unit.
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1e3;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A number of one decimal, in at most six columns: of large ones without it, or as `1.8e13`.
pub(crate) fn figure(value: f64) -> String {
    match value {
        value if value < 9_999.95 => format!("{value:.1}"),
        value if value < 999_999.5 => format!("{value:.0}"),
        value => format!("{value:.1e}"),
    }
}

/// A whole number in at most six columns.
pub(crate) fn number(count: u64) -> String {
    match count {
        0..1_000_000 => count.to_string(),
        _ => figure(count as f64),
    }
}

/// A rate with its unit.
pub(crate) fn rate(bps: u64) -> String {
    format!("{} Mb/s", mbps(bps))
}

/// A rate in Mb/s.
pub(crate) fn mbps(bps: u64) -> String {
    figure(bps as f64 / 1e6)
}

/// A share (0 to 1) in percent, without its unit.
pub(crate) fn percent(share: f64) -> String {
    figure(share * 100.0)
}

/// A time of one unit, for a column: `0.4s`, `59s`, `12m`, `47h`, `9d`.
pub(crate) fn brief(seconds: f64) -> String {
    const MINUTE: f64 = 60.0;
    const HOUR: f64 = 60.0 * MINUTE;
    const DAY: f64 = 24.0 * HOUR;
    let seconds = seconds.max(0.0);
    // Rounded down, so that no unit is shown beyond its bound.
    let (unit, name) = match seconds {
        s if s < 9.95 => return format!("{s:.1}s"),
        s if s < 2.0 * MINUTE => (1.0, 's'),
        s if s < 2.0 * HOUR => (MINUTE, 'm'),
        s if s < 2.0 * DAY => (HOUR, 'h'),
        _ => (DAY, 'd'),
    };
    format!("{:.0}{name}", (seconds / unit).floor())
}

/// A time in a sentence: `1.2 s`, `14 s`, `3m 20s`.
pub(crate) fn spoken(seconds: f64) -> String {
    if seconds < 9.95 {
        return format!("{:.1} s", seconds.max(0.0));
    }
    let whole = std::time::Duration::from_secs(seconds as u64);
    match seconds < 60.0 {
        true => format!("{} s", whole.as_secs()),
        false => humantime::format_duration(whole).to_string(),
    }
}

/// `1 flow`, `2 flows`.
pub(crate) fn some(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

/// What a live entry carries.
pub(crate) fn content(content: Content) -> Option<&'static str> {
    match content {
        Content::Opaque => None,
        Content::MpegTs => Some("MPEG-TS"),
        Content::Rtp => Some("RTP"),
        Content::RtpMpegTs => Some("MPEG-TS in RTP"),
    }
}

/// `text` in at most `most` columns, its middle left out if it is longer.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let kept = most.saturating_sub(1);
    let head = text.chars().take(kept.div_ceil(2));
    let tail = text.chars().skip(length - kept / 2);
    head.chain(['…']).chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_readable_units() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1500), "1.5 kB");
        assert_eq!(bytes(2_000_000_000_000), "2.0 TB");
        assert_eq!(bytes(999_949_999), "999.9 MB");
        assert_eq!(bytes(999_999_999), "1.0 GB");
        assert_eq!(bytes(u64::MAX), "18.4 EB");
    }

    #[test]
    fn figures_take_six_columns_at_most() {
        for (value, shown) in [
            (0.0, "0.0"),
            (9_999.94, "9999.9"),
            (9_999.95, "10000"),
            (999_999.4, "999999"),
            (999_999.5, "1.0e6"),
            (u64::MAX as f64, "1.8e19"),
        ] {
            assert_eq!(figure(value), shown);
        }
        assert_eq!(number(999_999), "999999");
        assert_eq!(number(u64::MAX), "1.8e19");
    }

    #[test]
    fn times_are_short() {
        for (seconds, column, sentence) in [
            (-1.0, "0.0s", "0.0 s"),
            (1.24, "1.2s", "1.2 s"),
            (9.97, "9s", "9 s"),
            (59.9, "59s", "59 s"),
            (200.0, "3m", "3m 20s"),
            (86_400.0, "24h", "1day"),
            (1_000_000.0, "11d", "11days 13h 46m 40s"),
        ] {
            let found = (brief(seconds), spoken(seconds));
            assert_eq!(found, (column.to_owned(), sentence.to_owned()));
        }
    }

    #[test]
    fn the_middle_of_what_is_long_is_left_out() {
        assert_eq!(shortened("wlan0", 5), "wlan0");
        assert_eq!(shortened("[2001:db8::1]:4433", 9), "[200…4433");
        assert_eq!(shortened("ab", 1), "…");
        assert_eq!(shortened("ab", 0), "…");
    }
}
