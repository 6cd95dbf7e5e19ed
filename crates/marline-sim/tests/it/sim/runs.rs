//! One run, and many at once.

use std::collections::BTreeMap;
use std::sync::Mutex;

use marline_sim::measure::unknown_values;
use marline_sim::run::{Job, check, run_all};

use super::*;

/// Everything at once: several sessions, kinds of flows, losses, and links that vary.
fn busy() -> Scenario {
    let links = vec![
        link(
            "wifi",
            "rate=30mbit,rate-sd=8mbit,rate-every=25ms,rate-min=4mbit,delay=8ms,jitter=3ms,queue=60ms",
        ),
        link(
            "lte",
            "rate=20mbit,delay=25ms,jitter=8ms,loss=1%,queue=120ms",
        ),
    ];
    let live = over_packets(constant("live", 2, 900), false);
    let first = session("one", 2, vec![bulk("bulk"), live]);
    let second = session(
        "two",
        2,
        vec![over_packets(constant("voice", 1, 200), true)],
    );
    Scenario {
        duration: secs(6),
        warmup: secs(1),
        ..scenario(links, vec![first, second])
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let scenario = busy();
    for scheduler in ["min-rtt", "edpf", "round-robin", "redundant"] {
        let first = json(&run(&scenario, scheduler, 7));
        assert_eq!(json(&run(&scenario, scheduler, 7)), first, "{scheduler}");
        assert_ne!(json(&run(&scenario, scheduler, 8)), first, "{scheduler}");
    }
}

#[test]
fn threads_change_neither_results_nor_their_order() {
    let scenario = Scenario {
        duration: secs(2),
        ..busy()
    };
    let mut jobs = Vec::new();
    for scheduler in ["min-rtt", "edpf", "redundant"] {
        for seed in 0..4 {
            jobs.push(Job {
                scenario: &scenario,
                cell: BTreeMap::from([("seed".to_owned(), seed.to_string())]),
                scheduler,
                seed,
            });
        }
    }
    let alone = run_all(&jobs, 1, |_, _| {});
    let heard = Mutex::new(Vec::new());
    let together = run_all(&jobs, 5, |index, run| {
        heard.lock().expect("no panic").push((index, run.seed));
    });
    assert_eq!(alone.len(), jobs.len());
    assert_eq!(
        alone.iter().map(json).collect::<Vec<_>>(),
        together.iter().map(json).collect::<Vec<_>>()
    );
    for (run, job) in together.iter().zip(&jobs) {
        assert_eq!(
            (&*run.scheduler, run.seed, &run.cell),
            (job.scheduler, job.seed, &job.cell)
        );
    }
    let mut heard = heard.into_inner().expect("no panic");
    heard.sort_unstable();
    let expected: Vec<_> = jobs.iter().map(|j| j.seed).enumerate().collect();
    assert_eq!(heard, expected);
}

#[test]
fn every_value_has_its_name_in_the_catalogue() {
    let scenario = busy();
    let run = run(&scenario, "edpf", 1);
    assert_eq!(unknown_values(&scenario, &run), Vec::<String>::new());
}

#[test]
fn unknown_schedulers_are_named_with_the_known_ones() {
    let error = check(&busy(), "min-rrt").unwrap_err().to_string();
    assert!(
        error.contains("min-rrt") && error.contains("min-rtt"),
        "{error}"
    );
}
