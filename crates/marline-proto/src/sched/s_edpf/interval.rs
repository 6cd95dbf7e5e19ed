//! τ: which of the packets are repair symbols.

use marline_base::{Duration, Instant};
use marline_fec::analysis;

use crate::sched::{Choice, OptionSpec, PathView};

/// τ as it was chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    /// No repair symbols.
    Off,
    /// Every so many packets.
    Fixed(u32),
    /// ⌊ρ/ε̄⌋ from measured loss.
    Auto,
}

/// The share of what is sent that may be lost for each repair symbol that is sent, ρ: between 0.5
/// and 0.6 a few milliseconds of delay cost the fewest repair symbols.
const LOAD: f64 = 0.55;
/// Weight of the newest gap in the mean time between packets.
const GAP_GAIN: f64 = 1.0 / 64.0;

pub(super) const OPTION: OptionSpec = OptionSpec::number_or(
    "tau",
    "auto",
    (2.0, 1024.0),
    &["auto", "off"],
    "one packet in so many is a repair symbol; auto sets it by the measured loss",
);

/// Algorithm 1's counter, and what sets it.
#[derive(Debug)]
pub(super) struct Interval {
    rule: Rule,
    /// τ as it is now.
    tau: Option<u32>,
    /// Packets until a repair symbol is due.
    countdown: u32,
    /// Repair symbols that are due and have no path yet.
    due: u32,
    /// Mean time between packets of the flow (ns).
    gap: Option<f64>,
    last: Instant,
}

impl Interval {
    pub(super) fn new(choice: &Choice) -> Self {
        let rule = match choice.word("tau") {
            Some("off") => Rule::Off,
            Some(_) => Rule::Auto,
            None => Rule::Fixed(choice.number("tau") as u32),
        };
        let tau = match rule {
            Rule::Fixed(tau) => Some(tau),
            Rule::Off | Rule::Auto => None,
        };
        Self {
            rule,
            tau,
            countdown: tau.unwrap_or(u32::MAX),
            due: 0,
            gap: None,
            last: Instant::ZERO,
        }
    }

    /// May there ever be repair symbols?
    pub(super) fn codes(&self) -> bool {
        self.rule != Rule::Off
    }

    /// τ, if repair symbols are sent.
    pub(super) fn tau(&self) -> Option<u32> {
        self.tau
    }

    /// Repair symbols that are due.
    pub(super) fn due(&self) -> u32 {
        self.due
    }

    /// A source symbol was scheduled.
    pub(super) fn on_packet(&mut self) {
        self.tick();
    }

    /// A repair symbol that was due was scheduled, or there was nothing to repair.
    pub(super) fn on_repair(&mut self) {
        self.due = self.due.saturating_sub(1);
        // Repair symbols are packets, too: one in τ of all.
        self.tick();
    }

    fn tick(&mut self) {
        let Some(tau) = self.tau else {
            return;
        };
        self.countdown = self.countdown.saturating_sub(1);
        if self.countdown == 0 {
            self.due += 1;
            self.countdown = tau;
        }
    }

    /// A packet of the flow left.
    pub(super) fn on_sent(&mut self, now: Instant) {
        let gap = now.since(self.last).as_nanos() as f64;
        // A silence says nothing of the rate.
        if gap < 1e9 && self.last > Instant::ZERO {
            let mean = self.gap.get_or_insert(gap);
            *mean += GAP_GAIN * (gap - *mean);
        }
        self.last = now;
    }

    /// Sets τ by the paths' loss; `shares` says how much of what is sent each path carries.
    pub(super) fn refresh(&mut self, paths: &[PathView], shares: &[f64]) {
        if self.rule != Rule::Auto {
            return;
        }
        let lost = paths.iter().zip(shares).map(|(p, share)| p.loss * share);
        let lost: f64 = lost.sum();
        let tau = analysis::interval(lost, LOAD);
        let gap = Duration::from_nanos(self.gap.unwrap_or(0.0) as u64);
        let round_trip = paths.iter().map(|p| p.srtt).min().unwrap_or_default();
        // When a repair symbol comes no sooner than what is sent again, coding gains nothing.
        self.tau = tau.filter(|tau| gap * *tau < round_trip);
        match self.tau {
            Some(tau) => self.countdown = self.countdown.min(tau),
            None => (self.countdown, self.due) = (u32::MAX, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::tests::path;
    use alloc::vec::Vec;

    fn interval(text: &str) -> Interval {
        Interval::new(&text.parse().unwrap())
    }

    #[test]
    fn one_packet_in_tau_is_a_repair_symbol() {
        let mut interval = interval("s-edpf:tau=4");
        let mut packets = Vec::new();
        for _ in 0..20 {
            let repair = interval.due() > 0;
            packets.push(repair);
            match repair {
                true => interval.on_repair(),
                false => interval.on_packet(),
            }
        }
        // The first packets have nothing before them to repair.
        assert!(!packets[..4].contains(&true));
        assert_eq!(packets.iter().filter(|r| **r).count(), 4);
        assert!(
            packets[4..]
                .chunks(4)
                .all(|four| four == [true, false, false, false])
        );
    }

    #[test]
    fn auto_follows_the_loss_of_what_is_sent() {
        let mut paths = [path(0), path(1)];
        let mut interval = interval("s-edpf");
        assert_eq!(interval.tau(), None, "nothing is known");
        paths[0].loss = 0.1;
        for n in 0..200 {
            interval.on_sent(Instant::from_micros(1_000_000 + 600 * n));
        }
        interval.refresh(&paths, &[0.5, 0.5]);
        assert_eq!(interval.tau(), Some(11), "0.55 / 0.05");
        interval.refresh(&paths, &[1.0, 0.0]);
        assert_eq!(interval.tau(), Some(5), "0.55 / 0.1");
        paths[0].loss = 0.0;
        interval.refresh(&paths, &[1.0, 0.0]);
        assert_eq!((interval.tau(), interval.due()), (None, 0));
    }

    #[test]
    fn auto_is_off_where_sending_again_is_as_quick() {
        let mut paths = [path(0)];
        paths[0].loss = 0.01;
        let mut interval = interval("s-edpf");
        // A packet every 2 ms: 55 of them last 110 ms.
        for n in 0..200 {
            interval.on_sent(Instant::from_millis(1_000 + 2 * n));
        }
        paths[0].srtt = Duration::from_millis(100);
        interval.refresh(&paths, &[1.0]);
        assert_eq!(interval.tau(), None);
        paths[0].srtt = Duration::from_millis(120);
        interval.refresh(&paths, &[1.0]);
        assert_eq!(interval.tau(), Some(55));
    }

    #[test]
    fn a_fixed_interval_minds_no_loss_and_off_is_off() {
        let mut fixed = interval("s-edpf:tau=16");
        fixed.refresh(&[path(0)], &[1.0]);
        assert_eq!(fixed.tau(), Some(16));
        let mut off = interval("s-edpf:tau=off");
        for _ in 0..100 {
            off.on_packet();
        }
        assert!(!off.codes() && off.due() == 0);
    }
}
