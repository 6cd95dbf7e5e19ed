//! The options of a scheduler besides its name: switches, numbers, words and times.

use core::fmt;

use marline_base::Duration;
use marline_base::text::units;

/// The value of an option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// On or off.
    Switch(bool),
    /// A finite number.
    Number(f64),
    /// A duration.
    Time(Duration),
    /// One of the option's words.
    Word(&'static str),
}

// No number is NaN: defaults are literals, and what is read must lie in a range.
impl Eq for Value {}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(on) => f.write_str(if *on { "on" } else { "off" }),
            Self::Number(number) => write!(f, "{number}"),
            Self::Word(word) => f.write_str(word),
            Self::Time(time) => match time.as_nanos() {
                0 => f.write_str("0s"),
                n if n % 1_000_000_000 == 0 => write!(f, "{}s", n / 1_000_000_000),
                n if n % 1_000_000 == 0 => write!(f, "{}ms", n / 1_000_000),
                n => write!(f, "{}us", n as f64 / 1_000.0),
            },
        }
    }
}

/// What an option accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Accepts {
    /// `on` or `off`.
    Switch,
    /// A number from the first to the second.
    Number(f64, f64),
    /// A whole number from the first to the second.
    Count(u32, u32),
    /// A duration from the first to the second, written with its unit: `us`, `ms` or `s`.
    Time(Duration, Duration),
    /// A whole number from the first to the second, or one of the words.
    CountOr(u32, u32, &'static [&'static str]),
}

impl fmt::Display for Accepts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch => f.write_str("`on` or `off`"),
            Self::Number(low, high) => write!(f, "a number from {low} to {high}"),
            Self::Count(low, high) => write!(f, "a whole number from {low} to {high}"),
            Self::CountOr(low, high, words) => {
                for word in *words {
                    write!(f, "`{word}`, ")?;
                }
                write!(f, "or a whole number from {low} to {high}")
            }
            Self::Time(low, high) => {
                let (low, high) = (Value::Time(*low), Value::Time(*high));
                write!(f, "a time from {low} to {high} with its unit (us, ms or s)")
            }
        }
    }
}

/// An option of a scheduler: its key, what it accepts, its default and what it does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptionSpec {
    /// As it is written, in kebab-case.
    pub key: &'static str,
    /// The values that it takes.
    pub accepts: Accepts,
    /// Its value when it is not given.
    pub default: Value,
    /// What it does, in a line.
    pub help: &'static str,
}

impl OptionSpec {
    /// An option that is on or off.
    pub const fn switch(key: &'static str, default: bool, help: &'static str) -> Self {
        Self {
            key,
            accepts: Accepts::Switch,
            default: Value::Switch(default),
            help,
        }
    }

    /// A number within `range` (lowest, highest).
    pub const fn number(
        key: &'static str,
        default: f64,
        range: (f64, f64),
        help: &'static str,
    ) -> Self {
        Self {
            key,
            accepts: Accepts::Number(range.0, range.1),
            default: Value::Number(default),
            help,
        }
    }

    /// A whole number within `range` (lowest, highest).
    pub const fn count(
        key: &'static str,
        default: u32,
        range: (u32, u32),
        help: &'static str,
    ) -> Self {
        Self {
            key,
            accepts: Accepts::Count(range.0, range.1),
            default: Value::Number(default as f64),
            help,
        }
    }

    /// A whole number within `range` (lowest, highest), or one of `words`; one of these by default.
    pub const fn count_or(
        key: &'static str,
        default: &'static str,
        range: (u32, u32),
        words: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self {
            key,
            accepts: Accepts::CountOr(range.0, range.1, words),
            default: Value::Word(default),
            help,
        }
    }

    /// A duration within `range` (shortest, longest).
    pub const fn time(
        key: &'static str,
        default: Duration,
        range: (Duration, Duration),
        help: &'static str,
    ) -> Self {
        Self {
            key,
            accepts: Accepts::Time(range.0, range.1),
            default: Value::Time(default),
            help,
        }
    }

    /// Reads a value; `None` if it is not what the option accepts.
    pub fn read(&self, text: &str) -> Option<Value> {
        match self.accepts {
            Accepts::Switch => match text {
                "on" => Some(Value::Switch(true)),
                "off" => Some(Value::Switch(false)),
                _ => None,
            },
            Accepts::Number(low, high) => number(text, low, high),
            Accepts::Count(low, high) => count(text, low, high),
            Accepts::CountOr(low, high, words) => {
                let word = words.iter().find(|word| **word == text);
                word.map_or_else(|| count(text, low, high), |word| Some(Value::Word(word)))
            }
            Accepts::Time(low, high) => {
                let time = units::time(text)?;
                (low..=high).contains(&time).then_some(Value::Time(time))
            }
        }
    }
}

fn number(text: &str, low: f64, high: f64) -> Option<Value> {
    let number = text.parse::<f64>().ok()?;
    (low..=high)
        .contains(&number)
        .then_some(Value::Number(number))
}

fn count(text: &str, low: u32, high: u32) -> Option<Value> {
    let value = number(text, f64::from(low), f64::from(high))?;
    matches!(value, Value::Number(number) if number == libm::trunc(number)).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn values_are_read_back_as_written() {
        let ms = Duration::from_millis;
        let specs = [
            OptionSpec::switch("a", false, "-"),
            OptionSpec::number("b", 0.5, (0.0, 1.0), "-"),
            OptionSpec::time("c", ms(10), (Duration::ZERO, ms(2_000)), "-"),
            OptionSpec::count_or("d", "none", (2, 8), &["none", "all"], "-"),
            OptionSpec::count("e", 3, (2, 8), "-"),
        ];
        let texts = [
            &["on", "off"][..],
            &["0", "1", "0.47"],
            &["0s", "20ms", "1500us", "2s", "0.5us"],
            &["none", "all", "5"],
            &["2", "3", "8"],
        ];
        for (spec, texts) in specs.iter().zip(texts) {
            for text in texts {
                let value = spec.read(text).expect(text);
                assert_eq!(value.to_string(), *text);
            }
            for wrong in [
                "", "yes", "-1", "NaN", "inf", "1.01", "2.9", "20", "2001ms", "3s", "-1ms",
            ] {
                assert_eq!(spec.read(wrong), None, "{} {wrong}", spec.key);
            }
        }
        let time = specs[2].accepts.to_string();
        assert_eq!(time, "a time from 0s to 2s with its unit (us, ms or s)");
        let either = specs[3].accepts.to_string();
        assert_eq!(either, "`none`, `all`, or a whole number from 2 to 8");
    }
}
