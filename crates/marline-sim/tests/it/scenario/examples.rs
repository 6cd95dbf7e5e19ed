//! Every scenario that comes with the program is without mistakes and runs.

use std::sync::atomic::AtomicBool;

use marline_sim::Duration;
use marline_sim::batch::Batch;
use marline_sim::experiments;
use marline_sim::scenario::{Document, explain, unknown_values};

/// For measured traces, which do not come with the program.
fn stand_in(name: &str) -> String {
    if name.ends_with(".down") {
        return "2\n3\n10\n".to_owned();
    }
    if name.ends_with(".csv") {
        let rows = "t_ms,nr_kbps,up_kbps,down_kbps\n0,80000,40000,30000\n100,20000,40000,50000\n";
        return format!("# step_ms: 100\n{rows}");
    }
    assert_eq!(name, "web/pages.json");
    let fields = "id initiator priority size conn host start_ms think_ms render_blocking";
    let fields: Vec<&str> = fields.split(' ').collect();
    let names = [
        "123rf",
        "15five",
        "17track",
        "1password",
        "1stdibs",
        "23andme",
        "247sports",
        "53",
        "6pm",
        "9anime",
        "9gag",
    ];
    let page =
        |name| serde_json::json!({"page": name, "objects": [[0, -1, 0, 5000, 0, 0, 0, 0, 1]]});
    serde_json::json!({"fields": fields, "pages": names.map(page)}).to_string()
}

#[test]
fn every_shipped_scenario_is_without_mistakes() {
    for one in experiments::all() {
        let document = Document::parse(one.path, one.text).unwrap_or_else(|e| panic!("{e}"));
        let files = |name: &str| match name.strip_prefix("traces/") {
            Some(trace) => Ok(stand_in(trace)),
            None => one.read(name, None),
        };
        let cells = document.scenarios(&files).unwrap_or_else(|e| panic!("{e}"));
        assert!(!cells.is_empty(), "{}", one.path);
        let words = explain(&document, &cells[0].1);
        assert!(words.contains(&cells[0].1.title), "{words}");
        let ways = ["paths: ", "Without a protocol"];
        assert!(words.contains("Links:"), "{words}");
        assert!(ways.iter().any(|w| words.contains(w)), "{words}");
    }
}

/// For a second of virtual time, so that the test is short: what the figures need is not there.
#[test]
fn every_example_runs_and_yields_the_measures_that_are_listed() {
    let examples = experiments::all();
    let examples = examples.iter().filter(|one| one.folder == "examples");
    let mut count = 0;
    for one in examples {
        let document = Document::parse(one.path, one.text).unwrap();
        let cells = document.scenarios(&|_| Err("no files".into()));
        let mut cells = cells.unwrap_or_else(|e| panic!("{e}"));
        cells.truncate(1);
        for (_, scenario) in &mut cells {
            scenario.duration = Duration::from_secs(1);
            scenario.warmup = Duration::ZERO;
            scenario.seeds = vec![1];
        }
        let batch = Batch {
            file: one.path.into(),
            version: "test".into(),
            cells,
        };
        batch
            .check()
            .unwrap_or_else(|e| panic!("{}: {e}", one.path));
        let outcome = batch.run(1, &AtomicBool::new(false), None, |_| {}).unwrap();
        assert_eq!(outcome.results.runs.len(), outcome.wanted);
        for run in &outcome.results.runs {
            assert!(!run.values.is_empty(), "{}", one.path);
            let unknown = unknown_values(&batch.cells[0].1, run);
            assert!(unknown.is_empty(), "{}: {unknown:?}", one.path);
        }
        count += 1;
    }
    assert!(count >= 6, "{count} examples");
}

#[test]
fn what_a_file_has_after_an_end_that_a_flag_asks_for_does_not_happen() {
    let all = experiments::all();
    let example = all.iter().find(|one| one.path == "examples/handover.toml");
    let mut document = Document::parse("handover", example.unwrap().text).unwrap();
    document.set("duration=20s").unwrap();
    let cells = document.scenarios(&|_| Err("no files".into())).unwrap();
    assert_eq!(cells[0].1.duration, Duration::from_secs(20));
    // In the file it is a mistake: nobody means it.
    let text = example
        .unwrap()
        .text
        .replace("duration = \"50s\"", "duration = \"20s\"");
    let document = Document::parse("handover", &text).unwrap();
    let mistakes = document.scenarios(&|_| Err("no files".into())).unwrap_err();
    assert!(
        mistakes.to_string().contains("the run is over by then"),
        "{mistakes}"
    );
}
