use super::*;
use crate::results::document::assert_documented;
use crate::results::sample;
use crate::scenario::Expectation;

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
    let document = document(&report(2), "marline repro", "");
    assert!(
        document.contains("no verdicts") && !document.contains("| MISS"),
        "{document}"
    );
}

#[test]
fn the_document_is_markdown_with_its_command_and_notes() {
    let document = document(&report(3), "marline repro --write docs/REPRODUCTION.md", "");
    assert!(document.starts_with(
        "# Reproduction\n\nWritten by `marline repro --write docs/REPRODUCTION.md` (marline 0.1.0), which"
    ));
    let end = "\
1 of 2 bounds hold.

## ols

### Two paths

A video.

[ols/fig-3.toml](../experiments/ols/fig-3.toml), 3 seeds; `marline repro ols fig-3`

| figure | cell | scheduler | measure | published | measured | bound | verdict | note |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
| Figure 3 | links.b.rtt=20ms | edpf | video.in_order_delay.p99_ms | 20.00 | 21.00 [18.52, 23.48] | ≤ 25.00 | PASS | 1 |
| Figure 3 | links.b.rtt=20ms | edpf | video.in_order_delay.p99_ms | 20.00 | 21.00 [18.52, 23.48] | 1.000 to 4.000 | MISS | 1 |
| Figure 3 | links.b.rtt=20ms | edpf | video.goodput_mbps | 9.500 | 9.920 [9.895, 9.945] | - | - |  |

1. From equation (1).
";
    assert!(document.ends_with(end), "{document}");
}

#[test]
fn a_document_keeps_what_other_runs_found() {
    let of = |paper: &str, file: &str| {
        let mut report = report(3);
        report.scenarios[0].paper = paper.to_owned();
        report.scenarios[0].file = file.to_owned();
        report
    };
    let first = document(&of("ols", "fig-7.toml"), "first", "");
    let second = document(&of("hop", "jitter.toml"), "second", &first);
    assert!(second.contains("`second`") && !second.contains("`first`"));
    assert!(second.contains("\n2 of 4 bounds hold.\n"), "{second}");
    let at = |what: &str| second.find(what).unwrap();
    assert!(at("## hop") < at("(../experiments/hop/jitter.toml)"));
    assert!(at("(../experiments/hop/jitter.toml)") < at("## ols"));
    assert!(at("## ols") < at("(../experiments/ols/fig-7.toml)"));
    // What is run again is replaced, and what is no more is left out.
    assert_eq!(
        document(&of("hop", "jitter.toml"), "second", &second),
        second
    );
    let gone = document(&of("hop", "gone.toml"), "second", "");
    let after = document(&of("ols", "fig-7.toml"), "second", &gone);
    assert!(
        !after.contains("gone.toml") && !after.contains("## hop"),
        "{after}"
    );
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
