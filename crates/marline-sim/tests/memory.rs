//! Memory does not grow with simulated time. A process of its own, so that nothing else counts.
#![cfg(target_os = "linux")]

use marline_sim::run::run;
use marline_sim::scenario::{Document, Scenario};

/// Every kind of traffic that goes on for ever, over lossy links with a stranger's traffic.
const SCENARIO: &str = r#"
title = "Memory"
duration = "300s"
warmup = "1s"
schedulers = ["round-robin"]
links.a = { rate = "3mbit", delay = "10ms", loss = "1%", queue = "100ms" }
links.b = { rate = "3mbit", delay = "40ms", jitter = "5ms", loss = "1%", queue = "100ms" }
cross = [{ link = "b", name = "other", kind = "poisson", rate = "200kbit", size = 500 }]
workloads = [
    { name = "stream", kind = "constant", rate = "500kbit", size = 700 },
    { name = "live", kind = "constant", rate = "500kbit", size = 700, flow = "packets", ordered = false },
    { name = "blocks", kind = "blocks", size = "5kB", every = "100ms", deadline = "90ms", flow = "blocks" },
    { name = "objects", kind = "objects", size = "lognormal:4kB/1kB", every = "80ms", random = true, flow = "objects" },
    { name = "bursts", kind = "bursts", request = "4kB", reply = "1kB", burst = 5, every = "40ms", pause = "1s" },
    { name = "offload", kind = "offload", request = "2kB", reply = "1kB", think = "100ms" },
    { name = "tcp", kind = "tcp", congestion = "cubic", flow = "packets", ordered = false, queue = "100kB" },
]
"#;

fn scenario() -> Scenario {
    let document = Document::parse("memory.toml", SCENARIO).expect("it is TOML");
    let cells = document.scenarios(&|name| Err(format!("no {name}")));
    let (_, scenario) = cells.expect("it is a scenario").swap_remove(0);
    scenario
}

/// Most memory that this process ever used (KiB).
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let digits = line.and_then(|l| l.split_whitespace().next());
    digits.and_then(|d| d.parse().ok()).expect("a number of kB")
}

#[test]
fn a_run_six_times_as_long_needs_no_more_memory() {
    let mut scenario = scenario();
    run(&scenario, "round-robin", 1);
    let short = peak();
    scenario.duration *= 6;
    let long = run(&scenario, "round-robin", 1);
    for (measure, least) in [
        ("live.packet_delay.count", 150_000.0),
        ("blocks.block_delay.count", 15_000.0),
        ("objects.object_delay.count", 15_000.0),
        ("tcp.goodput_mbps", 0.1),
    ] {
        assert!(long.values[measure] > least, "{measure}");
    }
    let grown = peak().saturating_sub(short);
    assert!(grown < 2_048, "{grown} KiB more than {short} KiB");
}
