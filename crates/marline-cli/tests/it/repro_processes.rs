//! `marline repro --processes`: what it runs and says. How quick that is depends on the machine and
//! is not looked at.

use crate::real::harness::not_installed;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

fn repro(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marline"));
    command.args(["repro", "link-pairs"]).args(arguments);
    command.env_remove("MARLINE_LOG").stdin(Stdio::null());
    command.output().unwrap()
}

/// The values of each run.
fn values(output: &Output) -> Vec<Value> {
    let errors = String::from_utf8_lossy(&output.stderr);
    // A bound that is missed is not the program's fault on a busy machine.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{errors}");
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{errors}"));
    let runs = report["results"][0]["runs"].as_array().unwrap();
    runs.iter().map(|run| run["values"].clone()).collect()
}

#[test]
fn a_live_stream_by_processes_is_measured_as_in_the_simulator() {
    let output = repro(&[
        "lossy-live",
        "--processes",
        "--cell",
        "lossy=one",
        "--seeds",
        "1",
        "--seconds",
        "6",
        "--json",
    ]);
    let runs = values(&output);
    assert_eq!(runs.len(), 1);
    let value = |name: &str| runs[0][name].as_f64().unwrap();
    // Nothing is quicker than the links, each 50 ms long, and nothing comes twice.
    assert!(value("live.in_order_delay.p50_ms") > 50.0, "{runs:?}");
    assert!(value("live.in_order_delay.p99_ms") >= value("live.in_order_delay.p50_ms"));
    assert!(
        (0.0..=10.1).contains(&value("live.goodput_mbps")),
        "{runs:?}"
    );
    assert!((0.0..=1.0).contains(&value("live.undelivered")), "{runs:?}");
}

#[test]
fn a_download_by_curl_is_whole_and_no_quicker_than_the_links() {
    if Command::new("curl").arg("--version").output().is_err() {
        not_installed("curl");
        return;
    }
    let output = repro(&[
        "lossy-bulk",
        "--processes",
        "--curl",
        "--cell",
        "lossy=one",
        "--seeds",
        "1",
        "--seconds",
        "14",
        "--json",
    ]);
    let runs = values(&output);
    let goodput = runs[0]["bulk.goodput_mbps"].as_f64().unwrap();
    assert!((0.1..20.0).contains(&goodput), "{runs:?}");
    // Asked for while it runs: over two links it ends before its time.
    let redundancy = runs[0]["bulk.redundancy"].as_f64().unwrap();
    assert!(redundancy >= 0.0, "{runs:?}");
}

#[test]
fn a_child_ends_with_its_standard_input() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marline"));
    command.args(["link", "--end-with-stdin", "--to", "127.0.0.1:9"]);
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut relay = command.spawn().unwrap();
    let mut log = BufReader::new(relay.stderr.take().unwrap()).lines();
    let relays = log.any(|line| line.unwrap().contains("relaying "));
    assert!(relays, "it did not start");
    // As when whoever started it is killed.
    drop(relay.stdin.take());
    assert_eq!(log.by_ref().filter(Result::is_err).count(), 0);
    relay.wait().unwrap();
}

#[test]
fn what_processes_cannot_run_is_refused_with_the_mend() {
    for (arguments, why) in [
        (
            ["bulk", "--processes", "--cell", "pair=no"],
            "there are: baseline, congested",
        ),
        (
            ["bulk", "--processes", "--cell", "couple=no"],
            "no axis `couple`",
        ),
        (
            ["bulk", "--processes", "--cell", "pair"],
            "write AXIS=VALUE",
        ),
        (["bulk", "--curl", "--cell", "pair=baseline"], "--processes"),
    ] {
        let output = repro(&arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(why), "no {why} in {errors}");
    }
}
