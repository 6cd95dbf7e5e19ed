//! τ: which of the packets are repair symbols.

use marline_base::{Duration, Instant, nanos_f64};
use marline_fec::analysis;

use crate::path::EmissionKind;
use crate::sched::{Choice, OptionSpec, PathView};

/// τ as it was chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    /// No repair symbols.
    Off,
    /// One packet in this number.
    Fixed(u32),
    /// From measured loss.
    Auto,
}

/// How long packets may wait for lost ones in the mean, in intervals, by an upper bound. Beyond a
/// half decoding periods get long.
const WAIT: f64 = 0.5;
/// Longer intervals save redundancy, which costs goodput where paths are full, and are as good as
/// long as that wait is a small part of the round trip that coding saves: on paths that are not
/// full, idle slots have repair symbols anyway. Over two full paths that lose a tenth one packet in
/// six instead of four is a repair symbol: 14.4 instead of 13.0 Mb/s arrive, in the median after
/// 200 instead of 213 ms (tuned: `marline sim run examples/packets-in-order`).
const SMALL_PART: u32 = 16;
/// The share of repair symbols from which on it is known where they travel.
const KNOWN: f64 = 0.01;
/// Weight of the newest gap in the mean time between packets.
const GAP_GAIN: f64 = 1.0 / 64.0;

/// The longest interval.
const MOST: u32 = 1024;

pub(super) const OPTION: OptionSpec = OptionSpec::count_or(
    "tau",
    "auto",
    (2, MOST),
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
    /// Coding gains nothing at present.
    suspended: bool,
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
            countdown: tau.map_or(u32::MAX, |tau| tau - 1),
            due: 0,
            suspended: false,
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
        self.tau.filter(|_| !self.suspended)
    }

    /// Sends no repair symbols as long as they gain nothing (`vain`), unless τ was chosen by hand.
    pub(super) fn suspend(&mut self, vain: bool) {
        self.suspended = vain && self.rule == Rule::Auto;
        if self.suspended {
            self.due = 0;
            self.countdown = self.tau.map_or(u32::MAX, |tau| tau - 1);
        }
    }

    /// Mean time between packets of the flow (ns); 0 until it is known.
    pub(super) fn gap(&self) -> f64 {
        self.gap.unwrap_or(0.0)
    }

    /// Repair symbols that are due.
    pub(super) fn due(&self) -> u32 {
        self.due
    }

    /// A repair symbol that was due has a path, or there was nothing to repair.
    pub(super) fn on_repair(&mut self) {
        self.due = self.due.saturating_sub(1);
    }

    /// A repair symbol fills an idle slot: the next one is due a whole interval later.
    pub(super) fn on_idle_repair(&mut self) {
        if let Some(tau) = self.tau {
            self.countdown = tau - 1;
        }
    }

    /// A packet of the flow left. After τ − 1 that are no repair symbols one is due; what waits for
    /// a path does not count, because it may be taken back.
    pub(super) fn on_sent(&mut self, now: Instant, kind: EmissionKind) {
        let gap = nanos_f64(now.since(self.last));
        // A silence says nothing of the rate.
        if gap < 1e9 && self.last > Instant::ZERO {
            let mean = self.gap.get_or_insert(gap);
            *mean += GAP_GAIN * (gap - *mean);
        }
        self.last = now;
        let Some(tau) = self.tau().filter(|_| kind != EmissionKind::Repair) else {
            return;
        };
        self.countdown = self.countdown.saturating_sub(1);
        if self.countdown == 0 {
            self.due += 1;
            self.countdown = tau - 1;
        }
    }

    /// Sets τ by the paths' loss; `sources` and `repairs` say which share of all packets each path
    /// carries as source symbols that leave for the first time, and as repair symbols.
    pub(super) fn refresh(&mut self, paths: &[PathView], sources: &[f64], repairs: &[f64]) {
        if self.rule != Rule::Auto {
            return;
        }
        let lost = |shares: &[f64]| {
            let lost: f64 = paths.iter().zip(shares).map(|(p, s)| p.loss * s).sum();
            (lost, shares.iter().sum::<f64>())
        };
        let (lost_sources, sent_sources) = lost(sources);
        let (lost_repairs, sent_repairs) = lost(repairs);
        let lossiest = paths.iter().map(|p| p.loss).fold(0.0, f64::max);
        let of_repairs = match sent_repairs > KNOWN {
            true => lost_repairs / sent_repairs,
            // They will take this one (Theorem 4).
            false => lossiest,
        };
        let of_sources = lost_sources / sent_sources.max(f64::MIN_POSITIVE);
        let gap = Duration::from_nanos(self.gap.unwrap_or(0.0) as u64);
        let round_trip = paths.iter().map(|p| p.srtt).min().unwrap_or_default();
        // When a repair symbol comes no sooner than what is sent again, coding gains nothing.
        let is_late = |tau: u32| gap * tau >= round_trip;
        let limit = round_trip.as_nanos().div_ceil(gap.as_nanos().max(1));
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        // That can be seen without a search, and in a session of many flows it is so of nearly all.
        let is_vain = is_late(limit) && analysis::wait(limit, of_sources, of_repairs) <= WAIT;
        let least = match is_vain {
            true => None,
            false => analysis::interval(of_sources, of_repairs, WAIT),
        };
        let small = nanos_f64(round_trip / SMALL_PART);
        let is_small = |tau: &u32| {
            let interval = f64::from(*tau) * nanos_f64(gap);
            analysis::wait(*tau, of_sources, of_repairs) * interval <= small
        };
        let tau = least.map(|least| {
            match self.gap {
                Some(_) => (least.saturating_add(1)..MOST).take_while(is_small).last(),
                None => None,
            }
            .unwrap_or(least)
        });
        self.tau = tau.filter(|tau| !is_late(*tau));
        match self.tau {
            Some(tau) => self.countdown = self.countdown.min(tau - 1),
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
            if repair {
                interval.on_repair();
                interval.on_sent(Instant::ZERO, EmissionKind::Repair);
            } else {
                interval.on_sent(Instant::ZERO, EmissionKind::Source);
            }
        }
        // The first packets have nothing before them to repair.
        assert!(
            packets
                .chunks(4)
                .all(|four| four == [false, false, false, true])
        );
    }

    #[test]
    fn auto_follows_the_loss_of_what_is_sent() {
        let mut paths = [path(0), path(1)];
        let mut interval = interval("s-edpf");
        assert_eq!(interval.tau(), None, "nothing is known");
        for n in 0..200 {
            interval.on_sent(
                Instant::from_micros(1_000_000 + 600 * n),
                EmissionKind::Source,
            );
        }
        let mut refresh = |interval: &mut Interval, loss, sources: [f64; 2], repairs: [f64; 2]| {
            paths[0].loss = loss;
            interval.refresh(&paths, &sources, &repairs);
        };
        refresh(&mut interval, 0.1, [0.5, 0.5], [0.0, 0.0]);
        let of_the_lossiest = analysis::interval(0.05, 0.1, 0.5);
        assert_eq!((interval.tau(), of_the_lossiest), (Some(7), Some(7)));
        // Repair symbols take the other path.
        refresh(&mut interval, 0.1, [0.4, 0.4], [0.0, 0.2]);
        assert_eq!(interval.tau(), analysis::interval(0.05, 0.0, 0.5));
        refresh(&mut interval, 0.1, [1.0, 0.0], [0.0, 0.0]);
        assert_eq!(interval.tau(), Some(4));
        refresh(&mut interval, 0.1, [0.0, 0.5], [0.5, 0.0]);
        assert_eq!(interval.tau(), None, "only repair symbols are lost");
        refresh(&mut interval, 0.0, [1.0, 0.0], [0.0, 0.0]);
        assert_eq!((interval.tau(), interval.due()), (None, 0));
    }

    #[test]
    fn auto_saves_redundancy_where_the_wait_is_short_beside_the_round_trip() {
        let mut paths = [path(0)];
        paths[0].loss = 0.1;
        let tau = |paths: &[PathView], gap_us: u64| {
            let mut interval = interval("mend");
            for n in 0..200 {
                let at = Instant::from_micros(1_000_000 + gap_us * n);
                interval.on_sent(at, EmissionKind::Source);
            }
            interval.refresh(paths, &[1.0], &[0.0]);
            interval.tau()
        };
        // 6.25 ms may be waited: of intervals of six packets 1.37, by the bound, and of seven 3.0.
        paths[0].srtt = Duration::from_millis(100);
        assert_eq!(tau(&paths, 580), Some(6));
        // At a tenth of the rate four packets are as long as that.
        assert_eq!(tau(&paths, 5_800), Some(4));
        paths[0].srtt = Duration::from_millis(600);
        assert_eq!(tau(&paths, 580), Some(7));
    }

    #[test]
    fn auto_is_off_where_sending_again_is_as_quick() {
        let mut paths = [path(0)];
        paths[0].loss = 0.01;
        let mut interval = interval("s-edpf");
        // A packet every 2 ms: 43 of them last 86 ms.
        for n in 0..200 {
            interval.on_sent(Instant::from_millis(1_000 + 2 * n), EmissionKind::Source);
        }
        paths[0].srtt = Duration::from_millis(86);
        interval.refresh(&paths, &[1.0], &[0.0]);
        assert_eq!(interval.tau(), None);
        paths[0].srtt = Duration::from_millis(90);
        interval.refresh(&paths, &[1.0], &[0.0]);
        assert_eq!(interval.tau(), Some(43));
    }

    #[test]
    fn auto_sends_nothing_that_is_vain_and_counts_anew_after_that() {
        let mut paths = [path(0)];
        paths[0].loss = 0.1;
        let mut interval = interval("mend");
        interval.refresh(&paths, &[1.0], &[0.0]);
        let sent = |interval: &mut Interval, packets: u32| {
            for _ in 0..packets {
                interval.on_sent(Instant::ZERO, EmissionKind::Source);
            }
        };
        sent(&mut interval, 2);
        interval.suspend(true);
        sent(&mut interval, 100);
        assert_eq!((interval.tau(), interval.due()), (None, 0));
        interval.suspend(false);
        sent(&mut interval, 2);
        assert_eq!((interval.tau(), interval.due()), (Some(4), 0));
        sent(&mut interval, 1);
        assert_eq!(interval.due(), 1);
        let mut fixed = self::interval("mend:tau=4");
        fixed.suspend(true);
        assert_eq!(fixed.tau(), Some(4), "chosen by hand");
    }

    #[test]
    fn a_fixed_interval_minds_no_loss_and_off_is_off() {
        let mut fixed = interval("s-edpf:tau=16");
        fixed.refresh(&[path(0)], &[1.0], &[0.0]);
        assert_eq!(fixed.tau(), Some(16));
        let mut off = interval("s-edpf:tau=off");
        for _ in 0..100 {
            off.on_sent(Instant::ZERO, EmissionKind::Source);
        }
        assert!(!off.codes() && off.due() == 0);
    }
}
