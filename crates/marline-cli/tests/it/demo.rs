//! `marline demo` as a process: what it prints for programs, and how it stops.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

fn demo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marline"));
    command.arg("demo").args(arguments).stdin(Stdio::null());
    command.env_remove("MARLINE_LOG");
    command
}

#[test]
fn a_demo_of_objects_checks_every_one() {
    let links = ["rate=200mbit,delay=2ms", "rate=100mbit,delay=5ms,loss=1%"];
    let [a, b] = links;
    let arguments = [
        "--objects=sos-rateless",
        "--json",
        "--link-a",
        a,
        "--link-b",
        b,
    ];
    let output = demo(&arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let runs = report["runs"].as_array().unwrap();
    let names: Vec<_> = runs
        .iter()
        .map(|run| run["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["link A alone", "link B alone", "bonded, sos-rateless"]
    );
    for run in runs {
        let figures = &run["figures"];
        assert_eq!(figures["sha256_ok"], true, "{run}");
        assert_eq!(figures["received"], 500, "{run}");
        let delay = |name: &str| figures["all"][name].as_f64().unwrap();
        assert!(
            [delay("p50"), delay("p95"), delay("p99")].is_sorted(),
            "{run}"
        );
    }
}

#[test]
fn a_short_demo_reports_every_run_in_json() {
    let arguments = ["--seconds", "2", "--schedulers", "edpf,min-rtt", "--json"];
    let output = demo(&arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["version"], 1);
    assert_eq!(report["seed"], 1);
    assert_eq!(report["seconds"], 2.0);
    assert_eq!(report["dark"]["link"], "A");
    assert_eq!(report["dark"]["for_s"], 0.5);
    assert_eq!(report["links"].as_array().unwrap().len(), 2);
    let runs = report["runs"].as_array().unwrap();
    let shape: Vec<_> = runs
        .iter()
        .map(|run| (run["links"].clone(), run["scheduler"].as_str().unwrap()))
        .collect();
    let (a, b, both) = (["A"].into(), ["B"].into(), ["A", "B"].into());
    let expected: [(Value, &str); 4] = [
        (a, "auto"),
        (b, "auto"),
        (Value::clone(&both), "edpf"),
        (both, "min-rtt"),
    ];
    assert_eq!(shape, expected);
    for run in runs {
        assert_eq!(run["error"], Value::Null, "{run}");
        let figures = &run["figures"];
        let (download, live) = (&figures["download"], &figures["live"]);
        assert_eq!(download["sha256_ok"], true, "{run}");
        assert!(download["bytes"].as_u64().unwrap() > 0, "{run}");
        let count = |name: &str| live[name].as_u64().unwrap();
        assert!(count("sent") > 0 && count("received") > 0, "{run}");
        assert_eq!(count("sent"), count("received") + count("lost"), "{run}");
        assert_eq!(count("damaged"), 0, "{run}");
        let delay = |name: &str| live["delay_ms"][name].as_f64().unwrap();
        let ascending = [delay("p50"), delay("p95"), delay("p99"), delay("worst")];
        assert!(ascending.is_sorted(), "{run}");
        assert!(live["longest_stall_ms"].is_f64(), "{run}");
        assert!(figures["redundancy"].is_f64(), "{run}");
    }
    let sentence = report["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("Bonding with edpf"), "{sentence}");
}

#[test]
fn an_interrupt_ends_it_with_a_word() {
    let mut child = demo(&["--seconds", "600"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // Signals are listened to before the first word.
    assert!(lines.next().unwrap().unwrap().contains("runs of 600 s"));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let said: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_eq!(said, ["error: stopped before the end"]);
}

#[test]
fn a_short_demo_of_blocks_counts_late_ones_by_every_way() {
    let arguments = [
        "--blocks=hop-jump:refuse=off",
        "--block-size",
        "40kB",
        "--block-deadline",
        "5s",
        "--seconds",
        "3",
        "--json",
    ];
    let output = demo(&arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["load"]["size"], 40_000);
    assert_eq!(report["load"]["deadline_ms"], 5_000.0);
    let runs = report["runs"].as_array().unwrap();
    let shape: Vec<_> = runs
        .iter()
        .map(|run| {
            (
                run["name"].as_str().unwrap(),
                run["links"].as_array().unwrap().len(),
            )
        })
        .collect();
    let expected = [
        ("hop-jump:refuse=off", 2),
        ("TCP on each, striped", 2),
        ("TCP on A", 1),
    ];
    assert_eq!(shape, expected);
    for run in runs {
        let (figures, lateness) = (&run["figures"], &run["figures"]["lateness"]);
        // A block every 25 ms for three seconds; which of them are written after the warm-up is the
        // machine's matter.
        let count = |name: &str| lateness[name].as_u64().unwrap();
        assert!((1..=121).contains(&count("blocks")), "{run}");
        // How many are late is the machine's matter, too; that all of them are would be ours.
        assert!(count("late") < count("blocks"), "{run}");
        assert!(
            count("late") >= figures["missing"].as_u64().unwrap(),
            "{run}"
        );
        assert_eq!(figures["damaged"], 0, "{run}");
        let bound = |index: usize| lateness["interval"][index].as_f64().unwrap();
        let fraction = lateness["fraction"].as_f64().unwrap();
        assert!(bound(0) <= fraction && fraction <= bound(1), "{run}");
    }
    assert_eq!(runs[0]["simulated"]["fraction"], 0.0, "{}", runs[0]);
    assert_eq!(runs[1]["simulated"], Value::Null);
}

#[test]
fn a_demo_of_blocks_by_processes_tells_the_same() {
    let arguments = [
        "--blocks=hop-jump:refuse=off",
        "--processes",
        "--block-size",
        "40kB",
        "--block-deadline",
        "5s",
        "--seconds",
        "2",
        "--json",
    ];
    let output = demo(&arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["processes"], true);
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3);
    for run in runs {
        let figures = &run["figures"];
        assert!(figures["lateness"]["blocks"].as_u64().unwrap() > 0, "{run}");
        assert_eq!(figures["damaged"], 0, "{run}");
        // None is there before it was written: both ends read one clock.
        assert!(figures["delay_ms"]["p50"].as_f64().unwrap() > 12.5, "{run}");
    }
}

#[test]
fn what_processes_cannot_be_told_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("link.trace");
    std::fs::write(&trace, "1\n2\n3\n").unwrap();
    let link = format!("trace={}", trace.display());
    let arguments = ["--blocks", "--processes", "--link-b", &link];
    let output = demo(&arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(
        errors.contains("--link-b") && errors.contains("--processes"),
        "{errors}"
    );
}

#[test]
fn a_part_without_a_demo_ends() {
    let output = demo(&["--part"]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("told no part"), "{errors}");
}
