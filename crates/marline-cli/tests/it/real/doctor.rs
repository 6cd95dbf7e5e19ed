use super::harness::{Site, marline};
use crate::quiet_address::{Test, quiet_address};
use serde_json::Value;
use std::net::UdpSocket;
use std::path::Path;

/// Runs the doctor; returns its exit code and what it found.
fn doctor(folder: &Path, words: &[&str]) -> (i32, Value) {
    let words = [&["doctor"], words, &["--json"]].concat();
    let (code, json, error) = marline(folder, &words);
    let report = serde_json::from_str(&json).unwrap_or_else(|_| panic!("{json}{error}"));
    (code, report)
}

/// The verdict of a check, of the host or of a path.
fn verdict<'a>(report: &'a Value, check: &str, path: Option<&str>) -> &'a str {
    let findings = report["findings"].as_array().unwrap();
    let found = findings
        .iter()
        .find(|finding| finding["check"] == check && finding["path"].as_str() == path);
    let found = found.unwrap_or_else(|| panic!("no {check} in {report:#}"));
    found["verdict"].as_str().unwrap()
}

#[test]
fn a_client_learns_what_keeps_it_from_the_server() {
    let site = Site::new();
    let server = site.server(&[]);
    let words = |string: &str, key: &str, path: &str| {
        let words = [
            "client",
            "--server",
            string,
            "--identity",
            key,
            "--path",
            path,
        ];
        words.map(str::to_owned)
    };
    let run = |words: [String; 7]| {
        let words = words.each_ref().map(String::as_str);
        doctor(site.folder(), &[&words, &["--control", "off"][..]].concat())
    };

    let (code, report) = run(words(&server.string, "client", "127.0.0.1,name=a"));
    for check in ["udp", "tcp", "mtu"] {
        assert_eq!(verdict(&report, check, Some("a")), "fine", "{report:#}");
    }
    assert_eq!(verdict(&report, "key", None), "fine", "{report:#}");
    // Clock and firewall are this host's own.
    assert!(code <= 1, "{report:#}");

    site.key("stranger");
    let (code, report) = run(words(&server.string, "stranger", "127.0.0.1,name=a"));
    assert_eq!(code, 2);
    assert_eq!(verdict(&report, "udp", Some("a")), "fine", "it answers");
    assert_eq!(verdict(&report, "key", None), "failure", "{report:#}");

    let (code, report) = run(words(&server.string, "client", "no-such0"));
    assert_eq!(code, 2);
    let interface = verdict(&report, "interface", Some("no-such0"));
    assert_eq!(interface, "failure", "{report:#}");

    // A port that is taken and never answers, and refuses TCP.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (key, _) = server.string.rsplit_once('@').unwrap();
    let string = format!("{key}@{}", silent.local_addr().unwrap());
    let (code, report) = run(words(&string, "client", "127.0.0.1,name=a"));
    assert_eq!(code, 2);
    for check in ["udp", "tcp"] {
        assert_eq!(verdict(&report, check, Some("a")), "failure", "{report:#}");
    }
    assert_eq!(verdict(&report, "key", None), "unknown", "{report:#}");
}

#[test]
fn a_server_learns_that_its_address_is_taken() {
    let site = Site::new();
    let taken = UdpSocket::bind(quiet_address(Test::Doctor)).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let key = site.public_key("client");
    let words = ["server", "--identity", "server", "--allow-client", &key];
    let more = ["--control", "off", "--advertise", "192.0.2.1", "--listen"];
    let (code, report) = doctor(site.folder(), &[&words, &more[..], &[&address]].concat());
    assert_eq!(code, 2);
    assert_eq!(verdict(&report, "listen", None), "failure", "{report:#}");
    assert_eq!(verdict(&report, "key", None), "fine", "{report:#}");
    drop(taken);
    let (_, report) = doctor(site.folder(), &[&words, &more[..], &[&address]].concat());
    assert_eq!(verdict(&report, "listen", None), "fine", "{report:#}");
}

#[test]
fn a_path_is_measured_within_its_budget_and_counts_in_it() {
    let site = Site::new();
    let server = site.server(&[]);
    let words = ["client", "--server", &server.string, "--identity", "client"];
    let paths = [
        "--path",
        "127.0.0.1,name=a,budget=1GB",
        "--path",
        "127.0.0.2,name=b,budget=1MB",
        "--usage",
        "usage.toml",
    ];
    let speed = ["--control", "off", "--speed", "2", "--speed-bytes", "20MB"];
    let (_, report) = doctor(site.folder(), &[&words[..], &paths, &speed].concat());
    let findings = report["findings"].as_array().unwrap();
    let of = |path: &str| {
        let found = findings
            .iter()
            .find(|finding| finding["check"] == "speed" && finding["path"] == path);
        found.unwrap_or_else(|| panic!("no speed of {path} in {report:#}"))
    };
    let measured = &of("a")["speed"];
    for way in ["down", "up"] {
        let bps = measured[way]["bps"].as_u64();
        assert!(bps > Some(0), "{report:#}");
    }
    let bytes = measured["bytes"].as_u64().unwrap();
    assert!((100_000..25_000_000).contains(&bytes), "{bytes}");
    let usage = std::fs::read_to_string(site.folder().join("usage.toml")).unwrap();
    let counted = usage.lines().find_map(|line| line.strip_prefix("a = "));
    let counted: u64 = counted.unwrap().parse().unwrap();
    assert!(counted >= bytes, "{usage}");
    // 20 MB would not fit.
    assert_eq!(of("b")["verdict"], "unknown");
    assert!(of("b").get("speed").is_none(), "{report:#}");
    assert!(!usage.contains("b = "), "{usage}");
}
