//! What the keys of a scenario mean.

use marline_link::{Capacity, Delay, QueueLimit};
use marline_proto::wire::FlowKind;
use marline_sim::scenario::{Document, Load, OVERHEAD, Scenario, Setting};
use marline_sim::{Duration, End, Instant, Rate};

fn document(text: &str) -> Document {
    Document::parse("s.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

fn scenarios(document: &Document) -> Vec<Scenario> {
    let found = document.scenarios(&|_| Err("no files".into()));
    let found = found.unwrap_or_else(|error| panic!("{error}"));
    found.into_iter().map(|(_, scenario)| scenario).collect()
}

const SMALL: &str = r#"
duration = "10s"
schedulers = "all"
links.a = { rate = "6mbit", delay = "10ms" }
links.b = { rate = "2mbit", delay = "30ms", queue = "50p", down = { rate = "8mbit" } }
workloads = [{ kind = "constant", rate = "2mbit" }]
"#;

#[test]
fn what_is_not_said_has_a_sensible_default() {
    let [scenario] = &scenarios(&document(SMALL))[..] else {
        panic!("one cell");
    };
    assert_eq!(
        (scenario.warmup, &scenario.seeds[..]),
        (Duration::ZERO, &[1][..])
    );
    assert!(scenario.schedulers.len() >= 4 && scenario.schedulers.contains(&"edpf".into()));
    let [session] = &scenario.sessions[..] else {
        panic!("one session");
    };
    let links: Vec<usize> = session.paths.iter().map(|path| path.link).collect();
    assert_eq!(links, [0, 1]);
    let workload = &session.workloads[0];
    assert_eq!(
        (workload.name.as_str(), workload.from),
        ("constant", End::Server)
    );
    assert!(workload.flow.kind == FlowKind::Packets && workload.flow.ordered);
    assert!(matches!(workload.load, Load::Constant { size: 1_200, .. }));
}

#[test]
fn every_kind_of_workload_has_a_flow_that_can_carry_it() {
    let text =
        "duration = \"1s\"\nschedulers = \"all\"\nlinks.a = {}\nworkloads = [{ kind = \"tcp\" }]";
    let scenario = &scenarios(&document(text))[0];
    assert_eq!(
        scenario.sessions[0].workloads[0].flow.kind,
        FlowKind::Packets
    );
    for scheduler in &scenario.schedulers {
        marline_sim::run::check(scenario, scheduler).unwrap();
    }
}

#[test]
fn links_mean_what_the_link_program_takes() {
    let scenario = &scenarios(&document(SMALL))[0];
    let [a, b] = &scenario.links[..] else {
        panic!("two links");
    };
    assert_eq!(a.up.capacity, Capacity::Constant(Rate::from_mbps(6)));
    assert_eq!(a.up.queue, QueueLimit::Time(Duration::from_millis(200)));
    assert_eq!(a.overhead, OVERHEAD);
    assert_eq!(b.up.capacity, Capacity::Constant(Rate::from_mbps(2)));
    assert_eq!(b.down.capacity, Capacity::Constant(Rate::from_mbps(8)));
    assert_eq!(b.down.delay, Delay::Constant(Duration::from_millis(30)));
    assert_eq!(b.down.queue, QueueLimit::Packets(50));
}

#[test]
fn every_combination_of_the_axes_is_a_cell() {
    let text = format!(
        "{SMALL}[vary]\nlinks.b.delay = [\"10ms\", \"20ms\"]\n\
         pair = [{{ name = \"slow\", set = {{ \"links.a.rate\" = \"1mbit\", workloads.constant.size = 500 }} }}]\n\
         seeds = [1, 2, 3]\n"
    );
    let document = document(&text);
    let keys: Vec<&str> = document.axes().iter().map(|axis| axis.key()).collect();
    assert_eq!(keys, ["links.b.delay", "pair", "seeds"]);
    let cells = document.cells();
    let named = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(cells.len(), 6);
    assert_eq!(
        cells[4],
        [
            named("links.b.delay", "20ms"),
            named("pair", "slow"),
            named("seeds", "2")
        ]
    );
    let scenario = &scenarios(&document)[4];
    assert_eq!(
        scenario.links[1].up.delay,
        Delay::Constant(Duration::from_millis(20))
    );
    assert_eq!(
        scenario.links[0].up.capacity,
        Capacity::Constant(Rate::from_mbps(1))
    );
    assert_eq!(scenario.seeds, [1, 2]);
    let load = &scenario.sessions[0].workloads[0].load;
    assert!(matches!(load, Load::Constant { size: 500, .. }), "{load:?}");
}

#[test]
fn flags_override_the_file() {
    let mut document = document(&format!(
        "{SMALL}[vary]\n\"links.a.rate\" = [\"1mbit\", \"2mbit\"]"
    ));
    assert!(!document.altered());
    document.set("links.a.rate=3mbit").unwrap();
    document.set("links.a.up.delay=7ms").unwrap();
    document.set("workloads.1.rate=100kbit").unwrap();
    document.vary("duration=5s, 6s").unwrap();
    let mut as_in_the_file = document.clone();
    as_in_the_file.vary("duration=[\"5s\", '6s']").unwrap();
    assert_eq!(as_in_the_file.cells(), document.cells());
    document.compare("edpf,edpf:horizon=100ms");
    assert!(document.altered());
    let scenarios = scenarios(&document);
    assert_eq!(scenarios.len(), 2, "an axis that is set goes");
    let second = &scenarios[1];
    assert_eq!(second.duration, Duration::from_secs(6));
    assert_eq!(second.schedulers, ["edpf", "edpf:horizon=100ms"]);
    assert_eq!(
        second.links[0].down.capacity,
        Capacity::Constant(Rate::from_mbps(3))
    );
    assert_eq!(
        second.links[0].up.delay,
        Delay::Constant(Duration::from_millis(7))
    );
    assert_eq!(
        second.links[0].down.delay,
        Delay::Constant(Duration::from_millis(10))
    );
    let load = &second.sessions[0].workloads[0].load;
    assert!(matches!(load, Load::Constant { rate, .. } if *rate == Rate::from_kbps(100)));
}

#[test]
fn changes_build_on_the_ones_before_them() {
    let text = format!(
        "{SMALL}[[changes]]\nat = \"8s\"\nlink = \"b\"\nset = {{ delay = \"90ms\" }}\n\
         [[changes]]\nat = \"2s\"\nlink = \"b\"\nset = {{ rate = \"1mbit\" }}\n\
         [[changes]]\nat = \"4s\"\nlink = \"a\"\ndark = \"down\"\n"
    );
    let scenario = &scenarios(&document(&text))[0];
    let times: Vec<Instant> = scenario.changes.iter().map(|change| change.at).collect();
    assert_eq!(
        times,
        [2, 4, 8].map(|s| Instant::ZERO + Duration::from_secs(s))
    );
    let Setting::Dark {
        up: false,
        down: true,
    } = scenario.changes[1].setting
    else {
        panic!("{:?}", scenario.changes[1]);
    };
    let Setting::Link { up, down } = &scenario.changes[2].setting else {
        panic!("{:?}", scenario.changes[2]);
    };
    for link in [up, down] {
        assert_eq!(link.capacity, Capacity::Constant(Rate::from_mbps(1)));
        assert_eq!(link.delay, Delay::Constant(Duration::from_millis(90)));
        assert_eq!(link.queue, QueueLimit::Packets(50));
    }
}

#[test]
fn a_cell_is_the_link_with_some_keys_of_its_own() {
    let text = format!(
        "{SMALL}[[handovers]]\nlink = \"b\"\nevery = \"2s\"\ndark = \"200ms\"\n\
         cells = [{{ delay = \"90ms\" }}, {{ up = {{ rate = \"1mbit\" }} }}]\n"
    );
    let scenario = &scenarios(&document(&text))[0];
    let [plan] = &scenario.handovers[..] else {
        panic!("{:?}", scenario.handovers);
    };
    assert_eq!((plan.link, plan.every), (1, Duration::from_secs(2)));
    assert_eq!(plan.dark, Duration::from_millis(200));
    let own = &scenario.links[1];
    let [far, narrow] = &plan.cells[..] else {
        panic!("{:?}", plan.cells);
    };
    assert_eq!(far.up.delay, Delay::Constant(Duration::from_millis(90)));
    assert_eq!(far.up.capacity, own.up.capacity);
    assert_eq!(far.down.queue, own.down.queue);
    assert_eq!(narrow.up.capacity, Capacity::Constant(Rate::from_mbps(1)));
    assert_eq!(narrow.down, own.down);
}

#[test]
fn several_sessions_share_links() {
    let text = r#"
duration = "10s"
schedulers = ["edpf"]
congestion = "cubic"
settings = { repair-budget = "12.5%" }
links.a = { rate = "6mbit" }
links.b = { rate = "6mbit" }
[[sessions]]
name = "one"
[[sessions.workloads]]
kind = "backlogged"
[[sessions]]
name = "two"
scheduler = "redundant"
congestion = "bbr"
settings = { repair-budget = 2 }
paths = [{ link = "b", standby = true }]
[[sessions.workloads]]
kind = "blocks"
size = "50kB"
every = "100ms"
deadline = "50ms"
"#;
    let mut document = document(text);
    document
        .set("sessions.two.workloads.blocks.deadline=40ms")
        .unwrap();
    let scenario = &scenarios(&document)[0];
    let [one, two] = &scenario.sessions[..] else {
        panic!("two sessions");
    };
    assert_eq!(
        (one.config.congestion.name(), two.config.congestion.name()),
        ("cubic", "bbr")
    );
    assert_eq!(
        (one.config.repair_budget, two.config.repair_budget),
        (Some(0.125), Some(2.0))
    );
    assert_eq!(two.scheduler.as_deref(), Some("redundant"));
    assert!(one.paths.len() == 2 && two.paths.len() == 1 && two.paths[0].standby);
    let Load::Blocks { deadline, .. } = two.workloads[0].load else {
        panic!("{:?}", two.workloads[0]);
    };
    assert_eq!(deadline, Duration::from_millis(40));
}

#[test]
fn too_many_cells_are_refused() {
    let mut document = document(SMALL);
    let many: Vec<String> = (1..=200).map(|n| format!("{n}ms")).collect();
    document
        .vary(&format!("links.a.delay={}", many.join(",")))
        .unwrap();
    let error = document
        .vary(&format!("links.b.delay={}", many.join(",")))
        .unwrap_err();
    assert!(error.to_string().contains("at most 10000 cells"), "{error}");
}
