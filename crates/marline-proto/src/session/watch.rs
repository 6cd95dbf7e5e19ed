//! Do the paths carry the rate that an application says it needs, or that a live flow is written
//! at?
//!
//! What waits at the sender decides, because estimates of a path that is never filled are guesses:
//! data that has waited for long and cannot be carried off, by the paths' rates or by the length of
//! the wait itself. What was given up before it left counts as if it still waited, so that a short
//! lifetime hides nothing. The rate reported is what the flow got meanwhile. Hysteresis: the target
//! counts as met again once no queue has stood for a second in which the flow got its rate, or the
//! paths could have given it.
//!
//! Where nobody says what rate is needed, the rate at which messages with a lifetime are written is
//! taken, because nothing holds back such a writer. The report, with the rate that the flow got
//! meanwhile, is [`Event::BelowNeededRate`](crate::Event::BelowNeededRate).

use marline_base::{Duration, Instant, Rate};

use crate::flow::WriteRate;

/// A flow that has just begun is looked at after this time, and what it needs is not known from
/// less.
const SOON: Duration = Duration::from_millis(20);
/// How often a flow is looked at then, all flows at the same times. A choice, not tuned.
const TICK: Duration = Duration::from_millis(50);
/// A flow of which nothing waits and nothing was written for so long makes a pause. Frames may come
/// less often than looks.
const QUIET: Duration = Duration::from_millis(200);
/// More than this much time's worth of data (at the target) waits: the flow is held back.
const HELD: Duration = Duration::from_millis(50);
/// This much proves that the rate is too low, whatever the paths' estimates say.
const PROOF: Duration = Duration::from_millis(200);
/// A flow must be held back for this time before its target counts as missed: three looks in a
/// row.
const MISSED_AFTER: Duration = Duration::from_millis(150);
/// While no more than this waits, the flow is not held back any more: less than a frame at 30 a
/// second.
const FREE: Duration = Duration::from_millis(20);
/// This must last for a second before the target counts as met,
const MET_AFTER: Duration = Duration::from_secs(1);
/// though more may wait for less than this: frames come at once, and key frames are long.
const STANDS: Duration = Duration::from_millis(500);
/// While the target is missed, its application is notified no more often,
const AGAIN: Duration = Duration::from_millis(500);
/// and only of a rate that differs by this share.
const DIFFERS: f64 = 0.2;
/// What a flow writes first, and after such a pause, is not measured for as long: it may be a
/// burst.
const PAUSE: Duration = Duration::from_secs(1);

/// What one look finds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// Bytes that wait at the sender.
    pub(super) waiting: u64,
    /// Bytes that were ever given up before they left.
    pub(super) never_left: u64,
    /// Bytes that the application ever wrote, and that the peer ever acknowledged.
    pub(super) written: u64,
    pub(super) carried: u64,
    /// Sum of the usable paths' rates.
    pub(super) rates: Rate,
}

/// A capacity that was announced.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Announced {
    at: Instant,
    capacity: Rate,
}

/// Since when a condition holds, and what was carried by then.
type Since = Option<(Instant, u64)>;

/// Whether one flow gets its target.
#[derive(Debug)]
pub(super) struct Watch {
    /// As the application said; what it writes is measured otherwise.
    given: Option<Rate>,
    measured: Option<WriteRate>,
    held: Since,
    free: Since,
    /// Since when it has not been free, if it is not.
    busy: Option<Instant>,
    missed: Option<Announced>,
    written: u64,
    /// The last look that found something written.
    wrote: Instant,
    never_left: u64,
    /// Something was given up before it left, between the last two looks.
    lapsed: bool,
    /// What would still wait, had it not been given up.
    owed: u64,
    /// The last look, and the next; none while nothing waits and nothing is written.
    last: Instant,
    pub(super) next: Option<Instant>,
    /// When the flow began to write, after its last pause, and what it had written with its first
    /// message.
    begun: (Instant, u64),
}

impl Watch {
    /// Of a flow that has this many bytes which never left up to now.
    pub(super) fn new(given: Option<Rate>, never_left: u64) -> Self {
        Self {
            given,
            measured: None,
            held: None,
            free: None,
            busy: None,
            missed: None,
            written: 0,
            wrote: Instant::ZERO,
            never_left,
            lapsed: false,
            owed: 0,
            last: Instant::ZERO,
            next: None,
            begun: (Instant::ZERO, 0),
        }
    }

    /// The flow writes again, something that has waited `since` an earlier time; it has written so
    /// many bytes with that. Returns when to look at it.
    pub(super) fn begin(&mut self, now: Instant, since: Instant, written: u64) -> Instant {
        // What took a time to write is what came after the first.
        self.begun = (since, written);
        let next = tick_after(now).min(now + SOON);
        self.next = Some(next);
        next
    }

    /// What the flow needs, if it writes: the rate that was given, or else is measured, or the mean
    /// since it began, as soon as there is one.
    pub(super) fn needs(&self, now: Instant, written: u64) -> Option<Rate> {
        let (begun, first) = self.begun;
        let time = now.since(begun);
        let mean = || Rate::from_bytes_over(written - first, time);
        self.next?;
        self.given
            .or_else(|| self.measured())
            .or_else(|| (time >= SOON).then(mean))
    }

    fn measured(&self) -> Option<Rate> {
        let bytes = self.measured.as_ref()?.upper()?;
        Some(Rate::from_bps((bytes * 8.0) as u64))
    }

    /// The rate that is needed, and the least that paths must be believed to carry.
    fn target(&mut self, now: Instant, written: u64) -> Option<(Rate, Rate)> {
        if let Some(given) = self.given {
            return Some((given, given));
        }
        if now.since(self.last) > PAUSE {
            self.measured = None;
        }
        let begin = || WriteRate::begin(now + PAUSE);
        let measured = self.measured.get_or_insert_with(begin);
        measured.observe(now, written, written);
        let target = self.measured()?;
        // The fastest of a stream's seconds are a little more than it needs.
        (target > Rate::ZERO).then(|| (target, target.scaled(0.9)))
    }

    /// Returns what the application should learn: the rate that there is, or `None` in it if that
    /// is the target again.
    pub(super) fn look(&mut self, now: Instant, look: &Look) -> Option<Option<Rate>> {
        if look.written > self.written {
            (self.written, self.wrote) = (look.written, now);
        }
        let idle = look.waiting == 0 && now.since(self.wrote) >= QUIET;
        let lapsed = look.never_left - self.never_left;
        let lapses = lapsed > 0 || self.lapsed;
        self.never_left = look.never_left;
        self.lapsed = lapsed > 0;
        self.next = (!idle).then(|| tick_after(now));
        let target = self.target(now, look.written);
        self.last = now;
        let (false, Some((target, least))) = (idle, target) else {
            // A pause is no evidence, neither way.
            (self.held, self.free, self.busy, self.owed) = (None, None, None, 0);
            return None;
        };
        let worth = |time: Duration| target.bytes_in(time);
        let begin = |since: &mut Since, holds: bool| match holds {
            true => Some(*since.get_or_insert((now, look.carried))),
            false => {
                *since = None;
                None
            }
        };
        let stays = lapses || look.waiting > worth(HELD);
        self.owed = if stays { self.owed + lapsed } else { 0 };
        let backlog = look.waiting + self.owed;
        let held = begin(&mut self.held, backlog > worth(HELD));
        let clear = backlog <= worth(FREE);
        self.busy = (!clear).then(|| self.busy.unwrap_or(now));
        let stands = self.busy.is_some_and(|busy| now.since(busy) >= STANDS);
        let goes_on = self.free.is_some() && !stands;
        let free = begin(&mut self.free, !lapses && (clear || goes_on));
        let got = |(since, carried): (Instant, u64)| {
            Rate::from_bytes_over(look.carried - carried, now.since(since))
        };
        match (self.missed, held, free) {
            (None, Some(held), _) if now.since(held.0) >= MISSED_AFTER => {
                let proved = backlog > worth(PROOF) || look.rates < least;
                // What drains a backlog may be more than the target.
                let lacks = got(held) < target;
                (proved && lacks).then(|| Some(self.tell(now, got(held))))
            }
            (Some(announced), Some(held), _)
                if now.since(announced.at) >= AGAIN && now.since(held.0) >= MISSED_AFTER =>
            {
                let capacity = got(held);
                self.held = Some((now, look.carried));
                let [new, old] = [capacity, announced.capacity].map(|rate| rate.as_bps() as f64);
                let differs = (new - old).abs() > old.max(1.0) * DIFFERS;
                let tells = differs && capacity < target;
                tells.then(|| Some(self.tell(now, capacity)))
            }
            (Some(_), _, Some(free)) if now.since(free.0) >= MET_AFTER => {
                // A tenth less is the jitter of what an encoder writes.
                let enough = got(free).as_bps() >= target.as_bps() / 10 * 9 || look.rates >= target;
                enough.then(|| {
                    self.missed = None;
                    None
                })
            }
            _ => None,
        }
    }

    fn tell(&mut self, now: Instant, capacity: Rate) -> Rate {
        self.missed = Some(Announced { at: now, capacity });
        self.held = None;
        capacity
    }
}

/// The first of the times at which flows are looked at.
pub(super) fn tick_after(now: Instant) -> Instant {
    let tick = TICK.as_nanos() as u64;
    Instant::from_nanos((now.as_nanos() / tick + 1).saturating_mul(tick))
}

#[cfg(test)]
mod tests;
