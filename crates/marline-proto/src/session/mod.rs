//! The session: glue between flows, schedulers and paths.

use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use marline_base::{Duration, Instant, Rng};

use crate::config::{Config, ConfigError};
use crate::event::{CloseReason, Event};
use crate::flow::{Advance, Symbol};
use crate::observe::{Observed, Observer, Record};
use crate::path::{Control, Path};
use crate::sched::Common;
use crate::wire::{FlowId, Params, PathId};

pub use crate::wire::Side;

mod acks;
mod again;
mod ageing;
mod carry;
mod close;
mod code;
mod control;
mod credit;
mod demand;
mod feedback;
mod flow;
mod flow_end;
mod flow_timers;
mod flows;
mod health;
mod input;
mod legacy;
mod memory;
mod needed_rate;
mod numbers;
mod opening;
mod output;
mod path_set;
mod paths;
mod planning;
mod reinject;
mod report;
mod rescue;
mod share;
#[cfg(test)]
mod shrinking;
mod spill;
mod starts;
mod table;
mod timeouts;
mod timers;
mod turns;
mod units;
mod views;
mod waiting;
mod warm;
mod watch;

use ageing::Ageing;
use credit::Credit;
use flow_timers::FlowTimers;
use legacy::Legacies;
use memory::Memory;
use needed_rate::Watches;
use numbers::Numbers;
use path_set::Paths;
use planning::Planning;
use share::Share;
use starts::Starts;
use table::Flows;
use timers::{Patience, Timers};
use views::Views;
use waiting::Waiting;
use warm::Load;

pub use opening::{FlowInfo, FlowOptions, OpenError, WriteError};
pub use output::Transmit;
pub use paths::PathError;
pub use timers::WakeReason;
pub use units::Accepted;

/// All paths and flows between one client and one server, on one side.
///
/// # Contract
///
/// Inputs: [`handle_datagram`](Self::handle_datagram), [`handle_timeout`](Self::handle_timeout),
/// [`add_path`](Self::add_path), [`remove_path`](Self::remove_path),
/// [`set_standby`](Self::set_standby), [`path_unblocked`](Self::path_unblocked),
/// [`path_max_datagram`](Self::path_max_datagram), and the flow operations (`open_flow`, `write`,
/// `send`, `read`, …). Each takes the present as an argument; the present never goes back.
///
/// Outputs: [`poll_transmit`](Self::poll_transmit) until `None`, [`poll_event`](Self::poll_event)
/// until `None`, then [`poll_timeout`](Self::poll_timeout). After any number of inputs at one
/// instant the outputs are drained in this order; then the driver waits for the next input or the
/// timeout. Nothing is sent or reported unless it is polled.
///
/// The session never blocks, allocates within the bounds of its [`Config`], and does not panic on
/// any datagram.
///
/// # The loop
///
/// Two sessions and a wire of 10 ms between them, in time that the caller makes up:
///
/// ```
/// use bytes::Bytes;
/// use marline_base::{Duration, Instant};
/// use marline_proto::flow::Chunk;
/// use marline_proto::path::PathParams;
/// use marline_proto::wire::{FlowKind, PathId};
/// use marline_proto::{Config, Event, FlowOptions, Session, Side};
///
/// let (mut now, config) = (Instant::ZERO, Config::default());
/// let session = |side| Session::new(now, side, config.clone(), config.params(), 7);
/// let mut ends = [session(Side::Client)?, session(Side::Server)?];
/// for end in &mut ends {
///     end.add_path(now, PathId(0), &PathParams::default())?;
/// }
/// let flow = ends[0].open_flow(&FlowOptions::new(FlowKind::Stream))?;
/// ends[0].write(now, flow, &Bytes::from_static(b"hello"))?;
/// ends[0].finish(flow);
///
/// // What is under way: when it arrives, at which end, and the datagram.
/// let mut wire: Vec<(Instant, usize, PathId, Bytes)> = Vec::new();
/// let mut heard = Vec::new();
/// while heard != b"hello" {
///     // Whatever arrives now, and timers that are due.
///     let arrived = wire.extract_if(.., |(at, ..)| *at <= now).collect::<Vec<_>>();
///     for (_, end, path, datagram) in arrived {
///         ends[end].handle_datagram(now, path, &datagram);
///     }
///     let mut wake = None;
///     for (i, end) in ends.iter_mut().enumerate() {
///         end.handle_timeout(now);
///         let mut datagram = Vec::new();
///         while let Some(sent) = end.poll_transmit(now, &mut datagram) {
///             let arrives = now + Duration::from_millis(10);
///             wire.push((arrives, 1 - i, sent.path, datagram.split_off(0).into()));
///         }
///         while let Some(event) = end.poll_event() {
///             if let Event::FlowReadable(flow) = event {
///                 while let Chunk::Data(data) = end.read(now, flow, 1_000) {
///                     heard.extend_from_slice(&data);
///                 }
///             }
///         }
///         let timer = end.poll_timeout(now).map(|(at, _)| at);
///         wake = timer.into_iter().chain(wake).min();
///     }
///     let next = wire.iter().map(|(at, ..)| *at).chain(wake).min();
///     now = next.expect("there is always a timer");
/// }
/// assert!(now < Instant::ZERO + Duration::from_millis(50));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Session {
    side: Side,
    config: Config,
    peer: Params,
    rng: Rng,
    paths: Paths,
    /// What schedulers see of the paths.
    views: Views,
    flows: Flows,
    numbers: Numbers,
    /// Who has something to send, in which order, and how much waits on each path.
    share: Share,
    waiting: Waiting,
    planning: Planning,
    /// What flows have in common for their schedulers.
    common: Common,
    /// What schedulers of flows that are over have learnt of paths.
    legacies: Legacies,
    egress: Egress,
    credit: Credit,
    /// Credit of streams that are not open yet.
    starts: Starts,
    /// What flows may spend on repair symbols before they have earned it.
    advance: Advance,
    memory: Memory,
    ageing: Ageing,
    load: Load,
    timers: Timers,
    flow_timers: FlowTimers,
    watches: Watches,
    events: VecDeque<Event>,
    ending: Option<Ending>,
    observer: Observed,
}

/// What is to leave besides data, and what left last.
#[derive(Debug, Default)]
struct Egress {
    /// Frames that must arrive, in datagrams of their own if need be.
    control: BTreeSet<Control>,
    /// Those that go with the next acknowledgement that has room.
    asides: BTreeSet<Control>,
    /// The index of the path that sent the last datagram (`turns`).
    last_path: usize,
    /// The data symbol that left last.
    last_symbol: Option<(Instant, FlowId, Symbol)>,
}

#[derive(Debug)]
struct Ending {
    reason: CloseReason,
    /// CLOSE datagrams still to send: path and how many.
    farewells: Vec<PathId>,
    reported: bool,
}

impl Session {
    /// A session that the carrier's handshake agreed on.
    ///
    /// `peer` are the parameters that the other side sent; `seed` feeds what randomness there is.
    ///
    /// # Errors
    /// A configuration that [`Config::check`] refuses.
    pub fn new(
        now: Instant,
        side: Side,
        config: Config,
        peer: Params,
        seed: u64,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            side,
            rng: Rng::new(seed),
            paths: Paths::default(),
            views: Views::default(),
            flows: Flows::default(),
            numbers: Numbers::new(config.max_flows, peer.max_flows),
            share: Share::default(),
            waiting: Waiting::default(),
            planning: Planning::default(),
            common: Common::bounded(config.repair_budget.is_none()).blind(config.begin_blind),
            legacies: Legacies::default(),
            egress: Egress::default(),
            credit: Credit::new(peer.max_data, config.max_data()),
            starts: Starts::default(),
            advance: Advance::new(config.most_repairs()),
            memory: Memory::new(&config),
            ageing: Ageing::default(),
            load: Load::default(),
            timers: Timers::new(now, Patience::between(&config, &peer)),
            flow_timers: FlowTimers::default(),
            watches: Watches::default(),
            events: VecDeque::new(),
            ending: None,
            peer,
            observer: config.observers.of(now, side),
            config,
        })
    }

    /// Sends records of what the session does to `observer`, too.
    pub fn add_observer(&mut self, observer: Box<dyn Observer>) {
        self.observer.add(observer);
    }

    /// Tells observers what the program calls a path.
    pub fn name_path(&mut self, now: Instant, path: PathId, name: &str) {
        let name = String::from(name).into();
        self.observer.on(now, &Record::PathNamed { path, name });
    }

    /// The next event, in the order in which they happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Has the session ended (or begun to)? Nothing can be opened or written any more.
    pub fn is_closing(&self) -> bool {
        self.ending.is_some()
    }

    fn is_client(&self) -> bool {
        self.side == Side::Client
    }

    fn is_ours(&self, flow: FlowId) -> bool {
        flow.is_client_initiated() == self.is_client()
    }

    fn idle_timeout(&self) -> Duration {
        self.timers.patience.idle
    }

    fn peer_ack_delay(&self) -> Duration {
        self.timers.patience.peer_ack_delay
    }

    fn path_mut(&mut self, id: PathId) -> Option<&mut Path> {
        self.paths.iter_mut().find(|p| p.id == id)
    }

    fn path_index(&self, id: PathId) -> Option<usize> {
        self.paths.iter().position(|p| p.id == id)
    }

    /// The peer broke the protocol: close with that.
    fn fail(&mut self, code: u64, reason: String) {
        self.end(CloseReason::Protocol { code, reason });
    }
}
