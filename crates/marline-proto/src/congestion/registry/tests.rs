use alloc::collections::BTreeSet;

use marline_base::{Duration, Instant, Rate};
use proptest::prelude::*;

use super::*;
use crate::congestion::{Ack, Controller, DeliverySample, Loss, Params};

const MTU: u64 = 1_200;

fn params(seed: u64) -> Params {
    Params {
        mtu: MTU,
        rate: Some(Rate::from_mbps(10)),
        paced: true,
        seed,
    }
}

#[test]
fn names_are_unique_and_documented() {
    let mut names = BTreeSet::new();
    for entry in CONTROLLERS {
        assert!(names.insert(entry.name), "{} appears twice", entry.name);
        let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(entry.name.chars().all(kebab), "{}", entry.name);
        assert!(!entry.publication.is_empty(), "{}", entry.name);
        assert!(entry.help.ends_with('.'), "{}", entry.name);
        let controller = (entry.new)(Instant::ZERO, &params(1));
        assert_eq!(controller.view().name, entry.name);
        assert!(core::ptr::eq(find(entry.name).unwrap(), entry));
    }
    for name in ["bbr", "cubic", "new-reno", "fixed", "none"] {
        assert!(names.contains(name), "{name} is missing");
    }
    assert!(find("vegas").is_none());
}

#[test]
fn documents_state_which_need_a_rate() {
    for entry in CONTROLLERS {
        assert_eq!(entry.needs_rate, entry.name == "fixed");
    }
}

#[derive(Clone, Debug)]
enum Event {
    Sent {
        packets: u64,
        app_limited: bool,
    },
    Ack {
        packets: u64,
        age: u64,
        rtt: Option<u64>,
        kbps: Option<u64>,
        app_limited: bool,
    },
    Loss {
        packets: u64,
        age: u64,
        persistent: bool,
    },
    Spurious {
        packets: u64,
        age: u64,
    },
    Mtu(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let micros = 0_u64..3_000_000;
    prop_oneof![
        3 => (1_u64..50, any::<bool>())
            .prop_map(|(packets, app_limited)| Event::Sent { packets, app_limited }),
        4 => (
            1_u64..50,
            micros.clone(),
            prop::option::of(micros.clone()),
            prop::option::of(0_u64..10_000_000),
            any::<bool>()
        )
            .prop_map(|(packets, age, rtt, kbps, app_limited)| {
                Event::Ack { packets, age, rtt, kbps, app_limited }
            }),
        2 => (1_u64..50, micros.clone(), prop::bool::weighted(0.1))
            .prop_map(|(packets, age, persistent)| Event::Loss { packets, age, persistent }),
        1 => (1_u64..50, micros).prop_map(|(packets, age)| Event::Spurious { packets, age }),
        1 => (1_000_u64..9_000).prop_map(Event::Mtu),
    ]
}

/// A session reduced to its counters: consistent in bytes, random in everything else.
struct Driver {
    controller: alloc::boxed::Box<dyn Controller>,
    now: Instant,
    mtu: u64,
    in_flight: u64,
    delivered: u64,
}

impl Driver {
    fn apply(&mut self, event: &Event) {
        let before = |age| self.now - Duration::from_micros(age);
        match *event {
            Event::Sent {
                packets,
                app_limited,
            } => {
                let bytes = packets * self.mtu;
                self.in_flight += bytes;
                self.controller
                    .on_sent(self.now, bytes, self.in_flight, app_limited);
            }
            Event::Ack {
                packets,
                age,
                rtt,
                kbps,
                app_limited,
            } => {
                let bytes = (packets * self.mtu).min(self.in_flight);
                let prior_in_flight = self.in_flight;
                let delivered_when_sent = self.delivered.saturating_sub(age / 10);
                self.in_flight -= bytes;
                self.delivered += bytes;
                let rtt = rtt.map(Duration::from_micros);
                self.controller.on_ack(
                    self.now,
                    &Ack {
                        bytes,
                        prior_in_flight,
                        in_flight: self.in_flight,
                        sent: before(age),
                        rtt,
                        back_queueing: Duration::ZERO,
                        srtt: rtt.unwrap_or(Duration::from_millis(333)),
                        delivery: kbps.map(|kbps| DeliverySample {
                            rate: Rate::from_kbps(kbps),
                            app_limited,
                        }),
                        delivered: self.delivered,
                        delivered_when_sent,
                    },
                );
            }
            Event::Loss {
                packets,
                age,
                persistent,
            } => {
                let bytes = (packets * self.mtu).min(self.in_flight);
                self.in_flight -= bytes;
                self.controller.on_loss(
                    self.now,
                    &Loss {
                        bytes,
                        sent: before(age),
                        in_flight: self.in_flight,
                        persistent,
                    },
                );
            }
            Event::Spurious { packets, age } => {
                self.controller
                    .on_spurious_loss(self.now, packets * self.mtu, before(age));
            }
            Event::Mtu(mtu) => {
                self.mtu = mtu;
                self.controller.on_mtu(mtu);
            }
        }
    }
}

proptest! {
    /// Whatever happens, two datagrams may be in flight and the path is not stopped for good.
    #[test]
    fn window_never_falls_below_two_datagrams(
        seed in any::<u64>(),
        events in prop::collection::vec((0_u64..2_000_000, event()), 1..200),
    ) {
        for entry in CONTROLLERS {
            let mut driver = Driver {
                controller: (entry.new)(Instant::ZERO, &params(seed)),
                now: Instant::ZERO,
                mtu: MTU,
                in_flight: 0,
                delivered: 0,
            };
            for (pause, event) in &events {
                driver.now += Duration::from_micros(*pause);
                driver.apply(event);
                let window = driver.controller.window();
                prop_assert!(window >= 2 * driver.mtu, "{}: {window} after {event:?}", entry.name);
                let view = driver.controller.view();
                prop_assert!(view.window_gain > 0.0 && view.pacing_gain > 0.0);
            }
        }
    }
}
