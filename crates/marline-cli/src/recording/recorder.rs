//! From a session's records to windows.

use super::format::{Line, STEP_MS, Way};
use marline_base::Instant;
use marline_proto::observe::{Observer, Observers, Record};
use marline_proto::wire::PathId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Clock};

/// A window is whole after this time: by then the session knows what became of its packets, those
/// of a path among them that was given up.
const WHOLE_MS: u64 = 10_000;
/// Windows are kept for this long beside that, for whoever asks.
const KEPT_MS: u64 = 10_000;
/// Who has asked nothing for this long is gone, and nothing is recorded any more.
const PATIENCE: Duration = Duration::from_secs(10);
/// Delays in a window, one for each of its parts of the same length.
const DELAYS: u64 = 4;
/// So far into a unit a symbol belongs to a long transfer (bytes); a stream is one unit.
const LONG: u64 = 64 << 10;
/// Most packets that are taken for lost at once: what is missing beyond was never sent like that.
const MOST_LOST: u64 = 10_000;
/// Paths that are recorded at once, those of sessions that are over among them (some 250 kB each).
const MOST_PATHS: usize = 64;
/// Most names that are known; an address that is dialled again is another path of the same name.
const MOST_NAMES: usize = 1_024;

/// Records how the paths of a program's sessions behave, while somebody asks for it. Cheap to
/// clone.
#[derive(Clone, Debug)]
pub struct Recorder {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    clock: Clock,
    on: AtomicBool,
    sessions: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// When it began, on the recorder's clock.
    began: Duration,
    /// When somebody asked last.
    asked: Duration,
    /// Nobody needs to ask.
    for_good: bool,
    paths: BTreeMap<(u64, PathId), Log>,
    /// What paths are called, whether or not anything is recorded.
    names: BTreeMap<(u64, PathId), String>,
    /// Sessions that are over, whose paths are kept yet.
    over: Vec<u64>,
}

/// A path's windows.
#[derive(Debug, Default)]
struct Log {
    /// Number of the first window that is kept.
    first: u64,
    windows: VecDeque<(Way, Way)>,
    /// One more than the highest number that arrived, and when it did (ms).
    received: Option<(u64, u64)>,
}

/// What was recorded since somebody asked last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// The windows that are whole, in the order of time.
    pub lines: Vec<Line>,
    /// What to ask for next: the first window that is not among them (ms).
    pub next_ms: u64,
}

impl Default for Recorder {
    fn default() -> Self {
        Self {
            inner: Arc::new(Inner {
                clock: Clock::now(),
                on: AtomicBool::new(false),
                sessions: AtomicU64::new(0),
                state: Mutex::default(),
            }),
        }
    }
}

impl Recorder {
    /// Begins, until [`all`](Self::all).
    pub fn begin(&self) {
        self.begin_at(self.inner.clock.elapsed(), true);
    }

    fn begin_at(&self, now: Duration, for_good: bool) {
        let mut state = self.inner.lock();
        state.began = now;
        state.asked = now;
        state.for_good = for_good;
        state.forget();
        self.inner.on.store(true, Ordering::Relaxed);
    }

    /// Beside those of `others`, observers that record.
    #[must_use]
    pub fn observers(&self, others: Observers) -> Observers {
        let recorder = self.clone();
        others.and(move |now, _| Some(recorder.observer(recorder.inner.clock.elapsed(), now)))
    }

    /// The observer of a session that began at `began` of the recorder's clock, and at `now` of its
    /// own.
    fn observer(&self, began: Duration, now: Instant) -> Box<dyn Observer> {
        let session = self.inner.sessions.fetch_add(1, Ordering::Relaxed);
        Box::new(Tap {
            session,
            began: (began, now),
            ahead_us: None,
            arriving: None,
            inner: Arc::clone(&self.inner),
        })
    }

    /// Windows from `since_ms` on that are whole, or with `all` those that are not whole yet, too.
    /// Who asks for the first time, without a time, begins to record if nobody else has; who does
    /// not ask for ten seconds has what was recorded forgotten. `None` where that has happened.
    pub fn ask(&self, since_ms: Option<u64>, all: bool) -> Option<Part> {
        self.ask_at(self.inner.clock.elapsed(), since_ms, all)
    }

    fn ask_at(&self, now: Duration, since_ms: Option<u64>, all: bool) -> Option<Part> {
        self.inner.stop_unasked(now);
        match (self.inner.on.load(Ordering::Relaxed), since_ms) {
            (true, _) => {}
            (false, None) => self.begin_at(now, false),
            (false, Some(_)) => return None,
        }
        let mut state = self.inner.lock();
        let age = (now.saturating_sub(state.began)).as_millis() as u64;
        // Another recording than the one that is asked for.
        if since_ms.is_some_and(|since| since > age + STEP_MS) {
            return None;
        }
        state.asked = now;
        let first = since_ms.unwrap_or(age) / STEP_MS;
        let until = match all {
            true => age / STEP_MS + 1,
            false => age.saturating_sub(WHOLE_MS) / STEP_MS,
        };
        let until = until.max(first);
        Some(Part {
            lines: state.lines(first, until),
            next_ms: until * STEP_MS,
        })
    }

    /// Everything, and the end of the recording, in milliseconds from its beginning.
    pub fn all(&self) -> Part {
        self.inner.on.store(false, Ordering::Relaxed);
        let state = self.inner.lock();
        let age = self.inner.clock.elapsed().saturating_sub(state.began);
        let until = age.as_millis() as u64 / STEP_MS + 1;
        Part {
            lines: state.lines(0, until),
            next_ms: until * STEP_MS,
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops if nobody has asked for long.
    fn stop_unasked(&self, now: Duration) {
        let mut state = self.lock();
        if !state.for_good && now.saturating_sub(state.asked) > PATIENCE {
            self.on.store(false, Ordering::Relaxed);
            state.forget();
        }
    }
}

impl State {
    fn forget(&mut self) {
        self.paths.clear();
        let over = std::mem::take(&mut self.over);
        self.names.retain(|(session, _), _| !over.contains(session));
    }

    /// Makes room for a path: a modem that flaps has another one each time.
    fn forget_oldest(&mut self) {
        let newest = |(_, log): &(&(u64, PathId), &Log)| log.first + log.windows.len() as u64;
        let oldest = self.paths.iter().min_by_key(newest).map(|(key, _)| *key);
        if let Some(key) = oldest {
            self.paths.remove(&key);
        }
    }

    /// Windows of these numbers.
    fn lines(&self, first: u64, until: u64) -> Vec<Line> {
        let mut lines = Vec::new();
        for ((session, path), log) in &self.paths {
            let name = self.names.get(&(*session, *path));
            let name = name.cloned().unwrap_or_else(|| format!("path-{}", path.0));
            for (number, (up, down)) in (log.first..).zip(&log.windows) {
                let wanted = (first..until).contains(&number);
                if !wanted || up.is_empty() && down.is_empty() {
                    continue;
                }
                lines.push(Line {
                    ms: number * STEP_MS,
                    path: name.clone(),
                    session: *session,
                    up: up.clone(),
                    down: down.clone(),
                });
            }
        }
        lines.sort_by(|a, b| (a.ms, &a.path).cmp(&(b.ms, &b.path)));
        lines
    }
}

impl Log {
    /// The window of a time, unless it is too long ago; `kept` is how many are kept before `now`.
    fn window(&mut self, ms: u64, now_ms: u64, kept: Option<u64>) -> Option<&mut (Way, Way)> {
        if let Some(kept) = kept {
            let first = now_ms.saturating_sub(kept) / STEP_MS;
            while self.first < first {
                self.windows.pop_front();
                self.first += 1;
            }
        }
        let index = usize::try_from((ms / STEP_MS).checked_sub(self.first)?).ok()?;
        // Nothing arrives much later than now.
        if ms > now_ms + WHOLE_MS {
            return None;
        }
        if index >= self.windows.len() {
            self.windows.resize_with(index + 1, Default::default);
        }
        self.windows.get_mut(index)
    }
}

/// Adds a delay, if its part of the window has none yet.
fn add_delay(way: &mut Way, sent_ms: f64, delay_ms: f64) {
    let part = |ms: f64| (ms * DELAYS as f64 / STEP_MS as f64) as u64;
    let new = way.delays.iter().all(|(at, _)| part(*at) != part(sent_ms));
    if new && way.delays.len() < DELAYS as usize {
        let micros = |ms: f64| (ms * 1e3).round() / 1e3;
        way.delays.push((micros(sent_ms), micros(delay_ms)));
    }
}

/// A session's observer.
struct Tap {
    session: u64,
    /// When the session began, on the recorder's clock and on its own.
    began: (Duration, Instant),
    /// The peer's clock less ours (µs), as a first guess that stays.
    ahead_us: Option<i64>,
    /// The path on which a datagram arrives now.
    arriving: Option<PathId>,
    inner: Arc<Inner>,
}

impl Tap {
    /// Lets `change` have the window of a time, that of `now` or an earlier one.
    fn window(&self, path: PathId, ms: f64, now_ms: f64, change: impl FnOnce(&mut (Way, Way))) {
        self.log(path, |log, kept| {
            if let Some(window) = log.window(ms as u64, now_ms as u64, kept) {
                change(window);
            }
        });
    }

    fn log(&self, path: PathId, change: impl FnOnce(&mut Log, Option<u64>)) {
        let mut state = self.inner.lock();
        let kept = (!state.for_good).then_some(WHOLE_MS + KEPT_MS);
        let key = (self.session, path);
        if !state.paths.contains_key(&key) && state.paths.len() >= MOST_PATHS {
            state.forget_oldest();
        }
        change(state.paths.entry(key).or_default(), kept);
    }

    /// `now`, and the time that is `before` earlier, in milliseconds from the beginning of the
    /// recording; `None` where that is before the beginning.
    fn times(&self, now: Instant, before: marline_base::Duration) -> Option<(f64, f64)> {
        let mut state = self.inner.lock();
        let (began, zero) = self.began;
        let at = began + now.since(zero);
        if !state.for_good && at.saturating_sub(state.asked) > PATIENCE {
            self.inner.on.store(false, Ordering::Relaxed);
            state.forget();
            return None;
        }
        let now_ms = at.checked_sub(state.began)?.as_secs_f64() * 1e3;
        let sent = now_ms - before.as_secs_f64() * 1e3;
        (sent >= 0.0).then_some((now_ms, sent))
    }

    /// A datagram of the peer arrived; numbers that are missing before it are lost, unless they
    /// arrive yet.
    fn received(&self, now: Instant, path: PathId, packet: u64, size: usize) {
        let Some((now_ms, _)) = self.times(now, marline_base::Duration::ZERO) else {
            return;
        };
        self.log(path, |log, kept| {
            let now_ms = now_ms as u64;
            let (next, last_ms) = log.received.unwrap_or((packet, now_ms));
            if packet < next {
                // It was taken for lost.
                let found = log.windows.iter_mut().rev().find(|(_, down)| down.lost > 0);
                if let Some((_, down)) = found {
                    down.lost -= 1;
                    down.sent -= 1;
                }
            } else {
                let missing = (packet - next).min(MOST_LOST);
                // Of a long silence nobody knows when they were sent.
                for number in 0..missing {
                    let at = last_ms + (now_ms - last_ms) * (number + 1) / (missing + 1);
                    if let Some((_, down)) = log.window(at, now_ms, kept) {
                        down.sent += 1;
                        down.lost += 1;
                    }
                }
                log.received = Some((packet + 1, now_ms));
            }
            if let Some((_, down)) = log.window(now_ms, now_ms, kept) {
                down.sent += 1;
                down.arrived += size as u64;
            }
        });
    }
}

impl Observer for Tap {
    fn listens(&self) -> bool {
        self.inner.on.load(Ordering::Relaxed)
    }

    fn on(&mut self, now: Instant, record: &Record) {
        if let Record::PathNamed { path, ref name } = *record {
            let mut state = self.inner.lock();
            state
                .names
                .insert((self.session, path), name.clone().into_owned());
            if state.names.len() > MOST_NAMES {
                state.names.pop_first();
            }
            return;
        }
        if !self.listens() {
            return;
        }
        match *record {
            Record::Sent { path, .. } => {
                if let Some((now_ms, _)) = self.times(now, marline_base::Duration::ZERO) {
                    self.window(path, now_ms, now_ms, |(up, _)| up.sent += 1);
                }
            }
            Record::Acked {
                path,
                size,
                after,
                arrived_us,
                spurious,
                ..
            } => {
                let Some((now_ms, sent_ms)) = self.times(now, after) else {
                    return;
                };
                if spurious {
                    let fewer = |(up, _): &mut (Way, Way)| up.lost = up.lost.saturating_sub(1);
                    self.window(path, sent_ms, now_ms, fewer);
                }
                let sent_us = (now.as_micros() as i64) - after.as_micros() as i64;
                let half = after.as_micros() as i64 / 2;
                let took_us = match arrived_us {
                    Some(at) => {
                        let took = at as i64 - sent_us;
                        let ahead = *self.ahead_us.get_or_insert(took - half);
                        took - ahead
                    }
                    None => half,
                };
                let took_ms = took_us as f64 / 1e3;
                if arrived_us.is_some() {
                    let add = |(up, _): &mut (Way, Way)| add_delay(up, sent_ms, took_ms);
                    self.window(path, sent_ms, now_ms, add);
                }
                let arrived_ms = (sent_ms + took_ms).clamp(sent_ms, now_ms);
                let add = |(up, _): &mut (Way, Way)| up.arrived += u64::from(size);
                self.window(path, arrived_ms, now_ms, add);
            }
            Record::Lost { path, after, .. } => {
                if let Some((now_ms, sent_ms)) = self.times(now, after) {
                    self.window(path, sent_ms, now_ms, |(up, _)| up.lost += 1);
                }
            }
            Record::Received {
                path,
                packet,
                size,
                duplicate,
            } => {
                self.arriving = (!duplicate).then_some(path);
                if !duplicate {
                    self.received(now, path, packet, size);
                }
            }
            Record::Heard { path, written_us } => {
                let Some(ahead) = self.ahead_us else { return };
                let took_us = now.as_micros() as i64 - (written_us as i64 - ahead);
                let took = marline_base::Duration::from_micros(took_us.max(0) as u64);
                if let Some((now_ms, sent_ms)) = self.times(now, took) {
                    let took_ms = took_us as f64 / 1e3;
                    let add = |(_, down): &mut (Way, Way)| add_delay(down, sent_ms, took_ms);
                    self.window(path, sent_ms, now_ms, add);
                }
            }
            Record::Emitted { symbol, path, .. } if symbol.offset >= LONG => {
                if let Some((now_ms, _)) = self.times(now, marline_base::Duration::ZERO) {
                    let bulk = u64::from(symbol.len);
                    self.window(path, now_ms, now_ms, |(up, _)| up.bulk += bulk);
                }
            }
            Record::Progress {
                symbol: Some(symbol),
                ..
            } if symbol.offset >= LONG => {
                let times = self.times(now, marline_base::Duration::ZERO);
                if let Some(((now_ms, _), path)) = times.zip(self.arriving) {
                    let bulk = u64::from(symbol.len);
                    self.window(path, now_ms, now_ms, |(_, down)| down.bulk += bulk);
                }
            }
            _ => {}
        }
    }
}

impl Drop for Tap {
    /// What a session's paths are called is needed for as long as something is kept of them.
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        state.over.push(self.session);
        if !self.listens() {
            state.forget();
        }
    }
}

#[cfg(test)]
mod tests;
