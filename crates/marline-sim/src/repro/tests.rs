use super::*;
use crate::results::document::assert_documented;
use crate::results::sample;
use crate::scenario::Expectation;
use std::collections::BTreeMap;

const DELAY: &str = "video.in_order_delay.p99_ms";

/// No bound yet, on edpf's delay (21, 81 ms) at an axis value or at all.
fn expectation(scheduler: &str, rtt: Option<&str>) -> Expectation {
    let cell = rtt.map(|rtt| ("links.b.rtt".to_owned(), rtt.to_owned()));
    Expectation {
        figure: "Figure 3".to_owned(),
        scheduler: scheduler.to_owned(),
        cell: cell.into_iter().collect(),
        measure: DELAY.to_owned(),
        published: Some(20.0),
        relative_to: None,
        mean: false,
        best_of: None,
        least: None,
        most: None,
        note: None,
        missed: None,
    }
}

fn judged(expectations: &[Expectation]) -> Vec<Verdict> {
    judge(&sample::results(), expectations)
}

fn outcome(least: Option<f64>, most: Option<f64>) -> Outcome {
    let base = expectation("edpf", Some("20ms"));
    judged(&[Expectation {
        least,
        most,
        ..base
    }])[0]
        .outcome
}

#[test]
fn the_mean_decides_and_bounds_are_inclusive() {
    assert_eq!(outcome(None, Some(21.0)), Outcome::Holds);
    assert_eq!(outcome(None, Some(20.9)), Outcome::Missed);
    assert_eq!(outcome(Some(21.0), None), Outcome::Holds);
    assert_eq!(outcome(Some(21.1), None), Outcome::Missed);
    assert_eq!(outcome(Some(20.0), Some(22.0)), Outcome::Holds);
    assert_eq!(outcome(Some(22.0), Some(30.0)), Outcome::Missed);
    assert_eq!(outcome(None, None), Outcome::Unbounded);
}

#[test]
fn a_bound_inside_the_interval_is_close() {
    let close = |most| {
        let base = expectation("edpf", Some("20ms"));
        judged(&[Expectation {
            most: Some(most),
            ..base
        }])[0]
            .close
    };
    // 21.0 ± 2.5.
    assert!(close(23.4) && close(18.6));
    assert!(!close(23.6) && !close(18.4));
}

#[test]
fn without_a_cell_every_cell_is_judged() {
    let base = expectation("edpf", None);
    let verdicts = judged(&[Expectation {
        most: Some(50.0),
        ..base
    }]);
    let outcomes: Vec<Outcome> = verdicts.iter().map(|verdict| verdict.outcome).collect();
    assert_eq!(outcomes, [Outcome::Holds, Outcome::Missed]);
    assert_eq!(verdicts[1].cell["links.b.rtt"], "160ms");
}

#[test]
fn the_mean_over_cells_is_judged_once() {
    let over_cells = |case: Expectation| {
        judged(&[Expectation {
            mean: true,
            most: Some(51.0),
            ..case
        }])
    };
    // 21.0 ± 2.5 and 81 ms.
    let [verdict] = &over_cells(expectation("edpf", None))[..] else {
        panic!("one verdict");
    };
    assert_eq!(verdict.cell["mean of cells"], "2");
    assert_eq!((verdict.outcome, verdict.n), (Outcome::Holds, 3));
    assert!((verdict.measured.unwrap() - 51.0).abs() < 1e-12);
    let each = judged(&[expectation("edpf", None)]);
    assert_eq!(verdict.interval, None, "cells share their seeds");
    // One cell is its own mean; what a cell lacks, the mean lacks.
    let one = &over_cells(expectation("edpf", Some("20ms")))[0];
    assert_eq!(one.measured, each[0].measured);
    let nothing = Expectation {
        measure: "video.no_such_ms".to_owned(),
        ..expectation("edpf", None)
    };
    for case in [expectation("blest", None), nothing] {
        let [missing] = &over_cells(case)[..] else {
            panic!("one verdict");
        };
        assert_eq!((missing.outcome, missing.measured), (Outcome::Missed, None));
    }
}

#[test]
fn what_was_not_measured_is_missed() {
    let cases = [
        expectation("blest", None),
        expectation("edpf", Some("30ms")),
        Expectation {
            measure: "video.no_such_ms".to_owned(),
            ..expectation("edpf", Some("20ms"))
        },
        Expectation {
            relative_to: Some("blest".to_owned()),
            ..expectation("edpf", Some("20ms"))
        },
    ];
    for case in cases {
        let verdicts = judged(&[Expectation {
            most: Some(1e9),
            ..case
        }]);
        assert_eq!(verdicts.len(), 1);
        assert_eq!(
            (verdicts[0].outcome, verdicts[0].measured),
            (Outcome::Missed, None)
        );
    }
}

#[test]
fn ratios_are_paired_and_have_no_unit() {
    let base = expectation("min-rtt", Some("160ms"));
    let relative_to = Some("edpf".to_owned());
    let verdict = &judged(&[Expectation {
        relative_to,
        most: Some(2.1),
        ..base
    }])[0];
    assert_eq!(
        (verdict.unit, verdict.outcome, verdict.n),
        ("", Outcome::Holds, 3)
    );
    assert!((verdict.measured.unwrap() - 161.0 / 81.0).abs() < 1e-12);
}

#[test]
fn fractions_are_pooled() {
    let base = expectation("edpf", Some("20ms"));
    let measure = "video.late".to_owned();
    let verdict = &judged(&[Expectation {
        measure,
        most: Some(0.05),
        ..base
    }])[0];
    assert_eq!(
        (verdict.measured, verdict.outcome),
        (Some(0.02), Outcome::Holds)
    );
}

/// One bound that holds, one that is missed, and one that is no bound.
pub(crate) fn report(seeds: usize) -> Report {
    let base = || expectation("edpf", Some("20ms"));
    let note = Some("From equation (1).".to_owned());
    let verdicts = judged(&[
        Expectation {
            most: Some(25.0),
            note: note.clone(),
            ..base()
        },
        Expectation {
            least: Some(1.0),
            most: Some(4.0),
            note,
            ..base()
        },
        Expectation {
            measure: "video.goodput_mbps".to_owned(),
            published: Some(9.5),
            ..base()
        },
    ]);
    let experiment = Experiment {
        folder: "ols",
        name: "fig-3",
        path: "ols/fig-3.toml",
        text: "",
    };
    let scenario = ScenarioReport {
        seeds,
        seeds_in_file: 3,
        verdicts,
        ..ScenarioReport::new(&experiment, "Two paths", "A video.")
    };
    Report {
        program: "0.1.0".to_owned(),
        ..Report::new(vec![scenario])
    }
}

#[test]
fn a_terminal_shows_published_and_measured_side_by_side() {
    let expected = "
Two paths (ols/fig-3.toml, 3 seeds)

 figure    cell              scheduler  measure                      published                measured       bound  verdict
 Figure 3  links.b.rtt=20ms  edpf       video.in_order_delay.p99_ms      20.00   21.00 [18.52, 23.48]     ≤ 25.00  PASS
 Figure 3  links.b.rtt=20ms  edpf       video.in_order_delay.p99_ms      20.00   21.00 [18.52, 23.48]  1.000 to 4.000  MISS
 Figure 3  links.b.rtt=20ms  edpf       video.goodput_mbps               9.500   9.920 [9.895, 9.945]           -  -

1 of 2 bounds hold.
MISS ols/fig-3.toml Figure 3, links.b.rtt=20ms: edpf video.in_order_delay.p99_ms is 21.00 [18.52, 23.48], bound 1.000 to 4.000 (From equation (1).)
";
    let squeeze = |text: &str| {
        let lines = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(
        squeeze(&format!("\n{}", text(&report(3)))),
        squeeze(expected)
    );
}

#[test]
fn fewer_seeds_give_no_verdict() {
    let text = text(&report(2));
    assert!(!text.contains("PASS") && !text.contains("MISS"), "{text}");
    assert!(
        text.contains("2 seeds instead of 3") && text.contains("no verdict"),
        "{text}"
    );
    assert!(
        text.contains("inside") && text.contains("outside"),
        "{text}"
    );
}

/// What a folder with it has, by name.
fn files(record: &Record) -> BTreeMap<String, String> {
    record.files().unwrap()
}

/// As [`report`], of this file, and with its title if it is there.
fn of(paper: &str, file: &str, seeds: usize) -> Report {
    let mut report = report(seeds);
    let scenario = &mut report.scenarios[0];
    scenario.paper = paper.to_owned();
    scenario.file = file.to_owned();
    let path = format!("{paper}/{file}");
    let known = crate::experiments::all();
    if let Some(one) = known.iter().find(|one| one.path == path) {
        scenario.title = title(one).unwrap();
    }
    report
}

#[test]
fn a_page_shows_counts_pictures_and_misses() {
    let mut record = Record::default();
    let mut report = of("ols", "table-1.toml", 3);
    let missed = report.scenarios[0].verdicts[1].clone();
    report.scenarios[0].verdicts.push(Verdict {
        reason: Some("the queue is full".to_owned()),
        figure: "Figure 4".to_owned(),
        ..missed
    });
    record.add(&report);
    let files = files(&record);
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(names, ["README.md", "ols-table-1.svg", "ols.csv", "ols.md"]);
    let page = &files["ols.md"];
    for part in [
        "# OLS: live streams in order\n\nXing et al.",
        "1 of 3 bounds hold; 0 are close",
        "| [table-1](../../crates/marline-sim/experiments/ols/table-1.toml) | Figure 3 | 3 | 1 | 1 | 1 |\n",
        "| Figure 4 | 3 | 0 | 1 | 0 |\n",
        "\n![OLS, static asymmetric paths](ols-table-1.svg)\n",
        "\n## Missed\n\n* Figure 4: `edpf` video.in_order_delay.p99_ms: 21.00 (asked: 1.000 to 4.000): the queue is full.\n",
        "\n* Figure 3: `edpf` video.in_order_delay.p99_ms, links.b.rtt=20ms: 21.00 (asked: 1.000 to 4.000): **no reason is known.**\n",
    ] {
        assert!(page.contains(part), "{part}\n---\n{page}");
    }
    let row = "| [OLS: live streams in order](ols.md) | 1 | 2 | 0 | 1 | [ols.csv](ols.csv) |\n";
    assert!(files["README.md"].contains(row), "{}", files["README.md"]);
    assert!(files["README.md"].contains("\n1 of 3 bounds hold.\n"));
}

#[test]
fn a_folder_keeps_what_other_runs_found_and_writes_the_same_again() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("deep").join("reproduction");
    for (paper, file) in [
        ("ols", "fig-9.toml"),
        ("hop", "jitter.toml"),
        ("ols", "table-1.toml"),
    ] {
        let mut record = Record::read(&folder).unwrap();
        record.add(&of(paper, file, 3));
        record.write(&folder).unwrap();
    }
    let record = Record::read(&folder).unwrap();
    let files = files(&record);
    assert_eq!(files.len(), 2 * 2 + 3 + 1);
    assert!(files["README.md"].contains("\n3 of 6 bounds hold.\n"));
    // Figures of a paper in the order of their numbers, each once.
    let mut again = record.clone();
    again.add(&of("ols", "fig-10.toml", 3));
    again.add(&of("ols", "fig-9.toml", 3));
    let csv = &again.files().unwrap()["ols.csv"];
    let mut order: Vec<&str> = csv
        .lines()
        .skip(1)
        .map(|line| &line[..line.find(',').unwrap()])
        .collect();
    assert_eq!(order.len(), 9);
    order.dedup();
    assert_eq!(order, ["fig-9", "fig-10", "table-1"]);
    // To the byte, from the CSV files alone, and whoever writes a figure again.
    let mut same = Record::read(&folder).unwrap();
    same.add(&of("hop", "jitter.toml", 3));
    let same = same.files().unwrap();
    for (name, text) in &files {
        let written = std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(written == *text && same[name] == *text, "{name}");
    }
    // What is no more is left out.
    again.write(&folder).unwrap();
    let after = Record::read(&folder).unwrap().files().unwrap();
    assert!(!after["ols.csv"].contains("fig-10") && after["ols.csv"].contains("fig-9"));
}

#[test]
fn a_reason_that_was_found_after_the_run_is_taken_from_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = Record::default();
    let mut report = of("s-edpf", "rate.toml", 5);
    let missed = report.scenarios[0].verdicts[1].clone();
    // A bound of that file, which says why it is missed, and one that is not there.
    let edpf = Verdict {
        figure: "12 Mb/s".to_owned(),
        cell: BTreeMap::from([("rate".to_owned(), "12mbit".to_owned())]),
        measure: "stream.in_order_delay.mean_ms".to_owned(),
        least: Some(192.0),
        most: Some(288.0),
        ..missed.clone()
    };
    let reason = Some("as it was written".to_owned());
    report.scenarios[0].verdicts = vec![edpf, Verdict { reason, ..missed }];
    record.add(&report);
    record.write(folder.path()).unwrap();
    let page = &Record::read(folder.path()).unwrap().files().unwrap()["s-edpf.md"];
    assert!(
        page.contains("ours knows that the censored one is 70 ms"),
        "{page}"
    );
    assert!(page.contains("as it was written"), "{page}");
}

/// Pictures are left out: their points may differ by a pixel from machine to machine.
#[test]
fn the_pages_of_the_repository_are_what_their_numbers_and_scenarios_say() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reproduction");
    let folder = std::path::Path::new(folder);
    let mut files = files(&Record::read(folder).unwrap());
    files.retain(|name, _| !name.ends_with(".svg"));
    assert!(files.len() > 1);
    for (name, text) in files {
        let written = std::fs::read_to_string(folder.join(&name)).unwrap();
        assert!(
            written == text,
            "{name}: `marline repro --write docs/reproduction` mends it"
        );
    }
}

#[test]
fn a_record_says_whose_verdicts_it_has() {
    let mut record = Record::default();
    record.add(&of("ols", "fig-9.toml", 3));
    record.add(&of("ols", "table-1.toml", 2));
    let has = |file| record.has_verdicts([("ols", file)].into_iter());
    assert!(has("fig-9") && !has("table-1") && !has("fig-7"));
    let files = files(&record);
    assert!(
        files["ols.md"].contains("| Figure 3 | 2 instead of 3 | no verdict | no verdict | 1 |")
    );
    assert!(
        files["README.md"].contains("\n1 of 2 bounds hold.\n"),
        "those of fig-9"
    );
    for file in ["page.md", "record.csv"] {
        let error = Record::read(std::path::Path::new(file)).unwrap_err();
        assert!(matches!(error, RecordError::File), "{error}");
    }
}

#[test]
fn a_miss_has_the_reason_of_its_expectation_and_what_holds_has_none() {
    let of = |most| {
        let missed = Some("the queue is full".to_owned());
        let base = expectation("edpf", Some("20ms"));
        judged(&[Expectation {
            most: Some(most),
            missed,
            ..base
        }])[0]
            .reason
            .clone()
    };
    assert_eq!(of(4.0).as_deref(), Some("the queue is full"));
    assert_eq!(of(25.0), None);
}

#[test]
fn papers_and_figures_are_found_by_name() {
    let one = |folder, name| Experiment {
        folder,
        name,
        path: "",
        text: "",
    };
    let all = [
        one("hop", "fig-4"),
        one("ols", "fig-6"),
        one("ols", "table-1"),
    ];
    let figures = |one: &Experiment| match one.name {
        "table-1" => vec!["Table I".to_owned()],
        _ => Vec::new(),
    };
    let find = |paper, figure| find(&all, paper, figure, figures);
    assert_eq!(find(None, None).unwrap().len(), 3);
    assert_eq!(find(Some("OLS"), None).unwrap(), all[1..]);
    assert_eq!(find(Some("ols"), Some("fig-6")).unwrap(), all[1..2]);
    assert_eq!(find(Some("ols"), Some("table i")).unwrap(), all[2..]);
    assert_eq!(
        find(Some("skip"), None).unwrap_err(),
        "no paper `skip`; there are hop, ols"
    );
    let error = find(Some("ols"), Some("fig-9")).unwrap_err();
    assert_eq!(
        error,
        "no figure `fig-9`; there are fig-6, table-1, Table I"
    );
}

#[test]
fn every_field_of_the_report_is_documented() {
    let open = [("scenarios[].verdicts[].cell", "AXIS")];
    assert_documented(&report(3), "JSON of `marline repro`", &open);
}
