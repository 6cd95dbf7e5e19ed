//! A yardstick: a sender that knows what each link carries, one round trip late.
//!
//! No proof and no scheduler: it has no protocol and no code against losses. It knows the links'
//! delays and what they could carry up to a round trip ago, sends each live packet where that
//! promises the earliest arrival, sends again what is overdue, and fills up with a download so that
//! no link has more than a slot of queue. Over real [`Link`]s, so that it meets the same rates,
//! queues and jitter.

use std::collections::{BTreeMap, VecDeque};

use marline_base::{Duration, Instant, Rng, nearest_rank};
use marline_link::{Delay, Link, LinkConfig, Loss, QueueLimit, Verdict};

use super::load::{BULK, LIVE};
use super::measured::{Measure, Measured};
use super::place::lifetime_ms;
use crate::End;
use crate::scenario::{Change, Load, Scenario, Setting, WorkloadPlan};

/// What a packet of a download carries, and its size on a link (bytes): a full datagram, less
/// Marline's own heads.
const BULK_PAYLOAD: f64 = 1_330.0;
const BULK_SIZE: u32 = 1_420;
/// What is added to a live packet on a link: [`OVERHEAD`](crate::scenario::OVERHEAD) and Marline's
/// own heads (bytes).
const LIVE_OVERHEAD: u32 = 58 + 18;
/// The sender looks around every millisecond.
const TICK: f64 = 1.0;
/// Capacity is known as a mean over this time (ms), in which slots level out.
const KNOWN_OVER: f64 = 100.0;
/// Bytes that may wait in a link for the sake of a download: what it carries in this time (ms).
const STANDING: f64 = 10.0;
/// An acknowledgement is overdue after this time and that many deviations of the link's delay (ms).
const GRACE: f64 = 4.0;
const GRACE_DEVIATIONS: f64 = 3.0;
/// Bins of the known capacity (ms).
const BIN: f64 = 10.0;

fn instant(ms: f64) -> Instant {
    Instant::ZERO + Duration::from_nanos((ms.max(0.0) * 1e6) as u64)
}

fn ms(time: Instant) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Mean and standard deviation of a delay (ms).
fn moments(delay: Delay) -> (f64, f64) {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    match delay {
        Delay::Constant(mean) => (ms(mean), 0.0),
        Delay::Normal { mean, sd, .. } | Delay::Gamma { mean, sd, .. } => (ms(mean), ms(sd)),
        Delay::Uniform { min, max } => (
            (ms(min) + ms(max)) / 2.0,
            (ms(max) - ms(min)) / 12.0_f64.sqrt(),
        ),
    }
}

/// One direction of a link as the sender uses it.
struct Way {
    link: Link,
    changes: VecDeque<(Instant, Result<bool, Box<LinkConfig>>)>,
    /// What it can carry (bytes a ms), by bin.
    carries: Vec<f64>,
    delay: f64,
    deviation: f64,
    back: f64,
    /// When what was sent leaves the queue, and its size; what left a round trip ago is forgotten.
    sent: VecDeque<(f64, f64)>,
    sent_bytes: f64,
}

impl Way {
    /// What it could carry a round trip ago (bytes a ms).
    fn known(&self, now: f64) -> f64 {
        let until = ((now - self.delay - self.back) / BIN).max(1.0) as usize;
        let from = until.saturating_sub((KNOWN_OVER / BIN) as usize);
        let until = until.min(self.carries.len());
        let seen = &self.carries[from.min(until)..until];
        seen.iter().sum::<f64>() / seen.len().max(1) as f64
    }

    /// Bytes that wait in it, as far as the sender can know.
    fn waiting(&mut self, now: f64, rate: f64) -> f64 {
        let trip = self.delay + self.back;
        while self
            .sent
            .front()
            .is_some_and(|(left, _)| *left <= now - trip)
        {
            self.sent_bytes -= self.sent.pop_front().map_or(0.0, |(_, size)| size);
        }
        (self.sent_bytes - rate * trip).max(0.0)
    }

    /// What happens to it until then.
    fn change(&mut self, now: f64) {
        while let Some((at, _)) = self.changes.front()
            && *at <= instant(now)
            && let Some((at, change)) = self.changes.pop_front()
        {
            apply(&mut self.link, at, change);
        }
    }

    fn offer(&mut self, now: f64, size: u32) -> Option<f64> {
        let Verdict::Delivered { at, departs, .. } = self.link.offer(instant(now), size) else {
            return None;
        };
        let departs = ms(departs);
        self.sent.push_back((departs, f64::from(size)));
        self.sent_bytes += f64::from(size);
        // What waits when the link goes dark is lost.
        let mut dark = self
            .changes
            .iter()
            .filter(|(_, change)| matches!(change, Ok(true)));
        let cut = dark.next().is_some_and(|(at, _)| ms(*at) < departs);
        (!cut).then_some(ms(at))
    }
}

fn apply(link: &mut Link, at: Instant, change: Result<bool, Box<LinkConfig>>) {
    match change {
        Ok(dark) => link.set_dark(at, dark),
        // A scenario's changes were tried before it ran.
        Err(config) => drop(link.reconfigure(at, *config)),
    }
}

/// What happens to one direction of a link.
fn changes_of(
    all: &[Change],
    link: usize,
    from: End,
) -> VecDeque<(Instant, Result<bool, Box<LinkConfig>>)> {
    let own = all.iter().filter(|change| change.link == link);
    let one = |change: &Change| match (&change.setting, from) {
        (Setting::Dark { up, .. }, End::Client) => (change.at, Ok(*up)),
        (Setting::Dark { down, .. }, End::Server) => (change.at, Ok(*down)),
        (Setting::Link { up, .. }, End::Client) => (change.at, Err(up.clone())),
        (Setting::Link { down, .. }, End::Server) => (change.at, Err(down.clone())),
    };
    own.map(one).collect()
}

/// The same link without loss, delay and end of its queue.
fn bare(config: &LinkConfig) -> LinkConfig {
    LinkConfig {
        delay: Delay::Constant(Duration::ZERO),
        loss: Loss::None,
        queue: QueueLimit::Unlimited,
        ..config.clone()
    }
}

/// What a link can carry in each bin (bytes a ms), by a copy of it that is never idle.
fn carries(
    config: &LinkConfig,
    mut changes: VecDeque<(Instant, Result<bool, Box<LinkConfig>>)>,
    end: f64,
) -> Vec<f64> {
    let mut bins = vec![0.0; (end / BIN) as usize + 1];
    let Ok(mut link) = Link::new(bare(config), 1) else {
        return bins;
    };
    let mut now = 0.0;
    while now < end {
        while let Some((at, _)) = changes.front()
            && ms(*at) <= now
            && let Some((at, change)) = changes.pop_front()
        {
            let change = change.map_err(|config| Box::new(bare(&config)));
            apply(&mut link, at, change);
        }
        let next = changes.front().map_or(end, |(at, _)| ms(*at));
        let departs = match link.offer(instant(now), BULK_SIZE) {
            Verdict::Delivered { departs, .. } => ms(departs),
            Verdict::Dropped(_) => {
                now += BIN;
                continue;
            }
        };
        if departs <= next {
            if let Some(bin) = bins.get_mut((departs / BIN) as usize) {
                *bin += f64::from(BULK_SIZE) / BIN;
            }
            now = departs.max(now + 0.01);
        } else {
            now = next;
        }
    }
    bins
}

fn ways(scenario: &Scenario, from: End, seed: u64) -> Vec<Way> {
    let rng = Rng::new(seed).stream("ideal");
    let end = scenario.duration.as_secs_f64() * 1e3;
    let links = scenario.links.iter().enumerate();
    let way = |(index, plan): (usize, &crate::scenario::LinkPlan)| {
        let (config, back) = match from {
            End::Client => (&plan.up, &plan.down),
            End::Server => (&plan.down, &plan.up),
        };
        let seed = rng.stream(&plan.name).next_u64();
        let link = Link::new(config.clone(), seed).ok()?;
        let (delay, deviation) = moments(config.delay);
        let changes = changes_of(&scenario.changes, index, from);
        Some(Way {
            link,
            carries: carries(config, changes.clone(), end),
            changes,
            delay,
            deviation,
            back: moments(back.delay).0,
            sent: VecDeque::new(),
            sent_bytes: 0.0,
        })
    };
    links.filter_map(way).collect()
}

/// A live packet.
struct Packet {
    written: f64,
    arrives: f64,
}

/// A live stream at work.
struct Live {
    size: u32,
    gap: f64,
    lifetime: f64,
    packets: Vec<Packet>,
    /// Packets by when they are looked at again, in µs.
    overdue: BTreeMap<u64, Vec<usize>>,
}

impl Live {
    fn of(scenario: &Scenario) -> Option<Self> {
        let all = &scenario.sessions[0].workloads;
        let plan = all.iter().find(|one| one.name == LIVE)?;
        let Load::Constant { rate, size } = plan.load else {
            return None;
        };
        Some(Self {
            size: size + LIVE_OVERHEAD,
            gap: rate.time_for(size.into()).as_secs_f64() * 1e3,
            lifetime: lifetime_ms(scenario, LIVE),
            packets: Vec::new(),
            overdue: BTreeMap::new(),
        })
    }

    /// Sends the packet where it should arrive first.
    fn send(&mut self, number: usize, now: f64, ways: &mut [Way]) {
        let size = f64::from(self.size);
        let mut best: Option<(f64, usize)> = None;
        for (index, way) in ways.iter_mut().enumerate() {
            let rate = way.known(now);
            let at = now + (way.waiting(now, rate) + size) / rate + way.delay;
            if at.is_finite() && best.is_none_or(|(other, _)| at < other) {
                best = Some((at, index));
            }
        }
        let mut look = now + BIN;
        if let Some((at, index)) = best {
            let way = &mut ways[index];
            let arrives = way.offer(now, self.size).unwrap_or(f64::INFINITY);
            let packet = &mut self.packets[number];
            packet.arrives = packet.arrives.min(arrives);
            look = at + way.back + GRACE + GRACE_DEVIATIONS * way.deviation;
        }
        self.overdue
            .entry((look * 1e3) as u64)
            .or_default()
            .push(number);
    }

    fn tick(&mut self, now: f64, back: f64, ways: &mut [Way]) {
        let until = ((now + TICK) * 1e3) as u64;
        while let Some(entry) = self.overdue.first_entry()
            && *entry.key() <= until
        {
            let (at, numbers) = entry.remove_entry();
            let at = (at as f64 / 1e3).max(now);
            for number in numbers {
                let packet = &self.packets[number];
                let is_there = packet.arrives + back <= at;
                if !is_there && at < packet.written + self.lifetime {
                    self.send(number, at, ways);
                }
            }
        }
        while self.packets.len() as f64 * self.gap < now + TICK {
            let written = self.packets.len() as f64 * self.gap;
            let arrives = f64::INFINITY;
            self.packets.push(Packet { written, arrives });
            self.send(self.packets.len() - 1, written.max(now), ways);
        }
    }

    /// Delays in order of what was written in the window, and how many never came.
    fn settle(&self, warm: f64, end: f64) -> (Vec<f64>, usize) {
        let (mut delays, mut lost, mut last) = (Vec::new(), 0, 0.0_f64);
        for packet in &self.packets {
            let late = packet.written + self.lifetime;
            let came = packet.arrives <= late;
            last = last.max(packet.arrives.min(late));
            // What is written at the very end may still be on its way.
            if packet.written < warm || late > end {
                continue;
            }
            lost += usize::from(!came);
            delays.push(if came {
                last - packet.written
            } else {
                self.lifetime
            });
        }
        delays.sort_by(f64::total_cmp);
        (delays, lost)
    }
}

/// What the sender makes of a scenario; pages are not among it.
pub(super) fn measured(scenario: &Scenario, seed: u64) -> Measured {
    let end = scenario.duration.as_secs_f64() * 1e3;
    let warm = scenario.warmup.as_secs_f64() * 1e3;
    let bulk = |from: End| {
        let of = |one: &WorkloadPlan| one.name.starts_with(BULK) && one.from == from;
        scenario.sessions[0].workloads.iter().any(of)
    };
    let mut measured = Measured::default();
    let mut arrivals = Vec::new();
    if bulk(End::Client) {
        let mut ways = ways(scenario, End::Client, seed);
        simulate(&mut ways, None, Some(&mut arrivals), end);
    }
    let mut live = Live::of(scenario);
    let mut ways = ways(scenario, End::Server, seed);
    let down = bulk(End::Server).then_some(&mut arrivals);
    simulate(&mut ways, live.as_mut(), down, end);
    if let Some(live) = live {
        let (delays, lost) = live.settle(warm, end);
        let at = |percent| nearest_rank(&delays, percent);
        let share = lost as f64 / delays.len().max(1) as f64;
        measured = measured
            .with(Measure::LiveP50, at(50))
            .with(Measure::LiveP99, at(99))
            .with(Measure::LiveWorst, at(100))
            .with(Measure::GivenUp, Some(share * 100.0))
            .with_latest(live.lifetime);
    }
    if bulk(End::Client) || bulk(End::Server) {
        arrivals.retain(|at| (warm..=end).contains(at));
        arrivals.sort_by(f64::total_cmp);
        let edges = std::iter::once(warm).chain(arrivals.iter().copied());
        let gaps = edges.zip(arrivals.iter().copied().chain([end]));
        let silence = gaps.map(|(a, b)| b - a).fold(0.0, f64::max);
        let mbps = arrivals.len() as f64 * BULK_PAYLOAD * 8.0 / ((end - warm) * 1e3);
        measured = measured
            .with(Measure::Goodput, Some(mbps))
            .with(Measure::Silence, Some(silence));
    }
    measured
}

fn simulate(
    ways: &mut [Way],
    mut live: Option<&mut Live>,
    mut arrivals: Option<&mut Vec<f64>>,
    end: f64,
) {
    let back = ways
        .iter()
        .map(|way| way.back)
        .fold(f64::INFINITY, f64::min);
    let mut now = 0.0;
    while now < end {
        for way in &mut *ways {
            way.change(now);
        }
        if let Some(live) = &mut live {
            live.tick(now, back, ways);
        }
        if let Some(arrivals) = &mut arrivals {
            for way in &mut *ways {
                let rate = way.known(now);
                // A full queue takes nothing, whatever the sender believes.
                while way.waiting(now, rate) < rate * STANDING {
                    match way.offer(now + TICK, BULK_SIZE) {
                        Some(at) => arrivals.push(at),
                        None => break,
                    }
                }
            }
        }
        now += TICK;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::load::FieldLoad;
    use crate::field::network::Network;
    use crate::field::place::{FieldLink, Length, Place, Way as How};
    use crate::field::profile::Profile;

    fn place() -> Place {
        let link = |name: &str, kbps: f64| FieldLink {
            name: name.to_owned(),
            network: Network::Fixed,
            up: Profile::constant(6_000, kbps / 2.0),
            down: Profile::constant(6_000, kbps),
            trip: Network::Fixed.round_trip(),
            loss: 0.0,
            queues: [Duration::from_millis(200); 2],
            moves: Vec::new(),
        };
        let length = Length {
            duration: Duration::from_secs(6),
            warmup: Duration::from_secs(1),
        };
        Place {
            set: "test".to_owned(),
            name: "steady".to_owned(),
            way: How::Drawn(vec![link("a", 8_000.0), link("b", 4_000.0)], length),
        }
    }

    fn value(load: FieldLoad, measure: Measure) -> f64 {
        let measured = measured(&place().scenario(load, None, 1), 1);
        measured.get(measure).expect("a value")
    }

    #[test]
    fn steady_links_are_filled_and_no_live_packet_waits() {
        let goodput = value(FieldLoad::Download, Measure::Goodput);
        // 12 Mb/s less heads.
        assert!((10.8..11.4).contains(&goodput), "{goodput}");
        // Half of 24 ms, and a packet's time at 8 or 4 Mb/s.
        let p99 = value(FieldLoad::Live, Measure::LiveP99);
        assert!((13.0..20.0).contains(&p99), "{p99}");
        assert_eq!(value(FieldLoad::Live, Measure::GivenUp), 0.0);
        // Beside a download also the queue that keeps the links busy.
        let beside = value(FieldLoad::LiveDownload, Measure::LiveP99);
        assert!((20.0..45.0).contains(&beside), "{beside}");
        let silence = value(FieldLoad::LiveDownload, Measure::Silence);
        assert!(silence < 60.0, "{silence}");
    }
}
