//! The worked example of docs/SIMULATOR.md runs, is what the document shows, and is no bad advice.

use std::process::Command;

const EXAMPLE: &str = include_str!("../src/main.rs");
const SCENARIO: &str = include_str!("../live.toml");
const DOCUMENT: &str = include_str!("../../../docs/SIMULATOR.md");

fn output(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_most-room"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(words)
        .output()
        .expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

/// The mean over seeds of the 99th percentile of the live stream's delay (ms).
fn delay(results: &serde_json::Value, scheduler: &str) -> f64 {
    let runs = results["runs"].as_array().expect("runs");
    let own = runs.iter().filter(|run| run["scheduler"] == scheduler);
    let values: Vec<f64> = own
        .map(|run| {
            run["values"]["live.in_order_delay.p99_ms"]
                .as_f64()
                .expect("a delay")
        })
        .collect();
    assert!(!values.is_empty(), "no runs of {scheduler}");
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn a_scheduler_from_outside_the_tree_is_compared_with_those_inside() {
    let words = [
        "sim",
        "run",
        "live.toml",
        "--duration",
        "6s",
        "--seeds",
        "2",
        "--json",
    ];
    let results = serde_json::from_str(&output(&words)).expect("JSON");
    let (ours, edpf) = (delay(&results, "most-room"), delay(&results, "edpf"));
    // It is simple, and no scheduler to be proud of; what shuts a path out has seconds.
    assert!(ours < 10.0 * edpf, "most-room {ours} ms, edpf {edpf} ms");
}

#[test]
fn every_command_knows_it() {
    assert!(output(&["sim", "list"]).contains("most-room"));
    for command in ["client", "server"] {
        let help = output(&[command, "--help"]);
        assert!(
            help.contains("most-room") && help.contains(":patience=10"),
            "{command}"
        );
    }
    output(&[
        "demo",
        "--seconds",
        "2",
        "--schedulers",
        "most-room:patience=5",
        "--json",
    ]);
}

#[test]
fn the_document_shows_the_example_as_it_is() {
    let mut shown = 0;
    for block in DOCUMENT.split("```rust\n").skip(1) {
        let code = block.split("```").next().unwrap_or_default();
        assert!(EXAMPLE.contains(code), "not in the example:\n{code}");
        shown += 1;
    }
    assert!(shown >= 3, "the scheduler, its entry, and the program");
    let scenario = DOCUMENT
        .split("```toml\n")
        .find(|block| block.starts_with("title = "))
        .and_then(|block| block.split("```").next())
        .expect("a scenario");
    // The program of the document's first steps has not the scheduler yet.
    assert_eq!(SCENARIO.replace(", \"most-room\"", ""), scenario);
    assert!(SCENARIO.contains("most-room"));
}
