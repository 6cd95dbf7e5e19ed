//! Memory does not grow with simulated time. A process of its own, so that nothing else counts.
#![cfg(target_os = "linux")]

use marline_proto::Config;
use marline_proto::wire::FlowKind;
use marline_sim::run::run;
use marline_sim::scenario::{
    FlowPlan, LinkPlan, Load, PathPlan, Scenario, SessionPlan, WorkloadPlan,
};
use marline_sim::{Duration, End, Instant, Rate};

/// Two lossy links, a stream and messages, for so long.
fn scenario(seconds: u64) -> Scenario {
    let link = |name: &str, text: &str| LinkPlan {
        name: name.to_owned(),
        up: text.parse().expect("a link"),
        down: text.parse().expect("a link"),
        overhead: 28,
        datagram: 1_200,
    };
    let workload = |name: &str, kind, ordered| WorkloadPlan {
        name: name.to_owned(),
        starts: Instant::ZERO,
        stops: None,
        from: End::Client,
        flow: FlowPlan {
            kind,
            ordered,
            priority: 3,
            lifetime: None,
            queue: None,
            scheduler: None,
        },
        load: Load::Constant {
            rate: Rate::from_kbps(500),
            size: 700,
        },
    };
    let path = |link| PathPlan {
        link,
        cost: 0,
        standby: false,
        joins: Instant::ZERO,
        leaves: None,
    };
    Scenario {
        title: "memory".to_owned(),
        about: String::new(),
        duration: Duration::from_secs(seconds),
        warmup: Duration::from_secs(1),
        schedulers: Vec::new(),
        seeds: Vec::new(),
        links: vec![
            link("a", "rate=1mbit,delay=10ms,loss=1%,queue=100ms"),
            link("b", "rate=1mbit,delay=40ms,jitter=5ms,loss=1%,queue=100ms"),
        ],
        sessions: vec![SessionPlan {
            name: "main".to_owned(),
            config: Config::default(),
            paths: vec![path(0), path(1)],
            workloads: vec![
                workload("stream", FlowKind::Stream, true),
                workload("live", FlowKind::Packets, false),
            ],
            scheduler: None,
        }],
        cross: Vec::new(),
        changes: Vec::new(),
        turn: marline_base::Duration::ZERO,
        handovers: Vec::new(),
        blocks: None,
        pages: None,
        objects: None,
        model: None,
        expectations: Vec::new(),
    }
}

/// Most memory that this process ever used (KiB).
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let digits = line.and_then(|l| l.split_whitespace().next());
    digits.and_then(|d| d.parse().ok()).expect("a number of kB")
}

#[test]
fn a_run_forty_times_as_long_needs_no_more_memory() {
    run(&scenario(50), "round-robin", 1);
    let short = peak();
    let long = run(&scenario(2_000), "round-robin", 1);
    assert!(long.values["live.packet_delay.count"] > 170_000.0);
    let grown = peak().saturating_sub(short);
    assert!(grown < 2_048, "{grown} KiB more than {short} KiB");
}
