//! `marline sim`: scenarios from files, results for programs, sweeps that are killed.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const SMALL: &str = r#"
title = "Small"
duration = "500ms"
seeds = 2
schedulers = ["min-rtt", "edpf"]
links.a = { rate = "6mbit", delay = "10ms", loss = "1%" }
links.b = { rate = "6mbit", delay = "30ms" }
workloads = [{ name = "live", kind = "constant", rate = "4mbit" }]
"#;

fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marline"));
    command.arg("sim").args(words).current_dir(folder);
    command.env("MARLINE_LOG", "info");
    command
}

/// Exit code, standard output and standard error.
fn sim(folder: &Path, words: &[&str]) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command(folder, words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("small.toml"), SMALL).unwrap();
    folder
}

#[test]
fn the_number_of_jobs_changes_no_byte() {
    let folder = folder();
    let run = |jobs| {
        sim(
            folder.path(),
            &["run", "small.toml", "--json", "--jobs", jobs],
        )
    };
    let (code, one, error) = run("1");
    assert_eq!(code, 0, "{error}");
    assert_eq!(run("3").1, one);
    let results: serde_json::Value = serde_json::from_str(&one).unwrap();
    assert_eq!(results["runs"].as_array().unwrap().len(), 4);
    assert_eq!(results["file"], "small.toml");
}

#[test]
fn a_quantity_over_time_comes_as_a_picture() {
    let folder = folder();
    let draw = |words: &[&str]| {
        let first = ["run", "small.toml", "--over-time", "delay.svg"];
        sim(folder.path(), &[&first, words].concat())
    };
    let (code, _, error) = draw(&["--measure", "in_order_delay"]);
    assert_eq!(code, 0, "{error}");
    let picture = fs::read_to_string(folder.path().join("delay.svg")).unwrap();
    assert!(picture.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    for text in ["delay in order (ms)", "live", "Small, min-rtt, seed 1"] {
        assert!(
            picture.contains(&format!("\n{text}\n")),
            "{text}: {picture}"
        );
    }
    // A number that is known at the end has no course.
    let (code, _, error) = draw(&["--measure", "redundancy"]);
    assert_eq!(code, 1, "{error}");
    assert!(
        error.contains("no quantity over time fits redundancy"),
        "{error}"
    );
}

#[test]
fn results_come_as_a_table_as_csv_and_as_a_page() {
    let folder = folder();
    let (code, table, error) = sim(
        folder.path(),
        &["run", "small.toml", "--plot", "small.html"],
    );
    assert_eq!(code, 0, "{error}");
    assert!(
        table.contains("min-rtt") && table.contains("edpf"),
        "{table}"
    );
    let page = fs::read_to_string(folder.path().join("small.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("Small"));
    let words = [
        "run",
        "small.toml",
        "--csv",
        "--set",
        "links.b.delay=5ms",
        "--seeds",
        "1",
    ];
    let (code, csv, error) = sim(folder.path(), &words);
    assert_eq!(code, 0, "{error}");
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some("title,scheduler,seed,measure,value,unit")
    );
    assert!(
        lines.any(|line| line.starts_with("Small,edpf,1,live.goodput_mbps,")),
        "{csv}"
    );
}

#[test]
fn a_mistake_is_named_with_its_mend_and_exit_code_2() {
    let folder = folder();
    fs::write(
        folder.path().join("bad.toml"),
        SMALL.replace("6mbit", "6mb"),
    )
    .unwrap();
    for command in ["check", "run"] {
        let (code, out, error) = sim(folder.path(), &[command, "bad.toml"]);
        assert_eq!((code, out.as_str()), (2, ""), "{error}");
        assert!(
            error.contains("bad.toml:6:20: key `links.a.rate`"),
            "{error}"
        );
        assert!(
            error.contains("key `links.b.rate`") && error.contains("such as 20mbit"),
            "{error}"
        );
    }
    let (code, _, error) = sim(
        folder.path(),
        &["run", "small.toml", "--set", "links.c.rate=1mbit"],
    );
    assert!(
        code == 2 && error.contains("--set links.c.rate=1mbit"),
        "{error}"
    );
    let (code, _, error) = sim(folder.path(), &["run", "none.toml"]);
    assert!(code == 2 && error.contains("marline sim list"), "{error}");
    let (code, _, error) = sim(folder.path(), &["run", "small.toml", "--scheduler", "edfp"]);
    assert!(
        code == 2 && error.contains("unknown scheduler `edfp`"),
        "{error}"
    );
}

#[test]
fn what_cannot_be_shown_is_said_before_anything_is_run() {
    let folder = folder();
    for (words, says) in [
        (
            ["--measure", "live.good,nonsense"],
            "no measure contains `nonsense`",
        ),
        (
            ["--plot", "nowhere/small.html"],
            "cannot write nowhere/small.html",
        ),
        (["--plot", "."], "cannot write ."),
    ] {
        // A day would take minutes.
        let run = [
            "run",
            "small.toml",
            "--duration",
            "1440min",
            "--seeds",
            "1000",
        ];
        let (code, out, error) = sim(folder.path(), &[&run[..], &words[..]].concat());
        assert_eq!((code, out.as_str()), (2, ""), "{error}");
        assert!(error.contains(says), "{error}");
    }
    let (code, _, error) = sim(folder.path(), &["check", "."]);
    assert!(code == 2 && error.contains(". is a folder"), "{error}");
}

#[test]
fn a_sweep_names_its_folder_after_the_scenario() {
    let folder = folder();
    let words = ["sweep", "small.toml", "--vary", "links.b.delay=10ms,20ms"];
    let (code, table, error) = sim(folder.path(), &words);
    assert_eq!(code, 0, "{error}");
    assert!(table.contains("20ms"), "{table}");
    assert!(
        error.contains("8 runs made, 0 there already, in small-sweep"),
        "{error}"
    );
    let (_, _, error) = sim(folder.path(), &words);
    assert!(error.contains("0 runs made, 8 there already"), "{error}");
    assert!(folder.path().join("small-sweep/results.csv").is_file());
}

#[test]
fn a_sweep_is_written_as_a_plan_and_its_results_are_taken_back() {
    let folder = folder();
    let vary = ["--vary", "links.b.delay=10ms,20ms"];
    let write = ["sweep", "small.toml", vary[0], vary[1], "--plan", "plan"];
    let (code, out, error) = sim(folder.path(), &write);
    assert_eq!((code, error.as_str()), (0, ""));
    assert!(out.starts_with("8 runs are planned in plan"), "{out}");
    assert!(
        !folder.path().join("small-sweep").exists(),
        "nothing is run"
    );

    // Some runs are there already, wherever they were made.
    let take = ["sweep", "--plan", "plan", "--out", "out"];
    let (code, _, error) = sim(folder.path(), &take);
    assert_eq!(code, 0, "{error}");
    assert!(
        error.contains("8 runs made, 0 there already, in out"),
        "{error}"
    );
    let store = folder.path().join("out/runs.jsonl");
    let lines = fs::read_to_string(&store).unwrap();
    let some: Vec<&str> = lines.split_inclusive('\n').skip(3).collect();
    fs::write(&store, some.concat()).unwrap();
    let results = || fs::read_to_string(folder.path().join("out/results.json")).unwrap();
    let whole = results();
    let (_, _, error) = sim(folder.path(), &take);
    assert!(
        error.contains("3 runs made, 5 there already, in out"),
        "{error}"
    );
    assert_eq!(results(), whole);

    // They are those of the sweep itself.
    sim(
        folder.path(),
        &["sweep", "small.toml", vary[0], vary[1], "--out", "own"],
    );
    let own = fs::read_to_string(folder.path().join("own/results.json")).unwrap();
    assert_eq!(own, whole);

    for (words, said) in [
        (
            &["sweep", "--plan", "plan", "--seeds", "3"][..],
            "nothing can be changed of it",
        ),
        (&["sweep", "--plan", "none"], "cannot read none"),
        (
            &["sweep", "--plan", "small.toml"],
            "not a plan that can be read",
        ),
        (
            &["sweep", "small.toml", "--plan", "p", "--out", "o"],
            "writing a plan runs nothing",
        ),
        (&["sweep"], "required"),
    ] {
        let (code, _, error) = sim(folder.path(), words);
        assert_eq!(code, 2, "{error}");
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn shipped_scenarios_are_found_by_name_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let (code, words, error) = sim(folder.path(), &["check", "examples/handover"]);
    assert_eq!(code, 0, "{error}");
    assert!(words.contains("at 20s link wifi goes dark"), "{words}");
    assert_eq!(sim(folder.path(), &["check", "handover"]).1, words);
    let (code, list, _) = sim(folder.path(), &["list"]);
    assert_eq!(code, 0);
    for name in [
        "examples/handover",
        "edpf",
        "cubic",
        "backlogged",
        "WORKLOAD.in_order_delay",
    ] {
        assert!(list.contains(name), "{name} in {list}");
    }
}

#[test]
fn a_killed_sweep_goes_on_where_it_was() {
    let folder = folder();
    let words = |out| {
        [
            "sweep",
            "small.toml",
            "--duration",
            "8s",
            "--seeds",
            "3",
            "--jobs",
            "1",
            "--vary",
            "links.b.delay=10ms,20ms,40ms",
            "--out",
            out,
        ]
    };
    let store = folder.path().join("out/runs.jsonl");
    let finished = || {
        fs::read_to_string(&store)
            .unwrap_or_default()
            .matches('\n')
            .count()
    };

    let mut child = command(folder.path(), &words("out"));
    let mut child = child
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while finished() < 2 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = finished();
    assert!((2..18).contains(&kept), "killed on the way: {kept}");

    let (code, _, error) = sim(folder.path(), &words("out"));
    assert_eq!(code, 0, "{error}");
    assert!(
        error.contains(&format!("{} runs made, {kept} there already", 18 - kept)),
        "{error}"
    );
    assert_eq!(finished(), 18);
    let (_, _, error) = sim(folder.path(), &words("out"));
    assert!(error.contains("0 runs made, 18 there already"), "{error}");

    // As if it had never been killed.
    assert_eq!(sim(folder.path(), &words("whole")).0, 0);
    let read = |file: &str| fs::read_to_string(folder.path().join(file)).unwrap();
    assert_eq!(read("out/results.json"), read("whole/results.json"));
    assert_eq!(read("out/results.csv"), read("whole/results.csv"));
}

#[test]
fn an_interrupt_keeps_what_was_done() {
    let folder = folder();
    let words = [
        "sweep",
        "small.toml",
        "--duration",
        "8s",
        "--seeds",
        "20",
        "--jobs",
        "1",
        "--out",
        "out",
    ];
    let store = folder.path().join("out/runs.jsonl");
    let finished = || {
        fs::read_to_string(&store)
            .unwrap_or_default()
            .lines()
            .count()
    };
    let mut child = command(folder.path(), &words);
    let child = child
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while finished() < 1 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    let kept = finished();
    assert!(
        error.contains(&format!("stopped after {kept} of 40 runs")),
        "{error}"
    );
    assert!(error.contains("run the same command again"), "{error}");
}
