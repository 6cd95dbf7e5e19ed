//! `auto` chooses for each flow of a scenario as the program does.

use super::*;
use marline_sim::run::check;

/// A live stream, a stream and messages in any order over two links; the second one costs.
fn scenario(scheduler: &str, own: [&str; 3], cost: u32) -> Scenario {
    let own = own.map(|name| match name {
        "" => String::new(),
        name => format!("scheduler = \"{name}\""),
    });
    let text = format!(
        r#"
        duration = "4s"
        schedulers = ["{scheduler}"]
        links.a = {{ rate = "6mbit", delay = "10ms", loss = "1%" }}
        links.b = {{ rate = "4mbit", delay = "30ms", loss = "1%" }}
        paths = [{{ link = "a" }}, {{ link = "b", cost = {cost} }}]
        [[workloads]]
        name = "live"
        kind = "constant"
        rate = "3mbit"
        ordered = "yes"
        lifetime = "300ms"
        {}
        [[workloads]]
        name = "bulk"
        kind = "backlogged"
        {}
        [[workloads]]
        name = "datagrams"
        kind = "constant"
        rate = "1mbit"
        ordered = "no"
        {}
        "#,
        own[0], own[1], own[2]
    );
    let document = Document::parse("s.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    let cell = &document.cells()[0];
    let scenario = document.scenario(cell, &|_| Err("no files".into()));
    scenario.unwrap_or_else(|error| panic!("{error}"))
}

fn values(scenario: &Scenario) -> std::collections::BTreeMap<String, f64> {
    let run = run(scenario, &scenario.schedulers[0], 3);
    assert_eq!(run.scheduler, scenario.schedulers[0]);
    run.values
}

#[test]
fn a_scenario_s_auto_is_what_each_flow_has_in_the_program() {
    let chosen = scenario("edpf", ["hedge:prompt=on", "mend", "edpf"], 0);
    assert_eq!(values(&scenario("auto", ["", "", ""], 0)), values(&chosen));
    let mixed = scenario("edpf", ["auto", "auto", ""], 0);
    assert_eq!(values(&mixed), values(&chosen));
    let by_cost = scenario("edpf", ["hedge:prompt=on", "mend", "brim"], 5);
    assert_eq!(values(&scenario("auto", ["", "", ""], 5)), values(&by_cost));
    assert_ne!(
        values(&scenario("auto", ["", "", ""], 0)),
        values(&scenario("edpf", ["", "", ""], 0))
    );
}

#[test]
fn a_model_has_no_auto() {
    let text = r#"
        duration = "4s"
        schedulers = ["auto"]
        links.a = { rate = "6mbit", delay = "10ms" }
        model = { demand = "saturated" }
    "#;
    let document = Document::parse("s.toml", text).unwrap_or_else(|error| panic!("{error}"));
    let error = document.scenarios(&|_| Err("no files".into()));
    let error = error.expect_err("a mistake").to_string();
    assert!(
        error.contains("`auto` chooses for flows of a session"),
        "{error}"
    );
    let whole = scenario("auto", ["", "", ""], 0);
    assert!(check(&whole, "auto").is_ok());
}
