//! Times, rates, sizes and shares as people write them: a number and its unit.

use alloc::format;
use alloc::string::String;

use crate::{Duration, Rate};

/// Each unit's names, the one that is written first, and what it stands for, the largest first.
type Units = [(&'static [&'static str], u64)];

/// In nanoseconds. Months and years are the Gregorian calendar's mean ones.
const TIMES: &Units = &[
    (&["year", "years", "yr", "yrs", "y"], 31_557_600_000_000_000),
    (&["month", "months", "M"], 2_630_016_000_000_000),
    (&["week", "weeks", "wk", "wks", "w"], 7 * 86_400_000_000_000),
    (&["day", "days", "d"], 86_400_000_000_000),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600_000_000_000),
    (&["min", "mins", "minute", "minutes", "m"], 60_000_000_000),
    (&["s", "sec", "secs", "second", "seconds"], 1_000_000_000),
    (&["ms", "msec", "millis"], 1_000_000),
    (&["us", "µs", "usec", "micros"], 1_000),
    (&["ns", "nsec", "nanos"], 1),
];
/// The units that times are written with.
const SHOWN_TIMES: &Units = TIMES.split_at(5).1;
/// In bits a second.
const RATES: &Units = &[
    (&["gbit", "gbps"], 1_000_000_000),
    (&["mbit", "mbps"], 1_000_000),
    (&["kbit", "kbps"], 1_000),
    (&["bit", "bps"], 1),
];
/// In bytes.
const SIZES: &Units = &[
    (&["TB"], 1_000_000_000_000),
    (&["GB"], 1_000_000_000),
    (&["MB"], 1_000_000),
    (&["kB"], 1_000),
    (&["B"], 1),
    (&["GiB"], 1 << 30),
    (&["MiB"], 1 << 20),
    (&["KiB"], 1 << 10),
];
/// The units that sizes are written with: the decimal ones up to megabytes.
const SHOWN_SIZES: &Units = SIZES.split_at(5).0.split_at(2).1;

/// What is wrong with a text that [`time`] refuses, and the hint.
pub const A_TIME: &str = "not a time; give a number with ns, us, ms, s or min, such as 15ms";
/// What is wrong with a text that [`rate`] refuses, and the hint.
pub const A_RATE: &str =
    "not a rate; give a number with bit, kbit, mbit or gbit (a second), such as 20mbit";
/// What is wrong with a text that [`share`] refuses, and the hint.
pub const A_SHARE: &str = "not a probability; give a share such as 1% or 0.01";

/// Splits off the number that `text` begins with: digits, a fraction, an exponent.
fn number(text: &str) -> Option<(f64, &str)> {
    let digits = |text: &str| {
        let other = |c: char| !c.is_ascii_digit() && c != '.';
        text.find(other).unwrap_or(text.len())
    };
    let sign = usize::from(text.starts_with('+'));
    let mut end = sign + digits(&text[sign..]);
    if let Some(rest) = text[end..].strip_prefix(['e', 'E']) {
        let sign = usize::from(rest.starts_with(['+', '-']));
        let exponent = digits(&rest[sign..]);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let (number, rest) = text.split_at(end);
    Some((number.parse().ok()?, rest.trim_start()))
}

fn factor(unit: &str, units: &Units, fold_case: bool) -> Option<u64> {
    let same = |name: &&str| *name == unit || fold_case && name.eq_ignore_ascii_case(unit);
    let found = units.iter().find(|(names, _)| names.iter().any(same));
    found.map(|(_, factor)| *factor)
}

/// A number and a unit; units are written in either case.
fn scaled(text: &str, units: &Units) -> Option<u64> {
    let (number, unit) = number(text)?;
    let value = libm::round(number * factor(unit, units, true)? as f64);
    (value < u64::MAX as f64).then_some(value as u64)
}

/// A time: numbers with their units, such as `15ms`, `1.5s` or `1h 30min`, of which `ns`, `us`,
/// `ms`, `s`, `m` or `min`, `h` and `day` are the usual ones; a bare 0 needs none.
pub fn time(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    let mut nanos = 0.0;
    while !rest.is_empty() {
        let (count, after) = number(rest)?;
        let letters = |c: char| !c.is_alphabetic();
        let (unit, after) = after.split_at(after.find(letters).unwrap_or(after.len()));
        nanos += count * factor(unit, TIMES, false)? as f64;
        rest = after.trim_start();
    }
    let nanos = libm::round(nanos);
    let given = nanos < u64::MAX as f64 && !text.trim().is_empty();
    given.then(|| Duration::from_nanos(nanos as u64))
}

/// A rate: a number with `bit`, `kbit`, `mbit` or `gbit` (a second), also with `bps` for `bit`, in
/// either case.
pub fn rate(text: &str) -> Option<Rate> {
    let text = text.trim();
    let text = text.strip_suffix("/s").unwrap_or(text);
    scaled(text, RATES).map(Rate::from_bps)
}

/// A size in bytes: a number with `B`, `kB`, `MB`, `GB`, `TB`, `KiB`, `MiB` or `GiB`, in either
/// case.
pub fn size(text: &str) -> Option<u64> {
    scaled(text.trim(), SIZES)
}

/// A share: `1%` or `0.01`. Its range is the caller's matter.
pub fn share(text: &str) -> Option<f64> {
    match number(text)? {
        (number, "%") => Some(number / 100.0),
        (number, "") => Some(number),
        _ => None,
    }
}

fn shown(value: u64, units: &Units) -> String {
    let fitting = units
        .iter()
        .find(|(_, factor)| value >= *factor && value.is_multiple_of(*factor));
    let (name, factor) = fitting
        .or(units.last())
        .map_or(("", 1), |(names, factor)| (names[0], *factor));
    format!("{}{name}", value / factor)
}

/// Writes a time so that [`time`] reads the same.
pub fn show_time(time: Duration) -> String {
    if time.is_zero() {
        return "0ms".into();
    }
    shown(time.as_nanos() as u64, SHOWN_TIMES)
}

/// Writes a rate so that [`rate`] reads the same.
pub fn show_rate(rate: Rate) -> String {
    shown(rate.as_bps(), RATES)
}

/// Writes a size so that [`size`] reads the same, with megabytes as the largest unit.
pub fn show_size(bytes: u64) -> String {
    shown(bytes, SHOWN_SIZES)
}

/// Writes a large size so that [`size`] reads the same, such as `20GB`.
pub fn show_large_size(bytes: u64) -> String {
    shown(bytes, SIZES.split_at(5).0).replace('k', "K")
}

/// Writes a share so that [`share`] reads the same: in percent where that is exact.
pub fn show_share(share_of_one: f64) -> String {
    let percent = share_of_one * 100.0;
    if percent / 100.0 == share_of_one {
        format!("{percent}%")
    } else {
        format!("{share_of_one}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What flags, links and options of schedulers took before they had one grammar.
    #[test]
    fn every_text_that_was_ever_taken_is_what_it_was() {
        let nanos = |text| time(text).map(|time| time.as_nanos());
        for (text, expected) in [
            ("0", 0),
            ("200ms", 200_000_000),
            ("2m", 120_000_000_000),
            ("1.5min", 90_000_000_000),
            ("1h 30m", 5_400_000_000_000),
            ("1day2h", 93_600_000_000_000),
            ("2 weeks", 1_209_600_000_000_000),
            ("1M", 2_630_016_000_000_000),
            ("0.5us", 500),
            ("15 µs", 15_000),
            ("3nsec", 3),
            ("1e3us", 1_000_000),
            ("500ms", 500_000_000),
            ("1min", 60_000_000_000),
        ] {
            assert_eq!(nanos(text), Some(expected), "{text}");
        }
        for wrong in [
            "", "200", "soon", "-1ms", "ms", "1ms2", "1 MS", "NaNs", "infs",
        ] {
            assert_eq!(nanos(wrong), None, "{wrong}");
        }
        let bps = |text| rate(text).map(|rate| rate.as_bps());
        for (text, expected) in [
            ("20mbit", 20_000_000),
            ("20Mbit", 20_000_000),
            ("10mbps", 10_000_000),
            ("1.5 gbit/s", 1_500_000_000),
            ("64kbit", 64_000),
            ("300bit", 300),
        ] {
            assert_eq!(bps(text), Some(expected), "{text}");
        }
        for wrong in ["20", "Mbit", "-1kbit", "NaNkbit", "infGbit", "20MB", ""] {
            assert_eq!(bps(wrong), None, "{wrong}");
        }
        for (text, expected) in [
            ("20GB", 20_000_000_000),
            ("1.5 gb", 1_500_000_000),
            ("2GiB", 2 << 30),
            ("7b", 7),
            ("64kB", 64_000),
            ("3KiB", 3_072),
            ("1TB", 1_000_000_000_000),
        ] {
            assert_eq!(size(text), Some(expected), "{text}");
        }
        for wrong in ["20", "GB", "-1GB", "NaNGB", "infTB", "20Gbit", ""] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
        assert_eq!((share("1%"), share("0.25")), (Some(0.01), Some(0.25)));
        assert_eq!((share("x"), share("1 %%")), (None, None));
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        for nanos in [0, 1, 1_500, 20_000_000, 90_000_000_000, 86_400_000_000_000] {
            let written = Duration::from_nanos(nanos);
            assert_eq!(time(&show_time(written)), Some(written));
        }
        for bytes in [1, 999, 64_000, 20_000_000_000, 1 << 30] {
            assert_eq!(size(&show_size(bytes)), Some(bytes));
            assert_eq!(size(&show_large_size(bytes)), Some(bytes));
        }
        assert_eq!(show_large_size(20_000_000_000), "20GB");
        assert_eq!(show_time(Duration::from_secs(7_200)), "120min");
        assert_eq!(show_rate(Rate::from_mbps(20)), "20mbit");
    }
}
