use alloc::collections::VecDeque;

use marline_base::Rng;

use super::*;

/// The peer's clock is ahead by this (µs).
const EPOCH: i64 = 7_000_000_000;
/// A packet every 2 ms.
const GAP: u64 = 2_000;

/// A path in a test's hands: packets every 2 ms, acknowledged 20 ms after they arrived.
struct Link {
    law: PathLaw,
    now: Instant,
    number: u64,
    /// The newest that is known to have arrived.
    newest: u64,
    open: VecDeque<(u64, Instant, Left, i64)>,
}

impl Link {
    fn new() -> Self {
        Self {
            law: PathLaw::default(),
            now: Instant::from_millis(1),
            number: 0,
            newest: 0,
            open: VecDeque::new(),
        }
    }

    const CARRIES: Carries = Carries {
        rate: Rate::from_mbps(100),
        filled: true,
    };

    fn expects(&self) -> Option<Law> {
        let open = self.open.iter().filter(|packet| packet.0 > self.newest);
        let open = open.map(|(_, sent, left, _)| (*sent, left));
        let silence = self.law.silence(
            self.now,
            open,
            &ReversePath {
                loss: &Loss::default(),
                missing: 0,
            },
        );
        self.law.after(self.now, 0, Self::CARRIES, silence)
    }

    /// The first packet that should be acknowledged next: when it left, and what was believed then.
    fn unheard(&self) -> Option<(Instant, &Left)> {
        let packet = self.open.iter().find(|packet| packet.0 > self.newest)?;
        Some((packet.1, &packet.2))
    }

    fn forecast(&self) -> Option<ArrivalForecast> {
        self.law.forecast(Self::CARRIES, self.unheard())
    }

    /// How long after its departure feedback of that packet is due (µs).
    fn patience(&self) -> u64 {
        let (sent, _) = self.unheard().unwrap();
        let due = self.forecast().unwrap().due.unwrap();
        due.since(sent).as_nanos() as u64 / 1_000
    }

    /// A packet leaves; it takes this long (µs), or is lost.
    fn send(&mut self, takes: Option<f64>) {
        let left = self.law.on_sent(self.now, 1_200, Self::CARRIES);
        if self.law.is_judged(self.now)
            && let Some(law) = self.expects()
        {
            self.law.judge(self.now, self.number, law);
        }
        let at = match takes {
            Some(takes) => self.now.as_micros() as i64 + takes as i64,
            None => i64::MAX,
        };
        self.open.push_back((self.number, self.now, left, at));
        self.number += 1;
    }

    /// Time passes, and what arrived 20 ms ago is acknowledged; `loses`: what acknowledgements pass
    /// over by 128 ms is lost.
    fn step(&mut self, heard: bool, loses: bool) {
        self.now += Duration::from_micros(GAP);
        if !heard {
            return;
        }
        let known = self.now.as_micros() as i64 - 20_000;
        let Some(newest) = self.open.iter().filter(|p| p.3 <= known).map(|p| p.0).max() else {
            return;
        };
        self.newest = self.newest.max(newest);
        let mut count = 0;
        for (number, sent, left, at) in core::mem::take(&mut self.open) {
            if at <= known {
                count += 1;
                let arrival = Arrival {
                    number,
                    sent,
                    size: 1_200,
                    at_us: (at + EPOCH) as u64,
                    beyond: 1e9,
                    left,
                    own_way: true,
                };
                self.law.on_arrival(self.now, &arrival);
            } else if loses && number + 64 < newest {
                self.law.on_lost(number, sent);
            } else {
                self.open.push_back((number, sent, left, at));
            }
        }
        self.law.on_acked(self.now, count, newest);
        self.law.refresh(self.now);
    }

    fn carry(&mut self, count: usize, mut takes: impl FnMut() -> Option<f64>) {
        for _ in 0..count {
            let takes = takes();
            self.send(takes);
            self.step(true, true);
        }
    }
}

#[test]
fn nothing_is_said_before_anything_arrived() {
    let mut link = Link::new();
    assert_eq!(link.expects(), None);
    link.carry(200, || Some(30e3));
    let law = link.expects().unwrap();
    let wanted = link.now.as_micros() as f64 + EPOCH as f64 + 30e3;
    assert!(
        (law.median() - wanted).abs() < 100.0,
        "{}",
        law.median() - wanted
    );
    assert!(law.loss() < 0.01);
    assert!(law.by(wanted + 5e3) > 0.98 && law.by(wanted - 5e3) < 0.02);
}

#[test]
fn the_law_of_a_jittery_lossy_path_comes_true() {
    let mut rng = Rng::new(9).stream("jitter");
    let mut link = Link::new();
    link.carry(30_000, || {
        (rng.uniform() >= 0.03).then(|| 30e3 + 4e3 * rng.normal() * rng.normal())
    });
    let calibration = link.law.calibration();
    assert!(calibration.packets() > 1_000, "{calibration:?}");
    assert!(calibration.off().unwrap() < 0.02, "{calibration:?}");
    let share = calibration.expected_lost / calibration.packets() as f64;
    assert!((share - 0.03).abs() < 0.012, "{share}");
}

#[test]
fn in_short_it_is_a_time_a_spread_and_when_feedback_is_due() {
    let mut link = Link::new();
    assert_eq!(link.forecast(), None);
    link.carry(2_000, || Some(30e3));
    let forecast = link.forecast().unwrap();
    let wanted = EPOCH as f64 + 30e3;
    assert!((forecast.offset_us - wanted).abs() < 1.0, "{forecast:?}");
    assert!((forecast.ceiling_us - wanted).abs() < 1.0, "{forecast:?}");
    assert!(
        forecast.late_us < 100.0 && forecast.behind_us == 0.0,
        "{forecast:?}"
    );
    // 30 ms there, and 20 ms until it is known; packets leave every 2 ms.
    let due = link.patience();
    assert!((50_000..53_000).contains(&due), "{due} µs");

    // Even over ±20 ms, for each packet by itself: the 95th percentile is 18 ms beyond the mean.
    let mut rng = Rng::new(3).stream("even");
    let mut link = Link::new();
    link.carry(8_000, || Some(40e3 + 40e3 * rng.uniform()));
    let forecast = link.forecast().unwrap();
    assert!((14e3..22e3).contains(&forecast.late_us), "{forecast:?}");
    // With one every 2 ms the latest is √(160π)/2 = 11 ms before 80 ms, and 9 ms beyond the mean.
    assert!((8e3..12e3).contains(&forecast.behind_us), "{forecast:?}");
    // Such a packet's silence means nothing until the latest of them would be there.
    let due = link.patience();
    assert!((85_000..115_000).contains(&due), "{due} µs");
}

#[test]
fn what_should_have_arrived_is_there_twice_as_late_as_most_come() {
    let mut link = Link::new();
    link.carry(2_000, || Some(30e3));
    let left = link.law.on_sent(link.now, 1_200, Link::CARRIES);
    let by = link.law.arrives_by(link.now, &left).unwrap() - EPOCH - link.now.as_micros() as i64;
    assert!((30_000..30_300).contains(&by), "{by} µs");
    link.law.restart();
    assert_eq!(link.law.arrives_by(link.now, &left), None);
}

#[test]
fn what_stands_before_it_delays_a_packet() {
    let mut link = Link::new();
    link.carry(200, || Some(30e3));
    let after = |bytes| {
        let law = link
            .law
            .after(link.now, bytes, Link::CARRIES, Silence::default());
        law.unwrap()
    };
    // 100 Mb/s: 8 ms for 100 kB.
    let (now, later) = (after(0), after(100_000));
    assert!((later.median() - now.median() - 8e3).abs() < 500.0);
    let width = |law: &Law| law.quantile(0.9).unwrap() - law.quantile(0.1).unwrap();
    assert!(width(&later) > width(&now));
    let unfilled = Carries {
        filled: false,
        ..Link::CARRIES
    };
    let unsure = link
        .law
        .after(link.now, 100_000, unfilled, Silence::default());
    assert!(
        width(&unsure.unwrap()) > 2.0 * width(&later),
        "it may be quicker"
    );
}

#[test]
fn a_silence_becomes_an_outage_and_the_law_recovers_after_it() {
    let mut rng = Rng::new(10).stream("outage");
    let mut link = Link::new();
    link.carry(2_000, || Some(30e3 + 2e3 * rng.uniform()));
    let before = link.expects().unwrap();
    assert!(before.loss() < 0.01, "{}", before.loss());
    // Nothing is heard any more. The next acknowledgement is 2 ms late: that happens.
    let mut seen = [0.0; 2];
    for n in 0..100 {
        link.send(None);
        link.step(false, false);
        match n {
            0 => seen[0] = link.expects().unwrap().loss(),
            99 => seen[1] = link.expects().unwrap().loss(),
            _ => {}
        }
    }
    assert!(seen[0] < 0.05 && seen[1] > 0.4, "{seen:?}");
    let during = link.expects().unwrap();
    // What is only held arrives when the outage is over: in a while, and perhaps in a long one.
    let (now, late) = (link.now.as_micros() as f64 + EPOCH as f64, 1e6);
    assert!(during.by(now + 45e3) < 0.1 && during.by(now + late) > 0.3);
    link.law.on_doubt();
    link.carry(200, || Some(30e3));
    link.law.on_certain(Verdict::Took);
    link.carry(2_000, || Some(30e3 + 2e3 * rng.uniform()));
    let after = link.expects().unwrap();
    assert!(after.loss() < 0.02, "{}", after.loss());
    assert!(link.law.hazard.rate() > 1.5 / 120.0, "it may be dark again");
}

#[test]
fn a_peer_may_name_any_time() {
    let mut link = Link::new();
    link.carry(50, || Some(30e3));
    for at_us in [0, u64::MAX, 1, u64::MAX / 2] {
        let left = link.law.on_sent(link.now, 1_200, Link::CARRIES);
        let arrival = Arrival {
            number: u64::MAX,
            sent: link.now,
            size: 1_200,
            at_us,
            beyond: f64::MAX,
            left,
            own_way: true,
        };
        link.law.on_arrival(link.now, &arrival);
        link.law.refresh(link.now);
        let law = link.expects().unwrap();
        assert!(law.median().is_finite() && law.mean().is_finite());
        assert!(law.quantile(0.05).is_some_and(f64::is_finite));
    }
}

#[test]
fn other_clocks_begin_another_law() {
    let mut link = Link::new();
    link.carry(200, || Some(30e3));
    link.law.restart();
    assert_eq!(link.expects(), None);
    // What left before says nothing, and what leaves now begins it.
    link.carry(100, || Some(60e3));
    let wanted = link.now.as_micros() as f64 + EPOCH as f64 + 60e3;
    assert!((link.expects().unwrap().median() - wanted).abs() < 100.0);
}
