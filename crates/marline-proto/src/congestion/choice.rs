//! A congestion controller as it is chosen.

use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use marline_base::Rate;
use marline_base::text::{self, Problem};

use super::registry::{self, CONTROLLERS, Entry};

/// A controller of the [`registry`], with the rate of one that needs a rate.
///
/// ```
/// use marline_proto::congestion::Congestion;
///
/// let cubic: Congestion = "cubic".parse()?;
/// assert_eq!(cubic.name(), "cubic");
/// let reserved: Congestion = "fixed=20mbit".parse()?;
/// assert_eq!(reserved.rate().unwrap().as_bps(), 20_000_000);
/// assert!("vegas".parse::<Congestion>().is_err());
/// # Ok::<(), marline_base::text::Problem>(())
/// ```
#[derive(Clone, Copy)]
pub struct Congestion {
    entry: &'static Entry,
    rate: Option<Rate>,
}

impl Congestion {
    /// No window and no pacing: for schedulers that plan whole blocks, on links that nobody else
    /// uses.
    pub fn none() -> Self {
        Self::named(super::none::NAME)
    }

    /// BBR, version 1.
    pub fn bbr() -> Self {
        Self::named(super::bbr::NAME)
    }

    /// CUBIC (RFC 9438).
    pub fn cubic() -> Self {
        Self::named(super::cubic::NAME)
    }

    /// Sends at this rate on each path, whatever happens; for links that nobody else uses.
    pub fn fixed(rate: Rate) -> Self {
        Self {
            rate: Some(rate),
            ..Self::named(super::fixed::NAME)
        }
    }

    fn named(name: &str) -> Self {
        let Some(entry) = registry::find(name) else {
            unreachable!("each controller's own name is in the registry");
        };
        Self { entry, rate: None }
    }

    /// What the registry says of it.
    pub const fn entry(self) -> &'static Entry {
        self.entry
    }

    /// Its name in configuration, flags and metrics.
    pub const fn name(self) -> &'static str {
        self.entry.name
    }

    /// The rate of each path, for a controller that needs one.
    pub const fn rate(self) -> Option<Rate> {
        self.rate
    }
}

impl Default for Congestion {
    /// `bbr-gentle`, which holds its rate through random loss and leaves the queue short.
    fn default() -> Self {
        Self::named(super::bbr::GENTLE)
    }
}

impl FromStr for Congestion {
    type Err = Problem;

    /// `NAME`, or `NAME=RATE` for a controller that needs a rate.
    fn from_str(text: &str) -> Result<Self, Problem> {
        let (name, rate) = match text.split_once('=') {
            Some((name, rate)) => (name, Some(text::rate(rate)?)),
            None => (text, None),
        };
        let Some(entry) = registry::find(name) else {
            let known: Vec<&str> = CONTROLLERS.iter().map(|entry| entry.name).collect();
            return Err(
                Problem::new(format!("unknown congestion controller `{name}`"))
                    .hint(text::suggest(name, &known, "congestion controller")),
            );
        };
        match (entry.needs_rate, rate) {
            (true, None) => Err(Problem::new(format!("`{name}` needs a rate"))
                .hint(format!("write `{name}=20mbit`, the rate of each path"))),
            (false, Some(_)) => {
                Err(Problem::new(format!("`{name}` takes no rate")).hint(format!("write `{name}`")))
            }
            (_, rate) => Ok(Self { entry, rate }),
        }
    }
}

impl fmt::Display for Congestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self.rate {
            Some(rate) => write!(f, "={}bit", rate.as_bps()),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Congestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PartialEq for Congestion {
    fn eq(&self, other: &Self) -> bool {
        (self.name(), self.rate) == (other.name(), other.rate)
    }
}

impl Eq for Congestion {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn every_controller_is_written_as_it_is_read() {
        for entry in CONTROLLERS {
            let text = match entry.needs_rate {
                true => format!("{}=20000000bit", entry.name),
                false => entry.name.to_string(),
            };
            let choice: Congestion = text.parse().unwrap();
            assert_eq!(choice.to_string(), text);
            assert_eq!(choice.entry().name, entry.name);
        }
        assert_eq!(
            Congestion::fixed(Rate::from_mbps(20)),
            "fixed=20mbit".parse().unwrap()
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_mend() {
        for (text, wrong) in [
            ("cubik", "unknown congestion controller `cubik`"),
            ("fixed", "`fixed` needs a rate"),
            ("cubic=1mbit", "`cubic` takes no rate"),
            ("fixed=fast", "`fast` is not a rate"),
        ] {
            let problem = text.parse::<Congestion>().unwrap_err();
            assert!(problem.to_string().contains(wrong), "{problem}");
        }
    }
}
