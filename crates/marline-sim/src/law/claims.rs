//! What each estimator says of a packet that leaves: a law.
//!
//! Older estimators say a time and how far off that is; to be scored they are given the shape that
//! who uses them assumes, a normal one.

use std::collections::VecDeque;

use marline_base::Instant;
use marline_proto::law::Law;
use marline_proto::path::Foreseen;

/// Who says when a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Estimator {
    /// The path's law.
    Law,
    /// `PathView::arrival`: half the smallest round trip and what stands before the packet, normal,
    /// with the deviation of round trips.
    View,
    /// Mean and variance of the last 256 delays, as S-EDPF's laws.
    Recent,
}

/// What is claimed of a packet: `None` where nothing is known yet.
pub type Claim = Option<Law>;

/// A normal variable's deviation over its mean absolute value: √(π/2).
const OVER_MEAN: f64 = 1.253_314;
/// No law is narrower (µs): what timers of hosts take, and what the path's law assumes.
const NARROWEST: f64 = 25.0;
/// Delays that S-EDPF remembers, and how often it learns the law again (ns).
const REMEMBERED: usize = 256;
const EVERY_MS: u64 = 100;
/// Fewer delays make no law.
const LEAST: usize = 8;

impl Estimator {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Law, Self::View, Self::Recent];

    /// What tables call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Law => "law",
            Self::View => "view",
            Self::Recent => "last 256",
        }
    }
}

/// The delays of a path's last packets, as they are acknowledged.
#[derive(Debug, Default)]
pub(super) struct Recent {
    delays: VecDeque<f64>,
    learnt: u64,
    normal: Option<(f64, f64)>,
}

impl Recent {
    /// A packet that left at `sent` arrived at `at_us`.
    pub(super) fn on_acked(&mut self, sent: Instant, at_us: u64) {
        if self.delays.len() == REMEMBERED {
            self.delays.pop_front();
        }
        self.delays
            .push_back(at_us as f64 - sent.as_micros() as f64);
    }

    /// Mean and deviation (µs), as learnt last.
    fn normal(&mut self, now: Instant) -> Option<(f64, f64)> {
        let ms = now.as_micros() / 1_000;
        if self.delays.len() >= LEAST && (self.normal.is_none() || ms >= self.learnt + EVERY_MS) {
            self.learnt = ms;
            let count = self.delays.len() as f64;
            let mean = self.delays.iter().sum::<f64>() / count;
            let squares = self.delays.iter().map(|d| (d - mean) * (d - mean));
            self.normal = Some((mean, (squares.sum::<f64>() / (count - 1.0)).sqrt()));
        }
        self.normal
    }
}

/// What all estimators say of a packet that leaves now, in the order of [`Estimator::ALL`].
pub(super) fn claims(now: Instant, foreseen: &Foreseen, recent: &mut Recent) -> [Claim; 3] {
    let (view, us) = (&foreseen.view, now.as_nanos() as f64 / 1e3);
    let normal =
        |delay: f64, deviation: f64| Law::normal(us + delay, deviation.max(NARROWEST), view.loss);
    let arrival = view.arrival(foreseen.size as u32).as_nanos() as f64 / 1e3;
    let deviation = OVER_MEAN * view.rtt_var.as_nanos() as f64 / 1e3;
    [
        foreseen.law.as_deref().copied(),
        Some(normal(arrival, deviation)),
        recent.normal(now).map(|(mean, sd)| normal(mean, sd)),
    ]
}
