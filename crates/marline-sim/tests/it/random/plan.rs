//! What a seed stands for.

use marline_proto::congestion::Congestion;
use marline_proto::congestion::registry::CONTROLLERS;
use marline_proto::sched::Entry;
use marline_proto::sched::registry::SCHEDULERS;
use marline_proto::sched::{Accepts, Choice};
use marline_proto::wire::FlowKind;
use marline_proto::{Config, FlowOptions};
use marline_sim::{Duration, End, Instant, Rate, Rng};

use crate::kit::{Messages, Outbox, ms, tau};

pub(super) fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize]
}

fn between(rng: &mut Rng, low: u64, high: u64) -> u64 {
    low + rng.below(high - low + 1)
}

/// Any scheduler of streams and packets; in half of the cases with any values of its options. One
/// in four codes.
pub(super) fn scheduler(rng: &mut Rng) -> Choice {
    scheduler_of(rng, FlowKind::Stream)
}

fn scheduler_of(rng: &mut Rng, kind: FlowKind) -> Choice {
    if !kind.has_units() && rng.chance(0.25) {
        return tau(pick(rng, &["tau-3", "tau-8", "tau-8-idle", "tau-16"]));
    }
    let any: Vec<&Entry> = SCHEDULERS
        .iter()
        .filter(|entry| entry.kinds.contains(&kind))
        .collect();
    let entry = any[rng.below(any.len() as u64) as usize];
    let mut text = entry.name.to_owned();
    if rng.chance(0.5) {
        for option in entry.options {
            let value = match option.accepts {
                Accepts::Switch => pick(rng, &["on", "off"]).to_owned(),
                Accepts::CountOr(low, high, words) => match rng.chance(0.5) {
                    true => pick(rng, words).to_owned(),
                    false => between(rng, low.into(), high.into()).to_string(),
                },
                Accepts::Count(low, high) => between(rng, low.into(), high.into()).to_string(),
                Accepts::Number(low, high) => (low + (high - low) * rng.uniform()).to_string(),
                Accepts::Time(low, high) => {
                    let (low, high) = (low.as_micros() as u64, high.as_micros() as u64);
                    format!("{}us", between(rng, low, high))
                }
            };
            text += &format!(":{}={value}", option.key);
        }
    }
    text.parse().expect("drawn from what is accepted")
}

fn congestion(rng: &mut Rng) -> Congestion {
    let entry = &CONTROLLERS[rng.below(CONTROLLERS.len() as u64) as usize];
    match entry.needs_rate {
        true => Congestion::fixed(Rate::from_kbps(between(rng, 500, 8_000))),
        false => entry.name.parse().expect("it needs no rate"),
    }
}

pub(super) fn config(rng: &mut Rng) -> Config {
    let config = Config {
        idle_timeout: ms(between(rng, 8_000, 30_000)),
        keep_alive: ms(between(rng, 500, 5_000)),
        dead_after: ms(between(rng, 300, 3_000)),
        max_ack_delay: ms(pick(rng, &[0, 1, 5, 25])),
        flow_window: pick(rng, &[1_024, 3_000, 20_000, 300_000, 8 << 20]),
        session_window: pick(rng, &[1_024, 5_000, 60_000, 32 << 20]),
        send_buffer: pick(rng, &[1_024, 10_000, 100_000, 8 << 20]),
        max_flows: pick(rng, &[8, 16, 1_024]),
        congestion: congestion(rng),
        code_window: pick(rng, &[0, 1, 7, 64, 256, 1_024]),
        code_flows: pick(rng, &[0, 1, 32]),
        repair_budget: pick(rng, &[None, Some(0.0), Some(0.1), Some(0.5), Some(4.0)]),
        stream_scheduler: scheduler(rng),
        packets_scheduler: scheduler(rng),
        ..Config::default()
    };
    Config {
        ordered_scheduler: config.packets_scheduler,
        ..config
    }
}

/// A link that may be bad in every way, but not for ever.
pub(super) fn link(rng: &mut Rng) -> String {
    let rate = pick(rng, &[1, 3, 10, 30, 100]);
    let delay = pick(rng, &[0, 2, 10, 40, 150]);
    let queue = pick(rng, &[30, 100, 300]);
    let mut text = format!("rate={rate}mbit,delay={delay}ms,queue={queue}ms");
    if rng.chance(0.4) {
        text += &format!(",jitter={}ms", between(rng, 1, 1 + delay / 2));
        if rng.chance(0.6) {
            text += ",overtake=yes";
        }
    }
    if rng.chance(0.5) {
        text += &format!(",loss={}%", pick(rng, &[1, 3, 10, 25]));
    }
    if rng.chance(0.3) {
        text += &format!(",dup={}%", pick(rng, &[1, 10, 50]));
    }
    if rng.chance(0.2) {
        text += pick(
            rng,
            &[
                ",outage=random:2s+150ms",
                ",outage=random:1s+1s",
                ",outage=300ms+2500ms",
                ",outage=500ms+400ms,outage-mode=hold",
            ],
        );
    }
    text
}

pub(super) fn end(rng: &mut Rng) -> End {
    pick(rng, &[End::Client, End::Server])
}

pub(super) fn flow(rng: &mut Rng) -> FlowOptions {
    let kind = pick(rng, &FlowKind::ALL);
    FlowOptions {
        ordered: rng.chance(0.7),
        priority: rng.below(8) as u8,
        lifetime: rng.chance(0.4).then(|| ms(between(rng, 5, 400))),
        scheduler: rng.chance(0.5).then(|| scheduler_of(rng, kind)),
        target: vec![b'x'; pick(rng, &[0, 9, 512])].into(),
        ..FlowOptions::new(kind)
    }
}

/// What an application writes; small enough for the smallest buffer.
pub(super) fn outbox(rng: &mut Rng, now: Instant, kind: FlowKind, buffer: u64) -> Outbox {
    match kind {
        FlowKind::Blocks | FlowKind::Objects => {
            let largest = (buffer / 2).min(60_000);
            let mut size = || pick(rng, &[1, 100, 1_000, 5_000, 40_000]).min(largest);
            let (a, b) = (size() as usize, size() as usize);
            let plan = Messages {
                size: a.min(b),
                size_max: a.max(b),
                count: between(rng, 0, 200_000 / (a + b + 2_000) as u64),
                every: Duration::from_micros(between(rng, 100, 50_000)),
            };
            match kind {
                FlowKind::Objects => Outbox::objects(now, plan),
                _ => {
                    let deadline = rng.chance(0.7).then(|| ms(between(rng, 5, 400)));
                    Outbox::blocks(now, plan, deadline)
                }
            }
        }
        FlowKind::Stream => Outbox::stream(pick(rng, &[0, 1, 700, 30_000, 250_000])),
        FlowKind::Packets => {
            let largest = buffer.saturating_sub(64);
            let mut size = || pick(rng, &[0, 16, 100, 1_000, 1_190, 3_000, 65_535]).min(largest);
            let (a, b) = (size() as usize, size() as usize);
            let mean = (a + b) as u64 / 2;
            let count = between(rng, 0, (150_000 / (mean + 100)).min(300));
            Outbox::messages(
                now,
                Messages {
                    size: a.min(b),
                    size_max: a.max(b),
                    count,
                    every: Duration::from_micros(between(rng, 100, 20_000)),
                },
            )
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    AddPath,
    RemovePath,
    Standby(bool),
    Dark,
    HalfDark,
    Lit,
    Rewire,
    Reset,
    Stop,
    Pause,
    Resume,
    OpenFlow,
}

pub(super) fn actions(rng: &mut Rng) -> Vec<(Instant, Action)> {
    use Action::*;
    let all = [
        AddPath,
        AddPath,
        RemovePath,
        Standby(true),
        Standby(false),
        Dark,
        HalfDark,
        Lit,
        Rewire,
        Reset,
        Stop,
        Pause,
        Resume,
        OpenFlow,
    ];
    let mut list: Vec<_> = (0..rng.below(14))
        .map(|_| (Instant::from_micros(rng.below(4_000_000)), pick(rng, &all)))
        .collect();
    list.sort_by_key(|(at, _)| *at);
    list
}
