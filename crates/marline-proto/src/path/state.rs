//! The state of a path, earned by evidence, with the reason in words.

use alloc::borrow::Cow;

use marline_base::{Duration, Instant};

/// Where a path stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathState {
    /// New; nothing was acknowledged on it yet.
    Validating,
    /// Carries data.
    Active,
    /// Healthy, but kept in reserve by either side.
    Standby,
    /// Feedback is missing or most packets are lost: carries copies and probes only, as long as
    /// any other path can carry the rest.
    Suspect,
    /// Silent for long; probed now and then.
    Dead,
}

impl PathState {
    /// All states, in the order of a path's life.
    pub const ALL: [Self; 5] = [
        Self::Validating,
        Self::Active,
        Self::Standby,
        Self::Suspect,
        Self::Dead,
    ];

    /// The state's name in status, metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Validating => "validating",
            Self::Active => "active",
            Self::Standby => "standby",
            Self::Suspect => "suspect",
            Self::Dead => "dead",
        }
    }
}

/// Acknowledged packets that clear a path of suspicion while it carries copies.
const ACKS_UNDER_LOAD: u32 = 8;
/// Acknowledged probes that do so when there is nothing to copy: one or two may have got
/// through between two outages. A choice, not tuned.
const ACKS_WHEN_IDLE: u32 = 3;
/// Acknowledgements in time that show that the silence was a burst of losses and is over.
const IN_TIME: u32 = 3;
/// A longer silence is an outage, whose end has to be proved under load.
const LONGEST_BURST: Duration = Duration::from_millis(250);
/// Probe interval right after the suspicion; a quarter of it after any answer.
const FIRST_INTERVAL: Duration = Duration::from_millis(10);
/// The interval grows once the path has been silent for this time: a return from a short outage, or
/// the end of a long burst of losses, is noticed at once.
const STEADY: Duration = Duration::from_millis(300);
/// Longest probe interval of a suspect path: it bounds how late a return is noticed.
const SUSPECT_INTERVAL: Duration = Duration::from_millis(200);
/// Longest probe interval of a dead path: a return is noticed within two seconds, for half a
/// packet a second.
const DEAD_INTERVAL: Duration = Duration::from_secs(2);

/// What a suspect or dead path has shown since it fell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    pub(crate) since: Instant,
    /// When the first packet left that was not acknowledged when it should have been.
    missed: Instant,
    /// Packets sent after that one that were acknowledged in time.
    in_time: u32,
    /// The last answer, or the start of the trial.
    pub(crate) heard: Instant,
    acked: u32,
    copies_acked: u32,
    founded: bool,
    interval: Duration,
    pub(crate) next_probe: Instant,
}

impl Trial {
    /// Begins `now`, because of a packet that left at `missed`.
    pub(crate) fn new(now: Instant, missed: Instant) -> Self {
        Self {
            since: now,
            missed,
            in_time: 0,
            heard: now,
            acked: 0,
            copies_acked: 0,
            founded: false,
            interval: FIRST_INTERVAL,
            next_probe: now,
        }
    }

    /// A probe or copy left: the next one waits longer, unless answers come.
    pub(crate) fn on_probe(&mut self, now: Instant, dead: bool) {
        self.next_probe = now + self.interval;
        let longest = if dead {
            DEAD_INTERVAL
        } else {
            SUSPECT_INTERVAL
        };
        if now.since(self.heard) >= STEADY || self.interval < FIRST_INTERVAL {
            self.interval = (self.interval * 3 / 2).min(longest);
        }
    }

    /// A packet was acknowledged. True when the path has shown enough.
    pub(crate) fn on_acked(&mut self, now: Instant, held_data: bool, load: bool) -> bool {
        self.heard = now;
        self.acked += 1;
        self.copies_acked += u32::from(held_data);
        // The network answers: probe fast, so that the verdict comes soon.
        self.interval = FIRST_INTERVAL / 4;
        self.next_probe = self.next_probe.min(now + self.interval);
        if load {
            self.copies_acked >= ACKS_UNDER_LOAD
        } else {
            self.acked >= ACKS_WHEN_IDLE
        }
    }

    /// A packet that left at `sent` was acknowledged `now`, as soon as ever. True when the path is
    /// as it was: on a path that is dark or slower nothing is acknowledged in time, on one that
    /// lost some packets in a row everything after them is.
    pub(crate) fn on_acked_in_time(&mut self, now: Instant, sent: Instant) -> bool {
        self.in_time += u32::from(sent > self.missed);
        self.in_time >= IN_TIME && now.since(self.since) <= LONGEST_BURST
    }

    /// Packets were lost, the newest of them sent at `newest`. If that was during the trial, what
    /// was shown does not count.
    pub(crate) fn on_lost(&mut self, newest: Instant) {
        self.founded = true;
        if newest > self.since {
            self.acked = 0;
            self.copies_acked = 0;
        }
    }

    /// The path was not only late: what was in flight when the trial began is not waited for any
    /// more.
    pub(crate) fn found(&mut self) {
        self.founded = true;
    }

    /// Something was lost, so that the path was not only late.
    pub(crate) fn is_founded(&self) -> bool {
        self.founded
    }
}

/// A path's state as the session keeps it: health by evidence, standby as the user asked.
#[derive(Debug)]
pub(crate) enum Health {
    Validating,
    Active,
    Suspect(Trial),
    Dead(Trial),
}

/// Why a path is in its state.
pub(crate) type Reason = Cow<'static, str>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_good_echo_is_not_enough() {
        let now = Instant::from_millis(100);
        let mut trial = Trial::new(now, now);
        assert!(!trial.on_acked(now, false, false));
        assert!(!trial.on_acked(now, false, false));
        trial.on_lost(now + FIRST_INTERVAL);
        assert!(!trial.on_acked(now, false, false));
        assert!(!trial.on_acked(now, false, false));
        assert!(trial.on_acked(now, false, false));
        let mut loaded = Trial::new(now, now);
        for _ in 0..20 {
            assert!(
                !loaded.on_acked(now, false, true),
                "probes show nothing under load"
            );
        }
        for n in 1..=8 {
            assert_eq!(loaded.on_acked(now, true, true), n == 8);
        }
    }

    #[test]
    fn a_burst_of_losses_is_over_when_what_follows_it_comes_in_time() {
        let (missed, since) = (Instant::from_millis(50), Instant::from_millis(100));
        let at = Instant::from_millis;
        let mut trial = Trial::new(since, missed);
        assert!(!trial.on_acked_in_time(since, at(49)));
        let itself = trial.on_acked_in_time(since, missed);
        assert!(!itself, "it shows nothing of itself");
        assert!(!trial.on_acked_in_time(since, at(60)));
        assert!(!trial.on_acked_in_time(since, at(61)));
        let late = trial.on_acked_in_time(at(351), at(62));
        assert!(!late, "no burst lasts so long");
        assert!(trial.on_acked_in_time(at(350), at(62)));
    }

    #[test]
    fn probing_backs_off_until_answered() {
        let mut now = Instant::ZERO;
        let mut trial = Trial::new(now, now);
        let mut probes = |until| {
            let mut count = 0;
            while now < Instant::from_millis(until) {
                now = trial.next_probe;
                trial.on_probe(now, false);
                count += 1;
            }
            count
        };
        // One every 10 ms, and the first at once.
        assert_eq!(probes(300), 31);
        let rare = probes(3_000);
        assert!((18..=26).contains(&rare), "{rare}");
        trial.on_acked(now, true, true);
        assert!(trial.next_probe <= now + FIRST_INTERVAL);
    }
}
