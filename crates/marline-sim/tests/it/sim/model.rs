//! Schedulers in the model without a protocol, against what can be proved.

use marline_link::ServiceTime;
use marline_sim::model::{Demand, Feedback, Model, ModelPath, Outcome};
use marline_sim::{Duration, Rng};

use crate::kit::ms;

fn constant(service: Duration, delay: Duration) -> ModelPath {
    ModelPath {
        service: ServiceTime::Normal {
            mean: service,
            sd: Duration::ZERO,
        },
        delay,
        ahead: 1_000,
    }
}

fn outcome(model: &Model, scheduler: &str, seed: u64) -> Outcome {
    let choice = scheduler.parse().expect("a scheduler");
    model.run(&choice, seed).expect("sound paths")
}

/// `units` packets that all wait at the start.
fn backlog(units: u32) -> Demand {
    Demand {
        packets: 1,
        every: Duration::ZERO,
        random: false,
        units,
    }
}

/// When each packet is delivered in order (µs) if packet `k` goes where digit `k` of `code`, in the
/// base of the number of paths, says.
fn in_order(mut code: usize, packets: usize, paths: &[(u64, u64)]) -> Vec<u64> {
    let mut busy = vec![0; paths.len()];
    let mut last = 0;
    let mut times = Vec::new();
    for _ in 0..packets {
        let path = code % paths.len();
        code /= paths.len();
        let (service, delay) = paths[path];
        busy[path] += service;
        last = last.max(busy[path] + delay);
        times.push(last);
    }
    times
}

#[test]
fn no_assignment_of_packets_to_constant_links_delivers_earlier_in_order_than_edpf() {
    let mut rng = Rng::new(11);
    for seed in 0..40 {
        let count = 2 + rng.below(2) as usize;
        let packets: usize = if count == 2 { 11 } else { 7 };
        // Services of 0.5 to 5 ms, delays of 1 to 21 ms.
        let mut draw = || (500 + rng.below(4_500), 1_000 + rng.below(20_000));
        let paths: Vec<(u64, u64)> = (0..count).map(|_| draw()).collect();
        let all = (0..count.pow(packets as u32)).map(|code| in_order(code, packets, &paths));
        let best: u64 = all
            .map(|times| times.iter().sum())
            .min()
            .expect("one at least");
        let micros = Duration::from_micros;
        let model = Model {
            paths: paths
                .iter()
                .map(|(s, d)| constant(micros(*s), micros(*d)))
                .collect(),
            feedback: Feedback::Perfect,
            demand: backlog(packets as u32),
        };
        let got = outcome(&model, "edpf", seed).in_order;
        assert_eq!(got.count(), packets as u64);
        let sum = (got.mean() * packets as f64).round() as u64;
        assert_eq!(sum, best, "{paths:?}");
    }
}

#[test]
fn one_path_is_a_queue_with_exponential_service() {
    let load = 0.7;
    let model = Model {
        paths: vec![ModelPath {
            service: ServiceTime::Gamma {
                mean: ms(10),
                sd: ms(10),
            },
            delay: ms(5),
            ahead: 1_000_000,
        }],
        feedback: Feedback::Perfect,
        demand: Demand {
            packets: 1,
            every: ms(10).div_f64(load),
            random: true,
            units: 200_000,
        },
    };
    let outcome = outcome(&model, "min-rtt", 1);
    // M/M/1: S / (1 − ρ), and the way.
    let expected = 5.0 + 10.0 / (1.0 - load);
    let mean = outcome.in_order.mean() / 1e3;
    assert!(
        (mean / expected - 1.0).abs() < 0.04,
        "{mean} ms, not {expected}"
    );
    assert_eq!(outcome.waits.count(), 0, "one path keeps the order");
}

#[test]
fn an_object_is_there_with_its_last_packet() {
    let model = Model {
        paths: vec![constant(ms(1), ms(5)), constant(ms(1), ms(5))],
        feedback: Feedback::Perfect,
        demand: Demand {
            packets: 10,
            every: ms(50),
            random: false,
            units: 100,
        },
    };
    let halves = outcome(&model, "edpf", 1);
    assert_eq!(halves.sent, [500, 500]);
    assert_eq!(halves.unit.count(), 100);
    // Five packets on each path.
    assert_eq!(
        (halves.unit.quantile(0.0), halves.unit.quantile(1.0)),
        (10_000, 10_000)
    );
    let copies = outcome(&model, "redundant", 1);
    assert_eq!(copies.unit.quantile(1.0), 15_000);
    assert_eq!(copies.sent.iter().sum::<u64>(), 2_000);
}

/// Two paths of different delay with random service; the near one would be loaded to 80 % alone.
fn unequal(feedback: Feedback) -> Model {
    let path = |delay| ModelPath {
        service: ServiceTime::Gamma {
            mean: ms(10),
            sd: ms(4),
        },
        delay,
        ahead: 20,
    };
    Model {
        paths: vec![path(ms(10)), path(ms(60))],
        feedback,
        demand: Demand {
            packets: 1,
            every: Duration::from_micros(12_500),
            random: false,
            units: 20_000,
        },
    }
}

#[test]
fn what_the_sender_knows_and_how_it_schedules_can_be_told_apart() {
    let perfect = unequal(Feedback::Perfect);
    let mean = |model: &Model, scheduler| outcome(model, scheduler, 5).in_order.mean() / 1e3;
    let (edpf, in_turn) = (mean(&perfect, "edpf"), mean(&perfect, "round-robin"));
    assert!(edpf < in_turn, "edpf {edpf} ms, round-robin {in_turn} ms");
    let late = mean(&unequal(Feedback::Delayed(ms(60))), "edpf");
    assert!(
        edpf < late,
        "with perfect feedback {edpf} ms, with late {late} ms"
    );
}

#[test]
fn a_model_run_is_a_function_of_its_seed() {
    let model = unequal(Feedback::Delayed(ms(10)));
    let sums = |seed| {
        let outcome = outcome(&model, "edpf", seed);
        (
            outcome.in_order.mean(),
            outcome.waits.mean(),
            outcome.sent,
            outcome.end,
        )
    };
    assert_eq!(sums(1), sums(1));
    assert_ne!(sums(1), sums(2));
}
