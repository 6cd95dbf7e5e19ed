//! Numbers with units, as the text form of a link writes them.

use alloc::format;
use alloc::string::String;
use core::time::Duration;
use marline_base::Rate;

/// Each unit's name and what it stands for, the largest first.
type Units = [(&'static str, u64)];

const TIMES: &Units = &[
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("ns", 1),
];
const RATES: &Units = &[
    ("gbit", 1_000_000_000),
    ("mbit", 1_000_000),
    ("kbit", 1_000),
    ("bit", 1),
];
const SIZES: &Units = &[
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
];

/// What is wrong with a text that [`time`] refuses, and the mend.
pub const A_TIME: &str = "not a time; give a number with ns, us, ms, s or min, such as 15ms";
/// What is wrong with a text that [`rate`] refuses, and the mend.
pub const A_RATE: &str =
    "not a rate; give a number with bit, kbit, mbit or gbit (a second), such as 20mbit";
/// What is wrong with a text that [`share`] refuses, and the mend.
pub const A_SHARE: &str = "not a probability; give a share such as 1% or 0.01";

/// Splits a number from its unit.
fn split(text: &str) -> Option<(f64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim()))
}

fn scaled(text: &str, units: &Units, fold_case: bool) -> Option<u64> {
    let (number, unit) = split(text)?;
    let factor = units.iter().find_map(|&(name, factor)| {
        let same = name == unit || fold_case && name.eq_ignore_ascii_case(unit);
        same.then_some(factor)
    })?;
    let value = libm::round(number * factor as f64);
    (value < u64::MAX as f64).then_some(value as u64)
}

/// A time with ns, us, ms, s or min; a bare 0 needs no unit.
pub fn time(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    scaled(text, TIMES, false).map(Duration::from_nanos)
}

/// A rate with bit, kbit, mbit or gbit (a second), in either case.
pub fn rate(text: &str) -> Option<Rate> {
    let text = text.strip_suffix("/s").unwrap_or(text);
    scaled(text, RATES, true).map(Rate::from_bps)
}

/// A size in bytes with B, kB, MB, KiB or MiB.
pub fn size(text: &str) -> Option<u64> {
    scaled(text, SIZES, false)
}

/// A share: `1%` or `0.01`. Its range is the caller's matter.
pub fn share(text: &str) -> Option<f64> {
    match split(text)? {
        (number, "%") => Some(number / 100.0),
        (number, "") => Some(number),
        _ => None,
    }
}

fn shown(value: u64, units: &Units) -> String {
    let fitting = units
        .iter()
        .find(|(_, factor)| value >= *factor && value.is_multiple_of(*factor));
    let (name, factor) = fitting.or(units.last()).copied().unwrap_or(("", 1));
    format!("{}{name}", value / factor)
}

/// Writes a time so that [`time`] reads the same.
pub fn show_time(time: Duration) -> String {
    if time.is_zero() {
        return "0ms".into();
    }
    shown(time.as_nanos() as u64, TIMES)
}

/// Writes a rate so that [`rate`] reads the same.
pub fn show_rate(rate: Rate) -> String {
    shown(rate.as_bps(), RATES)
}

/// Writes a size so that [`size`] reads the same.
pub fn show_size(bytes: u64) -> String {
    shown(bytes, &SIZES[..3])
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
