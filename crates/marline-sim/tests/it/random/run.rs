//! One seed, from beginning to end, with everything that must hold.

use marline_proto::path::PathParams;
use marline_proto::wire::{FlowId, FlowKind, PathId};
use marline_proto::{Config, FlowOptions};
use marline_sim::{End, Instant, Rng};

use super::plan::{self, Action};
use crate::kit::{Lab, Outbox, ms, secs};

/// After the last disturbance everything comes to its end within this time.
const PATIENCE: u64 = 900;

/// Runs a seed; returns the hash of its trace and the number of records.
pub(super) fn run(seed: u64) -> (u64, u64) {
    let rng = Rng::new(seed);
    let mut configs = rng.stream("config");
    let configs = [plan::config(&mut configs), plan::config(&mut configs)];
    let mut trial = Trial {
        lab: Lab::with(seed, configs[0].clone(), configs[1].clone()),
        rng: rng.stream("actions"),
        configs,
        paths: Vec::new(),
        reliable: Vec::new(),
    };
    trial.lab.read_max = plan::pick(&mut trial.rng, &[1, 100, 5_000, 1 << 20]).max(100);
    for _ in 0..1 + trial.rng.below(3) {
        trial.act(Action::AddPath);
    }
    for _ in 0..1 + trial.rng.below(5) {
        trial.act(Action::OpenFlow);
    }
    for (at, action) in plan::actions(&mut trial.rng) {
        trial.run_to(at);
        trial.act(action);
    }
    trial.settle();
    trial.lab.trace.hash()
}

struct Trial {
    lab: Lab,
    rng: Rng,
    configs: [Config; 2],
    paths: Vec<PathId>,
    /// Flows whose messages must all arrive, whoever writes them.
    reliable: Vec<FlowId>,
}

/// A receiver with such a window holds all that a flow of this test ever sends.
const AMPLE: u64 = 300_000;
/// What a flow may hold whatever others do (bytes): `Config::session_window`.
const RESERVE: u64 = 32 << 10;

impl Trial {
    fn config(&self, end: End) -> &Config {
        &self.configs[end as usize]
    }

    /// Runs on, looking at the bounds every now and then.
    fn run_to(&mut self, at: Instant) {
        while self.lab.now() < at {
            let next = at.min(self.lab.now() + ms(200));
            self.lab.run_until(next, |_| false);
            self.check_bounds();
        }
    }

    fn check_bounds(&self) {
        for end in [End::Client, End::Server] {
            let config = self.config(end);
            let session = match end {
                End::Client => &self.lab.world.client,
                End::Server => &self.lab.world.server,
            };
            let stats = session.stats();
            let mut unread = 0;
            let flows = config.max_flows.max(stats.flows.len() as u64);
            let reserves = flows * config.flow_window.min(RESERVE);
            for flow in &stats.flows {
                let lab = &self.lab;
                // A message larger than the window is held while its parts come together.
                let limit = match flow.kind {
                    FlowKind::Packets => config.flow_window + 66_000,
                    _ => config.flow_window,
                };
                assert!(
                    flow.unread <= limit,
                    "{end:?} holds too much: {flow:?}\n{lab}"
                );
                if flow.kind != FlowKind::Packets {
                    unread += flow.unread;
                }
                assert!(
                    flow.unacked <= config.send_buffer,
                    "{end:?}: {flow:?}\n{lab}"
                );
            }
            assert!(
                unread <= config.session_window + reserves,
                "{end:?} holds {unread}\n{}",
                self.lab
            );
        }
    }

    fn some_path(&mut self) -> Option<PathId> {
        (!self.paths.is_empty()).then(|| plan::pick(&mut self.rng, &self.paths))
    }

    fn some_flow(&mut self) -> Option<(End, FlowId)> {
        let end = plan::end(&mut self.rng);
        let flows = self.lab.flows(end);
        (!flows.is_empty()).then(|| (end, plan::pick(&mut self.rng, &flows)))
    }

    fn act(&mut self, action: Action) {
        if !self.lab.closed.is_empty() {
            return;
        }
        match action {
            Action::AddPath if self.paths.len() < 5 => {
                let (up, down) = (plan::link(&mut self.rng), plan::link(&mut self.rng));
                let params = PathParams {
                    max_datagram: plan::pick(&mut self.rng, &[1_000, 1_200, 1_440]),
                    standby: self.rng.chance(0.1),
                    rtt: self.rng.chance(0.5).then(|| ms(30)),
                    ..PathParams::default()
                };
                self.paths.push(self.lab.path_with(&up, &down, params));
            }
            Action::OpenFlow => self.open_flow(),
            Action::RemovePath => {
                if let Some(path) = self.some_path() {
                    let end = plan::end(&mut self.rng);
                    let now = self.lab.now();
                    // The other side may have given it up already.
                    self.lab.world.session(end).remove_path(now, path).ok();
                    self.paths.retain(|p| *p != path);
                }
            }
            Action::Standby(standby) => {
                if let Some(path) = self.some_path() {
                    let end = plan::end(&mut self.rng);
                    let now = self.lab.now();
                    self.lab
                        .world
                        .session(end)
                        .set_standby(now, path, standby)
                        .ok();
                }
            }
            Action::Dark => {
                if let Some(path) = self.some_path() {
                    self.lab.dark(path, true);
                }
            }
            Action::HalfDark => {
                if let Some(path) = self.some_path() {
                    let up = self.rng.chance(0.5);
                    self.lab.world.set_dark(path, up, !up);
                }
            }
            Action::Lit => {
                if let Some(path) = self.some_path() {
                    self.lab.dark(path, false);
                }
            }
            Action::Rewire => {
                if let Some(path) = self.some_path() {
                    let link = plan::link(&mut self.rng);
                    let lose = self.rng.chance(0.5);
                    self.lab.rewire(path, &link, lose);
                }
            }
            Action::Reset => {
                if let Some((end, flow)) = self.some_flow() {
                    self.lab.reset(end, flow, 7);
                }
            }
            Action::Stop => {
                if let Some((end, flow)) = self.some_flow() {
                    self.lab.stop(end, flow, 9);
                }
            }
            Action::Pause => {
                if let Some((end, flow)) = self.some_flow()
                    && let Some(inbox) = self.lab.inbox_mut(end, flow)
                {
                    inbox.paused = true;
                }
            }
            Action::Resume => self.resume(),
            Action::AddPath => {}
        }
        self.lab.pump();
    }

    fn resume(&mut self) {
        for end in [End::Client, End::Server] {
            for flow in self.lab.flows(end) {
                if let Some(inbox) = self.lab.inbox_mut(end, flow) {
                    inbox.paused = false;
                }
            }
        }
    }

    fn open_flow(&mut self) {
        let end = plan::end(&mut self.rng);
        let options = plan::flow(&mut self.rng);
        let now = self.lab.now();
        let buffer = self.config(end).send_buffer;
        let outbox = plan::outbox(&mut self.rng, now, options.kind, buffer);
        let flow = self.lab.open(end, &options, outbox);
        let ample = self
            .configs
            .iter()
            .all(|c| c.flow_window.min(c.session_window) >= AMPLE);
        // Blocks without a deadline may still be given up for what holds the others up.
        if options.kind == FlowKind::Packets && options.lifetime.is_none() && ample {
            self.reliable.push(flow);
        }
        if self.rng.chance(0.4) {
            let buffer = self.config(end.other()).send_buffer;
            let reply = plan::outbox(&mut self.rng, now, options.kind, buffer);
            self.lab.reply(end, flow, reply);
        }
    }

    /// Whatever others hold that are not read, a flow that is has its share.
    fn share(&mut self) {
        for end in [End::Client, End::Server] {
            let options = FlowOptions::new(FlowKind::Stream);
            let opened = self.lab.try_open(end, &options, Outbox::stream(100_000));
            // As many as the peer takes are open.
            let Ok(flow) = opened else {
                continue;
            };
            let limit = self.lab.now() + secs(PATIENCE);
            let reader = end.other();
            self.lab.run_until(limit, |lab| {
                let inbox = lab.inbox_mut(reader, flow);
                inbox.is_some_and(|inbox| inbox.finished) || !lab.closed.is_empty()
            });
            let lab = &self.lab;
            assert!(
                !lab.closed.is_empty() || lab.inbox(reader, flow).finished,
                "a flow of {end:?} had no share\n{lab}"
            );
        }
    }

    /// The disturbances end: everything that can arrive must arrive.
    fn settle(&mut self) {
        for path in self.paths.clone() {
            self.lab
                .rewire(path, "rate=20mbit,delay=10ms,queue=100ms", false);
        }
        if self.lab.closed.is_empty() {
            self.lab.path("rate=20mbit,delay=20ms,queue=100ms");
        }
        self.lab.pump();
        self.share();
        self.resume();
        self.lab.pump();
        let limit = self.lab.now() + secs(PATIENCE);
        self.lab.run_until(limit, |lab| {
            lab.closed.len() == 2 || (lab.is_done() && lab.is_quiet())
        });
        let lab = &self.lab;
        assert!(lab.closed.is_empty(), "the session ended by itself\n{lab}");
        lab.assert_complete();
        for flow in &self.reliable {
            for end in [End::Client, End::Server] {
                let (outbox, inbox) = (lab.outbox(end, *flow), lab.inbox(end.other(), *flow));
                if !outbox.is_stream() && !outbox.cut_short && !inbox.stopped {
                    assert_eq!(
                        inbox.read, outbox.written,
                        "flow {} of {end:?}\n{lab}",
                        flow.0
                    );
                }
            }
        }
        assert!(lab.is_quiet(), "flows are left over\n{lab}");
        self.check_bounds();
        let end = plan::end(&mut self.rng);
        self.lab.close(end);
        let lab = &self.lab;
        let (steps, datagrams) = (lab.world.steps(), lab.world.datagrams());
        let seconds = lab.now().as_secs_f64() as u64 + 1;
        assert!(
            steps < 8 * datagrams + 2_000 * seconds,
            "{steps} steps for {datagrams} datagrams in {seconds} s\n{lab}"
        );
    }
}
