//! The worked example of docs/SIMULATOR.md compiles, runs, and is what the document shows.

use marline_sim::Duration;

#[path = "../../examples/custom_scheduler.rs"]
#[allow(dead_code, reason = "its main function is for people")]
mod custom_scheduler;

const EXAMPLE: &str = include_str!("../../examples/custom_scheduler.rs");
const DOCUMENT: &str = include_str!("../../../../docs/SIMULATOR.md");

#[test]
fn a_scheduler_that_is_not_in_the_registry_is_compared_with_those_that_are() {
    let mut scenario = custom_scheduler::scenario().expect("the example's scenario is sound");
    scenario.duration = Duration::from_secs(5);
    scenario.seeds.truncate(1);
    let lines = custom_scheduler::compare(&scenario);
    let names: Vec<&str> = lines
        .iter()
        .filter_map(|l| l.split_whitespace().next())
        .collect();
    assert_eq!(names, ["min-rtt", "edpf", "most-room"]);
    assert!(lines.iter().all(|line| !line.contains("NaN")), "{lines:?}");
}

#[test]
fn the_document_shows_the_example_as_it_is() {
    let mut shown = 0;
    for block in DOCUMENT.split("```rust\n").skip(1) {
        let code = block.split("```").next().unwrap_or_default();
        assert!(EXAMPLE.contains(code), "not in the example:\n{code}");
        shown += 1;
    }
    assert!(shown >= 2, "the scheduler and its entry");
    let scenario = DOCUMENT
        .split("```toml\n")
        .nth(1)
        .and_then(|t| t.split("```").next());
    assert!(EXAMPLE.contains(scenario.expect("a scenario")));
}
