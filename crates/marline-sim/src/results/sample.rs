//! Results made of literals, for tests of what is done with results.

use std::collections::BTreeMap;

use super::{Distribution, FORMAT, Fraction, Results, Run, Series};

/// Two cells, two schedulers, three seeds; delays grow with the axis, min-rtt's more.
pub(crate) fn results() -> Results {
    let mut runs = Vec::new();
    for (rtt, base) in [("20ms", 20.0), ("160ms", 80.0)] {
        for (scheduler, factor) in [("edpf", 1.0), ("min-rtt", 2.0)] {
            for seed in 1..=3 {
                runs.push(run(rtt, scheduler, seed, base * factor));
            }
        }
    }
    Results {
        format: FORMAT,
        title: "Two paths".to_owned(),
        file: "two-paths.toml".to_owned(),
        version: "0.1.0".to_owned(),
        runs,
    }
}

fn run(rtt: &str, scheduler: &str, seed: u64, delay: f64) -> Run {
    let own = |name: &str, value: f64| (name.to_owned(), value);
    let quantile = |p: f64| (p, delay * (0.5 + p / 2.0));
    let series = |unit: &str, value: f64| Series {
        unit: unit.to_owned(),
        step_s: 0.1,
        values: (0..50)
            .map(|step| value * f64::from(1 + step % 5))
            .collect(),
    };
    Run {
        cell: BTreeMap::from([("links.b.rtt".to_owned(), rtt.to_owned())]),
        scheduler: scheduler.to_owned(),
        seed,
        values: BTreeMap::from([
            own("video.goodput_mbps", 9.9 + seed as f64 / 100.0),
            own("video.in_order_delay.p99_ms", delay + seed as f64 - 1.0),
        ]),
        fractions: BTreeMap::from([(
            "video.late".to_owned(),
            Fraction {
                hits: seed,
                trials: 100,
            },
        )]),
        distributions: BTreeMap::from([(
            "video.in_order_delay".to_owned(),
            Distribution {
                unit: "ms".to_owned(),
                count: 3000,
                quantiles: [0.0, 0.5, 0.9, 0.99, 0.999, 1.0].map(quantile).to_vec(),
            },
        )]),
        series: BTreeMap::from([
            ("path.a.throughput".to_owned(), series("Mb/s", 1.0)),
            ("path.b.throughput".to_owned(), series("Mb/s", 0.5)),
            ("path.a.cwnd".to_owned(), series("kB", 10.0)),
        ]),
    }
}
