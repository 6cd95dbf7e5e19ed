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
use crate::sched::{Common, PathView};
use crate::wire::{FlowId, Params, PathId};

pub use crate::wire::Side;

mod acks;
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
mod timers;
mod turns;
mod units;
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
use planning::Pass;
use share::{Scope, Share};
use starts::Starts;
use table::Flows;
use timers::{Patience, Rest};
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
    patience: Patience,
    rng: Rng,
    paths: Vec<Path>,
    next_path: u64,
    /// Paths that were removed at either end, the latest of them.
    abandoned: BTreeSet<PathId>,
    flows: Flows,
    numbers: Numbers,
    share: Share,
    ageing: Ageing,
    memory: Memory,
    waiting: Waiting,
    /// What flows have in common for their schedulers.
    common: Common,
    /// What schedulers of flows that are over have learnt of paths.
    legacies: Legacies,
    /// Schedulers look at what waits in other flows, or did.
    minds_others: bool,
    /// When schedulers of flows in `share` want to plan although nothing happened.
    wishes: BTreeSet<(Instant, FlowId)>,
    /// Flows that wait for the session's credit alone.
    starved: BTreeSet<FlowId>,
    control: BTreeSet<Control>,
    /// What goes with the next acknowledgement that has room.
    asides: BTreeSet<Control>,
    /// What flows may spend on repair symbols before they have earned it.
    advance: Advance,
    credit: Credit,
    /// Credit of streams that are not open yet.
    starts: Starts,
    flow_timers: FlowTimers,
    watches: Watches,
    /// Views of the usable paths; good as long as `views_hold`.
    views: Vec<PathView>,
    views_hold: bool,
    /// Those of them that one flow may have.
    chosen: Vec<PathView>,
    events: VecDeque<Event>,
    last_received: Instant,
    /// When anything but pings and acknowledgements went or came last.
    last_traffic: Instant,
    /// The data symbol that left last.
    last_emission: Option<(Instant, FlowId, Symbol)>,
    load: Load,
    /// Whose schedulers may decide otherwise since the last pass began.
    replan: Scope,
    pass: Pass,
    /// The path that sent the last datagram (`turns`).
    last: usize,
    /// The first of the paths' timers but their acknowledgements, or something earlier; `None` once
    /// it may be too late. Sending and receiving data only puts timers off, so it holds for long.
    path_timer: Option<(Instant, WakeReason)>,
    /// Set while nothing can leave or fall due without an input: until when.
    rest: Option<Rest>,
    ending: Option<Ending>,
    observer: Observed,
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
            patience: Patience::between(&config, &peer),
            peer,
            rng: Rng::new(seed),
            paths: Vec::new(),
            next_path: 0,
            abandoned: BTreeSet::new(),
            flows: Flows::default(),
            numbers: Numbers::new(config.max_flows, peer.max_flows),
            share: Share::default(),
            ageing: Ageing::default(),
            memory: Memory::new(&config),
            waiting: Waiting::default(),
            common: Common::bounded(config.repair_budget.is_none()).blind(config.begin_blind),
            legacies: Legacies::default(),
            minds_others: false,
            wishes: BTreeSet::new(),
            starved: BTreeSet::new(),
            control: BTreeSet::new(),
            asides: BTreeSet::new(),
            advance: Advance::new(config.most_repairs()),
            credit: Credit::new(peer.max_data, config.max_data()),
            starts: Starts::default(),
            flow_timers: FlowTimers::default(),
            watches: Watches::default(),
            views: Vec::new(),
            views_hold: false,
            chosen: Vec::new(),
            events: VecDeque::new(),
            last_received: now,
            last_traffic: now,
            last_emission: None,
            load: Load::default(),
            replan: Scope::default(),
            pass: Pass::default(),
            last: 0,
            path_timer: None,
            rest: None,
            ending: None,
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
        self.patience.idle
    }

    fn peer_ack_delay(&self) -> Duration {
        self.patience.peer_ack_delay
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
