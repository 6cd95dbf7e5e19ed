//! Is the path dark, or is all that is in flight only late?
//!
//! Two hypotheses explain a silence. *It is alive*: the first packet that should be known of is
//! late by as much as the law says is possible, or it was lost, and with it those that are overdue,
//! too.
//! *It is dark*: then silence is certain. Before the silence, the odds of the second are how often
//! the path went dark before, times how long it was not heard of; by Bayes' rule the silence
//! multiplies them by one over the probability that an alive path is so silent:
//!
//! ```text
//! odds(dark) = rate · unheard / (late + (1 − late) · lost)
//! ```
//!
//! What is lost is a packet or its acknowledgement. Where packets of the peer's own are missing as
//! well, an alive path has lost all of these, or the peer pauses at the same time (`loss.rs`).
//!
//! What a path did before counts, and fades: a path that was dark twice in a minute is doubted at
//! once, one that never was is given the time that its own lateness suggests.

use marline_base::{Duration, Instant, nanos_f64};

/// Outages, and the time without one (s), that every path begins with: one in two minutes, as on a
/// train (handovers excepted), by the word of one outage.
const PRIOR: (f64, f64) = (1.0, 120.0);
/// How long outages and the time between them count (s): as long as the two minutes that a path
/// begins with.
const LASTING: f64 = 120.0;
/// A path flaps when it has this many times the rate of outages that every path begins with: two
/// within 30 s make it so, for some 15 s after the second. Tuned: `marline repro field --quick
/// --auto-only`, seeds 2001 to 2003: no cell is off by 1 % from where two in 30 s were counted.
const OFTEN: f64 = 2.0;
/// Outages that took what was in flight, and outages that only held it, counted before any was
/// seen.
const HELD: (f64, f64) = (1.0, 1.0);
/// An outage lasts as long again as it has, and at first so long (s): a handover's.
const SHORTEST: f64 = 0.2;
/// No silence is less likely than this while the path is alive: models are wrong.
const LEAST: f64 = 1e-9;
/// Time without reports counts as time without an outage up to this (s): of an idle path nothing is
/// known.
const IDLE: f64 = 1.0;

/// How likely the path is dark, and since when.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Silence {
    /// Probability that it is dark, 0..=1.
    pub dark: f64,
    /// Time since the first packet left whose fate should be known (s).
    pub unheard: f64,
}

/// What a doubt has turned out to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// An outage after which what was in flight arrived after all.
    Held,
    /// An outage that took what was in flight.
    Took,
    /// Losses in a row on a path that was never dark.
    Burst,
    /// Nothing.
    Mistake,
}

impl Verdict {
    pub(super) fn is_outage(self) -> bool {
        matches!(self, Self::Held | Self::Took)
    }
}

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hazard {
    alive: f64,
    /// How often each [`Verdict`] was given.
    held: f64,
    took: f64,
    bursts: f64,
    heard: Instant,
}

impl Hazard {
    /// Something was acknowledged.
    pub(super) fn on_heard(&mut self, now: Instant) {
        let elapsed = nanos_f64(now.since(self.heard)) / 1e9;
        self.heard = now;
        let keeps = 1.0 / (1.0 + elapsed / LASTING);
        for count in [
            &mut self.alive,
            &mut self.held,
            &mut self.took,
            &mut self.bursts,
        ] {
            *count *= keeps;
        }
        self.alive += elapsed.min(IDLE);
    }

    /// A doubt is over.
    pub(super) fn on_certain(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Held => self.held += 1.0,
            Verdict::Took => self.took += 1.0,
            Verdict::Burst => self.bursts += 1.0,
            Verdict::Mistake => {}
        }
    }

    /// Outages a second.
    pub(super) fn rate(&self) -> f64 {
        (PRIOR.0 + self.held + self.took) / (PRIOR.1 + self.alive)
    }

    /// Does it lose what is in flight again and again, by outages or bursts? As with routes that
    /// flap (RFC 2439), once is bad luck and says nothing of what follows.
    pub(super) fn flaps(&self) -> bool {
        (PRIOR.0 + self.took + self.bursts) * PRIOR.1 >= OFTEN * PRIOR.0 * (PRIOR.1 + self.alive)
    }

    /// Share of outages that only hold what is in flight.
    pub(super) fn holds(&self) -> f64 {
        let held = HELD.1 + self.held;
        held / (held + HELD.0 + self.took)
    }

    /// There is no feedback since a packet left `unheard` ago; a path that is alive is as silent
    /// with probability `alive`.
    pub(super) fn silence(&self, unheard: Duration, alive: f64) -> Silence {
        let unheard = nanos_f64(unheard) / 1e9;
        let odds = self.rate() * unheard / alive.max(LEAST);
        Silence {
            dark: odds / (1.0 + odds),
            unheard,
        }
    }
}

impl Silence {
    /// How long it has lasted.
    pub(crate) fn lasted(&self) -> Duration {
        Duration::from_nanos((self.unheard * 1e9) as u64)
    }

    /// Is it worth sending what is in flight by a detour of this length? If the path is alive, the
    /// detour delays all that follows; if it is dark, to wait costs as much again as the silence
    /// has lasted. Where dark is likelier than alive, any detour is worth it.
    pub(crate) fn is_worth(&self, detour: Duration) -> bool {
        let odds = self.dark / (1.0 - self.dark);
        odds >= 1.0 || odds * self.unheard >= nanos_f64(detour) / 1e9
    }

    /// How much longer (s) an outage lasts with probability `p` at most: what has lasted long will
    /// last long (a Lomax law of scale `unheard` and second order).
    pub(super) fn remains(&self, p: f64) -> f64 {
        self.unheard.max(SHORTEST) * (1.0 / libm::sqrt(1.0 - p) - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dark(hazard: &Hazard, alive: f64) -> f64 {
        hazard.silence(Duration::from_millis(120), alive).dark
    }

    #[test]
    fn a_silence_is_an_outage_when_nothing_else_explains_it() {
        let hazard = Hazard::default();
        assert_eq!(hazard.rate(), 1.0 / 120.0);
        // Odds of 1/120 · 0.12 = 1/1000 against each explanation.
        assert!((dark(&hazard, 1.0) - 1.0 / 1001.0).abs() < 1e-12);
        assert!((dark(&hazard, 0.001) - 0.5).abs() < 1e-12);
        // Not late, but lost by one in a hundred: 1/10 to 1.
        assert!((dark(&hazard, 0.01) - 1.0 / 11.0).abs() < 1e-12);
        assert!(dark(&hazard, 0.0) > 0.999_99);
    }

    #[test]
    fn what_was_dark_before_is_doubted_sooner_until_that_is_long_ago() {
        let mut hazard = Hazard::default();
        let before = dark(&hazard, 0.01);
        for s in 1..=20 {
            hazard.on_heard(Instant::from_millis(1_000 * s));
            if s % 5 == 0 {
                hazard.on_certain(if s % 10 == 0 {
                    Verdict::Held
                } else {
                    Verdict::Took
                });
            }
        }
        let after = dark(&hazard, 0.01);
        assert!(after > 2.5 * before, "{before} {after}");
        assert!((hazard.holds() - 0.5).abs() < 0.05);
        for s in 21..=620 {
            hazard.on_heard(Instant::from_millis(1_000 * s));
        }
        assert!(dark(&hazard, 0.01) < before);
    }

    #[test]
    fn a_path_flaps_from_the_second_outage_on_until_none_comes_for_long() {
        let flaps = |outages: &[u64], until: u64| {
            let mut hazard = Hazard::default();
            for s in 1..=until {
                hazard.on_heard(Instant::from_millis(1_000 * s));
                if outages.contains(&s) {
                    hazard.on_certain(Verdict::Took);
                }
            }
            hazard.flaps()
        };
        assert!(!flaps(&[10], 10), "the first is bad luck");
        assert!(flaps(&[10, 30], 30) && flaps(&[10, 30], 40));
        assert!(!flaps(&[10, 30], 60) && !flaps(&[10, 120], 120));
    }

    #[test]
    fn bursts_make_a_path_flap_and_what_was_only_held_or_a_mistake_does_not() {
        let flaps = |verdict: Verdict| {
            let mut hazard = Hazard::default();
            for s in 1..=20 {
                hazard.on_heard(Instant::from_millis(1_000 * s));
                if s % 5 == 0 {
                    hazard.on_certain(verdict);
                }
            }
            hazard.flaps()
        };
        assert!(flaps(Verdict::Took) && flaps(Verdict::Burst));
        assert!(!flaps(Verdict::Held) && !flaps(Verdict::Mistake));
    }

    #[test]
    fn a_long_detour_takes_a_long_silence_or_a_likely_outage() {
        let is_worth = |dark, detour| {
            let silence = Silence { dark, unheard: 0.1 };
            silence.is_worth(Duration::from_millis(detour))
        };
        assert!(is_worth(0.2, 25) && !is_worth(0.2, 26));
        assert!(is_worth(0.5, 10_000) && is_worth(1.0, 10_000));
    }

    #[test]
    fn an_outage_lasts_as_long_again_as_it_has() {
        let silence = Silence {
            dark: 1.0,
            unheard: 3.0,
        };
        assert_eq!(silence.remains(0.0), 0.0);
        assert!((silence.remains(0.75) - 3.0).abs() < 1e-12);
        assert!((Silence::default().remains(0.75) - SHORTEST).abs() < 1e-12);
    }
}
