//! Links that behave like a recording.
//!
//! What a path did depends on what was sent over it, so a recording is taken apart. Where the path
//! was filled, what arrived is its rate, and a queue that stood there is not replayed: the replayed
//! session makes its own. Where it was not, the recorded delays hold as they are, and what the path
//! could have carried is the rate from when it was filled last or next. A direction that was never
//! filled has no limit of rate, and the caller says so.

use super::read::{PathRecord, Recording, WayRecord, Window};
use marline_base::Rate;
use marline_link::{Capacity, LinkConfig, QueueLimit, RateTrace, Replay};
use std::time::Duration;

/// Rates and queues are judged over this time (ms): tens of packets of a path that is filled.
const SPAN_MS: u64 = 100;
/// A path is as long as its quickest packet within this many spans before and after: longer than
/// controllers let a queue stand (BBR looks for the empty path every 10 s), shorter than most
/// routes hold.
const AROUND: usize = 50;
/// The queue is the same for this many recorded packets before and after one. A recorder keeps some
/// five in 20 ms, so that is 10 ms, and controllers make and drain a queue in a round trip. The
/// quickest of five takes as much longer than the quickest of ten seconds as [`jitter`] says.
const NEAR: usize = 2;
/// A rate is what arrives over this many spans: pacing and windows make single ones uneven.
const SMOOTH: usize = 3;
/// Where even the quickest packet waited longer than this (ms), the path carried all that it could.
const QUEUE_MS: f64 = 3.0;
/// A filled path carries at least this of the most that it carried around then.
const FULL: f64 = 0.7;
/// Spans over which the most that arrived is the rate where no queue stands: the sender probes.
const PROBES: usize = 10;
/// Where this much of what arrived is of long streams, the sender asks for all that there is.
const GREEDY: f64 = 0.5;
/// What queues hold (as without `queue` in a scenario), or more where packets waited longer.
const QUEUE: Duration = Duration::from_millis(200);
/// A silence that ends with missing packets is dark, as a whole: no packet that was sent got
/// through. Single windows without packets between losses are not (ms).
const DARK_MS: u64 = 100;

/// A link made of a recorded path.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayedLink {
    /// The path's name.
    pub name: String,
    /// From the client to the server.
    pub up: LinkConfig,
    /// Back.
    pub down: LinkConfig,
    /// The quickest round trip.
    pub round_trip: Duration,
}

/// The links, on which each packet of a session is larger by `overhead` bytes than the session
/// knows.
pub fn links(recording: &Recording, overhead: u32) -> Vec<ReplayedLink> {
    let step_ms = recording.step_ms;
    let link = |path: &PathRecord| {
        let link = |way, other| direction(&path.name, step_ms, way, other, overhead);
        ReplayedLink {
            name: path.name.clone(),
            up: link(&path.up, &path.down),
            down: link(&path.down, &path.up),
            round_trip: least(&path.up, &path.down) + least(&path.down, &path.up),
        }
    };
    recording.paths.iter().map(link).collect()
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    /// What the link carried then and in the spans beside it, bits a second.
    rate: f64,
    /// The same, in this span alone.
    own: f64,
    /// Of that, the share of long streams.
    bulk: f64,
    /// The quickest packet (ms), if one is known.
    least: Option<f64>,
}

fn direction(
    name: &str,
    step_ms: u64,
    way: &WayRecord,
    other: &WayRecord,
    overhead: u32,
) -> LinkConfig {
    let spans = spans(step_ms, way, overhead);
    let base = base(&spans);
    let jitter = jitter(&way.delays);
    let filled = filled(&spans, &base, jitter);
    // Where nobody knows, it takes what the way back takes.
    let known = match way.delays.is_empty() {
        true => &other.delays,
        false => &way.delays,
    };
    let (mut longest, mut delays) = (0.0_f64, Vec::new());
    for (index, &(at, delay)) in known.iter().enumerate() {
        let span = (at as u64 / SPAN_MS) as usize;
        let queue = match (filled.get(span), base.get(span)) {
            (Some(Some(_)), Some(Some(base))) => (quickest(known, index) - base - jitter).max(0.0),
            _ => 0.0,
        };
        longest = longest.max(queue);
        delays.push((millis(at), millis(delay - queue)));
    }
    let losses = losses(step_ms, &way.windows);
    let length = way.windows.len() as u64 * step_ms;
    let within = |(at, _): &(Duration, Duration)| *at < Duration::from_millis(length);
    delays.retain(within);
    let step = Duration::from_millis(step_ms);
    let capacity = capacity(name, &filled);
    let queue = match capacity.mean_rate() {
        Some(_) => QueueLimit::Time(QUEUE.max(millis(longest))),
        None => QueueLimit::Unlimited,
    };
    LinkConfig {
        capacity,
        queue,
        replay: Replay::new(thinned(delays), losses, step),
        ..LinkConfig::default()
    }
}

/// The quickest of the packets around one: those before and after it waited about as long in the
/// same queue, whatever else delayed each of them.
fn quickest(delays: &[(f64, f64)], index: usize) -> f64 {
    let near = delays[around(index, NEAR, delays.len())].iter();
    near.map(|(_, delay)| *delay).fold(f64::INFINITY, f64::min)
}

fn millis(ms: f64) -> Duration {
    Duration::from_secs_f64(ms.max(0.0) / 1e3)
}

/// The least delay of a direction, or of the other one where nobody knows.
fn least(way: &WayRecord, other: &WayRecord) -> Duration {
    let known = match way.delays.is_empty() {
        true => &other.delays,
        false => &way.delays,
    };
    let least = known.iter().map(|(_, delay)| *delay).min_by(f64::total_cmp);
    millis(least.unwrap_or(0.0))
}

/// At most as many as a link takes, evenly.
fn thinned(delays: Vec<(Duration, Duration)>) -> Vec<(Duration, Duration)> {
    let each = delays.len().div_ceil(Replay::MAX).max(1);
    delays.into_iter().step_by(each).collect()
}

fn spans(step_ms: u64, way: &WayRecord, overhead: u32) -> Vec<Span> {
    let length = way.windows.len() as u64 * step_ms;
    let mut spans = vec![Span::default(); length.div_ceil(SPAN_MS) as usize];
    let mut bits = vec![(0.0, 0.0); spans.len()];
    for (number, window) in way.windows.iter().enumerate() {
        let sent = window.sent as f64;
        let packets = window.sent.saturating_sub(window.lost) as f64;
        // What is lost behind the bottleneck was carried, too.
        let bytes = window.arrived as f64 * (sent / packets.max(1.0)).clamp(1.0, 2.0);
        let at = (number as u64 * step_ms / SPAN_MS) as usize;
        bits[at].0 += 8.0 * (bytes + sent * f64::from(overhead));
        bits[at].1 += 8.0 * window.bulk as f64;
    }
    for &(at, delay) in &way.delays {
        if let Some(span) = spans.get_mut((at as u64 / SPAN_MS) as usize) {
            span.least = Some(span.least.map_or(delay, |least| least.min(delay)));
        }
    }
    let seconds = SPAN_MS as f64 / 1e3;
    for at in 0..spans.len() {
        let near = around(at, SMOOTH / 2, bits.len());
        let sum = |sum: (f64, f64), one: &(f64, f64)| (sum.0 + one.0, sum.1 + one.1);
        let (all, bulk) = bits[near.clone()].iter().fold((0.0, 0.0), sum);
        spans[at].rate = all / (near.len() as f64 * seconds);
        spans[at].own = bits[at].0 / seconds;
        spans[at].bulk = bulk / f64::max(all, 1.0);
    }
    spans
}

fn around(at: usize, reach: usize, len: usize) -> std::ops::Range<usize> {
    at.saturating_sub(reach)..(at + reach + 1).min(len)
}

/// How long the empty path is (ms), where that is known.
fn base(spans: &[Span]) -> Vec<Option<f64>> {
    let least = |at| {
        let near = spans[around(at, AROUND, spans.len())].iter();
        near.filter_map(|span| span.least).min_by(f64::total_cmp)
    };
    (0..spans.len()).map(least).collect()
}

/// What the quickest packet of a span takes longer than the quickest of ten seconds where each
/// delay is drawn by itself (ms): some 1.9 standard deviations of a normal one. Packets that
/// follow each other then differ by 2.3 of these or less, nine times of ten; a queue that grows
/// makes no such steps.
fn jitter(delays: &[(f64, f64)]) -> f64 {
    let steps = delays.windows(2).map(|pair| (pair[1].1 - pair[0].1).abs());
    let mut steps: Vec<f64> = steps.collect();
    steps.sort_by(f64::total_cmp);
    let ninth = steps.len() * 9 / 10;
    0.8 * steps.get(ninth).copied().unwrap_or(0.0)
}

/// A span in which the path was filled.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fill {
    /// What it carried, bits a second.
    rate: f64,
    /// How long even the quickest packet waited (ms).
    queue_ms: f64,
}

fn filled(spans: &[Span], base: &[Option<f64>], jitter: f64) -> Vec<Option<Fill>> {
    let most = |at, reach| {
        let near = spans[around(at, reach, spans.len())].iter();
        near.map(|span| span.rate).fold(0.0, f64::max)
    };
    let fill = |at: usize| {
        let span = spans[at];
        let busy = span.rate > 0.0 && span.rate >= FULL * most(at, AROUND);
        if !busy || span.bulk < GREEDY {
            return None;
        }
        let beyond = span.least.zip(base[at]).map(|(least, base)| least - base);
        let queue_ms = (beyond.unwrap_or(0.0) - jitter).max(0.0);
        let rate = match queue_ms > QUEUE_MS {
            true => span.own.max(span.rate),
            false => most(at, PROBES),
        };
        Some(Fill { rate, queue_ms })
    };
    (0..spans.len()).map(fill).collect()
}

/// The rate where the path was filled, and elsewhere that of the filled span before, or else after.
fn capacity(name: &str, filled: &[Option<Fill>]) -> Capacity {
    let Some(first) = filled.iter().flatten().next() else {
        return Capacity::Unlimited;
    };
    let mut rate = first.rate;
    let mut steps: Vec<(Duration, Rate)> = Vec::new();
    for fill in filled {
        rate = fill.map_or(rate, |fill| fill.rate);
        let rate = Rate::from_bps(rate as u64);
        match steps.last_mut() {
            Some((length, last)) if *last == rate => *length += Duration::from_millis(SPAN_MS),
            _ => steps.push((Duration::from_millis(SPAN_MS), rate)),
        }
    }
    // What is too slow for a link to be was no bulk.
    RateTrace::of(name, steps).map_or(Capacity::Unlimited, Capacity::Rates)
}

/// The probability of loss in each window.
fn losses(step_ms: u64, windows: &[Window]) -> Vec<f32> {
    let share = |window: &Window| match window.sent {
        0 => None,
        sent => Some((window.lost as f64 / sent as f64).min(1.0) as f32),
    };
    let mut losses: Vec<Option<f32>> = windows.iter().map(share).collect();
    let dark = |loss: &Option<f32>| loss.is_none_or(|loss| loss >= 1.0);
    let mut at = 0;
    while at < losses.len() {
        let length = losses[at..].iter().take_while(|loss| dark(loss)).count();
        let run = &mut losses[at..at + length];
        let first = run.iter().position(Option::is_some);
        let last = run.iter().rposition(Option::is_some);
        if let Some((first, last)) = first.zip(last)
            && (last - first) as u64 * step_ms >= DARK_MS
        {
            run[first..=last].fill(Some(1.0));
        }
        at += length + 1;
    }
    losses.into_iter().map(|loss| loss.unwrap_or(0.0)).collect()
}

#[cfg(test)]
mod tests;
