//! Whole runs of scenarios.

mod auto;
mod begin;
mod buckets;
mod hop;
mod jitter;
mod links;
mod lossy;
mod model;
mod nested;
mod order;
mod outside;
mod overload;
mod overtaking;
mod paired;
mod recovery;
mod runs;
mod shares;
mod sizes;
mod start;
mod surplus;
mod turn;
mod workloads;

use marline_proto::Config;
use marline_proto::wire::FlowKind;
use marline_sim::results::Run;
use marline_sim::run::run;
use marline_sim::scenario::{
    Document, FlowPlan, LinkPlan, Load, PathPlan, Scenario, SessionPlan, WorkloadPlan,
};
use marline_sim::{End, Instant, Rate};

use crate::kit::secs;

/// A link called `name`, alike in both directions.
fn link(name: &str, text: &str) -> LinkPlan {
    let config: marline_link::LinkConfig = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    LinkPlan {
        name: name.to_owned(),
        up: config.clone(),
        down: config,
        overhead: 0,
        datagram: 1_200,
        handshake: None,
    }
}

fn path(link: usize) -> PathPlan {
    PathPlan {
        link,
        cost: 0,
        standby: false,
        joins: Instant::ZERO,
        leaves: None,
    }
}

/// A workload from the client, over a stream.
fn workload(name: &str, load: Load) -> WorkloadPlan {
    WorkloadPlan {
        name: name.to_owned(),
        starts: Instant::ZERO,
        stops: None,
        from: End::Client,
        flow: FlowPlan {
            kind: FlowKind::Stream,
            ordered: true,
            priority: 3,
            lifetime: None,
            queue: None,
            scheduler: None,
        },
        load,
    }
}

fn over_packets(mut workload: WorkloadPlan, ordered: bool) -> WorkloadPlan {
    workload.flow.kind = FlowKind::Packets;
    workload.flow.ordered = ordered;
    workload
}

/// A download that never ends.
fn bulk(name: &str) -> WorkloadPlan {
    let load = Load::Backlogged {
        size: 16 << 10,
        bytes: None,
    };
    workload(name, load)
}

/// Units of `size` bytes at `mbps` Mb/s.
fn constant(name: &str, mbps: u64, size: u32) -> WorkloadPlan {
    let rate = Rate::from_mbps(mbps);
    workload(name, Load::Constant { rate, size })
}

/// Redundancy may take what schedulers are tested for: by itself a session spends what losses are
/// worth (`field.rs`).
fn session(name: &str, paths: usize, workloads: Vec<WorkloadPlan>) -> SessionPlan {
    SessionPlan {
        name: name.to_owned(),
        config: Config {
            repair_budget: Some(0.5),
            ..Config::default()
        },
        paths: (0..paths).map(path).collect(),
        workloads,
        scheduler: None,
    }
}

/// 20 s of these sessions over these links, the first 5 s not measured.
fn scenario(links: Vec<LinkPlan>, sessions: Vec<SessionPlan>) -> Scenario {
    Scenario {
        title: "test".to_owned(),
        about: String::new(),
        duration: secs(20),
        warmup: secs(5),
        schedulers: vec!["min-rtt".to_owned()],
        seeds: vec![1],
        links,
        sessions,
        cross: Vec::new(),
        changes: Vec::new(),
        turn: marline_base::Duration::ZERO,
        handovers: Vec::new(),
        blocks: None,
        pages: None,
        objects: None,
        model: None,
        watch: marline_sim::scenario::Watch::default(),
        expectations: Vec::new(),
    }
}

/// One run of a scenario in words, of its first cell and scheduler, with these keys set.
fn run_of(text: &str, sets: &[&str], seed: u64) -> Run {
    let document = Document::parse("test.toml", text);
    let mut document = document.unwrap_or_else(|error| panic!("{error}"));
    for set in sets {
        let done = document.set(set);
        done.unwrap_or_else(|error| panic!("{error}"));
    }
    let cells = document.scenarios(&|_| Err("no files".into()));
    let (_, scenario) = &cells.unwrap_or_else(|error| panic!("{error}"))[0];
    run(scenario, &scenario.schedulers[0], seed)
}

/// A value that the run must have.
fn value(run: &Run, name: &str) -> f64 {
    let known: Vec<&String> = run.values.keys().collect();
    *run.values
        .get(name)
        .unwrap_or_else(|| panic!("no {name} in {known:?}"))
}

fn json(run: &Run) -> String {
    serde_json::to_string(run).expect("plain data")
}
