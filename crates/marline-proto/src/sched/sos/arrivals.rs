//! A path's spacing, learnt from a session's feedback.

use marline_base::{Duration, Instant};

use super::{Moments, Spacing};
use crate::path::least::Least;
use crate::sched::per_path::PerPath;
use crate::sched::{Feedback, Outcome, PathView};
use crate::wire::PathId;

/// Packets that must have been seen before their spacing is believed; until then a path delivers as
/// steadily as its rate says.
const ENOUGH: usize = 16;
/// Packets whose spacing counts together: a late one is made up for by the next few.
const GROUP: usize = 4;
/// The quickest way is that of the last one or two of these: clocks drift, and routes change.
const WINDOW: Duration = Duration::from_secs(10);

/// What one path's packets showed.
///
/// A packet's time is that from when it could have arrived, had the path served nothing but it, or
/// from the arrival of the one before it if that was later. So the times of packets that follow
/// each other add up to their delay, whether the path was busy or not, and where packets overtake
/// each other it is the last of them that counts.
#[derive(Clone, Debug)]
struct Arrivals {
    spacing: Spacing,
    /// Least arrival less sending (µs).
    least: Least<Instant, i64>,
    /// When all that are known of had arrived (µs, peer's clock).
    frontier: i64,
    /// How long the path serves a symbol, by its rate (µs).
    service: f64,
}

impl Arrivals {
    fn new(memory: usize) -> Self {
        Self {
            spacing: Spacing::of(memory).in_groups(GROUP),
            least: Least::default(),
            frontier: i64::MIN,
            service: 0.0,
        }
    }

    fn on_arrival(&mut self, now: Instant, sent: Instant, at_us: u64) {
        let (at, sent) = (at_us as i64, sent.as_micros() as i64);
        self.least.note(now, WINDOW, at - sent);
        let least = self.least.get().unwrap_or(at - sent);
        // The quickest packet was served, too.
        let earliest = (sent + least) as f64 - self.service;
        let start = earliest.max(self.frontier as f64);
        self.spacing.record((at as f64 - start) * 1e-6);
        self.frontier = self.frontier.max(at);
    }
}

/// All paths.
#[derive(Clone, Debug)]
pub(super) struct Known {
    memory: usize,
    paths: PerPath<Arrivals>,
}

impl Known {
    /// Remembers this number of packets of each path.
    pub(super) fn new(memory: usize) -> Self {
        Self {
            memory,
            paths: PerPath::default(),
        }
    }

    /// Learns from what became of a symbol; short ones say nothing of those of full length.
    pub(super) fn on_feedback(&mut self, now: Instant, feedback: &Feedback, symbol: u32) {
        if let (Outcome::Acked, Some(at_us)) = (feedback.outcome, feedback.arrived_us)
            && feedback.symbol.len >= symbol / 2
        {
            let memory = self.memory;
            let path = self.paths.of(feedback.path, || Arrivals::new(memory));
            path.on_arrival(now, feedback.sent, at_us);
        }
    }

    /// The quickest way of late to the first packet that is served (seconds, peer's clock less
    /// ours); `None` before the first arrival.
    pub(super) fn way(&self, path: PathId) -> Option<f64> {
        let path = self.paths.get(path)?;
        let least = path.least.get()?;
        Some((least as f64 - path.service) * 1e-6)
    }

    /// Spacing of a path's symbols of `symbol` bytes (seconds).
    pub(super) fn moments(&mut self, view: &PathView, symbol: u32) -> Moments {
        let service = view.rate.time_for(u64::from(symbol)).as_secs_f64();
        if let Some(path) = self.paths.get_mut(view.id) {
            path.service = service * 1e6;
            if path.spacing.len() >= ENOUGH
                && let Some(moments) = path.spacing.moments()
            {
                return moments;
            }
        }
        Moments {
            mean: service,
            deviation: 0.0,
            skewness: 0.0,
            min: service,
            p95: service,
        }
    }
}
