//! Two sessions, their applications, and time.

use std::collections::BTreeMap;

use marline_link::LinkConfig;
use marline_proto::path::{PathParams, PathState};
use marline_proto::wire::{FlowId, FlowKind, PathId, close_code};
use marline_proto::{CloseReason, Config, Event, FlowOptions, OpenError};
use marline_sim::{Cable, Duration, End, Instant, World, WorldConfig};

use super::{Inbox, Messages, Outbox, Trace};

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[derive(Debug)]
pub(crate) struct Lab {
    pub(crate) world: World,
    seed: u64,
    pub(crate) trace: Trace,
    outboxes: BTreeMap<(End, FlowId), Outbox>,
    inboxes: BTreeMap<(End, FlowId), Inbox>,
    /// What the other end writes on a flow once it hears of it.
    replies: BTreeMap<(End, FlowId), Outbox>,
    /// Path states as they changed.
    pub(crate) states: Vec<(Instant, End, PathId, PathState, String)>,
    /// What was told of target rates.
    pub(crate) targets: Vec<(Instant, Event)>,
    pub(crate) closed: BTreeMap<End, (Instant, CloseReason)>,
    pub(crate) flows_closed: BTreeMap<(End, FlowId), Instant>,
    /// Most bytes read from a stream at once.
    pub(crate) read_max: usize,
    /// Applications of flows that the peer opened finish their half at once.
    pub(crate) finish_replies: bool,
    /// Applications read what comes on new flows.
    pub(crate) read_new: bool,
}

/// Prints the seed when a test fails.
impl Drop for Lab {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { seed, world, .. } = self;
            #[expect(clippy::print_stderr, reason = "a failing test says how to repeat it")]
            {
                eprintln!("failed with seed {seed} at {:?}", world.now());
            }
        }
    }
}

impl Lab {
    pub(crate) fn new(seed: u64, config: &Config) -> Self {
        Self::with(seed, config.clone(), config.clone())
    }

    pub(crate) fn with(seed: u64, client: Config, server: Config) -> Self {
        let mut world = World::new(WorldConfig {
            client,
            server,
            seed,
        });
        let trace = Trace::default();
        for end in [End::Client, End::Server] {
            world.session(end).add_observer(trace.observer(end));
        }
        Self {
            world,
            seed,
            trace,
            outboxes: BTreeMap::new(),
            inboxes: BTreeMap::new(),
            replies: BTreeMap::new(),
            states: Vec::new(),
            targets: Vec::new(),
            closed: BTreeMap::new(),
            flows_closed: BTreeMap::new(),
            read_max: 1 << 20,
            finish_replies: true,
            read_new: true,
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.world.now()
    }

    /// Both directions alike; the link in its text form.
    pub(crate) fn path(&mut self, link: &str) -> PathId {
        self.path_with(link, link, PathParams::default())
    }

    pub(crate) fn path_with(&mut self, up: &str, down: &str, params: PathParams) -> PathId {
        self.world
            .add_path(&cable(up, down), &params)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn rewire(&mut self, path: PathId, link: &str, lose: bool) {
        self.world.rewire(path, &cable(link, link), lose);
    }

    pub(crate) fn remove_path(&mut self, end: End, path: PathId) {
        let now = self.now();
        self.world
            .session(end)
            .remove_path(now, path)
            .unwrap_or_else(|error| panic!("{error}"));
    }

    pub(crate) fn standby(&mut self, path: PathId, standby: bool) {
        let now = self.now();
        self.world
            .client
            .set_standby(now, path, standby)
            .unwrap_or_else(|error| panic!("{error}"));
    }

    pub(crate) fn dark(&mut self, path: PathId, dark: bool) {
        self.world.set_dark(path, dark, dark);
    }

    /// Opens a flow at `end` and lets its application write.
    pub(crate) fn open(&mut self, end: End, options: &FlowOptions, outbox: Outbox) -> FlowId {
        let opened = self.try_open(end, options, outbox);
        opened.unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn try_open(
        &mut self,
        end: End,
        options: &FlowOptions,
        outbox: Outbox,
    ) -> Result<FlowId, OpenError> {
        let flow = self.world.session(end).open_flow(options)?;
        self.welcome(end, flow);
        self.outboxes.insert((end, flow), outbox);
        self.pump();
        Ok(flow)
    }

    /// A stream of `bytes` from `end` to the other.
    pub(crate) fn stream(&mut self, end: End, bytes: u64) -> FlowId {
        self.open(
            end,
            &FlowOptions::new(FlowKind::Stream),
            Outbox::stream(bytes),
        )
    }

    /// `count` messages of `size` bytes, in order and reliable.
    pub(crate) fn messages(
        &mut self,
        end: End,
        size: usize,
        every: Duration,
        count: u64,
    ) -> FlowId {
        let plan = Messages {
            size,
            size_max: size,
            count,
            every,
        };
        let outbox = Outbox::messages(self.now(), plan);
        self.open(end, &FlowOptions::new(FlowKind::Packets), outbox)
    }

    /// The other end of a flow writes too.
    pub(crate) fn reply(&mut self, opener: End, flow: FlowId, outbox: Outbox) {
        self.replies.insert((opener.other(), flow), outbox);
    }

    fn welcome(&mut self, end: End, flow: FlowId) {
        let Some(info) = self.world.session(end).flow_info(flow) else {
            return;
        };
        let mut inbox = Inbox::new(info.kind, info.order);
        inbox.paused = !self.read_new;
        self.inboxes.insert((end, flow), inbox);
    }

    pub(crate) fn inbox(&self, end: End, flow: FlowId) -> &Inbox {
        match self.inboxes.get(&(end, flow)) {
            Some(inbox) => inbox,
            None => panic!("flow {} was not opened at {end:?} yet", flow.0),
        }
    }

    pub(crate) fn inbox_mut(&mut self, end: End, flow: FlowId) -> Option<&mut Inbox> {
        self.inboxes.get_mut(&(end, flow))
    }

    pub(crate) fn outbox(&self, end: End, flow: FlowId) -> &Outbox {
        &self.outboxes[&(end, flow)]
    }

    /// Flows known to the application at `end`.
    pub(crate) fn flows(&self, end: End) -> Vec<FlowId> {
        let all = self.inboxes.keys().filter(|(e, _)| *e == end);
        all.map(|(_, f)| *f).collect()
    }

    pub(crate) fn reset(&mut self, end: End, flow: FlowId, code: u64) {
        self.world.session(end).reset(flow, code);
        if let Some(outbox) = self.outboxes.get_mut(&(end, flow)) {
            outbox.cut_short = true;
        }
    }

    pub(crate) fn stop(&mut self, end: End, flow: FlowId, code: u64) {
        self.world.session(end).stop(flow, code);
        if let Some(inbox) = self.inboxes.get_mut(&(end, flow)) {
            inbox.stopped = true;
        }
    }

    fn handle(&mut self, end: End, event: Event) {
        let now = self.now();
        match event {
            Event::FlowOpened(flow) => {
                self.welcome(end, flow);
                if let Some(outbox) = self.replies.remove(&(end, flow)) {
                    self.outboxes.insert((end, flow), outbox);
                } else if self.finish_replies {
                    let mut nothing = Outbox::stream(0);
                    nothing.finished = true;
                    self.world.session(end).finish(flow);
                    self.outboxes.insert((end, flow), nothing);
                }
            }
            Event::FlowWritable(flow) => {
                if let Some(outbox) = self.outboxes.get_mut(&(end, flow)) {
                    outbox.unblock();
                }
            }
            Event::FlowStopped(flow, _) => {
                if let Some(outbox) = self.outboxes.get_mut(&(end, flow)) {
                    outbox.cut_short = true;
                }
            }
            Event::FlowReadable(_) | Event::PathAbandoned(_) | Event::UnitSettled { .. } => {}
            Event::FlowClosed(flow) => {
                let before = self.flows_closed.insert((end, flow), now);
                assert_eq!(before, None, "flow {} closed twice at {end:?}", flow.0);
            }
            Event::PathChanged {
                path,
                state,
                reason,
            } => self.states.push((now, end, path, state, reason)),
            Event::BelowNeededRate { .. } | Event::MeetsNeededRate { .. } => {
                self.targets.push((now, event));
            }
            Event::Closed(reason) => {
                let before = self.closed.insert(end, (now, reason));
                assert_eq!(before, None, "{end:?} closed twice");
            }
        }
    }

    /// Lets the applications act on what has happened.
    pub(crate) fn pump(&mut self) {
        loop {
            let mut any = false;
            for end in [End::Client, End::Server] {
                while let Some(event) = self.world.session(end).poll_event() {
                    any = true;
                    self.handle(end, event);
                }
            }
            let now = self.now();
            for ((end, flow), inbox) in &mut self.inboxes {
                inbox.pump(now, self.world.session(*end), *flow, self.read_max);
            }
            for ((end, flow), outbox) in &mut self.outboxes {
                outbox.pump(now, self.world.session(*end), *flow);
            }
            if !any {
                break;
            }
        }
    }

    /// Runs until `limit`, or earlier if `done` says so.
    pub(crate) fn run_until(&mut self, limit: Instant, mut done: impl FnMut(&mut Self) -> bool) {
        loop {
            let writes = self.outboxes.values().filter_map(Outbox::next_at);
            let next = writes.min().unwrap_or(limit).min(limit).max(self.now());
            let more = self.world.step(next);
            self.pump();
            if done(self) || (!more && next >= limit) {
                break;
            }
        }
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        let limit = self.now() + time;
        self.run_until(limit, |_| false);
    }

    /// Runs until every flow has come to its end, and fails if that takes longer than `time`.
    pub(crate) fn finish_within(&mut self, time: Duration) {
        let limit = self.now() + time;
        self.run_until(limit, |lab| lab.is_done() || lab.closed.len() == 2);
        self.assert_complete();
    }

    /// Every flow that was not cut short was written and read to its end.
    pub(crate) fn is_done(&self) -> bool {
        self.replies.is_empty()
            && self.outboxes.iter().all(|((end, flow), outbox)| {
                let reader = self.inboxes.get(&(end.other(), *flow));
                (outbox.cut_short || outbox.finished) && reader.is_some_and(Inbox::is_over)
            })
    }

    /// Neither session has a flow left.
    pub(crate) fn is_quiet(&self) -> bool {
        self.world.client.open_flows() + self.world.server.open_flows() == 0
    }

    pub(crate) fn assert_complete(&self) {
        for ((end, flow), outbox) in &self.outboxes {
            let Some(inbox) = self.inboxes.get(&(end.other(), *flow)) else {
                panic!("flow {} never reached {:?}\n{self}", flow.0, end.other());
            };
            if outbox.cut_short || inbox.stopped || inbox.reset == Some(close_code::YIELDED) {
                continue;
            }
            let id = flow.0;
            assert!(
                outbox.finished,
                "flow {id} was not written to its end\n{self}"
            );
            assert!(
                inbox.finished,
                "flow {id} from {end:?} did not end: {inbox:?}\n{self}"
            );
            if outbox.is_stream() {
                assert_eq!(inbox.read, outbox.written, "flow {id} from {end:?}\n{self}");
            }
        }
    }

    /// Closes the session at `end` and waits until both have ended.
    pub(crate) fn close(&mut self, end: End) {
        self.world.session(end).close(0, "done");
        let limit = self.now() + secs(60);
        self.run_until(limit, |lab| lab.closed.len() == 2);
        assert_eq!(self.closed.len(), 2, "a session did not end\n{self}");
    }

    pub(crate) fn state(&mut self, end: End, path: PathId) -> PathState {
        let stats = self.world.session(end).stats();
        let found = stats.paths.iter().find(|p| p.id == path);
        match found {
            Some(path) => path.state,
            None => panic!("{end:?} has no path {}", path.0),
        }
    }

    /// Bytes that `end` has sent on a path.
    pub(crate) fn sent_on(&mut self, end: End, path: PathId) -> u64 {
        let stats = self.world.session(end).stats();
        let found = stats.paths.iter().find(|p| p.id == path);
        found.map_or(0, |p| p.counters.sent_bytes)
    }
}

fn cable(up: &str, down: &str) -> Cable {
    let link = |text: &str| -> LinkConfig {
        text.parse()
            .unwrap_or_else(|error| panic!("link '{text}': {error}"))
    };
    Cable {
        up: link(up),
        down: link(down),
    }
}

/// What a failing test shows.
impl std::fmt::Display for Lab {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "at {:?}, seed {}; ends: {:?}",
            self.world.now(),
            self.seed,
            self.closed
        )?;
        for (name, session) in [
            ("client", &self.world.client),
            ("server", &self.world.server),
        ] {
            let stats = session.stats();
            let next = session.poll_timeout(self.world.now());
            writeln!(f, "{name}, next {next:?}, {:?}", stats.credit)?;
            for p in stats.paths {
                writeln!(
                    f,
                    "  path {} {:?} ({}) srtt {:?} min {:?} cwnd {} in flight {} queued {} rate {} \
                     loss {:.3} {:?}",
                    p.id.0,
                    p.state,
                    p.reason,
                    p.srtt,
                    p.min_rtt,
                    p.cwnd,
                    p.in_flight,
                    p.queued,
                    p.rate,
                    p.loss,
                    p.counters
                )?;
            }
            for flow in stats.flows {
                writeln!(
                    f,
                    "  flow {} {:?} unsent {} unread {} {:?}",
                    flow.id.0, flow.kind, flow.unsent, flow.unread, flow.counters
                )?;
            }
        }
        for ((end, flow), outbox) in &self.outboxes {
            writeln!(f, "{end:?} writes flow {}: {outbox:?}", flow.0)?;
        }
        for ((end, flow), inbox) in &self.inboxes {
            writeln!(f, "{end:?} reads flow {}: {inbox:?}", flow.0)?;
        }
        Ok(())
    }
}
