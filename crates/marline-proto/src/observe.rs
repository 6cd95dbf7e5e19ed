//! Records of what a session does, for statistics, logs and tests.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use marline_base::{Duration, Instant, Rate};
use smallvec::SmallVec;

use crate::flow::{Fate, Symbol};
use crate::path::{EmissionKind, Foreseen, PathState};
use crate::wire::{FlowId, FlowKind, PathId, Side};

/// One thing that a session did or learnt.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A datagram left.
    Sent {
        /// On this path.
        path: PathId,
        /// Its packet number.
        packet: u64,
        /// Its size (bytes).
        size: usize,
        /// Bytes in flight on the path, this datagram included.
        in_flight: u64,
    },
    /// A symbol left in a datagram.
    Emitted {
        /// The flow.
        flow: FlowId,
        /// The symbol.
        symbol: Symbol,
        /// The path.
        path: PathId,
        /// For the first time, as a copy, again, or as a combination of others.
        kind: EmissionKind,
    },
    /// A datagram was acknowledged.
    Acked {
        /// On this path.
        path: PathId,
        /// Its packet number.
        packet: u64,
        /// Its size (bytes).
        size: u32,
        /// Time since it was sent.
        after: Duration,
        /// When it arrived, on the peer's clock (µs), if the peer said so.
        arrived_us: Option<u64>,
        /// It had been declared lost.
        spurious: bool,
    },
    /// An acknowledgement of packets of a path came over that path itself.
    Heard {
        /// On this path.
        path: PathId,
        /// When the peer wrote it, on the peer's clock (µs): with the time of this record, how long
        /// the way back took, but for what the two clocks differ by.
        written_us: u64,
    },
    /// A datagram was declared lost.
    Lost {
        /// On this path.
        path: PathId,
        /// Its packet number.
        packet: u64,
        /// Time since it was sent.
        after: Duration,
    },
    /// A datagram arrived.
    Received {
        /// On this path.
        path: PathId,
        /// Its packet number.
        packet: u64,
        /// Its size (bytes).
        size: usize,
        /// It had arrived before.
        duplicate: bool,
    },
    /// Something of a flow arrived, or its receiver stopped waiting for something.
    Progress {
        /// The flow.
        flow: FlowId,
        /// What arrived, if something did, whether or not it had arrived before.
        symbol: Option<Symbol>,
        /// Unit and offset below which everything was delivered or given up; a stream is unit 0.
        /// `u64::MAX` where the order is not kept, so that nothing waits, and when the flow is
        /// over.
        frontier: (u64, u64),
    },
    /// A source symbol came out of repair symbols before it arrived itself.
    Repaired {
        /// The flow.
        flow: FlowId,
        /// The symbol.
        symbol: Symbol,
    },
    /// A block or a piece of an object is whole at its receiver.
    UnitWhole {
        /// The flow.
        flow: FlowId,
        /// The unit.
        unit: u64,
        /// It came after its deadline.
        late: bool,
    },
    /// The sender of a unit learnt what became of it.
    UnitSettled {
        /// The flow.
        flow: FlowId,
        /// The unit.
        unit: u64,
        /// What became of it.
        fate: Fate,
    },
    /// A path got a name, which the program gave it.
    PathNamed {
        /// The path.
        path: PathId,
        /// Its name.
        name: Cow<'static, str>,
    },
    /// How a path stands, at most every 100 ms, when something of it was acknowledged.
    PathMetrics(PathMetrics),
    /// A flow was opened.
    FlowOpened {
        /// The flow.
        flow: FlowId,
        /// Its kind.
        kind: FlowKind,
        /// By the peer.
        by_peer: bool,
    },
    /// Nothing is left of a flow.
    FlowClosed {
        /// The flow.
        flow: FlowId,
    },
    /// A path changed its state.
    PathState {
        /// The path.
        path: PathId,
        /// Its new state.
        state: PathState,
        /// Why.
        reason: Cow<'static, str>,
    },
}

/// How a path stands at its sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathMetrics {
    /// The path.
    pub path: PathId,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Mean deviation of the round-trip time.
    pub rtt_var: Duration,
    /// Smallest round-trip time of the last 10 to 20 s.
    pub min_rtt: Duration,
    /// Congestion window (bytes).
    pub cwnd: u64,
    /// Bytes sent and neither acknowledged nor lost.
    pub in_flight: u64,
    /// Expected delivery rate.
    pub rate: Rate,
    /// Fraction of packets lost lately, 0..=1.
    pub loss: f64,
}

/// Listens to a session's records.
pub trait Observer: Send {
    /// Something happened at `now`.
    fn on(&mut self, now: Instant, record: &Record);

    /// Does it want records now? While no observer of a session does, those that take work to make
    /// are not made: of flows, and of how paths stand. It may ignore the others.
    fn listens(&self) -> bool {
        true
    }

    /// Does it want to know what is expected of each datagram as it leaves? That costs more than
    /// sending it.
    fn foresees(&self) -> bool {
        false
    }

    /// A datagram that is to be acknowledged leaves next; only for those who want to know what is
    /// expected of it ([`Observer::foresees`]).
    fn on_foreseen(&mut self, now: Instant, foreseen: &Foreseen) {
        let _ = (now, foreseen);
    }
}

/// Makes the observers of sessions; `None` for a session that is not observed.
type Make = dyn Fn(Instant, Side) -> Option<Box<dyn Observer>> + Send + Sync;

/// Who listens to each session that is made from a [`Config`](crate::Config): none by default.
///
/// ```
/// use marline_base::Instant;
/// use marline_proto::Config;
/// use marline_proto::observe::{Observer, Observers, Record};
///
/// struct Losses;
///
/// impl Observer for Losses {
///     fn on(&mut self, now: Instant, record: &Record) {
///         if let Record::Lost { path, packet, .. } = record {
///             println!("{now:?}: packet {packet} of path {} is lost", path.0);
///         }
///     }
/// }
///
/// let config = Config {
///     observers: Observers::new(|_now, _side| Some(Box::new(Losses))),
///     ..Config::default()
/// };
/// # let _ = config;
/// ```
#[derive(Clone, Default)]
pub struct Observers(SmallVec<[Arc<Make>; 1]>);

impl Observers {
    /// `make` is called once for each session as it begins, with the time of its clock then, and
    /// its side.
    pub fn new(
        make: impl Fn(Instant, Side) -> Option<Box<dyn Observer>> + Send + Sync + 'static,
    ) -> Self {
        Self::default().and(make)
    }

    /// One more, beside those that there are.
    #[must_use]
    pub fn and(
        mut self,
        make: impl Fn(Instant, Side) -> Option<Box<dyn Observer>> + Send + Sync + 'static,
    ) -> Self {
        self.0.push(Arc::new(make));
        self
    }

    pub(crate) fn of(&self, now: Instant, side: Side) -> Observed {
        Observed {
            observers: self.0.iter().filter_map(|make| make(now, side)).collect(),
            soon: Vec::new(),
        }
    }
}

impl PartialEq for Observers {
    /// The very same observers.
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (&Arc<Make>, &Arc<Make>)| Arc::ptr_eq(a, b);
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observers").field(&self.0.len()).finish()
    }
}

/// The observers of a session; cost nothing when there are none.
#[derive(Default)]
pub(crate) struct Observed {
    observers: SmallVec<[Box<dyn Observer>; 2]>,
    /// What happened where nobody knew the time: it goes before the next record. At most a record
    /// for each flow that was opened or closed since.
    soon: Vec<Record>,
}

impl Observed {
    pub(crate) fn add(&mut self, observer: Box<dyn Observer>) {
        self.observers.push(observer);
    }

    /// Does anybody listen?
    #[inline]
    pub(crate) fn listens(&self) -> bool {
        self.observers.iter().any(|observer| observer.listens())
    }

    /// Does anybody want to know what is expected of each datagram?
    #[inline]
    pub(crate) fn foresees(&self) -> bool {
        self.observers.iter().any(|observer| observer.foresees())
    }

    pub(crate) fn on_foreseen(&mut self, now: Instant, foreseen: &Foreseen) {
        for observer in self.observers.iter_mut().filter(|one| one.foresees()) {
            observer.on_foreseen(now, foreseen);
        }
    }

    #[inline]
    pub(crate) fn on(&mut self, now: Instant, record: &Record) {
        if !self.observers.is_empty() {
            self.tell(now, record);
        }
    }

    #[cold]
    fn tell(&mut self, now: Instant, record: &Record) {
        for earlier in self.soon.drain(..) {
            for observer in &mut self.observers {
                observer.on(now, &earlier);
            }
        }
        for observer in &mut self.observers {
            observer.on(now, record);
        }
    }

    /// Something happened now, a moment before the next record.
    pub(crate) fn soon(&mut self, record: Record) {
        if self.listens() {
            self.soon.push(record);
        }
    }
}

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observed")
            .field(&self.observers.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicUsize, Ordering};

    /// Counts what it hears.
    struct Ear(Arc<AtomicUsize>, bool);

    impl Observer for Ear {
        fn on(&mut self, _: Instant, _: &Record) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn listens(&self) -> bool {
            self.1
        }
    }

    #[test]
    fn what_takes_work_is_made_for_those_who_listen_and_precedes_the_next_record() {
        let flow = FlowId(4);
        for (listens, heard) in [(true, 2), (false, 1)] {
            let count = Arc::default();
            let mut observed = Observed::default();
            assert!(!observed.listens());
            observed.add(Box::new(Ear(Arc::clone(&count), listens)));
            assert_eq!(observed.listens(), listens);
            observed.soon(Record::FlowClosed { flow });
            assert_eq!(count.load(Ordering::Relaxed), 0);
            observed.on(Instant::ZERO, &Record::FlowClosed { flow });
            assert_eq!(count.load(Ordering::Relaxed), heard);
        }
    }
}
