//! Many runs: the same whatever the threads, and taken up again where they were left.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use marline_sim::batch::{Alteration, Batch, Outcome, Plan, PlanError, Store};
use marline_sim::run::run_unless;
use marline_sim::scenario::{Document, Watch};

const SMALL: &str = r#"
title = "Small"
duration = "400ms"
seeds = 3
schedulers = ["min-rtt", "edpf"]
links.a = { rate = "6mbit", delay = "10ms", loss = "1%" }
links.b = { rate = "6mbit", delay = "10ms" }
workloads = [{ kind = "constant", rate = "4mbit" }]
[vary]
"links.b.delay" = ["10ms", "30ms"]
"#;

fn batch(flags: &[&str]) -> Batch {
    let mut document = Document::parse("small.toml", SMALL).unwrap();
    for flag in flags {
        document.set(flag).unwrap();
    }
    Batch {
        file: "small.toml".into(),
        version: "test".into(),
        cells: document.scenarios(&|_| Err("no files".into())).unwrap(),
    }
}

fn go(batch: &Batch, threads: usize, store: Option<&Store>) -> Outcome {
    batch
        .run(threads, &AtomicBool::new(false), store, |_| {})
        .unwrap()
}

fn json(outcome: &Outcome) -> String {
    serde_json::to_string(&outcome.results).unwrap()
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    let one = go(&batch(&[]), 1, None);
    assert_eq!((one.wanted, one.kept, one.results.runs.len()), (12, 0, 12));
    assert_eq!(json(&one), json(&go(&batch(&[]), 4, None)));
    let names = one.results.runs.iter().map(|run| {
        (
            run.cell["links.b.delay"].as_str(),
            run.scheduler.as_str(),
            run.seed,
        )
    });
    let names: Vec<_> = names.collect();
    assert_eq!(names[0], ("10ms", "min-rtt", 1));
    assert_eq!(names[11], ("30ms", "edpf", 3));
}

#[test]
fn what_was_made_is_not_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("runs.jsonl");
    let whole = json(&go(&batch(&[]), 2, None));

    // Stopped after the first runs…
    let stop = AtomicBool::new(false);
    let store = Store::open(&file, "program").unwrap();
    let begun = batch(&[]).run(1, &stop, Some(&store), |over| {
        stop.store(over >= 4, Ordering::Relaxed);
    });
    assert_eq!(begun.unwrap().results.runs.len(), 4);
    drop(store);
    // …and killed while it wrote the next one.
    let mut cut = OpenOptions::new().append(true).open(&file).unwrap();
    cut.write_all(b"{\"key\":\"abc\",\"run\":{\"ce").unwrap();
    drop(cut);

    let heard = Mutex::new(Vec::new());
    let store = Store::open(&file, "program").unwrap();
    let again = batch(&[]).run(2, &AtomicBool::new(false), Some(&store), |over| {
        heard.lock().unwrap().push(over);
    });
    let again = again.unwrap();
    assert_eq!((again.kept, again.results.runs.len()), (4, 12));
    assert_eq!(json(&again), whole, "as if it had never been stopped");
    assert_eq!(heard.lock().unwrap()[0], 4);
    drop(store);
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 12);

    // More seeds add to what is there; another program begins anew.
    let store = Store::open(&file, "program").unwrap();
    let more = go(&batch(&["seeds=4"]), 2, Some(&store));
    assert_eq!((more.kept, more.wanted), (12, 16));
    drop(store);
    let store = Store::open(&file, "another program").unwrap();
    assert_eq!(go(&batch(&["seeds=1"]), 2, Some(&store)).kept, 0);
}

#[test]
fn a_damaged_line_costs_its_own_run_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("runs.jsonl");
    let store = Store::open(&file, "program").unwrap();
    let whole = json(&go(&batch(&[]), 2, Some(&store)));
    drop(store);
    let text = fs::read_to_string(&file).unwrap();
    let damaged: Vec<&str> = (text.lines().enumerate())
        .map(|(i, line)| if i == 3 { &line[..40] } else { line })
        .collect();
    fs::write(&file, damaged.join("\n") + "\n").unwrap();
    let store = Store::open(&file, "program").unwrap();
    let again = go(&batch(&[]), 2, Some(&store));
    assert_eq!((again.kept, again.wanted), (11, 12));
    assert_eq!(json(&again), whole);
}

#[test]
fn a_run_is_known_by_all_that_it_depends_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("runs.jsonl"), "program").unwrap();
    let key = |flags: &[&str]| store.key(&batch(flags).jobs()[0]);
    let same = key(&[]);
    for flag in ["title=Other", "about=x", "seeds=9", "links.b.delay=10ms"] {
        assert_eq!(key(&[flag]), same, "{flag}");
    }
    for flag in [
        "links.a.loss=2%",
        "workloads.1.size=900",
        "warmup=1ms",
        "seeds=[7]",
        "links.b.delay=9ms",
    ] {
        assert_ne!(key(&[flag]), same, "{flag}");
    }
}

#[test]
fn two_programs_do_not_write_to_one_store() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("runs.jsonl");
    let _first = Store::open(&file, "program").unwrap();
    let error = Store::open(&file, "program").unwrap_err().to_string();
    assert!(
        error.contains("runs.jsonl: another program writes to it"),
        "{error}"
    );
}

fn plan(alterations: Vec<Alteration>) -> Plan {
    let no_files = |_: &str| Err("no files".to_owned());
    Plan::new("small.toml", SMALL, alterations, &no_files).unwrap()
}

#[test]
fn a_plan_is_the_same_sweep_in_a_file() {
    let set = Alteration::Set("seeds=2".into());
    let vary = Alteration::Vary("links.a.rate=5mbit,6mbit".into());
    let compare = Alteration::Compare("edpf".into());
    let text = serde_json::to_string(&plan(vec![set, vary, compare])).unwrap();
    let plan = Plan::parse(&text).unwrap();
    assert_eq!(plan.runs.len(), 2 * 2 * 2);
    let batch = plan.batch().unwrap();
    let whole = go(&batch, 2, None);
    let opened = plan.open().unwrap();
    // One by one, from the last: the same runs.
    for (number, expected) in whole.results.runs.iter().enumerate().rev() {
        let (run, scenario) = opened.scenario(number).unwrap();
        let made = marline_sim::run::run(&scenario, &run.scheduler, run.seed);
        assert_eq!(made.values, expected.values);
        assert_eq!(
            (&made.scheduler, made.seed),
            (&expected.scheduler, expected.seed)
        );
        let cell = run.cell.iter().cloned().collect();
        assert_eq!(expected.cell, cell);
    }
    assert!(matches!(opened.scenario(8), Err(PlanError::NoRun(8))));
    let keys: BTreeSet<_> = plan.runs.iter().map(|run| &run.key).collect();
    assert_eq!(keys.len(), plan.runs.len());
}

#[test]
fn a_plan_that_was_changed_by_hand_is_refused() {
    let mut one = plan(Vec::new());
    one.runs[3].seed = 77;
    assert!(matches!(one.batch(), Err(PlanError::Changed(3))));
    let opened = one.open().unwrap();
    assert!(matches!(opened.scenario(3), Err(PlanError::Changed(3))));
    assert!(opened.scenario(2).is_ok());
    let mut other = plan(Vec::new());
    other.text = other.text.replace("6mbit", "7mbit");
    assert!(matches!(other.batch(), Err(PlanError::Changed(0))));
    let mut short = plan(Vec::new());
    short.runs.pop();
    assert!(matches!(short.batch(), Err(PlanError::Changed(11))));
    let mut old = plan(Vec::new());
    old.version = "0.0.0".into();
    let text = serde_json::to_string(&old).unwrap();
    assert!(matches!(Plan::parse(&text), Err(PlanError::Version { .. })));
    assert!(matches!(Plan::parse("{}"), Err(PlanError::Format(_))));
}

#[test]
fn a_run_that_is_stopped_has_no_results() {
    let batch = batch(&[]);
    let scenario = &batch.cells[0].1;
    let stop = AtomicBool::new(false);
    let run = run_unless(scenario, "edpf", 1, &stop);
    assert_eq!(run, Some(marline_sim::run::run(scenario, "edpf", 1)));
    stop.store(true, Ordering::Relaxed);
    assert_eq!(run_unless(scenario, "edpf", 1, &stop), None);
    // On the way, too: the first session that is made stops it.
    let stop = Arc::new(AtomicBool::new(false));
    let (mut watched, set) = (scenario.clone(), stop.clone());
    watched.watch = Watch::new(move |_| {
        set.store(true, Ordering::Relaxed);
        None
    });
    assert_eq!(run_unless(&watched, "edpf", 1, &stop), None);
}
