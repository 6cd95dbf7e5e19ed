//! When something happened last, and until when nothing is due.

use marline_base::{Duration, Instant};

use crate::config::Config;
use crate::path::PathTimer;
use crate::path::quiet::Range;
use crate::wire::Params;

/// Why a session asks to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WakeReason {
    /// A pacer lets the next datagram go.
    Pacing,
    /// An acknowledgement is due.
    Ack,
    /// A packet is lost unless it is acknowledged by then.
    Loss,
    /// Nothing came back from a path.
    ProbeTimeout,
    /// Feedback of a path is late.
    Overdue,
    /// A path is given up.
    Death,
    /// A probe of a suspect or dead path is due.
    Trial,
    /// A path was quiet for long.
    KeepAlive,
    /// Whether a path takes long datagrams again is tried.
    Size,
    /// A message's lifetime ends, or a receiver has waited long enough for one.
    Lifetime,
    /// Whether an application gets the rate that it needs is looked at.
    Target,
    /// A scheduler asked for it.
    Scheduler,
    /// Schedulers of many flows have more to plan: at once, after what else the driver serves.
    Planning,
    /// The session has heard nothing for long.
    Idle,
}

impl From<PathTimer> for WakeReason {
    fn from(timer: PathTimer) -> Self {
        match timer {
            PathTimer::Loss => Self::Loss,
            PathTimer::ProbeTimeout => Self::ProbeTimeout,
            PathTimer::Overdue | PathTimer::Late => Self::Overdue,
            PathTimer::Death => Self::Death,
            PathTimer::Trial => Self::Trial,
            PathTimer::KeepAlive => Self::KeepAlive,
            PathTimer::Size => Self::Size,
        }
    }
}

/// Keep-alives of a path on standby beside an active one are this many times rarer: every 25 s by
/// default, which is less than the 30 s after which the most forgetful address translators drop a
/// mapping. From there on it is learnt how long the path may be quiet (`path/quiet.rs`).
const STANDBY: u32 = 5;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Timers {
    pub(super) patience: Patience,
    pub(super) last_received: Instant,
    /// When anything but pings and acknowledgements went or came last.
    pub(super) last_traffic: Instant,
    /// The first of the paths' timers but their acknowledgements, or something earlier; `None` once
    /// it may be too late. Sending and receiving data only puts timers off, so it holds for long.
    pub(super) path: Option<(Instant, WakeReason)>,
    /// Set while nothing can leave or fall due without an input: until when.
    pub(super) rest: Option<Rest>,
}

impl Timers {
    pub(super) fn new(now: Instant, patience: Patience) -> Self {
        Self {
            patience,
            last_received: now,
            last_traffic: now,
            path: None,
            rest: None,
        }
    }

    /// Something happened by which more may leave, or fall due sooner.
    pub(super) fn wake(&mut self) {
        self.rest = None;
    }

    /// Something happened by which paths' timers may run out sooner.
    pub(super) fn wake_paths(&mut self) {
        self.path = None;
        self.rest = None;
    }
}

/// For how long the two sides wait, from what each said at the beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Silence after which the session is over.
    pub(super) idle: Duration,
    /// A path that sent nothing for this time sends a ping.
    pub(super) keep_alive: Duration,
    /// How long a path in reserve is quiet.
    pub(super) quiet: Range,
    /// The peer's promise.
    pub(super) peer_ack_delay: Duration,
}

impl Patience {
    pub(super) fn between(config: &Config, peer: &Params) -> Self {
        let theirs = match peer.max_idle_timeout_ms {
            0 => Duration::MAX,
            ms => Duration::from_millis(ms),
        };
        let idle = config.idle_timeout.min(theirs);
        let keep_alive = config.keep_alive.min(idle / 3);
        let theirs = Duration::from_millis(peer.max_path_quiet_ms);
        Self {
            idle,
            keep_alive,
            quiet: Range {
                usual: keep_alive * STANDBY,
                most: config.longest_quiet.min(theirs),
            },
            peer_ack_delay: Duration::from_micros(peer.max_ack_delay_us),
        }
    }
}

/// Until when nothing happens by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rest {
    /// The first timer, and why it was set.
    pub(super) timer: (Instant, WakeReason),
    /// When a pacer lets go what waits for it.
    pub(super) pacing: Option<Instant>,
    /// The earlier of the two, which is asked for most.
    pub(super) wake: (Instant, WakeReason),
}

impl Rest {
    pub(super) fn new(timer: (Instant, WakeReason), pacing: Option<Instant>) -> Self {
        let paced = pacing.map(|at| (at, WakeReason::Pacing));
        Self {
            timer,
            pacing,
            wake: paced.map_or(timer, |paced| paced.min(timer)),
        }
    }

    /// Is nothing missed by resting until then, if what is known exactly is `exact`?
    pub(super) fn ends_by(&self, exact: &Self) -> bool {
        self.timer.0 <= exact.timer.0 && self.pacing == exact.pacing
    }
}
