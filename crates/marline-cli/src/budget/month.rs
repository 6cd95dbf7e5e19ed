//! Calendar months, in universal time.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

/// A month of the Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Month {
    year: u64,
    /// 1 to 12.
    month: u8,
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days(year: u64, month: u8) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Month {
    /// The month of a moment, in seconds since the beginning of 1970.
    pub fn at(seconds: u64) -> Self {
        let mut left = seconds / 86_400;
        // The calendar repeats itself every 400 years.
        let mut year = 1970 + left / 146_097 * 400;
        left %= 146_097;
        while left >= 365 + u64::from(is_leap(year)) {
            left -= 365 + u64::from(is_leap(year));
            year += 1;
        }
        let mut month = 1;
        while left >= days(year, month) {
            left -= days(year, month);
            month += 1;
        }
        Month { year, month }
    }

    /// The present one.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self::at(since.unwrap_or_default().as_secs())
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year, self.month)
    }
}

/// A text is no month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a month such as 2026-11")]
pub struct NoMonth;

impl FromStr for Month {
    type Err = NoMonth;

    fn from_str(text: &str) -> Result<Self, NoMonth> {
        let (year, month) = text.split_once('-').ok_or(NoMonth)?;
        let year = year.parse().map_err(|_| NoMonth)?;
        match month.parse() {
            Ok(month @ 1..=12) => Ok(Month { year, month }),
            _ => Err(NoMonth),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_fall_into_their_months() {
        for (seconds, text) in [
            (0, "1970-01"),
            (951_782_399, "2000-02"),
            (951_868_800, "2000-03"),
            (1_798_761_599, "2026-12"),
            (1_798_761_600, "2027-01"),
            (4_107_542_399, "2100-02"),
            (4_107_542_400, "2100-03"),
            (13_569_465_600, "2400-01"),
        ] {
            let month = Month::at(seconds);
            assert_eq!(month.to_string(), text, "{seconds}");
            assert_eq!(text.parse(), Ok(month));
        }
        assert!(Month::at(0) < Month::at(1_798_761_600));
        for wrong in ["", "2026", "2026-0", "2026-13", "x-1"] {
            assert_eq!(wrong.parse::<Month>(), Err(NoMonth), "{wrong}");
        }
    }
}
