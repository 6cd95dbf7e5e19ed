//! One run.

use marline_sim::run::check;
use marline_sim::scenario::unknown_values;

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
